//! f32.
//!
//! Source: PTX ISA, "Floating Point Instructions" (testp to sqrt). The canonical NaN is 0x7fffffff.

use super::exact::{self, signed_zero};
use super::{Class, Extremum, Mode, Rounding};

/// The NaN that every f32 operation gives.
pub const NAN: f32 = f32::from_bits(0x7fff_ffff);

/// `.ftz`: a subnormal becomes a zero of its sign.
#[inline(always)]
pub fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

#[inline(always)]
fn flushed(value: f32, ftz: bool) -> f32 {
    if ftz { flush(value) } else { value }
}

/// The NaN of a device in place of any other.
#[inline(always)]
pub fn canonical(value: f32) -> f32 {
    if value.to_bits() & 0x7fff_ffff > 0x7f80_0000 { NAN } else { value }
}

/// `.sat`: to [0, 1]; NaN and -0 become +0.
#[inline(always)]
pub fn saturate(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

/// What `.ftz` and `.sat` do to a result.
#[inline(always)]
fn finish(value: f32, mode: Mode) -> f32 {
    let value = flushed(canonical(value), mode.ftz);
    if mode.saturate { saturate(value) } else { value }
}

/// 2^64, and the least normal number times that.
const SCALE: f32 = f32::from_bits(0x5f80_0000);
const SCALED_LEAST: f32 = f32::from_bits(0x2080_0000);

/// As [`finish`], for results that may round up to the least normal number, of which `.ftz` flushes those that would be less
/// if the exponent had no limit. `scaled` is the same result times 2^64, rounded alike; where the result is near the least
/// normal number, the operands are small enough for that not to overflow.
#[inline(always)]
fn finish_scaled(value: f32, mode: Mode, scaled: f32) -> f32 {
    let value = canonical(value);
    let tiny = mode.ftz & (value.abs() <= f32::MIN_POSITIVE) & (scaled.abs() < SCALED_LEAST);
    let value = if tiny { 0f32.copysign(value) } else { value };
    if mode.saturate { saturate(value) } else { value }
}

/// As [`finish_scaled`], in any rounding, for a result that is given exactly or to odd.
#[inline(always)]
fn finish_exact(exact: f64, mode: Mode) -> f32 {
    let scaled = if mode.ftz { exact::to_f32(exact * f64::from(SCALE), mode.rounding) } else { 0.0 };
    finish_scaled(exact::to_f32(exact, mode.rounding), mode, scaled)
}

/// `add`.
#[inline(always)]
pub fn add(a: f32, b: f32, mode: Mode) -> f32 {
    let (a, b) = (flushed(a, mode.ftz), flushed(b, mode.ftz));
    if mode.rounding == Rounding::Rn {
        return finish(a + b, mode);
    }
    let (a, b) = (f64::from(a), f64::from(b));
    let sum = signed_zero(exact::sum(a, b), a, b, mode.rounding);
    finish(exact::to_f32(sum, mode.rounding), mode)
}

/// `sub`.
#[inline(always)]
pub fn sub(a: f32, b: f32, mode: Mode) -> f32 {
    add(a, -b, mode)
}

/// `mul`.
#[inline(always)]
pub fn mul(a: f32, b: f32, mode: Mode) -> f32 {
    let (a, b) = (flushed(a, mode.ftz), flushed(b, mode.ftz));
    if mode.rounding == Rounding::Rn {
        return finish_scaled(a * b, mode, if mode.ftz { a * SCALE * b } else { 0.0 });
    }
    finish_exact(f64::from(a) * f64::from(b), mode)
}

/// `fma`, and `mad` of floating-point types.
///
/// To nearest it is `f32::mul_add`: one instruction where the caller is compiled with FMA, a call of libm elsewhere.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32, mode: Mode) -> f32 {
    let (a, b, c) = (flushed(a, mode.ftz), flushed(b, mode.ftz), flushed(c, mode.ftz));
    if mode.rounding == Rounding::Rn {
        let scaled = if mode.ftz { (a * SCALE).mul_add(b, c * SCALE) } else { 0.0 };
        return finish_scaled(a.mul_add(b, c), mode, scaled);
    }
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    finish_exact(signed_zero(exact::sum(product, c), product, c, mode.rounding), mode)
}

/// `div` with IEEE 754 rounding.
#[inline(always)]
pub fn div(a: f32, b: f32, mode: Mode) -> f32 {
    let (a, b) = (flushed(a, mode.ftz), flushed(b, mode.ftz));
    if mode.rounding == Rounding::Rn {
        return finish_scaled(a / b, mode, if mode.ftz { a * SCALE / b } else { 0.0 });
    }
    finish_exact(exact::quotient(f64::from(a), f64::from(b)), mode)
}

/// `rcp` with IEEE 754 rounding.
#[inline(always)]
pub fn rcp(a: f32, mode: Mode) -> f32 {
    div(1.0, a, mode)
}

/// `sqrt` with IEEE 754 rounding.
#[inline(always)]
pub fn sqrt(a: f32, mode: Mode) -> f32 {
    let a = flushed(a, mode.ftz);
    // Asked of the operand, since LLVM 22 answers wrong when asked whether a root is NaN.
    if a.is_nan() || a < 0.0 {
        return NAN;
    }
    if mode.rounding == Rounding::Rn {
        return finish(a.sqrt(), mode);
    }
    finish(exact::to_f32(exact::root(f64::from(a)), mode.rounding), mode)
}

/// `abs`; NaN becomes the canonical NaN.
#[inline(always)]
pub fn abs(a: f32, ftz: bool) -> f32 {
    canonical(flushed(a, ftz).abs())
}

/// `neg`; NaN becomes the canonical NaN.
#[inline(always)]
pub fn neg(a: f32, ftz: bool) -> f32 {
    canonical(-flushed(a, ftz))
}

/// `copysign`: the sign of `a` and the magnitude of `b`.
#[inline(always)]
pub fn copysign(a: f32, b: f32) -> f32 {
    b.copysign(a)
}

/// `min`: -0 is less than +0; a NaN loses unless `.NaN` is given.
#[inline(always)]
pub fn min(a: f32, b: f32, modifiers: Extremum) -> f32 {
    extremum(a, b, modifiers, |a, b| (a < b) | ((a == b) & a.is_sign_negative()))
}

/// `max`: +0 is greater than -0; a NaN loses unless `.NaN` is given.
#[inline(always)]
pub fn max(a: f32, b: f32, modifiers: Extremum) -> f32 {
    extremum(a, b, modifiers, |a, b| (a > b) | ((a == b) & a.is_sign_positive()))
}

#[inline(always)]
fn extremum(a: f32, b: f32, modifiers: Extremum, first: impl Fn(f32, f32) -> bool) -> f32 {
    let (mut a, mut b) = (flushed(a, modifiers.ftz), flushed(b, modifiers.ftz));
    let negative = a.is_sign_negative() != b.is_sign_negative();
    if modifiers.abs {
        (a, b) = (a.abs(), b.abs());
    }
    let chosen = if !a.is_nan() & (b.is_nan() | first(a, b)) { a } else { b };
    let chosen = if modifiers.xorsign { if negative { -chosen.abs() } else { chosen.abs() } } else { chosen };
    if modifiers.nan & (a.is_nan() | b.is_nan()) { NAN } else { canonical(chosen) }
}

/// `testp`.
#[inline]
pub fn is_class(value: f32, class: Class) -> bool {
    match class {
        Class::Normal => value.is_normal() || value == 0.0,
        Class::Subnormal => value.is_subnormal(),
        _ => class.holds(f64::from(value)),
    }
}
