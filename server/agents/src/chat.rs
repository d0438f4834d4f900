//! Asks a model behind an OpenAI-compatible endpoint, and keeps at it: what passes is sent again, what an endpoint does not know is left
//! out, and what does not help is said with what to do.
//!
//! async-openai builds the requests and reads the events, into values of JSON (`byot`), for few servers keep to its types. The transport
//! beneath is ours (`transport`): its own logs what it can't read, can't be cancelled between two tries, and gives up on a keep-alive.

mod endpoint;
mod events;
mod key;
mod reply;
mod retry;
mod say;
mod transport;
mod trouble;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_openai::error::OpenAIError;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use endpoint::{Chosen, Endpoint, Limits};
pub use key::{KEY_VARIABLES, Key};
pub use reply::{Finish, Reply};

use crate::engine::EngineError;
use transport::{Ending, Transport, Wanted, lock};
use trouble::{Quirks, Trouble};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message of this role.
    pub fn new(role: &'static str, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

/// Why a question was not answered.
#[derive(Debug)]
pub enum Failure {
    /// It is longer than the model can read; what the endpoint says of it.
    TooLong(String),
    /// For good.
    Final(EngineError),
}

/// What became of a question.
#[derive(Debug)]
pub struct Asked {
    /// The answer; as far as it had come, where it failed.
    pub reply: Reply,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// How often it was sent again, and why.
    pub retries: Vec<String>,
    /// Bytes of each answer that broke off before it was sent again: they were paid for too.
    pub lost: Vec<usize>,
    /// Wall time, retries included.
    pub took: Duration,
}

/// A conversation partner.
pub struct Chat {
    endpoint: Endpoint,
    wire: endpoint::Wire,
    http: reqwest::Client,
    /// What this endpoint was found to be like.
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
struct Known {
    quirks: Quirks,
    model: Option<String>,
}

impl Chat {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// The key can't be sent, or there is no TLS on this machine.
    pub fn new(endpoint: Endpoint) -> Result<Self, EngineError> {
        let mut http = reqwest::Client::builder()
            .connect_timeout(endpoint.limits.connect)
            .user_agent(concat!("stitchcuda/", env!("CARGO_PKG_VERSION")))
            // A redirected question arrives without its body, or at someone who was not meant to have it.
            .redirect(reqwest::redirect::Policy::none());
        if endpoint.is_local() {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| {
            EngineError::Endpoint(format!("Requests to {} can't be made: {error}.", endpoint.address()))
        })?;
        let wire = endpoint.wire()?;
        let known = Known { model: endpoint.model.clone(), ..Known::default() };
        Ok(Self { endpoint, wire, http, known: Mutex::new(known) })
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The model that is asked, once it is known.
    pub fn model(&self) -> Option<String> {
        self.known().model
    }

    /// The text without the key, should it be in there.
    pub fn redact(&self, text: &str) -> String {
        self.endpoint.key().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    /// Asks, and reads the whole answer. `progress` is told the bytes that have come, of what is answered and thought.
    pub async fn ask(
        &self,
        messages: &[Message],
        progress: &(dyn Fn(usize) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Asked {
        let start = Instant::now();
        let mut reply = Reply::default();
        let (mut retries, mut lost) = (Vec::new(), Vec::new());
        let asking = self.ask_until_answered(messages, progress, &mut reply, &mut retries, &mut lost);
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Final(EngineError::Cancelled)),
            outcome = timeout(self.endpoint.limits.total, asking) => {
                outcome.unwrap_or_else(|_| Err(Failure::Final(self.took_too_long(&retries))))
            }
        };
        for text in [&mut reply.text, &mut reply.thinking, &mut reply.refusal] {
            *text = self.redact(text);
        }
        let retries = retries.iter().map(|note: &String| self.said(note)).collect();
        Asked { reply, failure: outcome.err(), retries, lost, took: start.elapsed() }
    }

    async fn ask_until_answered(
        &self,
        messages: &[Message],
        progress: &(dyn Fn(usize) + Send + Sync),
        reply: &mut Reply,
        retries: &mut Vec<String>,
        lost: &mut Vec<usize>,
    ) -> Result<(), Failure> {
        let limits = &self.endpoint.limits;
        let mut failed = 0;
        let model = self.resolved_model().await.map_err(Failure::Final)?;
        loop {
            let Err(trouble) = self.send(&model, messages, progress, reply).await else { return Ok(()) };
            let quirks = self.known().quirks;
            if let Some((quirks, what)) = trouble.quirk(quirks, self.endpoint.max_tokens.is_some()) {
                retries.push(format!("{trouble}; sent again without {what}"));
                self.with_known(|known| known.quirks = quirks);
            } else if trouble.is_too_long() {
                return Err(Failure::TooLong(self.said(&trouble.to_string())));
            } else if trouble.is_passing() && failed < limits.retries {
                let asked = match &trouble {
                    Trouble::Refused { asked_delay, .. } => *asked_delay,
                    _ => None,
                };
                let delay = asked.map_or_else(
                    || retry::backoff(limits, failed),
                    |asked| asked.min(limits.longest_asked_delay),
                );
                failed += 1;
                lost.extend(Some(reply.bytes()).filter(|bytes| *bytes > 0));
                retries.push(say::waited(&trouble, asked, delay));
                tokio::time::sleep(delay).await;
            } else {
                return Err(Failure::Final(self.gave_up(&trouble, failed, &model).await));
            }
        }
    }

    /// Sends a question once and reads the answer.
    async fn send(
        &self,
        model: &str,
        messages: &[Message],
        progress: &(dyn Fn(usize) + Send + Sync),
        reply: &mut Reply,
    ) -> Result<(), Trouble> {
        *reply = Reply::default();
        let ending = Arc::new(Mutex::new(Ending::default()));
        let client = self.client(Wanted::Events, &ending);
        let request = self.request(model, messages);
        let opened = client.chat().create_stream_byot::<_, Value>(request).await;
        let mut stream = opened.map_err(trouble_of)?;
        let (mut was_answer, mut told) = (false, None);
        loop {
            // What follows the end of the answer is not worth waiting for.
            let patience =
                if reply.finish.is_some() { self.endpoint.limits.after_end } else { Duration::MAX };
            let Ok(Some(event)) = timeout(patience, stream.next()).await else { break };
            match reply.take(&event.map_err(trouble_of)?) {
                Ok(is_answer) => was_answer |= is_answer,
                Err(error) => {
                    told = Some(error);
                    break;
                }
            }
            progress(reply.bytes());
        }
        let Ending { seen, trouble } = lock(&ending).clone();
        if let Some(told) = told {
            return Err(Trouble::Refused { status: told.status_inside(), told, asked_delay: None });
        }
        if seen.odd > 0 {
            reply
                .notes
                .push(format!("Events of the stream that are no JSON were passed over: {}.", seen.odd));
        }
        if reply.finish == Some(Finish::Failed) {
            let why =
                format!("the endpoint ended it with `{}`", reply.finish_word.as_deref().unwrap_or_default());
            return Err(Trouble::Broken { bytes: reply.bytes(), why });
        }
        if reply.finish.is_some() {
            return Ok(());
        }
        match (trouble, seen.other) {
            (Some(Trouble::Broken { why, .. }), _) => Err(Trouble::Broken { bytes: reply.bytes(), why }),
            (Some(trouble), _) => Err(trouble),
            (None, Some(beginning)) => Err(Trouble::Strange(beginning)),
            (None, None) if was_answer && (seen.is_done || seen.is_plain) => Ok(()),
            (None, None) if seen.events > 0 && !was_answer => {
                Err(Trouble::Strange("JSON without `choices`".to_owned()))
            }
            (None, None) => {
                let is_empty = seen.events == 0 && seen.odd == 0 && !seen.is_cut;
                let why = if is_empty { "it is empty" } else { "its end is missing" };
                Err(Trouble::Broken { bytes: reply.bytes(), why: why.to_owned() })
            }
        }
    }

    fn request(&self, model: &str, messages: &[Message]) -> Value {
        let quirks = self.known().quirks;
        let messages: Vec<_> = if quirks.no_system { without_system(messages) } else { messages.to_vec() };
        let messages: Vec<_> = messages
            .iter()
            .map(|message| json!({ "role": message.role, "content": message.content }))
            .collect();
        let mut request = json!({ "model": model, "messages": messages, "stream": !quirks.no_stream });
        if !quirks.no_stream_options {
            request["stream_options"] = json!({ "include_usage": true });
        }
        if let Some(temperature) = self.endpoint.temperature.filter(|_| !quirks.no_temperature) {
            request["temperature"] = json!(temperature);
        }
        if let Some(most) = self.endpoint.max_tokens.filter(|_| !quirks.no_max_tokens) {
            let name = if quirks.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
            request[name] = json!(most);
        }
        request
    }

    fn client(&self, wanted: Wanted, ending: &Arc<Mutex<Ending>>) -> async_openai::Client<endpoint::Wire> {
        let transport = Transport {
            http: self.http.clone(),
            limits: self.endpoint.limits.clone(),
            wanted,
            ending: ending.clone(),
        };
        async_openai::Client::build(self.http.clone(), self.wire.clone()).with_http_service(transport)
    }

    /// The names of the endpoint's models.
    async fn models(&self) -> Result<Vec<String>, Trouble> {
        let client = self.client(Wanted::Document, &Arc::default());
        let models = client.models();
        let asking = models.list_byot::<Value>();
        // It is asked for to help; it must not keep anyone waiting.
        let limit = self.endpoint.limits.connect;
        let list = timeout(limit, asking).await.map_err(|_| Trouble::Idle(limit))?.map_err(trouble_of)?;
        let models = list.get("data").or_else(|| list.get("models")).unwrap_or(&list).as_array();
        let name = |model: &Value| {
            let name = model.get("id").or_else(|| model.get("name")).unwrap_or(model);
            name.as_str().map(str::to_owned)
        };
        Ok(models.into_iter().flatten().filter_map(name).collect())
    }

    /// The model that was configured, or the only one there is.
    async fn resolved_model(&self) -> Result<String, EngineError> {
        if let Some(model) = self.known().model {
            return Ok(model);
        }
        let models = self.models().await;
        if let Ok([one]) = models.as_deref() {
            self.with_known(|known| known.model = Some(one.clone()));
            return Ok(one.clone());
        }
        Err(self.which_model(models))
    }

    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with_known(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Puts what the system says before what the user says first.
fn without_system(messages: &[Message]) -> Vec<Message> {
    let (system, mut rest): (Vec<_>, Vec<_>) =
        messages.iter().cloned().partition(|message| message.role == "system");
    if let Some(first) = rest.first_mut() {
        let system: String = system.into_iter().map(|message| message.content + "\n\n").collect();
        first.content.insert_str(0, &system);
    }
    rest
}

fn trouble_of(error: OpenAIError) -> Trouble {
    match error {
        OpenAIError::Boxed(error) => match error.downcast::<Trouble>() {
            Ok(trouble) => *trouble,
            Err(other) => Trouble::Connect(other.to_string()),
        },
        // Nothing else comes through our transport but events, which are JSON; its text could hold the answer.
        OpenAIError::JSONDeserialize(error, _) => Trouble::Strange(error.to_string()),
        other => Trouble::Connect(other.to_string()),
    }
}
