//! Judges a candidate: guard, verify, measure, in this order; a later one only if the earlier passed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stitch_findings::{Answer, Finding, Verdict};
use stitch_session::config::Precision;
use stitch_verifier::guard;
use stitch_verifier::measure::{self, Comparison, Cost, MeasureError, Measured, Measurement, Timed};
use stitch_verifier::program::{Program, RunDevice, Target};
use stitch_verifier::verify::{self, VerifyError};
use tokio_util::sync::CancellationToken;

use crate::run::Outcome;

/// A candidate is better if it costs less by at least this share. What is below is not worth a reviewer's time.
pub const LEAST_GAIN: f64 = 1.01;

/// All that a candidate of a target is judged by.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The target, with the file that it was taken from.
    pub target: Target,
    /// How it is built and run.
    pub measurement: Measurement,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
}

/// What became of a candidate.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// In one word.
    pub outcome: Outcome,
    /// In a sentence.
    pub said: String,
    /// The Verifier's answer, if it came so far.
    pub verdict: Option<Verdict>,
    /// What was found besides, in the candidate's text.
    pub findings: Vec<Finding>,
    /// What it costs, if it came so far.
    pub cost: Option<Cost>,
    /// How many times less that is than what it was to beat.
    pub gain: Option<f64>,
    /// On a GPU, the 95% interval of how many times faster what was timed is.
    pub interval: Option<[f64; 2]>,
    /// What was measured, as a table.
    pub profile: String,
}

/// Why a candidate could not be judged; it is no fault of its own.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The reference can't be verified against.
    #[error(transparent)]
    Verify(VerifyError),
    /// Nothing could be measured.
    #[error(transparent)]
    Measure(MeasureError),
    /// The job was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl From<VerifyError> for JudgeError {
    fn from(error: VerifyError) -> Self {
        if matches!(error, VerifyError::Cancelled) { Self::Cancelled } else { Self::Verify(error) }
    }
}

impl From<MeasureError> for JudgeError {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Cancelled => Self::Cancelled,
            error => Self::Measure(error),
        }
    }
}

/// A version of a target's file: where it lies, and its text.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its file, in the run's folder.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// What a candidate is to beat.
#[derive(Clone, Copy, Debug)]
pub struct ToBeat<'a> {
    /// The file of the best version so far.
    pub path: &'a Path,
    /// What that costs.
    pub cost: &'a Cost,
}

/// A candidate that is right.
struct Judged<'a> {
    verdict: Verdict,
    path: &'a Path,
}

impl Judged<'_> {
    /// What becomes of it where nothing could be measured.
    fn unmeasured(self, error: MeasureError) -> Result<Evaluated, JudgeError> {
        let (outcome, said) = match error {
            MeasureError::Cancelled => return Err(JudgeError::Cancelled),
            error @ MeasureError::Unresolved => {
                (Outcome::NotBetter, format!("right, but it can't be seen whether it is better: {error}"))
            }
            error => (Outcome::Wrong, format!("wrong: {error}")),
        };
        Ok(Evaluated { verdict: Some(self.verdict), ..Evaluated::of(outcome, said) })
    }
}

/// Whether a candidate that is at least so many times better is kept, and how that is said.
fn decided(times: f64, words: &str) -> (Outcome, String) {
    if times >= LEAST_GAIN {
        (Outcome::Kept, format!("kept: {words}"))
    } else {
        (Outcome::NotBetter, format!("right, but no better: {words}"))
    }
}

impl Judgement {
    /// The target with `path` in the place of its file.
    pub fn target_at(&self, path: PathBuf) -> Target {
        match &self.target {
            Target::Kernel { kernel, .. } => Target::Kernel { path, kernel: kernel.clone() },
            Target::Program(program) => {
                let version = Program { sources: vec![path], ..Program::default() };
                Target::Program(Box::new(program.with_candidate(&version)))
            }
        }
    }

    /// What the reference costs.
    ///
    /// # Errors
    /// It does not build or run, or the job was cancelled.
    pub async fn baseline(
        &self,
        reference: &Version,
        cancel: &CancellationToken,
    ) -> Result<Measured, JudgeError> {
        let target = self.target_at(reference.path.clone());
        Ok(measure::measure(&self.measurement, &target, &target, cancel).await?)
    }

    /// Judges a candidate. `to_beat` is the best version so far.
    ///
    /// # Errors
    /// It could not be judged, or the job was cancelled.
    pub async fn evaluate(
        &self,
        reference: &Version,
        candidate: &Version,
        to_beat: &ToBeat<'_>,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        if let Some(finding) = guard::lowered(&reference.text, &candidate.text, self.precision) {
            let said = format!("refused: {}", finding.message);
            return Ok(Evaluated { findings: vec![finding], ..Evaluated::of(Outcome::Refused, said) });
        }
        let targets = [&reference.path, &candidate.path].map(|path| self.target_at(path.clone()));
        let verdict = match self.verify(&targets, progress, cancel).await {
            Ok(verdict) => without_folder(verdict, &candidate.path),
            // The reference was measured before, so what is not found is not in the candidate.
            Err(error @ (VerifyError::Kernel(_) | VerifyError::Plan(_))) => {
                let said = format!("wrong: it can't be run as the reference is: {error}");
                return Ok(Evaluated::of(Outcome::Wrong, said));
            }
            Err(error) => return Err(error.into()),
        };
        if !verdict.is_good() {
            let outcome = match verdict.answer {
                Answer::BuildFailed => Outcome::BuildFailed,
                _ => Outcome::Wrong,
            };
            let said = said_of(&verdict);
            return Ok(Evaluated { verdict: Some(verdict), ..Evaluated::of(outcome, said) });
        }
        let judged = Judged { verdict, path: &candidate.path };
        match self.measurement.builder.device {
            RunDevice::Cuda { .. } => self.time(judged, &targets, to_beat, progress, cancel).await,
            RunDevice::Simulator(_) => self.estimate(judged, &targets, to_beat.cost, progress, cancel).await,
        }
    }

    /// Estimates what a right candidate costs, on the simulator.
    async fn estimate(
        &self,
        judged: Judged<'_>,
        [reference, candidate]: &[Target; 2],
        to_beat: &Cost,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        progress("measuring the candidate");
        let measured = match measure::measure(&self.measurement, reference, candidate, cancel).await {
            Ok(measured) => measured,
            Err(error) => return judged.unmeasured(error),
        };
        let times = to_beat.over(&measured.cost);
        let (outcome, said) = decided(times, &compared(to_beat, &measured.cost));
        Ok(Evaluated {
            verdict: Some(judged.verdict),
            profile: measure::table(&measured, judged.path),
            gain: Some(times),
            cost: Some(measured.cost),
            ..Evaluated::of(outcome, said)
        })
    }

    /// Times a right candidate against the best so far, on a GPU.
    async fn time(
        &self,
        mut judged: Judged<'_>,
        [reference, candidate]: &[Target; 2],
        to_beat: &ToBeat<'_>,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        let best = self.target_at(to_beat.path.to_owned());
        let compared = measure::compare(
            &self.measurement,
            reference,
            [&best, candidate],
            to_beat.cost,
            progress,
            cancel,
        );
        let comparison = match compared.await {
            Ok(comparison) => comparison,
            Err(error) => return judged.unmeasured(error),
        };
        let verdict = &mut judged.verdict;
        verdict.not_checked.retain(|sentence| sentence != verify::UNTIMED);
        verdict.not_checked.extend(comparison.not_checked.iter().cloned());
        verdict.notes.extend(comparison.notes.iter().cloned());
        let (outcome, said) = decided(comparison.ratio.low, &timed(&comparison));
        let measured = Measured { cost: comparison.after, report: Arc::default() };
        Ok(Evaluated {
            verdict: Some(judged.verdict),
            profile: measure::table(&measured, judged.path),
            gain: Some(comparison.before.over(&measured.cost)),
            interval: Some([comparison.ratio.low, comparison.ratio.high]),
            cost: Some(measured.cost),
            ..Evaluated::of(outcome, said)
        })
    }

    async fn verify(
        &self,
        [reference, candidate]: &[Target; 2],
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, VerifyError> {
        let request = verify::Request {
            reference: reference.clone(),
            candidate: candidate.clone(),
            reference_name: "the reference".to_owned(),
            candidate_name: "the candidate".to_owned(),
            builder: self.measurement.builder.clone(),
            arguments: self.measurement.arguments.clone(),
            tolerance: self.tolerance,
            answers: self.measurement.answers.clone(),
            time_limit: self.measurement.time_limit,
            executable: self.measurement.executable.clone(),
        };
        verify::verify(&request, &progress, cancel).await
    }
}

impl Evaluated {
    fn of(outcome: Outcome, said: String) -> Self {
        Self {
            outcome,
            said,
            verdict: None,
            findings: Vec::new(),
            cost: None,
            gain: None,
            interval: None,
            profile: String::new(),
        }
    }
}

/// The verdict with the candidate's file by its name alone: where its run lies is of no use to anyone, and no business of an endpoint.
fn without_folder(mut verdict: Verdict, path: &Path) -> Verdict {
    let folder = path.parent().map(|folder| format!("{}/", folder.display())).unwrap_or_default();
    for finding in &mut verdict.findings {
        finding.message = finding.message.replace(&folder, "");
    }
    verdict
}

/// What a bad verdict says, in a sentence.
fn said_of(verdict: &Verdict) -> String {
    let what = match verdict.answer {
        Answer::BuildFailed => "does not compile",
        Answer::Crashed => "crashes",
        Answer::TimedOut => "does not come to an end",
        Answer::Dishonest => "does not do its work where it is measured",
        Answer::NothingCompared => "gives nothing to compare",
        Answer::Wrong | Answer::Correct => "wrong",
    };
    match verdict.findings.iter().find(|finding| finding.severity == stitch_findings::Severity::Error) {
        Some(finding) => format!("{what}: {}", finding.message),
        None => what.to_owned(),
    }
}

/// Two costs in words: `3.21 times fewer estimated cycles (9,120 instead of 29,280)`, or for measured ones
/// `2.03 times faster (12.10 µs instead of 24.56 µs, measured on cuda:0 (NVIDIA H200))`.
pub fn compared(before: &Cost, after: &Cost) -> String {
    let times = before.over(after);
    match (&before.time, &after.time) {
        (Some(one), Some(two)) if one.of == two.of => {
            let of = match two.of {
                Timed::Kernels => "",
                Timed::Process => " for the whole process",
            };
            let [before, now] = [one, two].map(|time| microseconds(time.microseconds.median));
            format!("{} ({now} instead of {before}{of}, measured on {})", faster(times), after.device)
        }
        (Some(_), _) | (_, Some(_)) => "a time that can't be compared with the reference's".to_owned(),
        (None, None) => {
            let ratio = if (0.995..1.005).contains(&times) {
                "about as many estimated cycles".to_owned()
            } else if times >= 1.0 {
                format!("{times:.2} times fewer estimated cycles")
            } else {
                format!("{:.2} times more estimated cycles", 1.0 / times)
            };
            format!("{ratio} ({:.0} instead of {:.0})", after.cycles, before.cycles)
        }
    }
}

/// What two versions took when they were timed against each other, in words.
fn timed(comparison: &Comparison) -> String {
    let ratio = &comparison.ratio;
    format!(
        "{} in what was timed, {:.3} to {:.3} at 95% over {} rounds; all that may be changed is {}",
        faster(ratio.median),
        ratio.low,
        ratio.high,
        ratio.samples,
        compared(&comparison.before, &comparison.after)
    )
}

fn faster(times: f64) -> String {
    if times >= 1.0 { format!("{times:.2} times faster") } else { format!("{:.2} times slower", 1.0 / times) }
}

fn microseconds(time: f64) -> String {
    if time >= 1e4 { format!("{:.2} ms", time / 1e3) } else { format!("{time:.2} µs") }
}

#[cfg(test)]
mod tests {
    use stitch_verifier::measure::sample::Interval;

    use super::*;

    fn process(milliseconds: f64) -> Cost {
        let median = milliseconds * 1e3;
        let time = Interval { median, low: median, high: median, samples: 9 };
        Cost::of_process("cuda:0 (NVIDIA H200)".into(), time, Vec::new())
    }

    #[test]
    fn a_number_says_where_it_comes_from() {
        let estimated = |cycles| Cost { cycles, ..Cost::default() };
        assert_eq!(
            compared(&estimated(200.0), &estimated(100.0)),
            "2.00 times fewer estimated cycles (100 instead of 200)"
        );
        assert_eq!(
            compared(&process(300.0), &process(100.0)),
            "3.00 times faster (100.00 ms instead of 300.00 ms for the whole process, measured on cuda:0 (NVIDIA H200))"
        );
        assert!(compared(&process(100.0), &process(150.0)).starts_with("1.50 times slower"));
    }

    #[test]
    fn only_the_lower_bound_of_a_measured_gain_counts() {
        for (low, median, high, outcome) in [
            (1.011, 1.012, 1.02, Outcome::Kept),
            (1.009, 1.5, 2.0, Outcome::NotBetter),
            (0.9, 1.0, 1.1, Outcome::NotBetter),
            (0.4, 0.5, 0.6, Outcome::NotBetter),
        ] {
            let ratio = Interval { median, low, high, samples: 9 };
            let (before, after) = (process(100.0 * median), process(100.0));
            let comparison = Comparison { before, after, ratio, notes: Vec::new(), not_checked: Vec::new() };
            let (decided, said) = decided(comparison.ratio.low, &timed(&comparison));
            assert_eq!(decided, outcome, "{said}");
            assert!(said.contains(&format!("{low:.3} to {high:.3} at 95%")), "{said}");
        }
    }
}
