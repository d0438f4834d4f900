//! The loop: from a target to a verified edit.
//!
//! One loop for both engines, on the command line and in the editor. It holds no state but the run's history: [`decide()`] says from that what
//! comes next, and what came of it is written down before anything else happens.

mod aim;
mod brief;
mod conclude;
mod decide;
mod evaluate;
mod record;

use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;
use stitch_findings::Verdict;
use stitch_profiles::profile::Profile;
use tokio_util::sync::CancellationToken;

pub use aim::{Aim, AimError, PythonAim, aim, aim_python};
pub use brief::read;
pub use decide::{Step, decide};
pub use evaluate::{
    Answered, Asking, Baseline, Carry, CudaJudgement, ElsewhereJudgement, Evaluated, JudgeError, Judgement,
    LEAST_GAIN, Named, Question, ToBeat, TorchJudgement, Version, compared,
};

use crate::engine::{Engine, EngineError, Exchange, Feedback, Proposal, Tokens, Watch};
use crate::run::{self, Attempt, Conclusion, Entry, Outcome, Run, RunError, Why};
use crate::{Plan, Task};

/// Something that a person who watches a run should see.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// A stage of the loop began.
    Stage {
        /// Its name: `planning`, `coding`, `building both`.
        stage: &'a str,
        /// What it is about: the task.
        about: &'a str,
    },
    /// The model is answering.
    Streaming {
        /// Who: `planner`, `coder`.
        role: &'a str,
        /// Bytes so far.
        bytes: usize,
    },
    /// Something was written to the run's history.
    Happened {
        /// What.
        #[serde(flatten)]
        entry: &'a Entry,
    },
}

/// Watches a run.
pub trait Observer: Send + Sync {
    /// Called with what happens, as it happens.
    fn on(&self, event: &Event<'_>);
}

/// Why a run came to no end. It can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum OptimizeError {
    /// The run's folder can't be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine has no answer.
    #[error("{0}")]
    Engine(EngineError),
    /// The target can't be judged.
    #[error(transparent)]
    Judge(JudgeError),
    /// The run was measured elsewhere.
    #[error(
        "The run was measured on {measured}, and would go on with {now}. Costs of two devices can't be compared: take that device, or begin a new run."
    )]
    OtherDevice {
        /// Where it was measured.
        measured: String,
        /// The device of now.
        now: String,
    },
    /// The job was cancelled.
    #[error("The run was cancelled. `stitchcuda runs resume` goes on with it.")]
    Cancelled,
}

impl From<EngineError> for OptimizeError {
    fn from(error: EngineError) -> Self {
        if matches!(error, EngineError::Cancelled) { Self::Cancelled } else { Self::Engine(error) }
    }
}

impl From<JudgeError> for OptimizeError {
    fn from(error: JudgeError) -> Self {
        if matches!(error, JudgeError::Cancelled) { Self::Cancelled } else { Self::Judge(error) }
    }
}

/// Goes on with a run until it comes to its end.
///
/// # Errors
/// The engine or the Verifier can't go on, the run's folder can't be written, or the job was cancelled. What was done until then is in
/// the run's folder, and a later call goes on from there.
pub async fn optimize<E: Engine>(
    run: &mut Run,
    judgement: &Judgement,
    engine: &mut E,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<Conclusion, OptimizeError> {
    let device = judgement.device();
    let measured = reference_cost(run.history()).device;
    if !measured.is_empty() && measured != device {
        return Err(OptimizeError::OtherDevice { measured, now: device });
    }
    let mut work = Work { run, judgement, engine, observer, cancel, device };
    loop {
        if cancel.is_cancelled() {
            return Err(OptimizeError::Cancelled);
        }
        let composes = judgement.composes();
        let entry = match decide(work.run.history(), &work.run.manifest().budget, composes) {
            Step::Baseline => work.baseline().await,
            Step::Plan => work.plan(None).await,
            Step::Replan(reason) => work.plan(Some(reason)).await,
            Step::Code { plan, task } => work.attempt(plan, task).await,
            Step::Compose { of } => work.compose(of).await,
            Step::Finish(why) => return work.finish(why),
        };
        match entry {
            Ok(entry) => work.happened(entry)?,
            // The next question would cost more than is left.
            Err(OptimizeError::Engine(EngineError::Budget { .. })) => return work.finish(Why::Tokens),
            Err(error) => return Err(error),
        }
    }
}

/// A run at work.
struct Work<'a, E> {
    run: &'a mut Run,
    judgement: &'a Judgement,
    engine: &'a mut E,
    observer: &'a dyn Observer,
    cancel: &'a CancellationToken,
    device: String,
}

impl<E: Engine> Work<'_, E> {
    fn happened(&mut self, entry: Entry) -> Result<(), RunError> {
        self.observer.on(&Event::Happened { entry: &entry });
        self.run.append(entry)
    }

    fn finish(&mut self, why: Why) -> Result<Conclusion, OptimizeError> {
        let conclusion = conclude::conclude(self.run.history(), why);
        self.happened(Entry::Conclusion(conclusion.clone()))?;
        Ok(conclusion)
    }

    fn reference(&self) -> Version {
        Version { path: self.run.reference_path(), text: self.run.reference().to_owned() }
    }

    async fn baseline(&mut self) -> Result<Entry, OptimizeError> {
        self.observer.on(&Event::Stage { stage: "measuring the reference", about: "" });
        let begun = Instant::now();
        let reference = self.reference();
        let progress = |stage: &str| self.observer.on(&Event::Stage { stage, about: "" });
        let baseline = self.judgement.baseline(&reference, &progress, self.cancel).await?;
        let Baseline { cost, profile, recorded } = baseline;
        let recorded = match recorded {
            Some(recorded) => Ok(recorded),
            None => self.profile(&reference).await?,
        };
        let recorded = match recorded {
            Ok(recorded) => {
                self.run.write_profile(&recorded)?;
                record::made(&recorded)
            }
            Err(why) => record::not_made(&why),
        };
        Ok(Entry::Baseline { cost, profile, recorded, seconds: begun.elapsed().as_secs_f64() })
    }

    /// What profilers see of the reference in their share of the time, or why they see nothing. That is no trouble of the run.
    async fn profile(&self, reference: &Version) -> Result<Result<Profile, String>, OptimizeError> {
        self.observer.on(&Event::Stage { stage: "profiling the reference", about: "" });
        let progress = |stage: &str| self.observer.on(&Event::Stage { stage, about: "" });
        let limit = record::share_of(&self.run.manifest().budget);
        // Ended with the run, or with its share.
        let cancel = self.cancel.child_token();
        let profile = self.judgement.profile(reference, limit, &progress, &cancel);
        let profile = match tokio::time::timeout(limit, profile).await {
            Ok(profile) => profile,
            Err(_) => Err(format!("it took longer than its share of the time, {} s", limit.as_secs())),
        };
        if self.cancel.is_cancelled() {
            return Err(OptimizeError::Cancelled);
        }
        Ok(profile)
    }

    async fn plan(&mut self, reason: Option<String>) -> Result<Entry, OptimizeError> {
        let stage = if reason.is_some() { "planning again" } else { "planning" };
        self.observer.on(&Event::Stage { stage, about: reason.as_deref().unwrap_or_default() });
        let begun = Instant::now();
        let brief = brief::brief(self.run, &self.device)?;
        let last = plans(self.run.history()).last().cloned();
        let watcher = Watcher::new(self.run, self.observer);
        let plan = match (&reason, &last) {
            (Some(reason), Some(last)) => {
                self.engine.replan(&brief, last, reason, &watcher, self.cancel).await?
            }
            _ => self.engine.plan(&brief, &watcher, self.cancel).await?,
        };
        let tokens = watcher.done()?;
        Ok(Entry::Plan { plan, reason, seconds: begun.elapsed().as_secs_f64(), tokens })
    }

    async fn attempt(&mut self, plan: usize, task: usize) -> Result<Entry, OptimizeError> {
        let begun = Instant::now();
        let to_do = plans(self.run.history()).nth(plan).and_then(|plan| plan.tasks.get(task)).cloned();
        let to_do = to_do.unwrap_or_default();
        self.observer.on(&Event::Stage { stage: "coding", about: &to_do.title });
        let feedback = brief::feedback(self.run, plan, task)?;
        let (proposal, tokens) = self.code(&to_do, feedback.as_ref()).await?;
        let mut attempt = self.next_attempt(plan, task, to_do.title);
        let number = attempt.number;
        attempt.tokens = tokens;
        match proposal {
            Proposal::Declined { reason } => {
                self.run.write_candidate(number, &self.run.current()?)?;
                attempt.said = format!("not done: {reason}");
            }
            Proposal::Unusable { answer, reason } => {
                self.run.write_candidate(number, &answer)?;
                attempt.outcome = Outcome::Unusable;
                attempt.said = format!("the answer could not be used: {reason}");
            }
            Proposal::Candidate { text, explanation } => {
                attempt.explanation = explanation;
                self.judge(&mut attempt, text).await?;
            }
        }
        attempt.seconds = begun.elapsed().as_secs_f64();
        Ok(Entry::Attempt(Box::new(attempt)))
    }

    /// An attempt of which nothing is known yet.
    fn next_attempt(&self, plan: usize, task: usize, title: String) -> Attempt {
        Attempt {
            number: u32::try_from(run::attempts(self.run.history()).count() + 1).unwrap_or(u32::MAX),
            plan,
            task,
            composed_of: None,
            title,
            outcome: Outcome::Declined,
            said: String::new(),
            explanation: String::new(),
            gain: None,
            interval: None,
            cost: None,
            profile: String::new(),
            verdict: None,
            findings: Vec::new(),
            seconds: 0.0,
            tokens: Tokens::default(),
        }
    }

    /// Puts an attempt beside the original, so that what was not verified is still done by that, and judges the result.
    async fn compose(&mut self, of: u32) -> Result<Entry, OptimizeError> {
        const TITLE: &str = "Keep the original for all that was not verified";
        let begun = Instant::now();
        self.observer.on(&Event::Stage { stage: "putting it beside the original", about: "" });
        let best = run::attempts(self.run.history()).find(|attempt| attempt.number == of).cloned();
        let (plan, task) = best.as_ref().map_or((0, 0), |best| (best.plan, best.task));
        let mut attempt =
            Attempt { composed_of: Some(of), ..self.next_attempt(plan, task, TITLE.to_owned()) };
        let text = self.run.candidate(of)?;
        let verdict = best.and_then(|best| best.verdict);
        let modes = self.modes(of, &text, verdict.as_ref()).await?;
        match self.judgement.composed(self.run.reference(), &text, verdict.as_ref(), &modes) {
            Err(reason) => {
                self.run.write_candidate(attempt.number, &text)?;
                attempt.said = format!("not done: {reason}");
            }
            Ok(text) => {
                let cost = reference_cost(self.run.history());
                let path = self.run.reference_path();
                let to_beat = ToBeat { path: &path, cost: &cost, gain: 1.0 };
                self.judge_against(&mut attempt, text, &to_beat).await?;
                if attempt.outcome == Outcome::Kept {
                    attempt.said.push_str(runs_in(&modes));
                }
            }
        }
        attempt.seconds = begun.elapsed().as_secs_f64();
        Ok(Entry::Attempt(Box::new(attempt)))
    }

    /// The modes of a module (its `training`) in which a candidate is right: that of its verdict, and the other one where it is right there too,
    /// in all that it returns. What depends on the mode by chance alone, such as dropout, can't be found right there.
    async fn modes(
        &self,
        of: u32,
        text: &str,
        verdict: Option<&Verdict>,
    ) -> Result<Vec<bool>, OptimizeError> {
        let Some(mode) = verdict.and_then(|verdict| verdict.evidence.training) else {
            return Ok(Vec::new());
        };
        let candidate = Version { path: self.run.candidate_path(of), text: text.to_owned() };
        let about = if mode { "in evaluation mode" } else { "in training mode" };
        let progress = |stage: &str| self.observer.on(&Event::Stage { stage, about });
        let versions = [&self.reference(), &candidate];
        match self.judgement.in_mode(versions, !mode, &progress, self.cancel).await {
            Ok(other) if other.is_good() && other.left_out.is_empty() => Ok(vec![mode, !mode]),
            Err(JudgeError::Cancelled) => Err(OptimizeError::Cancelled),
            // The original itself may fail in the other mode; then nobody needs the new code there.
            Ok(_) | Err(_) => Ok(vec![mode]),
        }
    }

    async fn code(
        &mut self,
        task: &Task,
        feedback: Option<&Feedback>,
    ) -> Result<(Proposal, Tokens), OptimizeError> {
        let brief = brief::brief(self.run, &self.device)?;
        let watcher = Watcher::new(self.run, self.observer);
        let proposal = self.engine.code(&brief, task, feedback, &watcher, self.cancel).await?;
        let tokens = watcher.done()?;
        Ok((proposal, tokens))
    }

    async fn judge(&mut self, attempt: &mut Attempt, text: String) -> Result<(), OptimizeError> {
        if text == self.run.current()? {
            self.run.write_candidate(attempt.number, &text)?;
            attempt.outcome = Outcome::NotBetter;
            attempt.said = "no better: the candidate is the code as it was".to_owned();
            return Ok(());
        }
        let reference_cost = reference_cost(self.run.history());
        let best = run::best(self.run.history()).cloned();
        let best_path = best
            .as_ref()
            .map_or_else(|| self.run.reference_path(), |best| self.run.candidate_path(best.number));
        let to_beat = ToBeat {
            path: &best_path,
            cost: best.as_ref().and_then(|best| best.cost.as_ref()).unwrap_or(&reference_cost),
            gain: best.as_ref().and_then(|best| best.gain).unwrap_or(1.0),
        };
        self.judge_against(attempt, text, &to_beat).await
    }

    async fn judge_against(
        &mut self,
        attempt: &mut Attempt,
        text: String,
        to_beat: &ToBeat<'_>,
    ) -> Result<(), OptimizeError> {
        let path = self.run.write_candidate(attempt.number, &text)?;
        let progress = |stage: &str| self.observer.on(&Event::Stage { stage, about: &attempt.title });
        let candidate = Version { path, text };
        let evaluated =
            self.judgement.evaluate(&self.reference(), &candidate, to_beat, &progress, self.cancel).await?;
        attempt.outcome = evaluated.outcome;
        attempt.said = evaluated.said;
        attempt.verdict = evaluated.verdict;
        attempt.findings = evaluated.findings;
        attempt.profile = evaluated.profile;
        // Measured gains follow from each other: times of long ago are no measure for those of now.
        attempt.gain = match &evaluated.cost {
            Some(cost) if cost.time.is_none() => Some(reference_cost(self.run.history()).over(cost)),
            _ => evaluated.gain.map(|gain| gain * to_beat.gain),
        };
        attempt.interval = evaluated.interval;
        attempt.cost = evaluated.cost;
        Ok(())
    }
}

/// For which calls new code beside the original runs, besides their arguments.
fn runs_in(modes: &[bool]) -> &'static str {
    match modes {
        [] => ". The new code runs where no gradients are needed",
        [true] => {
            ". The new code runs in training mode where no gradients are needed; in evaluation mode the original runs"
        }
        [false] => {
            ". The new code runs in evaluation mode where no gradients are needed; in training mode the original runs"
        }
        _ => ". The new code runs in both modes, where no gradients are needed",
    }
}

fn plans(history: &[Entry]) -> impl Iterator<Item = &Plan> {
    history.iter().filter_map(|entry| match entry {
        Entry::Plan { plan, .. } => Some(plan),
        _ => None,
    })
}

fn reference_cost(history: &[Entry]) -> stitch_verifier::measure::Cost {
    let of = |entry: &Entry| match entry {
        Entry::Baseline { cost, .. } => Some(cost.clone()),
        _ => None,
    };
    history.iter().find_map(of).unwrap_or_default()
}

/// Writes exchanges down as they come, and adds up what they cost.
struct Watcher<'a> {
    run: &'a Run,
    observer: &'a dyn Observer,
    seen: Mutex<(Tokens, Option<RunError>)>,
}

impl<'a> Watcher<'a> {
    fn new(run: &'a Run, observer: &'a dyn Observer) -> Self {
        Self { run, observer, seen: Mutex::default() }
    }

    /// What was spent, or why an exchange could not be written down.
    fn done(self) -> Result<Tokens, RunError> {
        let (tokens, trouble) = self.seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        trouble.map_or(Ok(tokens), Err)
    }
}

impl Watch for Watcher<'_> {
    fn streaming(&self, role: &str, bytes: usize) {
        self.observer.on(&Event::Streaming { role, bytes });
    }

    fn exchanged(&self, exchange: &Exchange) {
        let written = self.run.write_exchange(exchange);
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.0.prompt += exchange.tokens.prompt;
        seen.0.completion += exchange.tokens.completion;
        seen.0.estimated |= exchange.tokens.estimated;
        if let Err(error) = written {
            seen.1.get_or_insert(error);
        }
    }
}
