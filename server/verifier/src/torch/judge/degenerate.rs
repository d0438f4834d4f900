//! Tasks that are solved without work: an answer of zeros, of one constant, or one of the inputs would pass.
//!
//! A verdict about such a task tells little, however right the candidate is. So it is looked for in every round, and what passes in all of them is
//! said.

use std::collections::BTreeMap;

use super::compare::{Rule, leaves, scale, within};
use super::elements::{Element, View, numbers, with_element};
use super::parallel::chunks;
use crate::torch::values::{Dtype, Tree};

/// An answer that takes no work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trivial {
    /// Zeros.
    Zeros,
    /// One number: the mean of the right ones.
    Constant,
    /// One of the inputs, by its place.
    Input(String),
}

impl Trivial {
    /// In words, to stand before "would pass".
    pub fn words(&self) -> String {
        match self {
            Self::Zeros => "an answer of zeros".to_owned(),
            Self::Constant => "a constant answer".to_owned(),
            Self::Input(place) => format!("{place} itself"),
        }
    }
}

/// What passed for each output in every round so far.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    passing: Option<BTreeMap<String, Vec<Trivial>>>,
}

impl Detector {
    /// Tries what takes no work against the right answer of one more round.
    pub fn round(&mut self, expected: View, inputs: View, rule: &Rule) {
        let mut found = BTreeMap::new();
        for (place, tree) in leaves("output", &expected.values.tree) {
            let Tree::Tensor { i } = tree else { continue };
            let Ok((tensor, bytes)) = expected.tensor(*i) else { continue };
            if bytes.is_empty() {
                continue;
            }
            let before =
                self.passing.as_ref().map(|passing| passing.get(&place).cloned().unwrap_or_default());
            let tolerance = rule.of(tensor.dtype);
            let mut passes: Vec<Trivial> = Vec::new();
            let still = |which: &Trivial| before.as_ref().is_none_or(|before| before.contains(which));
            if still(&Trivial::Zeros) && constant(tensor.dtype, bytes, Some(0.0), tolerance) {
                passes.push(Trivial::Zeros);
            }
            if still(&Trivial::Constant) && constant(tensor.dtype, bytes, None, tolerance) {
                passes.push(Trivial::Constant);
            }
            for (name, input) in leaves("input", &inputs.values.tree) {
                let Tree::Tensor { i } = input else { continue };
                let Ok((other, of_input)) = inputs.tensor(*i) else { continue };
                let which = Trivial::Input(name);
                if other.shape == tensor.shape
                    && other.dtype == tensor.dtype
                    && still(&which)
                    && same(tensor.dtype, bytes, of_input, tolerance)
                {
                    passes.push(which);
                }
            }
            found.insert(place, passes);
        }
        self.passing = Some(found);
    }

    /// Outputs for which something without work would have passed in every round, and what.
    pub fn found(&self) -> Vec<(String, Trivial)> {
        let passing = self.passing.iter().flatten();
        passing.filter_map(|(place, list)| Some((place.clone(), list.first()?.clone()))).collect()
    }
}

/// Whether one number in place of every element passes: this one, or the mean of the elements.
fn constant(dtype: Dtype, expected: &[u8], value: Option<f64>, tolerance: f64) -> bool {
    with_element!(dtype, E => {
        let scale = if dtype.is_floating() { scale::<E>(expected) } else { 0.0 };
        let value = value.unwrap_or_else(|| mean::<E>(expected, dtype));
        expected.chunks_exact(E::SIZE).map(E::read).all(|wanted| within(wanted, value, tolerance * (wanted.abs() + scale)))
    })
}

/// The mean of the finite elements. Of integers the first element, since their mean is none of them.
fn mean<E: Element>(bytes: &[u8], dtype: Dtype) -> f64 {
    if !dtype.is_floating() {
        return numbers(dtype, &bytes[..E::SIZE.min(bytes.len())]).first().copied().unwrap_or(0.0);
    }
    let sum = |bytes: &[u8]| {
        let values = bytes.chunks_exact(E::SIZE).map(E::read).filter(|value| value.is_finite());
        values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0))
    };
    let parts = chunks(bytes.len(), E::SIZE, |range| sum(&bytes[range]));
    let (sum, count) = parts.into_iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
    if count == 0.0 { 0.0 } else { sum / count }
}

fn same(dtype: Dtype, expected: &[u8], got: &[u8], tolerance: f64) -> bool {
    if !dtype.is_floating() {
        return expected == got;
    }
    with_element!(dtype, E => {
        let scale = scale::<E>(expected);
        let pairs = expected.chunks_exact(E::SIZE).map(E::read).zip(got.chunks_exact(E::SIZE).map(E::read));
        pairs.into_iter().all(|(wanted, got)| within(wanted, got, tolerance * (wanted.abs() + scale)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{floats, integers, tuple, view};
    use super::*;

    fn detect(rounds: &[(Vec<f64>, Vec<f64>)]) -> Vec<(String, Trivial)> {
        let mut detector = Detector::default();
        for (expected, input) in rounds {
            let expected = floats(Dtype::Float32, &[expected.len() as u64], expected);
            let input = tuple(vec![floats(Dtype::Float32, &[input.len() as u64], input)]);
            detector.round(view(&expected), view(&input), &Rule::default());
        }
        detector.found()
    }

    #[test]
    fn what_takes_no_work_is_seen_and_what_passes_once_is_not() {
        let output = |which| vec![("output".to_owned(), which)];
        let a = vec![1.0, 2.0, 3.0];
        assert_eq!(detect(&[(vec![0.0; 3], a.clone())]), output(Trivial::Zeros));
        assert_eq!(
            detect(&[(vec![0.25; 3], a.clone()), (vec![0.5; 3], a.clone())]),
            output(Trivial::Constant)
        );
        assert_eq!(detect(&[(a.clone(), a.clone())]), output(Trivial::Input("input[0]".into())));
        assert_eq!(detect(&[(a.clone(), a.clone()), (vec![2.0, 4.0, 6.0], a.clone())]), []);
        // The mean of a softmax over few columns, and of one over many.
        assert_eq!(detect(&[(vec![8.9e-6, 2.4e-5, 1.5e-5], a.clone())]), []);
        assert_eq!(detect(&[(vec![f64::NAN; 2], a)]), []);
    }

    #[test]
    fn integers_are_the_same_or_not() {
        let mut detector = Detector::default();
        let expected = integers(&[2], &[7, 7]);
        let input = tuple(vec![integers(&[2], &[7, 8])]);
        detector.round(view(&expected), view(&input), &Rule::default());
        assert_eq!(detector.found(), [("output".to_owned(), Trivial::Constant)]);
    }
}
