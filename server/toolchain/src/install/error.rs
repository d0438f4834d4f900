//! Why a toolkit could not be installed or removed.

use std::io;
use std::path::{Path, PathBuf};

use crate::discovery::Version;
use crate::sentence::part;

/// What kind of failure it is; decides the exit status of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for makes no sense (exit status 2).
    Usage,
    /// Something needed is missing (exit status 3).
    Missing,
    /// It was tried and did not work (exit status 1).
    Failed,
    /// Cancelled (exit status 130).
    Cancelled,
}

/// A failed installation or removal.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Not a release.
    #[error("`{text}` is no CUDA release. Write it as 13.5, as 13 for its newest, or as latest.")]
    NoRelease {
        /// As it was written.
        text: String,
    },
    /// Not a part of a toolkit.
    #[error("`{text}` is no part that can be installed. There are: {known}.")]
    NoPart {
        /// As it was written.
        text: String,
        /// Those that there are.
        known: String,
    },
    /// The wheels of this release hold no nvcc.
    #[error(
        "CUDA {release} can't be installed from wheels: before CUDA 13 they hold ptxas and libnvvm, but not nvcc. Install 13 or newer here (`stitchcuda toolchain install 13`), or CUDA {release} with your system's package manager or conda, and name it in CUDA_HOME."
    )]
    NoCompiler {
        /// The release.
        release: String,
    },
    /// No wheels for this system.
    #[error("There are CUDA wheels for Linux on x86_64 and aarch64 only, and this is {system}.")]
    NoWheels {
        /// This system.
        system: String,
    },
    /// No Python.
    #[error(
        "No python3 was found; its pip is needed to find the CUDA wheels. Install Python 3 (Debian, Ubuntu: `apt install python3 python3-pip`; Fedora: `dnf install python3-pip`), or activate an environment that has it."
    )]
    NoPython,
    /// Python without pip.
    #[error("{} has no pip, which is needed to find the CUDA wheels. Install it (`{} -m ensurepip --upgrade`; Debian, Ubuntu: `apt install python3-pip`; uv: `uv pip install pip`).", python.display(), python.display())]
    NoPip {
        /// The interpreter.
        python: PathBuf,
    },
    /// pip before 22.2.
    #[error("The pip of {} is older than 22.2, and can't report where wheels are. Upgrade it (`{} -m pip install --upgrade pip`), or make a virtual environment with a newer one.", python.display(), python.display())]
    OldPip {
        /// The interpreter.
        python: PathBuf,
    },
    /// pip did not find a wheel.
    #[error("pip found no wheel for {requirement}. {advice} pip said: {said}")]
    NotFound {
        /// What was asked for.
        requirement: String,
        /// What to do.
        advice: String,
        /// pip's last words.
        said: String,
    },
    /// pip failed in another way.
    #[error("pip could not look up the CUDA wheels ({} -m pip). Check that `pip download cuda-toolkit --no-deps` works. pip said: {said}", python.display())]
    Resolver {
        /// The interpreter.
        python: PathBuf,
        /// pip's last words.
        said: String,
    },
    /// The index says something that can't be right.
    #[error("The package index's answer can't be used: {}.", part(problem))]
    BadIndex {
        /// What is wrong.
        problem: String,
    },
    /// A wheel could not be fetched.
    #[error(
        "{wheel} could not be downloaded from {host}: {problem} What was downloaded is kept; run the command again to go on."
    )]
    Download {
        /// The wheel.
        wheel: String,
        /// The host it is on.
        host: String,
        /// What happened, and what to do; a sentence.
        problem: String,
    },
    /// A wheel has another hash than the index says, twice.
    #[error(
        "{wheel} from {host} has the SHA-256 {found}, and the index says {expected}. It was thrown away. A proxy or mirror may have changed it; try another network or index."
    )]
    WrongHash {
        /// The wheel.
        wheel: String,
        /// The host it is on.
        host: String,
        /// What the index says.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A wheel that can't be unpacked, or must not be.
    #[error("{wheel} can't be unpacked: {}. It was not installed.", part(problem))]
    BadWheel {
        /// The wheel.
        wheel: String,
        /// What is wrong.
        problem: String,
    },
    /// Not enough room.
    #[error("There is not enough room in {}: {} MB are needed, {} MB are free. Make room, or set XDG_CACHE_HOME to a folder on a larger disk.", folder.display(), needed / 1_000_000, free / 1_000_000)]
    DiskFull {
        /// The folder.
        folder: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// A file or folder could not be handled.
    #[error("{} could not be {action}: {}.{}", path.display(), part(source), advice(source))]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// What was installed does not work.
    #[error(
        "The wheels of CUDA {version} make no working toolkit: {}. It was not installed. Try another release.",
        part(problem)
    )]
    Broken {
        /// The release.
        version: Version,
        /// What is wrong.
        problem: String,
    },
    /// There is something in the toolkit's place that we did not put there.
    #[error("{} is not a toolkit that was installed here (it has no manifest.json of ours), so it is left alone. Move it away first.", folder.display())]
    Foreign {
        /// The folder.
        folder: PathBuf,
    },
    /// Nothing to remove.
    #[error("CUDA {release} is not installed here. Installed: {installed}.")]
    NotInstalled {
        /// The release, as it was asked for.
        release: String,
        /// Those that are.
        installed: String,
    },
    /// The package index does not answer.
    #[error("No package index could be reached. Check the network, the proxy (HTTPS_PROXY) and the index (PIP_INDEX_URL, `{} -m pip config list`). pip said: {said}", python.display())]
    NoIndex {
        /// The interpreter.
        python: PathBuf,
        /// pip's last words.
        said: String,
    },
    /// A release was to be removed by its major number, and there are several.
    #[error(
        "`{text}` may mean several of the releases that are installed here: {installed}. Name one of them."
    )]
    Several {
        /// As it was written.
        text: String,
        /// Those it may mean.
        installed: String,
    },
    /// Cancelled.
    #[error("The installation was cancelled. {}", kept_words(*kept))]
    Cancelled {
        /// What is left of downloads, for the next try, in bytes.
        kept: u64,
    },
}

impl InstallError {
    /// What kind of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NoRelease { .. }
            | Self::NoPart { .. }
            | Self::NoCompiler { .. }
            | Self::NotInstalled { .. }
            | Self::Several { .. } => Kind::Usage,
            Self::NoPython
            | Self::NoPip { .. }
            | Self::OldPip { .. }
            | Self::NoWheels { .. }
            | Self::NoIndex { .. }
            | Self::NotFound { .. }
            | Self::Resolver { .. }
            | Self::Download { .. } => Kind::Missing,
            Self::Cancelled { .. } => Kind::Cancelled,
            _ => Kind::Failed,
        }
    }
}

fn kept_words(kept: u64) -> String {
    match kept {
        0 => "Nothing was kept; the next try begins anew.".to_owned(),
        kept => format!(
            "{:.1} MB of its wheels are kept; run the command again to go on from there.",
            kept as f64 / 1e6
        ),
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " Make room, or set XDG_CACHE_HOME to a folder on a larger disk; then run the command again."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " Check who may write there (`ls -ld`), or set XDG_CACHE_HOME to a folder of yours."
        }
        _ => "",
    }
}

/// For `map_err`: what was tried with a path.
pub(super) fn at(path: &Path, action: &'static str, source: io::Error) -> InstallError {
    InstallError::File { path: path.to_path_buf(), action, source }
}
