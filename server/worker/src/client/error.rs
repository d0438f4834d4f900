//! Why another machine did not do what was ordered, said so that a person knows what to do.

use std::io;

use crate::protocol::Kind;

/// Why nothing came of an order.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The command can't be started.
    #[error("`{program}` could not be started, which `worker.command` names: {source}. {}", advice(source))]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// It ended before a worker said hello.
    #[error("`{command}` {how} before a worker answered.{}", words(said))]
    Ended {
        /// The command.
        command: String,
        /// How: `ended with exit status 255`.
        how: String,
        /// Its last words.
        said: String,
    },
    /// It printed, but no worker answered.
    #[error(
        "`{command}` leads to no worker: it printed {printed} that are no message of one, and begin with {beginning:?}. See what it prints by running it by hand; it must print nothing but what `stitchcuda worker` says.{}",
        words(said)
    )]
    NoWorker {
        /// The command.
        command: String,
        /// How much: `70 lines`.
        printed: String,
        /// The first line.
        beginning: String,
        /// Its last words on standard error.
        said: String,
    },
    /// Nothing came for long.
    #[error("`{command}` did not answer within {seconds} s.{}", words(said))]
    Silent {
        /// The command.
        command: String,
        /// How long.
        seconds: u64,
        /// Its last words.
        said: String,
    },
    /// The two sides are of different versions.
    #[error("{0}")]
    Version(String),
    /// The worker can't do anything for this side.
    #[error("{0}")]
    Refused(String),
    /// The connection was lost in the middle of a job.
    #[error("The connection to {machine} was lost: {why}.{}", words(said))]
    Lost {
        /// The machine.
        machine: String,
        /// How.
        why: Lost,
        /// Its last words.
        said: String,
    },
    /// It was lost again.
    #[error("{first} It was made once more, and lost again: {second}")]
    Twice {
        /// The first time.
        first: Box<WorkerError>,
        /// The second time.
        second: Box<WorkerError>,
    },
    /// It was lost, and could not be made again.
    #[error("{lost} It could not be made again: {error}")]
    NotAgain {
        /// How it was lost.
        lost: Box<WorkerError>,
        /// Why it could not.
        error: Box<WorkerError>,
    },
    /// The machine did what was ordered as far as it could.
    #[error("On {machine}: {message}")]
    Failed {
        /// The machine.
        machine: String,
        /// Of what kind it is.
        kind: Kind,
        /// In sentences.
        message: String,
    },
    /// A file that the job is about can't be read here.
    #[error("{path}, which the job needs on the other machine, could not be read: {source}.")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// What is ordered can't be written as JSON.
    #[error(
        "What is to be done on the other machine can't be told to it: {0}. Names of files and folders must be UTF-8."
    )]
    Unspeakable(serde_json::Error),
    /// The job was cancelled.
    #[error("The job was cancelled.")]
    Cancelled,
    /// A bug of ours.
    #[error("The order failed inside StitchCUDA ({0}). This is a bug; please report it.")]
    Internal(String),
}

/// How a connection was lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The command ended.
    #[error("`{command}` {how}")]
    Ended {
        /// The command.
        command: String,
        /// How.
        how: String,
    },
    /// Nothing was heard of it.
    #[error(
        "nothing was heard of the worker for {seconds} s, so it counts as stalled (`worker.patienceSeconds` says how long is waited)"
    )]
    Stalled {
        /// For how long, in seconds.
        seconds: u64,
    },
    /// Something else came through it.
    #[error("what came through it is no message ({beginning:?})")]
    Garbled {
        /// The beginning of that.
        beginning: String,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "Install it, or set `worker.command` (`device.command`) to another program."
        }
        _ => "Set `worker.command` (`device.command`) to another program.",
    }
}

fn words(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said if said.contains("stitchcuda: command not found")
            || said.contains("stitchcuda: not found")
            || said.contains("\"stitchcuda\": executable file not found") =>
        {
            format!(
                " It said: {said} StitchCUDA must be installed there, or be named by its path: [\"ssh\", \"gpu01\", \"/home/me/bin/stitchcuda\", \"worker\"]."
            )
        }
        said if said.contains("unrecognized subcommand 'worker'") => {
            format!(" It said: {said} StitchCUDA there is of a version that has no worker yet: update it.")
        }
        said => format!(" It said: {said}"),
    }
}

impl WorkerError {
    /// Of what kind it is, which says what the command line ends with.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Start { .. }
            | Self::Ended { .. }
            | Self::NoWorker { .. }
            | Self::Silent { .. }
            | Self::Version(_)
            | Self::Refused(_) => Kind::Missing,
            Self::Lost { .. } | Self::Twice { .. } | Self::NotAgain { .. } | Self::Internal(_) => Kind::Bad,
            Self::Failed { kind, .. } => *kind,
            Self::File { .. } | Self::Unspeakable(_) => Kind::Usage,
            Self::Cancelled => Kind::Cancelled,
        }
    }
}
