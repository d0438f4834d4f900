//! What can be configured of an optimisation: what plans and codes, how much it may take, and the model that is asked.
//!
//! There is no setting for a key: settings are files, and get shared. A key comes from the environment (`STITCHCUDA_API_KEY`, then
//! `OPENAI_API_KEY`) or from the editor's secret store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What plans and codes, and how much an optimisation may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Optimize {
    /// What plans and writes code.
    pub engine: EngineChoice,
    /// How many candidates a run may try.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts: u32,
    /// How many minutes a run may take.
    #[schemars(range(min = 1, max = 10_080))]
    pub minutes: u32,
    /// How many tokens a run may spend on a model, sent and received together.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub tokens: u64,
}

impl Default for Optimize {
    fn default() -> Self {
        Self { engine: EngineChoice::default(), attempts: 12, minutes: 20, tokens: 400_000 }
    }
}

/// What plans and codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The model, where an endpoint is configured, or a key and `model.name`; else the built-in rewrites.
    #[default]
    Auto,
    /// Deterministic rewrites. Nothing leaves this machine.
    Builtin,
    /// A model behind an OpenAI-compatible endpoint. It is sent the file, what was found and what was measured.
    Llm,
}

/// The model that plans and codes, behind an endpoint that speaks OpenAI's chat completions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Model {
    /// The base address of the endpoint, with its version: `http://127.0.0.1:8000/v1`. When unset, `OPENAI_BASE_URL`; without that,
    /// OpenAI's own, if there is a key in `STITCHCUDA_API_KEY` or `OPENAI_API_KEY`.
    #[schemars(extend("x-restricted" = true))]
    pub endpoint: Option<String>,
    /// The model, as the endpoint calls it. When unset, the only one that the endpoint has.
    pub name: Option<String>,
    /// How much chance there is in an answer. When unset, the endpoint decides.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// How many tokens one answer may have, thinking included. When unset, the endpoint decides.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub max_tokens: Option<u32>,
    /// How many seconds one question may take, retries and thinking included.
    #[schemars(range(min = 1, max = 7200))]
    pub time_limit_seconds: u32,
}

impl Default for Model {
    fn default() -> Self {
        Self { endpoint: None, name: None, temperature: None, max_tokens: None, time_limit_seconds: 600 }
    }
}
