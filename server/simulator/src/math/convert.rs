//! `cvt` between integers, f16, bf16, f32, f64 and tf32.
//!
//! Source: PTX ISA, "Data Movement and Conversion Instructions: cvt". The 8-bit, 6-bit and 4-bit formats are in
//! [`super::minifloat`].

use super::exact::{self, Discard, Format};
use super::half::{self, Half};
use super::single::{canonical, flush, saturate};
use super::{IntegerRounding, Mode, Rounding, double};

/// A value rounded to an integer.
#[inline(always)]
pub fn integral(value: f64, rounding: IntegerRounding) -> f64 {
    match rounding {
        IntegerRounding::Rni => value.round_ties_even(),
        IntegerRounding::Rzi => value.trunc(),
        IntegerRounding::Rmi => value.floor(),
        IntegerRounding::Rpi => value.ceil(),
    }
}

/// An integer type: 8, 16, 32 or 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Integer {
    /// How many bits.
    pub bits: u32,
    /// `.s…` rather than `.u…`.
    pub signed: bool,
}

impl Integer {
    /// The least value.
    #[inline]
    pub const fn min(self) -> i128 {
        if self.signed { -(1i128 << (self.bits - 1)) } else { 0 }
    }

    /// The greatest value.
    #[inline]
    pub const fn max(self) -> i128 {
        (1i128 << (self.bits - self.signed as u32)) - 1
    }
}

/// f16, bf16 or f32 to an integer, which is clamped to its range, sign-extended (or zero-extended) to 64 bits. Widen the
/// source exactly, and flush it first where `.ftz` says so. NaN is 0, and the type's middle value for 64 bits.
#[inline]
pub fn float_to_int(value: f64, rounding: IntegerRounding, to: Integer) -> u64 {
    clamped(value, rounding, to, if to.bits == 64 { 1 << 63 } else { 0 })
}

/// f64 to an integer: as [`float_to_int`], but NaN is `1 << (bits - 1)` for every width.
#[inline]
pub fn double_to_int(value: f64, rounding: IntegerRounding, to: Integer) -> u64 {
    let nan = 1u64 << (to.bits - 1);
    clamped(value, rounding, to, if to.signed { nan.wrapping_neg() } else { nan })
}

#[inline(always)]
fn clamped(value: f64, rounding: IntegerRounding, to: Integer, nan: u64) -> u64 {
    if value.is_nan() {
        return nan;
    }
    let value = integral(value, rounding);
    match (to.signed, to.bits) {
        (true, 64) => value as i64 as u64,
        (false, 64) => value as u64,
        (true, _) => (value as i64).clamp(to.min() as i64, to.max() as i64) as u64,
        (false, _) => (value as u64).min(to.max() as u64),
    }
}

/// f32 to s32, the commonest conversion. NaN is 0.
#[inline(always)]
pub fn f32_to_s32(value: f32, rounding: IntegerRounding) -> i32 {
    integral(f64::from(value), rounding) as i32
}

/// f32 to u32. NaN is 0.
#[inline(always)]
pub fn f32_to_u32(value: f32, rounding: IntegerRounding) -> u32 {
    integral(f64::from(value), rounding) as u32
}

/// A signed integer to f32.
#[inline]
pub fn s64_to_f32(value: i64, rounding: Rounding) -> f32 {
    if rounding == Rounding::Rn {
        return value as f32;
    }
    exact::to_f32(exact::integer(i128::from(value)), rounding)
}

/// An unsigned integer to f32.
#[inline]
pub fn u64_to_f32(value: u64, rounding: Rounding) -> f32 {
    if rounding == Rounding::Rn {
        return value as f32;
    }
    exact::to_f32(exact::integer(i128::from(value)), rounding)
}

/// A signed integer to f64.
#[inline]
pub fn s64_to_f64(value: i64, rounding: Rounding) -> f64 {
    directed(value as f64, i128::from(value), rounding)
}

/// An unsigned integer to f64.
#[inline]
pub fn u64_to_f64(value: u64, rounding: Rounding) -> f64 {
    directed(value as f64, i128::from(value), rounding)
}

#[inline(always)]
fn directed(nearest: f64, value: i128, rounding: Rounding) -> f64 {
    if rounding == Rounding::Rn {
        return nearest;
    }
    let back = nearest as i128;
    let down = matches!(rounding, Rounding::Rm) || (rounding == Rounding::Rz && value > 0);
    let up = matches!(rounding, Rounding::Rp) || (rounding == Rounding::Rz && value < 0);
    match back.cmp(&value) {
        std::cmp::Ordering::Greater if down => nearest.next_down(),
        std::cmp::Ordering::Less if up => nearest.next_up(),
        _ => nearest,
    }
}

/// An integer to f16 or bf16.
#[inline]
pub fn int_to_half<H: Half>(value: i128, rounding: Rounding) -> u16 {
    half::rounded::<H>(exact::integer(value), rounding)
}

/// f32 to f16 or bf16: `cvt.rn.f16.f32`, with `.ftz` (of the source), `.sat` and `.relu`.
#[inline]
pub fn f32_to_half<H: Half>(value: f32, mode: Mode) -> u16 {
    let value = if mode.ftz { flush(value) } else { value };
    double_to_half::<H>(f64::from(value), mode)
}

/// f64 to f16 or bf16.
#[inline]
pub fn double_to_half<H: Half>(value: f64, mode: Mode) -> u16 {
    half::finish::<H>(half::rounded::<H>(value, mode.rounding), Mode { ftz: false, ..mode })
}

/// As [`f32_to_half`] with `.satfinite`: what is too large becomes the largest finite value.
#[inline]
pub fn f32_to_half_finite<H: Half>(value: f32, mode: Mode) -> u16 {
    let bits = f32_to_half::<H>(value, mode);
    if bits & 0x7fff == H::INFINITY { bits - 1 } else { bits }
}

/// f16 or bf16 to f32, with `.ftz` and `.sat`; NaN becomes the canonical one.
#[inline]
pub fn half_to_f32<H: Half>(bits: u16, mode: Mode) -> f32 {
    f32_to_f32(H::to_f32(bits), mode)
}

/// f16 to bf16 and back, or one of them rounded to itself.
#[inline]
pub fn half_to_half<From: Half, To: Half>(bits: u16, mode: Mode) -> u16 {
    double_to_half::<To>(f64::from(From::to_f32(bits)), mode)
}

/// `cvt.f32.f32` without integer rounding: `.ftz` and `.sat`.
#[inline]
pub fn f32_to_f32(value: f32, mode: Mode) -> f32 {
    let value = canonical(if mode.ftz { flush(value) } else { value });
    if mode.saturate { saturate(value) } else { value }
}

/// f64 to f32, with `.ftz` (of the result) and `.sat`.
#[inline]
pub fn f64_to_f32(value: f64, mode: Mode) -> f32 {
    f32_to_f32(exact::to_f32(value, mode.rounding), mode)
}

/// f32 to f64, with `.ftz` (of the source) and `.sat`.
#[inline]
pub fn f32_to_f64(value: f32, mode: Mode) -> f64 {
    let value = f64::from(if mode.ftz { flush(value) } else { value });
    if mode.saturate { saturate_f64(value) } else { value }
}

/// `cvt.sat.f64.f64`: to [0, 1]; NaN and -0 become +0.
#[inline]
pub fn saturate_f64(value: f64) -> f64 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

/// `cvt.rni.f32.f32` and its like: an f32 rounded to an integral f32.
#[inline]
pub fn round_f32(value: f32, rounding: IntegerRounding, mode: Mode) -> f32 {
    let value = if mode.ftz { flush(value) } else { value };
    f32_to_f32(integral(f64::from(value), rounding) as f32, mode)
}

/// `cvt.rni.f64.f64` and its like.
#[inline]
pub fn round_f64(value: f64, rounding: IntegerRounding) -> f64 {
    if value.is_nan() { double::add(value, 0.0, Rounding::Rn) } else { integral(value, rounding) }
}

/// `cvt.rni.f16.f16` and its like.
#[inline]
pub fn round_half<H: Half>(bits: u16, rounding: IntegerRounding, mode: Mode) -> u16 {
    double_to_half::<H>(integral(f64::from(H::to_f32(bits)), rounding), mode)
}

/// An integer to a narrower or otherwise signed one with `.sat`: clamped to the range of `to`, extended to 64 bits.
#[inline]
pub fn saturate_int(value: i128, to: Integer) -> u64 {
    value.clamp(to.min(), to.max()) as u64
}

/// How `cvt.….tf32.f32` rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tf32Rounding {
    /// `.rna`: to nearest, ties away from zero.
    Rna,
    /// `.rn`.
    Rn,
    /// `.rz`.
    Rz,
}

/// f32 to tf32: an f32 with 10 bits of mantissa, the other 13 zero.
#[inline]
pub fn f32_to_tf32(value: f32, rounding: Tf32Rounding, relu: bool, finite: bool) -> f32 {
    if !value.is_finite() || value == 0.0 {
        let limit = f32::from_bits(0x7f7f_e000).copysign(value);
        return match value {
            _ if value.is_nan() => canonical(value),
            _ if relu && value.is_sign_negative() => 0.0,
            _ if finite && value.is_infinite() => limit,
            _ => value,
        };
    }
    let discard = match rounding {
        Tf32Rounding::Rna => Discard::NearestAway,
        Tf32Rounding::Rn => Discard::Mode(Rounding::Rn),
        Tf32Rounding::Rz => Discard::Mode(Rounding::Rz),
    };
    const LARGEST: u64 = 0x3_fbff; // 0x7f7fe000 >> 13
    let found = exact::magnitude(f64::from(value), Format { exponent: 8, mantissa: 10 }, discard);
    let found = if finite { found.min(LARGEST) } else { found.min(LARGEST + 1) };
    let bits = (found as u32) << 13 | (value.to_bits() & 0x8000_0000);
    if relu && value.is_sign_negative() { 0.0 } else { f32::from_bits(bits) }
}

/// `cvt.pack.sat`: `a` and `b` clamped to `bits` wide integers, `a` above `b`, and the low bits of `c` above both.
#[inline]
pub fn pack(a: i32, b: i32, c: u32, to: Integer) -> u32 {
    let mask = u32::MAX >> (32 - to.bits);
    let clamp = |value: i32| saturate_int(i128::from(value), to) as u32 & mask;
    let pair = clamp(a) << to.bits | clamp(b);
    if to.bits == 16 { pair } else { pair | c << (2 * to.bits) }
}
