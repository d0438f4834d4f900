//! What a verdict rests on besides comparisons: times and speedups, exactness, memory, versions. Every part is optional, for not every
//! target has all of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::VerifiedCall;

/// What was measured and by what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// Where inputs were drawn and modules constructed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub making: Option<Making>,
    /// How many secret seeds inputs were drawn from. The seeds themselves are told to nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    /// What each case was called with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<VerifiedCall>,
    /// Each module's classes and plain settings, such as a slope or a stride, as a digest that an edited file's guard computes too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Whether a module was in training mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<bool>,
    /// Distributions of inputs, and whether each was tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<Tried>,
    /// What the tolerance is called: `usual`, `kernelbench-old`, `given`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance_name: Option<String>,
    /// How far an element of each type that was compared may be off: `T` in `T * |expected| + T * min(1, rms)`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tolerances: BTreeMap<String, f64>,
    /// How exact the candidate is beside the reference, against the same computation in 64 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Outputs for which an answer without work would have passed, in every round. A verdict about them tells little.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degenerate: Vec<Degenerate>,
    /// Parameters and buffers that both versions were given alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// Times of a call, of each version that was timed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Times>,
    /// How many times faster the candidate is than each of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speedups: Vec<Speedup>,
    /// Device memory that a call held at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// What tools of compute-sanitizer found in the candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sanitizer: Vec<Sanitized>,
    /// How long each stage took, in the order they ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
    /// What kept the candidate's process from the rest of the machine, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// Where inputs were drawn and modules constructed: `cuda:0`, or `cpu, since …` with why not on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Making {
    /// The inputs, from the reference's own function or expression.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inputs: Option<String>,
    /// The reference's module.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<String>,
    /// The candidate's module, whose parameters and buffers are then set to the reference's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub candidate: Option<String>,
}

/// One distribution of inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// Which: `as the reference draws them`, `scaled`, `offset`, `with edge values`.
    pub what: String,
    /// In how many rounds it counted.
    pub rounds: u32,
    /// Why it did not count, where it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_tried: Option<String>,
}

/// Errors against an oracle in 64 bits, of the output in which the candidate does worst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accuracy {
    /// The output.
    pub output: String,
    /// The candidate's largest error over the reference's largest: 1 is as exact as the reference.
    pub max_ratio: f64,
    /// The same of the root mean squares of the errors.
    pub rms_ratio: f64,
    /// The reference's largest error over the root mean square of the right values.
    pub reference_error: f64,
    /// The candidate's.
    pub candidate_error: f64,
}

/// An output that takes no work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Degenerate {
    /// The output.
    pub output: String,
    /// What would pass: `an answer of zeros`.
    pub by: String,
}

/// Parameters and buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// Entries of the state dictionary, whose names, shapes and types are the same in both.
    pub entries: usize,
    /// Elements in all of them.
    pub elements: u64,
    /// Rounds in which they had other values than they were constructed with.
    pub randomised_rounds: u32,
}

/// Times of one call, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// Of what: `reference`, `candidate`, `torch.compile (max-autotune)`.
    pub what: String,
    /// The median of the batches.
    pub median: f64,
    /// Five in a hundred batches were at most so fast.
    pub p5: f64,
    /// Ninety-five were at most so slow.
    pub p95: f64,
    /// The lower end of the median's 95% interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Calls that were timed.
    pub calls: u64,
    /// How the time was taken, in words.
    pub basis: String,
}

/// How many times faster the candidate is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Speedup {
    /// Than what: `reference`, `torch.compile (best of 3 modes)`.
    pub over: String,
    /// The ratio of the median times: above 1 the candidate is faster.
    pub ratio: f64,
    /// The lower end of its 95% interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Of what times, and how the interval was made, in words.
    pub basis: String,
}

/// Device memory of a call, at most, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// The reference's.
    pub reference_bytes: u64,
    /// The candidate's.
    pub candidate_bytes: u64,
}

/// What one tool of compute-sanitizer found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sanitized {
    /// The tool: `memcheck`.
    pub tool: String,
    /// Errors it counted.
    pub errors: u64,
    /// The first of them in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<String>,
}

/// One stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Which: `import`, `build`, `compare`, `time`.
    pub stage: String,
    /// How long it took, in seconds of wall time.
    pub seconds: f64,
}

/// Versions of what ran it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Python's.
    pub python: String,
    /// Torch's.
    pub torch: String,
    /// The CUDA version that torch was built with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cuda: Option<String>,
    /// The newest CUDA version that the driver runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<String>,
    /// The device's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
}
