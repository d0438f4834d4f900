//! Instructions to drafts, a file for each family of opcodes.

pub(super) mod alu;
pub(super) mod atomic;
pub(super) mod control;
pub(super) mod fragment;
pub(super) mod group;
pub(super) mod matrix;
pub(super) mod mbarrier;
pub(super) mod memory;
pub(super) mod moves;
pub(super) mod stack;
pub(super) mod tensor;
pub(super) mod together;
pub(super) mod video;

use crate::code::op::{Class, Handler};

/// An instruction that treats each lane alike: a handler, the classes of its destination and its sources, and what the
/// handler takes from [`Op::aux`](crate::code::Op::aux).
pub(crate) struct Lanes {
    pub run: Handler,
    /// Of the destination, then of the sources.
    pub classes: Vec<Class>,
    pub aux: u32,
}
