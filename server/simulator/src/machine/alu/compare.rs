//! Comparisons and selections. Source: PTX ISA, "Comparison and Selection Instructions".

use crate::code::{Class, Handler, NONE, Op, handler};
use crate::machine::lanes::{Lane, each, lanes, test};
use crate::machine::moves::combined;
use crate::machine::{Exec, Next};
use crate::math::half::{self, Half};
use crate::math::single::{self, flush};
use crate::math::{Class as NumberClass, Comparison};
use crate::ptx::ast::Scalar;

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident, |$cell:ident| $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
        struct $name(f32);

        impl Lane for $name {
            type Cell = u32;
            const CLASS: Class = Class::Single;
            #[inline(always)]
            fn read($cell: u32) -> Self { $name($read) }
            #[inline(always)]
            fn write(self) -> u32 { self.0.to_bits() }
        }
    )*};
}
values! {
    /// An f32 whose subnormals count as zeros.
    Flushed, |cell| flush(f32::from_bits(cell));
    /// An f16 by its value.
    F16Value, |cell| half::F16::to_f32(cell as u16);
    /// A bf16 by its value.
    Bf16Value, |cell| half::Bf16::to_f32(cell as u16);
}

/// In [`Op::aux`]: the comparison; from bit 8 on, what the third operand is combined by (0 and, 1 or, 2 xor, 3 nothing).
pub(crate) fn pack(comparison: Comparison, combine: u32) -> u32 {
    comparison as u32 | combine << 8
}

/// The mask of a comparison.
#[inline(always)]
unsafe fn compare<T: Lane + PartialOrd>(x: &Exec<'_>, op: &Op) -> u32 {
    macro_rules! by_comparison {
        ($($name:ident),*) => {
            match op.aux & 0xff {
                // SAFETY: the caller's promise: slots 2 and 3 are rows of T's class.
                $(c if c == Comparison::$name as u32 => unsafe {
                    test::<T>(x, op, 2, |a, b| Comparison::$name.holds(a, b))
                },)*
                _ => 0,
            }
        };
    }
    by_comparison!(Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan)
}

/// The handler of a comparison: of `setp`, or of `set` with a result of all ones or 1.0.
fn by_type<K: Kind>(ty: Scalar, ftz: bool) -> Option<Handler> {
    use Scalar::*;
    Some(match ty {
        B16 | U16 => handler!(where <K: Kind> run::<u16, K>),
        S16 => handler!(where <K: Kind> run::<i16, K>),
        B32 | U32 => handler!(where <K: Kind> run::<u32, K>),
        S32 => handler!(where <K: Kind> run::<i32, K>),
        B64 | U64 => handler!(where <K: Kind> run::<u64, K>),
        S64 => handler!(where <K: Kind> run::<i64, K>),
        F32 if ftz => handler!(where <K: Kind> run::<Flushed, K>),
        F32 => handler!(where <K: Kind> run::<f32, K>),
        F64 => handler!(where <K: Kind> run::<f64, K>),
        F16 => handler!(where <K: Kind> run::<F16Value, K>),
        Bf16 => handler!(where <K: Kind> run::<Bf16Value, K>),
        _ => return None,
    })
}

/// What becomes of a comparison's mask.
trait Kind {
    unsafe fn write(x: &mut Exec<'_>, op: &Op, mask: u32, holds: u32, c: u32);
}

/// `setp`: slots are p, q, a, b, c.
struct Predicates;
/// `set` to an integer.
struct Ones;
/// `set` to an f32.
struct Unit;
/// `set` to an f16 or a bf16: its 1.0.
struct HalfUnit<const ONE: u16>;

/// 1.0 as an f16 and as a bf16.
const ONE_F16: u16 = 0x3c00;
const ONE_BF16: u16 = 0x3f80;

impl Kind for Predicates {
    #[inline(always)]
    unsafe fn write(x: &mut Exec<'_>, op: &Op, mask: u32, holds: u32, c: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            x.registers.set_predicate(op.slots[0], mask, combine(op.aux, holds, c));
            x.registers.set_predicate(op.slots[1], mask, combine(op.aux, !holds, c));
        }
    }
}

impl Kind for Ones {
    #[inline(always)]
    unsafe fn write(x: &mut Exec<'_>, op: &Op, mask: u32, holds: u32, c: u32) {
        let bits = combine(op.aux, holds, c);
        let value = |lane: usize| if bits >> lane & 1 == 1 { u32::MAX } else { 0 };
        // SAFETY: the caller's promise.
        lanes(mask).for_each(|lane| unsafe { x.registers.set(op.slots[0], lane, value(lane)) });
    }
}

impl Kind for Unit {
    #[inline(always)]
    unsafe fn write(x: &mut Exec<'_>, op: &Op, mask: u32, holds: u32, c: u32) {
        let bits = combine(op.aux, holds, c);
        let value = |lane: usize| if bits >> lane & 1 == 1 { 1.0f32 } else { 0.0 };
        // SAFETY: the caller's promise.
        lanes(mask).for_each(|lane| unsafe { x.registers.set(op.slots[0], lane, value(lane)) });
    }
}

impl<const ONE: u16> Kind for HalfUnit<ONE> {
    #[inline(always)]
    unsafe fn write(x: &mut Exec<'_>, op: &Op, mask: u32, holds: u32, c: u32) {
        let bits = combine(op.aux, holds, c);
        let value = |lane: usize| if bits >> lane & 1 == 1 { ONE } else { 0 };
        // SAFETY: the caller's promise.
        lanes(mask).for_each(|lane| unsafe { x.registers.set(op.slots[0], lane, value(lane)) });
    }
}

/// `set.….dtype.f16x2`, `….bf16x2`: each half of the result is 1.0, or all ones where it is an integer.
pub(crate) fn set_halves(result: Scalar, ty: Scalar) -> Option<Handler> {
    use Scalar::*;
    Some(match (result, ty) {
        (F16x2, F16x2) => handler!(run_halves::<half::F16, ONE_F16>),
        (Bf16x2, Bf16x2) => handler!(run_halves::<half::Bf16, ONE_BF16>),
        (U32 | S32, F16x2) => handler!(run_halves::<half::F16, { u16::MAX }>),
        (U32 | S32, Bf16x2) => handler!(run_halves::<half::Bf16, { u16::MAX }>),
        _ => return None,
    })
}

#[inline(always)]
unsafe fn run_halves<H: Half, const ONE: u16>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let comparison = ALL.get((op.aux & 0xff) as usize).copied().unwrap_or(Comparison::Nan);
    let ftz = op.immediate != 0;
    let one = |a: u16, b: u16| if half::compare::<H>(a, b, comparison, ftz) { ONE } else { 0 };
    // SAFETY: the caller's promise.
    unsafe { crate::machine::lanes::map2::<u32, u32, u32>(x, op, mask, |a, b| half::both(a, b, one)) };
    Next::Advance
}

/// Comparisons in the order of their numbers.
const ALL: [Comparison; 14] = {
    use Comparison::*;
    [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan]
};

#[inline(always)]
fn combine(aux: u32, holds: u32, c: u32) -> u32 {
    match aux >> 8 {
        0 => combined::<0>(holds, c),
        1 => combined::<1>(holds, c),
        2 => combined::<2>(holds, c),
        _ => holds,
    }
}

#[inline(always)]
unsafe fn run<T: Lane + PartialOrd, K: Kind>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe {
        let holds = compare::<T>(x, op);
        let c = if op.slots[4] == NONE { 0 } else { x.registers.predicate(op.slots[4]) };
        K::write(x, op, mask, holds, c);
    }
    Next::Advance
}

/// `setp.….ty`.
pub(crate) fn set_predicates(ty: Scalar, ftz: bool) -> Option<Handler> {
    by_type::<Predicates>(ty, ftz)
}

/// `set.….dtype.ty`.
pub(crate) fn set(result: Scalar, ty: Scalar, ftz: bool) -> Option<Handler> {
    match result {
        Scalar::U32 | Scalar::S32 => by_type::<Ones>(ty, ftz),
        Scalar::F32 => by_type::<Unit>(ty, ftz),
        Scalar::F16 => by_type::<HalfUnit<ONE_F16>>(ty, ftz),
        Scalar::Bf16 => by_type::<HalfUnit<ONE_BF16>>(ty, ftz),
        _ => None,
    }
}

/// `selp`: slots are d, a, b, p.
pub(crate) fn select(class: Class) -> Option<Handler> {
    Some(match class {
        Class::Single => handler!(run_select::<u32>),
        Class::Double => handler!(run_select::<u64>),
        Class::Quad => handler!(run_select::<u128>),
        Class::Predicate => return None,
    })
}

#[inline(always)]
unsafe fn run_select<T: Lane>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let r = x.registers;
    // SAFETY: the caller's promise.
    unsafe {
        let p = r.predicate(op.slots[3]);
        r.fill::<T>(op.slots[0], mask, |at| {
            let (a, b) = (r.piece::<T>(op.slots[1], at), r.piece::<T>(op.slots[2], at));
            each(|i| if p >> (at + i) & 1 == 1 { a[i] } else { b[i] })
        });
    }
    Next::Advance
}

/// `slct`: `c >= 0 ? a : b`, with `c` an s32 or an f32.
pub(crate) fn select_by_sign(class: Class, by: Scalar, ftz: bool) -> Option<Handler> {
    Some(match (class, by) {
        (Class::Single, Scalar::S32) => handler!(run_select_by_sign::<u32, i32>),
        (Class::Double, Scalar::S32) => handler!(run_select_by_sign::<u64, i32>),
        (Class::Single, Scalar::F32) if ftz => handler!(run_select_by_sign::<u32, Flushed>),
        (Class::Double, Scalar::F32) if ftz => handler!(run_select_by_sign::<u64, Flushed>),
        (Class::Single, Scalar::F32) => handler!(run_select_by_sign::<u32, f32>),
        (Class::Double, Scalar::F32) => handler!(run_select_by_sign::<u64, f32>),
        _ => return None,
    })
}

#[inline(always)]
unsafe fn run_select_by_sign<T: Lane, C: Lane + PartialOrd>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let zero = C::read(C::Cell::default());
    let pick = |a: T, b: T, c: C| if c >= zero { a } else { b };
    // SAFETY: the caller's promise.
    unsafe { crate::machine::lanes::map3::<T, T, C, T>(x, op, mask, pick) };
    Next::Advance
}

/// Classes of `testp`, numbered for [`Op::aux`].
const CLASSES: [(&str, NumberClass); 6] = [
    ("finite", NumberClass::Finite),
    ("infinite", NumberClass::Infinite),
    ("number", NumberClass::Number),
    ("notanumber", NumberClass::NotANumber),
    ("normal", NumberClass::Normal),
    ("subnormal", NumberClass::Subnormal),
];

/// The number of a class of `testp`.
pub(crate) fn class_number(name: &str) -> u32 {
    CLASSES.iter().position(|(class, _)| *class == name).unwrap_or(0) as u32
}

/// `testp`: slots are p, a.
pub(crate) fn test_class(ty: Scalar) -> Option<Handler> {
    match ty {
        Scalar::F32 => Some(handler!(run_test_f32)),
        Scalar::F64 => Some(handler!(run_test_f64)),
        _ => None,
    }
}

#[inline(always)]
unsafe fn run_test_f32(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let class = CLASSES[op.aux as usize % CLASSES.len()].1;
    // SAFETY: the caller's promise.
    unsafe {
        let holds = |lane| u32::from(single::is_class(x.registers.get(op.slots[1], lane), class));
        let bits = lanes(mask).fold(0, |m, lane| m | holds(lane) << lane);
        x.registers.set_predicate(op.slots[0], mask, bits);
    }
    Next::Advance
}

#[inline(always)]
unsafe fn run_test_f64(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let class = CLASSES[op.aux as usize % CLASSES.len()].1;
    // SAFETY: the caller's promise.
    unsafe {
        let holds = |lane| u32::from(class.holds(x.registers.get(op.slots[1], lane)));
        let bits = lanes(mask).fold(0, |m, lane| m | holds(lane) << lane);
        x.registers.set_predicate(op.slots[0], mask, bits);
    }
    Next::Advance
}
