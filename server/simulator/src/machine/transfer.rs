//! Loads and stores.

use crate::code::{Handler, Op, handler};
use crate::counters::Direction;
use crate::machine::access::{ADDRESS, Addresses, ELEMENTS, Global, POLLS, Pod, Space, addresses};
use crate::machine::lanes::{FULL, lanes};
use crate::machine::{Exec, Next};

/// `ld` of elements of type `M` from space `S`: to slots 0 to 3.
pub(crate) fn load<S: Space, M: Pod>() -> Handler {
    handler!(where <S: Space, M: Pod> run_load::<S, M>)
}

#[inline(always)]
unsafe fn run_load<S: Space, M: Pod>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let elements = (op.aux & ELEMENTS) as usize;
    let size = (size_of::<M>() * elements) as u64;
    x.warp.polls += u64::from(op.aux & POLLS != 0);
    // SAFETY: lowering makes accesses of this form; pointers are checked before they are used.
    unsafe {
        let a = addresses(x, op, mask, size);
        x.count_access::<S>(&a, mask, size, Direction::Load);
        if a.bits & (size - 1) != 0 {
            return x.access_fault::<S>("load", &a, mask, size);
        }
        x.check_access::<S>(op, &a, mask, size, Direction::Load, &|_, _| {});
        if let Some(base) = S::whole(x, &a) {
            load_whole::<M>(x, op, mask, &a, base, elements);
            return Next::Advance;
        }
        for lane in lanes(mask) {
            for element in 0..elements {
                let address = a.by_lane[lane] + (element * size_of::<M>()) as u64;
                let value = match S::local(address) {
                    Some(local) => x.load_local::<M>(lane, local),
                    None => S::pointer(x, address, size_of::<M>() as u64)
                        .map(|pointer| pointer.cast::<M>().read_unaligned()),
                };
                match value {
                    Ok(value) => x.registers.set(op.slots[element], lane, value),
                    Err(_) => return x.access_fault::<S>("load", &a, mask, size),
                }
            }
        }
    }
    Next::Advance
}

/// All lanes' addresses lie in one piece of memory.
///
/// # Safety
/// `base + address` is a pointer to that piece for each lane.
#[inline(always)]
unsafe fn load_whole<M: Pod>(
    x: &mut Exec<'_>,
    op: &Op,
    mask: u32,
    a: &Addresses,
    base: u64,
    elements: usize,
) {
    let (r, slots) = (x.registers, &op.slots);
    // SAFETY: the caller's promise.
    unsafe {
        let at = |lane: usize| base.wrapping_add(a.by_lane[lane]) as *const M;
        if slots[ADDRESS] == crate::code::NONE || a.first + size_of::<M>() as u64 * elements as u64 == a.end {
            // One address for all: a broadcast.
            let first = at(mask.trailing_zeros() as usize);
            for (element, &slot) in slots[..elements].iter().enumerate() {
                let value = first.add(element).read_unaligned();
                r.fill::<M>(slot, mask, |_| [value; 8]);
            }
        } else if mask == FULL && elements == 1 && a.is_consecutive(size_of::<M>() as u64) {
            let source = at(0).cast::<[M; 8]>();
            r.fill::<M>(slots[0], mask, |lane| source.add(lane / 8).read_unaligned());
        } else {
            for (element, &slot) in slots[..elements].iter().enumerate() {
                lanes(mask).for_each(|lane| r.set(slot, lane, at(lane).add(element).read_unaligned()));
            }
        }
    }
}

/// `st` of elements of type `M` to space `S`: from slots 0 to 3.
pub(crate) fn store<S: Space, M: Pod>() -> Handler {
    handler!(where <S: Space, M: Pod> run_store::<S, M>)
}

#[inline(always)]
unsafe fn run_store<S: Space, M: Pod>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let elements = (op.aux & ELEMENTS) as usize;
    let size = (size_of::<M>() * elements) as u64;
    let r = x.registers;
    // SAFETY: as in `run_load`.
    unsafe {
        let a = addresses(x, op, mask, size);
        x.count_access::<S>(&a, mask, size, Direction::Store);
        if a.bits & (size - 1) != 0 {
            return x.access_fault::<S>("store", &a, mask, size);
        }
        let value = |lane: usize, bytes: &mut [u8; 64]| {
            for (element, &slot) in op.slots[..elements].iter().enumerate() {
                let at = bytes.as_mut_ptr().add(element * size_of::<M>());
                at.cast::<M>().write_unaligned(r.get(slot, lane));
            }
        };
        x.check_access::<S>(op, &a, mask, size, Direction::Store, &value);
        if let Some(base) = S::whole(x, &a) {
            for lane in lanes(mask) {
                let at = base.wrapping_add(a.by_lane[lane]) as *mut M;
                for element in 0..elements {
                    at.add(element).write_unaligned(r.get(op.slots[element], lane));
                }
            }
            return Next::Advance;
        }
        for lane in lanes(mask) {
            for element in 0..elements {
                let address = a.by_lane[lane] + (element * size_of::<M>()) as u64;
                let value = r.get::<M>(op.slots[element], lane);
                let done = match S::local(address) {
                    Some(local) => x.store_local::<M>(lane, local, value),
                    None => S::pointer(x, address, size_of::<M>() as u64)
                        .map(|pointer| pointer.cast::<M>().write_unaligned(value)),
                };
                if done.is_err() {
                    return x.access_fault::<S>("store", &a, mask, size);
                }
            }
        }
    }
    Next::Advance
}

impl Addresses {
    /// Does each lane's address follow the one before at `size` bytes?
    #[inline(always)]
    pub(crate) fn is_consecutive(&self, size: u64) -> bool {
        let first = self.by_lane[0];
        let mut off = 0;
        for (lane, &address) in self.by_lane.iter().enumerate() {
            off |= address ^ first.wrapping_add(lane as u64 * size);
        }
        off == 0
    }
}

/// In [`Op::aux`] of [`load_short`]: where the bytes of the whole lie.
pub(crate) const BYTES_SHIFT: u32 = 8;

/// `cp.async` with a source size: reads that many bytes (slot 1) into a quad row, zeros above.
pub(crate) fn load_short() -> Handler {
    handler!(run_load_short)
}

#[inline(always)]
unsafe fn run_load_short(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let whole = u64::from(op.aux >> BYTES_SHIFT);
    // SAFETY: lowering makes accesses of this form; pointers are checked before they are used.
    unsafe {
        let a = addresses(x, op, mask, whole);
        let r = x.registers;
        for lane in lanes(mask) {
            let bytes = u64::from(r.get::<u32>(op.slots[1], lane)).min(whole);
            let mut value = [0u8; 16];
            if bytes > 0 {
                match Global::pointer(x, a.by_lane[lane], bytes) {
                    Ok(from) => value.as_mut_ptr().copy_from_nonoverlapping(from, bytes as usize),
                    Err(_) => return x.access_fault::<Global>("asynchronous copy", &a, mask, whole),
                }
            }
            r.set(op.slots[0], lane, u128::from_le_bytes(value));
        }
        x.count_access::<Global>(&a, mask, whole, Direction::Load);
        let reads = lanes(mask).filter(|&lane| r.get::<u32>(op.slots[1], lane) > 0);
        let reading = reads.fold(0, |m, lane| m | 1 << lane);
        if reading != 0 {
            x.check_access::<Global>(op, &a, reading, 1, Direction::Load, &|_, _| {});
        }
    }
    Next::Advance
}
