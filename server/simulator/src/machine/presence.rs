//! Looks at barriers and at instructions of a warp's lanes together: is everyone there, and what do they order?

use crate::checks::DefectKind;
use crate::code::{Code, JUMPS, LEAVES, NONE, Op, PICKS};
use crate::machine::Exec;
use crate::machine::barrier::ALIGNED;
use crate::machine::lanes::lanes;
use crate::machine::sync::Exchange;
use crate::machine::warp::{Divided, Group, Wait, Warp};

/// Ops that are looked at between a group and its exit.
const NEAR: usize = 16;

impl Exec<'_> {
    /// A group of lanes arrives at barrier `id` of the block.
    #[inline(always)]
    pub(crate) fn check_arrival(&mut self, op: &Op, mask: u32, id: usize) {
        let warp = self.warp.index;
        let generation = self.block.barriers[id].generation;
        if let Some(shadow) = self.block.shadow.as_deref_mut() {
            shadow.clocks.arrive(warp, id, generation);
        }
        if self.checks_all() && (mask != self.warp.live || self.warp.divided.is_some()) {
            self.check_division(op, mask, id, generation);
        }
    }

    /// Lanes of the warp come to a barrier that others of it have not come to.
    #[cold]
    fn check_division(&mut self, op: &Op, mask: u32, id: usize, generation: u64) {
        let pc = self.group.pc;
        let current = |d: &Divided| d.id == id && d.generation == generation;
        if let Some(before) = self.warp.divided.filter(current) {
            let elsewhere = before.pc != pc && self.code.source(before.pc).1 != self.code.source(pc).1;
            if elsewhere {
                // Of two barriers, the first one was passed by.
                let first = if reaches(self.code, before.pc + 1, pc) {
                    before
                } else {
                    Divided { pc, lane: mask.trailing_zeros() as usize, ..before }
                };
                self.report_division(&first);
            }
            if mask | before.came == self.warp.live {
                self.warp.divided = None;
            }
            return;
        }
        self.warp.divided = None;
        if op.aux & ALIGNED == 0 || mask == self.warp.live {
            return;
        }
        let rest = self.group.mask & !mask;
        let mut absent = 0;
        if rest != 0 && !self.is_leaving(self.group.frame, pc + 1) {
            absent |= rest;
        }
        for group in &self.warp.groups {
            let waits_too = matches!(group.wait, Wait::Barrier { id: other, .. } if other == id);
            if !waits_too && self.skips(group, pc) {
                absent |= group.mask;
            }
        }
        let lane = mask.trailing_zeros() as usize;
        self.warp.divided = Some(Divided { pc, id, generation, lane, came: mask, absent });
    }

    /// Whether a group passes a barrier by: it goes where lanes go after the barrier, and has more to do there than to exit. One that
    /// goes a way of its own and exits is an early exit.
    fn skips(&self, group: &Group, barrier: u32) -> bool {
        if self.is_leaving(group.frame, group.pc) {
            return false;
        }
        group.frame != self.group.frame || reaches(self.code, barrier + 1, group.pc)
    }

    /// Whether nothing but an exit is left for lanes at `pc`.
    fn is_leaving(&self, mut frame: u32, mut pc: u32) -> bool {
        for _ in 0..NEAR {
            let Some(op) = self.code.ops.get(pc as usize) else { return false };
            if op.guard != 0 {
                return false;
            }
            if op.flags & LEAVES != 0 {
                let at = &self.warp.frames[frame as usize];
                if at.depth == 0 {
                    return true;
                }
                (pc, frame) = (at.return_pc, at.parent);
            } else if op.flags & JUMPS != 0 {
                pc = op.immediate as u32;
            } else {
                return false;
            }
        }
        false
    }

    fn report_division(&mut self, divided: &Divided) {
        let here = std::mem::replace(&mut self.group.pc, divided.pc);
        self.note(DefectKind::DivergentBarrier, divided.lane, || {
            "a barrier of the block that other threads of the same warp pass by: what it orders, and whether it ever ends, is left to chance"
                .to_owned()
        });
        self.group.pc = here;
    }

    /// The running group goes on after barrier `id`.
    #[inline(always)]
    pub(crate) fn check_going_on(&mut self, id: usize) {
        let generation = self.block.barriers[id].generation;
        if let Some(shadow) = self.block.shadow.as_deref_mut() {
            shadow.clocks.leave(self.warp.index, id, generation);
        }
    }

    /// Lanes exit.
    #[inline(always)]
    pub(crate) fn check_leaving(&mut self, mask: u32) {
        if self.warp.divided.is_some() || !self.warp.missed.is_empty() {
            self.check_missed(mask);
        }
    }

    #[cold]
    fn check_missed(&mut self, mask: u32) {
        if let Some(divided) = self.warp.divided
            && divided.absent & mask != 0
        {
            if self.block.barriers[divided.id].generation == divided.generation {
                self.report_division(&divided);
            }
            self.warp.divided = None;
        }
        let missed = std::mem::take(&mut self.warp.missed);
        for (pc, absent) in missed {
            let Some(lane) = waiting_at(self.warp, pc) else { continue };
            if absent & mask == 0 {
                self.warp.missed.push((pc, absent));
                continue;
            }
            let here = std::mem::replace(&mut self.group.pc, pc);
            self.note(DefectKind::MissingLanes, lane, || {
                let count = absent.count_ones();
                format!(
                    "its mask names {count} threads of the warp that never come to it: they exit elsewhere"
                )
            });
            self.group.pc = here;
        }
    }

    /// Lanes wait for `absent` ones at an instruction of a warp's lanes together.
    #[cold]
    pub(crate) fn check_waiting(&mut self, absent: u32) {
        if !self.checks_all() {
            return;
        }
        let pc = self.group.pc;
        let mut missed = 0;
        for group in self.warp.groups.iter().filter(|group| group.mask & absent != 0) {
            if group.pc != pc && self.skips(group, pc) {
                missed |= group.mask & absent;
            }
        }
        let old: Vec<(u32, u32)> =
            self.warp.missed.iter().copied().filter(|(at, _)| waiting_at(self.warp, *at).is_some()).collect();
        self.warp.missed = old;
        if missed != 0 {
            self.warp.missed.push((pc, missed));
        }
    }

    /// Lanes of the warp have met in an instruction that orders them.
    #[inline(always)]
    pub(crate) fn check_meeting(&mut self) {
        if let Some(shadow) = self.block.shadow.as_deref_mut() {
            shadow.clocks.step(self.warp.index);
        }
    }

    /// Looks at the masks that lanes name: does it hold the lane itself, and is everyone there that a lane reads from?
    #[inline(always)]
    pub(crate) fn check_members(
        &mut self,
        op: &Op,
        mask: u32,
        source: impl Fn(&Exchange, usize) -> Option<usize>,
    ) {
        if !self.checks_all() || op.slots[5] == NONE {
            return;
        }
        let (registers, live) = (self.registers, self.warp.live);
        for lane in lanes(mask) {
            // SAFETY: lowering gives these ops a single row of members.
            let members = unsafe { registers.get::<u32>(op.slots[5], lane) };
            if members >> lane & 1 == 0 {
                self.note(DefectKind::MissingLanes, lane, || {
                    format!("its mask {members:#010x} leaves out lane {lane}, which executes it")
                });
                return;
            }
            let gone = members & !live;
            if gone != 0
                && let Some(from) = source(&self.warp.exchange, lane).filter(|from| gone >> from & 1 == 1)
            {
                self.note(DefectKind::MissingLanes, lane, || {
                    format!("lane {lane} reads from lane {from}, which its mask {members:#010x} names but which is not there")
                });
                return;
            }
        }
    }
}

/// A lane that waits at `pc` for others of its warp.
fn waiting_at(warp: &Warp, pc: u32) -> Option<usize> {
    let waits = |group: &&Group| group.pc == pc && matches!(group.wait, Wait::Lanes { .. });
    warp.groups.iter().find(waits).map(|group| group.mask.trailing_zeros() as usize)
}

/// Whether lanes that are at `from` can come to `to`, within a function.
fn reaches(code: &Code, from: u32, to: u32) -> bool {
    let mut seen = vec![false; code.ops.len()];
    let mut left = vec![from];
    while let Some(mut pc) = left.pop() {
        while let Some(op) = code.ops.get(pc as usize).filter(|_| !seen[pc as usize]) {
            if pc == to {
                return true;
            }
            seen[pc as usize] = true;
            let always = op.guard == 0;
            if op.flags & JUMPS != 0 {
                left.push(op.immediate as u32);
            }
            if op.flags & PICKS != 0 {
                left.extend(code.tables.get(op.aux as usize).into_iter().flatten());
            }
            if always && op.flags & (JUMPS | PICKS | LEAVES) != 0 {
                break;
            }
            pc += 1;
        }
    }
    false
}
