//! Compares bytes that programs copied back from a device, or wrote as their outputs.
//!
//! Where a signature says what the elements are, they are that. Where it leaves several types, the reference's own bytes decide:
//! floating-point numbers of a plain size, read as integers, are huge, and integers of a plain size, read as floating-point numbers, are
//! subnormal or NaN, so the two are hardly ever mistaken for each other. Bytes that decide nothing must be equal, every one.

use serde::{Deserialize, Serialize};

use super::array::{ArrayComparison, compare_arrays};
use super::element::ElementType;

/// Why bytes are read as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The program says so: its kernels' parameters have no other type.
    Declared,
    /// Only so do the reference's values make sense.
    Values,
    /// Nothing tells; they are compared byte by byte.
    Unknown,
}

/// How bytes are read, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpretation {
    /// The type of the elements.
    pub element: ElementType,
    /// Why it is that.
    pub why: Why,
}

/// What came of comparing two runs of bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BytesComparison {
    /// How they were read.
    pub interpretation: Interpretation,
    /// Bytes of the reference.
    pub size: usize,
    /// Bytes of the candidate.
    pub candidate_size: usize,
    /// How far a floating-point element might be off; 0 for others.
    pub tolerance: f64,
    /// What was found. Elements of integers count as outside where they differ at all.
    pub array: ArrayComparison,
}

impl BytesComparison {
    /// Whether the candidate's bytes are as they should be.
    pub fn is_same(&self) -> bool {
        self.size == self.candidate_size && self.array.outside == 0
    }
}

/// Floating-point numbers of a size that programs compute with: 2^-60 to 2^60.
const PLAIN: std::ops::Range<i32> = -60..60;
/// So many of the nonzero elements must be of a plain size.
const MOST: f64 = 0.98;
/// Fewer nonzero elements than this decide nothing between types that a program uses side by side.
const LEAST: usize = 4;

/// What the elements of a program's arrays may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Types {
    /// The element types of all arrays that its kernels take.
    Declared(Vec<ElementType>),
    /// They are not all known (templates, `void*`, symbols): these floating-point types are among them, or something else.
    Among(Vec<ElementType>),
}

/// How to read bytes of the reference.
pub fn interpret(bytes: &[u8], types: &Types) -> Interpretation {
    let unknown = Interpretation { element: ElementType::U8, why: Why::Unknown };
    let (Types::Declared(list) | Types::Among(list)) = types;
    let possible: Vec<ElementType> =
        list.iter().copied().filter(|element| bytes.len().is_multiple_of(element.size())).collect();
    if let Types::Declared(_) = types {
        if let [element] = possible[..] {
            return Interpretation { element, why: Why::Declared };
        }
        if !possible.is_empty() && possible.iter().all(|element| !element.is_floating()) {
            // Integers of any width are equal or not by their bytes.
            let widest = possible.iter().copied().max_by_key(|element| element.size());
            return Interpretation { element: widest.unwrap_or(ElementType::U8), why: Why::Declared };
        }
    }
    let mut found: Vec<ElementType> =
        possible.into_iter().filter(|element| element.is_floating() && are_plain(*element, bytes)).collect();
    found.sort_by_key(|element| std::cmp::Reverse(element.size()));
    let Some(widest) = found.first().copied() else { return unknown };
    if matches!(types, Types::Among(_)) && widest.size() < ElementType::F32.size() {
        // Almost any integer is a plain half.
        return unknown;
    }
    // Two floats are a plain double, whose low half hardly counts: read so, every second float could be wrong.
    let narrower = found.iter().skip(1).take_while(|element| halves_are_alike(**element, bytes));
    Interpretation { element: narrower.last().copied().unwrap_or(widest), why: Why::Values }
}

/// Binades within which neighbours of one array mostly lie.
const NEAR: i32 = 8;
/// So many of the low halves must be as large as the high ones.
const ALIKE: f64 = 0.9;

/// Whether the low and the high halves of wider elements, read as `element`, are numbers of one size: then they are elements
/// themselves. The low half of one wide number is noise, or zero.
fn halves_are_alike(element: ElementType, bytes: &[u8]) -> bool {
    let exponents = |parity: usize| -> Vec<i32> {
        let values = element.values(bytes).skip(parity).step_by(2).filter(|value| *value != 0.0);
        values.map(|value| value.abs().log2().floor() as i32).collect()
    };
    // Little-endian: the low half comes first.
    let (low, mut high) = (exponents(0), exponents(1));
    high.sort_unstable();
    let Some(median) = high.get(high.len() / 2) else { return false };
    let near = low.iter().filter(|exponent| exponent.abs_diff(*median) <= NEAR.unsigned_abs()).count();
    low.len() * 2 >= high.len() && near as f64 >= ALIKE * low.len() as f64
}

/// Whether bytes, read as `element`, are numbers that a program computes with.
fn are_plain(element: ElementType, bytes: &[u8]) -> bool {
    let (mut nonzero, mut plain) = (0usize, 0usize);
    for value in element.values(bytes).filter(|value| *value != 0.0) {
        nonzero += 1;
        plain += usize::from(value.is_finite() && PLAIN.contains(&(value.abs().log2().floor() as i32)));
    }
    nonzero >= LEAST && plain as f64 >= MOST * nonzero as f64
}

/// Compares `got` with `expected` as elements of the type that was found for the reference. `again` is what the reference gave in a
/// second run under the same inputs. `tolerance` is the element type's own where it is `None`.
pub fn compare_bytes(
    interpretation: Interpretation,
    expected: &[u8],
    again: Option<&[u8]>,
    got: &[u8],
    tolerance: Option<f64>,
) -> BytesComparison {
    let element = interpretation.element;
    let tolerance = if element.is_floating() { tolerance.unwrap_or(element.tolerance()) } else { 0.0 };
    let again = again.filter(|again| again.len() == expected.len());
    let array = if element.is_floating() {
        let values = |bytes: &[u8]| element.values(bytes).collect::<Vec<_>>();
        let again = again.map(values);
        compare_arrays(element, &values(expected), again.as_deref(), &values(got), tolerance)
    } else {
        compare_integers(element, expected, again, got)
    };
    BytesComparison { interpretation, size: expected.len(), candidate_size: got.len(), tolerance, array }
}

fn compare_integers(
    element: ElementType,
    expected: &[u8],
    again: Option<&[u8]>,
    got: &[u8],
) -> ArrayComparison {
    let mut result = ArrayComparison::default();
    let size = element.size();
    let chunks = |bytes: &'_ [u8]| bytes.chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let again = again.map(chunks);
    for (index, (one, other)) in expected.chunks(size).zip(got.chunks(size)).enumerate() {
        if again.as_ref().is_some_and(|again| again[index] != one) {
            result.unsteady += 1;
            continue;
        }
        result.count += 1;
        if one == other {
            continue;
        }
        result.outside += 1;
        let value = |bytes: &[u8]| element.values(bytes).next().unwrap_or_else(|| f64::from(bytes[0]));
        let (expected, got) = (value(one), value(other));
        result.absolute = result.absolute.max((expected - got).abs());
        let relative = super::number::relative_error(expected, got);
        if relative > result.relative || result.worst.is_none() {
            result.relative = relative;
            result.worst = Some(super::array::Worst { index, expected, got });
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ElementType::{F16, F32, F64, I32, U8};

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn ints(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn what_a_signature_says_is_believed_and_else_the_values_decide() {
        let some = floats(&[1.5, -2.25, 1e-5, 3e4, 0.0, 7.0]);
        let counts = ints(&[1, 2, -3, 100_000, 0, 7]);
        let doubles: Vec<u8> =
            [1.5f64, -0.1, 1e-7, 3.3].iter().flat_map(|value| value.to_le_bytes()).collect();
        let declared = |list: &[ElementType]| Types::Declared(list.to_vec());
        let among = || Types::Among(vec![F32, F64]);
        for (bytes, types, element, why) in [
            (&some, declared(&[F32]), F32, Why::Declared),
            (&some, declared(&[F32, I32]), F32, Why::Values),
            (&some, among(), F32, Why::Values),
            (&counts, declared(&[F32, I32]), U8, Why::Unknown),
            (&counts, declared(&[I32]), I32, Why::Declared),
            (&counts, among(), U8, Why::Unknown),
            (&doubles, declared(&[F32, F64]), F64, Why::Values),
            (&floats(&[0.0; 8]), declared(&[F32, I32]), U8, Why::Unknown),
            (&floats(&[1.5]), declared(&[F32, I32]), U8, Why::Unknown),
            (&floats(&[1.5]), declared(&[F32]), F32, Why::Declared),
            (&vec![1, 2, 3], declared(&[F32]), U8, Why::Unknown),
            (&vec![0, 60, 0, 62], declared(&[F16]), F16, Why::Declared),
        ] {
            assert_eq!(interpret(bytes, &types), Interpretation { element, why }, "{bytes:?} {types:?}");
        }
    }

    #[test]
    fn elements_side_by_side_are_no_wider_ones() {
        let all = [Types::Among(vec![F32, F64, F16]), Types::Declared(vec![F32, F64, F16])];
        let values: Vec<f32> = (1..257).map(|i| (i as f32 * 0.7391).sin() * 3.0 + 0.1).collect();
        let wrong: Vec<f32> = values
            .iter()
            .enumerate()
            .map(|(i, value)| if i % 2 == 0 { value * 1.1 } else { *value })
            .collect();
        // Halves of the same values: f32 has their bits, from 13 on, where it is normal.
        let halves = |values: &[f32]| -> Vec<u8> {
            let half = |value: &f32| {
                let bits = value.to_bits();
                let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
                let sign = (bits >> 16 & 0x8000) as u16;
                if exponent <= 0 {
                    sign
                } else {
                    sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
                }
            };
            values.iter().flat_map(|value| half(value).to_le_bytes()).collect()
        };
        let doubles: Vec<u8> =
            values.iter().flat_map(|value| (f64::from(*value) / 3.0).to_le_bytes()).collect();
        let exact: Vec<u8> = (1..257).flat_map(|i| f64::from(i).to_le_bytes()).collect();
        for types in &all {
            for (expected, got, element) in
                [(floats(&values), floats(&wrong), F32), (halves(&values), halves(&wrong), F16)]
            {
                let read = interpret(&expected, types);
                assert_eq!(read.element, element, "{types:?}");
                let outside = compare_bytes(read, &expected, None, &got, None).array.outside;
                assert!((120..=128).contains(&outside), "{outside} {types:?}");
            }
            assert_eq!(interpret(&doubles, types).element, F64, "{types:?}");
            assert_eq!(interpret(&exact, types).element, F64, "doubles of few digits");
        }
        // Indices are no halves.
        let indices: Vec<i32> = (2000..2256).collect();
        assert_eq!(interpret(&ints(&indices), &all[0]).why, Why::Unknown);
    }

    #[test]
    fn lengths_count_and_integers_are_exact() {
        let declared = |element| Interpretation { element, why: Why::Declared };
        let same = |ty, a: &[u8], b: &[u8]| compare_bytes(declared(ty), a, None, b, None).is_same();
        assert!(same(I32, &ints(&[1, 2]), &ints(&[1, 2])));
        assert!(!same(I32, &ints(&[1_000_000_007, 2]), &ints(&[1_000_000_008, 2])));
        assert!(!same(F32, &floats(&[1.0, 2.0]), &floats(&[1.0])));
        assert!(!same(F32, &floats(&[1.0]), &floats(&[1.0, 2.0])));
        assert!(!same(F32, &floats(&[1.0]), &[]));
        assert!(same(F32, &floats(&[1.0]), &floats(&[1.00001])));
        let result = compare_bytes(declared(U8), &[1, 2, 3], Some(&[1, 9, 3]), &[1, 5, 4], None);
        assert_eq!((result.array.count, result.array.unsteady, result.array.outside), (2, 1, 1));
        assert_eq!(result.array.worst.unwrap().index, 2);
    }

    proptest! {
        #[test]
        fn small_integers_are_never_taken_for_floats(values in prop::collection::vec(-100_000_000i32..100_000_000, 0..200)) {
            prop_assert_eq!(interpret(&ints(&values), &Types::Declared(vec![F32, I32])).why, Why::Unknown);
        }

        #[test]
        fn plain_floats_are_found(values in prop::collection::vec(0.001f32..1e6, 4..200)) {
            let expected = Interpretation { element: F32, why: Why::Values };
            prop_assert_eq!(interpret(&floats(&values), &Types::Declared(vec![F32, I32])), expected);
        }

        #[test]
        fn bytes_are_themselves_however_they_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for element in [U8, I32, F32, F64, F16] {
                let reading = Interpretation { element, why: Why::Declared };
                prop_assert!(compare_bytes(reading, &bytes, Some(&bytes), &bytes, Some(0.0)).is_same());
            }
        }

        #[test]
        fn unknown_bytes_must_be_equal(bytes in prop::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, flip in 1u8..) {
            let mut other = bytes.clone();
            other[at.index(bytes.len())] ^= flip;
            let reading = Interpretation { element: U8, why: Why::Unknown };
            prop_assert!(!compare_bytes(reading, &bytes, None, &other, None).is_same());
        }
    }
}
