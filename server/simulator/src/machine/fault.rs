//! Why a kernel stopped.

use serde::Serialize;

use crate::checks::{Defect, DefectKind};
use crate::code::SourcePlace;

/// What went wrong, as the runtime would name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// An access outside every allocation, or outside shared or local memory.
    IllegalAddress,
    /// An access at an address that is not a multiple of its size.
    Misaligned,
    /// `assert` failed.
    Assert,
    /// `trap`, `__trap()`.
    Trap,
    /// `call` through a pointer that is no function's address.
    InvalidPc,
    /// Calls nest deeper than the stack holds.
    StackOverflow,
    /// No thread of a block can go on: all wait for each other.
    BarrierDeadlock,
    /// An instruction, a function or a special register that the simulator does not have.
    Unsupported,
    /// The caller gave up.
    Cancelled,
    /// No such kernel, or a grid, block, cluster, parameter block or shared memory that it can't be launched with.
    InvalidLaunch,
}

/// Why a kernel stopped, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kernel}: {message}")]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The kernel's symbol (mangled).
    pub kernel: String,
    /// Index of the block.
    pub block: [u32; 3],
    /// Index of the thread in the block: the lowest of those that failed.
    pub thread: [u32; 3],
    /// Source line, where the PTX names it.
    pub place: Option<SourcePlace>,
    /// Line of the PTX text, from 1; 0 where the fault is not an instruction's.
    pub ptx_line: u32,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// What happened, in a sentence.
    pub message: String,
    /// The kind of defect, where the program is to blame.
    pub defect: Option<DefectKind>,
    /// The allocation or variable concerned, in words.
    pub object: Option<String>,
    /// Assertions that failed, where that is why it stopped: this one first.
    pub failed: Vec<Failed>,
}

impl Fault {
    /// The defect that stopped the kernel; none where that was no defect of its memory accesses, barriers or launch.
    pub(crate) fn defect(&self) -> Option<Defect> {
        Some(Defect {
            kind: self.defect?,
            kernel: self.kernel.clone(),
            block: self.block,
            thread: self.thread,
            place: self.place.clone(),
            ptx_line: self.ptx_line,
            address: self.address,
            message: self.message.clone(),
            object: self.object.clone(),
            other: None,
            times: 1,
        })
    }
}

impl FaultKind {
    /// What it is as a defect, where nothing more is known.
    pub(crate) fn defect(self) -> Option<DefectKind> {
        match self {
            Self::IllegalAddress => Some(DefectKind::OutOfBounds),
            Self::Misaligned => Some(DefectKind::Misaligned),
            Self::StackOverflow => Some(DefectKind::StackOverflow),
            Self::BarrierDeadlock => Some(DefectKind::DivergentBarrier),
            Self::InvalidLaunch => Some(DefectKind::InvalidLaunch),
            Self::Assert | Self::Trap | Self::InvalidPc | Self::Unsupported | Self::Cancelled => None,
        }
    }
}

/// An assertion that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Index of the block.
    pub block: [u32; 3],
    /// Index of the thread in the block.
    pub thread: [u32; 3],
    /// Place, function and condition.
    pub message: String,
}

/// What an instruction knows of its fault; block, thread and place are added where it is caught.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub kind: FaultKind,
    pub lane: usize,
    pub address: Option<u64>,
    pub message: String,
    pub defect: Option<DefectKind>,
    pub object: Option<String>,
}
