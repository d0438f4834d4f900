//! Runs outside programs so that they can't hurt: own process group, time limit, output cap, scratch folder, and an end.
//!
//! When [`Program::run`] returns, nothing of the program is left: not what it forked, not what left its process group,
//! not what ignores SIGTERM. The same holds within about two seconds if the future is dropped, or if this process is
//! killed by SIGKILL. `supervisor.rs` says how. What can escape: a descendant in an uninterruptible system call, for as
//! long as that lasts; one that kills its supervisor and has cleared its environment; anything on a unix other than
//! Linux that leaves the process group (`guard_unix.rs`).

mod capture;
mod error;
mod guard;
#[cfg(target_os = "linux")]
mod guard_linux;
#[cfg(not(target_os = "linux"))]
mod guard_unix;
#[cfg(target_os = "linux")]
mod leftovers;
mod run;
mod scratch;
#[cfg(target_os = "linux")]
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
pub use error::ProgramError;
pub use scratch::{DEFAULT_SCRATCH_LIMIT, Scratch, leave, sweep};

/// How long a program may run if nothing else is asked for.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(600);
/// How much is kept of each output stream, in bytes, if nothing else is asked for.
pub const DEFAULT_OUTPUT_LIMIT: usize = 4 << 20;

/// The variable that marks each process of a job, so that one that got away can be found.
pub const JOB_VARIABLE: &str = "STITCHCUDA_JOB";

/// A program to run, and the limits under which it runs.
///
/// It inherits the environment of this process without what looks like a secret, its standard input is empty, and
/// `TMPDIR` and the current folder are its scratch folder where it has one.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Environment,
    current_dir: Option<PathBuf>,
    time_limit: Duration,
    output_limit: usize,
    scratch: Option<(PathBuf, u64)>,
    large_files: bool,
    stdin: Option<Vec<u8>>,
}

impl Program {
    /// A program by its path, or by its name, which is then looked up on `PATH` of the environment it gets.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        Self {
            path: PathBuf::from(path.as_ref()),
            arguments: Vec::new(),
            environment: Environment::of_this_process().without_secrets(),
            current_dir: None,
            time_limit: DEFAULT_TIME_LIMIT,
            output_limit: DEFAULT_OUTPUT_LIMIT,
            scratch: None,
            large_files: false,
            stdin: None,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Gives it exactly this environment, secrets included if there are any.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets one variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment = self.environment.with(name.as_ref(), value.as_ref());
        self
    }

    /// Sets variables.
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        variables.into_iter().fold(self, |program, (name, value)| program.env(name, value))
    }

    /// Takes one variable out.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment = self.environment.without(name);
        self
    }

    /// The folder it runs in. Without one: its scratch folder, else this process' folder.
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.current_dir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// How long it may run. Then it is ended: SIGTERM, two seconds, SIGKILL.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// How much is kept of standard output, and of standard error, in bytes: half from the beginning, half from the end.
    /// The rest is read and thrown away; a program that prints twice as much, and over 1 MiB, is ended.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Lets it write in this folder. When the folder grows over its limit the program is ended, and on Linux no file
    /// that it writes grows over it.
    pub fn scratch(mut self, scratch: &Scratch) -> Self {
        self.scratch = Some((scratch.path().to_path_buf(), scratch.size_limit()));
        self
    }

    /// Lets it make files larger than its scratch folder may be: files in memory, or with holes, take no room there. What the
    /// folder holds is measured all the same.
    pub fn large_files(mut self) -> Self {
        self.large_files = true;
        self
    }

    /// What it reads on standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// The command as a person would type it, for messages and logs.
    pub fn command_line(&self) -> String {
        let words =
            std::iter::once(self.path.as_os_str()).chain(self.arguments.iter().map(OsString::as_os_str));
        let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        shell_words::join(words)
    }

    /// Runs it to its end, whatever its exit status is.
    ///
    /// # Errors
    /// If it can't be started, or was ended because of a limit or of `cancel`. Nothing of it is left in any case.
    pub async fn run(self, cancel: &CancellationToken) -> Result<Finished, ProgramError> {
        run::run(self, cancel).await
    }

    /// Runs it to its end on a thread of its own, for callers that are not async (and from inside a runtime, where it
    /// blocks the calling thread).
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_blocking(self) -> Result<Finished, ProgramError> {
        let path = self.path.clone();
        let start = |source| ProgramError::Start { program: path.clone(), source };
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(start)?;
                runtime.block_on(self.run(&CancellationToken::new()))
            });
            worker
                .join()
                .unwrap_or_else(|_| Err(start(std::io::Error::other("the thread that ran it panicked"))))
        })
    }
}

/// A program that ran to its end.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended; a failure is for the caller to judge.
    pub status: ExitStatus,
    /// What it printed on standard output.
    pub stdout: Vec<u8>,
    /// What it printed on standard error.
    pub stderr: Vec<u8>,
    /// Whether the middle of either was left out.
    pub truncated: bool,
    /// From start to end.
    pub wall: Duration,
}

impl Finished {
    /// Standard output as text; what is not UTF-8 is replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; what is not UTF-8 is replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// What a program printed until it was ended.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// What it printed on standard output.
    pub stdout: Vec<u8>,
    /// What it printed on standard error.
    pub stderr: Vec<u8>,
}
