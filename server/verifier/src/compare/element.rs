//! What the bytes of an array mean.

use serde::{Deserialize, Serialize};

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// `double`.
    F64,
    /// `float`.
    F32,
    /// `__half`.
    F16,
    /// `__nv_bfloat16`.
    Bf16,
    /// `signed char`.
    I8,
    /// `unsigned char`, `bool`, and what is only known to be bytes.
    U8,
    /// `short`.
    I16,
    /// `unsigned short`.
    U16,
    /// `int`.
    I32,
    /// `unsigned`.
    U32,
    /// `long long`.
    I64,
    /// `unsigned long long`.
    U64,
}

impl ElementType {
    const NAMES: [(&'static str, Self); 12] = [
        ("f64", Self::F64),
        ("f32", Self::F32),
        ("f16", Self::F16),
        ("bf16", Self::Bf16),
        ("i8", Self::I8),
        ("u8", Self::U8),
        ("i16", Self::I16),
        ("u16", Self::U16),
        ("i32", Self::I32),
        ("u32", Self::U32),
        ("i64", Self::I64),
        ("u64", Self::U64),
    ];

    /// `f32`, as files are named and messages say it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, ty)| *ty == self).map_or("u8", |(name, _)| name)
    }

    /// The type of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, ty)| *ty)
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }

    /// Whether elements are compared with a tolerance.
    pub fn is_floating(self) -> bool {
        self.epsilon() > 0.0
    }

    /// The distance from 1 to the next number; 0 for integers.
    pub fn epsilon(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON,
            Self::F32 => f64::from(f32::EPSILON),
            Self::F16 => 1.0 / 1024.0,
            Self::Bf16 => 1.0 / 128.0,
            _ => 0.0,
        }
    }

    /// How far an element may be off where nothing else is asked for. KernelBench's, by precision (its
    /// `get_tolerance_for_precision`: 1e-4 for fp32, 1e-2 for fp16 and bf16); for fp64 our own, in the same distance from its epsilon.
    pub fn tolerance(self) -> f64 {
        match self {
            Self::F64 => 1e-9,
            Self::F32 => 1e-4,
            Self::F16 | Self::Bf16 => 1e-2,
            _ => 0.0,
        }
    }

    /// The elements of `bytes` as numbers, one after the other; what is left over at the end is not among them. Integers of 64 bits
    /// are rounded, so they are for messages only.
    pub fn values(self, bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
        bytes.chunks_exact(self.size()).map(move |element| self.value(element))
    }

    fn value(self, element: &[u8]) -> f64 {
        let mut bytes = [0; 8];
        bytes[..element.len()].copy_from_slice(element);
        let word = u64::from_le_bytes(bytes);
        // Casts cut the word to the element's own bits.
        match self {
            Self::F64 => f64::from_bits(word),
            Self::F32 => f64::from(f32::from_bits(word as u32)),
            Self::F16 => half(word as u16),
            Self::Bf16 => f64::from(f32::from_bits((word as u32) << 16)),
            Self::I8 => f64::from(word as i8),
            Self::U8 => f64::from(word as u8),
            Self::I16 => f64::from(word as i16),
            Self::U16 => f64::from(word as u16),
            Self::I32 => f64::from(word as i32),
            Self::U32 => f64::from(word as u32),
            Self::I64 => (word as i64) as f64,
            Self::U64 => word as f64,
        }
    }
}

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * f64::from(-24).exp2(),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * f64::from(exponent - 15).exp2(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_numbers() {
        let one = |ty: ElementType, bytes: &[u8]| ty.values(bytes).next().unwrap();
        assert_eq!(one(ElementType::F16, &0x3c00u16.to_le_bytes()), 1.0);
        assert_eq!(one(ElementType::F16, &0xc100u16.to_le_bytes()), -2.5);
        assert_eq!(one(ElementType::F16, &0x0001u16.to_le_bytes()), 2f64.powi(-24));
        assert_eq!(one(ElementType::F16, &0x7c00u16.to_le_bytes()), f64::INFINITY);
        assert!(one(ElementType::F16, &0x7e00u16.to_le_bytes()).is_nan());
        assert_eq!(one(ElementType::Bf16, &0x4049u16.to_le_bytes()), 3.140625);
        assert_eq!(one(ElementType::I32, &(-5i32).to_le_bytes()), -5.0);
        assert_eq!(one(ElementType::I8, &[0xff]), -1.0);
        assert_eq!(one(ElementType::F32, &1.5f32.to_le_bytes()), 1.5);
        assert_eq!(ElementType::F64.values(&[0; 12]).count(), 1);
        for (name, ty) in ElementType::NAMES {
            assert_eq!((ty.name(), ElementType::parse(name)), (name, Some(ty)));
        }
    }
}
