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
    if value.is_nan() { NAN } else { value }
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
        return finish(a * b, mode);
    }
    finish(exact::to_f32(f64::from(a) * f64::from(b), mode.rounding), mode)
}

/// `fma`, and `mad` of floating-point types.
///
/// To nearest it is `f32::mul_add`: one instruction where the caller is compiled with FMA, a call of libm elsewhere.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32, mode: Mode) -> f32 {
    let (a, b, c) = (flushed(a, mode.ftz), flushed(b, mode.ftz), flushed(c, mode.ftz));
    if mode.rounding == Rounding::Rn {
        return finish(a.mul_add(b, c), mode);
    }
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = signed_zero(exact::sum(product, c), product, c, mode.rounding);
    finish(exact::to_f32(sum, mode.rounding), mode)
}

/// `div` with IEEE 754 rounding.
#[inline(always)]
pub fn div(a: f32, b: f32, mode: Mode) -> f32 {
    let (a, b) = (flushed(a, mode.ftz), flushed(b, mode.ftz));
    if mode.rounding == Rounding::Rn {
        return finish(a / b, mode);
    }
    finish(exact::to_f32(exact::quotient(f64::from(a), f64::from(b)), mode.rounding), mode)
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
    if mode.rounding == Rounding::Rn {
        return finish(a.sqrt(), mode);
    }
    finish(exact::to_f32(exact::root(f64::from(a)), mode.rounding), mode)
}

/// `abs`; the payload of a NaN stays (unspecified; measured).
#[inline(always)]
pub fn abs(a: f32, ftz: bool) -> f32 {
    flushed(a, ftz).abs()
}

/// `neg`; the payload of a NaN stays (unspecified; measured).
#[inline(always)]
pub fn neg(a: f32, ftz: bool) -> f32 {
    -flushed(a, ftz)
}

/// `copysign`: the sign of `a` and the magnitude of `b`.
#[inline(always)]
pub fn copysign(a: f32, b: f32) -> f32 {
    b.copysign(a)
}

/// `min`: -0 is less than +0; a NaN loses unless `.NaN` is given.
#[inline(always)]
pub fn min(a: f32, b: f32, modifiers: Extremum) -> f32 {
    extremum(a, b, modifiers, |a, b| if a == b { a.is_sign_negative() } else { a < b })
}

/// `max`: +0 is greater than -0; a NaN loses unless `.NaN` is given.
#[inline(always)]
pub fn max(a: f32, b: f32, modifiers: Extremum) -> f32 {
    extremum(a, b, modifiers, |a, b| if a == b { a.is_sign_positive() } else { a > b })
}

#[inline(always)]
fn extremum(a: f32, b: f32, modifiers: Extremum, first: impl Fn(f32, f32) -> bool) -> f32 {
    let (mut a, mut b) = (flushed(a, modifiers.ftz), flushed(b, modifiers.ftz));
    let negative = a.is_sign_negative() != b.is_sign_negative();
    if modifiers.abs {
        (a, b) = (a.abs(), b.abs());
    }
    let chosen = match (a.is_nan(), b.is_nan()) {
        (true, true) => return NAN,
        (true, false) | (false, true) if modifiers.nan => return NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if first(a, b) => a,
        (false, false) => b,
    };
    if modifiers.xorsign { if negative { -chosen.abs() } else { chosen.abs() } } else { chosen }
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
