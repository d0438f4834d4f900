//! Runs kernels: warps of 32 lanes, blocks, grids.
//!
//! [`run`] deals a grid's blocks over worker threads. A block's warps take turns, counted in instructions, so a run is the
//! same every time. A [handler](crate::code::Handler) does one op for the lanes of a mask; what an op means for one lane is
//! said once, as a closure, in [`alu`].

// A fault is made once a launch.
#![allow(clippy::result_large_err)]

pub(crate) mod access;
pub(crate) mod alu;
pub(crate) mod atomic;
pub(crate) mod barrier;
pub(crate) mod block;
pub(crate) mod builtin;
mod check;
pub(crate) mod control;
mod exec;
mod fault;
mod grid;
pub(crate) mod lanes;
mod limits;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod moves;
mod presence;
mod printf;
pub(crate) mod special;
pub(crate) mod stack;
pub(crate) mod sync;
pub(crate) mod tensor_map;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
pub(crate) mod warp;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

pub use exec::{Exec, Next};
pub use fault::{Failed, Fault, FaultKind};
pub use limits::Limits;

use crate::checks::{Checks, Defect, DefectKind};
use crate::code::{Code, Kernel, Program};
use crate::counters::{InstructionCounters, LaunchCounters};
use crate::device::Device;
use crate::memory::{Kind, Memory};
use grid::{Chosen, Grid};

/// Threads of a block, at most. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
pub const MAX_THREADS: u32 = 1024;

/// A kernel launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel's symbol (mangled).
    pub kernel: &'a str,
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Threads of a block by axis.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub dynamic_shared: u32,
    /// The parameter block, laid out as [`Kernel::parameters`] says.
    pub parameters: &'a [u8],
    /// All blocks run at once: `cudaLaunchCooperativeKernel`.
    pub cooperative: bool,
    /// Blocks of a cluster by axis; ones where there are no clusters.
    pub cluster: [u32; 3],
}

/// How to run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threads that run blocks.
    pub workers: usize,
    /// Count what memory would have done.
    pub counters: bool,
    /// Run this share of the blocks only (above 0, up to 1): for counters; results are then incomplete.
    pub sample: Option<f64>,
    /// Run all blocks until then, and afterwards a sample of each launch's, spread evenly: for counters; results are then incomplete. Kernels whose
    /// blocks wait for each other are always run in full.
    pub until: Option<Instant>,
    /// Look for defects.
    pub checks: Checks,
    /// With counters: model the caches of this device. Blocks then run on one thread.
    pub caches: Option<&'static Device>,
}

/// What a kernel reaches outside of memory.
pub trait Host: Send + Sync {
    /// Output of `printf`, a call's at a time, in order.
    fn print(&self, bytes: &[u8]);
}

/// Runs a kernel to its end.
///
/// The result is the same for any number of workers, but for integers that kernels make of clocks, addresses of `malloc`
/// and races.
///
/// # Errors
/// The first fault, in the order of blocks. What the kernel wrote until then stays written.
pub fn run(
    program: &Program,
    launch: &Launch<'_>,
    memory: &Memory,
    host: &dyn Host,
    options: &Options,
    cancel: &AtomicBool,
) -> Result<LaunchCounters, Fault> {
    let ran = run_as_far_as_it_goes(program, launch, memory, host, options, cancel);
    ran.fault.map_or(Ok(ran.counted), Err)
}

/// What came of a launch.
#[derive(Debug, Default)]
pub struct Ran {
    /// What was counted, up to its end or its fault.
    pub counted: LaunchCounters,
    /// What is wrong with it, and what stopped it among that.
    pub defects: Vec<Defect>,
    /// Why it did not come to its end.
    pub fault: Option<Fault>,
}

/// As [`run`], and what was counted and found where it did not come to its end.
pub fn run_as_far_as_it_goes(
    program: &Program,
    launch: &Launch<'_>,
    memory: &Memory,
    host: &dyn Host,
    options: &Options,
    cancel: &AtomicBool,
) -> Ran {
    let mut ran = begin(program, launch, memory, host, options, cancel)
        .unwrap_or_else(|fault| Ran { fault: Some(fault), ..Ran::default() });
    ran.defects.extend(ran.fault.as_ref().and_then(Fault::defect));
    ran
}

/// Runs a kernel; the error is that of a launch that can't be.
fn begin(
    program: &Program,
    launch: &Launch<'_>,
    memory: &Memory,
    host: &dyn Host,
    options: &Options,
    cancel: &AtomicBool,
) -> Result<Ran, Fault> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let fault = |kind, message| Fault {
        kind,
        kernel: launch.kernel.to_owned(),
        block: [0; 3],
        thread: [0; 3],
        place: None,
        ptx_line: 0,
        address: None,
        message,
        defect: (kind == FaultKind::InvalidLaunch).then_some(DefectKind::InvalidLaunch),
        object: None,
        failed: Vec::new(),
    };
    let Some(kernel) = program.kernel(launch.kernel) else {
        return Err(fault(FaultKind::InvalidLaunch, "no module has a kernel of this name".to_owned()));
    };
    let launch = &Launch { cluster: cluster_of(kernel, launch), ..*launch };
    check(kernel, launch).map_err(|message| fault(FaultKind::InvalidLaunch, message))?;
    let code = kernel.code(program).map_err(|refusal| Fault {
        place: refusal.place.clone(),
        ptx_line: refusal.line,
        ..fault(FaultKind::Unsupported, refusal.message)
    })?;
    let shared_bytes = code.dynamic_shared.max(code.shared_bytes) + launch.dynamic_shared;
    let (asked, most) = (shared_bytes - code.reserved_shared, program.limits().shared);
    if asked > most {
        let message = format!("{asked} bytes of shared memory a block; at most {most}");
        return Err(fault(FaultKind::InvalidLaunch, message));
    }
    let workspace = Workspace::new(memory, launch.cooperative)
        .map_err(|why| fault(FaultKind::InvalidLaunch, format!("no room for the grid's barrier: {why}")))?;
    let grid = Grid {
        kernel: launch.kernel,
        code: &code,
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared: launch.dynamic_shared,
        shared_bytes,
        parameters: launch.parameters,
        workspace: workspace.address,
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        cooperative: launch.cooperative,
        registers: kernel.resources(program).registers,
        limits: *program.limits(),
        memory,
        host,
        cancel,
    };
    let (outcome, defects, fault) = grid::run(&grid, options, Chosen::new(grid.clusters(), options.sample));
    let counted = LaunchCounters {
        instructions: outcome.counts.map_or_else(Vec::new, |counts| by_instruction(&code, &counts.ops)),
        blocks: outcome.blocks,
        grid_blocks: launch.grid.iter().map(|n| u64::from(*n)).product(),
        warp_instructions: outcome.instructions,
        hottest_line: outcome.hottest,
    };
    Ok(Ran { counted, defects, fault })
}

/// The launch's cluster; `__cluster_dims__` holds for launches that do not say.
fn cluster_of(kernel: &Kernel, launch: &Launch<'_>) -> [u32; 3] {
    kernel.required_cluster.filter(|_| launch.cluster == [1; 3]).unwrap_or(launch.cluster)
}

/// Can the kernel be launched so?
fn check(kernel: &Kernel, launch: &Launch<'_>) -> Result<(), String> {
    let threads = launch.block.iter().fold(1, |all: u64, n| all.saturating_mul((*n).into()));
    if launch.grid.contains(&0) || threads == 0 || launch.cluster.contains(&0) {
        return Err(format!("the grid {:?} of blocks {:?} is empty", launch.grid, launch.block));
    }
    let most = kernel.max_threads.unwrap_or(MAX_THREADS).min(MAX_THREADS);
    if threads > u64::from(most) {
        return Err(format!("{threads} threads a block; the kernel allows {most}"));
    }
    if kernel.required_block.is_some_and(|block| block != launch.block) {
        return Err(format!("the kernel must be launched with blocks of {:?}", kernel.required_block));
    }
    if kernel.required_cluster.is_some_and(|cluster| cluster != launch.cluster) {
        let cluster = kernel.required_cluster;
        return Err(format!("the kernel must be launched with clusters of {cluster:?}"));
    }
    if (0..3).any(|axis| !launch.grid[axis].is_multiple_of(launch.cluster[axis])) {
        return Err(format!("the grid {:?} is no multiple of the cluster {:?}", launch.grid, launch.cluster));
    }
    let needed = kernel.parameters.last().map_or(0, |last| (last.offset + last.size) as usize);
    if launch.parameters.len() < needed {
        let given = launch.parameters.len();
        return Err(format!("the kernel takes {needed} bytes of parameters, {given} were given"));
    }
    Ok(())
}

/// Memory that `%envreg1` and `%envreg2` point at in a cooperative launch: the barrier of `this_grid().sync()`.
struct Workspace<'a> {
    memory: &'a Memory,
    address: u64,
}

impl<'a> Workspace<'a> {
    /// Bytes of it; cooperative groups use the first few words.
    const BYTES: u64 = 256;

    fn new(memory: &'a Memory, cooperative: bool) -> Result<Self, crate::memory::OutOfMemory> {
        let address = if cooperative { memory.allocate(Self::BYTES, 256, Kind::Module)? } else { 0 };
        Ok(Self { memory, address })
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        if self.address != 0 {
            // Allocated above, so it can be freed.
            let _ = self.memory.free(self.address);
        }
    }
}

fn by_instruction(code: &Code, counts: &[crate::counters::Count]) -> Vec<InstructionCounters> {
    let ops = code.ops.iter().zip(&code.sources).zip(counts);
    ops.filter(|((op, _), _)| op.flags & crate::code::HIDDEN == 0)
        .map(|((_, source), count)| InstructionCounters {
            ptx_line: source.line,
            place: code.places.get(source.place as usize).cloned(),
            opcode: code.opcodes.get(source.opcode as usize).cloned().unwrap_or_default(),
            count: *count,
        })
        .collect()
}
