//! f64.
//!
//! Source: PTX ISA, "Floating Point Instructions". There is neither `.ftz` nor `.sat` for arithmetic of f64.
//!
//! Rounding to nearest is the machine's own; the other roundings, which programs use seldom, are `rustc_apfloat`'s.

use super::{Extremum, Rounding};
use rustc_apfloat::ieee::Double;
use rustc_apfloat::{Float, Round, StatusAnd};

/// The NaN of an invalid operation.
pub const NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// 2^-800 and 2^100.
const SMALL: f64 = f64::from_bits(0x0df0_0000_0000_0000);
const TWO_TO_100: f64 = f64::from_bits(0x4630_0000_0000_0000);

/// The rounding as `rustc_apfloat` names it.
pub(super) fn round(rounding: Rounding) -> Round {
    match rounding {
        Rounding::Rn => Round::NearestTiesToEven,
        Rounding::Rz => Round::TowardZero,
        Rounding::Rm => Round::TowardNegative,
        Rounding::Rp => Round::TowardPositive,
    }
}

fn soft(value: f64) -> Double {
    Double::from_bits(u128::from(value.to_bits()))
}

fn hard(value: StatusAnd<Double>) -> f64 {
    f64::from_bits(value.value.to_bits() as u64)
}

/// The NaN that an operation of these operands gives.
#[inline]
fn nan_of(operands: &[f64]) -> f64 {
    match operands.iter().find(|value| value.is_nan()) {
        Some(value) => f64::from_bits(value.to_bits() | 1 << 51),
        None => NAN,
    }
}

/// `add`.
#[inline]
pub fn add(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    if sum.is_nan() {
        return nan_of(&[a, b]);
    }
    if rounding == Rounding::Rn { sum } else { hard(soft(a).add_r(soft(b), round(rounding))) }
}

/// `sub`.
#[inline]
pub fn sub(a: f64, b: f64, rounding: Rounding) -> f64 {
    if b.is_nan() { add(a, b, rounding) } else { add(a, -b, rounding) }
}

/// `mul`.
#[inline]
pub fn mul(a: f64, b: f64, rounding: Rounding) -> f64 {
    let product = a * b;
    if product.is_nan() {
        return nan_of(&[a, b]);
    }
    if rounding == Rounding::Rn { product } else { hard(soft(a).mul_r(soft(b), round(rounding))) }
}

/// `fma`, and `mad`. To nearest it is `f64::mul_add`: one instruction where the caller is compiled with FMA.
#[inline]
pub fn fma(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    let result = a.mul_add(b, c);
    if result.is_nan() {
        return nan_of(&[a, b, c]);
    }
    if rounding == Rounding::Rn {
        return result;
    }
    hard(soft(a).mul_add_r(soft(b), soft(c), round(rounding)))
}

/// `div`.
#[inline]
pub fn div(a: f64, b: f64, rounding: Rounding) -> f64 {
    let quotient = a / b;
    if quotient.is_nan() {
        return nan_of(&[a, b]);
    }
    if rounding == Rounding::Rn { quotient } else { hard(soft(a).div_r(soft(b), round(rounding))) }
}

/// `rcp`.
#[inline]
pub fn rcp(a: f64, rounding: Rounding) -> f64 {
    div(1.0, a, rounding)
}

/// `sqrt`.
#[inline]
pub fn sqrt(a: f64, rounding: Rounding) -> f64 {
    let root = a.sqrt();
    if root.is_nan() {
        return nan_of(&[a]);
    }
    if rounding == Rounding::Rn || root == 0.0 || root.is_infinite() {
        return root;
    }
    // The rest of the nearest root is exact where nothing underflows, which a power of four brings about.
    let scale = if a < SMALL { TWO_TO_100 } else { 1.0 };
    let large = root * scale;
    let rest = (-large).mul_add(large, a * scale * scale);
    match rounding {
        Rounding::Rz | Rounding::Rm if rest < 0.0 => root.next_down(),
        Rounding::Rp if rest > 0.0 => root.next_up(),
        _ => root,
    }
}

/// `min`: -0 is less than +0; a NaN loses. Only [`Extremum::nan`] is looked at.
#[inline]
pub fn min(a: f64, b: f64, modifiers: Extremum) -> f64 {
    extremum(a, b, modifiers, |a, b| if a == b { a.is_sign_negative() } else { a < b })
}

/// `max`: +0 is greater than -0; a NaN loses. Only [`Extremum::nan`] is looked at.
#[inline]
pub fn max(a: f64, b: f64, modifiers: Extremum) -> f64 {
    extremum(a, b, modifiers, |a, b| if a == b { a.is_sign_positive() } else { a > b })
}

#[inline(always)]
fn extremum(a: f64, b: f64, modifiers: Extremum, first: impl Fn(f64, f64) -> bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => nan_of(&[a, b]),
        (true, false) | (false, true) if modifiers.nan => nan_of(&[a, b]),
        (true, false) => b,
        (false, true) => a,
        (false, false) if first(a, b) => a,
        (false, false) => b,
    }
}
