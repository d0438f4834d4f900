//! One number about a place, with where it came from.

use serde::{Deserialize, Serialize};

use crate::{Producer, Span};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Registers a thread.
    Registers,
    /// Static shared memory a block.
    SharedMemory,
    /// Stack a thread.
    Stack,
    /// Spilled stores a thread, in bytes.
    SpillStores,
    /// Spilled loads a thread, in bytes.
    SpillLoads,
    /// Barriers a block.
    Barriers,
    /// Constant memory of the kernel.
    ConstantMemory,
    /// Warps that can be resident, over the most that the multiprocessor holds.
    TheoreticalOccupancy,
    /// The time of the GPU that a line causes: the sum of the durations of its kernels.
    GpuTime,
    /// A line's part of the samples that a profiler took of its kernel's warps.
    SampleShare,
    /// How many times what they need the accesses of a line ask for, where nobody sampled its kernel.
    AccessExcess,
}

/// The unit of a [`Quantity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain number.
    Count,
    /// Bytes.
    Bytes,
    /// A share from 0 to 1.
    Ratio,
    /// Seconds.
    Seconds,
}

impl Quantity {
    /// The unit its values are in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Registers | Self::Barriers | Self::AccessExcess => Unit::Count,
            Self::TheoreticalOccupancy | Self::SampleShare => Unit::Ratio,
            Self::GpuTime => Unit::Seconds,
            Self::SharedMemory
            | Self::Stack
            | Self::SpillStores
            | Self::SpillLoads
            | Self::ConstantMemory => Unit::Bytes,
        }
    }

    /// Whether it is about a single line, and not about a kernel as a whole.
    pub fn is_of_a_line(self) -> bool {
        matches!(self, Self::GpuTime | Self::SampleShare | Self::AccessExcess)
    }

    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Registers => "registers a thread",
            Self::SharedMemory => "static shared memory a block",
            Self::Stack => "stack a thread",
            Self::SpillStores => "spill stores a thread",
            Self::SpillLoads => "spill loads a thread",
            Self::Barriers => "barriers",
            Self::ConstantMemory => "constant memory",
            Self::TheoreticalOccupancy => "theoretical occupancy",
            Self::GpuTime => "time of the GPU",
            Self::SampleShare => "of the kernel's samples",
            Self::AccessExcess => "times what its accesses need",
        }
    }
}

/// Where a number came from. No number is shown without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Who measured.
    pub producer: Producer,
    /// The tool and its version, as a person would name it: `ptxas 13.5`.
    pub tool: String,
    /// What it holds for: `sm_90`, or a device's name.
    pub device: String,
    /// How many runs stand behind it; 1 for what a compiler says.
    pub runs: u32,
}

/// One number about a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What.
    pub quantity: Quantity,
    /// How much, in the quantity's unit.
    pub value: f64,
    /// The kernel it is about, as a person would write it: `sgemm<16>`.
    pub subject: String,
    /// Where, in bytes of the text it was measured on: the name of the kernel.
    pub span: Span,
    /// What limits it or what it was computed from: `limited by registers; block of 256`.
    pub note: Option<String>,
    /// Where it came from.
    pub provenance: Provenance,
}
