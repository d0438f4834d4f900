//! Why a profile could not be read at all.

use std::io;

/// A profile that could not be read. What could be read in part is no error but has notes, unless a part of a sum would be taken for the
/// whole.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file can't be opened or read.
    #[error("can't read {file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing is in it.
    #[error("{file} is empty. The profiler did not finish writing it; profile again")]
    Empty {
        /// The file.
        file: String,
    },
    /// It is something else.
    #[error("{file} is not {expected}: {found}. {advice}")]
    NotThis {
        /// The file.
        file: String,
        /// What was expected.
        expected: &'static str,
        /// What it is.
        found: String,
        /// What to do.
        advice: &'static str,
    },
    /// Part of it is missing or damaged, so that its sums would be wrong.
    #[error("{file} is damaged: {what}. {advice}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        what: String,
        /// What to do.
        advice: &'static str,
    },
}
