//! Exit statuses: the same five everywhere.

use std::process::ExitCode;

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

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(match status {
            Status::Good => 0,
            Status::Bad => 1,
            Status::Usage => 2,
            Status::Missing => 3,
            Status::Interrupted => interrupt::exit_status(),
            Status::ReaderGone => 141,
        })
    }
}
