//! e4m3, e5m2, e3m2, e2m3 and e2m1: floating-point numbers of 8, 6 and 4 bits, which only `cvt` and matrix instructions know.
//!
//! Source: PTX ISA, "Alternate Floating-Point Data Formats" and "cvt"; e4m3 and e5m2 are those of Micikevicius and others,
//! "FP8 Formats for Deep Learning" (2022); the narrower ones are the OCP Microscaling formats 1.0's.

use super::Rounding;
use super::exact::{Discard, Format, magnitude};
use super::half::{self, Half};

/// One of the formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are PTX's own.
pub enum Minifloat {
    E4m3,
    E5m2,
    E3m2,
    E2m3,
    E2m1,
}

/// A layout, the encoding of the largest finite magnitude, and that of NaN where there is one.
struct Layout {
    format: Format,
    largest: u8,
    nan: Option<u8>,
}

impl Minifloat {
    const fn layout(self) -> Layout {
        let (exponent, mantissa, largest, nan) = match self {
            Self::E4m3 => (4, 3, 0x7e, Some(0x7f)),
            Self::E5m2 => (5, 2, 0x7b, Some(0x7f)),
            Self::E3m2 => (3, 2, 0x1f, None),
            Self::E2m3 => (2, 3, 0x1f, None),
            Self::E2m1 => (2, 1, 0x07, None),
        };
        Layout { format: Format { exponent, mantissa }, largest, nan }
    }

    /// Bits of one value: 8, 6 or 4.
    #[inline]
    pub const fn bits(self) -> u32 {
        let Layout { format, .. } = self.layout();
        1 + format.exponent + format.mantissa
    }

    /// `cvt.rn.satfinite`: an f32, f16 or bf16, widened exactly, to this format. What is too large, infinity too, becomes the
    /// largest finite value; NaN becomes the format's NaN or, where it has none, the largest positive value.
    #[inline]
    pub fn from_f64(self, value: f64, relu: bool) -> u8 {
        let Layout { format, largest, nan } = self.layout();
        if value.is_nan() {
            return nan.unwrap_or(largest);
        }
        if relu && value.is_sign_negative() {
            return 0;
        }
        let sign = u8::from(value.is_sign_negative()) << (self.bits() - 1);
        let found = magnitude(value, format, Discard::Mode(Rounding::Rn)).min(u64::from(largest));
        sign | found as u8
    }

    /// The value, exactly. The bits above [`Minifloat::bits`] are not looked at.
    #[inline]
    pub fn to_f64(self, bits: u8) -> f64 {
        let Layout { format, largest, nan } = self.layout();
        let sign_bit = 1u8 << (self.bits() - 1);
        let found = bits & (sign_bit - 1);
        let negative = bits & sign_bit != 0;
        let fraction = f64::from(found & ((1 << format.mantissa) - 1)) / f64::from(1u32 << format.mantissa);
        let exponent = i32::from(found >> format.mantissa);
        let bias = (1 << (format.exponent - 1)) - 1;
        let value = match exponent {
            _ if nan.is_some() && found > largest => {
                if self == Self::E5m2 && found == 0x7c {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            0 => fraction * 2f64.powi(1 - bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
        };
        if negative { -value } else { value }
    }

    /// `cvt.rn.satfinite.….f32 d, a, b`: `a` in the upper half of the result, `b` in the lower. For e2m1 a half has 4 bits.
    #[inline]
    pub fn pair_from_f32(self, a: f32, b: f32, relu: bool) -> u16 {
        let width = if self.bits() == 4 { 4 } else { 8 };
        u16::from(self.from_f64(f64::from(a), relu)) << width | u16::from(self.from_f64(f64::from(b), relu))
    }

    /// `cvt.rn.satfinite.….f16x2 d, a` and that of bf16x2.
    #[inline]
    pub fn pair_from_half<H: Half>(self, a: u32, relu: bool) -> u16 {
        self.pair_from_f32(H::to_f32((a >> 16) as u16), H::to_f32(a as u16), relu)
    }

    /// `cvt.rn.f16x2.… d, a` and that of bf16x2.
    #[inline]
    pub fn pair_to_half<H: Half>(self, a: u16, relu: bool) -> u32 {
        let width = if self.bits() == 4 { 4 } else { 8 };
        let mode = super::Mode { relu, ..super::Mode::RN };
        let convert = |bits: u16| {
            u32::from(half::finish::<H>(half::rounded::<H>(self.to_f64(bits as u8), Rounding::Rn), mode))
        };
        convert(a >> width) << 16 | convert(a)
    }
}
