//! Judges a candidate. One way for each kind of target; what comes out is the same.

mod cuda;
mod elsewhere;
mod torch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stitch_findings::{Finding, Verdict};
use stitch_profiles::profile::Profile;
use stitch_session::config::Precision;
use stitch_verifier::guard;
use stitch_verifier::measure::{Cost, MeasureError, Timed};
use stitch_verifier::torch::request::TorchError;
use stitch_verifier::verify::VerifyError;
use tokio_util::sync::CancellationToken;

pub use cuda::CudaJudgement;
pub use elsewhere::{Answered, Asking, Carry, ElsewhereJudgement, Question};
pub use torch::TorchJudgement;

use crate::run::Outcome;

/// A candidate is better if it costs less by at least this share. What is below is not worth a reviewer's time.
pub const LEAST_GAIN: f64 = 1.01;

/// All that a candidate of a target is judged by.
#[derive(Clone, Debug)]
pub enum Judgement {
    /// A CUDA program or kernel.
    Cuda(Box<CudaJudgement>),
    /// A PyTorch module, function or statements.
    Torch(Box<TorchJudgement>),
    /// Either, on another machine.
    Elsewhere(Box<ElsewhereJudgement>),
}

impl Judgement {
    /// Where it runs, in words.
    pub fn device(&self) -> String {
        match self {
            Self::Cuda(judgement) => judgement.measurement.builder.device.to_string(),
            Self::Torch(judgement) => judgement.machine.device().to_owned(),
            Self::Elsewhere(judgement) => judgement.device.clone(),
        }
    }

    /// The precision that may not be lowered, where it was said.
    fn precision(&self) -> Option<Precision> {
        match self {
            Self::Cuda(judgement) => judgement.precision,
            Self::Torch(judgement) => judgement.precision,
            Self::Elsewhere(judgement) => judgement.precision,
        }
    }

    /// Whether the best attempt is put beside the original before it is offered.
    pub fn composes(&self) -> bool {
        match self {
            Self::Cuda(_) => false,
            Self::Torch(_) => true,
            Self::Elsewhere(judgement) => judgement.denoted.is_some(),
        }
    }

    /// A candidate put beside the original, which does all that `verdict` does not speak of. A module's runs in these `modes`, its `training`.
    ///
    /// # Errors
    /// Why that can't be done, in a sentence.
    pub fn composed(
        &self,
        reference: &str,
        candidate: &str,
        verdict: Option<&Verdict>,
        modes: &[bool],
    ) -> Result<String, String> {
        match self {
            Self::Cuda(_) => Ok(candidate.to_owned()),
            Self::Torch(judgement) => {
                torch::composed(&judgement.denoted, reference, candidate, verdict, modes)
            }
            Self::Elsewhere(judgement) => match &judgement.denoted {
                Some(denoted) => torch::composed(denoted, reference, candidate, verdict, modes),
                None => Ok(candidate.to_owned()),
            },
        }
    }

    /// What the reference costs.
    ///
    /// # Errors
    /// It does not build or run, or the job was cancelled.
    pub async fn baseline(
        &self,
        reference: &Version,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Baseline, JudgeError> {
        match self {
            Self::Cuda(judgement) => judgement.baseline(reference, cancel).await,
            Self::Torch(judgement) => judgement.baseline(reference, progress, cancel).await,
            Self::Elsewhere(judgement) => judgement.baseline(reference, progress, cancel).await,
        }
    }

    /// Has profilers look at the reference, by the best way that works here, of which a run may take `limit`.
    ///
    /// # Errors
    /// None of them tells anything; why, in sentences.
    pub async fn profile(
        &self,
        reference: &Version,
        limit: Duration,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Profile, String> {
        match self {
            Self::Cuda(judgement) => judgement.profile(reference, limit, progress, cancel).await,
            Self::Torch(judgement) => judgement.profile(reference, limit, progress, cancel).await,
            Self::Elsewhere(judgement) => judgement.profile(reference, limit, progress, cancel).await,
        }
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
        if let Some(finding) = guard::lowered(&reference.text, &candidate.text, self.precision()) {
            let said = format!("refused: {}", finding.message);
            return Ok(Evaluated { findings: vec![finding], ..Evaluated::of(Outcome::Refused, said) });
        }
        match self {
            Self::Cuda(judgement) => {
                judgement.evaluate(reference, candidate, to_beat, progress, cancel).await
            }
            Self::Torch(judgement) => {
                judgement.evaluate(reference, candidate, to_beat, progress, cancel).await
            }
            Self::Elsewhere(judgement) => {
                judgement.evaluate(reference, candidate, to_beat, progress, cancel).await
            }
        }
    }
}

impl Judgement {
    /// Decides whether one version of the target does what another does, and no more: whether it is worth having is not asked.
    ///
    /// # Errors
    /// The reference can't be verified against, or the job was cancelled.
    pub async fn verify(
        &self,
        reference: &Named<'_>,
        candidate: &Named<'_>,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, JudgeError> {
        match self {
            Self::Cuda(judgement) => {
                Ok(judgement.verify_named([reference, candidate], progress, cancel).await?)
            }
            Self::Torch(judgement) => judgement.verify_named([reference, candidate], progress, cancel).await,
            Self::Elsewhere(judgement) => {
                judgement.verify_named([reference, candidate], progress, cancel).await
            }
        }
    }

    /// Whether a candidate module is right in training mode, or in evaluation mode. How fast it is there is not asked.
    ///
    /// # Errors
    /// The reference can't be verified against in that mode, or the job was cancelled.
    pub async fn in_mode(
        &self,
        versions: [&Version; 2],
        train: bool,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, JudgeError> {
        match self {
            Self::Cuda(_) => Err(JudgeError::Unsuitable("A CUDA program has no modes.".to_owned())),
            Self::Torch(judgement) => judgement.in_mode(versions, train, progress, cancel).await,
            Self::Elsewhere(judgement) => judgement.in_mode(versions, train, progress, cancel).await,
        }
    }
}

/// A version with what a verdict calls it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The version.
    pub version: &'a Version,
    /// Its name: `energy.cu as it was saved`.
    pub name: &'a str,
}

/// What the reference costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Baseline {
    /// In numbers.
    pub cost: Cost,
    /// As a table for people and models.
    pub profile: String,
    /// What was seen of it meanwhile, where measuring it is profiling it: on the simulator.
    pub recorded: Option<Profile>,
}

/// What became of a candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// PyTorch code can't be verified against.
    #[error(transparent)]
    Torch(TorchError),
    /// The original is nothing that a candidate can be judged by; why, in sentences.
    #[error("{0}")]
    Unsuitable(String),
    /// Another machine, which judges, says why not; or can't be reached.
    #[error("{message}")]
    Elsewhere {
        /// In sentences.
        message: String,
        /// What the command line ends with.
        status: u8,
    },
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
    /// How many times less that is than what the reference costs.
    pub gain: f64,
}

/// Whether a candidate that is at least so many times better is kept, and how that is said.
fn decided(times: f64, words: &str) -> (Outcome, String) {
    if times >= LEAST_GAIN {
        (Outcome::Kept, format!("kept: {words}"))
    } else {
        (Outcome::NotBetter, format!("right, but no better: {words}"))
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

/// Two costs in words: `3.21 times fewer estimated cycles (9,120 instead of 29,280)`, or for measured ones
/// `2.03 times faster (12.10 µs instead of 24.56 µs, measured on cuda:0 (NVIDIA H200))`.
pub fn compared(before: &Cost, after: &Cost) -> String {
    let times = before.over(after);
    match (&before.time, &after.time) {
        (Some(one), Some(two)) if one.of == two.of => {
            let of = match two.of {
                Timed::Kernels => "",
                Timed::Process => " for the whole process",
                Timed::Call => " a call",
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

    pub(super) fn process(milliseconds: f64) -> Cost {
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
}
