//! How many blocks a multiprocessor holds.
//!
//! Source of the formula: "CUDA Occupancy Calculator" and `cuda_occupancy.h`: warps are spread over the schedulers, each with
//! a quarter of the registers; registers are given out by warp, shared memory by block, both in units.

use super::{Device, MAX_THREADS, REGISTER_UNIT, REGISTERS, SCHEDULERS, WARP};

/// Registers that a warp takes.
fn warp_registers(registers: u32) -> u32 {
    (registers.max(1) * WARP).next_multiple_of(REGISTER_UNIT)
}

/// Whether one block fits the registers. They are counted as if its warps were spread evenly over the schedulers.
pub(crate) fn registers_hold(registers: u32, threads: u32) -> bool {
    let warps = threads.div_ceil(WARP).next_multiple_of(SCHEDULERS);
    u64::from(warp_registers(registers)) * u64::from(warps) <= u64::from(REGISTERS)
}

impl Device {
    /// Resident blocks of a multiprocessor, of `threads` threads with so many registers each, and `shared` bytes of shared memory a block.
    #[must_use]
    pub fn resident(&self, registers: u32, threads: u32, shared: u64) -> u32 {
        if threads == 0 || threads > MAX_THREADS {
            return 0;
        }
        let limits = self.limits;
        let warps = threads.div_ceil(WARP);
        let by_warps = limits.threads / WARP / warps;
        if !registers_hold(registers, threads) || shared > u64::from(limits.shared_optin) {
            return 0;
        }
        let by_registers = REGISTERS / SCHEDULERS / warp_registers(registers) * SCHEDULERS / warps;
        let taken = shared + u64::from(limits.shared_reserved);
        let by_shared = if taken == 0 {
            limits.blocks
        } else {
            let unit = u64::from(limits.shared_unit);
            u32::try_from(u64::from(limits.shared) / taken.next_multiple_of(unit)).unwrap_or(u32::MAX)
        };
        by_warps.min(by_registers).min(by_shared).min(limits.blocks)
    }
}
