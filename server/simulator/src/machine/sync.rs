//! Instructions of a warp's lanes together: shuffles, votes, matches, reductions, `bar.warp.sync`.
//!
//! Each names its members. It completes when all of them that have not exited have arrived, wherever in the program they
//! are: the first groups to arrive lay their inputs into the [`Exchange`] and wait, the last computes for all.

use crate::code::{Handler, NONE, Op, handler};
use crate::machine::lanes::lanes;
use crate::machine::warp::{Group, Wait, Warp};
use crate::machine::{Exec, Next};

/// What the members of a `*.sync` instruction hand around, by lane.
#[derive(Default)]
pub(crate) struct Exchange {
    /// First input.
    pub a: [u64; 32],
    /// Second input.
    pub b: [u32; 32],
    /// Third input.
    pub c: [u32; 32],
    /// Result.
    pub result: [u32; 32],
    /// Second result, a bit a lane.
    pub flags: u32,
}

/// The first input is a predicate ([`Op::aux`]).
pub(crate) const PREDICATE_INPUT: u32 = 1;
/// The first input has 64 bits.
pub(crate) const DOUBLE_INPUT: u32 = 2;
/// The result is a predicate.
pub(crate) const PREDICATE_RESULT: u32 = 4;

/// What an instruction makes of its members' inputs.
pub(crate) trait Meaning {
    /// Lanes wait for each other only in instructions of one kind.
    const KIND: u32;
    /// The lane that a lane reads from, where it is another's and within reach.
    fn source(_: &Exchange, _: usize) -> Option<usize> {
        None
    }
    /// Computes the results of `members`.
    fn compute(members: u32, exchange: &mut Exchange);
}

/// The handler of an instruction: slots are the result, the second result (a predicate), the inputs a, b and c, the
/// members.
pub(crate) fn together<M: Meaning>() -> Handler {
    handler!(where <M: Meaning> run::<M>)
}

#[inline(always)]
unsafe fn run<M: Meaning>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if x.group.wait == Wait::Finished {
        x.group.wait = Wait::Nothing;
        x.check_meeting();
        // SAFETY: the caller's promise.
        unsafe { finish(x, op, mask) };
        return Next::Advance;
    }
    // SAFETY: the caller's promise.
    unsafe {
        collect(x, op, mask);
        let first = x.registers.get::<u32>(op.slots[5], mask.trailing_zeros() as usize);
        let alike = lanes(mask).all(|lane| x.registers.get::<u32>(op.slots[5], lane) == first);
        if x.checker.is_some() {
            x.check_members(op, mask, |exchange, lane| M::source(exchange, lane));
        }
        if alike && mask & first == first & x.warp.live {
            x.check_meeting();
            M::compute(mask, &mut x.warp.exchange);
            finish(x, op, mask);
            return Next::Advance;
        }
        by_members::<M>(x, op, mask)
    }
}

/// The lanes name different members, or members are missing: each set of members for itself.
#[inline(never)]
unsafe fn by_members<M: Meaning>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let mut left = mask;
    let mut done = 0;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        // SAFETY: the caller's promise.
        let named = |lane| unsafe { x.registers.get::<u32>(op.slots[5], lane) };
        let members = named(lane);
        let part = lanes(left).filter(|&lane| named(lane) == members).fold(0, |m, lane| m | 1 << lane);
        left &= !part;
        let wait = Wait::Lanes { members, kind: M::KIND };
        let arrived = part | x.warp.groups.iter().filter(|g| g.wait == wait).fold(0, |m, g| m | g.mask);
        if members & x.warp.live & !arrived == 0 {
            M::compute(arrived, &mut x.warp.exchange);
            for group in x.warp.groups.iter_mut().filter(|g| g.wait == wait) {
                group.wait = Wait::Finished;
            }
            x.check_meeting();
            // SAFETY: the caller's promise.
            unsafe { finish(x, op, part) };
            done |= part;
        } else {
            x.check_waiting(members & x.warp.live & !arrived);
            x.warp.add(Group { mask: part, wait, ..x.group });
        }
    }
    let rest = x.group.mask & !mask;
    let on = done | rest;
    if on == 0 {
        return Next::Switch;
    }
    x.group.mask = on;
    x.group.pc += 1;
    x.leave();
    Next::Switch
}

/// After lanes have exited: lets a group go on that waited for them alone. It runs its instruction again, which now finds
/// its members complete and completes the others.
pub(crate) fn release(warp: &mut Warp) {
    for at in 0..warp.groups.len() {
        let wait = warp.groups[at].wait;
        let Wait::Lanes { members, .. } = wait else { continue };
        let arrived = warp.groups.iter().filter(|g| g.wait == wait).fold(0, |m, g| m | g.mask);
        if members & warp.live & !arrived == 0 {
            warp.groups[at].wait = Wait::Nothing;
        }
    }
}

#[inline(always)]
unsafe fn collect(x: &mut Exec<'_>, op: &Op, mask: u32) {
    let (r, exchange) = (x.registers, &mut x.warp.exchange);
    // SAFETY: the caller's promise.
    unsafe {
        if op.aux & PREDICATE_INPUT != 0 {
            let bits = r.predicate(op.slots[2]);
            lanes(mask).for_each(|lane| exchange.a[lane] = u64::from(bits >> lane & 1));
        } else if op.aux & DOUBLE_INPUT != 0 {
            lanes(mask).for_each(|lane| exchange.a[lane] = r.get::<u64>(op.slots[2], lane));
        } else if op.slots[2] != NONE {
            lanes(mask).for_each(|lane| exchange.a[lane] = u64::from(r.get::<u32>(op.slots[2], lane)));
        }
        if op.slots[3] != NONE {
            lanes(mask).for_each(|lane| exchange.b[lane] = r.get::<u32>(op.slots[3], lane));
        }
        if op.slots[4] != NONE {
            lanes(mask).for_each(|lane| exchange.c[lane] = r.get::<u32>(op.slots[4], lane));
        }
    }
}

#[inline(always)]
unsafe fn finish(x: &mut Exec<'_>, op: &Op, mask: u32) {
    let (r, exchange) = (x.registers, &x.warp.exchange);
    // SAFETY: the caller's promise.
    unsafe {
        r.set_predicate(op.slots[1], mask, exchange.flags);
        if op.slots[0] == NONE {
            return;
        }
        if op.aux & PREDICATE_RESULT != 0 {
            let bits = lanes(mask).fold(0, |m, lane| m | u32::from(exchange.result[lane] != 0) << lane);
            r.set_predicate(op.slots[0], mask, bits);
        } else {
            lanes(mask).for_each(|lane| r.set::<u32>(op.slots[0], lane, exchange.result[lane]));
        }
    }
}

/// `shfl.sync`: where a lane reads. Modes: 0 up, 1 down, 2 bfly, 3 idx.
///
/// Source: PTX ISA, "Data Movement and Conversion Instructions: shfl.sync", the pseudocode of its semantics.
pub(crate) struct Shuffle<const MODE: u8>;

impl<const MODE: u8> Shuffle<MODE> {
    /// The lane that `own` reads from, and whether that is within its segment.
    #[inline(always)]
    fn from(x: &Exchange, own: u32) -> (u32, bool) {
        let (b, c) = (x.b[own as usize] & 31, x.c[own as usize]);
        let (clamp, segment) = (c & 31, c >> 8 & 31);
        let last = own & segment | clamp & !segment;
        match MODE {
            0 => (own.wrapping_sub(b), own as i32 - b as i32 >= last as i32),
            1 => (own + b, own + b <= last),
            2 => (own ^ b, own ^ b <= last),
            _ => (own & segment | b & !segment, own & segment | b & !segment <= last),
        }
    }
}

impl<const MODE: u8> Meaning for Shuffle<MODE> {
    const KIND: u32 = 1 + MODE as u32;
    fn source(x: &Exchange, lane: usize) -> Option<usize> {
        let (from, inside) = Self::from(x, lane as u32);
        (inside && from != lane as u32).then_some(from as usize & 31)
    }
    #[inline(always)]
    fn compute(members: u32, x: &mut Exchange) {
        let mut flags = 0;
        for lane in lanes(members) {
            let (from, inside) = Self::from(x, lane as u32);
            // A lane that is no member gives 0. The manual leaves the value open, but it is so on an H200, for lanes beyond the mask, in
            // another branch, or gone; and the last step of cuda-samples' `reduction` counts on it.
            let member = members >> (from & 31) & 1 == 1;
            x.result[lane] = match (inside, member) {
                (true, true) => x.a[from as usize & 31] as u32,
                (true, false) => 0,
                (false, _) => x.a[lane] as u32,
            };
            flags |= u32::from(inside) << lane;
        }
        x.flags = flags;
    }
}

/// `vote.sync`: 0 all, 1 any, 2 uni, 3 ballot.
pub(crate) struct Vote<const MODE: u8>;

impl<const MODE: u8> Meaning for Vote<MODE> {
    const KIND: u32 = 8 + MODE as u32;
    #[inline(always)]
    fn compute(members: u32, x: &mut Exchange) {
        let ballot = lanes(members).fold(0, |m, lane| m | u32::from(x.a[lane] != 0) << lane);
        let result = match MODE {
            0 => u32::from(ballot == members),
            1 => u32::from(ballot != 0),
            2 => u32::from(ballot == 0 || ballot == members),
            _ => ballot,
        };
        lanes(members).for_each(|lane| x.result[lane] = result);
    }
}

/// `match.any.sync` and, with `ALL`, `match.all.sync`.
pub(crate) struct Match<const ALL: bool>;

impl<const ALL: bool> Meaning for Match<ALL> {
    const KIND: u32 = 16 + ALL as u32;
    fn compute(members: u32, x: &mut Exchange) {
        let same = |x: &Exchange, a| lanes(members).filter(|&l| x.a[l] == a).fold(0, |m, l| m | 1 << l);
        let mut flags = 0;
        for lane in lanes(members) {
            let equal: u32 = same(x, x.a[lane]);
            let all = equal == members;
            x.result[lane] = if !ALL || all { equal } else { 0 };
            flags |= u32::from(all) << lane;
        }
        x.flags = flags;
    }
}

/// `redux.sync`: 0 add, 1 min.u32, 2 max.u32, 3 min.s32, 4 max.s32, 5 and, 6 or, 7 xor.
pub(crate) struct Redux<const MODE: u8>;

impl<const MODE: u8> Meaning for Redux<MODE> {
    const KIND: u32 = 24 + MODE as u32;
    fn compute(members: u32, x: &mut Exchange) {
        let fold = |a: u32, b: u32| match MODE {
            0 => a.wrapping_add(b),
            1 => a.min(b),
            2 => a.max(b),
            3 => (a as i32).min(b as i32) as u32,
            4 => (a as i32).max(b as i32) as u32,
            5 => a & b,
            6 => a | b,
            _ => a ^ b,
        };
        let all = lanes(members).map(|lane| x.a[lane] as u32).reduce(fold).unwrap_or(0);
        lanes(members).for_each(|lane| x.result[lane] = all);
    }
}

/// `bar.warp.sync`.
pub(crate) struct WarpBarrier;

impl Meaning for WarpBarrier {
    const KIND: u32 = 32;
    fn compute(_: u32, _: &mut Exchange) {}
}

/// `elect.sync`: the lowest member.
pub(crate) struct Elect;

impl Meaning for Elect {
    const KIND: u32 = 33;
    fn compute(members: u32, x: &mut Exchange) {
        let leader = members.trailing_zeros();
        lanes(members).for_each(|lane| x.result[lane] = leader);
        x.flags = 1 << (leader & 31);
    }
}

/// `activemask`: the lanes that are here now.
pub(crate) fn active_mask() -> Handler {
    handler!(run_active_mask)
}

#[inline(always)]
unsafe fn run_active_mask(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: lowering gives this op a single row.
    unsafe { x.registers.fill::<u32>(op.slots[0], mask, |_| [mask; 8]) };
    Next::Advance
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `shfl.sync.down` by 2 of lanes 0 to 7, in segments of 32.
    #[test]
    fn a_lane_that_is_no_member_gives_zero() {
        let mut x = Exchange { b: [2; 32], c: [31; 32], ..Exchange::default() };
        x.a = std::array::from_fn(|lane| 10 + lane as u64);
        Shuffle::<1>::compute(0xff, &mut x);
        assert_eq!(x.result[..8], [12, 13, 14, 15, 16, 17, 0, 0]);
        // All of these lie within the segment, members or not.
        assert_eq!(x.flags, 0xff);
    }
}
