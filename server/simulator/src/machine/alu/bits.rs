//! Logic, shifts and bit fields. Source: PTX ISA, "Logic and Shift Instructions", "Integer Arithmetic Instructions".

use crate::code::{Form, Handler, Lanes, Op, handler};
use crate::machine::alu::{Aux, by_type, op};
use crate::machine::lanes::{lanes, map3};
use crate::machine::{Exec, Next};
use crate::math::bits::{self, Permutation};
use crate::ptx::ast::Scalar::{self, B16, B32, B64, S16, S32, S64, U16, U32, U64};

/// The entry of an instruction on bits.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    let ty = form.ty()?;
    let opcode = form.opcode;
    match opcode {
        "and" => by_type!(ty, T, [B16 | B32: u32, B64: u64], op!(|a: T, b: T| -> T { a & b })),
        "or" => by_type!(ty, T, [B16 | B32: u32, B64: u64], op!(|a: T, b: T| -> T { a | b })),
        "xor" => by_type!(ty, T, [B16 | B32: u32, B64: u64], op!(|a: T, b: T| -> T { a ^ b })),
        "not" => by_type!(ty, T, [B16 | B32: u32, B64: u64], op!(|a: T| -> T { !a })),
        "cnot" => by_type!(ty, T, [B16: u16, B32: u32, B64: u64], op!(|a: T| -> T { T::from(a == 0) })),
        "shl" | "shr" => shift(form.opcode, ty),
        "shf" => funnel(form),
        "popc" => by_type!(ty, T, [B32: u32, B64: u64], op!(|a: T| -> u32 { a.count_ones() })),
        "clz" => by_type!(ty, T, [B32: u32, B64: u64], op!(|a: T| -> u32 { a.leading_zeros() })),
        "brev" => by_type!(ty, T, [B32: u32, B64: u64], op!(|a: T| -> T { a.reverse_bits() })),
        "bfind" => leading(form, ty),
        "bfe" => match ty {
            U32 => op!(|a: u32, b: u32, c: u32| -> u32 { bits::bfe_u64(u64::from(a), b, c, 32) as u32 }),
            U64 => op!(|a: u64, b: u32, c: u32| -> u64 { bits::bfe_u64(a, b, c, 64) }),
            S32 => op!(|a: i32, b: u32, c: u32| -> i32 { bits::bfe_s64(i64::from(a), b, c, 32) as i32 }),
            S64 => op!(|a: i64, b: u32, c: u32| -> i64 { bits::bfe_s64(a, b, c, 64) }),
            _ => None,
        },
        "fns" => op!(|a: u32, b: u32, c: i32| -> u32 { bits::fns(a, b, c) }),
        "bmsk" => {
            let wrap = form.take_any(&["clamp", "wrap"])? == "wrap";
            op!(with wrap: bool = wrap; |a: u32, b: u32| -> u32 { bits::bmsk(a, b, wrap) })
        }
        "szext" => {
            let wrap = form.take_any(&["clamp", "wrap"])? == "wrap";
            match ty {
                U32 => {
                    op!(with wrap: bool = wrap; |a: u32, b: u32| -> u32 { bits::szext(a, b, false, wrap) })
                }
                S32 => op!(with wrap: bool = wrap; |a: u32, b: u32| -> u32 { bits::szext(a, b, true, wrap) }),
                _ => None,
            }
        }
        "prmt" => permute(form),
        _ => None,
    }
}

impl Aux for bool {
    fn pack(self) -> u32 {
        u32::from(self)
    }

    fn unpack(aux: u32) -> Self {
        aux != 0
    }
}

fn shift(opcode: &str, ty: Scalar) -> Option<Lanes> {
    match (opcode, ty) {
        ("shl", B16) => op!(|a: u16, b: u32| -> u16 { bits::shl_b16(a, b) }),
        ("shl", B32) => op!(|a: u32, b: u32| -> u32 { bits::shl_b32(a, b) }),
        ("shl", B64) => op!(|a: u64, b: u32| -> u64 { bits::shl_b64(a, b) }),
        ("shr", B16 | U16) => op!(|a: u16, b: u32| -> u16 { bits::shr_u16(a, b) }),
        ("shr", B32 | U32) => op!(|a: u32, b: u32| -> u32 { bits::shr_u32(a, b) }),
        ("shr", B64 | U64) => op!(|a: u64, b: u32| -> u64 { bits::shr_u64(a, b) }),
        ("shr", S16) => op!(|a: i16, b: u32| -> i16 { bits::shr_s16(a, b) }),
        ("shr", S32) => op!(|a: i32, b: u32| -> i32 { bits::shr_s32(a, b) }),
        ("shr", S64) => op!(|a: i64, b: u32| -> i64 { bits::shr_s64(a, b) }),
        _ => None,
    }
}

/// `shf.l|r.clamp|wrap.b32 d, a, b, c`: 32 bits of `b:a` shifted by `c`.
fn funnel(form: &mut Form<'_>) -> Option<Lanes> {
    let left = form.take_any(&["l", "r"])? == "l";
    let wrap = form.take_any(&["clamp", "wrap"])? == "wrap";
    if left {
        op!(with wrap: bool = wrap; |a: u32, b: u32, c: u32| -> u32 { bits::shf_l(a, b, c, wrap) })
    } else {
        op!(with wrap: bool = wrap; |a: u32, b: u32, c: u32| -> u32 { bits::shf_r(a, b, c, wrap) })
    }
}

fn leading(form: &mut Form<'_>, ty: Scalar) -> Option<Lanes> {
    let shift = form.take("shiftamt");
    match ty {
        U32 => op!(with shift: bool = shift; |a: u32| -> u32 { bits::bfind_u64(u64::from(a), 32, shift) }),
        S32 => op!(with shift: bool = shift; |a: i32| -> u32 { bits::bfind_s64(i64::from(a), 32, shift) }),
        U64 => op!(with shift: bool = shift; |a: u64| -> u32 { bits::bfind_u64(a, 64, shift) }),
        S64 => op!(with shift: bool = shift; |a: i64| -> u32 { bits::bfind_s64(a, 64, shift) }),
        _ => None,
    }
}

impl Aux for Permutation {
    fn pack(self) -> u32 {
        self as u32
    }

    fn unpack(aux: u32) -> Self {
        [Self::F4e, Self::B4e, Self::Rc8, Self::Ecl, Self::Ecr, Self::Rc16][(aux % 6) as usize]
    }
}

fn permute(form: &mut Form<'_>) -> Option<Lanes> {
    let mode = match form.take_any(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]) {
        None => return op!(|a: u32, b: u32, c: u32| -> u32 { bits::prmt(a, b, c) }),
        Some("f4e") => Permutation::F4e,
        Some("b4e") => Permutation::B4e,
        Some("rc8") => Permutation::Rc8,
        Some("ecl") => Permutation::Ecl,
        Some("ecr") => Permutation::Ecr,
        Some(_) => Permutation::Rc16,
    };
    op!(with mode: Permutation = mode; |a: u32, b: u32, c: u32| -> u32 { bits::prmt(a, b, mode.selector(c)) })
}

/// `lop3`, with its table in the immediate.
pub(crate) fn lop3() -> Handler {
    handler!(run_lop3)
}

#[inline(always)]
unsafe fn run_lop3(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let table = op.immediate as u8;
    // SAFETY: the caller's promise.
    unsafe { map3::<u32, u32, u32, u32>(x, op, mask, |a, b, c| bits::lop3(a, b, c, table)) };
    Next::Advance
}

/// `bfi d, a, b, position, length`.
pub(crate) fn insert_field(ty: Scalar) -> Option<Handler> {
    match ty {
        B32 => Some(handler!(run_insert_field_b32)),
        B64 => Some(handler!(run_insert_field_b64)),
        _ => None,
    }
}

macro_rules! insert_field {
    ($name:ident, $ty:ty) => {
        #[inline(always)]
        unsafe fn $name(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
            let (r, s) = (x.registers, &op.slots);
            for lane in lanes(mask) {
                // SAFETY: lowering gives this op rows of these classes.
                unsafe {
                    let (a, b) = (r.get::<$ty>(s[1], lane), r.get::<$ty>(s[2], lane));
                    let (position, length) = (r.get::<u32>(s[3], lane), r.get::<u32>(s[4], lane));
                    let new = bits::bfi_b64(u64::from(a), u64::from(b), position, length, <$ty>::BITS);
                    r.set(s[0], lane, new as $ty);
                }
            }
            Next::Advance
        }
    };
}
insert_field!(run_insert_field_b32, u32);
insert_field!(run_insert_field_b64, u64);

/// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`: slots are the result, a, b, the mask that carries come from and the
/// one that they go to.
///
/// The manual says that `sub.cc` writes the borrow. The flag that the hardware keeps is the carry of `a + ~b + 1`, the borrow's
/// opposite: nvcc's own division of 128-bit integers ends a chain of `sub.cc` and `subc.cc` with `addc` and takes a 1 for "no
/// borrow".
pub(crate) fn carry(subtract: bool, ty: Scalar) -> Option<Handler> {
    Some(match (subtract, ty) {
        (false, U32 | S32 | B32) => handler!(run_add_carry_u32),
        (true, U32 | S32 | B32) => handler!(run_sub_carry_u32),
        (false, U64 | S64 | B64) => handler!(run_add_carry_u64),
        (true, U64 | S64 | B64) => handler!(run_sub_carry_u64),
        _ => return None,
    })
}

macro_rules! carry {
    ($($name:ident: $ty:ty, $f:path, $borrows:literal;)*) => {$(
        #[inline(always)]
        unsafe fn $name(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
            let (r, s) = (x.registers, &op.slots);
            // SAFETY: lowering gives this op rows of these classes, and masks.
            unsafe {
                let opposite = if $borrows { u32::MAX } else { 0 };
                let carries = if s[3] == crate::code::NONE { 0 } else { r.predicate(s[3]) ^ opposite };
                let mut out = 0;
                for lane in lanes(mask) {
                    let carry = carries >> lane & 1 == 1;
                    let (sum, over) = $f(r.get::<$ty>(s[1], lane), r.get::<$ty>(s[2], lane), carry);
                    r.set(s[0], lane, sum);
                    out |= u32::from(over) << lane;
                }
                r.set_predicate(s[4], mask, out ^ opposite);
            }
            Next::Advance
        }
    )*};
}
carry! {
    run_add_carry_u32: u32, crate::math::integer::add_carry_u32, false;
    run_sub_carry_u32: u32, crate::math::integer::sub_borrow_u32, true;
    run_add_carry_u64: u64, crate::math::integer::add_carry_u64, false;
    run_sub_carry_u64: u64, crate::math::integer::sub_borrow_u64, true;
}
