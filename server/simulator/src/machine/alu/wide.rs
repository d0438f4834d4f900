//! Products: low, high, wide; with a sum; of 24 bits; dot products. Source: PTX ISA, "Integer Arithmetic Instructions".

use crate::code::{Form, Lanes, is_signed};
use crate::machine::alu::{Aux, by_type, op};
use crate::math::integer;
use crate::ptx::ast::Scalar::{self, S16, S32, S64, U16, U32, U64};

/// The entry of a multiplication.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    let ty = form.ty()?;
    let whole = matches!(ty, U16 | S16 | U32 | S32 | U64 | S64);
    let opcode = form.opcode;
    match opcode {
        "mul" if whole => match form.take_any(&["lo", "hi", "wide"])? {
            "lo" => low(ty),
            "hi" => high(ty),
            _ => wide(ty),
        },
        "mad" if whole => match form.take_any(&["lo", "hi", "wide"])? {
            "lo" => low_add(ty),
            "hi" if form.take("sat") => {
                op!(|a: i32, b: i32, c: i32| -> i32 { integer::mad_hi_sat_s32(a, b, c) })
            }
            "hi" => high_add(ty),
            _ => wide_add(ty),
        },
        "mul24" => match (form.take_any(&["lo", "hi"])?, ty) {
            ("lo", U32) => op!(|a: u32, b: u32| -> u32 { integer::mul24_lo_u32(a, b) }),
            ("lo", S32) => op!(|a: i32, b: i32| -> i32 { integer::mul24_lo_s32(a, b) }),
            ("hi", U32) => op!(|a: u32, b: u32| -> u32 { integer::mul24_hi_u32(a, b) }),
            ("hi", S32) => op!(|a: i32, b: i32| -> i32 { integer::mul24_hi_s32(a, b) }),
            _ => None,
        },
        "mad24" => match (form.take_any(&["lo", "hi"])?, form.take("sat"), ty) {
            ("lo", false, U32) => {
                op!(|a: u32, b: u32, c: u32| -> u32 { integer::mul24_lo_u32(a, b).wrapping_add(c) })
            }
            ("lo", false, S32) => {
                op!(|a: i32, b: i32, c: i32| -> i32 { integer::mul24_lo_s32(a, b).wrapping_add(c) })
            }
            ("hi", false, U32) => {
                op!(|a: u32, b: u32, c: u32| -> u32 { integer::mul24_hi_u32(a, b).wrapping_add(c) })
            }
            ("hi", false, S32) => {
                op!(|a: i32, b: i32, c: i32| -> i32 { integer::mul24_hi_s32(a, b).wrapping_add(c) })
            }
            ("hi", true, S32) => op!(|a: i32, b: i32, c: i32| -> i32 { integer::mad24_hi_sat_s32(a, b, c) }),
            _ => None,
        },
        "dp4a" | "dp2a" => dot(form),
        _ => None,
    }
}

fn low(ty: Scalar) -> Option<Lanes> {
    by_type!(
        ty,
        T,
        [U16 | S16: u16, U32 | S32: u32, U64 | S64: u64],
        op!(|a: T, b: T| -> T { a.wrapping_mul(b) })
    )
}

fn low_add(ty: Scalar) -> Option<Lanes> {
    by_type!(
        ty,
        T,
        [U16 | S16: u16, U32 | S32: u32, U64 | S64: u64],
        op!(|a: T, b: T, c: T| -> T { a.wrapping_mul(b).wrapping_add(c) })
    )
}

/// The high half of a product.
trait High: Sized {
    fn high(self, other: Self) -> Self;
}

macro_rules! high {
    ($($ty:ty: $twice:ty),*) => {$(
        impl High for $ty {
            #[inline(always)]
            fn high(self, other: Self) -> Self {
                (<$twice>::from(self) * <$twice>::from(other) >> <$ty>::BITS) as $ty
            }
        }
    )*};
}
high!(u16: u32, i16: i32, u32: u64, i32: i64, u64: u128, i64: i128);

fn high(ty: Scalar) -> Option<Lanes> {
    by_type!(
        ty,
        T,
        [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
        op!(|a: T, b: T| -> T { a.high(b) })
    )
}

fn high_add(ty: Scalar) -> Option<Lanes> {
    by_type!(
        ty,
        T,
        [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
        op!(|a: T, b: T, c: T| -> T { a.high(b).wrapping_add(c) })
    )
}

fn wide(ty: Scalar) -> Option<Lanes> {
    match ty {
        U16 => op!(|a: u16, b: u16| -> u32 { u32::from(a) * u32::from(b) }),
        S16 => op!(|a: i16, b: i16| -> i32 { i32::from(a) * i32::from(b) }),
        U32 => op!(|a: u32, b: u32| -> u64 { integer::mul_wide_u32(a, b) }),
        S32 => op!(|a: i32, b: i32| -> i64 { integer::mul_wide_s32(a, b) }),
        U64 => op!(|a: u64, b: u64| -> u128 { u128::from(a) * u128::from(b) }),
        S64 => op!(|a: i64, b: i64| -> u128 { (i128::from(a) * i128::from(b)) as u128 }),
        _ => None,
    }
}

fn wide_add(ty: Scalar) -> Option<Lanes> {
    match ty {
        U16 => op!(|a: u16, b: u16, c: u32| -> u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }),
        S16 => op!(|a: i16, b: i16, c: i32| -> i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }),
        U32 => op!(|a: u32, b: u32, c: u64| -> u64 { integer::mul_wide_u32(a, b).wrapping_add(c) }),
        S32 => op!(|a: i32, b: i32, c: i64| -> i64 { integer::mul_wide_s32(a, b).wrapping_add(c) }),
        _ => None,
    }
}

/// Signedness of the two factors of a dot product, and which half of the second is meant.
#[derive(Clone, Copy)]
struct Dot {
    signed: (bool, bool),
    high: bool,
}

impl Aux for Dot {
    fn pack(self) -> u32 {
        u32::from(self.signed.0) | u32::from(self.signed.1) << 1 | u32::from(self.high) << 2
    }

    fn unpack(aux: u32) -> Self {
        Dot { signed: (aux & 1 != 0, aux & 2 != 0), high: aux & 4 != 0 }
    }
}

fn dot(form: &mut Form<'_>) -> Option<Lanes> {
    let [a @ (U32 | S32), b @ (U32 | S32)] = form.types[..] else { return None };
    let signed = (is_signed(a), is_signed(b));
    if form.opcode == "dp4a" {
        let how = Dot { signed, high: false };
        return op!(with how: Dot = how; |a: u32, b: u32, c: u32| -> u32 { integer::dp4a(a, b, c, how.signed) });
    }
    let how = Dot { signed, high: form.take_any(&["lo", "hi"])? == "hi" };
    op!(with how: Dot = how; |a: u32, b: u32, c: u32| -> u32 { integer::dp2a(a, b, c, how.signed, how.high) })
}
