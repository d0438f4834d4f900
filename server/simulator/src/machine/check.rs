//! Looks at each access for what [`crate::checks`] catches, where that is wanted.

mod report;

use crate::checks::shadow::{ATOMIC, Conflict, SEVERAL, VOLATILE, Who};
use crate::checks::{Checker, Checks};
use crate::code::{NONE, Op};
use crate::counters::Direction;
use crate::machine::Exec;
use crate::machine::access::{
    AS_ATOMIC, AS_VOLATILE, Addresses, Kind, RANK_SHIFT, Space, UNCHECKED, WINDOW, window,
};
use crate::machine::lanes::{FULL, lanes};
use crate::memory::{Stamps, Track};

/// The bytes that a lane stores: as many as an access may have.
pub(crate) type Value = [u8; 64];

/// An access of a warp.
struct Access<'a> {
    op: &'a Op,
    a: &'a Addresses,
    size: u64,
    way: Direction,
    /// [`ATOMIC`], [`VOLATILE`].
    flags: u32,
    /// What a lane stores.
    value: &'a dyn Fn(usize, &mut Value),
}

impl Access<'_> {
    fn what(&self) -> &'static str {
        match self.way {
            Direction::Load => "read",
            Direction::Store => "write",
            Direction::Atomic => "atomic operation",
        }
    }

    /// Whether what was there must have been written.
    fn reads(&self) -> bool {
        self.op.aux & UNCHECKED == 0
    }

    /// Whether a lane stores what lies at `at` already.
    ///
    /// # Safety
    /// As many bytes as the access has must lie at `at`.
    unsafe fn changes_nothing(&self, lane: usize, at: *const u8) -> bool {
        let mut own = [0; 64];
        (self.value)(lane, &mut own);
        // SAFETY: the caller's promise.
        let old = unsafe { std::slice::from_raw_parts(at, self.size as usize) };
        own[..self.size as usize] == *old
    }
}

/// What is seen of an access to global memory.
#[derive(Default)]
struct Seen {
    /// Lanes that read what nothing has written.
    blank: u32,
    /// The first lane that races with another block: whether that wrote, and which it is.
    race: Option<(usize, bool, Option<u64>)>,
}

impl Exec<'_> {
    /// Looks at an access of `size` bytes a lane before it is done. `value` gives what a lane stores.
    #[inline(always)]
    pub(crate) fn check_access<S: Space>(
        &mut self,
        op: &Op,
        a: &Addresses,
        mask: u32,
        size: u64,
        way: Direction,
        value: &dyn Fn(usize, &mut Value),
    ) {
        if self.checker.is_some() {
            let flags = match way {
                Direction::Atomic => ATOMIC,
                _ if op.aux & AS_ATOMIC != 0 => ATOMIC,
                _ if op.aux & AS_VOLATILE != 0 => VOLATILE,
                _ => 0,
            };
            self.check_parts(S::kind, &Access { op, a, size, way, flags, value }, mask);
        }
    }

    /// A generic access may go to several spaces.
    #[inline(never)]
    fn check_parts(&mut self, kind: fn(u64) -> Kind, access: &Access<'_>, mask: u32) {
        let Some(checker) = self.checker.take() else { return };
        let a = access.a;
        let alike = window(a.first) == window(a.end.saturating_sub(1));
        let mut left = mask;
        while left != 0 {
            let here = kind(a.by_lane[left.trailing_zeros() as usize]);
            let same = |lane: &usize| kind(a.by_lane[*lane]) == here;
            let part = if alike { left } else { lanes(left).filter(same).fold(0, |m, lane| m | 1 << lane) };
            left &= !part;
            match here {
                Kind::Global => self.check_global(checker, access, part),
                Kind::Shared => self.check_shared(checker, access, part),
                Kind::Local => self.check_local(checker, access, part),
                Kind::Other => {}
            }
            if access.flags != 0 && matches!(here, Kind::Global | Kind::Shared) {
                self.hand_over(access, part);
            }
        }
        self.checker = Some(checker);
    }

    /// Atomic operations and volatile accesses order what is around them.
    fn hand_over(&mut self, access: &Access<'_>, mask: u32) {
        let warp = self.warp.index;
        let Some(shadow) = self.block.shadow.as_deref_mut() else { return };
        let observes = match access.way {
            Direction::Load => true,
            Direction::Store => false,
            Direction::Atomic => access.op.slots[0] != NONE,
        };
        if observes {
            shadow.clocks.acquire(warp);
        }
        if access.way != Direction::Load {
            shadow.clocks.release(warp);
        }
        // Lanes of a warp that take turns with a lock.
        if access.flags & ATOMIC != 0 && mask != self.warp.live {
            shadow.clocks.step(warp);
        }
    }

    fn check_shared(&mut self, checker: &mut Checker, access: &Access<'_>, mask: u32) {
        let (pc, warp) = (self.group.pc, self.warp.index);
        if access.way == Direction::Load && !access.reads() {
            return;
        }
        let memory = self.block.memory.as_ptr().cast::<u8>();
        let bytes = u64::from(self.block.bytes);
        let Some(shadow) = self.block.shadow.as_deref_mut() else { return };
        let who = shadow.who(warp, pc, access.flags);
        let broadcast = access.way == Direction::Load && access.a.first + access.size == access.a.end;
        // One look for all lanes that read the same.
        let (mask, alone) = match broadcast && mask.count_ones() > 1 {
            true => (1 << mask.trailing_zeros(), false),
            false => (mask, true),
        };
        let (mut blank, mut race) = (0u32, None);
        for lane in lanes(mask) {
            let offset = access.a.by_lane[lane] & (WINDOW - 1);
            if offset >> RANK_SHIFT != 0 || offset + access.size > bytes {
                continue;
            }
            let conflict = if access.way == Direction::Load {
                let reader = if alone { lane as u32 } else { SEVERAL };
                let (conflict, unwritten) = shadow.read(&who, reader, offset, access.size);
                blank |= u32::from(unwritten) << lane;
                conflict
            } else {
                let unwritten = access.way == Direction::Atomic && !shadow.is_written(offset, access.size);
                blank |= u32::from(unwritten) << lane;
                shadow.write(&who, lane as u32, offset, access.size)
            };
            // SAFETY: the range lies in the block's memory, as was just looked at.
            let same = |conflict: &Conflict| unsafe {
                access.way == Direction::Store
                    && conflict.wrote
                    && stores_the_same(access, mask, lane, conflict, &who, memory.add(offset as usize))
            };
            if race.is_none() {
                race = conflict.filter(|conflict| !same(conflict)).map(|conflict| (lane, conflict));
            }
        }
        if blank != 0 && access.reads() {
            self.report_blank(checker, access, blank, |x, at| x.shared_object(at & (WINDOW - 1)));
        }
        if let Some((lane, conflict)) = race {
            self.report_race(checker, access, lane, &conflict);
        }
    }

    fn check_local(&mut self, checker: &mut Checker, access: &Access<'_>, mask: u32) {
        let mut blank = 0;
        for lane in lanes(mask) {
            let offset = access.a.by_lane[lane] & (WINDOW - 1);
            let rows = (offset / 4) as usize..(offset + access.size).div_ceil(4) as usize;
            let Some(rows) = self.warp.local_set.get_mut(rows) else { continue };
            let bit = 1 << lane;
            if access.way != Direction::Store && rows.iter().all(|row| row & bit == 0) {
                blank |= bit;
            }
            if access.way != Direction::Load {
                rows.iter_mut().for_each(|row| *row |= bit);
            }
        }
        if blank != 0 && access.reads() {
            self.report_blank(checker, access, blank, |_, _| "the thread's local memory".to_owned());
        }
    }

    fn check_global(&mut self, checker: &mut Checker, access: &Access<'_>, mask: u32) {
        let (a, last) = (access.a, access.a.end.saturating_sub(1));
        let (launch, block) = (checker.launch, checker.block);
        let uninitialised = checker.uninitialised;
        let mut seen = Seen::default();
        if checker.track(self.allocations, a.first).is_none() {
            // A kernel may have allocated it just now.
            *self.allocations = self.grid.memory.snapshot();
        }
        match checker.track(self.allocations, a.first) {
            Some((track, stamps)) if track.holds(last) => {
                look(track, stamps, access, mask, (launch, block), uninitialised, &mut seen);
            }
            _ => {
                for lane in lanes(mask) {
                    let address = a.by_lane[lane];
                    if let Some((track, stamps)) = checker.track(self.allocations, address)
                        && track.holds(address.saturating_add(access.size - 1))
                    {
                        look(track, stamps, access, 1 << lane, (launch, block), uninitialised, &mut seen);
                    }
                }
            }
        }
        if seen.blank != 0 && access.reads() {
            self.report_blank(checker, access, seen.blank, |x, at| x.global_object(at));
        }
        if let Some((lane, wrote, other)) = seen.race {
            self.report_block_race(checker, access, lane, wrote, other);
        }
    }

    /// Whether races, barriers and masks are looked at.
    #[inline(always)]
    pub(crate) fn checks_all(&self) -> bool {
        self.checker.as_ref().is_some_and(|checker| checker.checks == Checks::All)
    }

    /// Looks at a copy in bulk by one lane.
    pub(crate) fn check_bulk(&mut self, lane: usize, from: (Kind, u64), to: (Kind, u64), size: u64) {
        if self.checker.is_none() || size == 0 {
            return;
        }
        for ((kind, address), way) in [(from, Direction::Load), (to, Direction::Store)] {
            let a = Addresses { by_lane: [address; 32], first: address, end: address + size, bits: address };
            let none = |_: usize, _: &mut Value| {};
            let op = &self.code.ops[self.group.pc as usize];
            let access = Access { op, a: &a, size, way, flags: 0, value: &none };
            let Some(checker) = self.checker.take() else { return };
            match kind {
                Kind::Global if way == Direction::Store => {
                    if let Some((track, _)) = checker.track(self.allocations, address) {
                        track.mark(address, size);
                    }
                }
                Kind::Global => {
                    let unwritten = |(track, _): (&Track, _)| !track.is_any_written(address, size);
                    if checker.uninitialised
                        && checker.track(self.allocations, address).is_some_and(unwritten)
                    {
                        self.report_blank(checker, &access, 1 << lane, |x, at| x.global_object(at));
                    }
                }
                Kind::Shared => self.check_shared_bulk(checker, &access, lane),
                Kind::Local | Kind::Other => {}
            }
            self.checker = Some(checker);
        }
    }

    fn check_shared_bulk(&mut self, checker: &mut Checker, access: &Access<'_>, lane: usize) {
        let (pc, warp) = (self.group.pc, self.warp.index);
        let offset = access.a.first & (WINDOW - 1);
        let Some(shadow) = self.block.shadow.as_deref_mut() else { return };
        let who = shadow.who(warp, pc, 0);
        let (conflict, blank) = match access.way {
            Direction::Load => shadow.read(&who, lane as u32, offset, access.size),
            _ => (shadow.write(&who, lane as u32, offset, access.size), false),
        };
        if blank {
            self.report_blank(checker, access, 1 << lane, |x, at| x.shared_object(at & (WINDOW - 1)));
        }
        if let Some(conflict) = conflict {
            self.report_race(checker, access, lane, &conflict);
        }
    }
}

/// Whether a store and the one that it races with store the same: then it makes no difference which comes first.
///
/// # Safety
/// As many bytes as the access has must lie at `at`.
unsafe fn stores_the_same(
    access: &Access<'_>,
    mask: u32,
    lane: usize,
    conflict: &Conflict,
    who: &Who,
    at: *const u8,
) -> bool {
    let other = conflict.lane as usize;
    let together = conflict.pc == who.pc
        && conflict.warp == who.warp
        && other < 32
        && mask >> other & 1 == 1
        && access.a.by_lane[other] == access.a.by_lane[lane];
    if together {
        let (mut own, mut theirs) = ([0; 64], [0; 64]);
        (access.value)(lane, &mut own);
        (access.value)(other, &mut theirs);
        return own == theirs;
    }
    // SAFETY: the caller's promise.
    unsafe { access.changes_nothing(lane, at) }
}

/// Looks at lanes whose addresses lie in one allocation.
#[inline(always)]
fn look(
    track: &Track,
    stamps: Option<&Stamps>,
    access: &Access<'_>,
    mask: u32,
    (launch, block): (u64, u64),
    uninitialised: bool,
    seen: &mut Seen,
) {
    let (a, size) = (access.a, access.size);
    if !track.is_complete() {
        let side_by_side = mask == FULL && a.is_consecutive(size);
        if access.way != Direction::Store
            && uninitialised
            && !(side_by_side && track.is_written(a.first, a.end - a.first))
        {
            let unwritten = |lane: &usize| !track.is_any_written(a.by_lane[*lane], size);
            seen.blank |= lanes(mask).filter(unwritten).fold(0, |m, lane| m | 1 << lane);
        }
        if access.way != Direction::Load {
            if side_by_side {
                track.mark(a.first, a.end - a.first);
            } else {
                lanes(mask).for_each(|lane| track.mark(a.by_lane[lane], size));
            }
        }
    }
    // Of accesses shorter than a word nothing is remembered, and atomic ones race with nobody.
    let Some(stamps) = stamps.filter(|_| access.flags == 0 && size >= 4) else { return };
    let writes = access.way == Direction::Store;
    for lane in lanes(mask) {
        for word in 0..size / 4 {
            let Some((wrote, other)) = stamps.touch(launch, block, a.by_lane[lane] + 4 * word, writes) else {
                continue;
            };
            // SAFETY: the allocation holds the range, and the whole region is mapped.
            let same = || unsafe { access.changes_nothing(lane, a.by_lane[lane] as *const u8) };
            if seen.race.is_none() && !(writes && wrote && same()) {
                seen.race = Some((lane, wrote, other));
            }
        }
    }
}
