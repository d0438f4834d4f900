//! The report of a simulated run, as its process wrote it.

use serde::{Deserialize, Serialize};

/// What the simulator found and counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// How the program ended.
    pub ending: Ending,
    /// Processes that used the device.
    pub processes: u32,
    /// Copies whose contents were perturbed.
    pub perturbed: usize,
    /// Kernels in the order of their first launches, by shape.
    pub kernels: Vec<Kernel>,
    /// Copies.
    pub host_to_device: Copies,
    /// Copies.
    pub device_to_host: Copies,
    /// Copies.
    pub device_to_device: Copies,
    /// Why kernels stopped.
    pub faults: Vec<Fault>,
    /// What was looked for: `none`, `memory`, `all`.
    pub checks: String,
    /// What is wrong, once a place.
    pub defects: Vec<Defect>,
    /// Functions of the runtime that the program called and the simulator lacks.
    pub missing: Vec<String>,
    /// What a person should know, in sentences.
    pub notes: Vec<String>,
    /// The most bytes that were allocated at once.
    pub memory_peak: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It was still running.
    #[default]
    Running,
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// At the time limit.
    TimeLimit,
    /// The caller gave up.
    Cancelled,
}

/// Launches of one kernel with one shape.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kernel {
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
    /// What the estimate is mostly for.
    pub limiter: Option<String>,
    /// Counters of all launches together.
    pub counters: Counters,
}

/// Counters of a kernel's launches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Blocks that were simulated.
    pub blocks: u64,
    /// Blocks that were launched.
    pub grid_blocks: u64,
    /// PTX instructions that warps executed.
    pub warp_instructions: u64,
    /// Sums over all instructions.
    pub total: Count,
    /// Sums by source line.
    pub lines: Vec<Line>,
    /// By PTX instruction.
    pub instructions: Vec<Instruction>,
}

/// Counters of one source line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// The file, as the compiler names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// What was counted.
    pub count: Count,
}

/// Counters of one PTX instruction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Instruction {
    /// Line of the PTX, from 1.
    pub ptx_line: u32,
    /// Source file and line, where they are known.
    pub place: Option<(String, u32)>,
    /// File and line of the call, where its function was inlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined_at: Option<(String, u32)>,
    /// Opcode with its modifiers.
    pub opcode: String,
    /// What was counted.
    pub count: Count,
}

/// What was counted; see `stitch_simulator::counters::Count` for what each means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// Times that a warp executed it.
    pub warps: u64,
    /// Active lanes, summed.
    pub active: u64,
    /// Lanes whose guard held, summed.
    pub guarded: u64,
    /// Branches that went both ways.
    pub divergent: u64,
    /// Global and local accesses of warps.
    pub requests: u64,
    /// Shared accesses of warps.
    pub shared_requests: u64,
    /// Bytes that lanes asked for.
    pub bytes: u64,
    /// Sectors of 32 bytes that global and local accesses touched.
    pub sectors: u64,
    /// Sectors, had the lanes lain side by side.
    pub ideal_sectors: u64,
    /// Wavefronts of shared accesses.
    pub wavefronts: u64,
    /// Wavefronts without bank conflicts.
    pub ideal_wavefronts: u64,
    /// Most wavefronts of one request.
    pub worst_wavefronts: u32,
    /// Most lanes of one request that update one address.
    pub worst_contention: u32,
    /// Updates that wait for another lane, summed.
    pub serialised: u64,
    /// Sectors that were looked up in the L1 cache, where caches were modelled.
    pub l1_sectors: u64,
    /// Of these, those that were there.
    pub l1_hits: u64,
    /// Sectors that were read from, stored to or updated in the L2 cache.
    pub l2_sectors: u64,
    /// Of these, those that were there, and all that were stored or updated.
    pub l2_hits: u64,
    /// Sectors that memory was read for.
    pub dram_read_sectors: u64,
    /// Sectors that were written back to memory.
    pub dram_written_sectors: u64,
}

/// Copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Copies {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A place in a source file, and where the function that holds it was inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lines {
    /// File and line, where they are known.
    pub place: Option<(String, u32)>,
    /// File and line of the call, where it was inlined.
    pub inlined_at: Option<(String, u32)>,
}

/// Something that is wrong, at one place. See `stitch_simulator::checks::Defect`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Defect {
    /// `shared-race`, `out-of-bounds`, …
    pub kind: String,
    /// Mangled name of the kernel; empty where it is a call of the host's.
    pub kernel: String,
    /// The first block in which it was seen.
    pub block: [u32; 3],
    /// The first thread.
    pub thread: [u32; 3],
    /// Where.
    #[serde(flatten)]
    pub lines: Lines,
    /// What happened, in a sentence.
    pub message: String,
    /// The allocation or variable concerned, in words.
    pub object: Option<String>,
    /// The other access of a race.
    pub other: Option<Other>,
    /// How often it was seen.
    pub times: u64,
}

/// The other access of a race.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Other {
    /// `read`, `write`, `atomic operation`.
    pub what: String,
    /// Its block.
    pub block: [u32; 3],
    /// Its thread, where known.
    pub thread: Option<[u32; 3]>,
    /// Where.
    #[serde(flatten)]
    pub lines: Lines,
}

/// Why a kernel stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// Mangled name of the kernel.
    pub kernel: String,
    /// Block.
    pub block: [u32; 3],
    /// Thread.
    pub thread: [u32; 3],
    /// Source file and line, where they are known.
    pub place: Option<(String, u32)>,
    /// What happened, in a sentence.
    pub message: String,
}

impl Kernel {
    /// The share of its blocks that were simulated, from 0 to 1.
    pub fn share(&self) -> f64 {
        match self.counters.grid_blocks {
            0 => 1.0,
            all => self.counters.blocks as f64 / all as f64,
        }
    }
}

impl Report {
    /// Kernels of which not all blocks were simulated, though nothing stopped them.
    pub fn sampled(&self) -> impl Iterator<Item = &Kernel> {
        let kernels = self.kernels.iter().filter(|kernel| kernel.share() < 1.0);
        kernels.filter(|_| self.faults.is_empty())
    }
}

impl Fault {
    /// What happened and where, in a sentence.
    pub fn words(&self) -> String {
        let place = self.place.as_ref().map(|(file, line)| format!(" at {file}:{line}")).unwrap_or_default();
        let [block, thread] = [self.block, self.thread].map(|at| at.map(|size| size.to_string()).join(", "));
        let kernel = crate::demangle::name(&self.kernel).display();
        let message = self.message.trim_end_matches('.');
        format!("{message}. In `{kernel}`{place}, block ({block}), thread ({thread}).")
    }
}
