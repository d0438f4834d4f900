//! What plans and codes, as the loop sees it: what it is shown, and what it answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stitch_findings::{Finding, Span};
use stitch_profiles::profile::Profile;

use crate::{Plan, Task};

/// What an engine is shown of a target: the code as it is now, and all that was found about it.
#[derive(Clone, Debug, Default)]
pub struct Brief {
    /// The target as it was named: `file.cu::kernel`.
    pub target: String,
    /// The name of its file, without folders.
    pub file: String,
    /// The text that defines what is right.
    pub reference: String,
    /// The text to go on from: the best attempt's, or the reference.
    pub current: String,
    /// What the person selected, in bytes of `reference`; all of the file where it is `None`.
    pub selection: Option<Span>,
    /// Names of the kernels and functions of the selection.
    pub scope: Vec<String>,
    /// Where it runs, in words, with the limits that matter: `sim:h200 (132 SMs, 4.8 TB/s, …)`.
    pub device: String,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said: `fp32`.
    pub precision: Option<String>,
    /// What is known about `current`, most important first, in bytes of `current`.
    pub findings: Vec<Finding>,
    /// What was measured of `current`, as a text for people and models: one table, with where it comes from.
    pub profile: String,
    /// What profilers saw of `reference`.
    pub recorded: Option<Arc<Profile>>,
    /// What was tried, oldest first.
    pub tried: Vec<Tried>,
    /// Tokens that may still be spent; `None` for as many as it takes.
    pub tokens_left: Option<u64>,
}

/// An attempt, as the next one is told of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The task.
    pub task: String,
    /// What became of it, in a sentence: `kept: 1.8 times fewer estimated cycles`, `wrong: copy 1 differs in 12 of 64 elements`.
    pub outcome: String,
}

/// Why the last candidate for a task was not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// The candidate's whole text, or the answer that could not be applied.
    pub candidate: String,
    /// The outcome in a sentence.
    pub outcome: String,
    /// What the compiler, the comparison and the counters said of it, in bytes of `candidate`.
    pub findings: Vec<Finding>,
    /// What was measured of it, as [`Brief::profile`].
    pub profile: String,
}

/// What a Coder answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "proposal", rename_all = "kebab-case")]
pub enum Proposal {
    /// New code.
    Candidate {
        /// The file's whole new text.
        text: String,
        /// What was done and why, in a few sentences.
        explanation: String,
    },
    /// Nothing to do, or nothing that can be shown to be right.
    Declined {
        /// Why.
        reason: String,
    },
    /// An answer that could not be applied, after a round of repair.
    Unusable {
        /// The answer, as far as it is there.
        answer: String,
        /// What is wrong with it, in a sentence that helps to do better.
        reason: String,
    },
}

/// One question to a model and its answer, for the run's folder. Never holds a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// Who was asked: `planner`, `replanner`, `coder`, and the same with `-repair` after an answer that could not be used.
    pub role: String,
    /// The model that answered, as the endpoint calls it.
    pub model: String,
    /// What was sent: role and content of each message.
    pub messages: Vec<(String, String)>,
    /// What came, thinking left out.
    pub answer: String,
    /// What the model thought, where the endpoint says it.
    pub thinking: String,
    /// Why it ended: `stop`, `length`, …
    pub finish_reason: Option<String>,
    /// Tokens of the question and of the answer; estimated (4 bytes a token) where the endpoint does not say.
    pub tokens: Tokens,
    /// Wall time in seconds, retries included.
    pub seconds: f64,
    /// How often it was sent again, and why.
    pub retries: Vec<String>,
    /// What was unusual about the answer, or is wrong with it, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why there is no answer, or only a part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Sent.
    pub prompt: u64,
    /// Received, thinking included.
    pub completion: u64,
    /// Whether these are estimates.
    pub estimated: bool,
}

impl Tokens {
    /// Both ways.
    pub fn sum(&self) -> u64 {
        self.prompt + self.completion
    }
}

/// Why an engine has no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Something must be configured first: exit status 3.
    #[error("{0}")]
    Missing(String),
    /// The endpoint failed for good, after retries.
    #[error("{0}")]
    Endpoint(String),
    /// The model does not answer to the point, not even when told.
    #[error("{0}")]
    Answer(String),
    /// The budget of tokens is spent.
    #[error("the budget of {budget} tokens is spent")]
    Budget {
        /// The budget.
        budget: u64,
    },
    /// The job was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Called by an engine while it works.
pub trait Watch: Send + Sync {
    /// Text came in: how many bytes of the answer so far, and what role is answering.
    fn streaming(&self, role: &str, bytes: usize);
    /// An exchange is over, well or not.
    fn exchanged(&self, exchange: &Exchange);
}

/// Plans and codes.
pub trait Engine: Send {
    /// Writes the to-do list. An empty plan says in its summary why there is nothing to do.
    fn plan(
        &mut self,
        brief: &Brief,
        watch: &dyn Watch,
        cancel: &tokio_util::sync::CancellationToken,
    ) -> impl Future<Output = Result<Plan, EngineError>> + Send;

    /// Writes a new list, after `plan` led no further for `reason`.
    fn replan(
        &mut self,
        brief: &Brief,
        plan: &Plan,
        reason: &str,
        watch: &dyn Watch,
        cancel: &tokio_util::sync::CancellationToken,
    ) -> impl Future<Output = Result<Plan, EngineError>> + Send;

    /// Does a task; `feedback` is about its last candidate, if there was one.
    fn code(
        &mut self,
        brief: &Brief,
        task: &Task,
        feedback: Option<&Feedback>,
        watch: &dyn Watch,
        cancel: &tokio_util::sync::CancellationToken,
    ) -> impl Future<Output = Result<Proposal, EngineError>> + Send;
}
