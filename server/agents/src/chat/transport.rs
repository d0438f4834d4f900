//! Sends one request and hands its answer back in a form that async-openai can read: cleaned events, or a document that is JSON.
//! Whatever else comes is [`Trouble`].

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures::{Stream, StreamExt};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Body, Response};
use serde_json::Value;
use tokio::time::timeout;

use super::Limits;
use super::events::{Cleaner, Seen, beginning};
use super::reply::Told;
use super::retry::asked_delay;
use super::trouble::Trouble;

/// Errors and lists of models have no more bytes that matter.
const LARGEST_DOCUMENT: usize = 1 << 20;

/// How an answer ended, as far as its events don't tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    pub(super) seen: Seen,
    pub(super) trouble: Option<Trouble>,
}

/// What is wanted of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Events,
    Document,
}

/// Sends one request. A part of async-openai's client.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) http: reqwest::Client,
    pub(super) limits: Limits,
    pub(super) wanted: Wanted,
    pub(super) ending: Arc<Mutex<Ending>>,
}

pub(super) fn lock(ending: &Mutex<Ending>) -> MutexGuard<'_, Ending> {
    ending.lock().unwrap_or_else(PoisonError::into_inner)
}

impl tower::Service<HttpRequestFactory> for Transport {
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        let transport = self.clone();
        Box::pin(async move {
            let request = request.build().await?;
            transport.send(request).await.map_err(|trouble| OpenAIError::Boxed(Box::new(trouble)))
        })
    }
}

impl Transport {
    async fn send(self, request: reqwest::Request) -> Result<Response, Trouble> {
        let response =
            self.http.execute(request).await.map_err(|error| Trouble::Connect(root_cause(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            return Err(Trouble::Elsewhere(
                place.unwrap_or("another place, without saying which").to_owned(),
            ));
        }
        if !status.is_success() {
            let asked_delay = asked_delay(response.headers());
            let told = told(&self.document(response).await.unwrap_or_default());
            return Err(Trouble::Refused { status: status.as_u16(), told, asked_delay });
        }
        let (kind, body) = match self.wanted {
            Wanted::Events => ("text/event-stream", Body::wrap_stream(self.events(response))),
            Wanted::Document => {
                let bytes = self.document(response).await?;
                if serde_json::from_slice::<Value>(&bytes).is_err() {
                    return Err(Trouble::Strange(beginning(&bytes)));
                }
                ("application/json", Body::from(bytes))
            }
        };
        let mut clean = http::Response::new(body);
        clean.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
        Ok(Response::from(clean))
    }

    /// The body of an answer, up to [`LARGEST_DOCUMENT`].
    async fn document(&self, response: Response) -> Result<Vec<u8>, Trouble> {
        let mut stream = response.bytes_stream();
        let mut bytes = Vec::new();
        while bytes.len() < LARGEST_DOCUMENT {
            match timeout(self.limits.idle, stream.next()).await {
                Err(_) => return Err(Trouble::Idle(self.limits.idle)),
                Ok(None) => break,
                Ok(Some(Ok(piece))) => bytes.extend_from_slice(&piece),
                Ok(Some(Err(error))) => {
                    return Err(Trouble::Broken { bytes: bytes.len(), why: root_cause(&error) });
                }
            }
        }
        Ok(bytes)
    }

    /// The clean events of an answer. Trouble ends them and is left in `ending`: async-openai would make a text of it.
    fn events(
        self,
        response: Response,
    ) -> impl Stream<Item = Result<Vec<u8>, std::convert::Infallible>> + Send {
        struct Reading<S> {
            stream: S,
            cleaner: Cleaner,
            bytes: usize,
            is_over: bool,
            transport: Transport,
        }
        let reading = Reading {
            stream: response.bytes_stream(),
            cleaner: Cleaner::default(),
            bytes: 0,
            is_over: false,
            transport: self,
        };
        futures::stream::unfold(reading, |mut reading| async move {
            loop {
                if reading.is_over {
                    return None;
                }
                let limits = &reading.transport.limits;
                let (mut clean, trouble) = match timeout(limits.idle, reading.stream.next()).await {
                    Err(_) => (Vec::new(), Some(Trouble::Idle(limits.idle))),
                    Ok(None) => {
                        reading.is_over = true;
                        (Vec::new(), None)
                    }
                    Ok(Some(Err(error))) => {
                        (Vec::new(), Some(Trouble::Broken { bytes: 0, why: root_cause(&error) }))
                    }
                    Ok(Some(Ok(piece))) => {
                        reading.bytes += piece.len();
                        let is_endless = reading.bytes > limits.bytes;
                        (reading.cleaner.push(&piece), is_endless.then_some(Trouble::Endless(limits.bytes)))
                    }
                };
                if trouble.is_some() || reading.is_over {
                    reading.is_over = true;
                    clean.extend(reading.cleaner.finish());
                }
                {
                    let mut ending = lock(&reading.transport.ending);
                    ending.seen = reading.cleaner.seen.clone();
                    ending.trouble = trouble;
                }
                if !clean.is_empty() {
                    return Some((Ok(clean), reading));
                }
            }
        })
    }
}

/// What the body of a refusal says.
fn told(bytes: &[u8]) -> Told {
    let read = serde_json::from_slice::<Value>(bytes).ok();
    let read = read.as_ref().and_then(Told::of);
    read.unwrap_or_else(|| Told { message: beginning(bytes), ..Told::default() })
}

/// The innermost reason of an error, which is the one that a person can do something about. Addresses are left out, for they can hold
/// what is secret.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_timeout() => "it took too long".to_owned(),
        Some(_) => "the request could not be sent".to_owned(),
        None => cause.to_string(),
    }
}
