//! What a profiler recorded, in one form for all of them. Readers make these, in the order of their starts; the [`Sweep`] adds them up.
//!
//! Times are nanoseconds from any origin, the same for all events of one profile.
//!
//! [`Sweep`]: super::sweep::Sweep

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::CallClass;
use super::names::NameId;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Something that ran on a device.
    Device(DeviceEvent),
    /// A call of the CUDA runtime or driver.
    Call(Call),
    /// A range that the program marked (NVTX, `record_function`).
    Range(Range),
}

impl Event {
    /// When it began.
    pub fn start(&self) -> i64 {
        match self {
            Self::Device(event) => event.start,
            Self::Call(call) => call.start,
            Self::Range(range) => range.start,
        }
    }
}

/// Something that ran on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceEvent {
    /// When it began.
    pub start: i64,
    /// When it ended.
    pub end: i64,
    /// The device, as CUDA numbers them.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// The process, and the number that the profiler gave to the call that caused this.
    pub cause: Correlation,
    /// What ran.
    pub work: Work,
}

/// A number that a call and what it caused on a device have in common; it is unique in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Correlation {
    /// The process, as the profiler names it.
    pub process: u64,
    /// The number; 0 where there is none.
    pub number: u64,
}

/// What ran on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// A kernel.
    Kernel {
        /// Its name, demangled where the profiler did so.
        name: NameId,
        /// How it was launched.
        launch: Launch,
    },
    /// A copy.
    Copy {
        /// From what to what.
        route: Route,
        /// How much; `None` where it was not recorded.
        bytes: Option<u64>,
    },
    /// Memory set to a value.
    Set {
        /// How much; `None` where it was not recorded.
        bytes: Option<u64>,
    },
    /// A whole CUDA graph, recorded as one: its kernels are not known.
    Graph {
        /// A name made from the graph's number.
        name: NameId,
    },
}

/// How a kernel was launched. Zeros are what a profiler did not record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// Blocks of the grid in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory of a block, static and dynamic, in bytes.
    pub shared_bytes: u32,
    /// Whether it was a node of a CUDA graph.
    pub graph: bool,
}

/// The way of a copy.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Between host and device.
    pub direction: Direction,
    /// The memory that it was read from.
    pub from: Memory,
    /// The memory that it was written to.
    pub to: Memory,
}

impl Route {
    /// Whether the host's side is pageable memory, which the driver copies through a buffer of its own.
    pub fn is_pageable(self) -> bool {
        self.from == Memory::Pageable || self.to == Memory::Pageable
    }
}

/// The direction of a copy.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// From the host to a device.
    HostToDevice,
    /// From a device to the host.
    DeviceToHost,
    /// Within a device.
    DeviceToDevice,
    /// From one device to another.
    PeerToPeer,
    /// Within the host's memory.
    HostToHost,
    /// Pages of managed memory, to a device.
    UnifiedToDevice,
    /// Pages of managed memory, to the host.
    UnifiedToHost,
    /// Pages of managed memory, from one device to another.
    UnifiedToPeer,
    /// Not recorded.
    #[default]
    Unknown,
}

impl Direction {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::HostToDevice => "host to device",
            Self::DeviceToHost => "device to host",
            Self::DeviceToDevice => "device to device",
            Self::PeerToPeer => "device to another device",
            Self::HostToHost => "host to host",
            Self::UnifiedToDevice => "managed memory to device",
            Self::UnifiedToHost => "managed memory to host",
            Self::UnifiedToPeer => "managed memory to another device",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it crosses the bus between host and device.
    pub fn crosses_the_bus(self) -> bool {
        matches!(self, Self::HostToDevice | Self::DeviceToHost | Self::UnifiedToDevice | Self::UnifiedToHost)
    }
}

/// Kinds of memory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Memory {
    /// The host's, as `malloc` gives it.
    Pageable,
    /// The host's, page-locked.
    Pinned,
    /// A device's.
    Device,
    /// An array of a device.
    Array,
    /// Managed.
    Managed,
    /// Not recorded.
    #[default]
    Unknown,
}

impl Memory {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Device => "device",
            Self::Array => "array",
            Self::Managed => "managed",
            Self::Unknown => "unknown",
        }
    }
}

/// A call of the CUDA runtime or driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// When it began.
    pub start: i64,
    /// When it returned.
    pub end: i64,
    /// The thread, as the profiler names it.
    pub thread: u64,
    /// The process, and the number that what it causes has in common with it.
    pub cause: Correlation,
    /// Its name without the suffix of its version.
    pub name: NameId,
    /// What kind of call it is.
    pub class: CallClass,
}

/// A range that the program marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// When it began.
    pub start: i64,
    /// When it ended.
    pub end: i64,
    /// The thread that began it.
    pub thread: u64,
    /// Its text.
    pub name: NameId,
}
