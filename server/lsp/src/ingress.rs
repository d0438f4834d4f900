//! Where messages enter, in the order of the wire.
//!
//! Handlers run beside each other, so whatever must be in order happens here, inside `call`, which the transport makes for one
//! message after the other: texts are changed, and each request is given the version of its document that the client meant
//! (`pinned`). A handler that is polled after five further edits still sees its own version.
//!
//! The phases of LSP 3.17 are kept here too, since the router knows them only for methods that it knows.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::Service;
use tower_lsp::jsonrpc::{Error, ErrorCode, Request, Response};

use crate::documents::Document;
use crate::session::Session;
use crate::{initialize, uri};

/// The requests that have a handler.
const REQUESTS: &[&str] = &[
    "initialize",
    "shutdown",
    "textDocument/hover",
    "textDocument/documentSymbol",
    "textDocument/codeLens",
    "textDocument/inlayHint",
    "inlayHint/resolve",
    "textDocument/codeAction",
    "workspace/executeCommand",
    "stitchcuda/jobs",
    "stitchcuda/cancel",
    "stitchcuda/verdict",
    "stitchcuda/runs",
    "stitchcuda/run",
    "stitchcuda/candidate",
    "stitchcuda/accept",
    "stitchcuda/reject",
    "stitchcuda/status",
    "stitchcuda/pause",
    "stitchcuda/heat",
    "stitchcuda/doctor",
];

/// The notifications that do something. With an id they are refused as what they are not.
const NOTIFICATIONS: &[&str] = &[
    "initialized",
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/didSave",
    "workspace/didChangeConfiguration",
    "workspace/didChangeWorkspaceFolders",
    "workspace/didChangeWatchedFiles",
    "window/workDoneProgress/cancel",
];

tokio::task_local! {
    static PINNED: Option<Arc<Document>>;
}

/// The version of the document that the request being handled is about, if that is open.
pub fn pinned() -> Option<Arc<Document>> {
    PINNED.try_with(Clone::clone).ok().flatten()
}

/// How far the connection is.
#[derive(Debug, Default)]
pub struct Phase(AtomicU8);

const RUNNING: u8 = 1;
const SHUT_DOWN: u8 = 2;

impl Phase {
    /// Whether `initialize` was answered and `shutdown` did not come yet.
    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::SeqCst) == RUNNING
    }

    /// Whether `shutdown` came.
    pub fn is_shut_down(&self) -> bool {
        self.0.load(Ordering::SeqCst) == SHUT_DOWN
    }
}

/// A service in front of tower-lsp's.
#[derive(Debug)]
pub struct Ingress<S> {
    inner: S,
    session: Arc<Session>,
}

type Answer<E> = Pin<Box<dyn Future<Output = Result<Option<Response>, E>> + Send>>;

impl<S> Ingress<S> {
    /// In front of `inner`.
    pub fn new(inner: S, session: Arc<Session>) -> Self {
        Self { inner, session }
    }

    /// What the phase makes of a request, if it does not let it pass.
    fn refuse(&self, method: &str) -> Option<Error> {
        let phase = &self.session.phase;
        if phase.is_shut_down() {
            return Some(Error { message: "The server is shut down.".into(), ..Error::invalid_request() });
        }
        if !phase.is_running() && method != "initialize" {
            let code = ErrorCode::ServerError(-32002);
            return Some(Error { code, message: "`initialize` must come first.".into(), data: None });
        }
        // The router knows every method of the protocol, and looks at the parameters before it says that there is no
        // handler; requests that start with `$/` it drops, and the client would wait.
        if NOTIFICATIONS.contains(&method) {
            let message = format!("`{method}` is a notification and takes no id.").into();
            return Some(Error { message, ..Error::invalid_request() });
        }
        let is_known = REQUESTS.contains(&method) || cfg!(test) && method.starts_with("test/");
        (!is_known).then(|| Error {
            message: format!("`{method}` is not known.").into(),
            ..Error::method_not_found()
        })
    }

    /// Changes to texts; `false` for any other notification.
    fn apply(&self, method: &str, params: Option<&mut Value>) -> bool {
        let session = &self.session;
        match method {
            "textDocument/didOpen" => session
                .apply(read(method, params), |documents, opened: crate::from_proto::Opened| {
                    documents.opened(opened.text_document)
                }),
            "textDocument/didChange" => {
                session.apply(read(method, params), |documents, changed| documents.changed(changed))
            }
            "textDocument/didClose" => session
                .apply(read(method, params), |documents, named: crate::from_proto::Named| {
                    documents.closed(&named.text_document.uri)
                }),
            _ => return false,
        }
        true
    }
}

fn read<T: DeserializeOwned>(method: &str, params: Option<&mut Value>) -> Result<T, String> {
    let params = params.map(Value::take).unwrap_or_default();
    serde_json::from_value(params)
        .map_err(|error| format!("The parameters of `{method}` can't be read: {error}."))
}

/// The URI that a message is about: its document's, or that of what is to be resolved.
fn subject(params: &mut Value) -> Option<&mut Value> {
    let holder = if params.get("textDocument").is_some() { "textDocument" } else { "data" };
    params.get_mut(holder)?.get_mut("uri").filter(|uri| uri.is_string())
}

impl<S> Service<Request> for Ingress<S>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = Answer<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (method, id, mut params) = request.into_parts();
        if let Some(id) = &id {
            if let Some(error) = self.refuse(&method) {
                return Box::pin(ready(Ok(Some(Response::from_error(id.clone(), error)))));
            }
        } else if !self.session.phase.is_running() || self.apply(&method, params.as_mut()) {
            return Box::pin(ready(Ok(None)));
        }
        let mut document = None;
        if let Some(uri) = params.as_mut().and_then(subject)
            && let Some(text) = uri.as_str()
        {
            document = self.session.document(text);
            if text.parse::<tower_lsp::ls_types::Uri>().is_err() {
                // The types would refuse it; what it means is already known.
                *uri = uri::strict(text).into();
            }
        }
        if method == "initialize"
            && !self.session.phase.is_running()
            && let Some(features) = params.as_mut().and_then(initialize::simplify)
        {
            self.session.set_features(features);
        }
        if method.starts_with("stitchcuda/") && params.is_none() {
            // Clients leave out what is empty.
            params = Some(Value::Null);
        }
        if method == "shutdown" {
            // It takes none; some clients send an empty object, and an editor must be able to end its server.
            params = None;
        }
        let (is_initialize, is_shutdown) = (method == "initialize", method == "shutdown");
        let session = self.session.clone();
        let mut request = Request::build(method);
        if let Some(params) = params {
            request = request.params(params);
        }
        if let Some(id) = id {
            request = request.id(id);
        }
        let answer = PINNED.scope(document, self.inner.call(request.finish()));
        Box::pin(async move {
            let answer = answer.await?;
            let is_ok = answer.as_ref().is_some_and(Response::is_ok);
            if is_initialize && is_ok {
                session.phase.0.store(RUNNING, Ordering::SeqCst);
            } else if is_shutdown && is_ok {
                session.phase.0.store(SHUT_DOWN, Ordering::SeqCst);
            }
            Ok(answer)
        })
    }
}
