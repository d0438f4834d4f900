//! A launch: its grid, dealt in blocks over worker threads.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::caches::{Caches, Taken};
use crate::checks::{Checker, Checks, Defect, Found};
use crate::code::Code;
use crate::counters::Counts;
use crate::machine::access::Span;
use crate::machine::block::{Unit, Worker};
use crate::machine::fault::{Fault, FaultKind};
use crate::machine::{Host, Limits, Options};
use crate::memory::Memory;

/// Instructions that a cluster runs before a worker that must share itself turns to the next.
const TURN: u64 = 1 << 18;

/// The same where all blocks are resident and wait for each other at the grid's barrier: one that spins there soon makes room.
const COOPERATIVE_TURN: u64 = 1 << 14;

/// What all blocks of a launch see.
pub(crate) struct Grid<'a> {
    pub kernel: &'a str,
    pub code: &'a Code,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub dynamic_shared: u32,
    /// Static and dynamic shared memory.
    pub shared_bytes: u32,
    pub parameters: &'a [u8],
    /// Where cooperative groups find the grid's barrier.
    pub workspace: u64,
    /// Number of the launch.
    pub number: u64,
    pub cooperative: bool,
    /// Registers of a thread, about.
    pub registers: u32,
    pub limits: Limits,
    pub memory: &'a Memory,
    pub host: &'a dyn Host,
    pub cancel: &'a AtomicBool,
}

impl Grid<'_> {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Clusters of the grid; blocks, where there are no clusters.
    pub fn clusters(&self) -> u64 {
        (0..3).map(|axis| u64::from(self.grid[axis] / self.cluster[axis])).product()
    }

    /// Index of the block with this rank in a cluster.
    pub fn block_index(&self, cluster: u64, rank: u32) -> [u32; 3] {
        let per_axis: [u64; 3] = std::array::from_fn(|axis| u64::from(self.grid[axis] / self.cluster[axis]));
        let at =
            [cluster % per_axis[0], cluster / per_axis[0] % per_axis[1], cluster / per_axis[0] / per_axis[1]];
        let inner = [
            rank % self.cluster[0],
            rank / self.cluster[0] % self.cluster[1],
            rank / self.cluster[0] / self.cluster[1],
        ];
        std::array::from_fn(|axis| at[axis] as u32 * self.cluster[axis] + inner[axis])
    }

    /// A block's number in the grid.
    pub fn block_number(&self, index: [u32; 3]) -> u64 {
        let [x, y, z] = index.map(u64::from);
        (z * u64::from(self.grid[1]) + y) * u64::from(self.grid[0]) + x
    }

    /// Index of the thread with this number in its block.
    #[inline(always)]
    pub fn thread_index(&self, thread: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        if y == 1 && self.block[2] == 1 {
            return [thread, 0, 0];
        }
        [thread % x, thread / x % y, thread / x / y]
    }

    /// Has the caller given up?
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// The fault of a kernel that the caller gave up on.
    pub fn cancelled(&self) -> Fault {
        self.whole(FaultKind::Cancelled, "the kernel was cancelled before it ended".to_owned())
    }

    /// The fault of a launch that can't be.
    pub fn invalid(&self, message: String) -> Fault {
        self.whole(FaultKind::InvalidLaunch, message)
    }

    fn whole(&self, kind: FaultKind, message: String) -> Fault {
        let kernel = self.kernel.to_owned();
        Fault {
            kind,
            kernel,
            block: [0; 3],
            thread: [0; 3],
            place: None,
            ptx_line: 0,
            address: None,
            message,
            defect: kind.defect(),
            object: None,
            failed: Vec::new(),
        }
    }

    /// Index of the block with this number in the grid.
    pub fn index_of(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// The caches of the device that the options name.
    fn caches(&self, options: &Options) -> Option<Box<Caches>> {
        let taken = Taken {
            threads: self.threads(),
            shared: self.shared_bytes - self.code.reserved_shared,
            registers: self.registers,
            blocks: self.grid.iter().map(|&n| u64::from(n)).product(),
        };
        let device = options.caches.filter(|_| options.counters)?;
        Some(Box::new(Caches::new(device, self.code, taken)))
    }

    /// What a worker looks for.
    fn checker(&self, options: &Options, all: bool) -> Option<Checker> {
        let blocks =
            options.checks == Checks::All && !self.code.ordered && !self.cooperative && self.grid != [1; 3];
        (options.checks != Checks::None).then(|| Checker::new(options.checks, all, blocks, self.number))
    }
}

/// The clusters that run, in their order: all, or a share spread evenly. A grid may have more of them than fit a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    all: u64,
    taken: u64,
    rest: Option<Rest>,
}

/// The places from `from` on, taken in strides modulo their number, which has no divisor in common with the stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    from: u64,
    stride: u64,
}

impl Chosen {
    /// Of `all` clusters this share (above 0, below 1), at least one; or all of them.
    pub fn new(all: u64, share: Option<f64>) -> Self {
        let share = share.filter(|share| *share > 0.0 && *share < 1.0);
        let taken = share.map_or(all, |share| ((all as f64 * share).ceil() as u64).clamp(1, all.max(1)));
        Self { all, taken, rest: None }
    }

    /// Those of the places from `from` on, in an order of which each beginning is spread evenly over them: by strides of the golden section.
    pub fn rest(self, from: u64) -> Self {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let left = self.taken.saturating_sub(from);
        let start = ((left as f64 * GOLDEN) as u64).max(1);
        let stride = (start..).find(|stride| divisor(*stride, left) == 1).unwrap_or(1);
        Self { rest: Some(Rest { from, stride }), ..self }
    }

    /// How many run.
    fn len(&self) -> u64 {
        self.taken.saturating_sub(self.rest.map_or(0, |rest| rest.from))
    }

    /// The number of the cluster that runs in place `at`.
    pub fn get(&self, at: u64) -> Option<u64> {
        let left = self.len();
        let place = match self.rest {
            _ if at >= left => return None,
            None => at,
            Some(Rest { from, stride }) => {
                from + (u128::from(at) * u128::from(stride) % u128::from(left)) as u64
            }
        };
        Some((u128::from(place) * u128::from(self.all) / u128::from(self.taken)) as u64)
    }
}

/// The greatest common divisor.
fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// What workers share.
struct Progress {
    next: AtomicU64,
    /// The lowest cluster that has failed, with its fault.
    failed: AtomicU64,
    fault: Mutex<Option<Fault>>,
    /// That fault is a failed assertion.
    asserts: AtomicBool,
    instructions: AtomicU64,
    blocks: AtomicU64,
}

impl Progress {
    /// Keeps the fault of the lowest cluster. Whether further ones may begin: where assertions fail, all clusters that a device
    /// would hold at once get to say so.
    fn fail(&self, grid: &Grid<'_>, cluster: u64, mut fault: Fault) -> bool {
        let mut kept = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = fault.kind == FaultKind::Assert && cluster < u64::from(grid.limits.multiprocessors);
        let lowest = cluster < self.failed.load(Ordering::SeqCst);
        if lowest {
            self.failed.store(cluster, Ordering::SeqCst);
        }
        match &mut *kept {
            None => *kept = Some(fault),
            Some(other) if other.kind == FaultKind::Assert && fault.kind == FaultKind::Assert => {
                let (first, last) =
                    if lowest { (&mut fault, &mut *other) } else { (&mut *other, &mut fault) };
                first.failed.append(&mut last.failed);
                if lowest {
                    *other = fault;
                }
            }
            Some(other) if lowest => *other = fault,
            Some(_) => {}
        }
        self.asserts.store(kept.as_ref().is_some_and(|one| one.kind == FaultKind::Assert), Ordering::SeqCst);
        goes_on
    }

    /// Whether a cluster need not run, after what has failed.
    fn is_over(&self, grid: &Grid<'_>, cluster: u64) -> bool {
        cluster > self.failed.load(Ordering::SeqCst)
            && !(self.asserts.load(Ordering::SeqCst) && cluster < u64::from(grid.limits.multiprocessors))
    }
}

/// What a launch leaves besides its effects on memory.
pub(crate) struct Outcome {
    pub counts: Option<Counts>,
    /// The most updates by atomics of one line, where caches were modelled.
    pub hottest: Option<u64>,
    pub blocks: u64,
    pub instructions: u64,
}

/// Runs the chosen clusters: all of them, or until one fails.
pub(crate) fn run(
    grid: &Grid<'_>,
    options: &Options,
    chosen: Chosen,
) -> (Outcome, Vec<Defect>, Option<Fault>) {
    let progress = Progress {
        next: AtomicU64::new(0),
        failed: AtomicU64::new(u64::MAX),
        fault: Mutex::new(None),
        asserts: AtomicBool::new(false),
        instructions: AtomicU64::new(0),
        blocks: AtomicU64::new(0),
    };
    // What a launch after the first that was sampled reads may never have been written.
    let is_whole = chosen.len() == grid.clusters() && !is_past(options.until);
    let worker = || Worker {
        caches: None,
        counts: options.counters.then(|| Counts::new(grid.code.ops.len())),
        allocations: grid.memory.snapshot(),
        span: Span::default(),
        checker: grid.checker(options, is_whole),
    };
    let caches = grid.caches(options);
    let mut all = if grid.code.ordered || grid.cooperative {
        let mut worker = Worker { caches, ..worker() };
        in_turns(grid, &mut worker, &progress, chosen);
        vec![worker]
    } else {
        // Caches depend on the order of what reaches them.
        let most = if caches.is_some() { 1 } else { options.workers };
        let count = most.clamp(1, usize::try_from(chosen.len()).unwrap_or(usize::MAX).max(1));
        let mut workers: Vec<Worker> = (0..count).map(|_| worker()).collect();
        workers[0].caches = caches;
        let begun = Instant::now();
        all_together(grid, &mut workers, &progress, (chosen, options.until));
        let taken = progress.next.swap(0, Ordering::SeqCst);
        if taken < chosen.len() && options.until.is_some() {
            // The one that is cut off has its sample in a tenth of the time that it had; those that come later hardly any.
            let time = (begun.elapsed() / 10).max(SAMPLED);
            all_together(
                grid,
                &mut workers,
                &progress,
                (chosen.rest(taken), Instant::now().checked_add(time)),
            );
        }
        workers
    };
    let found = all.iter_mut().filter_map(|worker| worker.checker.take()).map(|checker| checker.found);
    let defects = Found::merge(found.collect::<Vec<_>>());
    let first = all.swap_remove(0);
    let (mut counts, caches) = (first.counts, first.caches);
    for other in all {
        if let (Some(sum), Some(counts)) = (&mut counts, other.counts) {
            sum.add(&counts);
        }
    }
    let outcome = Outcome {
        counts,
        hottest: caches.map(|caches| caches.hottest()),
        blocks: progress.blocks.into_inner(),
        instructions: progress.instructions.into_inner(),
    };
    (outcome, defects, progress.fault.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// For how long the blocks of a launch are sampled, at least. Enough for hundreds of blocks of most kernels.
const SAMPLED: Duration = Duration::from_millis(20);

fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// Has all workers take clusters, until there are none, or until then.
fn all_together(
    grid: &Grid<'_>,
    workers: &mut [Worker],
    progress: &Progress,
    (chosen, until): (Chosen, Option<Instant>),
) {
    std::thread::scope(|scope| {
        let Some((first, others)) = workers.split_first_mut() else { return };
        for worker in others {
            scope.spawn(|| one_by_one(grid, worker, progress, (chosen, until)));
        }
        one_by_one(grid, first, progress, (chosen, until));
    });
}

/// Takes one cluster after the other, each to its end.
fn one_by_one(
    grid: &Grid<'_>,
    worker: &mut Worker,
    progress: &Progress,
    (chosen, until): (Chosen, Option<Instant>),
) {
    let mut unit = Unit::new(grid, grid.code);
    'clusters: loop {
        if is_past(until) && progress.next.load(Ordering::Relaxed) > 0 {
            return;
        }
        let at = progress.next.fetch_add(1, Ordering::Relaxed);
        let Some(number) = chosen.get(at) else { return };
        if progress.is_over(grid, number) {
            return;
        }
        unit.restart(grid, grid.code, number, worker.checker.as_ref());
        loop {
            match unit.run(grid, worker, TURN) {
                Ok(true) => break,
                Ok(false) if progress.is_over(grid, number) => return abandon(&unit, progress),
                Ok(false) => {}
                Err(fault) => {
                    abandon(&unit, progress);
                    if progress.fail(grid, number, fault) {
                        continue 'clusters;
                    }
                    return;
                }
            }
        }
        finish(&unit, progress);
    }
}

/// Runs clusters in order on one worker. One that has not ended after its turn may spin on what another will write, so then
/// the next is started beside it.
fn in_turns(grid: &Grid<'_>, worker: &mut Worker, progress: &Progress, chosen: Chosen) {
    let mut waiting = (0..chosen.len()).map_while(|at| chosen.get(at));
    let mut running: Vec<(u64, Unit)> = Vec::new();
    let mut spare: Vec<Unit> = Vec::new();
    // A device holds at least a block a multiprocessor; more start only as those spin.
    let (resident, turn) = if grid.cooperative {
        (usize::MAX, COOPERATIVE_TURN)
    } else {
        (grid.limits.multiprocessors as usize, TURN)
    };
    loop {
        while running.len() < resident {
            let Some(number) = waiting.next().filter(|&number| !progress.is_over(grid, number)) else {
                break;
            };
            let mut unit = spare.pop().unwrap_or_else(|| Unit::new(grid, grid.code));
            unit.restart(grid, grid.code, number, worker.checker.as_ref());
            match unit.run(grid, worker, turn) {
                Ok(true) => {
                    finish(&unit, progress);
                    spare.push(unit);
                }
                Ok(false) => {
                    running.push((number, unit));
                    if !grid.cooperative {
                        break;
                    }
                }
                Err(fault) => {
                    abandon(&unit, progress);
                    if !progress.fail(grid, number, fault) {
                        return running.iter().for_each(|(_, unit)| abandon(unit, progress));
                    }
                    spare.push(unit);
                }
            }
        }
        if running.is_empty() {
            return;
        }
        let mut others = std::mem::take(&mut running).into_iter();
        while let Some((number, mut unit)) = others.next() {
            match unit.run(grid, worker, turn) {
                Ok(true) => {
                    finish(&unit, progress);
                    spare.push(unit);
                }
                Ok(false) => running.push((number, unit)),
                Err(fault) => {
                    abandon(&unit, progress);
                    if !progress.fail(grid, number, fault) {
                        return running
                            .into_iter()
                            .chain(others)
                            .for_each(|(_, unit)| abandon(&unit, progress));
                    }
                    spare.push(unit);
                }
            }
        }
    }
}

/// Counts what a cluster ran that did not come to its end.
fn abandon(unit: &Unit, progress: &Progress) {
    progress.instructions.fetch_add(unit.totals().1, Ordering::Relaxed);
}

fn finish(unit: &Unit, progress: &Progress) {
    let (blocks, instructions) = unit.totals();
    progress.blocks.fetch_add(blocks, Ordering::Relaxed);
    progress.instructions.fetch_add(instructions, Ordering::Relaxed);
}
