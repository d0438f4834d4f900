//! Reads a file that a profiler wrote elsewhere. Reports that only NVIDIA's tools can read go through those, where they are installed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use stitch_profiles::ncu::{self as pages, NcuError};
use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{Profile, Way};
use stitch_profiles::python::Workspace;
use stitch_profiles::read_error::ReadError;
use stitch_profiles::sanitizer::{self, SanitizerError};
use stitch_profiles::sniff::{FileKind, HEAD, sniff, text_of};
use stitch_toolchain::discovery::Profilers;
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::{Refused, ncu, nsys, peaks};

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It can't be read.
    #[error("{} can't be read: {source}.", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a pipe, a socket or a device, and a file is read more than once.
    #[error("{} is {what}, and an import reads its file more than once. Save what it gives to a file, and import that.", path.display())]
    NoFile {
        /// What was named.
        path: PathBuf,
        /// What it is: `a pipe`.
        what: &'static str,
    },
    /// No profiler wrote it.
    #[error(
        "{} is nothing that a profiler wrote. These can be read: `.ncu-rep`, `.nsys-rep`, SQLite of `nsys export`, CSV of `ncu --csv` (raw, details, source), traces of PyTorch's profiler, and the text or XML of compute-sanitizer.",
        path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// nvprof wrote it.
    #[error(
        "{} is of nvprof, which NVIDIA has given up and which is not read here. Record the program with `nsys profile` or `ncu`.",
        path.display()
    )]
    Nvprof {
        /// The file.
        path: PathBuf,
    },
    /// A tool is needed that is not here.
    #[error("{} can only be read by {tool}, which was not found. Install {product} or put it on PATH; or, where it was made, run `{instead}` and import what that writes.", path.display())]
    NoTool {
        /// The file.
        path: PathBuf,
        /// The tool.
        tool: &'static str,
        /// What brings it.
        product: &'static str,
        /// What can be done elsewhere.
        instead: String,
    },
    /// The tool that reads it says that it is no report, in a sentence.
    #[error("{0} It is damaged, or a newer version wrote it.")]
    Damaged(String),
    /// The tool that could read it does not work here, or is too old for it, in a sentence.
    #[error("{0}")]
    Tool(String),
    /// Its content can't be read.
    #[error("{0}.")]
    Content(#[from] ReadError),
    /// Nothing is in its pages.
    #[error("{0}")]
    Pages(#[from] NcuError),
    /// Nothing in it is compute-sanitizer's.
    #[error("{0}")]
    Sanitizer(#[from] SanitizerError),
    /// The job was cancelled.
    #[error("The import was cancelled.")]
    Cancelled,
}

/// What nvprof says first, after the number of the process.
const NVPROF: &str = "== NVPROF is profiling process";

impl From<Refused> for ImportError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Because { why, .. }
                if [ncu::UNREADABLE, nsys::UNREADABLE].iter().any(|said| why.contains(said)) =>
            {
                Self::Damaged(why)
            }
            Refused::Because { why, .. } => Self::Tool(why),
            Refused::Cancelled => Self::Cancelled,
        }
    }
}

/// A reader that fails once the job is cancelled, since gigabytes take minutes to read.
struct Watched {
    file: File,
    cancel: CancellationToken,
}

impl Read for Watched {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.cancel.is_cancelled() {
            // `Interrupted` would be tried again.
            true => Err(io::Error::other("cancelled")),
            false => self.file.read(into),
        }
    }
}

/// Reads a file of any profiler, and says what it is. Lines of Python are told of files of the workspace.
///
/// # Errors
/// It can't be read, no profiler wrote it, or the tool that can read it is missing; the job was cancelled.
pub async fn import(
    path: &Path,
    tools: &Profilers,
    workspace: &Workspace,
    cancel: &CancellationToken,
) -> Result<(Profile, FileKind), ImportError> {
    let imported = read(path, tools, workspace, cancel).await;
    // Of a trace that could not be read on, what came before would be told.
    if cancel.is_cancelled() { Err(ImportError::Cancelled) } else { imported }
}

/// What is named where it is no file: opening a pipe would wait for who writes into it.
fn no_file(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = path.metadata()?.file_type();
    Ok(match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => return Err(io::Error::other("it is a folder; name a file in it")),
        kind if kind.is_fifo() => Some("a pipe"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    })
}

async fn read(
    path: &Path,
    tools: &Profilers,
    workspace: &Workspace,
    cancel: &CancellationToken,
) -> Result<(Profile, FileKind), ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    if let Some(what) = no_file(path).map_err(io)? {
        return Err(ImportError::NoFile { path: path.to_owned(), what });
    }
    let mut head = Vec::new();
    File::open(path).map_err(io)?.take(HEAD as u64).read_to_end(&mut head).map_err(io)?;
    let kind = sniff(&head).ok_or_else(|| match text_of(&head).contains(NVPROF) {
        true => ImportError::Nvprof { path: path.to_owned() },
        false => ImportError::Unknown { path: path.to_owned() },
    })?;
    let way = |by: &str| Way { by: format!("a file of {by}"), ..Way::default() };
    let mut profile = Profile::new(path.display().to_string(), way(by(kind)));
    let watched = || Ok(Watched { file: File::open(path)?, cancel: cancel.clone() });
    let opened = || watched().map_err(io);
    match kind {
        FileKind::NcuReport => take_pages(&mut profile, printed(path, tools, cancel).await?),
        FileKind::NcuCsv => take_pages(&mut profile, pages::read(opened()?)?),
        FileKind::NsysReport => {
            let scratch = Scratch::new("import").map_err(io)?;
            let sqlite = exported(path, tools, &scratch, cancel).await?;
            take_system(&mut profile, stitch_profiles::nsys::read(&sqlite)?);
        }
        FileKind::Sqlite => take_system(&mut profile, stitch_profiles::nsys::read(path)?),
        FileKind::Trace => {
            let workspace = Workspace { from_elsewhere: true, ..workspace.clone() };
            let name = path.display().to_string();
            let mut open = || watched().map(|file| Box::new(file) as Box<dyn Read>);
            let (system, mut python) = stitch_profiles::python::read_from(&name, &workspace, &mut open)?;
            stitch_profiles::python::classify(&mut python, Some(&system), peaks::of_trace(&system));
            take_system(&mut profile, system);
            profile.notes.append(&mut python.notes);
            profile.python = Some(python);
        }
        FileKind::SanitizerXml | FileKind::SanitizerText => {
            let report = sanitizer::read(opened()?)?;
            if report.errors == Some(0) && report.defects.is_empty() {
                profile.notes.push(Note::new(NoteKind::Remark, "compute-sanitizer found no error."));
            }
            profile.defects = report.defects;
            profile.notes.extend(report.notes);
        }
    }
    Ok((profile, kind))
}

fn by(kind: FileKind) -> &'static str {
    match kind {
        FileKind::NcuReport | FileKind::NcuCsv => "Nsight Compute",
        FileKind::NsysReport | FileKind::Sqlite => "Nsight Systems",
        FileKind::Trace => "PyTorch's profiler",
        FileKind::SanitizerXml | FileKind::SanitizerText => "compute-sanitizer",
    }
}

fn take_pages(profile: &mut Profile, report: pages::Report) {
    profile.device = report.launches.iter().find_map(|launch| launch.shape.device_name.clone());
    profile.launches = report.launches;
    profile.notes.extend(report.notes);
}

fn take_system(profile: &mut Profile, mut system: stitch_profiles::system::System) {
    profile.device = system.busiest().and_then(|(device, _)| device.name.clone());
    profile.notes.append(&mut system.notes);
    profile.system = Some(system);
}

/// The pages of a report of Nsight Compute.
async fn printed(
    path: &Path,
    tools: &Profilers,
    cancel: &CancellationToken,
) -> Result<pages::Report, ImportError> {
    let tool = tools.ncu.as_deref().ok_or_else(|| ImportError::NoTool {
        path: path.to_owned(),
        tool: "ncu",
        product: "NVIDIA Nsight Compute",
        instead: format!("ncu --import {} --csv --page raw > raw.csv", path.display()),
    })?;
    Ok(ncu::read(tool, path, cancel).await?)
}

/// The SQLite file of a report of Nsight Systems.
async fn exported(
    path: &Path,
    tools: &Profilers,
    scratch: &Scratch,
    cancel: &CancellationToken,
) -> Result<PathBuf, ImportError> {
    let tool = tools.nsys.as_deref().ok_or_else(|| ImportError::NoTool {
        path: path.to_owned(),
        tool: "nsys",
        product: "NVIDIA Nsight Systems",
        instead: format!("nsys export --type sqlite {}", path.display()),
    })?;
    Ok(nsys::export(tool, path, &scratch.path().join("report.sqlite"), cancel).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_file(path: &Path, cancel: &CancellationToken) -> Result<(Profile, FileKind), ImportError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(import(path, &Profilers::default(), &Workspace::default(), cancel))
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let error = |path| read_file(path, &CancellationToken::new()).unwrap_err().to_string();
        for (path, what) in [(&*pipe, "a pipe"), (Path::new("/dev/zero"), "a device")] {
            let error = error(path);
            assert!(error.contains(&format!("is {what}")) && error.contains("Save what it gives"), "{error}");
        }
        assert!(error(folder.path()).ends_with("can't be read: it is a folder; name a file in it."));
    }

    #[test]
    fn a_cancelled_import_reads_no_further() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("raw.csv", "\"ID\",\"Process ID\",\"Kernel Name\"\n"),
            ("san.txt", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"),
            ("trace.json", "{\"traceEvents\": []}"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let cancel = CancellationToken::new();
            let mut watched = Watched { file: File::open(&path).unwrap(), cancel: cancel.clone() };
            assert_eq!(watched.read(&mut [0; 4]).unwrap(), 4);
            cancel.cancel();
            assert!(watched.read(&mut [0; 4]).is_err(), "{name}");
            assert!(matches!(read_file(&path, &cancel), Err(ImportError::Cancelled)), "{name}");
        }
    }
}
