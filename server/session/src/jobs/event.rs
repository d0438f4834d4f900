//! What a job is called, and what can happen to it. These types are the wire format too: of the CLI's JSON lines and of what the
//! server tells an editor.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a job, unique in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub(super) u64);

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "job-{}", self.0)
    }
}

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// Compiles a file to learn what nvcc says of it.
    Compile,
    /// Checks a file with clang, between keystrokes.
    TypeCheck,
    /// Installs a private toolkit.
    Install,
    /// Runs a program to see what its kernels do.
    Profile,
    /// Decides whether a candidate does what its reference does.
    Verify,
    /// Writes what could be tried to make a target faster, and tries nothing.
    Plan,
    /// Makes a target faster: plan, attempts, verdicts.
    Optimize,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for its slot or its turn.
    Queued,
    /// It runs.
    Running,
    /// It ended well.
    Done,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It did what it was for.
    Done,
    /// It could not.
    Failed {
        /// Why, and what to do.
        message: String,
    },
    /// It was cancelled first.
    Cancelled,
}

impl Outcome {
    /// The state that it leaves a job in.
    pub fn state(&self) -> State {
        match self {
            Self::Done => State::Done,
            Self::Failed { .. } => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }
}

/// One thing that happened to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Happening {
    /// It has its slot and its turn, and runs.
    Started,
    /// It got further. A listener that is behind sees only the last one.
    Progress {
        /// What it does now.
        message: String,
        /// How much of it is done, from 0 to 1, where that can be known.
        fraction: Option<f32>,
    },
    /// It has something to say that stays true: which compiler it took.
    Note {
        /// What.
        message: String,
    },
    /// It ended. The last event of a job, and the only one of a job that was cancelled while it waited.
    Finished(Outcome),
}

/// Something that happened, with the job that it happened to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The job.
    pub job: JobId,
    /// What the job is for.
    pub kind: JobKind,
    /// What a person calls it.
    pub title: String,
    /// What happened.
    #[serde(flatten)]
    pub happening: Happening,
}

/// A job as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobInfo {
    /// Its id.
    pub id: JobId,
    /// What it is for.
    pub kind: JobKind,
    /// What a person calls it.
    pub title: String,
    /// How far it is.
    pub state: State,
    /// What it said last: its progress, or why it failed.
    pub message: Option<String>,
    /// How much is done, from 0 to 1, where that is known.
    pub fraction: Option<f32>,
    /// How long it has waited for its slot and its turn, in seconds of wall time.
    pub waited_seconds: f64,
    /// How long it has run, in seconds of wall time.
    pub ran_seconds: f64,
}
