//! Compares what two programs printed.
//!
//! The reference runs twice under the same inputs: what differs between its own two runs can tell nothing about a candidate, so
//! it is left out, and listed. Times, rates and addresses are left out by what they look like, since a simulator repeats
//! them exactly. Whole numbers are compared exactly: they count things.

use serde::{Deserialize, Serialize};

use super::Difference;
use super::align::align;
use super::number::{relative_error, same_number};
use super::token::{Number, Token, is_timing, tokens};

/// Of what was left out or differs, so many are listed; the rest is counted.
const MOST_LISTED: usize = 20;
/// Printed digits from which a difference of one in the last may come from rounding alone.
const LEAST_DIGITS_TO_ROUND: u32 = 3;

/// Why something was left out of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It differs between two runs of the reference.
    Unsteady,
    /// It is a time or a rate.
    Timing,
    /// It is the address of something.
    Address,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exclusion {
    /// The line of the reference's output, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// Why.
    pub reason: Reason,
}

/// What came of comparing two texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextComparison {
    /// Numbers that were compared.
    pub numbers: usize,
    /// Words that were compared.
    pub words: usize,
    /// The largest relative error among the numbers.
    pub relative: f64,
    /// The first differences.
    pub differences: Vec<Difference>,
    /// How many there are.
    pub different: usize,
    /// What was left out; the first of them.
    pub excluded: Vec<Exclusion>,
    /// How many were.
    pub excluded_count: usize,
}

impl TextComparison {
    fn differ(&mut self, place: String, expected: &str, got: &str, relative: Option<f64>) {
        self.different += 1;
        if self.differences.len() < MOST_LISTED {
            self.differences.push(Difference {
                place,
                expected: shortened(expected),
                got: shortened(got),
                relative,
            });
        }
    }

    fn exclude(&mut self, line: usize, text: &str, reason: Reason) {
        self.excluded_count += 1;
        if self.excluded.len() < MOST_LISTED {
            self.excluded.push(Exclusion { line: line + 1, text: shortened(text), reason });
        }
    }
}

/// A text that fits in a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Compares what a candidate printed with what the reference printed in two runs. Numbers that were printed as fractions may
/// differ by `tolerance`, relative to the larger.
pub fn compare_text(reference: &str, again: &str, candidate: &str, tolerance: f64) -> TextComparison {
    let text: Vec<&str> = reference.lines().collect();
    let candidate_text: Vec<&str> = candidate.lines().collect();
    let comparer =
        Comparer { reference: cut(&text), text, candidate: cut(&candidate_text), candidate_text, tolerance };
    comparer.compare(&cut(&again.lines().collect::<Vec<_>>()))
}

fn cut<'t>(lines: &[&'t str]) -> Vec<Vec<Token<'t>>> {
    lines.iter().map(|line| tokens(line)).collect()
}

struct Comparer<'t> {
    text: Vec<&'t str>,
    reference: Vec<Vec<Token<'t>>>,
    candidate: Vec<Vec<Token<'t>>>,
    candidate_text: Vec<&'t str>,
    tolerance: f64,
}

impl Comparer<'_> {
    fn compare(&self, again: &[Vec<Token>]) -> TextComparison {
        let mut result = TextComparison::default();
        let twins = align(&self.reference, again);
        let unsteady = |line: usize| twins[line].is_none();
        for line in (0..self.reference.len()).filter(|line| unsteady(*line)) {
            result.exclude(line, self.text[line], Reason::Unsteady);
        }
        let pairs: Vec<Option<usize>> = if self.reference.len() == self.candidate.len() {
            (0..self.reference.len()).map(Some).collect()
        } else {
            align(&self.reference, &self.candidate)
        };
        for (line, pair) in pairs.iter().enumerate().filter(|(line, _)| !unsteady(*line)) {
            match (pair, twins[line]) {
                (Some(other), Some(twin)) => self.line(line, &again[twin], *other, &mut result),
                _ => result.differ(format!("line {}", line + 1), self.text[line], "no such line", None),
            }
        }
        let any_unsteady = twins.iter().any(Option::is_none);
        let paired: std::collections::HashSet<usize> = pairs.iter().flatten().copied().collect();
        for line in (0..self.candidate.len()).filter(|line| !paired.contains(line)) {
            // Where the reference's own lines come and go, one more is no difference.
            if !any_unsteady {
                let place = format!("line {} of the candidate", line + 1);
                result.differ(place, "no such line", self.candidate_text[line], None);
            }
        }
        result
    }

    fn line(&self, line: usize, twin: &[Token], other: usize, result: &mut TextComparison) {
        let (expected, got) = (&self.reference[line], &self.candidate[other]);
        let place = || format!("line {}", line + 1);
        let alike =
            expected.len() == got.len() && expected.iter().zip(got).all(|(one, other)| one.is_like(other));
        if !alike {
            result.differ(place(), self.text[line], self.candidate_text[other], None);
            return;
        }
        for (index, (one, other)) in expected.iter().zip(got).enumerate() {
            let steady = twin.get(index).is_some_and(|again| again.text() == one.text());
            match (one, other) {
                (Token::Word(_), _) => result.words += 1,
                (Token::Address(text), _) => result.exclude(line, text, Reason::Address),
                (_, _) if !steady => result.exclude(line, one.text(), Reason::Unsteady),
                (Token::Number(number), _) if is_timing(expected, index) => {
                    result.exclude(line, number.text, Reason::Timing);
                }
                (Token::Number(number), Token::Number(other)) => {
                    result.numbers += 1;
                    let error = relative_error(number.value, other.value);
                    if self.is_same(number, other) {
                        result.relative = result.relative.max(error);
                        continue;
                    }
                    result.relative = result.relative.max(error);
                    let relative = error.is_finite().then_some(error);
                    result.differ(place(), number.text, other.text, relative);
                }
                (Token::Number(_), _) => {}
            }
        }
    }

    fn is_same(&self, expected: &Number, got: &Number) -> bool {
        if expected.is_whole && got.is_whole {
            return expected.text == got.text || expected.value.to_bits() == got.value.to_bits();
        }
        if same_number(expected.value, got.value, self.tolerance) {
            return true;
        }
        // `0.333` and `0.334` may be one number on either side of a rounding; `0.00` and `0.01` may be anything.
        let rounded = expected.significant.min(got.significant) >= LEAST_DIGITS_TO_ROUND
            && expected.last_place == got.last_place
            && (expected.value - got.value).abs() <= expected.last_place * 1.000_001;
        rounded && self.tolerance > 0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Places of differences, then what was left out.
    fn show(reference: &str, again: &str, candidate: &str) -> String {
        let result = compare_text(reference, again, candidate, 1e-4);
        let places = result.differences.iter().map(|d| format!("{}: {} / {}", d.place, d.expected, d.got));
        let left_out = result.excluded.iter().map(|e| format!("({} {} {:?})", e.line, e.text, e.reason));
        places.chain(left_out).collect::<Vec<_>>().join(" ")
    }

    fn same(reference: &str, candidate: &str) -> String {
        show(reference, reference, candidate)
    }

    #[test]
    fn numbers_have_a_tolerance_and_words_and_counts_have_none() {
        for (reference, candidate, expected) in [
            ("sum 1.00001", "sum 1.00002", ""),
            ("sum 1.00001", "sum 1.10002", "line 1: 1.00001 / 1.10002"),
            ("sum 10144", "sum 10145", "line 1: 10144 / 10145"),
            ("PASSED", "FAILED", "line 1: PASSED / FAILED"),
            ("x 0.333", "x 0.334", ""),
            ("x 0.00", "x 0.01", "line 1: 0.00 / 0.01"),
            ("x 0.000012", "x 0.0", "line 1: 0.000012 / 0.0"),
            ("x 1e-30", "x 0", "line 1: 1e-30 / 0"),
            ("x nan", "x nan", ""),
            ("x nan", "x 0.0", "line 1: nan / 0.0"),
            ("x 1.5", "x nan", "line 1: 1.5 / nan"),
            ("x inf", "x -inf", "line 1: inf / -inf"),
            ("x    1.5", "x 1.5", ""),
            ("x 2.0", "x 2", ""),
        ] {
            assert_eq!(same(reference, candidate), expected);
        }
    }

    #[test]
    fn order_and_count_matter() {
        for (reference, candidate, expected) in [
            ("1.5 2.5", "2.5 1.5", "line 1: 1.5 / 2.5 line 1: 2.5 / 1.5"),
            ("1.5 2.5", "1.5", "line 1: 1.5 2.5 / 1.5"),
            ("a 1\nb 2", "b 2\na 1", "line 1: a 1 / b 2 line 2: b 2 / a 1"),
            ("a 1\nb 2\nc 3", "a 1\nc 3", "line 2: b 2 / no such line"),
            ("a 1", "a 1\nb 2", "line 2 of the candidate: no such line / b 2"),
            ("a 1", "", "line 1: a 1 / no such line"),
        ] {
            assert_eq!(same(reference, candidate), expected);
        }
    }

    #[test]
    fn what_says_nothing_is_left_out_and_listed() {
        assert_eq!(same("took 1.5 ms", "took 9.5 ms"), "(1 1.5 Timing)");
        assert_eq!(same("at 0x7f0123456789", "at 0x7f9876543210"), "(1 0x7f0123456789 Address)");
        assert_eq!(show("seed 7 sum 2.5", "seed 8 sum 2.5", "seed 9 sum 2.5"), "(1 7 Unsteady)");
        assert_eq!(
            show("seed 7 sum 2.5", "seed 8 sum 2.5", "seed 9 sum 9.5"),
            "line 1: 2.5 / 9.5 (1 7 Unsteady)"
        );
        // A line that only one run prints; the others count as before.
        assert_eq!(show("retry\nsum 2.5", "sum 2.5", "sum 2.5"), "(1 retry Unsteady)");
        assert_eq!(show("retry\nsum 2.5", "sum 2.5", "sum 3.5"), "line 2: 2.5 / 3.5 (1 retry Unsteady)");
    }

    #[test]
    fn nothing_compared_is_seen() {
        for (reference, numbers, words) in
            [("", 0, 0), ("no error", 0, 2), ("took 1.5 ms", 0, 2), ("n 5", 1, 1)]
        {
            let result = compare_text(reference, reference, reference, 1e-4);
            assert_eq!((result.numbers, result.words), (numbers, words), "{reference}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_itself(text in "([a-z]{1,5} -?[0-9]{1,4}(\\.[0-9]{1,4})?\n){0,8}") {
            prop_assert_eq!(compare_text(&text, &text, &text, 0.0).different, 0);
        }

        #[test]
        fn a_number_that_moved_far_is_found(values in prop::collection::vec(-1e3f64..1e3, 1..30), at: prop::sample::Index) {
            let print = |values: &[f64]| values.iter().map(|v| format!("v {v:.6}\n")).collect::<String>();
            let mut other = values.clone();
            let index = at.index(values.len());
            other[index] = values[index] * 1.01 + 0.001;
            let result = compare_text(&print(&values), &print(&values), &print(&other), 1e-4);
            prop_assert_eq!(result.different, 1);
            prop_assert_eq!(result.numbers, values.len());
        }

        #[test]
        fn noise_within_the_tolerance_is_no_difference(values in prop::collection::vec(1f64..1e6, 1..30), noise in -0.9e-4f64..0.9e-4) {
            let print = |factor: f64| values.iter().map(|v| format!("v {:.9e}\n", v * factor)).collect::<String>();
            let reference = print(1.0);
            prop_assert_eq!(compare_text(&reference, &reference, &print(1.0 + noise), 1e-4).different, 0);
        }
    }
}
