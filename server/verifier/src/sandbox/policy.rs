//! What a job needs of the machine, and what it may use of it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Memory of a job if nothing else is asked for, in bytes. PyTorch with a CUDA context takes 2 to 4 GiB of the host's.
pub const DEFAULT_MEMORY: u64 = 16 << 30;
/// Processes and threads of a job if nothing else is asked for: PyTorch starts several threads for each core.
pub const DEFAULT_TASKS: u64 = 4096;
/// Processor time of a job, over all its processes, if nothing else is asked for.
pub const DEFAULT_CPU: Duration = Duration::from_secs(1800);
/// Open files of one process if nothing else is asked for.
pub const DEFAULT_OPEN_FILES: u64 = 4096;

/// A program, what it may see, and what it may use.
///
/// It sees the system (programs, libraries, what the loader reads of `/etc`), read-only; what [`Policy::readable`] names, read-only;
/// and its scratch folder, which it may write. It gets no variable but those that [`Policy::env`] names, and `HOME`, `TMPDIR`,
/// `TMP`, `TEMP` (the scratch folder) and a plain `PATH` where none is named.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Policy {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) folder: Option<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) memory: u64,
    pub(super) tasks: u64,
    pub(super) cpu: Duration,
    pub(super) open_files: u64,
    pub(super) shared_memory: Option<u64>,
    pub(super) large_files: bool,
    pub(super) gpu: bool,
}

impl Policy {
    /// A program by its absolute path; its own file is readable.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            folder: None,
            readable: Vec::new(),
            environment: Vec::new(),
            memory: DEFAULT_MEMORY,
            tasks: DEFAULT_TASKS,
            cpu: DEFAULT_CPU,
            open_files: DEFAULT_OPEN_FILES,
            shared_memory: None,
            large_files: false,
            gpu: false,
        }
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// The folder it starts in: one that it can see. Without one: its scratch folder.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Lets it read a file, or a folder with all that is in it, besides the system: a Python prefix, a toolkit, sources.
    pub fn readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// Gives it one variable. A name that is given twice keeps the last value.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    /// How much memory all its processes may use together, in bytes. What a GPU holds does not count.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// How many processes and threads it may have at a time.
    pub fn tasks(mut self, count: u64) -> Self {
        self.tasks = count;
        self
    }

    /// How much processor time all its processes may take together; rounded up to seconds.
    pub fn cpu(mut self, time: Duration) -> Self {
        self.cpu = time;
        self
    }

    /// How many files one of its processes may have open.
    pub fn open_files(mut self, count: u64) -> Self {
        self.open_files = count;
        self
    }

    /// How much `/dev/shm` may hold, in bytes. Without this: half of the memory.
    pub fn shared_memory(mut self, bytes: u64) -> Self {
        self.shared_memory = Some(bytes);
        self
    }

    /// Lets it make files larger than its scratch folder may be; see [`stitch_toolchain::process::Program::large_files`].
    pub fn large_files(mut self) -> Self {
        self.large_files = true;
        self
    }

    /// Lets it use the GPUs.
    pub fn gpu(mut self) -> Self {
        self.gpu = true;
        self
    }

    /// What it may read besides the system: what was named, its own file, and where its driver lies.
    pub(super) fn all_readable(&self) -> impl Iterator<Item = &Path> {
        self.readable.iter().map(PathBuf::as_path).chain([self.program.as_path()])
    }

    /// The whole environment that it gets.
    pub(super) fn variables(&self, scratch: &Path) -> Vec<(OsString, OsString)> {
        let mut variables = self.environment.clone();
        for name in ["HOME", "TMPDIR", "TMP", "TEMP"] {
            variables.retain(|(known, _)| known != name);
            variables.push((name.into(), scratch.into()));
        }
        if !variables.iter().any(|(name, _)| name == "PATH") {
            variables.push(("PATH".into(), PLAIN_PATH.into()));
        }
        variables
    }
}

/// Where programs are looked up if nothing is said.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_what_it_is_given_and_its_own_home() {
        let policy = Policy::new("/bin/true").env("A", "1").env("HOME", "/root").env("A", "2");
        let mut variables = policy.variables(Path::new("/scratch"));
        variables.sort();
        let expected: Vec<(OsString, OsString)> = [
            ("A", "2"),
            ("HOME", "/scratch"),
            ("PATH", PLAIN_PATH),
            ("TEMP", "/scratch"),
            ("TMP", "/scratch"),
            ("TMPDIR", "/scratch"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        assert_eq!(variables, expected);
    }
}
