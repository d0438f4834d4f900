//! From an nvcc to its toolkit: root, version, headers and libraries that belong together.
//!
//! Layouts differ: `include` in NVIDIA's own packages, `targets/<arch>-linux/include` in conda environments and cross
//! builds, `/usr/include` for Debian's package. Headers say which release they are of (`CUDART_VERSION`); headers of
//! another release than nvcc are not taken. For a wrapper script the file system says nothing, so nvcc is asked where
//! it would look (`nvcc --dryrun`).

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::Search;
use super::places::Candidate;
use super::version::{self, Version};
use crate::process::Program;

/// Where a toolkit was found, in the order in which they are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Named in the configuration.
    Configured,
    /// Named by `CUDA_HOME`.
    CudaHome,
    /// Named by `CUDA_PATH`.
    CudaPath,
    /// In a folder of `PATH`.
    Path,
    /// In `/usr/local/cuda`, `/usr/local/cuda-*` or `/opt/cuda`.
    UsrLocal,
    /// Among the wheels of the active Python environment.
    PythonEnvironment,
    /// In the active conda environment.
    Conda,
    /// Installed by `stitchcuda toolchain install`.
    Private,
}

impl Origin {
    /// In words, to follow "found".
    pub fn words(self) -> &'static str {
        match self {
            Self::Configured => "by the configuration",
            Self::CudaHome => "by CUDA_HOME",
            Self::CudaPath => "by CUDA_PATH",
            Self::Path => "on PATH",
            Self::UsrLocal => "in a usual place",
            Self::PythonEnvironment => "among the wheels of the Python environment",
            Self::Conda => "in the conda environment",
            Self::Private => "as a private installation",
        }
    }
}

/// A CUDA toolkit that can compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Toolkit {
    /// Its top folder.
    pub root: PathBuf,
    /// Its compiler driver; a wrapper script where the person has one.
    pub nvcc: PathBuf,
    /// The release that nvcc says it is.
    pub version: Version,
    /// The folder of `cuda_runtime.h`.
    pub include: PathBuf,
    /// The folder of the CUDA runtime library, if there is one.
    pub library: Option<PathBuf>,
    /// Where it was found.
    pub origin: Origin,
}

impl Toolkit {
    /// Whether two are the same installation, reached by other paths.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        real(&self.nvcc) == real(&other.nvcc)
    }
}

/// Looks at an nvcc. Returns its toolkit, and a note if nvcc and headers differ in their minor release.
///
/// # Errors
/// Says what is wrong with it, naming it and how it was found.
pub(super) fn examine(candidate: &Candidate, search: &Search) -> Result<(Toolkit, Option<String>), String> {
    let found = &candidate.nvcc;
    let named = |problem: String| {
        format!("The CUDA toolkit found {} can't be used: {problem}", candidate.origin.words())
    };
    let nvcc = real_nvcc(found);
    let version = version::ask(&nvcc, &search.environment).map_err(named)?;
    let layout = match nvcc.parent().and_then(Path::parent) {
        Some(root) => headers(&include_folders(root), version).map(|chosen| (root.to_path_buf(), chosen)),
        None => Err(Vec::new()),
    };
    let (root, chosen) = match layout {
        Ok(found) => found,
        Err(mut looked) => match asked(&nvcc, search, version) {
            Ok(found) => found,
            Err(more) => {
                looked.extend(more);
                looked.dedup();
                return Err(named(format!(
                    "{} is CUDA {version}, but no headers of that release belong to it (looked at {}). Install its cuda_runtime.h, or name another toolkit.",
                    nvcc.display(),
                    if looked.is_empty() { "no folder".into() } else { looked.join(", ") }
                )));
            }
        },
    };
    let note = chosen.version.filter(|of_headers| *of_headers != version).map(|of_headers| {
        format!(
            "{} is CUDA {version}, and its headers in {} are of {of_headers}.",
            nvcc.display(),
            chosen.folder.display()
        )
    });
    let library = library(&root, &chosen.folder);
    let toolkit = Toolkit { root, nvcc, version, include: chosen.folder, library, origin: candidate.origin };
    Ok((toolkit, note))
}

/// Follows a link to the nvcc it means (`/usr/bin/nvcc` to `/etc/alternatives` to the toolkit), so that its headers are
/// looked for beside it. A link to something of another name is a wrapper that goes by its own name (ccache): kept.
fn real_nvcc(found: &Path) -> PathBuf {
    let is_link = fs::symlink_metadata(found).is_ok_and(|metadata| metadata.is_symlink());
    match found.canonicalize() {
        Ok(real) if is_link && real.file_name() == found.file_name() => real,
        _ => found.to_path_buf(),
    }
}

/// The folders in which a toolkit with this root may have its headers.
fn include_folders(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.join("include")];
    folders.extend(targets(root).into_iter().map(|target| target.join("include")));
    // The separate CUDA 12 wheels: nvcc and headers are neighbours.
    if root.file_name().is_some_and(|name| name == "cuda_nvcc") {
        folders.push(root.with_file_name("cuda_runtime").join("include"));
    }
    folders
}

/// The folders of `targets`, this machine's first.
fn targets(root: &Path) -> Vec<PathBuf> {
    let own: &[&str] = match std::env::consts::ARCH {
        "aarch64" => &["sbsa-linux", "aarch64-linux"],
        "x86_64" => &["x86_64-linux"],
        _ => &[],
    };
    own.iter().map(|name| root.join("targets").join(name)).filter(|target| target.is_dir()).collect()
}

struct Headers {
    folder: PathBuf,
    version: Option<Version>,
}

/// The first folder with headers of this release; else one of the same major release, which nvcc takes too.
///
/// # Errors
/// The folders that were looked at, with what was there.
fn headers(folders: &[PathBuf], version: Version) -> Result<Headers, Vec<String>> {
    let mut looked = Vec::new();
    let mut near = None;
    for folder in folders {
        if !folder.join("cuda_runtime.h").is_file() {
            looked.push(format!("{}: none", folder.display()));
            continue;
        }
        let of_headers = header_version(folder);
        let found = Headers { folder: folder.clone(), version: of_headers };
        match of_headers {
            None => return Ok(found),
            Some(other) if other == version => return Ok(found),
            Some(other) if other.major == version.major => near = near.or(Some(found)),
            Some(other) => looked.push(format!("{}: headers of CUDA {other}", folder.display())),
        }
    }
    near.ok_or(looked)
}

/// The release that headers say they are of.
fn header_version(folder: &Path) -> Option<Version> {
    ["cuda_runtime_api.h", "cuda_runtime.h", "cuda.h"].iter().find_map(|name| {
        let bytes = fs::read(folder.join(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        text.lines().find_map(|line| {
            let mut words = line.trim_start().strip_prefix('#')?.split_whitespace();
            let is_version = words.next() == Some("define")
                && matches!(words.next(), Some("CUDART_VERSION" | "CUDA_VERSION"));
            is_version.then(|| words.next()?.parse().ok().map(Version::from_number)).flatten()
        })
    })
}

/// Asks nvcc which root and include folders it uses.
fn asked(nvcc: &Path, search: &Search, version: Version) -> Result<(PathBuf, Headers), Vec<String>> {
    let program = Program::new(nvcc).args(["--dryrun", "-x", "cu", "/dev/null"]);
    let program = program.environment(search.environment.clone().without_secrets());
    let Ok(finished) = program.time_limit(Duration::from_secs(10)).output_limit(1 << 20).run_blocking()
    else {
        return Err(Vec::new());
    };
    let answer = finished.stderr_text();
    let top =
        answer.lines().find_map(|line| line.strip_prefix("#$ TOP=")).map(|top| tidy(Path::new(top.trim())));
    let mut folders: Vec<PathBuf> = top.iter().flat_map(|top| include_folders(top)).collect();
    let listed = answer
        .lines()
        .filter_map(|line| line.strip_prefix("#$ INCLUDES=").or(line.strip_prefix("#$ SYSTEM_INCLUDES=")));
    for words in listed.filter_map(|line| shell_words::split(line).ok()) {
        folders.extend(
            words.iter().filter_map(|word| word.strip_prefix("-I")).map(|folder| tidy(Path::new(folder))),
        );
    }
    // Debian's nvcc relies on the host compiler's own folder.
    if top.as_ref().is_some_and(|top| top.starts_with(search.environment.under_root("usr"))) {
        folders.push(search.environment.under_root("usr/include"));
    }
    let found = headers(&folders, version)?;
    let root = top.or_else(|| found.folder.parent().map(Path::to_path_buf)).unwrap_or_default();
    Ok((root, found))
}

/// Takes `.` and `..` out of a path as nvcc prints it (`…/bin/..`).
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                tidied.pop();
            }
            Component::CurDir => {}
            other => tidied.push(other),
        }
    }
    tidied
}

/// The folder with the CUDA runtime library, beside the headers first.
fn library(root: &Path, include: &Path) -> Option<PathBuf> {
    let beside = include.parent().unwrap_or(root);
    let system = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders =
        [beside.join("lib64"), beside.join("lib"), root.join("lib64"), root.join("lib"), root.join(system)];
    folders.into_iter().find(|folder| {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libcudart"))
    })
}
