//! The processes in which a person's Python runs, and how they are asked.
//!
//! A *zygote* has imported torch and nothing else; it forks a *child* for each role of each verification, so that a candidate begins in a
//! process that has never seen other code, without paying for torch's import again. The parent speaks with each child over a socket of
//! its own: requests and replies are lines of JSON, tensors lie in sealed files in memory that the parent makes, reads and writes, and
//! never maps: what it has read, no process can change any more. A file is used for one request after the other, so that a child has it
//! mapped, and registered with CUDA, once. Whatever a child says is a claim: its sizes are checked before memory is taken, and a wrong one ends the child.
//!
//! A child that dies, hangs, floods its output or closes its socket is told apart by [`ChildError`], and the next one is forked from a zygote
//! that none of it has touched. What a child prints goes to a pipe of its own, of which the beginning and the end are kept.

mod assist;
mod channel;
mod child;
mod error;
mod filled;
mod ledger;
mod memory;
mod messages;
mod output;
mod python;
mod region;
mod runner;
mod setting;
mod slots;
mod zygote;

pub use assist::{Assistant, Doing, Extension, Unassisted};
pub use child::Child;
pub use error::{ChildError, Frame, HostError, How};
pub use filled::{Filled, FilledError, lay_out};
pub use memory::{Memory, give_back};
pub use messages::{
    Batch, Called, Calling, Drawn, Held, Load, Loaded, Made, NamedTensor, Observations, Profiling, Seconds,
    SeenTensor, Timed, Versions,
};
pub use python::{NoTorch, Python, find as find_python};
pub use setting::{LIFE, Needs, OUTPUT_LIMIT, Place, Running, Setting, Wrap, bare};
pub use zygote::Zygote;

/// What a process is for. The two are never in one process, nor forked from one zygote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Defines what is right: draws inputs, computes what is expected.
    Reference,
    /// Claims to do the same.
    Candidate,
}

impl Role {
    /// The word for it in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Candidate => "candidate",
        }
    }
}
