//! Runs a warp for a slice of instructions.

use std::sync::Arc;

use crate::caches::Caches;
use crate::checks::{Checker, DefectKind};
use crate::code::{Code, HIDDEN, Op};
use crate::counters::Counts;
use crate::machine::access::Span;
use crate::machine::block::{Cluster, Shared, is_ready};
use crate::machine::fault::{Failed, FaultKind, Trouble};
use crate::machine::grid::Grid;
use crate::machine::lanes::Registers;
use crate::machine::warp::{Group, PATIENCE, Wait, Warp};
use crate::memory::Allocations;

/// What a handler wants done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The op after it.
    Advance,
    /// The op at `Exec::group.pc`, which the handler has set.
    Jump,
    /// Another group: the handler has put this one away.
    Switch,
    /// The handler has written down a fault.
    Fault,
}

/// How a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slice {
    /// All lanes have exited.
    Done,
    /// The slice is used up.
    Used,
    /// No group can run.
    Blocked,
    /// A fault, in [`Exec::trouble`] at the op of [`Exec::group`].
    Fault,
}

/// A running group and what it sees. Handlers work on this.
pub struct Exec<'a> {
    /// Rows of the current frame, and the constants.
    pub(crate) registers: Registers,
    /// The running group; its mask is that of the lanes that are active.
    pub(crate) group: Group,
    /// Its warp.
    pub(crate) warp: &'a mut Warp,
    /// Its block.
    pub(crate) block: &'a mut Shared,
    /// What the blocks of its cluster share.
    pub(crate) cluster: &'a mut Cluster,
    /// The launch.
    pub(crate) grid: &'a Grid<'a>,
    /// The kernel's code.
    pub(crate) code: &'a Code,
    /// Counters by op, where they are wanted.
    pub(crate) counts: Option<&'a mut Counts>,
    /// The caches, where they are modelled.
    pub(crate) caches: Option<&'a mut Caches>,
    /// The allocations as they were when last looked at.
    pub(crate) allocations: &'a mut Arc<Allocations>,
    /// The allocation that was hit last.
    pub(crate) span: Span,
    /// What is looked for, where anything is.
    pub(crate) checker: Option<&'a mut Checker>,
    /// A place before which the group must stop, since another may join it there.
    pub(crate) stop: u32,
    /// What went wrong.
    pub(crate) trouble: Option<Trouble>,
    /// Assertions of the unit that failed, and where the first was.
    pub(crate) failed: &'a mut Vec<Failed>,
    /// The op of the first.
    pub(crate) failed_at: u32,
}

impl Exec<'_> {
    /// Points at the rows of the running group's frame.
    pub(crate) fn enter(&mut self) {
        let frame = &mut self.warp.frames[self.group.frame as usize];
        self.registers.bases[0] = frame.rows.as_mut_ptr().cast();
        self.registers.predicates = frame.predicates.as_mut_ptr();
        self.stop = self.warp.next_meeting(self.group.frame, self.group.pc);
    }

    /// Puts the running group away.
    pub(crate) fn leave(&mut self) {
        self.warp.add(self.group);
    }

    /// Makes the running group wait at its instruction.
    pub(crate) fn wait(&mut self, wait: Wait) -> Next {
        self.group.wait = wait;
        self.leave();
        Next::Switch
    }

    /// Writes down a fault of the lowest lane of `mask`.
    pub(crate) fn fault(
        &mut self,
        kind: FaultKind,
        lane: usize,
        address: Option<u64>,
        message: String,
    ) -> Next {
        self.trouble = Some(Trouble { kind, lane, address, message, defect: kind.defect(), object: None });
        Next::Fault
    }

    /// The same, where more is known of the defect.
    pub(crate) fn fault_of(
        &mut self,
        defect: DefectKind,
        kind: FaultKind,
        lane: usize,
        address: Option<u64>,
        message: String,
        object: Option<String>,
    ) -> Next {
        self.trouble = Some(Trouble { kind, lane, address, message, defect: Some(defect), object });
        Next::Fault
    }

    /// Runs the warp for about `budget` instructions.
    pub(crate) fn slice(&mut self, budget: u64) -> Slice {
        let end = self.warp.spent() + budget;
        loop {
            if self.warp.live == 0 {
                return Slice::Done;
            }
            let (block, cluster) = (&*self.block, &*self.cluster);
            let ready = |group: &Group| is_ready(group, block, cluster);
            let Some(group) = self.warp.take(ready) else { return Slice::Blocked };
            self.group = group;
            self.enter();
            let counting = self.counts.is_some();
            let outcome = if counting { self.run::<true>(end) } else { self.run::<false>(end) };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// Runs the group until another's turn comes (`None`) or the slice ends.
    fn run<const COUNT: bool>(&mut self, end: u64) -> Option<Slice> {
        let code = self.code;
        loop {
            let op = &code.ops[self.group.pc as usize];
            // SAFETY: lowering gives each op a guard among the frame's masks.
            let mask =
                self.group.mask & (unsafe { self.registers.predicate(u32::from(op.guard)) } ^ op.negate);
            self.warp.ran += 1;
            if COUNT {
                self.count(op, mask);
            }
            // SAFETY: lowering chose the handler for these slots, and `handler!` for this processor.
            let next = if mask == 0 { Next::Advance } else { unsafe { (op.run)(self, op, mask) } };
            match next {
                Next::Advance => {
                    self.group.pc += 1;
                    if self.group.pc != self.stop {
                        continue;
                    }
                    self.leave();
                    return None;
                }
                Next::Jump => {
                    if self.warp.spent() >= end {
                        self.leave();
                        return Some(Slice::Used);
                    }
                    if self.group.pc >= self.stop {
                        self.leave();
                        return None;
                    }
                }
                Next::Switch => {
                    return (self.warp.spent() >= end && self.warp.live != 0).then_some(Slice::Used);
                }
                Next::Fault => return Some(Slice::Fault),
            }
        }
    }

    #[inline(always)]
    fn count(&mut self, op: &Op, mask: u32) {
        if op.flags & HIDDEN != 0 {
            return;
        }
        let active = self.group.mask;
        if let Some(counts) = &mut self.counts {
            let count = &mut counts.ops[self.group.pc as usize];
            count.warps += 1;
            count.active += u64::from(active.count_ones());
            count.guarded += u64::from(mask.count_ones());
        }
    }

    /// After a jump backward: lets others of the warp run, if this group has gone round long enough.
    #[inline(always)]
    pub(crate) fn went_back(&mut self) -> Next {
        if self.warp.groups.is_empty() {
            return Next::Jump;
        }
        self.group.back_branches += 1;
        if self.group.back_branches >= PATIENCE {
            self.group.back_branches = 0;
            self.group.yielded = true;
            self.leave();
            return Next::Switch;
        }
        self.stop = self.warp.next_meeting(self.group.frame, self.group.pc);
        Next::Jump
    }
}
