//! An estimate of the time that a kernel takes on a device. No measurement, and shown as none.
//!
//! A roofline with more than two lines: for each thing that a kernel needs (memory, caches, issue slots, pipes, the time
//! between a warp's instructions) the time that this alone would take; the longest of them, its *limiter*, is the estimate, after what a launch
//! costs. All of it comes from what was counted and from the shape of the launch. What machine code does otherwise than PTX (spills, wider
//! loads, scheduling) is not known here.
//!
//! The constants are the same for every kernel and device. Each has its reason; how far the estimates are off is in `docs/estimates.md`.

mod tensor;
#[cfg(test)]
mod tests;

use crate::counters::{Count, InstructionClass, InstructionCounters, LaunchCounters};
use crate::device::{Device, SCHEDULERS, WARP};

/// Seconds from one kernel's start to its end where it has nothing to do. Of the kernels of `lines small`, those that touch their
/// data once take an H200 2.2 µs, of which the way to memory and back is the rest.
const LAUNCH: f64 = 1.3e-6;
/// The share of the memory's bandwidth that can be had. An H200 moved 4.4 of its 4.8 TB/s in `copy_strided` of `kernels.cu`, the most seen.
const REACHABLE: f64 = 0.92;
/// Bytes that a multiprocessor gets from the L2 a cycle. Source: "NVIDIA A100 Tensor Core GPU Architecture", "L2 cache read bandwidth": 64 a multiprocessor.
const FROM_L2: f64 = 64.0;
/// Cycles for the head, and for each sector, of a line that a multiprocessor sends to the L2. `spill` of `kernels.cu` (whole lines)
/// and `transpose_naive` (a sector a line) took an H200 8.2 and 3.9 cycles a line: five and two of these.
const FLIT: f64 = 1.65;
/// Cycles between two updates of one line by atomics. `count_contended` and `histogram_atomic` took an H200 1.3 and 1.45.
const UPDATE: f64 = 1.4;
/// Cycles until a load's value is there, from the L1 (and shared memory), the L2 and memory. Source of two: Luo et al., "Dissecting the NVIDIA Hopper Architecture
/// through Microbenchmarking", arXiv 2501.12084, rounded.
const L1_LATENCY: f64 = 35.0;
const L2_LATENCY: f64 = 270.0;
/// What a lone warp's load takes an H200 in `small_grid` of `lines.cu`.
const DRAM_LATENCY: f64 = 740.0;
/// Cycles until the next instruction that needs a result can go: "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
/// arXiv 1804.06826, for most arithmetic.
const DEPENDENT: f64 = 4.0;
/// Instructions of a warp of which one waits for the one before, on average: compilers put independent ones between.
const INDEPENDENT: f64 = 2.0;
/// Cycles of a barrier, when all have come.
const BARRIER: f64 = 30.0;
/// Cycles from the end of one block to the first load of the block that takes its place. `scale_coalesced` of `lines.cu` takes an H200 1,620 cycles for
/// each block that a multiprocessor holds, of which a load from memory is 740.
const BLOCK: f64 = 850.0;
/// Results a cycle of a multiprocessor's units for roots, reciprocals, sines, exponentials. Source: CUDA C++ Programming Guide, "Arithmetic Instructions".
const SPECIAL: f64 = 16.0;
/// Integer results a cycle: the same table, 64 for all but additions on some.
const INTEGER: f64 = 64.0;
/// Bytes of a sector.
const SECTOR: f64 = 32.0;

/// What a kernel's time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limiter {
    /// Less is done than a launch costs.
    Launch,
    /// The bandwidth of memory.
    Dram,
    /// The way to and from the L2 cache.
    L2,
    /// The L1 cache and shared memory, which are one unit.
    L1,
    /// Updates of one line by atomics, one after the other.
    Atomics,
    /// The schedulers: an instruction a cycle each.
    Issue,
    /// Units for f32.
    F32,
    /// Units for f64.
    F64,
    /// Units for integers.
    Integer,
    /// Units for roots, reciprocals, sines, exponentials.
    Special,
    /// Tensor cores.
    Tensor,
    /// The time between a warp's instructions: too few warps, or too little of each.
    Latency,
}

impl Limiter {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Dram => "memory bandwidth",
            Self::L2 => "L2 cache",
            Self::L1 => "L1 cache and shared memory",
            Self::Atomics => "atomics on one line",
            Self::Issue => "instruction issue",
            Self::F32 => "f32 units",
            Self::F64 => "f64 units",
            Self::Integer => "integer units",
            Self::Special => "special function units",
            Self::Tensor => "tensor cores",
            Self::Latency => "latency",
        }
    }
}

/// What is known of a launch besides its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared: u64,
}

/// An estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Seconds.
    pub seconds: f64,
    /// What most of it is for.
    pub limiter: Limiter,
    /// Seconds that each thing alone would take, the longest first.
    pub parts: Vec<(Limiter, f64)>,
}

/// Estimates the time of one launch. Where no caches were modelled, every sector counts as if it came from memory; where a share of the blocks
/// ran, the others count as if they were like them; where there are no counters at all, instructions alone count.
#[must_use]
#[allow(clippy::cast_precision_loss)] // Counts stay far below 2^53.
pub fn kernel(device: &Device, shape: &Shape, counted: &LaunchCounters) -> Estimate {
    let ran = counted.blocks.max(1);
    let all = counted.grid_blocks.max(1) as f64 / ran as f64;
    let blocks = shape.blocks.max(1);
    let multiprocessors = u64::from(device.multiprocessors);
    // The busiest multiprocessor's share.
    let share = blocks.div_ceil(multiprocessors) as f64 / blocks as f64 * all;
    let clock = f64::from(device.clock) * 1e3;
    let work = Work::of(device, counted);
    let cycles = |work: f64| work * share / clock;
    let lanes = f64::from(device.limits.lanes);
    let width = f64::from(WARP);
    let doubles = lanes / f64::from(device.limits.single_to_double);
    let sum = counted.total();
    let cached = sum.cached;
    let modelled = counted.hottest_line.is_some();
    let (lines, down, up, moved) = if modelled {
        let moved = cached.dram_read + cached.dram_written;
        (cached.l1_lines as f64, work.loaded, work.stored, moved as f64)
    } else {
        (sum.requests as f64, sum.sectors as f64, 0.0, sum.sectors as f64)
    };
    let hottest = counted.hottest_line.unwrap_or(0) as f64 * all;
    let mut parts = vec![
        (Limiter::Dram, moved * all * SECTOR / (device.bandwidth() * REACHABLE)),
        (Limiter::L2, cycles((down * SECTOR / FROM_L2).max(up * FLIT))),
        (Limiter::L1, cycles(lines + sum.wavefronts as f64)),
        (Limiter::Atomics, hottest * UPDATE / clock),
        (Limiter::Issue, cycles(counted.warp_instructions as f64 / f64::from(SCHEDULERS))),
        (Limiter::F32, cycles(work.single * width / lanes)),
        (Limiter::F64, cycles(work.double * width / doubles)),
        (Limiter::Integer, cycles(work.integer * width / INTEGER)),
        (Limiter::Special, cycles(work.special * width / SPECIAL)),
        (Limiter::Tensor, cycles(work.tensor)),
        (Limiter::Latency, latency(device, shape, counted) / clock),
    ];
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (first, longest) = parts[0];
    let limiter = if longest < LAUNCH { Limiter::Launch } else { first };
    Estimate { seconds: LAUNCH + longest, limiter, parts }
}

/// Work by unit: warps' instructions, cycles of tensor cores, and sectors and flits between L1 and L2.
#[derive(Debug, Default)]
struct Work {
    single: f64,
    double: f64,
    integer: f64,
    special: f64,
    tensor: f64,
    loaded: f64,
    stored: f64,
}

impl Work {
    #[allow(clippy::cast_precision_loss)]
    fn of(device: &Device, counted: &LaunchCounters) -> Self {
        let mut work = Self::default();
        for one in &counted.instructions {
            let warps = one.count.warps as f64;
            if is_special(&one.opcode) {
                work.special += warps;
                continue;
            }
            match one.class() {
                // Two halves an instruction go where one f32 goes.
                InstructionClass::F32 | InstructionClass::Half => work.single += warps,
                InstructionClass::F64 => work.double += warps,
                InstructionClass::Integer => work.integer += warps,
                InstructionClass::Tensor => {
                    work.tensor += warps * tensor::cycles(device, &one.opcode).unwrap_or(0.0);
                }
                InstructionClass::Conversion if one.opcode.contains("f64") => work.double += warps,
                _ => {}
            }
            let cached = &one.count.cached;
            if is_load(&one.opcode) {
                work.loaded += cached.l2_sectors as f64;
            } else {
                work.stored += (cached.l1_lines + cached.l2_sectors) as f64;
            }
        }
        work
    }
}

fn is_load(opcode: &str) -> bool {
    ["ld", "cp", "wmma.load"].iter().any(|name| opcode.starts_with(name))
}

fn is_special(opcode: &str) -> bool {
    let name = opcode.split('.').next().unwrap_or_default();
    matches!(name, "ex2" | "lg2" | "sin" | "cos" | "tanh" | "rcp" | "rsqrt" | "sqrt" | "div")
        && !opcode.contains("64")
}

/// Cycles until the last block has ended, if warps only waited for their own instructions: as many rounds as it takes to have every block
/// resident once, each as long as an average warp's way.
#[allow(clippy::cast_precision_loss)]
fn latency(device: &Device, shape: &Shape, counted: &LaunchCounters) -> f64 {
    let resident = device.resident(shape.registers, shape.threads, shape.shared).max(1);
    let at_once = u64::from(resident) * u64::from(device.multiprocessors);
    let rounds = shape.blocks.max(1) as f64 / at_once.min(shape.blocks.max(1)) as f64;
    let warps = (counted.blocks.max(1) * u64::from(shape.threads.div_ceil(WARP))) as f64;
    let mut cycles = counted.warp_instructions as f64 * DEPENDENT / INDEPENDENT;
    // Loads between two branches or barriers wait together.
    let mut longest = 0.0_f64;
    for one in &counted.instructions {
        match one.class() {
            InstructionClass::Control | InstructionClass::Synchronization => {
                cycles += longest;
                longest = 0.0;
                if one.opcode.starts_with("bar") {
                    cycles += BARRIER * one.count.warps as f64;
                }
            }
            _ => longest = longest.max(waits(one)),
        }
    }
    (BLOCK + (cycles + longest) / warps) * rounds
}

/// Cycles that warps wait for a load, or for what an atomic returns, summed over all of them.
#[allow(clippy::cast_precision_loss)]
fn waits(one: &InstructionCounters) -> f64 {
    let Count { requests, shared_requests, cached, .. } = one.count;
    if !is_load(&one.opcode) && !one.opcode.starts_with("atom") {
        return 0.0;
    }
    let shared = shared_requests as f64 * L1_LATENCY;
    if requests == 0 {
        return shared;
    }
    // A request is as late as the latest of its sectors; those of one request mostly go together.
    let sectors = cached.l1_sectors.max(1) as f64;
    let (from_l1, from_l2) = (cached.l1_hits as f64 / sectors, cached.l2_hits as f64 / sectors);
    let from_memory = (1.0 - from_l1 - from_l2).max(0.0);
    let each = from_l1 * L1_LATENCY + from_l2 * L2_LATENCY + from_memory * DRAM_LATENCY;
    shared + requests as f64 * each
}
