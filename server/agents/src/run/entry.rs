//! What happens in a run, one entry after the other.

use serde::{Deserialize, Serialize};
use stitch_findings::{Finding, Verdict};
use stitch_verifier::measure::Cost;

use crate::Plan;
use crate::engine::{Tokens, Tried};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum Entry {
    /// The reference was measured.
    Baseline {
        /// What it costs.
        cost: Cost,
        /// What was measured, as a table.
        profile: String,
        /// By what it was profiled, or why it was not, in sentences. The profile itself lies beside the history.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        recorded: String,
        /// Wall time.
        seconds: f64,
    },
    /// A plan was written.
    Plan {
        /// The plan.
        plan: Plan,
        /// Why a new one was needed; `None` for the first.
        reason: Option<String>,
        /// Wall time.
        seconds: f64,
        /// Tokens of the model.
        tokens: Tokens,
    },
    /// A task was attempted.
    Attempt(Box<Attempt>),
    /// The run came to its end. A larger budget may take it up again.
    Conclusion(Conclusion),
}

/// One candidate with everything that was measured about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// From 1, over the whole run.
    pub number: u32,
    /// The plan, from 0.
    pub plan: usize,
    /// The task of the plan, from 0.
    pub task: usize,
    /// Of what is no task, but the best attempt put beside the original: the number of that attempt. Only such a one is offered where the
    /// original stays in the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composed_of: Option<u32>,
    /// The task's title.
    pub title: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The outcome in a sentence, with its numbers.
    pub said: String,
    /// What the engine says it did.
    pub explanation: String,
    /// How many times less it costs than the reference.
    pub gain: Option<f64>,
    /// On a GPU, the 95% interval of how many times faster it is than the best before, in what was timed.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
    /// What it costs.
    pub cost: Option<Cost>,
    /// What was measured, as a table.
    pub profile: String,
    /// The Verifier's answer.
    pub verdict: Option<Verdict>,
    /// What the Coder should know besides the verdict's findings.
    pub findings: Vec<Finding>,
    /// Wall time.
    pub seconds: f64,
    /// Tokens of the model.
    pub tokens: Tokens,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Right, and better than the best before.
    Kept,
    /// Right, and no better.
    NotBetter,
    /// It does not compile.
    BuildFailed,
    /// It computes something else, crashes, does not end, or gives nothing to compare.
    Wrong,
    /// It may not be offered, whatever it computes: a lowered precision.
    Refused,
    /// The engine found nothing to do, or nothing that it can show to be right.
    Declined,
    /// The answer could not be applied.
    Unusable,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conclusion {
    /// Why it ended.
    pub why: Why,
    /// The best attempt, where one was better than the reference.
    pub best: Option<u32>,
    /// How many times less that costs than the reference.
    pub gain: Option<f64>,
    /// In a few sentences: what was gained, or why nothing was.
    pub said: String,
    /// What was tried.
    pub tried: Vec<Tried>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// All tasks of the last plan were done, and no new plan was allowed or needed.
    PlanDone,
    /// The plan has no task.
    NothingToDo,
    /// A plan was all that was asked for.
    Planned,
    /// The budget of attempts is spent.
    Attempts,
    /// The budget of time is spent.
    Time,
    /// The budget of tokens is spent.
    Tokens,
}

/// What the best attempt was put into, if that was tried: the last such one.
pub(crate) fn composed(history: &[Entry]) -> Option<&Attempt> {
    let best = best(history)?.number;
    attempts(history).filter(|attempt| attempt.composed_of == Some(best)).last()
}

/// What may be offered: the best attempt, or where it was put beside the original, the result of that if it is right.
pub(crate) fn offered(history: &[Entry]) -> Option<&Attempt> {
    match composed(history) {
        Some(composed) => Some(composed).filter(|attempt| attempt.outcome == Outcome::Kept),
        None => best(history),
    }
}

/// The kept attempt that costs least, to go on from.
pub(crate) fn best(history: &[Entry]) -> Option<&Attempt> {
    attempts(history)
        .filter(|attempt| attempt.outcome == Outcome::Kept && attempt.composed_of.is_none())
        .max_by(|a, b| a.gain.unwrap_or(1.0).total_cmp(&b.gain.unwrap_or(1.0)))
}

/// All attempts, in order.
pub(crate) fn attempts(history: &[Entry]) -> impl Iterator<Item = &Attempt> {
    history.iter().filter_map(|entry| match entry {
        Entry::Attempt(attempt) => Some(&**attempt),
        _ => None,
    })
}

/// What was tried, for the next plan and for people.
pub(crate) fn tried(history: &[Entry]) -> Vec<Tried> {
    attempts(history)
        .map(|attempt| Tried { task: attempt.title.clone(), outcome: attempt.said.clone() })
        .collect()
}

impl Entry {
    /// The wall time that it took.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Baseline { seconds, .. } | Self::Plan { seconds, .. } => *seconds,
            Self::Attempt(attempt) => attempt.seconds,
            Self::Conclusion(_) => 0.0,
        }
    }

    /// The tokens that it took.
    pub fn tokens(&self) -> u64 {
        match self {
            Self::Plan { tokens, .. } => tokens.sum(),
            Self::Attempt(attempt) => attempt.tokens.sum(),
            _ => 0,
        }
    }
}
