//! f16 and bf16, held in the low 16 bits of a register; `x2` operations work on the halves of 32 bits ([`both`]).
//!
//! Source: PTX ISA, "Half Precision Floating Point Instructions" and "Half Precision Comparison Instructions". Results are
//! rounded once. The canonical NaN is 0x7fff for both.

use super::exact::{self, Discard, Format, magnitude, overflows_to_infinity, signed_zero};
use super::{Comparison, Extremum, Mode, Rounding};

/// Which of the two formats.
pub trait Half {
    /// Bits of the exponent.
    const EXPONENT: u32;
    /// Bits of the mantissa, without the leading one.
    const MANTISSA: u32;
    /// Positive infinity.
    const INFINITY: u16 = ((1 << Self::EXPONENT) - 1) << Self::MANTISSA;
    /// 1.
    const ONE: u16 = ((1 << (Self::EXPONENT - 1)) - 1) << Self::MANTISSA;
    /// The value as f32, exactly; a NaN stays one.
    fn to_f32(bits: u16) -> f32;
    /// The bits of a value of the format, not negative; past its largest, infinity.
    fn encode(value: f32) -> u16;
}

/// The NaN that every operation gives.
pub const NAN: u16 = 0x7fff;
const SIGN: u16 = 0x8000;

/// IEEE 754 binary16: `.f16`.
#[derive(Debug, Clone, Copy)]
pub enum F16 {}

/// `.bf16`: the upper half of an f32.
#[derive(Debug, Clone, Copy)]
pub enum Bf16 {}

impl Half for F16 {
    const EXPONENT: u32 = 5;
    const MANTISSA: u32 = 10;

    #[inline(always)]
    fn to_f32(bits: u16) -> f32 {
        let sign = u32::from(bits & SIGN) << 16;
        let magnitude = u32::from(bits & !SIGN) << 13;
        // 2^112 moves the exponent from one bias to the other and makes subnormals normal.
        let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
        let special = magnitude >= 0x0f80_0000;
        f32::from_bits(if special { magnitude | 0x7f80_0000 } else { scaled.to_bits() } | sign)
    }

    #[inline(always)]
    fn encode(value: f32) -> u16 {
        // 2^-112, the other way.
        ((value * f32::from_bits(0x0780_0000)).to_bits() >> 13) as u16
    }
}

impl Half for Bf16 {
    const EXPONENT: u32 = 8;
    const MANTISSA: u32 = 7;

    #[inline(always)]
    fn to_f32(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }

    #[inline(always)]
    fn encode(value: f32) -> u16 {
        (value.to_bits() >> 16) as u16
    }
}

/// Whether it is a NaN.
#[inline(always)]
pub fn is_nan<H: Half>(bits: u16) -> bool {
    bits & !SIGN > H::INFINITY
}

/// `.ftz`: a subnormal becomes a zero of its sign.
#[inline(always)]
pub fn flush<H: Half>(bits: u16) -> u16 {
    if bits & H::INFINITY == 0 { bits & SIGN } else { bits }
}

#[inline(always)]
fn flushed<H: Half>(bits: u16, ftz: bool) -> u16 {
    if ftz { flush::<H>(bits) } else { bits }
}

/// The value as f64, exactly.
#[inline(always)]
fn wide<H: Half>(bits: u16) -> f64 {
    f64::from(H::to_f32(bits))
}

/// A value that is exact or rounded to odd, in the format, to nearest. Without branches, so that loops over it vectorise.
#[inline(always)]
fn nearest<H: Half>(value: f64) -> u16 {
    const EXPONENT: u64 = 0x7ff << 52;
    let least_exponent = 2 - (1i64 << (H::EXPONENT - 1));
    let least = f64::from_bits(((least_exponent + 1023) as u64) << 52);
    // From here on everything is infinite.
    let beyond = f64::from_bits((1023 + (1 << (H::EXPONENT - 1))) << 52);
    let magnitude = value.abs();
    let magnitude = if magnitude < beyond { magnitude } else { beyond };
    // Adding the power of two whose last bit is the last bit of the result rounds there.
    let power = if magnitude > least { magnitude } else { least }.to_bits() & EXPONENT;
    let magic = f64::from_bits(power + (u64::from(52 - H::MANTISSA) << 52));
    let bits = H::encode((magnitude + magic - magic) as f32);
    let sign = (value.to_bits() >> 48) as u16 & SIGN;
    if value.is_nan() { NAN } else { sign | bits }
}

/// A value that is exact or rounded to odd, in the format.
#[inline(always)]
pub fn rounded<H: Half>(value: f64, rounding: Rounding) -> u16 {
    if rounding == Rounding::Rn { nearest::<H>(value) } else { directed::<H>(value, rounding) }
}

#[inline]
fn directed<H: Half>(value: f64, rounding: Rounding) -> u16 {
    if value.is_nan() {
        return NAN;
    }
    let sign = if value.is_sign_negative() { SIGN } else { 0 };
    if value.is_infinite() {
        return sign | H::INFINITY;
    }
    let format = Format { exponent: H::EXPONENT, mantissa: H::MANTISSA };
    let found = magnitude(value, format, Discard::Mode(rounding));
    let infinity = u64::from(H::INFINITY);
    let limit = if overflows_to_infinity(sign != 0, rounding) { infinity } else { infinity - 1 };
    sign | if found >= infinity { limit } else { found } as u16
}

/// What `.ftz`, `.sat` and `.relu` do to a result.
#[inline(always)]
pub(super) fn finish<H: Half>(bits: u16, mode: Mode) -> u16 {
    let bits = flushed::<H>(bits, mode.ftz);
    if mode.saturate {
        return if bits & SIGN != 0 || is_nan::<H>(bits) { 0 } else { bits.min(H::ONE) };
    }
    if mode.relu && bits & SIGN != 0 && !is_nan::<H>(bits) { 0 } else { bits }
}

/// A result that is exact or rounded to odd. As for f32, `.ftz` flushes what would be subnormal if the exponent had no limit,
/// even if it rounds up to the least normal number.
#[inline]
fn result<H: Half>(value: f64, mode: Mode) -> u16 {
    let bits = rounded::<H>(value, mode.rounding);
    let least = 1u16 << H::MANTISSA;
    if mode.ftz && bits & !SIGN == least {
        // Far from the lower limit, where nothing is subnormal.
        let scale = 65536.0;
        let limit = rounded::<H>(wide::<H>(least) * scale, Rounding::Rn);
        if rounded::<H>(value * scale, mode.rounding) & !SIGN < limit {
            return finish::<H>(bits & SIGN, mode);
        }
    }
    finish::<H>(bits, mode)
}

/// `add`. Modes other than `.rn` are rounded as asked, though PTX has none.
#[inline]
pub fn add<H: Half>(a: u16, b: u16, mode: Mode) -> u16 {
    let (a, b) = (wide::<H>(flushed::<H>(a, mode.ftz)), wide::<H>(flushed::<H>(b, mode.ftz)));
    let sum = signed_zero(exact::sum(a, b), a, b, mode.rounding);
    result::<H>(sum, mode)
}

/// `sub`.
#[inline]
pub fn sub<H: Half>(a: u16, b: u16, mode: Mode) -> u16 {
    add::<H>(a, b ^ SIGN, mode)
}

/// `mul`.
#[inline]
pub fn mul<H: Half>(a: u16, b: u16, mode: Mode) -> u16 {
    let (a, b) = (wide::<H>(flushed::<H>(a, mode.ftz)), wide::<H>(flushed::<H>(b, mode.ftz)));
    result::<H>(a * b, mode)
}

/// `fma`.
#[inline]
pub fn fma<H: Half>(a: u16, b: u16, c: u16, mode: Mode) -> u16 {
    let [a, b, c] = [a, b, c].map(|bits| wide::<H>(flushed::<H>(bits, mode.ftz)));
    let sum = signed_zero(exact::sum(a * b, c), a * b, c, mode.rounding);
    result::<H>(sum, mode)
}

/// `neg`; NaN becomes the canonical NaN.
#[inline(always)]
pub fn neg<H: Half>(a: u16, ftz: bool) -> u16 {
    if is_nan::<H>(a) { NAN } else { flushed::<H>(a, ftz) ^ SIGN }
}

/// `abs`; NaN becomes the canonical NaN.
#[inline(always)]
pub fn abs<H: Half>(a: u16, ftz: bool) -> u16 {
    if is_nan::<H>(a) { NAN } else { flushed::<H>(a, ftz) & !SIGN }
}

/// `min`: -0 is less than +0; a NaN loses unless `.NaN` is given.
#[inline]
pub fn min<H: Half>(a: u16, b: u16, modifiers: Extremum) -> u16 {
    extremum::<H>(a, b, modifiers, |a, b| order(a) < order(b))
}

/// `max`: +0 is greater than -0; a NaN loses unless `.NaN` is given.
#[inline]
pub fn max<H: Half>(a: u16, b: u16, modifiers: Extremum) -> u16 {
    extremum::<H>(a, b, modifiers, |a, b| order(a) > order(b))
}

/// A number that is ordered as the values are, -0 before +0.
#[inline(always)]
fn order(bits: u16) -> i32 {
    let magnitude = i32::from(bits & !SIGN);
    if bits & SIGN != 0 { -1 - magnitude } else { magnitude }
}

#[inline(always)]
fn extremum<H: Half>(a: u16, b: u16, modifiers: Extremum, first: impl Fn(u16, u16) -> bool) -> u16 {
    let (mut a, mut b) = (flushed::<H>(a, modifiers.ftz), flushed::<H>(b, modifiers.ftz));
    let sign = (a ^ b) & SIGN;
    if modifiers.abs {
        (a, b) = (a & !SIGN, b & !SIGN);
    }
    let chosen = match (is_nan::<H>(a), is_nan::<H>(b)) {
        (true, true) => return NAN,
        (true, false) | (false, true) if modifiers.nan => return NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if first(a, b) => a,
        (false, false) => b,
    };
    if modifiers.xorsign { (chosen & !SIGN) | sign } else { chosen }
}

/// A comparison of `set` and `setp`.
#[inline]
pub fn compare<H: Half>(a: u16, b: u16, comparison: Comparison, ftz: bool) -> bool {
    comparison.holds(H::to_f32(flushed::<H>(a, ftz)), H::to_f32(flushed::<H>(b, ftz)))
}

/// Applies an operation to both halves of `x2` operands.
#[inline(always)]
pub fn both(a: u32, b: u32, operation: impl Fn(u16, u16) -> u16) -> u32 {
    let low = operation(a as u16, b as u16);
    let high = operation((a >> 16) as u16, (b >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

/// As [`both`], with three operands.
#[inline(always)]
pub fn both3(a: u32, b: u32, c: u32, operation: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let low = operation(a as u16, b as u16, c as u16);
    let high = operation((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}
