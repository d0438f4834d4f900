//! What a run was like: kernels, copies, faults, and what was missing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::engine::{Counted, Launch, Stopped};
use crate::device::Device;
use crate::memory::{Memory, OutOfMemory};

/// How a program ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It is still running.
    #[default]
    Running,
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was stopped at the time limit.
    TimeLimit,
    /// It was stopped since the caller gave up.
    Cancelled,
}

/// Launches of one kernel with one shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelReport {
    /// Mangled name.
    pub name: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// How often it was launched so.
    pub launches: u64,
    /// Estimated time of all launches in nanoseconds: a roofline, no measurement.
    pub estimated_ns: u64,
    /// Instructions times active threads, of all launches.
    pub thread_instructions: u64,
    /// Instructions of warps, of all launches.
    pub warp_instructions: u64,
    /// Bytes that global accesses moved, of all launches.
    pub global_bytes: u64,
    /// Counters of the first launch, by source line and instruction.
    pub lines: serde_json::Value,
}

/// Which way a copy went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Their names say it.
pub enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

/// Copies of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A kernel that stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultReport {
    /// Why and where.
    #[serde(flatten)]
    pub stopped: Stopped,
    /// The error that the program saw.
    pub error: &'static str,
    /// Blocks of the launch.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block_size: [u32; 3],
}

/// What is known after a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The simulated device.
    pub device: &'static str,
    /// How the program ended.
    pub ending: Ending,
    /// Processes that used the device.
    pub processes: u32,
    /// Which runtime the program was built for: 12, 13.
    pub runtime: Option<u32>,
    /// Kernels in the order of their first launches.
    pub kernels: Vec<KernelReport>,
    /// Copies.
    pub host_to_host: Copies,
    /// Copies.
    pub host_to_device: Copies,
    /// Copies.
    pub device_to_host: Copies,
    /// Copies.
    pub device_to_device: Copies,
    /// Kernels that stopped.
    pub faults: Vec<FaultReport>,
    /// Functions of the runtime that the program called and the simulator has not.
    pub missing: BTreeSet<String>,
    /// What a person should know, in sentences.
    pub notes: Vec<String>,
    /// Bytes that could be allocated.
    pub memory_limit: u64,
    /// The most bytes that were allocated at once.
    pub memory_peak: u64,
}

/// More kernels and shapes than this are counted together with the last.
const MOST_KERNELS: usize = 10_000;

impl Report {
    pub(super) fn new(device: &'static Device, memory: &Memory) -> Self {
        Self { device: device.name, memory_limit: memory.limit(), ..Self::default() }
    }

    /// Whether something was missing: the run is worth nothing then.
    #[must_use]
    pub fn lacks(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Adds a sentence, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn refused(&mut self, error: &OutOfMemory) {
        self.note(format!("an allocation failed: {error} on the simulated device"));
    }

    pub(super) fn copied(&mut self, direction: Direction, bytes: u64) {
        let copies = match direction {
            Direction::HostToHost => &mut self.host_to_host,
            Direction::HostToDevice => &mut self.host_to_device,
            Direction::DeviceToHost => &mut self.device_to_host,
            Direction::DeviceToDevice => &mut self.device_to_device,
        };
        copies.count += 1;
        copies.bytes += bytes;
    }

    pub(super) fn launched(&mut self, launch: &Launch<'_>, time: u64, counted: Counted) {
        let same = |one: &KernelReport| {
            one.name == launch.kernel
                && (one.grid, one.block, one.dynamic_shared)
                    == (launch.grid, launch.block, launch.dynamic_shared)
        };
        let at = match self.kernels.iter().position(same) {
            Some(at) => at,
            None if self.kernels.len() >= MOST_KERNELS => self.kernels.len() - 1,
            None => {
                self.kernels.push(KernelReport {
                    name: launch.kernel.to_owned(),
                    grid: launch.grid,
                    block: launch.block,
                    dynamic_shared: launch.dynamic_shared,
                    launches: 0,
                    estimated_ns: 0,
                    thread_instructions: 0,
                    warp_instructions: 0,
                    global_bytes: 0,
                    lines: counted.lines,
                });
                self.kernels.len() - 1
            }
        };
        let kernel = &mut self.kernels[at];
        kernel.launches += 1;
        kernel.estimated_ns += time;
        kernel.thread_instructions += counted.thread_instructions;
        kernel.warp_instructions += counted.warp_instructions;
        kernel.global_bytes += counted.global_bytes;
    }

    pub(super) fn stopped(&mut self, launch: &Launch<'_>, stopped: Stopped) {
        let error = stopped.error_name();
        self.faults.push(FaultReport { stopped, error, grid: launch.grid, block_size: launch.block });
    }
}
