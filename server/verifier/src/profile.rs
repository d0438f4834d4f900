//! Has profilers look at a target, by the best of the ways that work here.
//!
//! What a profiler says explains code, and may accuse a candidate; it never acquits one: its numbers come out of the process that is judged.

pub mod cuda;
pub mod import;
mod kept;
pub mod ladder;
pub(crate) mod lower;
pub mod ncu;
pub mod nsys;
pub mod peaks;
pub mod remember;
pub mod simulated;
pub mod sources;
pub mod take;

/// Why a way to profile came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It does not work here, or did not this time.
    #[error("{why}")]
    Because {
        /// A sentence that says what to do where something can be done.
        why: String,
        /// Whether it will not work the next time either.
        lasting: bool,
    },
    /// The job was cancelled.
    #[error("The job was cancelled.")]
    Cancelled,
}

impl Refused {
    /// It did not work this time.
    fn once(why: impl Into<String>) -> Self {
        Self::Because { why: why.into(), lasting: false }
    }

    /// It does not work on this machine.
    fn always(why: impl Into<String>) -> Self {
        Self::Because { why: why.into(), lasting: true }
    }
}

/// The end of what a tool said, in one line that can be read.
fn cut(said: &str) -> String {
    const MOST: usize = 400;
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = text.char_indices().rev().nth(MOST - 1).map_or(0, |(at, _)| at);
    if from == 0 { text } else { format!("…{}", &text[from..]) }
}
