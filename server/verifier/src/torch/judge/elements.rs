//! Tensors as bytes: where each lies, and what its elements are as numbers.

use std::fmt::Write;

use crate::torch::values::{Dtype, Tensor, Values};

/// Values with the region of bytes that their tensors lie in.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// How they are nested, and where the tensors lie.
    pub values: &'a Values,
    /// The region.
    pub bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// The tensor of this number with its bytes. What a process says of itself is a claim, so all of it is looked at.
    ///
    /// # Errors
    /// There is no such tensor, or its bytes don't fit its shape or the region. In words, to follow the name of the value.
    pub fn tensor(&self, index: usize) -> Result<(&'a Tensor, &'a [u8]), String> {
        let tensor = self
            .values
            .tensors
            .get(index)
            .ok_or_else(|| format!("names tensor {index}, which is not there"))?;
        let wanted = tensor.count().and_then(|count| count.checked_mul(tensor.dtype.size()));
        let range = usize::try_from(tensor.offset)
            .ok()
            .zip(tensor.offset.checked_add(tensor.bytes).and_then(|end| usize::try_from(end).ok()));
        let bytes = range.and_then(|(start, end)| self.bytes.get(start..end));
        match bytes {
            Some(bytes) if wanted == Some(tensor.bytes) => Ok((tensor, bytes)),
            _ => Err(format!("has a tensor of shape {} whose bytes are not all there", shape(&tensor.shape))),
        }
    }
}

/// A type of elements that is read as floating-point numbers. A complex number is two of them.
pub(super) trait Element {
    /// Bytes of one.
    const SIZE: usize;
    /// Its value; `bytes` has [`Self::SIZE`] of them.
    fn read(bytes: &[u8]) -> f64;
}

macro_rules! elements {
    ($($name:ident $size:literal |$bytes:ident| $value:expr;)*) => {
        $(
            pub(super) struct $name;
            impl Element for $name {
                const SIZE: usize = $size;
                #[inline(always)]
                fn read(bytes: &[u8]) -> f64 {
                    let mut $bytes = [0u8; $size];
                    $bytes.copy_from_slice(&bytes[..$size]);
                    $value
                }
            }
        )*
    };
}

elements! {
    F64 8 |b| f64::from_le_bytes(b);
    F32 4 |b| f64::from(f32::from_le_bytes(b));
    F16 2 |b| f64::from(half_to_float(u16::from_le_bytes(b)));
    Bf16 2 |b| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16));
    I64 8 |b| { #[allow(clippy::cast_precision_loss)] let value = i64::from_le_bytes(b) as f64; value };
    I32 4 |b| f64::from(i32::from_le_bytes(b));
    I16 2 |b| f64::from(i16::from_le_bytes(b));
    I8 1 |b| f64::from(i8::from_le_bytes(b));
    U8 1 |b| f64::from(b[0]);
}

/// Evaluates an expression with `$element` standing for the type of a [`Dtype`]'s elements, or of the parts of its complex ones.
macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {{
        use $crate::torch::judge::elements as e;
        use $crate::torch::values::Dtype as D;
        match $dtype {
            D::Float64 | D::Complex128 => {
                type $element = e::F64;
                $body
            }
            D::Float32 | D::Complex64 => {
                type $element = e::F32;
                $body
            }
            D::Float16 => {
                type $element = e::F16;
                $body
            }
            D::Bfloat16 => {
                type $element = e::Bf16;
                $body
            }
            D::Int64 => {
                type $element = e::I64;
                $body
            }
            D::Int32 => {
                type $element = e::I32;
                $body
            }
            D::Int16 => {
                type $element = e::I16;
                $body
            }
            D::Int8 => {
                type $element = e::I8;
                $body
            }
            D::Uint8 | D::Bool => {
                type $element = e::U8;
                $body
            }
        }
    }};
}
pub(super) use with_element;

/// Numbers that one element consists of: two of a complex one.
pub(super) fn parts(dtype: Dtype) -> usize {
    if matches!(dtype, Dtype::Complex64 | Dtype::Complex128) { 2 } else { 1 }
}

/// All numbers of a tensor, one after the other, the parts of complex ones too.
pub(super) fn numbers(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    with_element!(dtype, E => bytes.chunks_exact(E::SIZE).map(E::read).collect())
}

/// The numbers of some elements, the parts of complex ones too.
pub fn numbers_of(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    numbers(dtype, bytes)
}

/// The element that a number among [`numbers_of`] belongs to.
pub fn number_of(dtype: Dtype, at: usize) -> usize {
    at / parts(dtype)
}

/// The element at this place as a person writes it.
pub(super) fn element_in_words(dtype: Dtype, bytes: &[u8], index: usize) -> String {
    let size = usize::try_from(dtype.size()).unwrap_or(1);
    let Some(bytes) = bytes.get(index * size..(index + 1) * size) else { return "nothing".to_owned() };
    let number = |value: f64| {
        if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value}") } else { format!("{value:.7e}") }
    };
    match dtype {
        Dtype::Bool => (bytes.iter().any(|byte| *byte != 0)).to_string(),
        // As text, since not every integer of 64 bits is a double.
        Dtype::Int64 => {
            bytes.try_into().map_or_else(|_| String::new(), |bytes| i64::from_le_bytes(bytes).to_string())
        }
        _ => match numbers(dtype, bytes)[..] {
            [real, imaginary] => {
                format!("{}{}{}i", number(real), if imaginary < 0.0 { "" } else { "+" }, number(imaginary))
            }
            [value, ..] => number(value),
            [] => String::new(),
        },
    }
}

/// The number that takes part in a message or a measure, of an element or one part of it.
pub(super) fn number_at(dtype: Dtype, bytes: &[u8], part: usize) -> f64 {
    with_element!(dtype, E => bytes.get(part * E::SIZE..(part + 1) * E::SIZE).map_or(f64::NAN, E::read))
}

/// Writes a number as an element of a floating type, rounded to nearest, ties to even. Other types are left as they are.
pub(super) fn write_number(dtype: Dtype, bytes: &mut [u8], value: f64) {
    #[allow(clippy::cast_possible_truncation)] // Rounding is what is wanted.
    match dtype {
        Dtype::Float64 | Dtype::Complex128 => bytes.copy_from_slice(&value.to_le_bytes()),
        Dtype::Float32 | Dtype::Complex64 => bytes.copy_from_slice(&(value as f32).to_le_bytes()),
        Dtype::Float16 => bytes.copy_from_slice(&float_to_half(value as f32).to_le_bytes()),
        Dtype::Bfloat16 => bytes.copy_from_slice(&float_to_bfloat(value as f32).to_le_bytes()),
        _ => {}
    }
}

/// Bytes of the numbers that [`write_number`] writes.
pub(super) fn number_size(dtype: Dtype) -> usize {
    usize::try_from(dtype.size()).unwrap_or(1) / parts(dtype)
}

/// IEEE 754 binary16 to binary32, exactly.
#[inline(always)]
fn half_to_float(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    match exponent {
        // Subnormal: so many times 2^-24, which is exact.
        #[allow(clippy::cast_precision_loss)]
        0 => f32::from_bits(sign | (fraction as f32 * f32::from_bits(103 << 23)).to_bits()),
        31 => f32::from_bits(sign | 0xff << 23 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// binary32 to binary16.
fn float_to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = u16::try_from(bits >> 16 & 0x8000).unwrap_or(0);
    let size = bits & 0x7fff_ffff;
    let rounded = match size {
        // NaN, quiet.
        0x7f80_0001.. => 0x7e00,
        // From 65520 on, half way between the largest half and the next power of two.
        0x477f_f000.. => 0x7c00,
        // Below 2^-14: the bits are what is left of the fraction when it is added to a number whose last place is 2^-24.
        ..0x3880_0000 => (f32::from_bits(size) + 0.5).to_bits() - 0.5f32.to_bits(),
        _ => (size + 0xfff + (size >> 13 & 1) - (112 << 23)) >> 13,
    };
    sign | u16::try_from(rounded).unwrap_or(0x7c00)
}

/// binary32 to bfloat16.
fn float_to_bfloat(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = if value.is_nan() { bits | 0x40_0000 } else { bits + 0x7fff + (bits >> 16 & 1) };
    u16::try_from(rounded >> 16).unwrap_or(0)
}

/// Whether all floating-point numbers of some values are finite.
pub fn all_finite(view: View) -> bool {
    (0..view.values.tensors.len()).all(|index| {
        let Ok((tensor, bytes)) = view.tensor(index) else { return false };
        let finite = |bytes: &[u8]| with_element!(tensor.dtype, E => bytes.chunks_exact(E::SIZE).all(|one| E::read(one).is_finite()));
        !tensor.dtype.is_floating()
            || super::parallel::chunks(bytes.len(), number_size(tensor.dtype), |range| finite(&bytes[range])).into_iter().all(|all| all)
    })
}

/// A shape as torch writes it: `[32, 1024]`.
pub fn shape(shape: &[u64]) -> String {
    let mut text = String::from("[");
    for (index, size) in shape.iter().enumerate() {
        let _ = write!(text, "{}{size}", if index > 0 { ", " } else { "" });
    }
    text + "]"
}

/// The indices in each dimension of the element at this place of a contiguous tensor.
pub fn unravel(shape: &[u64], flat: usize) -> Vec<u64> {
    let mut rest = flat as u64;
    let mut index: Vec<u64> = shape
        .iter()
        .rev()
        .map(|size| {
            let size = (*size).max(1);
            let at = rest % size;
            rest /= size;
            at
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compare::ElementType;

    #[test]
    fn every_half_and_bfloat_is_read_and_written() {
        for bits in 0..=u16::MAX {
            let bytes = bits.to_le_bytes();
            for (dtype, element) in [(Dtype::Float16, ElementType::F16), (Dtype::Bfloat16, ElementType::Bf16)]
            {
                let value = numbers(dtype, &bytes)[0];
                let expected = element.values(&bytes).next().unwrap();
                assert!(
                    value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(),
                    "{bits:#x}"
                );
                let mut written = [0; 2];
                write_number(dtype, &mut written, value);
                assert!(written == bytes || value.is_nan(), "{bits:#x}");
            }
        }
    }

    proptest! {
        #[test]
        fn halves_round_to_the_nearest(value in -70000f32..70000.0, scale in -30..1i32) {
            let value = value * f32::from(i16::try_from(scale).unwrap()).exp2();
            for dtype in [Dtype::Float16, Dtype::Bfloat16] {
                let mut bytes = [0; 2];
                write_number(dtype, &mut bytes, f64::from(value));
                let bits = u16::from_le_bytes(bytes);
                let error = |bits: u16| (numbers(dtype, &bits.to_le_bytes())[0] - f64::from(value)).abs();
                if numbers(dtype, &bytes)[0].is_finite() {
                    prop_assert!(error(bits) <= error(bits.wrapping_add(1)) || !error(bits + 1).is_finite());
                    prop_assert!(bits & 0x7fff == 0 || error(bits) <= error(bits - 1));
                } else {
                    prop_assert!(value.abs() >= 65520.0);
                }
            }
        }

        #[test]
        fn places_are_unravelled(shape in prop::collection::vec(1u64..6, 0..4), at: prop::sample::Index) {
            let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
            let flat = at.index(count);
            let index = unravel(&shape, flat);
            let again = index.iter().zip(&shape).fold(0, |flat, (at, size)| flat * size + at);
            prop_assert_eq!(again, flat as u64);
        }
    }

    #[test]
    fn elements_are_written_as_people_write_them() {
        let complex: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(element_in_words(Dtype::Complex64, &complex, 0), "1.5000000e0-2i");
        assert_eq!(element_in_words(Dtype::Int64, &(i64::MAX - 1).to_le_bytes(), 0), "9223372036854775806");
        assert_eq!(element_in_words(Dtype::Bool, &[0, 1], 1), "true");
        assert_eq!(shape(&[2, 3]), "[2, 3]");
    }
}
