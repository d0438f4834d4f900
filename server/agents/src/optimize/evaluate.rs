//! Judges a candidate: guard, verify, measure, in this order; a later one only if the earlier passed.

use std::path::PathBuf;

use stitch_findings::{Answer, Finding, Verdict};
use stitch_session::config::Precision;
use stitch_verifier::guard;
use stitch_verifier::measure::{self, Cost, MeasureError, Measured, Measurement};
use stitch_verifier::program::{Program, Target};
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

    /// Judges a candidate. `to_beat` is what the best version so far costs.
    ///
    /// # Errors
    /// It could not be judged, or the job was cancelled.
    pub async fn evaluate(
        &self,
        reference: &Version,
        candidate: &Version,
        to_beat: &Cost,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        if let Some(finding) = guard::lowered(&reference.text, &candidate.text, self.precision) {
            let said = format!("refused: {}", finding.message);
            return Ok(Evaluated { findings: vec![finding], ..Evaluated::of(Outcome::Refused, said) });
        }
        let targets = [&reference.path, &candidate.path].map(|path| self.target_at(path.clone()));
        let verdict = match self.verify(&targets, progress, cancel).await {
            Ok(verdict) => verdict,
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
        progress("measuring the candidate");
        let [reference, candidate_target] = &targets;
        let measured = match measure::measure(&self.measurement, reference, candidate_target, cancel).await {
            Ok(measured) => measured,
            Err(MeasureError::Cancelled) => return Err(JudgeError::Cancelled),
            Err(error) => {
                let said = format!("wrong: {error}");
                return Ok(Evaluated { verdict: Some(verdict), ..Evaluated::of(Outcome::Wrong, said) });
            }
        };
        let times = to_beat.over(&measured.cost);
        let (outcome, said) = if times >= LEAST_GAIN {
            (Outcome::Kept, format!("kept: {}", compared(to_beat, &measured.cost)))
        } else {
            (Outcome::NotBetter, format!("right, but no better: {}", compared(to_beat, &measured.cost)))
        };
        Ok(Evaluated {
            verdict: Some(verdict),
            profile: measure::table(&measured, &candidate.path),
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
        Self { outcome, said, verdict: None, findings: Vec::new(), cost: None, profile: String::new() }
    }
}

/// What a bad verdict says, in a sentence.
fn said_of(verdict: &Verdict) -> String {
    let what = match verdict.answer {
        Answer::BuildFailed => "does not compile",
        Answer::Crashed => "crashes",
        Answer::TimedOut => "does not come to an end",
        Answer::NothingCompared => "gives nothing to compare",
        Answer::Wrong | Answer::Correct => "wrong",
    };
    match verdict.findings.iter().find(|finding| finding.severity == stitch_findings::Severity::Error) {
        Some(finding) => format!("{what}: {}", finding.message),
        None => what.to_owned(),
    }
}

/// Two costs in words: `3.21 times fewer estimated cycles (9,120 instead of 29,280)`.
pub fn compared(before: &Cost, after: &Cost) -> String {
    let times = before.over(after);
    let ratio = if times >= 1.0 {
        format!("{times:.2} times fewer estimated cycles")
    } else {
        format!("{:.2} times more estimated cycles", 1.0 / times)
    };
    format!("{ratio} ({:.0} instead of {:.0})", after.cycles, before.cycles)
}
