//! How many warps of a kernel fit on a multiprocessor, and what stops more from fitting.
//!
//! The rules are those of NVIDIA's own calculator, `cuda_occupancy.h`, which the toolkit ships; the tests compare with a table
//! made by that header. The numbers of each architecture are in [`table`](self::limits).

mod step;
mod table;

use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;
pub use step::{Step, step};

/// Threads in a warp, on every GPU so far.
pub const WARP: u32 = 32;

/// What one multiprocessor holds, and how it hands it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The architecture.
    pub architecture: Architecture,
    /// Most threads in one block.
    pub threads_per_block: u32,
    /// Most threads that are resident on a multiprocessor.
    pub threads: u32,
    /// Most blocks that are resident on a multiprocessor.
    pub blocks: u32,
    /// 32-bit registers of a multiprocessor; one block may have all.
    pub registers: u32,
    /// Registers are given to a warp in portions of so many.
    pub register_unit: u32,
    /// Most registers that a thread may have.
    pub registers_per_thread: u32,
    /// Parts of a multiprocessor with registers of their own.
    pub partitions: u32,
    /// Shared memory of a multiprocessor in bytes, at the largest carve-out.
    pub shared: u32,
    /// Most shared memory of a block in bytes, static and dynamic, when the program opts in.
    pub shared_per_block: u32,
    /// What the system keeps of each block's shared memory, in bytes.
    pub shared_reserved: u32,
    /// Shared memory is given to a block in portions of so many bytes.
    pub shared_unit: u32,
    /// Named barriers of a multiprocessor for each block it can hold; `None` where they never limit.
    pub barriers_per_block: Option<u32>,
}

impl Limits {
    /// Most warps that are resident on a multiprocessor.
    pub fn warps(&self) -> u32 {
        self.threads / WARP
    }
}

/// The limits of an architecture; `sm_90a` has those of `sm_90`. `None` for one that is not in the table.
pub fn limits(architecture: Architecture) -> Option<&'static Limits> {
    table::LIMITS.iter().find(|row| {
        (row.architecture.major, row.architecture.minor) == (architecture.major, architecture.minor)
    })
}

/// `occupancy unknown for sm_107`, for the name of an architecture that is not in the table.
pub fn unknown_for(architecture: &str) -> Option<String> {
    let known = architecture.parse().ok().and_then(limits);
    known.is_none().then(|| format!("occupancy unknown for {architecture}"))
}

/// What a launch of a kernel asks of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory a block in bytes, static and dynamic together.
    pub shared: u64,
    /// Barriers a block.
    pub barriers: u32,
    /// Threads a block.
    pub block: u32,
}

/// What stops more blocks from fitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The multiprocessor's warps, with blocks of this size.
    Warps,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// The number of blocks that a multiprocessor holds.
    Blocks,
    /// Named barriers.
    Barriers,
}

impl Limiter {
    /// What a person calls it, after "limited by".
    pub fn label(self) -> &'static str {
        match self {
            Self::Warps => "warps",
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
            Self::Blocks => "blocks",
            Self::Barriers => "barriers",
        }
    }
}

/// What fits on one multiprocessor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Resident blocks; 0 means that the launch fails.
    pub active_blocks: u32,
    /// Resident warps.
    pub active_warps: u32,
    /// Most warps that could be resident.
    pub max_warps: u32,
    /// All that allow no more blocks than this, the most telling first.
    pub limiters: Vec<Limiter>,
}

impl Occupancy {
    /// Resident warps over the most that could be, from 0 to 1.
    pub fn ratio(&self) -> f64 {
        f64::from(self.active_warps) / f64::from(self.max_warps.max(1))
    }

    /// Says what limits it, in a few words.
    pub fn reason(&self) -> String {
        let names: Vec<_> = self.limiters.iter().map(|limiter| limiter.label()).collect();
        if self.active_blocks == 0 {
            format!("does not fit a multiprocessor: too much of {}", names.join(" and "))
        } else if self.active_warps >= self.max_warps {
            "not limited".to_owned()
        } else {
            format!("limited by {}", names.join(" and "))
        }
    }
}

/// Blocks that each resource allows; `u32::MAX` for one that is not used.
fn allowed_blocks(limits: &Limits, usage: &Usage) -> [(Limiter, u32); 5] {
    [
        (Limiter::Registers, blocks_by_registers(limits, usage)),
        (Limiter::SharedMemory, blocks_by_shared(limits, usage)),
        (Limiter::Barriers, blocks_by_barriers(limits, usage)),
        (Limiter::Blocks, limits.blocks),
        (Limiter::Warps, blocks_by_warps(limits, usage)),
    ]
}

fn blocks_by_warps(limits: &Limits, usage: &Usage) -> u32 {
    if usage.block == 0 || usage.block > limits.threads_per_block {
        return 0;
    }
    limits.warps() / usage.block.div_ceil(WARP)
}

/// Registers are given to warps, within the partition that runs the warp. The hardware's check of one block counts as if its
/// warps were spread evenly over the partitions, so their number is rounded up.
fn blocks_by_registers(limits: &Limits, usage: &Usage) -> u32 {
    if usage.registers == 0 || usage.block == 0 {
        return u32::MAX;
    }
    if usage.registers > limits.registers_per_thread {
        return 0;
    }
    let warps = usage.block.div_ceil(WARP);
    let per_warp = (usage.registers * WARP).next_multiple_of(limits.register_unit);
    let assumed = u64::from(per_warp) * u64::from(warps.next_multiple_of(limits.partitions));
    if assumed > u64::from(limits.registers) {
        return 0;
    }
    let resident = limits.registers / limits.partitions / per_warp * limits.partitions;
    resident / warps
}

fn blocks_by_shared(limits: &Limits, usage: &Usage) -> u32 {
    let wanted = usage.shared.saturating_add(u64::from(limits.shared_reserved));
    let given = wanted.div_ceil(u64::from(limits.shared_unit)).saturating_mul(u64::from(limits.shared_unit));
    if given > u64::from(limits.shared_per_block + limits.shared_reserved) {
        return 0;
    }
    u64::from(limits.shared)
        .checked_div(given)
        .map_or(u32::MAX, |blocks| u32::try_from(blocks).unwrap_or(u32::MAX))
}

fn blocks_by_barriers(limits: &Limits, usage: &Usage) -> u32 {
    let available = limits.barriers_per_block.map(|each| each * limits.blocks);
    available.and_then(|all| all.checked_div(usage.barriers)).unwrap_or(u32::MAX)
}

/// How many blocks and warps of a launch fit on a multiprocessor, and what stops more.
///
/// Shared memory is counted at the largest carve-out, as the runtime's own occupancy functions do by default.
pub fn theoretical_occupancy(limits: &Limits, usage: &Usage) -> Occupancy {
    let allowed = allowed_blocks(limits, usage);
    let active_blocks = allowed.iter().map(|(_, blocks)| *blocks).min().unwrap_or(0);
    let limiters = allowed.iter().filter(|(_, blocks)| *blocks == active_blocks).map(|(limiter, _)| *limiter);
    Occupancy {
        active_blocks,
        active_warps: active_blocks * usage.block.div_ceil(WARP),
        max_warps: limits.warps(),
        limiters: limiters.collect(),
    }
}

#[cfg(test)]
mod tests;
