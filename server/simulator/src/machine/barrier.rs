//! Barriers of a block and of a cluster.

use crate::code::{Handler, NONE, Op, handler};
use crate::machine::fault::FaultKind;
use crate::machine::lanes::lanes;
use crate::machine::warp::Wait;
use crate::machine::{Exec, Next};

/// Barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// Warpgroups of a block; each has a barrier of its own, after the named ones.
const WARPGROUPS: usize = 8;
/// Named barriers, and those of warpgroups.
pub(crate) const ALL_BARRIERS: usize = BARRIERS + WARPGROUPS;

/// A named barrier.
#[derive(Debug, Clone, Default)]
pub(crate) struct Barrier {
    /// Lanes that have arrived, by warp.
    arrived: Vec<u32>,
    /// Threads that it waits for; all of the block where nothing is said.
    expected: Option<u32>,
    /// Times that it has completed.
    pub generation: u64,
    /// `bar.red`: threads whose predicate held, and threads, so far.
    sum: u32,
    threads: u32,
    /// The same of the time before.
    last: (u32, u32),
}

impl Barrier {
    /// Makes it new, for a block of `warps`.
    pub fn restart(&mut self, warps: usize) {
        self.arrived.clear();
        self.arrived.resize(warps, 0);
        (self.expected, self.generation, self.sum, self.threads) = (None, 0, 0, 0);
    }

    /// Completes it if all have arrived that have not exited. Exited lanes of a warp that has arrived count as arrived,
    /// since an explicit count is a multiple of the warp's size.
    pub fn check(&mut self, live: &[u32]) {
        let done = match self.expected {
            _ if self.threads == 0 => false,
            None => self.arrived.iter().zip(live).all(|(arrived, live)| live & !arrived == 0),
            Some(expected) => {
                let there = |(arrived, live): (&u32, &u32)| match arrived {
                    0 => 0,
                    arrived => (arrived | !live).count_ones(),
                };
                self.arrived.iter().zip(live).map(there).sum::<u32>() >= expected
            }
        };
        if done {
            self.arrived.fill(0);
            self.generation += 1;
            self.last = (self.sum, self.threads);
            (self.sum, self.threads, self.expected) = (0, 0, None);
        }
    }
}

/// The barrier of a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterBarrier {
    /// Threads that have arrived.
    pub arrived: u32,
    /// Threads that have not exited.
    pub live: u32,
    /// Times that it has completed.
    pub generation: u64,
}

impl ClusterBarrier {
    /// Completes it if all have arrived.
    pub fn check(&mut self) {
        if self.arrived != 0 && self.arrived >= self.live {
            self.arrived = 0;
            self.generation += 1;
        }
    }
}

/// What `bar.red` makes of the predicates, in [`Op::aux`]; [`SYNC`] for the plain barrier.
pub(crate) const SYNC: u32 = 0;
/// `bar.arrive`: does not wait.
pub(crate) const ARRIVE: u32 = 1;
/// `bar.red.popc`.
pub(crate) const POPC: u32 = 2;
/// `bar.red.and`.
pub(crate) const AND: u32 = 3;
/// `bar.red.or`.
pub(crate) const OR: u32 = 4;

/// The bits of these.
const KIND: u32 = 7;
/// In [`Op::aux`]: all lanes of a warp must come to it together.
pub(crate) const ALIGNED: u32 = 8;

/// `bar`, `barrier`: slots are the result, the barrier, the count, the predicate.
pub(crate) fn barrier() -> Handler {
    handler!(run_barrier)
}

#[inline(always)]
unsafe fn run_barrier(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: lowering gives this op single rows and a mask.
    unsafe {
        let first = mask.trailing_zeros() as usize;
        if let Wait::Barrier { id, .. } = x.group.wait {
            x.group.wait = Wait::Nothing;
            x.check_going_on(id);
            result(x, op, mask, id);
            return Next::Advance;
        }
        let id = x.registers.get::<u32>(op.slots[1], first) as usize;
        if id >= BARRIERS {
            return x.fault(FaultKind::Trap, first, None, format!("barrier {id} of {BARRIERS}"));
        }
        let count = (op.slots[2] != NONE).then(|| x.registers.get::<u32>(op.slots[2], first));
        let held = if op.slots[3] == NONE { 0 } else { x.registers.predicate(op.slots[3]) & mask };
        x.check_arrival(op, mask, id);
        let barrier = &mut x.block.barriers[id];
        let generation = barrier.generation;
        barrier.arrived[x.warp.index as usize] |= mask;
        barrier.expected = count;
        barrier.sum += held.count_ones();
        barrier.threads += mask.count_ones();
        barrier.check(&x.block.live);
        if op.aux & KIND == ARRIVE {
            return Next::Advance;
        }
        if barrier.generation > generation {
            x.check_going_on(id);
            result(x, op, mask, id);
            return Next::Advance;
        }
        pass_others(x, mask);
        x.wait(Wait::Barrier { id, generation })
    }
}

/// `wgmma.wait_group`: waits for the four warps of the warpgroup.
pub(crate) fn warpgroup() -> Handler {
    handler!(run_warpgroup)
}

#[inline(always)]
unsafe fn run_warpgroup(x: &mut Exec<'_>, _op: &Op, mask: u32) -> Next {
    let id = BARRIERS + x.warp.index as usize / 4 % WARPGROUPS;
    if let Wait::Barrier { .. } = x.group.wait {
        x.group.wait = Wait::Nothing;
        x.check_going_on(id);
        return Next::Advance;
    }
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let mask = x.group.mask;
    let barrier = &mut x.block.barriers[id];
    let generation = barrier.generation;
    if let Some(shadow) = x.block.shadow.as_deref_mut() {
        shadow.clocks.arrive(x.warp.index, id, generation);
    }
    barrier.arrived[x.warp.index as usize] |= mask;
    barrier.expected = Some(4 * 32);
    barrier.threads += mask.count_ones();
    barrier.check(&x.block.live);
    if barrier.generation > generation {
        x.check_going_on(id);
        return Next::Advance;
    }
    x.wait(Wait::Barrier { id, generation })
}

/// Sends the lanes whose guard is false on; the others are left in the group.
fn pass_others(x: &mut Exec<'_>, mask: u32) {
    let rest = x.group.mask & !mask;
    if rest != 0 {
        x.warp.add(crate::machine::warp::Group { pc: x.group.pc + 1, mask: rest, ..x.group });
        x.group.mask = mask;
    }
}

unsafe fn result(x: &mut Exec<'_>, op: &Op, mask: u32, id: usize) {
    let (sum, threads) = x.block.barriers[id].last;
    let r = x.registers;
    // SAFETY: the caller's promise.
    unsafe {
        match op.aux & KIND {
            POPC => lanes(mask).for_each(|lane| r.set::<u32>(op.slots[0], lane, sum)),
            AND => r.set_predicate(op.slots[0], mask, if sum == threads { mask } else { 0 }),
            OR => r.set_predicate(op.slots[0], mask, if sum > 0 { mask } else { 0 }),
            _ => {}
        }
    }
}

/// `barrier.cluster.arrive`.
pub(crate) fn cluster_arrive() -> Handler {
    handler!(run_cluster_arrive)
}

#[inline(always)]
unsafe fn run_cluster_arrive(x: &mut Exec<'_>, _op: &Op, mask: u32) -> Next {
    if let Some(shadow) = x.block.shadow.as_deref_mut() {
        shadow.clocks.release(x.warp.index);
        shadow.clocks.step(x.warp.index);
    }
    let barrier = &mut x.cluster.barrier;
    for lane in lanes(mask) {
        x.block.cluster_generation[x.warp.index as usize * 32 + lane] = barrier.generation;
    }
    barrier.arrived += mask.count_ones();
    barrier.check();
    Next::Advance
}

/// `barrier.cluster.wait`.
pub(crate) fn cluster_wait() -> Handler {
    handler!(run_cluster_wait)
}

#[inline(always)]
unsafe fn run_cluster_wait(x: &mut Exec<'_>, _op: &Op, mask: u32) -> Next {
    if x.group.wait != Wait::Nothing {
        x.group.wait = Wait::Nothing;
        acquire(x);
        return Next::Advance;
    }
    let arrived_at = |lane: usize| x.block.cluster_generation[x.warp.index as usize * 32 + lane];
    let generation = lanes(mask).map(arrived_at).max().unwrap_or(0);
    if x.cluster.barrier.generation > generation {
        acquire(x);
        return Next::Advance;
    }
    pass_others(x, mask);
    x.wait(Wait::Cluster { generation })
}

/// Tells checks that the cluster's barrier is past.
fn acquire(x: &mut Exec<'_>) {
    if let Some(shadow) = x.block.shadow.as_deref_mut() {
        shadow.clocks.acquire(x.warp.index);
    }
}
