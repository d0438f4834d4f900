//! Blocks, and the clusters that they form: what runs on one worker.

use std::sync::Arc;

use crate::caches::Caches;
use crate::checks::shadow::Shadow;
use crate::checks::{Checker, Checks, DefectKind};
use crate::code::Code;
use crate::counters::Counts;
use crate::machine::access::Span;
use crate::machine::barrier::{ALL_BARRIERS, Barrier, ClusterBarrier};
use crate::machine::exec::{Exec, Slice};
use crate::machine::fault::{Failed, Fault, FaultKind, Trouble};
use crate::machine::grid::Grid;
use crate::machine::lanes::Registers;
use crate::machine::warp::{Group, Wait, Warp};
use crate::memory::Allocations;

/// Instructions that a warp runs before the next of its block.
const SLICE: u64 = 4096;

/// The same where caches are modelled: on a device, warps go side by side, so what one fetches serves the others. A loop of a few
/// instructions is one slice a round.
const CACHED_SLICE: u64 = 16;

/// What a block's warps share.
pub(crate) struct Shared {
    /// Index in the grid.
    pub index: [u32; 3],
    /// Rank in its cluster.
    pub rank: u32,
    /// Shared memory, 16 bytes a piece for its alignment.
    pub memory: Box<[u128]>,
    /// Bytes of it.
    pub bytes: u32,
    /// Named barriers, and those of warpgroups.
    pub barriers: [Barrier; ALL_BARRIERS],
    /// Lanes that have not exited, by warp.
    pub live: Vec<u32>,
    /// The generation of the cluster's barrier that each thread last arrived at.
    pub cluster_generation: Vec<u64>,
    /// What is remembered of shared memory, where that is wanted.
    pub shadow: Option<Box<Shadow>>,
    /// Threads that exited since the cluster's barrier was last told.
    left: u32,
}

impl Shared {
    /// Lanes of a warp exit.
    pub fn threads_left(&mut self, warp: u32, mask: u32) {
        self.live[warp as usize] &= !mask;
        self.left += mask.count_ones();
        for barrier in &mut self.barriers {
            barrier.check(&self.live);
        }
    }
}

/// What the blocks of a cluster share.
pub(crate) struct Cluster {
    /// Its barrier.
    pub barrier: ClusterBarrier,
    /// Shared memory of each block by rank: first byte, length.
    pub memories: Vec<(*mut u8, u32)>,
}

/// Can this group run, as far as barriers go?
pub(crate) fn is_ready(group: &Group, shared: &Shared, cluster: &Cluster) -> bool {
    match group.wait {
        Wait::Nothing | Wait::Finished => true,
        Wait::Barrier { id, generation } => shared.barriers[id].generation > generation,
        Wait::Cluster { generation } => cluster.barrier.generation > generation,
        Wait::Lanes { .. } => false,
    }
}

struct Block {
    shared: Shared,
    warps: Vec<Warp>,
}

/// A worker's own: counters and what it last knew of the allocations.
pub(crate) struct Worker {
    /// Counters by op.
    pub counts: Option<Counts>,
    /// The caches, where they are modelled.
    pub caches: Option<Box<Caches>>,
    /// Allocations as they were when last looked at.
    pub allocations: Arc<Allocations>,
    /// The allocation that was hit last.
    pub span: Span,
    /// What it looks for, and has found.
    pub checker: Option<Checker>,
}

/// The blocks of a cluster (one, where there are no clusters), running together.
pub(crate) struct Unit {
    blocks: Vec<Block>,
    cluster: Cluster,
    /// Assertions that failed, and the op of the first.
    failed: Vec<Failed>,
    failed_at: u32,
}

impl Unit {
    /// Room for a cluster.
    pub fn new(grid: &Grid<'_>, code: &Code) -> Self {
        let threads = grid.threads();
        let warps = threads.div_ceil(32);
        let bytes = grid.shared_bytes;
        let size = grid.cluster.iter().product::<u32>();
        let mut blocks: Vec<Block> = (0..size)
            .map(|rank| Block {
                shared: Shared {
                    index: [0; 3],
                    rank,
                    memory: vec![0; bytes.div_ceil(16) as usize].into_boxed_slice(),
                    bytes,
                    barriers: Default::default(),
                    live: Vec::new(),
                    cluster_generation: vec![0; warps as usize * 32],
                    shadow: None,
                    left: 0,
                },
                warps: (0..warps).map(|warp| Warp::new(warp, threads - warp * 32, code)).collect(),
            })
            .collect();
        let memories = blocks.iter_mut().map(|b| (b.shared.memory.as_mut_ptr().cast(), bytes)).collect();
        let cluster = Cluster { barrier: ClusterBarrier::default(), memories };
        Unit { blocks, cluster, failed: Vec::new(), failed_at: 0 }
    }

    /// Begins the blocks of cluster `number`.
    pub fn restart(&mut self, grid: &Grid<'_>, code: &Code, number: u64, checker: Option<&Checker>) {
        let threads = grid.threads();
        if let Some(checker) = checker {
            self.remember(grid, checker);
        }
        for block in &mut self.blocks {
            let shared = &mut block.shared;
            shared.index = grid.block_index(number, shared.rank);
            shared.memory.fill(0);
            shared.live.clear();
            shared.left = 0;
            if let Some(shadow) = &mut shared.shadow {
                shadow.restart();
            }
            for warp in &mut block.warps {
                warp.restart(threads - warp.index * 32, code);
                shared.live.push(warp.live);
            }
            for barrier in &mut shared.barriers {
                barrier.restart(block.warps.len());
            }
        }
        let live = threads * self.blocks.len() as u32;
        self.cluster.barrier = ClusterBarrier { live, ..ClusterBarrier::default() };
        self.failed.clear();
    }

    /// Remembers of shared memory what `checker` needs to know. Blocks of a cluster write each other's, which is not followed.
    fn remember(&mut self, grid: &Grid<'_>, checker: &Checker) {
        let reserved = u64::from(grid.code.reserved_at)
            ..u64::from(grid.code.reserved_at) + u64::from(grid.code.reserved_shared);
        let alone = self.blocks.len() == 1;
        for block in &mut self.blocks {
            if alone && block.shared.shadow.is_none() {
                let races = checker.checks == Checks::All;
                let shadow = Shadow::new(grid.shared_bytes, block.warps.len(), reserved.clone(), races);
                block.shared.shadow = Some(Box::new(shadow));
            }
            for warp in &mut block.warps {
                warp.remembers = true;
            }
        }
    }

    /// Runs round robin for about `budget` instructions. True when all threads have exited.
    pub fn run(&mut self, grid: &Grid<'_>, worker: &mut Worker, mut budget: u64) -> Result<bool, Fault> {
        loop {
            let (mut done, mut ran) = (true, false);
            for at in 0..self.blocks.len() {
                for warp in 0..self.blocks[at].warps.len() {
                    let before = self.blocks[at].warps[warp].spent();
                    let slice = match self.slice(grid, worker, at, warp) {
                        // What else goes wrong after an assertion has failed is not looked at.
                        Err(_) if !self.failed.is_empty() => return Err(self.assertion(grid)),
                        other => other?,
                    };
                    match slice {
                        Slice::Done => {}
                        _ => done = false,
                    }
                    let used = self.blocks[at].warps[warp].spent() - before;
                    ran |= used > 0;
                    budget = budget.saturating_sub(used);
                }
            }
            // Before the end is looked at: a grid of short blocks must be cancelled too.
            if grid.is_cancelled() {
                return Err(grid.cancelled());
            }
            if !self.failed.is_empty() && (done || !ran || budget == 0) {
                return Err(self.assertion(grid));
            }
            if done {
                return Ok(true);
            }
            if !ran {
                return Err(self.deadlock(grid));
            }
            if budget == 0 {
                return Ok(false);
            }
        }
    }

    /// Blocks, and instructions that their warps ran.
    pub fn totals(&self) -> (u64, u64) {
        let ran = self.blocks.iter().flat_map(|block| &block.warps).map(|warp| warp.ran).sum();
        (self.blocks.len() as u64, ran)
    }

    fn slice(
        &mut self,
        grid: &Grid<'_>,
        worker: &mut Worker,
        at: usize,
        warp: usize,
    ) -> Result<Slice, Fault> {
        let block = &mut self.blocks[at];
        let warp = &mut block.warps[warp];
        if warp.live == 0 {
            return Ok(Slice::Done);
        }
        if let Some(checker) = &mut worker.checker {
            checker.block = grid.block_number(block.shared.index);
        }
        if let Some(caches) = &mut worker.caches {
            caches.begin(grid.block_number(block.shared.index));
        }
        let budget = if worker.caches.is_some() { CACHED_SLICE } else { SLICE };
        let none = std::ptr::null_mut();
        let group = Group { frame: 0, pc: 0, mask: 0, wait: Wait::Nothing, yielded: false, back_branches: 0 };
        let mut exec = Exec {
            registers: Registers {
                bases: [none, grid.code.constants.as_ptr().cast_mut().cast()],
                predicates: none.cast(),
            },
            group,
            warp,
            block: &mut block.shared,
            cluster: &mut self.cluster,
            grid,
            code: grid.code,
            counts: worker.counts.as_mut(),
            caches: worker.caches.as_deref_mut(),
            allocations: &mut worker.allocations,
            span: worker.span,
            checker: worker.checker.as_mut(),
            stop: u32::MAX,
            trouble: None,
            failed: &mut self.failed,
            failed_at: self.failed_at,
        };
        let slice = exec.slice(budget);
        worker.span = exec.span;
        self.failed_at = exec.failed_at;
        if slice == Slice::Fault {
            let trouble = exec.trouble.take();
            let (pc, warp) = (exec.group.pc, exec.warp.index);
            return Err(fault(grid, &block.shared, warp, pc, trouble));
        }
        if block.shared.left > 0 {
            self.cluster.barrier.live -= block.shared.left;
            block.shared.left = 0;
            self.cluster.barrier.check();
        }
        Ok(slice)
    }

    /// The fault of the first assertion that failed.
    fn assertion(&mut self, grid: &Grid<'_>) -> Fault {
        let failed = std::mem::take(&mut self.failed);
        let source = grid.code.source(self.failed_at);
        let (block, thread, message) =
            failed.first().map_or_else(Default::default, |one| (one.block, one.thread, one.message.clone()));
        Fault {
            kind: FaultKind::Assert,
            kernel: grid.kernel.to_owned(),
            block,
            thread,
            place: source.1.cloned(),
            ptx_line: source.0,
            address: None,
            message,
            defect: None,
            object: None,
            failed,
        }
    }

    /// Nobody can run: says who waits where.
    fn deadlock(&self, grid: &Grid<'_>) -> Fault {
        let mut waits: Vec<(u32, usize, u32)> = Vec::new();
        let mut first = None;
        let mut lanes_alone = true;
        for block in &self.blocks {
            for warp in &block.warps {
                for group in &warp.groups {
                    lanes_alone &= matches!(group.wait, Wait::Lanes { .. });
                    let lane = group.mask.trailing_zeros() as usize;
                    first = first.or(Some((&block.shared, warp.index, group.pc, lane)));
                    match waits.iter_mut().find(|(pc, ..)| *pc == group.pc) {
                        Some((_, _, threads)) => *threads += group.mask.count_ones(),
                        None => waits.push((group.pc, lane, group.mask.count_ones())),
                    }
                }
            }
        }
        waits.sort_unstable();
        let place = |(pc, _, threads): &(u32, usize, u32)| {
            format!("{threads} threads wait at {}", grid.code.describe(*pc))
        };
        let list = waits.iter().map(place).collect::<Vec<_>>().join("; ");
        let message = format!("no thread of the block can go on: {list}");
        let Some((shared, warp, pc, lane)) = first else {
            return grid.invalid(message);
        };
        let defect = if lanes_alone { DefectKind::MissingLanes } else { DefectKind::DivergentBarrier };
        let kind = FaultKind::BarrierDeadlock;
        let trouble = Trouble { kind, lane, address: None, message, defect: Some(defect), object: None };
        fault(grid, shared, warp, pc, Some(trouble))
    }
}

/// Adds to what an instruction said of its fault where it happened.
fn fault(grid: &Grid<'_>, shared: &Shared, warp: u32, pc: u32, trouble: Option<Trouble>) -> Fault {
    let trouble = trouble.unwrap_or(Trouble {
        kind: FaultKind::Trap,
        lane: 0,
        address: None,
        message: "an instruction failed without saying why".to_owned(),
        defect: None,
        object: None,
    });
    let source = grid.code.source(pc);
    Fault {
        kind: trouble.kind,
        kernel: grid.kernel.to_owned(),
        block: shared.index,
        thread: grid.thread_index(warp * 32 + trouble.lane as u32),
        place: source.1.cloned(),
        ptx_line: source.0,
        address: trouble.address,
        message: trouble.message,
        defect: trouble.defect,
        object: trouble.object,
        failed: Vec::new(),
    }
}
