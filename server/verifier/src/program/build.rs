//! Builds a program with nvcc, in a scratch folder.
//!
//! The flags are the project's, as for a compile on save; only those that say for which device and against which runtime are ours. For a
//! simulated device the program holds PTX of its compute capability, uncompressed and with lines, and is linked against the
//! simulator's runtime.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stitch_analysis::Language;
use stitch_session::config::Config;
use stitch_session::folders::Folders;
use stitch_toolchain::discovery::Toolkit;
use stitch_toolchain::process::{Program as Process, ProgramError, Scratch};
use tokio_util::sync::CancellationToken;

use super::copy::CopyError;
use super::device::RunDevice;
use super::own;
use super::target::Program;
use crate::compile::{CompileRequest, Trouble, command, missing, plan};
use crate::simulation;

/// How programs are built.
#[derive(Clone, Debug)]
pub struct Builder {
    /// For which device.
    pub device: RunDevice,
    /// With which toolkit, unless a compile database names another.
    pub toolkit: Toolkit,
    /// What is configured.
    pub config: Arc<Config>,
    /// The folder that databases and headers are looked for in.
    pub workspace: Option<PathBuf>,
    /// The folder of the simulator's runtime library, for a simulated device.
    pub runtime: Option<PathBuf>,
    /// The file that sources which lie elsewhere are versions of: they get its flags, and find the headers beside it.
    pub origin: Option<PathBuf>,
    /// How long one build may take.
    pub time_limit: Duration,
}

/// How a built program is started.
#[derive(Clone, Debug)]
pub(super) enum Start {
    /// By its file.
    Executable(PathBuf),
    /// By a command for a shell, in its folder.
    Shell { command: String, folder: PathBuf },
}

/// A program that is built. Its folder is gone when the value is dropped.
#[derive(Clone, Debug)]
pub struct Built {
    pub(super) scratch: Arc<Scratch>,
    /// What was built.
    pub program: Program,
    pub(super) start: Start,
    /// The command that built it, as one could type it.
    pub command: String,
    /// What was added or assumed.
    pub notes: Vec<String>,
    /// The files that were read, as the compiler names them. `None` where nobody asked, or it does not say.
    pub read: Option<Vec<String>>,
}

/// Why a program was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The compiler, the linker or the build command refused.
    #[error("{}\nThe command was: {command}", said(text))]
    Compiler {
        /// All that it said.
        text: String,
        /// The command.
        command: String,
    },
    /// It did not run to its end.
    #[error("{source} The command was: {command}")]
    Program {
        /// The command.
        command: String,
        /// Why.
        source: ProgramError,
    },
    /// The flags of the project can't be known.
    #[error("{0}.")]
    Flags(#[from] Trouble),
    /// The folder could not be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A file of the target lies outside of what is copied.
    #[error("{} lies outside of {}, the folder that is copied to build; set `cwd` of the target to a folder that holds both.", file.display(), folder.display())]
    Outside {
        /// The file.
        file: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A file can't be read.
    #[error("{} could not be read: {source}.", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no place to build in.
    #[error("There is no folder to build in: {source}. Set STITCHCUDA_CACHE_DIR to one that can be written.")]
    Scratch {
        /// What the system said.
        source: io::Error,
    },
    /// The job was cancelled.
    #[error("The build was cancelled.")]
    Cancelled,
    /// A bug of ours.
    #[error("The build failed inside StitchCUDA ({reason}). This is a bug; please report it.")]
    Internal {
        /// What happened.
        reason: String,
    },
}

/// Lines of a compiler's output that tell what is wrong.
const MOST_LINES: usize = 6;

/// The first errors of what a compiler said, or else its last words.
pub(crate) fn said(text: &str) -> String {
    if text.contains("undefined reference to `main'") {
        // What the linker says of it names object files that nobody knows.
        return "The file has no `main`. Name the kernel, and a harness is made for it: `FILE.cu::KERNEL`."
            .to_owned();
    }
    let tells = |line: &&str| {
        ["error", "fatal", "undefined reference", "multiple definition"]
            .iter()
            .any(|word| line.contains(word))
    };
    let mut lines: Vec<&str> = text.lines().filter(tells).take(MOST_LINES).collect();
    if lines.is_empty() {
        let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines = all[all.len().saturating_sub(MOST_LINES)..].to_vec();
    }
    if lines.is_empty() { "The build failed and said nothing.".to_owned() } else { lines.join("\n") }
}

/// Flags that are added before a build is left to fail.
const MOST_ADDITIONS: usize = 8;

/// Builds a program.
///
/// # Errors
/// It does not compile, or nothing could be compiled; the message says what was tried.
pub async fn build(
    builder: &Builder,
    program: &Program,
    cancel: &CancellationToken,
) -> Result<Built, BuildError> {
    build_and(builder, program, Listing::Nothing, cancel).await
}

/// Whether the compiler is asked what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// It is not.
    Nothing,
    /// It is, for a program of one source: nvcc lists what the last of several read.
    Files,
}

/// The flags that a program is compiled with, but for those of its device.
async fn flags_of(builder: &Builder, program: &Program) -> Result<plan::Plan, BuildError> {
    let Some(first) = program.sources.first().cloned() else {
        return Err(BuildError::Internal { reason: "a program without a source".to_owned() });
    };
    for source in &program.sources {
        Trouble::refuse_name(source)?;
    }
    let file = builder.origin.clone().unwrap_or_else(|| first.clone());
    let request = CompileRequest::new(&file, "", Language::Cuda, builder.toolkit.clone())
        .configured(&builder.config, builder.workspace.clone())
        .await;
    let planned = tokio::task::spawn_blocking(move || plan::plan(&request, &file))
        .await
        .map_err(|error| BuildError::Internal { reason: error.to_string() })??;
    planned.ok_or_else(|| BuildError::Internal { reason: "no flags for a source".to_owned() })
}

/// How a program would be compiled, and all flags that the first attempt would have.
///
/// # Errors
/// The flags of the project can't be known.
pub(crate) async fn planned(
    builder: &Builder,
    program: &Program,
) -> Result<(plan::Plan, Vec<String>), BuildError> {
    let plan = flags_of(builder, program).await?;
    let arguments = Flags::new(builder, program, &plan).arguments;
    Ok((plan, arguments))
}

/// Builds a program, and asks the compiler what it reads where `listing` says so.
///
/// # Errors
/// As [`build`].
pub(crate) async fn build_and(
    builder: &Builder,
    program: &Program,
    listing: Listing,
    cancel: &CancellationToken,
) -> Result<Built, BuildError> {
    if let Some(own) = &program.own {
        return own::build(builder, program, own, cancel).await;
    }
    let plan = flags_of(builder, program).await?;
    let mut flags = Flags::new(builder, program, &plan);
    let scratch = builder.scratch()?;
    let output = scratch.path().join("program");
    for _ in 0..=MOST_ADDITIONS {
        let process = builder.environment(Process::new(&plan.nvcc).args(&flags.arguments));
        let process = process.args(&program.sources).arg("-o").arg(&output);
        let command = process.command_line();
        let list = scratch.path().join("program.d");
        let process = match listing {
            Listing::Files if program.sources.len() == 1 => process.args(["-MD", "-MF"]).arg(&list),
            _ => process,
        };
        let process = process.current_dir(&plan.directory).scratch(&scratch).time_limit(builder.time_limit);
        let finished = process.run(cancel).await.map_err(|error| BuildError::of(error, &command))?;
        if finished.status.success() {
            let read = std::fs::read(&list).ok();
            let read = read.map(|bytes| command::dependencies(&String::from_utf8_lossy(&bytes)));
            let (scratch, notes) = (Arc::new(scratch), flags.notes);
            return Ok(Built {
                read,
                scratch,
                program: program.clone(),
                start: Start::Executable(output),
                command,
                notes,
            });
        }
        let text = format!("{}{}", finished.stdout_text(), finished.stderr_text());
        if plan.from_database || !flags.add_what_lacks(builder, program, &text).await {
            return Err(BuildError::Compiler { text, command });
        }
    }
    Err(BuildError::Internal { reason: "flags were added without end".to_owned() })
}

/// The flags of one build.
struct Flags {
    arguments: Vec<String>,
    notes: Vec<String>,
}

impl Flags {
    fn new(builder: &Builder, program: &Program, plan: &plan::Plan) -> Self {
        let mut arguments = command::without_architecture(&plan.arguments);
        if !plan.from_database {
            // Checks on the host are part of many programs, and slow unoptimised.
            arguments.insert(0, "-O3".to_owned());
        }
        if program.sources.len() > 1 && !plan.is_relocatable() {
            arguments.push("-rdc=true".to_owned());
        }
        let of_headers =
            program.sources.iter().all(|file| file.extension().is_some_and(|ending| ending != "cu"));
        if of_headers {
            arguments.extend(["-x".to_owned(), "cu".to_owned()]);
        }
        let elsewhere =
            |folder: &&std::path::Path| program.sources.iter().any(|file| file.parent() != Some(folder));
        if let Some(folder) = builder.origin.as_deref().and_then(std::path::Path::parent).filter(elsewhere) {
            arguments.push(format!("-I{}", folder.display()));
        }
        arguments.extend(builder.device_flags());
        let kept = |note: &&String| !note.contains("was assumed");
        Self { arguments, notes: plan.notes.iter().filter(kept).cloned().collect() }
    }

    /// Adds what a failed build lacked; whether that is known.
    async fn add_what_lacks(&mut self, builder: &Builder, program: &Program, text: &str) -> bool {
        let relocatable = self.arguments.iter().any(|flag| flag.starts_with("-rdc"));
        if missing::needs_linking(text) && !relocatable {
            self.arguments.push("-rdc=true".to_owned());
            self.notes.push("the code launches kernels from kernels, so `-rdc=true` was added".to_owned());
            return true;
        }
        let (Some(header), Some(workspace), Some(unit)) =
            (missing::header(text), builder.workspace.clone(), program.sources.first().cloned())
        else {
            return false;
        };
        let name = header.clone();
        // Beside the program's own files first: a candidate may lie elsewhere.
        let folder = program.folder.join("x.cu");
        let found = tokio::task::spawn_blocking(move || {
            missing::folder_of(&name, &folder, &workspace)
                .or_else(|| missing::folder_of(&name, &unit, &workspace))
        });
        let Ok(Some(folder)) = found.await else { return false };
        let flag = format!("-I{}", folder.display());
        if self.arguments.contains(&flag) {
            return false;
        }
        self.arguments.push(flag);
        self.notes.push(format!(
            "{header} was found in {}, which was added to the include folders",
            folder.display()
        ));
        true
    }
}

impl Built {
    /// The folder that it lies in, which goes with it.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.scratch.path()
    }

    /// The file that is started; `None` of a person's own build.
    pub(crate) fn executable(&self) -> Option<&std::path::Path> {
        match &self.start {
            Start::Executable(path) => Some(path),
            Start::Shell { .. } => None,
        }
    }

    /// A program that something else has built.
    #[cfg(test)]
    pub(crate) fn of_executable(scratch: Scratch, program: Program, path: PathBuf) -> Self {
        let (scratch, start) = (Arc::new(scratch), Start::Executable(path));
        Self { scratch, program, start, command: String::new(), notes: Vec::new(), read: None }
    }

    /// A new folder beside the program.
    ///
    /// # Errors
    /// The folder that could not be made, and why.
    pub fn new_folder(&self, prefix: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let path = self.scratch.path().join(format!("{prefix}-{}", FOLDERS.fetch_add(1, Ordering::Relaxed)));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err((path, source)),
        }
    }
}

impl Builder {
    /// How programs are built for `device` with `toolkit`; for a simulated device its runtime library is made first, once a cache.
    ///
    /// # Errors
    /// That library can't be made; the message says what to do.
    pub async fn prepare(
        device: RunDevice,
        toolkit: Toolkit,
        config: Arc<Config>,
        workspace: Option<PathBuf>,
    ) -> Result<Self, String> {
        let runtime = match &device {
            RunDevice::Simulator(_) => {
                let cache = Folders::find().cache;
                let cache = cache.ok_or("No folder for a cache is known; set STITCHCUDA_CACHE_DIR.")?;
                let major = toolkit.version.major;
                let make = move || simulation::runtime_library(&cache.join("simulator"), major);
                let made = tokio::task::spawn_blocking(make).await.map_err(|error| error.to_string())?;
                Some(made.map_err(|error| format!("{error:#}"))?)
            }
            RunDevice::Cuda { .. } => None,
        };
        let time_limit = Duration::from_secs(config.compile.time_limit_seconds.into());
        Ok(Self { device, toolkit, config, workspace, runtime, origin: None, time_limit })
    }

    pub(super) fn scratch(&self) -> Result<Scratch, BuildError> {
        Scratch::new("program").map_err(|source| BuildError::Scratch { source })
    }

    /// Flags for the device and its runtime.
    fn device_flags(&self) -> Vec<String> {
        let architecture = self.device.architecture();
        let number = architecture.real().trim_start_matches("sm_").to_owned();
        let code = match &self.device {
            RunDevice::Cuda { .. } => format!("arch=compute_{number},code=[sm_{number},compute_{number}]"),
            RunDevice::Simulator(_) => format!("arch=compute_{number},code=compute_{number}"),
        };
        let mut flags = vec!["-lineinfo".to_owned(), "-gencode".to_owned(), code];
        if let (RunDevice::Simulator(_), Some(runtime)) = (&self.device, &self.runtime) {
            let link = ["-cudart".to_owned(), "shared".to_owned(), "--no-compress".to_owned()];
            flags.extend(link);
            flags.push(format!("-L{}", runtime.display()));
        }
        flags
    }

    /// What a build finds in its environment: the toolkit's own programs first.
    pub(super) fn environment(&self, process: Process) -> Process {
        let bin = self.toolkit.nvcc.parent().map(PathBuf::from).unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).unwrap_or(path);
        process.env("PATH", path).env("CUDA_HOME", &self.toolkit.root).env("NVCC", &self.toolkit.nvcc)
    }

    /// What a person's own build finds besides: for the simulator, flags that nvcc adds to its own.
    pub(super) fn own_environment(&self, process: Process) -> Process {
        let process = self.environment(process);
        match self.device {
            RunDevice::Cuda { .. } => process,
            RunDevice::Simulator(_) => process.env("NVCC_APPEND_FLAGS", appended(&self.device_flags())),
        }
    }
}

/// Flags as nvcc reads them from its environment: apart at blanks, with none of a shell's quotes but double ones.
fn appended(flags: &[String]) -> String {
    let quoted = |flag: &String| if flag.contains(' ') { format!("\"{flag}\"") } else { flag.clone() };
    flags.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_errors_are_said_and_what_to_do() {
        let text = "a.cu(3): warning #1: x\na.cu(5): error: y\n\n1 error detected\n";
        assert_eq!(said(text), "a.cu(5): error: y\n1 error detected");
        assert_eq!(said("make: nothing\n\n"), "make: nothing");
        assert!(said("").contains("said nothing"));
        let linker = "/usr/bin/ld: crt1.o: in function `_start':\n(.text+0x17): undefined reference to `main'\ncollect2: error: ld returned 1\n";
        assert!(
            said(linker).starts_with("The file has no `main`") && said(linker).contains("FILE.cu::KERNEL")
        );
    }
}
