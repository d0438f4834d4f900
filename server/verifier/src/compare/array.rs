//! Compares arrays of floating-point numbers.
//!
//! An element may be off by the tolerance times its own size, or times the size of the array's small elements where it is
//! smaller yet: the sum of large numbers that cancel is not known better. Small means the size that only a twentieth of the elements is
//! below, so an array whose values are all tiny has a tiny scale, and zeros in their place are as wrong as anywhere.

use serde::{Deserialize, Serialize};

use super::element::ElementType;
use super::number::relative_error;

/// The share of an array's nonzero elements that may be smaller than its scale.
const SMALL: f64 = 0.05;
/// Roundings of the array's typical size that any element may be off by, for what is left when equal numbers cancel.
const CANCELLED: f64 = 4.0;

/// The element that is off most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Its index.
    pub index: usize,
    /// What it should be.
    #[serde(with = "crate::compare::array::written")]
    pub expected: f64,
    /// What it is.
    #[serde(with = "crate::compare::array::written")]
    pub got: f64,
}

/// What came of comparing two arrays of the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayComparison {
    /// Elements that were compared.
    pub count: usize,
    /// Elements left out, since they differ between two runs of the reference.
    pub unsteady: usize,
    /// Elements that are off by more than the tolerance.
    pub outside: usize,
    /// The largest error of an element over what it should be, or over the array's scale where that is zero: 1 is 100 %. Infinite
    /// for a NaN where a number belongs.
    #[serde(with = "crate::compare::array::written")]
    pub relative: f64,
    /// The root mean square of the errors over that of the expected values; finite elements only.
    #[serde(with = "crate::compare::array::written")]
    pub normalized: f64,
    /// The largest absolute error; finite elements only.
    #[serde(with = "crate::compare::array::written")]
    pub absolute: f64,
    /// The element that is off most by the measure that decides.
    pub worst: Option<Worst>,
}

/// Numbers that JSON has none for (NaN, infinities) as words.
pub(crate) mod written {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            serializer.serialize_f64(*value)
        } else {
            serializer.serialize_str(&value.to_string())
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(value) => Ok(value),
            Written::Word(word) => word.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// Compares `got` with `expected`, elements of type `ty`, where `again` is what the reference gave in a second run under the same
/// inputs. `tolerance` is relative.
pub fn compare_arrays(
    ty: ElementType,
    expected: &[f64],
    again: Option<&[f64]>,
    got: &[f64],
    tolerance: f64,
) -> ArrayComparison {
    let allowed = Allowed::of(ty, expected, tolerance);
    let mut result = ArrayComparison::default();
    let (mut errors, mut sizes) = (0.0, 0.0);
    let mut worst = 0.0;
    for (index, (&expected, &got)) in expected.iter().zip(got).enumerate() {
        let twin = again.and_then(|again| again.get(index)).copied().unwrap_or(expected);
        if allowed.excess(expected, twin) > 1.0 {
            result.unsteady += 1;
            continue;
        }
        result.count += 1;
        let excess = allowed.excess(expected, got);
        result.outside += usize::from(excess > 1.0);
        result.relative = result.relative.max(allowed.relative(expected, got));
        if expected.is_finite() && got.is_finite() {
            errors += (expected - got) * (expected - got);
            sizes += expected * expected;
            result.absolute = result.absolute.max((expected - got).abs());
        }
        if excess > worst {
            worst = excess;
            result.worst = Some(Worst { index, expected, got });
        }
    }
    result.normalized = if errors == 0.0 { 0.0 } else { (errors / sizes).sqrt() };
    result
}

/// How far elements of one array may be off.
struct Allowed {
    tolerance: f64,
    /// Elements smaller than this are measured by this.
    scale: f64,
    /// What any element may be off by.
    floor: f64,
}

impl Allowed {
    fn of(ty: ElementType, expected: &[f64], tolerance: f64) -> Self {
        let mut sizes: Vec<f64> =
            expected.iter().map(|value| value.abs()).filter(|size| size.is_finite() && *size > 0.0).collect();
        if sizes.is_empty() {
            return Self { tolerance, scale: 0.0, floor: 0.0 };
        }
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        // Over the largest, so that squares neither overflow nor vanish.
        let square = sizes.iter().map(|size| (size / largest) * (size / largest)).sum::<f64>();
        let typical = largest * (square / sizes.len() as f64).sqrt();
        let at = (sizes.len() as f64 * SMALL) as usize;
        let (_, scale, _) = sizes.select_nth_unstable_by(at, f64::total_cmp);
        // Without a tolerance there is none for rounding either.
        let floor = if tolerance > 0.0 { CANCELLED * ty.epsilon() * typical } else { 0.0 };
        Self { tolerance, scale: *scale, floor }
    }

    /// The error of an element over what it should be.
    fn relative(&self, expected: f64, got: f64) -> f64 {
        let error = relative_error(expected, got);
        if error == 0.0 || error.is_infinite() {
            return error;
        }
        let size = if expected == 0.0 { self.scale } else { expected.abs() };
        if size == 0.0 { f64::INFINITY } else { (expected - got).abs() / size }
    }

    /// The error of an element over what it may be: more than 1 is too much.
    fn excess(&self, expected: f64, got: f64) -> f64 {
        if relative_error(expected, got) == 0.0 {
            return 0.0;
        }
        if !expected.is_finite() || !got.is_finite() {
            return f64::INFINITY;
        }
        let allowed = (self.tolerance * expected.abs().max(self.scale)).max(self.floor);
        let error = (expected - got).abs();
        if allowed == 0.0 { f64::INFINITY } else { error / allowed }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compare(expected: &[f64], got: &[f64]) -> ArrayComparison {
        compare_arrays(ElementType::F32, expected, None, got, 1e-4)
    }

    /// Values from 8.9e-6 to 2.4e-5, as a softmax over 65536 columns gives them.
    fn tiny() -> Vec<f64> {
        (0..1000).map(|i| 8.9e-6 + f64::from(i) * 1.51e-8).collect()
    }

    #[test]
    fn zeros_and_the_mean_are_not_a_softmax() {
        let expected = tiny();
        let zeros = compare(&expected, &vec![0.0; expected.len()]);
        assert_eq!((zeros.outside, zeros.relative, zeros.normalized), (1000, 1.0, 1.0));
        assert!(zeros.absolute < 2.5e-5);
        let mean = compare(&expected, &vec![1.0 / 65536.0; expected.len()]);
        assert!(mean.outside > 990 && mean.relative > 0.7);
        let other_order: Vec<f64> = expected.iter().map(|v| v * (1.0 + 3e-7)).collect();
        assert_eq!(compare(&expected, &other_order).outside, 0);
    }

    #[test]
    fn what_cancelled_is_measured_by_the_rest() {
        let mut expected: Vec<f64> = (1..=100).map(f64::from).collect();
        expected[7] = 1e-7;
        let mut got = expected.clone();
        got[7] = -3e-6;
        assert_eq!(compare(&expected, &got).outside, 0);
        got[7] = 1e-2;
        assert_eq!(compare(&expected, &got).outside, 1);
    }

    #[test]
    fn not_a_number_is_no_wildcard() {
        let nan = f64::NAN;
        assert_eq!(compare(&[1.0, nan], &[1.0, nan]).outside, 0);
        let lost = compare(&[1.0, 2.0], &[1.0, nan]);
        assert_eq!((lost.outside, lost.relative), (1, f64::INFINITY));
        assert_eq!(compare(&[nan, 2.0], &[1.0, 2.0]).outside, 1);
        assert_eq!(compare(&[f64::INFINITY], &[f64::MAX]).outside, 1);
        let text = serde_json::to_string(&lost).unwrap();
        assert!(text.contains("\"NaN\"") && text.contains("\"inf\""), "{text}");
        let read: ArrayComparison = serde_json::from_str(&text).unwrap();
        assert!(read.worst.unwrap().got.is_nan() && read.relative.is_infinite());
    }

    #[test]
    fn what_the_reference_does_not_repeat_is_left_out() {
        let result = compare_arrays(ElementType::F32, &[1.0, 2.0], Some(&[1.0, 3.0]), &[1.0, 9.0], 1e-4);
        assert_eq!((result.count, result.unsteady, result.outside), (1, 1, 0));
    }

    proptest! {
        #[test]
        fn zeros_never_pass_for_anything_else(values in prop::collection::vec(-1f64..1.0, 1..200), exponent in -300..300i32) {
            let scale = f64::from(exponent).exp2();
            let expected: Vec<f64> = values.iter().map(|v| v * scale).collect();
            prop_assume!(expected.iter().any(|v| *v != 0.0));
            prop_assert!(compare(&expected, &vec![0.0; expected.len()]).outside > 0);
        }

        #[test]
        fn one_element_that_is_far_off_is_found(values in prop::collection::vec(0.5f64..2.0, 1..200), at: prop::sample::Index) {
            let mut got = values.clone();
            let index = at.index(values.len());
            got[index] *= 1.001;
            let result = compare(&values, &got);
            prop_assert_eq!(result.outside, 1);
            prop_assert_eq!(result.worst.unwrap().index, index);
        }

        #[test]
        fn the_answer_does_not_depend_on_the_unit(
            values in prop::collection::vec((-1f64..1.0, -1f64..1.0), 1..100), exponent in -100..100i32,
        ) {
            let scale = f64::from(exponent).exp2();
            let (a, b): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            let scaled = |v: &[f64]| v.iter().map(|v| v * scale).collect::<Vec<_>>();
            prop_assert_eq!(compare(&a, &b).outside, compare(&scaled(&a), &scaled(&b)).outside);
        }

        #[test]
        fn an_array_is_itself(values in prop::collection::vec(any::<f64>(), 0..100)) {
            let result = compare_arrays(ElementType::F64, &values, Some(&values), &values, 0.0);
            prop_assert_eq!((result.outside, result.unsteady, result.count), (0, 0, values.len()));
        }
    }
}
