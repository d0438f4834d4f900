//! The devices that can be simulated, and what they say of themselves.
//!
//! A simulated device has the limits of a real one: a launch that is refused there is refused here. Clocks and widths serve
//! only for estimates of time.

pub mod attributes;
pub(crate) mod occupancy;
mod sources;
mod table;
#[cfg(test)]
mod tests;

pub use sources::{Origin, SOURCES, Source};
pub use table::DEVICES;

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// As a person writes it after `sim:`.
    pub name: &'static str,
    /// As `cudaDeviceProp::name` has it.
    pub product: &'static str,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Global memory in bytes.
    pub memory: u64,
    /// Highest clock of the multiprocessors, in kHz.
    pub clock: u32,
    /// Clock of the memory, in kHz. Two transfers a cycle.
    pub memory_clock: u32,
    /// Width of the memory bus in bits.
    pub bus_width: u32,
    /// L2 cache in bytes.
    pub l2: u32,
    /// Halves of the L2 cache that each keep a copy of what their multiprocessors use.
    pub l2_parts: u32,
    /// Multiply-adds of f16 with f32 sums a clock cycle of a multiprocessor's tensor cores, dense.
    pub tensor: u32,
    /// The part of the L2 cache that may be set aside, in bytes.
    pub persisting_l2: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Whether its memory corrects errors.
    pub ecc: bool,
    /// What a multiprocessor holds.
    pub limits: &'static Limits,
    /// Where these numbers are from: every field is named once, `name`, `product` and `limits` aside.
    pub sources: &'static [Origin],
}

/// What a multiprocessor of a compute capability holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Compute capability.
    pub capability: (u32, u32),
    /// Resident threads.
    pub threads: u32,
    /// Resident blocks.
    pub blocks: u32,
    /// The memory that shared memory and the L1 cache are parts of, in bytes.
    pub unified: u32,
    /// Shared memory in bytes.
    pub shared: u32,
    /// Shared memory that a block may have when it asks for more than 48 KiB, in bytes.
    pub shared_optin: u32,
    /// Shared memory that each block pays to the system, in bytes.
    pub shared_reserved: u32,
    /// Shared memory is given out in multiples of this, in bytes.
    pub shared_unit: u32,
    /// Single-precision results a clock cycle for one double-precision result.
    pub single_to_double: u32,
    /// Single-precision multiply-adds a clock cycle.
    pub lanes: u32,
    /// Where these numbers are from: every field is named once.
    pub sources: &'static [Origin],
}

/// Sizes that the shared part of the unified memory may have, in KiB; the rest is L1 cache. A device stops at its [`Limits::shared`], which is
/// a size too (96 of Volta).
/// Sources: the tuning guides for Volta, Ampere, Ada, Hopper and Blackwell, "Unified Shared Memory/L1/Texture Cache".
pub const CARVEOUTS: [u32; 10] = [0, 8, 16, 32, 64, 100, 132, 164, 196, 228];
/// Threads of a warp.
pub const WARP: u32 = 32;
/// Most threads of a block.
pub const MAX_THREADS: u32 = 1024;
/// Most threads of a block along each axis.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Most blocks of a grid along each axis.
pub const MAX_GRID: [u32; 3] = [0x7FFF_FFFF, 0xFFFF, 0xFFFF];
/// Registers of a multiprocessor, and of a block.
pub const REGISTERS: u32 = 65_536;
/// Registers are given to a warp in multiples of this.
pub const REGISTER_UNIT: u32 = 256;
/// Schedulers of a multiprocessor; warps are spread over them.
pub const SCHEDULERS: u32 = 4;
/// Most registers of a thread.
pub const MAX_REGISTERS: u32 = 255;
/// Static shared memory that a block may have, and dynamic unless it asks for more, in bytes.
pub const SHARED_PER_BLOCK: u32 = 48 * 1024;
/// Constant memory in bytes.
pub const CONSTANT: u32 = 64 * 1024;

impl Device {
    /// The device of that name, in any case: `h200`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        DEVICES.iter().find(|device| device.name.eq_ignore_ascii_case(name))
    }

    /// 90 for compute capability 9.0.
    #[must_use]
    pub fn arch(&self) -> u32 {
        self.capability.0 * 10 + self.capability.1
    }

    /// Multiply-adds of f32 a second, at most.
    #[must_use]
    pub fn single(&self) -> f64 {
        f64::from(self.clock) * 1e3 * f64::from(self.multiprocessors) * f64::from(self.limits.lanes)
    }

    /// Bytes that memory can move in a second, at most.
    #[must_use]
    pub fn bandwidth(&self) -> f64 {
        2.0 * f64::from(self.memory_clock) * 1e3 * f64::from(self.bus_width) / 8.0
    }
}
