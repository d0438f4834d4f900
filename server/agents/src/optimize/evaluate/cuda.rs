//! CUDA programs and kernels: verify, measure, in this order; a later one only if the earlier passed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_findings::{Answer, Verdict};
use stitch_profiles::profile::Profile;
use stitch_session::config::Precision;
use stitch_verifier::measure::{self, Comparison, Cost, MeasureError, Measured, Measurement};
use stitch_verifier::profile::{simulated, take};
use stitch_verifier::program::{Program, RunDevice, Target};
use stitch_verifier::verify::{self, VerifyError};
use tokio_util::sync::CancellationToken;

use super::{Baseline, Evaluated, JudgeError, Named, ToBeat, Version, compared, decided, faster};
use crate::run::Outcome;

/// All that a candidate of a target is judged by.
#[derive(Clone, Debug)]
pub struct CudaJudgement {
    /// The target, with the file that it was taken from.
    pub target: Target,
    /// How it is built and run.
    pub measurement: Measurement,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
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

impl CudaJudgement {
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
    ) -> Result<Baseline, JudgeError> {
        let target = self.target_at(reference.path.clone());
        let measured = measure::measure(&self.measurement, &target, &target, cancel).await?;
        let profile = measure::table(&measured, &reference.path);
        let device = &self.measurement.builder.device;
        let recorded = matches!(device, RunDevice::Simulator(_))
            .then(|| simulated::profile(&measured.report, &self.name(), device));
        Ok(Baseline { cost: measured.cost, profile, recorded })
    }

    /// What profilers see of the reference.
    pub(super) async fn profile(
        &self,
        reference: &Version,
        limit: Duration,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Profile, String> {
        let target = self.target_at(reference.path.clone());
        let say = |stage: &str| progress(&format!("profiling the reference: {stage}"));
        let taken = take::of_target(&self.measurement, &target, &self.name(), limit, &say, cancel).await;
        taken.map_err(|error| error.to_string())
    }

    /// The target as a profile names it.
    fn name(&self) -> String {
        match &self.target {
            Target::Kernel { kernel, .. } => kernel.clone(),
            Target::Program(program) => program.name.clone(),
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
        let targets = [&reference.path, &candidate.path].map(|path| self.target_at(path.clone()));
        let best = self.target_at(to_beat.path.to_owned());
        let verified = self.verify(&targets, progress, cancel);
        let verified = match self.measurement.builder.device {
            // Most candidates are right, and so are timed.
            RunDevice::Cuda { .. } => {
                let built =
                    measure::build_ahead(&self.measurement, &targets[0], [&best, &targets[1]], cancel);
                tokio::join!(verified, built).0
            }
            RunDevice::Simulator(_) => verified.await,
        };
        let verdict = match verified {
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
            let said = verdict.trouble();
            return Ok(Evaluated { verdict: Some(verdict), ..Evaluated::of(outcome, said) });
        }
        let judged = Judged { verdict, path: &candidate.path };
        match self.measurement.builder.device {
            RunDevice::Cuda { .. } => self.time(judged, &targets, (&best, to_beat), progress, cancel).await,
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
        (best, to_beat): (&Target, &ToBeat<'_>),
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        let compared =
            measure::compare(&self.measurement, reference, [best, candidate], to_beat.cost, progress, cancel);
        let comparison = match compared.await {
            Ok(comparison) => comparison,
            Err(error) => return judged.unmeasured(error),
        };
        let verdict = &mut judged.verdict;
        verdict.not_checked.retain(|sentence| sentence != verify::UNTIMED);
        verdict.not_checked.extend(comparison.not_checked.iter().cloned());
        verdict.notes.extend(comparison.notes.iter().cloned());
        let (outcome, said) = if comparison.is_same_code {
            (Outcome::NotBetter, SAME_CODE.to_owned())
        } else {
            decided(comparison.ratio.low, &timed(&comparison))
        };
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

    /// Whether one version does what another does.
    pub(super) async fn verify_named(
        &self,
        versions: [&Named<'_>; 2],
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, VerifyError> {
        let targets = versions.map(|of| self.target_at(of.version.path.clone()));
        let mut request = self.request(&targets);
        let [reference, candidate] = versions.map(|of| of.name.to_owned());
        (request.reference_name, request.candidate_name) = (reference, candidate);
        let verdict = verify::verify(&request, &progress, cancel).await?;
        Ok(without_folder(verdict, &versions[1].version.path))
    }

    async fn verify(
        &self,
        targets: &[Target; 2],
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, VerifyError> {
        verify::verify(&self.request(targets), &progress, cancel).await
    }

    fn request(&self, [reference, candidate]: &[Target; 2]) -> verify::Request {
        verify::Request {
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
        }
    }
}

/// What is said of a candidate that only reads otherwise.
const SAME_CODE: &str = "right, but no better: nvcc makes the same machine code of it as of the best so far, launched alike, so there is nothing to time";

/// The verdict with the candidate's file by its name alone: where its run lies is of no use to anyone, and no business of an endpoint.
fn without_folder(mut verdict: Verdict, path: &Path) -> Verdict {
    let folder = path.parent().map(|folder| format!("{}/", folder.display())).unwrap_or_default();
    for finding in &mut verdict.findings {
        finding.message = finding.message.replace(&folder, "");
    }
    verdict
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

#[cfg(test)]
mod tests {
    use stitch_verifier::measure::sample::Interval;

    use super::super::tests::process;
    use super::*;

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
            let comparison = Comparison {
                before,
                after,
                ratio,
                notes: Vec::new(),
                not_checked: Vec::new(),
                is_same_code: false,
            };
            let (decided, said) = decided(comparison.ratio.low, &timed(&comparison));
            assert_eq!(decided, outcome, "{said}");
            assert!(said.contains(&format!("{low:.3} to {high:.3} at 95%")), "{said}");
        }
    }
}
