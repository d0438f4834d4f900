//! Approximate functions: `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`, `div` with `.approx` or `.full`.
//!
//! Source: PTX ISA, "Floating Point Instructions" and "Half Precision Floating Point Instructions". The ISA bounds the error
//! and lists special cases. Here the function is evaluated in f64 and rounded once: within every bound, and more exact than
//! a device by the bits that the bound allows it, so results differ from a device's in their last bits.

use super::half::{self, Half};
use super::single::{canonical, flush};
use super::{Mode, Rounding};

/// Evaluates in f64, with `.ftz` on the way in and out.
#[inline(always)]
fn through(a: f32, ftz: bool, function: impl Fn(f64) -> f64) -> f32 {
    let a = if ftz { flush(a) } else { a };
    let result = canonical(function(f64::from(a)) as f32);
    if ftz { flush(result) } else { result }
}

/// `ex2.approx.f32`: 2^a.
#[inline]
pub fn ex2(a: f32, ftz: bool) -> f32 {
    through(a, ftz, f64::exp2)
}

/// `lg2.approx.f32`.
#[inline]
pub fn lg2(a: f32, ftz: bool) -> f32 {
    through(a, ftz, f64::log2)
}

/// `sin.approx.f32`, of radians. The ISA bounds the error within 100 pi only.
#[inline]
pub fn sin(a: f32, ftz: bool) -> f32 {
    through(a, ftz, f64::sin)
}

/// `cos.approx.f32`, of radians. The ISA bounds the error within 100 pi only.
#[inline]
pub fn cos(a: f32, ftz: bool) -> f32 {
    through(a, ftz, f64::cos)
}

/// `tanh.approx.f32`.
#[inline]
pub fn tanh(a: f32) -> f32 {
    through(a, false, f64::tanh)
}

/// `rcp.approx.f32`.
#[inline]
pub fn rcp(a: f32, ftz: bool) -> f32 {
    through(a, ftz, f64::recip)
}

/// `sqrt.approx.f32`.
#[inline]
pub fn sqrt(a: f32, ftz: bool) -> f32 {
    through(a, ftz, f64::sqrt)
}

/// `rsqrt.approx.f32`.
#[inline]
pub fn rsqrt(a: f32, ftz: bool) -> f32 {
    through(a, ftz, |a| a.sqrt().recip())
}

/// `div.approx.f32`: a * (1/b). Where |b| > 2^126 the reciprocal is zero: 0 with the sign of the quotient, or NaN for
/// an infinite `a`.
#[inline]
pub fn div(a: f32, b: f32, ftz: bool) -> f32 {
    const LIMIT: f32 = f32::from_bits(0x7e80_0000); // 2^126
    let (a, b) = if ftz { (flush(a), flush(b)) } else { (a, b) };
    if b.abs() > LIMIT && b.is_finite() {
        return canonical(a * 0f32.copysign(b));
    }
    let quotient = canonical(a / b);
    if ftz { flush(quotient) } else { quotient }
}

/// `div.full.f32`: the quotient over the full range.
#[inline]
pub fn div_full(a: f32, b: f32, ftz: bool) -> f32 {
    super::single::div(a, b, Mode { ftz, ..Mode::RN })
}

/// `rsqrt.approx.f64`.
#[inline]
pub fn rsqrt_f64(a: f64) -> f64 {
    let result = a.sqrt().recip();
    if result.is_nan() { super::double::NAN } else { result }
}

/// `rcp.approx.ftz.f64`: of the upper 32 bits, in the upper 32 bits.
#[inline]
pub fn rcp_ftz_f64(a: f64) -> f64 {
    upper(a, f64::recip)
}

/// `rsqrt.approx.ftz.f64`: of the upper 32 bits, in the upper 32 bits.
#[inline]
pub fn rsqrt_ftz_f64(a: f64) -> f64 {
    upper(a, |a| a.sqrt().recip())
}

#[inline(always)]
fn upper(a: f64, function: impl Fn(f64) -> f64) -> f64 {
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    let flush = |value: f64| if value.is_subnormal() { 0f64.copysign(value) } else { value };
    let result = flush(function(flush(f64::from_bits(a.to_bits() & UPPER))));
    if a.is_nan() || result.is_nan() {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    f64::from_bits(result.to_bits() & UPPER)
}

/// `ex2.approx.f16` and `ex2.approx.ftz.bf16`.
#[inline]
pub fn ex2_half<H: Half>(a: u16, ftz: bool) -> u16 {
    narrow::<H>(a, ftz, f64::exp2)
}

/// `tanh.approx.f16` and `tanh.approx.bf16`.
#[inline]
pub fn tanh_half<H: Half>(a: u16) -> u16 {
    narrow::<H>(a, false, f64::tanh)
}

#[inline(always)]
fn narrow<H: Half>(a: u16, ftz: bool, function: impl Fn(f64) -> f64) -> u16 {
    let a = if ftz { half::flush::<H>(a) } else { a };
    let result = half::rounded::<H>(function(f64::from(H::to_f32(a))), Rounding::Rn);
    if ftz { half::flush::<H>(result) } else { result }
}
