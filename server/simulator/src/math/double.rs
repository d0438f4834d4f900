//! f64.
//!
//! Source: PTX ISA, "Floating Point Instructions". There is neither `.ftz` nor `.sat` for arithmetic of f64.
//!
//! Rounding to nearest is the machine's own. For the other roundings the error of the nearest result says which way to go; it
//! is exact where nothing overflows or underflows, and elsewhere `rustc_apfloat` does the work.

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

/// The NaN that an operation of these operands gives: the first NaN among them, made quiet, or that of an invalid operation.
#[inline]
fn nan_of(operands: &[f64]) -> f64 {
    match operands.iter().find(|value| value.is_nan()) {
        Some(value) => f64::from_bits(value.to_bits() | 1 << 51),
        None => NAN,
    }
}

/// Magnitudes between which errors are exact: 2^-900 and 2^900.
const LEAST: f64 = f64::from_bits(0x07b0_0000_0000_0000);
const MOST: f64 = f64::from_bits(0x7830_0000_0000_0000);

/// Is the magnitude neither near underflow nor near overflow?
#[inline]
fn is_middling(value: f64) -> bool {
    (LEAST..MOST).contains(&value.abs())
}

/// The rounding of a value that differs from the one nearest to it by something with the sign of `error`.
#[inline]
fn directed(nearest: f64, error: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Rm if error < 0.0 => nearest.next_down(),
        Rounding::Rp if error > 0.0 => nearest.next_up(),
        Rounding::Rz if error < 0.0 && nearest > 0.0 => nearest.next_down(),
        Rounding::Rz if error > 0.0 && nearest < 0.0 => nearest.next_up(),
        _ => nearest,
    }
}

/// a + b and its error (Knuth's two-sum).
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let shadow = sum - a;
    (sum, (a - (sum - shadow)) + (b - shadow))
}

/// The sign of the error of `nearest`, which is a b + c rounded to nearest. Source: Boldo and Muller, "Exact and approximated
/// error of the FMA", IEEE Transactions on Computers 60(2), 2011.
#[inline]
fn fma_error(a: f64, b: f64, c: f64, nearest: f64) -> f64 {
    let product = a * b;
    let low = a.mul_add(b, -product);
    let (middle, rest) = two_sum(c, low);
    let (high, below) = two_sum(product, middle);
    ((high - nearest) + below) + rest
}

/// `add`.
#[inline]
pub fn add(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    if sum.is_nan() {
        return nan_of(&[a, b]);
    }
    if rounding == Rounding::Rn {
        return sum;
    }
    if sum != 0.0 && a.abs() < MOST && b.abs() < MOST {
        return directed(sum, two_sum(a, b).1, rounding);
    }
    hard(soft(a).add_r(soft(b), round(rounding)))
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
    if rounding == Rounding::Rn {
        return product;
    }
    if is_middling(product) {
        return directed(product, a.mul_add(b, -product), rounding);
    }
    hard(soft(a).mul_r(soft(b), round(rounding)))
}

/// `fma`, and `mad`. Of several NaNs that of `a` is kept, then that of `c`. To nearest it is `f64::mul_add`: one instruction where the caller is compiled with FMA.
#[inline]
pub fn fma(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    let result = a.mul_add(b, c);
    if result.is_nan() {
        return nan_of(&[a, c, b]);
    }
    if rounding == Rounding::Rn {
        return result;
    }
    if is_middling(a * b) && is_middling(c) && is_middling(result) {
        return directed(result, fma_error(a, b, c, result), rounding);
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
    if rounding == Rounding::Rn {
        return quotient;
    }
    if is_middling(quotient) && is_middling(a) && is_middling(b) {
        let rest = (-quotient).mul_add(b, a);
        return directed(quotient, if b < 0.0 { -rest } else { rest }, rounding);
    }
    hard(soft(a).div_r(soft(b), round(rounding)))
}

/// `rcp`.
#[inline]
pub fn rcp(a: f64, rounding: Rounding) -> f64 {
    div(1.0, a, rounding)
}

/// `sqrt`.
#[inline]
pub fn sqrt(a: f64, rounding: Rounding) -> f64 {
    if a.is_nan() || a < 0.0 {
        return nan_of(&[a]);
    }
    let root = a.sqrt();
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

/// `abs`. A NaN is made quiet and keeps its sign.
#[inline]
pub fn abs(a: f64) -> f64 {
    if a.is_nan() { nan_of(&[a]) } else { a.abs() }
}

/// `neg`. A NaN is made quiet and keeps its sign.
#[inline]
pub fn neg(a: f64) -> f64 {
    if a.is_nan() { nan_of(&[a]) } else { -a }
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
