//! Exit statuses: the same five everywhere.

use std::process::ExitCode;

use stitch_session::jobs::JobError;
use stitch_verifier::compile::Lack;

use crate::interrupt;

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done, and the answer is good.
    Good,
    /// Done, and the answer is bad: errors were found.
    Bad,
    /// Wrong usage or input.
    Usage,
    /// Something needed is missing; the message says how to get it.
    Missing,
    /// Interrupted by the user or the system.
    Interrupted,
    /// The reader of our output went away, as `head` does. What a shell shows for SIGPIPE.
    ReaderGone,
}

impl Status {
    /// How a command ends whose job came to nothing; says why.
    pub fn of_job(error: &JobError) -> Self {
        match error {
            JobError::Cancelled => Self::Interrupted,
            JobError::Failed(message) => {
                anstream::eprintln!("error: {message}");
                Self::Bad
            }
        }
    }

    /// What a command ends with of which one part ended so and another so: the worse. Whoever asked for what can't be done, or
    /// got no answer, is not told that the answer is merely bad.
    pub fn worse(self, other: Self) -> Self {
        let rank = |status: Self| match status {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Missing => 2,
            Self::Usage => 3,
            Self::Interrupted => 4,
            Self::ReaderGone => 5,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// The number that the system gets.
    pub fn number(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Usage => 2,
            Self::Missing => 3,
            Self::Interrupted => interrupt::exit_status(),
            Self::ReaderGone => 141,
        }
    }
}

impl From<Lack> for Status {
    fn from(lack: Lack) -> Self {
        match lack {
            Lack::Nothing => Self::Good,
            Lack::Tool => Self::Missing,
            Lack::Input => Self::Usage,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.number())
    }
}
