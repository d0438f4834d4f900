//! Why a job in the sandbox did not run to its end.

use std::path::PathBuf;

use stitch_toolchain::process::ProgramError;

/// A job that did not start, or was ended.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Started, or not started, as any program: the time limit, the scratch folder, a flood of output, cancelled.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It was asked for something that can't be.
    #[error("{} can't be run in the sandbox: {reason}.", program.display())]
    Policy {
        /// The program.
        program: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The sandbox could not be made.
    #[error("The sandbox for {} could not be made: {what}: {why}. `stitchcuda doctor` says what this machine allows.", program.display())]
    NotMade {
        /// The program.
        program: PathBuf,
        /// What was tried.
        what: String,
        /// What happened.
        why: String,
    },
    /// The program can't be executed in there.
    #[error("{} can't be executed in the sandbox: {source}. Check that it, its interpreter and its libraries lie in what the job may read.", program.display())]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It used too much memory.
    #[error("{} was ended: it used more than {} MB of memory. Raise the limit if it needs more.", program.display(), limit / 1_000_000)]
    Memory {
        /// The program.
        program: PathBuf,
        /// The limit in bytes.
        limit: u64,
        /// What was seen, in bytes.
        used: u64,
    },
    /// It started too many processes and threads.
    #[error("{} was ended: it had {count} processes and threads, and may have {limit}. Raise the limit if it needs more.", program.display())]
    Tasks {
        /// The program.
        program: PathBuf,
        /// The limit.
        limit: u64,
        /// What was seen.
        count: u64,
    },
    /// It took too much processor time.
    #[error("{} was ended: it took more than {limit} s of processor time. Raise the limit if it needs more.", program.display())]
    Cpu {
        /// The program.
        program: PathBuf,
        /// The limit in seconds.
        limit: u64,
    },
    /// It left no report: what should have written it was killed.
    #[error("{} was ended from outside (is the machine out of memory?). Run it again.{said}", program.display())]
    NoReport {
        /// The program.
        program: PathBuf,
        /// What its processes said.
        said: String,
    },
}
