//! Rounding once: results that are exact up to a sticky bit, and their rounding to a narrower format.
//!
//! "Round to odd": an f64 that is not exact gets an odd last bit, so that rounding it again to at most 51 bits gives what
//! rounding the exact value gives (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
//! using rounding to odd", IEEE Transactions on Computers 57(4), 2008). f32, f16 and bf16 results are made that way.

use super::Rounding;

/// `nearest` is the f64 nearest to a value that differs from it by something with the sign of `error`.
#[inline(always)]
pub(super) fn to_odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || !nearest.is_finite() || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The other neighbour of the exact value: away from zero where value and error agree in sign.
    let away = (nearest < 0.0) == (error < 0.0);
    if nearest == 0.0 {
        return f64::from_bits(1).copysign(error);
    }
    f64::from_bits(if away { nearest.to_bits() + 1 } else { nearest.to_bits() - 1 })
}

/// a + b to odd (Knuth's two-sum). The magnitudes are those of f32 at most twice over, so that nothing overflows.
#[inline(always)]
pub(super) fn sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let shadow = sum - a;
    let error = (a - (sum - shadow)) + (b - shadow);
    if error.is_nan() { sum } else { to_odd(sum, error) }
}

/// a / b to odd; both are f32 or narrower.
#[inline(always)]
pub(super) fn quotient(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || b.is_infinite() {
        return quotient;
    }
    let rest = quotient.mul_add(-b, a);
    to_odd(quotient, if b < 0.0 { -rest } else { rest })
}

/// Square root to odd of an f32 or narrower.
#[inline(always)]
pub(super) fn root(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() {
        return root;
    }
    to_odd(root, (-root).mul_add(root, a))
}

/// An integer to odd.
#[inline]
pub(super) fn integer(value: i128) -> f64 {
    let nearest = value as f64;
    let error = value - nearest as i128;
    to_odd(nearest, error.signum() as f64)
}

/// To f32 in any rounding; `value` is exact or to odd.
#[inline(always)]
pub(super) fn to_f32(value: f64, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    match rounding {
        Rounding::Rz if back.abs() > value.abs() => f32::from_bits(nearest.to_bits() - 1),
        Rounding::Rm if back > value => nearest.next_down(),
        Rounding::Rp if back < value => nearest.next_up(),
        _ => nearest,
    }
}

/// The sign of a sum that is zero: that of both, or negative where rounding is downward.
#[inline(always)]
pub(super) fn signed_zero(sum: f64, a: f64, b: f64, rounding: Rounding) -> f64 {
    if sum == 0.0 && rounding == Rounding::Rm && a.is_sign_negative() != b.is_sign_negative() {
        return -0.0;
    }
    sum
}

/// How a narrow format is laid out: a sign, `exponent` bits and `mantissa` bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    pub exponent: u32,
    pub mantissa: u32,
}

/// How the discarded bits decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discard {
    Mode(Rounding),
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
}

/// The magnitude of a finite `value` (exact or to odd) in a format without an upper limit: past the largest exponent the
/// encoding goes on, which the caller clamps.
#[inline]
pub(super) fn magnitude(value: f64, format: Format, discard: Discard) -> u64 {
    let bits = value.to_bits() & (u64::MAX >> 1);
    if bits == 0 {
        return 0;
    }
    let negative = value.is_sign_negative();
    let field = (bits >> 52) as i32;
    let mantissa = (bits & ((1 << 52) - 1)) | (u64::from(field > 0) << 52);
    let exponent = field.max(1) - 1023;
    let lowest = 2 - (1 << (format.exponent - 1));
    let below = (lowest - exponent).max(0) as u32;
    let shift = (52 - format.mantissa + below).min(60);
    let (kept, rest, half) = (mantissa >> shift, mantissa & ((1 << shift) - 1), 1u64 << (shift - 1));
    let up = match discard {
        Discard::Mode(Rounding::Rn) => rest > half || (rest == half && kept & 1 == 1),
        Discard::Mode(Rounding::Rz) => false,
        Discard::Mode(Rounding::Rm) => negative && rest > 0,
        Discard::Mode(Rounding::Rp) => !negative && rest > 0,
        Discard::NearestAway => rest >= half,
    };
    (((exponent.max(lowest) - lowest) as u64) << format.mantissa) + kept + u64::from(up)
}

/// Whether a value that is too large becomes infinite rather than the largest finite one.
#[inline]
pub(super) fn overflows_to_infinity(negative: bool, rounding: Rounding) -> bool {
    match rounding {
        Rounding::Rn => true,
        Rounding::Rz => false,
        Rounding::Rm => negative,
        Rounding::Rp => !negative,
    }
}
