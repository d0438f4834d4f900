//! Atomic operations on memory: `atom`, `red`.
//!
//! Lanes go in order, so that a block alone gives one result. On global memory each is an atomic of the processor that we
//! run on, since blocks run in parallel where the kernel's result can't depend on their order.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use crate::code::{Handler, NONE, Op, handler};
use crate::counters::Direction;
use crate::machine::access::{Pod, Space, addresses};
use crate::machine::lanes::{Lane, lanes};
use crate::machine::{Exec, Next};
use crate::math::half::{self, Bf16, F16, both};
use crate::math::{Extremum, Mode, double, single};

/// What memory can be updated by at once.
pub(crate) trait Word: Pod {
    /// Replaces the value at a pointer by `f` of it; returns what was there.
    ///
    /// # Safety
    /// The pointer is valid and aligned.
    unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self;
}

macro_rules! word {
    ($($ty:ty: $atomic:ty;)*) => {$(
        impl Word for $ty {
            #[inline(always)]
            unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self {
                // SAFETY: the caller's promise.
                let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
                let mut old = cell.load(SeqCst);
                while let Err(now) = cell.compare_exchange_weak(old, f(old), SeqCst, SeqCst) {
                    old = now;
                }
                old
            }
        }
    )*};
}
word! {
    u16: AtomicU16;
    u32: AtomicU32;
    u64: AtomicU64;
}

impl Word for u128 {
    /// Exchanges of 128 bits return what was there, so a kernel with one runs its blocks on one worker: nobody is between.
    #[inline(always)]
    unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let old = at.cast::<u128>().read_unaligned();
            at.cast::<u128>().write_unaligned(f(old));
            old
        }
    }
}

/// What an atomic does to the value in memory, given its operands.
pub(crate) trait Update {
    /// How the value lies in memory.
    type Word: Word;
    /// The new value.
    fn update(old: Self::Word, b: Self::Word, c: Self::Word) -> Self::Word;
}

/// In [`Op::aux`]: above this bit, the elements that the access is counted and aligned for.
pub(crate) const ELEMENT_SHIFT: u32 = 8;

/// Slots: 0 what was there ([`NONE`] where nobody asks), 4 the address, 5 the operand, 6 the second operand of `cas`.
pub(crate) fn atomic_handler<S: Space, U: Update>() -> Handler {
    handler!(where <S: Space, U: Update> run_atomic::<S, U>)
}

#[inline(always)]
unsafe fn run_atomic<S: Space, U: Update>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let size = size_of::<U::Word>() as u64;
    let whole = size * u64::from(op.aux >> ELEMENT_SHIFT);
    x.warp.polls += u64::from(op.slots[0] != NONE);
    let r = x.registers;
    // SAFETY: lowering makes atomics of this form; pointers are checked before they are used.
    unsafe {
        let a = addresses(x, op, mask, whole);
        x.count_access::<S>(&a, mask, whole, Direction::Atomic);
        if a.bits & (whole - 1) != 0 {
            return x.access_fault::<S>("atomic operation", &a, mask, whole);
        }
        x.check_access::<S>(op, &a, mask, size, Direction::Atomic, &|_, _| {});
        for lane in lanes(mask) {
            let b = r.get::<U::Word>(op.slots[5], lane);
            let c = if op.slots[6] == NONE { b } else { r.get::<U::Word>(op.slots[6], lane) };
            let address = a.by_lane[lane];
            let old = match S::local(address) {
                Some(local) => x.load_local::<U::Word>(lane, local).and_then(|old| {
                    x.store_local(lane, local, U::update(old, b, c))?;
                    Ok(old)
                }),
                None => S::pointer(x, address, size)
                    .map(|pointer| U::Word::update(pointer, |old| U::update(old, b, c))),
            };
            match old {
                Ok(old) if op.slots[0] != NONE => r.set(op.slots[0], lane, old),
                Ok(_) => {}
                Err(_) => return x.access_fault::<S>("atomic operation", &a, mask, size),
            }
        }
    }
    Next::Advance
}

macro_rules! updates {
    ($($(#[$doc:meta])* $name:ident: $word:ty, |$old:ident, $b:ident, $c:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;
        impl Update for $name {
            type Word = $word;
            #[inline(always)]
            fn update($old: $word, $b: $word, $c: $word) -> $word { let _ = ($old, $c); $body }
        }
    )*};
}

/// `f` of two values seen as another type.
#[inline(always)]
pub(crate) fn seen_as<T: Lane>(a: T::Cell, b: T::Cell, f: impl Fn(T, T) -> T) -> T::Cell {
    f(T::read(a), T::read(b)).write()
}

updates! {
    Add32: u32, |old, b, _c| old.wrapping_add(b);
    Add64: u64, |old, b, _c| old.wrapping_add(b);
    AddF32: u32, |old, b, _c| seen_as::<f32>(old, b, |a, b| single::add(a, b, Mode::RN));
    AddF64: u64, |old, b, _c| seen_as::<f64>(old, b, |a, b| double::add(a, b, Mode::RN.rounding));
    MinU32: u32, |old, b, _c| old.min(b);
    MaxU32: u32, |old, b, _c| old.max(b);
    MinU64: u64, |old, b, _c| old.min(b);
    MaxU64: u64, |old, b, _c| old.max(b);
    MinS32: u32, |old, b, _c| seen_as::<i32>(old, b, i32::min);
    MaxS32: u32, |old, b, _c| seen_as::<i32>(old, b, i32::max);
    MinS64: u64, |old, b, _c| seen_as::<i64>(old, b, i64::min);
    MaxS64: u64, |old, b, _c| seen_as::<i64>(old, b, i64::max);
    And32: u32, |old, b, _c| old & b;
    Or32: u32, |old, b, _c| old | b;
    Xor32: u32, |old, b, _c| old ^ b;
    And64: u64, |old, b, _c| old & b;
    Or64: u64, |old, b, _c| old | b;
    Xor64: u64, |old, b, _c| old ^ b;
    /// Up to `b`, then 0.
    Inc32: u32, |old, b, _c| if old >= b { 0 } else { old + 1 };
    /// Down to 0, then `b`.
    Dec32: u32, |old, b, _c| if old == 0 || old > b { b } else { old - 1 };
    Exchange32: u32, |old, b, _c| b;
    Exchange64: u64, |old, b, _c| b;
    Exchange128: u128, |old, b, _c| b;
    Swap16: u16, |old, b, c| if old == b { c } else { old };
    Swap32: u32, |old, b, c| if old == b { c } else { old };
    Swap64: u64, |old, b, c| if old == b { c } else { old };
    Swap128: u128, |old, b, c| if old == b { c } else { old };
    AddF16: u16, |old, b, _c| half::add::<F16>(old, b, Mode::RN);
    AddBf16: u16, |old, b, _c| half::add::<Bf16>(old, b, Mode::RN);
    AddF16x2: u32, |old, b, _c| both(old, b, |a, b| half::add::<F16>(a, b, Mode::RN));
    AddBf16x2: u32, |old, b, _c| both(old, b, |a, b| half::add::<Bf16>(a, b, Mode::RN));
    MinF16: u16, |old, b, _c| half::min::<F16>(old, b, Extremum::default());
    MaxF16: u16, |old, b, _c| half::max::<F16>(old, b, Extremum::default());
    MinBf16: u16, |old, b, _c| half::min::<Bf16>(old, b, Extremum::default());
    MaxBf16: u16, |old, b, _c| half::max::<Bf16>(old, b, Extremum::default());
    MinF16x2: u32, |old, b, _c| both(old, b, |a, b| half::min::<F16>(a, b, Extremum::default()));
    MaxF16x2: u32, |old, b, _c| both(old, b, |a, b| half::max::<F16>(a, b, Extremum::default()));
    MinBf16x2: u32, |old, b, _c| both(old, b, |a, b| half::min::<Bf16>(a, b, Extremum::default()));
    MaxBf16x2: u32, |old, b, _c| both(old, b, |a, b| half::max::<Bf16>(a, b, Extremum::default()));
}
