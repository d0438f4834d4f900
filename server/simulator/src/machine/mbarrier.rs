//! `mbarrier`: barriers that are objects in shared memory and count arrivals and bytes.
//!
//! Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". The object is opaque there; here its
//! 64 bits hold, from the low end: pending arrivals (20), arrivals that the next phase expects (20), the bytes that are still
//! to come (21, signed), and the parity of the phase.

use crate::code::{Handler, NONE, Op, handler};
use crate::machine::access::{
    Bad, Generic, Global, Kind, RANK_SHIFT, SHARED_WINDOW, SharedSpace, Space, WINDOW,
};
use crate::machine::atomic::Update;
use crate::machine::fault::FaultKind;
use crate::machine::lanes::lanes;
use crate::machine::tensor_map::{self, of_rank};
use crate::machine::{Exec, Next};

/// Bits of a count of arrivals.
const COUNT: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT) - 1;
const EXPECTED: u32 = COUNT;
const BYTES: u32 = 2 * COUNT;
const BYTES_MASK: u64 = (1 << 21) - 1;
const PHASE: u32 = BYTES + 21;

/// A barrier's value, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Barrier {
    pending: u64,
    expected: u64,
    bytes: u64,
    phase: u64,
}

impl Barrier {
    fn new(count: u32) -> Self {
        let count = u64::from(count) & COUNT_MASK;
        Self { pending: count, expected: count, bytes: 0, phase: 0 }
    }

    fn read(word: u64) -> Self {
        Self {
            pending: word & COUNT_MASK,
            expected: word >> EXPECTED & COUNT_MASK,
            bytes: word >> BYTES & BYTES_MASK,
            phase: word >> PHASE & 1,
        }
    }

    fn write(self) -> u64 {
        self.pending | self.expected << EXPECTED | self.bytes << BYTES | self.phase << PHASE
    }

    fn arrive(&mut self, count: u32) {
        self.pending = self.pending.wrapping_sub(u64::from(count)) & COUNT_MASK;
        self.complete();
    }

    /// Arrives, and is not expected again.
    fn drop(&mut self, count: u32) {
        self.expected = self.expected.wrapping_sub(u64::from(count)) & COUNT_MASK;
        self.arrive(count);
    }

    fn expect(&mut self, bytes: u32) {
        self.bytes = self.bytes.wrapping_add(u64::from(bytes)) & BYTES_MASK;
    }

    fn have(&mut self, bytes: u32) {
        self.bytes = self.bytes.wrapping_sub(u64::from(bytes)) & BYTES_MASK;
        self.complete();
    }

    /// Begins the next phase, if nothing is missing.
    fn complete(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.pending = self.expected;
            self.phase ^= 1;
        }
    }
}

/// What an instruction does with a barrier, in [`Op::aux`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Action {
    /// `init`: slot 2 is the count.
    Init,
    /// `inval`.
    Invalidate,
    /// `arrive`: slot 2 is the count, [`NONE`] for one; slot 0 takes the state.
    Arrive,
    /// `arrive_drop`.
    Drop,
    /// `arrive.expect_tx`: slot 2 is the bytes.
    ArriveExpect,
    /// `arrive_drop.expect_tx`.
    DropExpect,
    /// `expect_tx`.
    Expect,
    /// `complete_tx`.
    Complete,
    /// `cp.async.mbarrier.arrive`: copies are done at once, so the arrival that it adds has happened.
    Copied,
}

const ACTIONS: [Action; 9] = [
    Action::Init,
    Action::Invalidate,
    Action::Arrive,
    Action::Drop,
    Action::ArriveExpect,
    Action::DropExpect,
    Action::Expect,
    Action::Complete,
    Action::Copied,
];

/// A pointer into shared memory by an address of 64 bits: of the window, or an offset.
fn shared(x: &mut Exec<'_>, address: u64, size: u64) -> Result<*mut u8, Bad> {
    let offset = if address >= SHARED_WINDOW { address - SHARED_WINDOW } else { address };
    if !address.is_multiple_of(size.min(16)) {
        return Err(Bad);
    }
    SharedSpace::pointer(x, offset, size)
}

/// The offset in the block's own shared memory, for checks; none where the barrier is another block's.
fn own_offset(address: u64) -> Option<u64> {
    let offset = address & (WINDOW - 1);
    (offset >> RANK_SHIFT == 0).then_some(offset)
}

/// Tells checks that a warp arrives at a barrier.
fn arrives(x: &mut Exec<'_>, address: u64) {
    if let Some(shadow) = x.block.shadow.as_deref_mut()
        && let Some(offset) = own_offset(address)
    {
        shadow.clocks.arrive_at(x.warp.index, offset);
    }
}

fn wrong(x: &mut Exec<'_>, lane: usize, address: u64, what: &str) -> Next {
    let message = format!(
        "{what} at shared address {address:#x}: the block has {} bytes of shared memory",
        x.block.bytes
    );
    x.fault(FaultKind::IllegalAddress, lane, Some(address), message)
}

/// Slots: 0 the state that is returned, 1 the address (64 bits), 2 a number.
pub(crate) fn update() -> Handler {
    handler!(run_update)
}

#[inline(always)]
unsafe fn run_update(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let action = ACTIONS[op.aux as usize % ACTIONS.len()];
    let r = x.registers;
    for lane in lanes(mask) {
        // SAFETY: lowering gives this op rows of these classes; `shared` checks the pointer.
        unsafe {
            let address = r.get::<u64>(op.slots[1], lane);
            let number = if op.slots[2] == NONE { 1 } else { r.get::<u32>(op.slots[2], lane) };
            let Ok(pointer) = shared(x, address, 8) else { return wrong(x, lane, address, "mbarrier") };
            let word = pointer.cast::<u64>();
            let old = word.read_unaligned();
            let mut barrier = Barrier::read(old);
            match action {
                Action::Init => barrier = Barrier::new(number),
                Action::Invalidate => barrier = Barrier::read(0),
                Action::Arrive => barrier.arrive(number),
                Action::Drop => barrier.drop(number),
                Action::ArriveExpect => {
                    barrier.expect(number);
                    barrier.arrive(1);
                }
                Action::DropExpect => {
                    barrier.expect(number);
                    barrier.drop(1);
                }
                Action::Expect => barrier.expect(number),
                Action::Complete => barrier.have(number),
                Action::Copied => {}
            }
            word.write_unaligned(barrier.write());
            if matches!(action, Action::Init | Action::Invalidate) {
                if let (Some(shadow), Some(offset)) = (x.block.shadow.as_deref_mut(), own_offset(address)) {
                    shadow.set(offset, 8);
                }
            } else {
                arrives(x, address);
            }
            if op.slots[0] != NONE {
                r.set(op.slots[0], lane, old);
            }
        }
    }
    Next::Advance
}

/// `test_wait`, `try_wait`: slots are the predicate, the address, the state or (with [`PARITY`]) the parity.
pub(crate) fn test() -> Handler {
    handler!(run_test)
}

/// In [`Op::aux`] of [`test`]: slot 2 is a parity.
pub(crate) const PARITY: u32 = 1;

#[inline(always)]
unsafe fn run_test(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // A thread that asks may ask until another answers.
    x.warp.polls += 1;
    let r = x.registers;
    let mut done = 0;
    for lane in lanes(mask) {
        // SAFETY: as in `run_update`.
        unsafe {
            let address = r.get::<u64>(op.slots[1], lane);
            let asked = if op.aux & PARITY != 0 {
                u64::from(r.get::<u32>(op.slots[2], lane)) & 1
            } else {
                Barrier::read(r.get::<u64>(op.slots[2], lane)).phase
            };
            let Ok(pointer) = shared(x, address, 8) else { return wrong(x, lane, address, "mbarrier") };
            let now = Barrier::read(pointer.cast::<u64>().read_unaligned());
            if now.phase != asked {
                done |= 1 << lane;
                if let (Some(shadow), Some(offset)) = (x.block.shadow.as_deref_mut(), own_offset(address)) {
                    shadow.clocks.leave_from(x.warp.index, offset);
                }
            }
        }
    }
    // SAFETY: lowering gives this op a mask.
    unsafe { r.set_predicate(op.slots[0], mask, done) };
    Next::Advance
}

/// `mbarrier.pending_count d, state`.
pub(crate) fn pending() -> Handler {
    handler!(run_pending)
}

#[inline(always)]
unsafe fn run_pending(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe {
        crate::machine::lanes::map1::<u64, u32>(x, op, mask, |state| Barrier::read(state).pending as u32);
    }
    Next::Advance
}

/// `cp.async.bulk`: slots are, from 1 on, the destination, the source, the size, the barrier that is told ([`NONE`] for
/// a copy out of shared memory), and the mask of blocks that get it ([`NONE`] for the one that the address names).
pub(crate) fn bulk<From: Space, To: Space>() -> Handler {
    handler!(where <From: Space, To: Space> run_bulk::<From, To>)
}

#[inline(always)]
unsafe fn run_bulk<From: Space, To: Space>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let r = x.registers;
    for lane in lanes(mask) {
        // SAFETY: lowering gives this op rows of these classes; `pointer` checks both ranges.
        unsafe {
            let (to, from) = (r.get::<u64>(op.slots[1], lane), r.get::<u64>(op.slots[2], lane));
            let size = u64::from(r.get::<u32>(op.slots[3], lane));
            if (to | from | size) % 16 != 0 {
                let message = format!(
                    "bulk copy of {size} bytes from {from:#x} to {to:#x}: all must be multiples of 16"
                );
                return x.fault(FaultKind::Misaligned, lane, Some(from), message);
            }
            let (Ok(source), Ok(target)) = (From::pointer(x, from, size), To::pointer(x, to, size)) else {
                let message = format!(
                    "bulk copy of {size} bytes from {} {from:#x} to {} {to:#x}",
                    From::NAME,
                    To::NAME
                );
                return x.fault(FaultKind::IllegalAddress, lane, Some(from), message);
            };
            x.count_bulk(from, to, size);
            x.check_bulk(lane, (From::kind(from), from), (To::kind(to), to), size);
            if op.slots[5] == NONE {
                target.copy_from(source, size as usize);
                if op.slots[4] != NONE
                    && let Some(next) = tell(x, lane, r.get::<u64>(op.slots[4], lane), size)
                {
                    return next;
                }
                continue;
            }
            let address = r.get::<u64>(op.slots[4], lane);
            for rank in multicast(x, op.slots[5], lane) {
                let to = of_rank(to, rank);
                let Ok(target) = SharedSpace::pointer(x, to, size) else {
                    return wrong(x, lane, to, "bulk copy to a block that the cluster has not,");
                };
                target.copy_from(source, size as usize);
                if let Some(next) = tell(x, lane, of_rank(address, rank), size) {
                    return next;
                }
            }
        }
    }
    Next::Advance
}

/// Tells a barrier that bytes are there; the fault, if there is no barrier.
pub(crate) fn tell(x: &mut Exec<'_>, lane: usize, address: u64, bytes: u64) -> Option<Next> {
    let Ok(pointer) = shared(x, address, 8) else { return Some(wrong(x, lane, address, "mbarrier")) };
    let word = pointer.cast::<u64>();
    // SAFETY: `shared` checked the pointer.
    unsafe {
        let mut barrier = Barrier::read(word.read_unaligned());
        barrier.have(bytes as u32);
        word.write_unaligned(barrier.write());
    }
    arrives(x, address);
    None
}

/// The ranks that a mask of blocks names; nothing where the slot is none: then the address tells.
///
/// # Safety
/// The slot must be none, or a single row.
pub(crate) unsafe fn multicast(
    x: &Exec<'_>,
    slot: u32,
    lane: usize,
) -> impl Iterator<Item = Option<u64>> + use<> {
    // SAFETY: the caller's promise.
    let mask = if slot == NONE { None } else { Some(unsafe { x.registers.get::<u32>(slot, lane) } & 0xffff) };
    let ranks = lanes(mask.unwrap_or(0)).map(|rank| Some(rank as u64));
    ranks.chain(mask.is_none().then_some(None))
}

/// `cp.reduce.async.bulk`, from the slots of [`bulk`].
pub(crate) fn bulk_reduce<To: Space, U: Update>() -> Handler {
    handler!(where <To: Space, U: Update> run_bulk_reduce::<To, U>)
}

#[inline(always)]
unsafe fn run_bulk_reduce<To: Space, U: Update>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let r = x.registers;
    for lane in lanes(mask) {
        // SAFETY: lowering gives this op rows of these classes; `pointer` checks both ranges.
        unsafe {
            let (to, from) = (r.get::<u64>(op.slots[1], lane), r.get::<u64>(op.slots[2], lane));
            let size = u64::from(r.get::<u32>(op.slots[3], lane));
            if (to | from | size) % 16 != 0 {
                let message = format!(
                    "bulk reduction of {size} bytes from {from:#x} to {to:#x}: all must be multiples of 16"
                );
                return x.fault(FaultKind::Misaligned, lane, Some(to), message);
            }
            let (Ok(source), Ok(target)) = (SharedSpace::pointer(x, from, size), To::pointer(x, to, size))
            else {
                let message =
                    format!("bulk reduction of {size} bytes from shared {from:#x} to {} {to:#x}", To::NAME);
                return x.fault(FaultKind::IllegalAddress, lane, Some(to), message);
            };
            x.count_bulk(from, to, size);
            x.check_bulk(lane, (Kind::Shared, from), (To::kind(to), to), size);
            tensor_map::update::<U>(target, source, size as usize);
            if op.slots[4] != NONE
                && let Some(next) = tell(x, lane, r.get::<u64>(op.slots[4], lane), size)
            {
                return next;
            }
        }
    }
    Next::Advance
}

/// The handler of a bulk copy between spaces that instructions name.
pub(crate) fn bulk_between(from: &str, to: &str) -> Option<Handler> {
    let is_shared = |space: &str| space.starts_with("shared");
    Some(match (from, to) {
        ("global", to) if is_shared(to) => bulk::<Global, SharedSpace>(),
        (from, "global") if is_shared(from) => bulk::<SharedSpace, Global>(),
        (from, to) if is_shared(from) && is_shared(to) => bulk::<SharedSpace, SharedSpace>(),
        ("", "") => bulk::<Generic, Generic>(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Barrier;

    #[test]
    fn a_phase_ends_when_all_have_arrived_and_all_bytes_are_there() {
        let mut barrier = Barrier::new(2);
        barrier.expect(48);
        barrier.arrive(1);
        barrier.arrive(1);
        assert_eq!(barrier.phase, 0);
        barrier.have(16);
        assert_eq!(Barrier::read(barrier.write()), barrier);
        barrier.have(32);
        assert_eq!((barrier.phase, barrier.pending), (1, 2));
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let mut barrier = Barrier::new(1);
        barrier.have(64);
        barrier.expect(64);
        assert_eq!(barrier.phase, 0);
        barrier.arrive(1);
        assert_eq!(barrier.phase, 1);
    }
}
