//! Which engine plans and codes: the one that is configured, or that a run was begun with.

use std::collections::BTreeSet;
use std::path::Path;

use stitch_session::config::{Config, EngineChoice};
use tokio_util::sync::CancellationToken;

use crate::builtin::Builtin;
use crate::chat::{Chat, Endpoint, Key};
use crate::engine::{Brief, Engine, EngineError, Feedback, Proposal, Watch};
use crate::llm::Llm;
use crate::run::Budget;
use crate::{Plan, Task};

/// One of the engines.
pub enum Engines {
    /// Deterministic rewrites.
    Builtin(Builtin),
    /// A model behind an endpoint.
    Llm(Box<Llm>),
}

impl Engines {
    /// The engine under `config`. `key` is one that the caller has, from an editor's secret store. `model` overrules the configured
    /// model, and `choice` the configured engine.
    ///
    /// # Errors
    /// A model is asked for, and no endpoint is known, or it can't be used.
    pub fn choose(
        config: &Config,
        choice: Option<EngineChoice>,
        model: Option<String>,
        key: Option<Key>,
    ) -> Result<Self, EngineError> {
        let mut config = config.clone();
        config.optimize.engine = choice.unwrap_or(config.optimize.engine);
        config.model.name = model.or(config.model.name);
        let variable = |name: &str| std::env::var(name).ok();
        Ok(match Endpoint::choose(&config, variable, key)?.endpoint {
            Some(endpoint) => Self::Llm(Box::new(Llm::new(Chat::new(endpoint)?, None)?)),
            None => Self::Builtin(Builtin),
        })
    }

    /// Its name: `builtin` or `llm`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Builtin(_) => "builtin",
            Self::Llm(_) => "llm",
        }
    }

    /// The model, as far as it is known.
    pub fn model(&self) -> Option<String> {
        match self {
            Self::Builtin(_) => None,
            Self::Llm(llm) => llm.chat().model(),
        }
    }

    /// What may be spent under `config`.
    pub fn budget(&self, config: &Config) -> Budget {
        match self {
            // It is cheap, and never does better at the second try; the settings are about models.
            Self::Builtin(_) => Budget::BUILTIN,
            Self::Llm(_) => Budget {
                attempts: config.optimize.attempts,
                seconds: u64::from(config.optimize.minutes) * 60,
                tokens: Some(config.optimize.tokens),
                ..Budget::MODEL
            },
        }
    }

    /// Whether it can do anything with PyTorch code.
    ///
    /// # Errors
    /// It can't; what to do, in sentences.
    pub fn check_python(&self) -> Result<(), String> {
        match self {
            Self::Llm(_) => Ok(()),
            Self::Builtin(_) => Err("The engine without a model has no rewrites for PyTorch code. Name an endpoint with `model.endpoint` (or \
                STITCHCUDA_MODEL_ENDPOINT), or put a key into STITCHCUDA_API_KEY."
                .to_owned()),
        }
    }

    /// What a person should know before the first thing is sent to the endpoint: what goes where. `None` where nothing is sent, or where it
    /// was said before, which `state` remembers.
    pub fn first_notice(&self, state: &Path) -> Option<String> {
        let Self::Llm(llm) = self else { return None };
        let endpoint = llm.chat().endpoint();
        let address = endpoint.address();
        let path = state.join("endpoints.json");
        let known = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut known: BTreeSet<String> = known.unwrap_or_default();
        if !known.insert(address.clone()) {
            return None;
        }
        // Where it can't be remembered, it is said again.
        let _ = stitch_session::folders::create_private(state);
        if let Ok(bytes) = serde_json::to_vec(&known) {
            let _ = std::fs::write(&path, bytes);
        }
        let key = endpoint.key().map(|key| format!(" with the key from {}", key.from())).unwrap_or_default();
        Some(format!(
            "The text of the target's file, what was found and measured of it, and the candidates are sent to {address}{key}. The prompts and answers are kept in the run's folder. This is said once for each endpoint."
        ))
    }
}

impl Engine for Engines {
    async fn plan(
        &mut self,
        brief: &Brief,
        watch: &dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Plan, EngineError> {
        match self {
            Self::Builtin(engine) => engine.plan(brief, watch, cancel).await,
            Self::Llm(engine) => engine.plan(brief, watch, cancel).await,
        }
    }

    async fn replan(
        &mut self,
        brief: &Brief,
        plan: &Plan,
        reason: &str,
        watch: &dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Plan, EngineError> {
        match self {
            Self::Builtin(engine) => engine.replan(brief, plan, reason, watch, cancel).await,
            Self::Llm(engine) => engine.replan(brief, plan, reason, watch, cancel).await,
        }
    }

    async fn code(
        &mut self,
        brief: &Brief,
        task: &Task,
        feedback: Option<&Feedback>,
        watch: &dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Proposal, EngineError> {
        match self {
            Self::Builtin(engine) => engine.code(brief, task, feedback, watch, cancel).await,
            Self::Llm(engine) => engine.code(brief, task, feedback, watch, cancel).await,
        }
    }
}
