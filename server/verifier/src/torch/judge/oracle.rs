//! How much less exact a candidate is than the reference, measured against the same computation in 64 bits.
//!
//! A tolerance says whether an answer may pass. This says what it cost: a ratio of 1 is as exact as the reference, one of 50 a candidate
//! that computes in a narrower format and hides below the tolerance.

use super::compare::leaves;
use super::elements::{Element, View, numbers, parts, with_element};
use super::parallel::chunks;
use crate::torch::values::{Dtype, Tree};

/// The errors of both against the oracle, of the output in which the candidate does worst.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The output.
    pub place: String,
    /// The candidate's largest error over the reference's largest.
    pub max: f64,
    /// The same of the root mean squares.
    pub rms: f64,
    /// The reference's largest error over the root mean square of the oracle's values.
    pub reference: f64,
    /// The candidate's.
    pub candidate: f64,
}

/// The ratio of the candidate's error to the reference's own. `None` where no output has floating-point numbers that all three give finite.
pub fn ratio(oracle: View, reference: View, candidate: View) -> Option<Ratio> {
    let trees = [oracle, reference, candidate].map(|view| leaves("output", &view.values.tree));
    let [exact, own, got] = &trees;
    if exact.len() != own.len() || own.len() != got.len() {
        return None;
    }
    let mut worst: Option<Ratio> = None;
    for ((exact, own), got) in exact.iter().zip(own).zip(got) {
        let (Tree::Tensor { i: a }, Tree::Tensor { i: b }, Tree::Tensor { i: c }) = (exact.1, own.1, got.1)
        else {
            continue;
        };
        let (Ok(exact), Ok(own_tensor), Ok(got)) =
            (oracle.tensor(*a), reference.tensor(*b), candidate.tensor(*c))
        else {
            continue;
        };
        let fits = exact.0.shape == own_tensor.0.shape && own_tensor.0.shape == got.0.shape;
        if !fits || !own_tensor.0.dtype.is_floating() || parts(exact.0.dtype) != parts(own_tensor.0.dtype) {
            continue;
        }
        let exact_values = (exact.0.dtype, exact.1);
        let (Some(of_own), Some(of_got)) = (
            errors(exact_values, (own_tensor.0.dtype, own_tensor.1)),
            errors(exact_values, (got.0.dtype, got.1)),
        ) else {
            continue;
        };
        let found = of_errors(own.0.clone(), own_tensor.0.dtype, &of_own, &of_got);
        if worst.as_ref().is_none_or(|worst| found.max > worst.max) {
            worst = Some(found);
        }
    }
    worst
}

/// What an answer is off by.
struct Errors {
    max: f64,
    rms: f64,
    /// The root mean square of the right values.
    size: f64,
}

fn of_errors(place: String, dtype: Dtype, own: &Errors, got: &Errors) -> Ratio {
    // An answer that is exact by luck would make every other one infinitely worse: half a unit in the last place is what rounding the right
    // value costs anyway.
    let floor = epsilon(dtype) / 2.0 * own.size;
    let over = |got: f64, own: f64| {
        let (got, own) = (got.max(floor), own.max(floor));
        if got == own { 1.0 } else { got / own }
    };
    let relative = |error: f64| if error == 0.0 { 0.0 } else { error / own.size };
    Ratio {
        place,
        max: over(got.max, own.max),
        rms: over(got.rms, own.rms),
        reference: relative(own.max),
        candidate: relative(got.max),
    }
}

/// The distance from 1 to the next number.
fn epsilon(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Float64 | Dtype::Complex128 => f64::EPSILON,
        Dtype::Float16 => 1.0 / 1024.0,
        Dtype::Bfloat16 => 1.0 / 128.0,
        _ => f64::from(f32::EPSILON),
    }
}

/// The errors of an answer; `None` where no element is finite in both.
fn errors((dtype, exact): (Dtype, &[u8]), (other, got): (Dtype, &[u8])) -> Option<Errors> {
    let sums: Vec<(f64, f64, f64, usize)> = match dtype {
        Dtype::Float64 | Dtype::Complex128 => with_element!(other, E => against::<E>(exact, got)),
        // Something that has no form in 64 bits was left as it is.
        _ => vec![sum(numbers(dtype, exact).into_iter().zip(numbers(other, got)))],
    };
    let sum = sums.into_iter().fold((0.0f64, 0.0, 0.0, 0usize), |all, one| {
        (all.0.max(one.0), all.1 + one.1, all.2 + one.2, all.3 + one.3)
    });
    #[allow(clippy::cast_precision_loss)]
    let count = sum.3 as f64;
    (sum.3 > 0).then(|| Errors { max: sum.0, rms: (sum.1 / count).sqrt(), size: (sum.2 / count).sqrt() })
}

fn against<E: Element>(exact: &[u8], got: &[u8]) -> Vec<(f64, f64, f64, usize)> {
    let count = (exact.len() / 8).min(got.len() / E::SIZE);
    chunks(count * 8, 8, |range| {
        let got = &got[range.start / 8 * E::SIZE..range.end / 8 * E::SIZE];
        let exact = exact[range].chunks_exact(8).map(super::elements::F64::read);
        sum(exact.zip(got.chunks_exact(E::SIZE).map(E::read)))
    })
}

/// The largest error, the sums of squares of errors and of right values, and how many were finite.
fn sum(pairs: impl Iterator<Item = (f64, f64)>) -> (f64, f64, f64, usize) {
    pairs.fold((0.0, 0.0, 0.0, 0), |(max, errors, sizes, count), (exact, got)| {
        let error = (exact - got).abs();
        if error.is_finite() {
            (f64::max(max, error), errors + error * error, sizes + exact * exact, count + 1)
        } else {
            (max, errors, sizes, count)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{floats, view};
    use super::*;

    #[test]
    fn a_candidate_in_half_precision_is_told_from_one_in_single() {
        let exact: Vec<f64> = (1..2000).map(|i| f64::from(i).sqrt()).collect();
        #[allow(clippy::cast_possible_truncation)]
        let single: Vec<f64> = exact.iter().map(|v| f64::from(*v as f32)).collect();
        // Ten bits of fraction.
        #[allow(clippy::cast_possible_truncation)]
        let half: Vec<f64> =
            exact.iter().map(|v| f64::from(f32::from_bits((*v as f32).to_bits() & !0x1fff))).collect();
        let oracle = floats(Dtype::Float64, &[1999], &exact);
        let reference = floats(Dtype::Float32, &[1999], &single);
        let of = |values: &[f64]| {
            ratio(view(&oracle), view(&reference), view(&floats(Dtype::Float32, &[1999], values))).unwrap()
        };
        let same = of(&single);
        assert_eq!((same.max, same.rms), (1.0, 1.0));
        let worse = of(&half);
        assert!(worse.max > 1000.0 && worse.rms > 1000.0 && worse.candidate > 1e-4, "{worse:?}");
    }

    #[test]
    fn a_reference_that_is_exact_by_luck_condemns_nobody() {
        let values = [1.0, 2.0, 4.0];
        let oracle = floats(Dtype::Float64, &[3], &values);
        let reference = floats(Dtype::Float32, &[3], &values);
        let near = floats(Dtype::Float32, &[3], &[1.0 + 1.2e-7, 2.0, 4.0]);
        let found = ratio(view(&oracle), view(&reference), view(&near)).unwrap();
        assert!((0.9..3.0).contains(&found.max), "{found:?}");
        let integers = super::super::tests::integers(&[3], &[1, 2, 3]);
        assert_eq!(ratio(view(&integers), view(&integers), view(&integers)), None);
    }
}
