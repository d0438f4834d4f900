//! What goes wrong with the processes, told apart.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::python::NoTorch;

/// Why there is no process to ask. This is trouble with the machine, never a fault of a candidate.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No interpreter has torch.
    #[error(transparent)]
    NoTorch(#[from] NoTorch),
    /// The system gave no socket, file or folder.
    #[error("{what}: {source}.")]
    System {
        /// What was tried, in words.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It could not be put into the sandbox, or not be started at all.
    #[error("{0}")]
    Sandbox(String),
    /// It started and did not get as far as asking for work.
    #[error("{} could not import torch for the {role}: {reason}", python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// What the process is for.
        role: &'static str,
        /// How it ended and what it said.
        reason: String,
    },
    /// No process could be forked from the one that has imported torch.
    #[error("no process could be had for the {role}: {reason}")]
    Fork {
        /// What the process is for.
        role: &'static str,
        /// What has become of the one to fork from, or what the system said.
        reason: String,
    },
    /// The job was cancelled.
    #[error("The verification was cancelled.")]
    Cancelled,
}

impl HostError {
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

/// One call in a Python traceback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
    /// The function, or `<module>`.
    #[serde(default)]
    pub function: String,
}

/// How a process ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It closed its channel and lived on, until it was ended.
    ClosedChannel,
    /// It printed more than this many bytes, and was ended.
    Flooded(u64),
    /// It wrote too much into its scratch folder, took its zygote down, or was ended from outside; in words.
    Other(String),
    /// It had been ended because of an earlier request.
    Earlier,
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Signalled(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(name) => write!(f, "was ended by {name}{}", meaning(name)),
                Err(_) => write!(f, "was ended by signal {signal}"),
            },
            Self::ClosedChannel => f.write_str("closed the descriptors over which it is asked"),
            Self::Flooded(bytes) => write!(f, "printed more than {} MB", bytes / 1_000_000),
            Self::Other(words) => f.write_str(words),
            Self::Earlier => f.write_str("had been ended because of an earlier request"),
        }
    }
}

fn meaning(signal: nix::sys::signal::Signal) -> &'static str {
    use nix::sys::signal::Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV};
    match signal {
        SIGSEGV => " (it used memory that is not its own)",
        SIGBUS => " (it used memory that is not there)",
        SIGABRT => " (it gave up)",
        SIGFPE => " (an integer was divided by zero)",
        SIGILL => " (it ran an instruction that this processor does not have)",
        SIGKILL => " (by itself, or by the system for want of memory)",
        _ => "",
    }
}

/// Why a request to a child has no answer. After all but `Python`, `OutOfMemory` and `TooLarge` the child is gone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChildError {
    /// Python raised an exception.
    #[error("{kind} while {stage}: {message}")]
    Python {
        /// What was being done: `importing`, `building`, `constructing`, `drawing inputs`, `calling`, …
        stage: String,
        /// The exception's type.
        kind: String,
        /// Its text. For an extension that did not build, all that the compiler said.
        message: String,
        /// Where, innermost last, without frames of the runner.
        frames: Vec<Frame>,
        /// The traceback as Python prints it.
        text: String,
    },
    /// There was not enough memory.
    #[error("out of memory on {device} while {stage}: {message}")]
    OutOfMemory {
        /// What was being done.
        stage: String,
        /// `cpu` or `cuda:0`.
        device: String,
        /// What torch said.
        message: String,
    },
    /// A kernel did something that a CUDA context does not survive: an illegal address, a failed assertion.
    #[error("the GPU reported an error while {stage}: {message}")]
    Gpu {
        /// What was being done.
        stage: String,
        /// What the driver said.
        message: String,
        /// Where it was noticed, which may be after the call that is at fault.
        frames: Vec<Frame>,
    },
    /// The process ended.
    #[error("the process {how}{}", said(words))]
    Ended {
        /// How.
        how: How,
        /// The end of what it had printed.
        words: String,
    },
    /// It took too long, and was ended.
    #[error("{stage} took longer than {} s", limit.as_secs_f64())]
    TimedOut {
        /// What was being done.
        stage: String,
        /// The limit.
        limit: Duration,
        /// The end of what it had printed.
        words: String,
    },
    /// What it said makes no sense: no JSON, a wrong number of tensors, a size that can't be.
    #[error("the process gave an answer that can't be: {what}")]
    Malformed {
        /// What is wrong with it.
        what: String,
    },
    /// What it returned is more than this machine has memory for.
    #[error("{what}")]
    TooLarge {
        /// How much it is, in bytes.
        bytes: u64,
        /// The same in words, and what is free.
        what: String,
    },
    /// The parent's own side failed: no memory, no descriptors.
    #[error("{what}")]
    Here {
        /// What was tried and what the system said.
        what: String,
    },
    /// The job was cancelled.
    #[error("The verification was cancelled.")]
    Cancelled,
}

fn said(words: &str) -> String {
    let words = words.trim();
    if words.is_empty() { String::new() } else { format!("; it printed last:\n{words}") }
}
