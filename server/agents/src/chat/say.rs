//! What a person is told when asking a model does not work: what was tried, what happened, what to do.

use std::time::Duration;

use super::trouble::Trouble;
use super::{Chat, Key};
use crate::engine::EngineError;

/// So many of an endpoint's models are listed.
const MOST_MODELS: usize = 8;

/// A note about a wait before a question is sent again.
pub(super) fn waited(trouble: &Trouble, asked: Option<Duration>, delay: Duration) -> String {
    let seconds = delay.as_secs_f64();
    match asked {
        Some(asked) if asked > delay => {
            format!("{trouble}; asked for {:.0} s, sent again after {seconds:.1} s", asked.as_secs_f64())
        }
        Some(_) => format!("{trouble}; sent again after {seconds:.1} s, as asked"),
        None => format!("{trouble}; sent again after {seconds:.1} s"),
    }
}

impl Chat {
    /// What an endpoint said, without the key that it may have repeated, and not longer than a person reads.
    pub(super) fn said(&self, text: &str) -> String {
        const LONGEST: usize = 600;
        let text = self.endpoint.key().map_or_else(|| text.to_owned(), |key| key.redact_parts(text));
        let text = text.trim();
        match text.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text.to_owned(),
        }
    }

    pub(super) fn took_too_long(&self, retries: &[String]) -> EngineError {
        let last = retries
            .last()
            .map(|note| format!(" It was tried {} times; last: {}.", retries.len() + 1, self.said(note)));
        EngineError::Endpoint(format!(
            "{} did not answer within {} s.{} Raise `model.timeLimitSeconds`, or choose a faster model.",
            self.endpoint.address(),
            self.endpoint.limits.total.as_secs_f64(),
            last.unwrap_or_default()
        ))
    }

    /// What to say of trouble that did not pass in `failed` + 1 tries.
    pub(super) async fn gave_up(&self, trouble: &Trouble, failed: u32, model: &str) -> EngineError {
        let address = self.endpoint.address();
        let said = self.said(&trouble.to_string());
        let tries = if failed == 0 { String::new() } else { format!(" in {} tries", failed + 1) };
        let status = match trouble {
            Trouble::Refused { status, .. } => *status,
            _ => 0,
        };
        let advice = match trouble {
            Trouble::Connect(_) if self.endpoint.is_local() => {
                "Start the server, or set `model.endpoint` to where it listens.".to_owned()
            }
            Trouble::Connect(_) => {
                "Check the address in `model.endpoint`, the network, and the proxy (`HTTPS_PROXY`, `NO_PROXY`).".to_owned()
            }
            Trouble::Broken { .. } | Trouble::Idle(_) => {
                "Check the server and what is between it and this machine; try again later.".to_owned()
            }
            Trouble::Endless(_) => "Set `model.maxTokens`, or choose another model.".to_owned(),
            Trouble::Strange(_) => self.advice_for_path(
                "Set `model.endpoint` to the base address of an OpenAI-compatible endpoint",
            ),
            Trouble::Elsewhere(_) => "Set `model.endpoint` to where it really is.".to_owned(),
            Trouble::Refused { .. } if trouble.is_about_money() => {
                "Its limit is used up: raise it with the provider, or choose another endpoint.".to_owned()
            }
            Trouble::Refused { .. } => match status {
                401 => return self.wrong_key(&said),
                403 => format!("The key may not use the model `{model}`: choose another with `model.name`, or ask for access."),
                404 | 405 => return self.not_there(&said, model).await,
                429 => "Wait, or choose a model with a higher limit.".to_owned(),
                400 | 422 => "The server does not take what StitchCUDA sends; choose another server or model.".to_owned(),
                _ => "The server fails; look into its log, or try again later.".to_owned(),
            },
        };
        let happened = match trouble {
            Trouble::Refused { .. } => format!("{address} answered{tries} with {said}"),
            _ => format!("{address} could not be asked{tries}: {said}"),
        };
        EngineError::Endpoint(format!("{}. {advice}", happened.trim_end_matches('.')))
    }

    fn wrong_key(&self, said: &str) -> EngineError {
        let address = self.endpoint.address();
        let said = said.trim_end_matches('.');
        EngineError::Missing(match self.endpoint.key().map(Key::from) {
            Some(from) => format!(
                "{address} does not accept the key in {from} ({said}). Put a valid one there, or set `model.endpoint` to the \
                 endpoint that it is for."
            ),
            None => format!(
                "{address} asks for a key ({said}). Put one into the variable `STITCHCUDA_API_KEY` (or `OPENAI_API_KEY`), or into \
                 the editor's secret store; never into a file."
            ),
        })
    }

    /// A 404 is about the model if the endpoint has models, else about the address.
    async fn not_there(&self, said: &str, model: &str) -> EngineError {
        let address = self.endpoint.address();
        let said = said.trim_end_matches('.');
        match self.models().await {
            Ok(models) if !models.iter().any(|one| one == model) && !models.is_empty() => {
                EngineError::Missing(format!(
                    "{address} has no model `{model}` ({said}). It has {}. Set `model.name` to one of them.",
                    listed(&models)
                ))
            }
            Ok(_) => EngineError::Endpoint(format!(
                "{address} has no chat completions ({said}). {}.",
                self.advice_for_path(
                    "Set `model.endpoint` to the base address of an OpenAI-compatible endpoint"
                )
                .trim_end_matches('.')
            )),
            Err(_) => EngineError::Missing(format!(
                "There is no OpenAI-compatible endpoint at {address} ({said}). {}",
                self.advice_for_path("Set `model.endpoint` to its base address")
            )),
        }
    }

    fn advice_for_path(&self, advice: &str) -> String {
        let address = self.endpoint.address();
        if address
            .split('/')
            .any(|part| part.starts_with('v') && part[1..].starts_with(|one: char| one.is_ascii_digit()))
        {
            format!("{advice}.")
        } else {
            format!("{advice}; most end with a version: {address}/v1.")
        }
    }

    pub(super) fn which_model(&self, models: Result<Vec<String>, Trouble>) -> EngineError {
        let address = self.endpoint.address();
        match models {
            Ok(models) if models.is_empty() => EngineError::Missing(format!(
                "`model.name` is not set, and {address} lists no models. Set it to the model that is to be asked."
            )),
            Ok(models) => EngineError::Missing(format!(
                "`model.name` is not set, and {address} has {} models: {}. Set it to one of them.",
                models.len(),
                listed(&models)
            )),
            Err(Trouble::Refused { status: 401, told, .. }) => {
                self.wrong_key(&self.said(&format!("401: {}", told.message)))
            }
            Err(trouble) => EngineError::Missing(format!(
                "`model.name` is not set, and {address} does not list its models ({}). Set it, and check `model.endpoint`; {}",
                self.said(&trouble.to_string()).trim_end_matches('.'),
                if self.endpoint.is_local() { "is the server running?" } else { "is the address right?" }
            )),
        }
    }
}

fn listed(models: &[String]) -> String {
    let mut names: Vec<_> = models.iter().take(MOST_MODELS).map(|name| format!("`{name}`")).collect();
    if models.len() > MOST_MODELS {
        names.push("…".to_owned());
    }
    names.join(", ")
}
