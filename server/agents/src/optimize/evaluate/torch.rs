//! PyTorch modules, functions and statements. The Verifier compares and times in one go, always against the original.

use std::path::PathBuf;
use std::time::Duration;

use stitch_analysis::target::compose::{Verified, as_function, compose, in_version};
use stitch_analysis::target::denote::Denoted;
use stitch_findings::{Answer, Speedup, Times, Verdict};
use stitch_profiles::profile::Profile;
use stitch_profiles::python::Workspace;
use stitch_session::config::Precision;
use stitch_verifier::measure::Cost;
use stitch_verifier::measure::sample::Interval;
use stitch_verifier::torch::find::candidate_in;
use stitch_verifier::torch::judge::Rule;
use stitch_verifier::torch::machine::Machine;
use stitch_verifier::torch::request::{Request, SanitizerPolicy, TorchError};
use stitch_verifier::torch::subject::{Callable, Subject};
use stitch_verifier::torch::verify::{profiled, verify};
use tokio_util::sync::CancellationToken;

use super::{Baseline, Evaluated, JudgeError, LEAST_GAIN, Named, ToBeat, Version, faster, microseconds};
use crate::run::Outcome;

/// What the original is called among the times of a verdict.
const REFERENCE: &str = "reference";

/// All that a candidate for PyTorch code is judged by.
#[derive(Clone)]
pub struct TorchJudgement {
    /// What runs it.
    pub machine: Machine,
    /// What is called and with what, in the person's own file.
    pub subject: Subject,
    /// The same in the file's text, where the answer is to be put.
    pub denoted: Denoted,
    /// Training or evaluation mode, where it was said.
    pub train: Option<bool>,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
    /// How long one request to a process may take.
    pub time_limit: Duration,
}

impl std::fmt::Debug for TorchJudgement {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("TorchJudgement").field(&self.subject).finish()
    }
}

impl TorchJudgement {
    /// What the reference costs.
    ///
    /// # Errors
    /// It fails by itself, nothing could be timed, or the job was cancelled.
    pub(super) async fn baseline(
        &self,
        reference: &Version,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Baseline, JudgeError> {
        let subject = self.at(reference.path.clone());
        let mut request = self.request(subject.clone(), subject);
        request.sanitizer = SanitizerPolicy::Never;
        let verdict = run(&request, progress, cancel).await?;
        if !verdict.is_good() {
            return Err(JudgeError::Unsuitable(format!(
                "The original does not agree with itself, so no candidate can be compared with it: {}",
                verdict.trouble()
            )));
        }
        let time = verdict.evidence.times.iter().find(|times| times.what == REFERENCE);
        let Some(time) = time else {
            let why = verdict.not_checked.join(" ");
            return Err(JudgeError::Unsuitable(format!("The original could not be timed. {why}")));
        };
        let profile = profile(&verdict, &self.machine);
        Ok(Baseline { cost: self.cost(time), profile, recorded: None })
    }

    /// What torch's profiler sees of the reference.
    pub(super) async fn profile(
        &self,
        reference: &Version,
        limit: Duration,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Profile, String> {
        let subject = self.at(reference.path.clone());
        let name = subject.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut request = self.request(subject.clone(), subject);
        request.time_limit = request.time_limit.min(limit);
        // The copy in the run's folder stands for the person's file, beside which its imports are.
        let paths = [&reference.path, &self.subject.path];
        let folders = paths.into_iter().filter_map(|path| path.parent().map(PathBuf::from)).collect();
        let files = Workspace { folders, files: vec![reference.path.clone()], ..Workspace::default() };
        let say = |stage: &str, _: Option<f32>| progress(&format!("profiling the reference: {stage}"));
        profiled::profile(&name, &request, &files, false, &say, cancel)
            .await
            .map_err(|error| error.to_string())
    }

    /// Judges a candidate; `to_beat` says how much faster than the original the best one is so far.
    pub(super) async fn evaluate(
        &self,
        reference: &Version,
        candidate: &Version,
        to_beat: &ToBeat<'_>,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        let named = Named { version: candidate, name: "the candidate" };
        let subject = match self.claimed(reference, &named) {
            Ok(subject) => subject,
            Err(error) => return Ok(Evaluated::of(Outcome::Wrong, format!("wrong: {error}"))),
        };
        let request = self.request(self.at(reference.path.clone()), subject);
        let verdict = run(&request, progress, cancel).await?;
        if !verdict.is_good() {
            let outcome = match verdict.answer {
                Answer::BuildFailed => Outcome::BuildFailed,
                Answer::Dishonest => Outcome::Refused,
                _ => Outcome::Wrong,
            };
            let said = verdict.trouble();
            return Ok(Evaluated { verdict: Some(verdict), ..Evaluated::of(outcome, said) });
        }
        Ok(self.decided(verdict, to_beat))
    }

    /// Whether one version does what another does, and how long both take.
    pub(super) async fn verify_named(
        &self,
        [reference, candidate]: [&Named<'_>; 2],
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, JudgeError> {
        let subject = self.claimed(reference.version, candidate).map_err(JudgeError::Unsuitable)?;
        let request = Request {
            reference_name: reference.name.to_owned(),
            candidate_name: candidate.name.to_owned(),
            ..self.request(self.at(reference.version.path.clone()), subject)
        };
        run(&request, progress, cancel).await
    }

    /// Whether a candidate is right in training mode, or in evaluation mode. How fast it is there is not asked.
    pub(super) async fn in_mode(
        &self,
        [reference, candidate]: [&Version; 2],
        train: bool,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, JudgeError> {
        let named = Named { version: candidate, name: "the candidate" };
        let subject = self.claimed(reference, &named).map_err(JudgeError::Unsuitable)?;
        let request = Request {
            train: Some(train),
            calls: 0,
            ..self.request(self.at(reference.path.clone()), subject)
        };
        run(&request, progress, cancel).await
    }

    /// What of a candidate claims to do the same. Statements are found where they now stand in the file.
    fn claimed(&self, reference: &Version, candidate: &Named<'_>) -> Result<Subject, String> {
        let Version { path, text } = candidate.version;
        let Denoted::Statements(statements) = &self.denoted else {
            return candidate_in(&self.subject, path, text)
                .map_err(|error| error.to_string().replace(&path.display().to_string(), candidate.name));
        };
        let found = in_version(&reference.text, statements, text)?;
        let callable = Callable::Statements { lines: found.lines, reads: found.reads, sets: found.sets };
        Ok(Subject { path: path.clone(), callable, cases: self.subject.cases.clone() })
    }

    /// Keeps a right candidate that is faster than the best so far by more than could be chance.
    fn decided(&self, verdict: Verdict, to_beat: &ToBeat<'_>) -> Evaluated {
        let speedup = verdict.evidence.speedups.iter().find(|speedup| speedup.over == REFERENCE).cloned();
        let time = verdict.evidence.times.iter().find(|times| times.what == "candidate").cloned();
        let (Some(speedup), Some(time)) = (speedup, time) else {
            let why = verdict.not_checked.join(" ");
            let said = format!("right, but it can't be seen whether it is faster: {why}");
            return Evaluated { verdict: Some(verdict), ..Evaluated::of(Outcome::NotBetter, said) };
        };
        let is_better = speedup.low / to_beat.gain >= LEAST_GAIN;
        let words = words(&speedup, &verdict);
        let (outcome, said) = match is_better {
            true => (Outcome::Kept, format!("kept: {words}")),
            false if to_beat.gain > 1.0 => (
                Outcome::NotBetter,
                format!(
                    "right, but no better than the best so far, which is {:.2} times faster: {words}",
                    to_beat.gain
                ),
            ),
            false => (Outcome::NotBetter, format!("right, but no better: {words}")),
        };
        Evaluated {
            profile: profile(&verdict, &self.machine),
            gain: Some(speedup.ratio / to_beat.gain),
            interval: Some([speedup.low / to_beat.gain, speedup.high / to_beat.gain]),
            cost: Some(self.cost(&time)),
            verdict: Some(verdict),
            ..Evaluated::of(outcome, said)
        }
    }

    /// The subject in another version of its file.
    fn at(&self, path: PathBuf) -> Subject {
        Subject { path, ..self.subject.clone() }
    }

    fn request(&self, reference: Subject, candidate: Subject) -> Request {
        Request {
            reference_name: "the reference".to_owned(),
            candidate_name: "the candidate".to_owned(),
            rule: Rule { tolerance: self.tolerance },
            tolerance_name: if self.tolerance.is_some() { "given" } else { "usual" }.to_owned(),
            stands_for: Some(self.subject.path.clone()),
            time_limit: self.time_limit,
            train: self.train.or_else(|| self.subject.usual_mode()),
            // What is compared with is the original; how good a compiler is does not decide.
            compile_baseline: false,
            ..self.machine.request(reference, candidate)
        }
    }

    fn cost(&self, times: &Times) -> Cost {
        let samples = usize::try_from(times.calls).unwrap_or(usize::MAX);
        let interval = Interval { median: times.median, low: times.low, high: times.high, samples };
        Cost::of_call(self.machine.device().to_owned(), interval, vec![times.basis.clone()])
    }
}

/// The person's file with the candidate in it, which runs for what `verdict` was about, and a module's in these `modes` (its `training`); the
/// original runs for all else.
pub(super) fn composed(
    denoted: &Denoted,
    reference: &str,
    candidate: &str,
    verdict: Option<&Verdict>,
    modes: &[bool],
) -> Result<String, String> {
    let evidence = verdict.map(|verdict| &verdict.evidence);
    let verified = Verified {
        calls: evidence.map(|evidence| evidence.calls.clone()).unwrap_or_default(),
        gradients: false,
        training: modes.to_vec(),
        settings: evidence.map(|evidence| evidence.settings.clone()).unwrap_or_default(),
    };
    let function = match denoted {
        Denoted::Statements(statements) => {
            Some(as_function(candidate, &in_version(reference, statements, candidate)?)?)
        }
        Denoted::Target(_) => None,
    };
    Ok(compose(reference, denoted, function.as_deref().unwrap_or(candidate), &verified)?.text)
}

async fn run(
    request: &Request,
    progress: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<Verdict, JudgeError> {
    let said = |stage: &str, _: Option<f32>| progress(stage);
    verify(request, &said, cancel).await.map_err(|error| match error {
        TorchError::Cancelled => JudgeError::Cancelled,
        error => JudgeError::Torch(error),
    })
}

/// A speedup in words, with the times that it comes from.
fn words(speedup: &Speedup, verdict: &Verdict) -> String {
    let time = |what: &str| {
        let times = verdict.evidence.times.iter().find(|times| times.what == what);
        times.map(|times| microseconds(times.median)).unwrap_or_default()
    };
    format!(
        "{} than the original ({:.3} to {:.3} at 95%; {} instead of {}, measured on {})",
        faster(speedup.ratio),
        speedup.low,
        speedup.high,
        time("candidate"),
        time(REFERENCE),
        verdict.device
    )
}

/// What was measured, for people and models.
fn profile(verdict: &Verdict, machine: &Machine) -> String {
    let mut text = format!("Measured on {}, one call, in the parent's clock:", machine.device());
    for times in &verdict.evidence.times {
        text.push_str(&format!(
            "\n  {}: {} (95% interval {} to {}; {} calls)",
            times.what,
            microseconds(times.median),
            microseconds(times.low),
            microseconds(times.high),
            times.calls
        ));
    }
    if let Some(accuracy) = &verdict.evidence.accuracy {
        text.push_str(&format!(
            "\n  error against 64 bits: {:.2} times the original's own largest error",
            accuracy.max_ratio
        ));
    }
    for degenerate in &verdict.evidence.degenerate {
        text.push_str(&format!("\n  {} would pass for {}", degenerate.by, degenerate.output));
    }
    text
}
