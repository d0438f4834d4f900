//! What the simulated device allows a launch, and tells kernels of itself.

/// Limits of a device that a kernel can meet. The default is an H200's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Shared memory of a block, static and dynamic, in bytes: with opting in.
    pub shared: u32,
    /// Multiprocessors: `%nsmid`; blocks are dealt to them in turn.
    pub multiprocessors: u32,
    /// Warps that a multiprocessor holds: `%nwarpid`.
    pub warps: u32,
}

impl Default for Limits {
    /// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0; the H200's data sheet.
    fn default() -> Self {
        Self { shared: 227 << 10, multiprocessors: 132, warps: 64 }
    }
}
