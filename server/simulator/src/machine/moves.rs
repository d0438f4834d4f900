//! Copies between registers: of one class, of two, of parts.

use crate::code::{Class, Handler, Op, handler};
use crate::machine::lanes::{Lane, map1, map2};
use crate::machine::{Exec, Next};

/// A copy within a class.
pub(crate) fn copy(class: Class) -> Handler {
    match class {
        Class::Predicate => handler!(run_copy_predicate),
        Class::Single => handler!(run_copy::<u32>),
        Class::Double => handler!(run_copy::<u64>),
        Class::Quad => handler!(run_copy::<u128>),
    }
}

#[inline(always)]
unsafe fn run_copy<T: Lane>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { map1::<T, T>(x, op, mask, |a| a) };
    Next::Advance
}

#[inline(always)]
unsafe fn run_copy_predicate(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { x.registers.set_predicate(op.slots[0], mask, x.registers.predicate(op.slots[1])) };
    Next::Advance
}

/// A copy from one class to another: cut, or filled up with zeros (signed: with the sign). None where nothing is to do.
pub(crate) fn convert(from: Class, to: Class, signed: bool) -> Option<Handler> {
    use Class::{Double, Predicate, Quad, Single};
    Some(match (from, to) {
        (Single, Double) if signed => handler!(run_convert::<i32, i64, SignExtend>),
        (Single, Double) => handler!(run_convert::<u32, u64, ZeroExtend>),
        (Double, Single) => handler!(run_convert::<u64, u32, Cut>),
        (Single, Quad) => handler!(run_convert::<u32, u128, ZeroExtend>),
        (Double, Quad) => handler!(run_convert::<u64, u128, ZeroExtend>),
        (Quad, Single) => handler!(run_convert::<u128, u32, Cut>),
        (Quad, Double) => handler!(run_convert::<u128, u64, Cut>),
        (Single, Single) | (Double, Double) | (Quad, Quad) | (Predicate, _) | (_, Predicate) => return None,
    })
}

trait Convert<A, R> {
    fn convert(a: A) -> R;
}

struct SignExtend;
struct ZeroExtend;
struct Cut;

macro_rules! conversions {
    ($($kind:ty: $from:ty => $to:ty;)*) => {$(
        impl Convert<$from, $to> for $kind {
            #[inline(always)]
            fn convert(a: $from) -> $to { a as $to }
        }
    )*};
}
conversions! {
    SignExtend: i32 => i64;
    ZeroExtend: u32 => u64;
    ZeroExtend: u32 => u128;
    ZeroExtend: u64 => u128;
    Cut: u64 => u32;
    Cut: u128 => u32;
    Cut: u128 => u64;
}

#[inline(always)]
unsafe fn run_convert<A: Lane, R: Lane, C: Convert<A, R>>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { map1::<A, R>(x, op, mask, C::convert) };
    Next::Advance
}

/// Puts an element of `aux` bits at bit `immediate` into a whole: slots are the new whole, the old one, the element.
pub(crate) fn insert(whole: Class, element: Class) -> Option<Handler> {
    Some(match (whole, element) {
        (Class::Single, Class::Single) => handler!(run_insert::<u32, u32>),
        (Class::Double, Class::Single) => handler!(run_insert::<u64, u32>),
        (Class::Quad, Class::Single) => handler!(run_insert::<u128, u32>),
        (Class::Quad, Class::Double) => handler!(run_insert::<u128, u64>),
        _ => return None,
    })
}

/// What can be cut from and put into wholes.
trait Bits: Lane {
    fn to_bits(self) -> u128;
    fn of_bits(bits: u128) -> Self;
}

macro_rules! bits {
    ($($ty:ty),*) => {$(
        impl Bits for $ty {
            #[inline(always)]
            fn to_bits(self) -> u128 { self as u128 }
            #[inline(always)]
            fn of_bits(bits: u128) -> Self { bits as $ty }
        }
    )*};
}
bits!(u32, u64, u128);

#[inline(always)]
unsafe fn run_insert<W: Bits, E: Bits>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let (width, at) = (op.aux, op.immediate as u32);
    let ones = (1u128 << width) - 1;
    let put =
        |whole: W, element: E| W::of_bits(whole.to_bits() & !(ones << at) | (element.to_bits() & ones) << at);
    // SAFETY: the caller's promise.
    unsafe { map2::<W, E, W>(x, op, mask, put) };
    Next::Advance
}

/// Cuts `aux` bits from bit `immediate` of a whole.
pub(crate) fn extract(element: Class, whole: Class) -> Option<Handler> {
    Some(match (whole, element) {
        (Class::Single, Class::Single) => handler!(run_extract::<u32, u32>),
        (Class::Double, Class::Single) => handler!(run_extract::<u64, u32>),
        (Class::Quad, Class::Single) => handler!(run_extract::<u128, u32>),
        (Class::Quad, Class::Double) => handler!(run_extract::<u128, u64>),
        _ => return None,
    })
}

#[inline(always)]
unsafe fn run_extract<W: Bits, E: Bits>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let (width, at) = (op.aux, op.immediate as u32);
    let ones = (1u128 << width) - 1;
    // SAFETY: the caller's promise.
    unsafe { map1::<W, E>(x, op, mask, |whole| E::of_bits(whole.to_bits() >> at & ones)) };
    Next::Advance
}

/// `d = !a` of predicates.
pub(crate) fn not_predicate() -> Handler {
    handler!(run_not_predicate)
}

#[inline(always)]
unsafe fn run_not_predicate(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { x.registers.set_predicate(op.slots[0], mask, !x.registers.predicate(op.slots[1])) };
    Next::Advance
}

/// `and.pred`, `or.pred`, `xor.pred`.
pub(crate) fn combine_predicates(opcode: &str) -> Option<Handler> {
    Some(match opcode {
        "and" => handler!(run_combine::<0>),
        "or" => handler!(run_combine::<1>),
        "xor" => handler!(run_combine::<2>),
        _ => return None,
    })
}

#[inline(always)]
unsafe fn run_combine<const HOW: u8>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let r = x.registers;
    // SAFETY: the caller's promise.
    unsafe {
        let (a, b) = (r.predicate(op.slots[1]), r.predicate(op.slots[2]));
        r.set_predicate(op.slots[0], mask, combined::<HOW>(a, b));
    }
    Next::Advance
}

/// 0 and, 1 or, 2 xor, otherwise `a`.
#[inline(always)]
pub(crate) fn combined<const HOW: u8>(a: u32, b: u32) -> u32 {
    match HOW {
        0 => a & b,
        1 => a | b,
        2 => a ^ b,
        _ => a,
    }
}
