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

/// How to read bytes of the reference. `declared` are the element types of the arrays that the program's kernels take, `None` where
/// they are not all known (templates).
pub fn interpret(bytes: &[u8], declared: Option<&[ElementType]>) -> Interpretation {
    let fits = |element: &ElementType| bytes.len().is_multiple_of(element.size());
    let possible: Vec<ElementType> = match declared {
        Some(declared) => declared.iter().copied().filter(fits).collect(),
        None => [ElementType::F32, ElementType::F64].into_iter().filter(fits).collect(),
    };
    if let (Some(_), [element]) = (declared, &possible[..]) {
        return Interpretation { element: *element, why: Why::Declared };
    }
    if declared.is_some() && !possible.is_empty() && possible.iter().all(|element| !element.is_floating()) {
        // Integers of any width are equal or not by their bytes.
        let widest = possible.iter().copied().max_by_key(|element| element.size());
        return Interpretation { element: widest.unwrap_or(ElementType::U8), why: Why::Declared };
    }
    let floating =
        possible.iter().copied().filter(|element| element.is_floating() && are_plain(*element, bytes));
    let found: Vec<_> = floating.collect();
    match found[..] {
        [] => Interpretation { element: ElementType::U8, why: Why::Unknown },
        [element] => Interpretation { element, why: Why::Values },
        // Two floats are a plain double, whose low half hardly counts: read so, every second float could be wrong. Doubles are plain
        // floats only where their low halves are zero.
        _ => {
            let by_size = |element: &ElementType| element.size();
            let widest = found.iter().copied().max_by_key(by_size);
            let wide = widest.filter(|element| low_halves_are_zero(*element, bytes));
            let narrowest = found.iter().copied().min_by_key(by_size);
            Interpretation { element: wide.or(narrowest).unwrap_or(ElementType::U8), why: Why::Values }
        }
    }
}

/// Whether the low halves of most nonzero elements are zero, as those of wide numbers with few digits are.
fn low_halves_are_zero(element: ElementType, bytes: &[u8]) -> bool {
    let size = element.size();
    let nonzero = bytes.chunks_exact(size).filter(|chunk| chunk.iter().any(|byte| *byte != 0));
    let (mut all, mut zero) = (0usize, 0usize);
    for chunk in nonzero {
        all += 1;
        // Little-endian: the low half comes first.
        zero += usize::from(chunk[..size / 2].iter().all(|byte| *byte == 0));
    }
    zero * 2 > all
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
        for (bytes, declared, element, why) in [
            (&some, Some(&[F32][..]), F32, Why::Declared),
            (&some, Some(&[F32, I32][..]), F32, Why::Values),
            (&some, None, F32, Why::Values),
            (&counts, Some(&[F32, I32][..]), U8, Why::Unknown),
            (&counts, Some(&[I32][..]), I32, Why::Declared),
            (&counts, None, U8, Why::Unknown),
            (&doubles, Some(&[F32, F64][..]), F64, Why::Values),
            (&floats(&[0.0; 8]), Some(&[F32, I32][..]), U8, Why::Unknown),
            (&floats(&[1.5]), Some(&[F32, I32][..]), U8, Why::Unknown),
            (&floats(&[1.5]), Some(&[F32][..]), F32, Why::Declared),
            (&vec![1, 2, 3], Some(&[F32][..]), U8, Why::Unknown),
            (&vec![0, 60, 0, 62], Some(&[F16][..]), F16, Why::Declared),
        ] {
            assert_eq!(interpret(bytes, declared), Interpretation { element, why }, "{bytes:?} {declared:?}");
        }
    }

    #[test]
    fn floats_side_by_side_are_no_doubles() {
        let floats_: Vec<f32> = (1..65).map(|i| i as f32 * 0.37 + 0.1).collect();
        let expected = floats(&floats_);
        let wrong: Vec<f32> = floats_
            .iter()
            .enumerate()
            .map(|(i, value)| if i % 2 == 0 { value * 1.3 } else { *value })
            .collect();
        for declared in [None, Some(&[F32, F64][..])] {
            let read = interpret(&expected, declared);
            assert_eq!(read.element, F32);
            assert_eq!(compare_bytes(read, &expected, None, &floats(&wrong), None).array.outside, 32);
        }
        let exact: Vec<u8> = (1..65).flat_map(|i| f64::from(i).to_le_bytes()).collect();
        assert_eq!(interpret(&exact, None).element, F64, "doubles of few digits");
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
            prop_assert_eq!(interpret(&ints(&values), Some(&[F32, I32])).why, Why::Unknown);
        }

        #[test]
        fn plain_floats_are_found(values in prop::collection::vec(0.001f32..1e6, 4..200)) {
            let expected = Interpretation { element: F32, why: Why::Values };
            prop_assert_eq!(interpret(&floats(&values), Some(&[F32, I32])), expected);
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
