//! Moves messages between the client and the service: reads, calls, answers.
//!
//! tower-lsp brings the service, its types and its client handle; its own serve loop is not used. Measured on 0.23.0, that loop
//! stops reading once a hundred messages wait, never ends while a handler is stuck, dies with a panic, and joins reading and
//! writing in one task. Here reading and each handler are tasks of their own, and writing is a thread:
//!
//! - Messages are handed on in wire order, and the part of a call that must be in order runs right there (see `ingress`).
//! - Reading never waits for handlers or for the client to read answers (see `outbox`).
//! - The end (exit, end of input, a closed output) ends the loop, whatever handlers do.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;
use tower_lsp::ClientSocket;
use tower_lsp::jsonrpc::{Error, Request, Response};

use crate::frames::FrameReader;
use crate::guard;
use crate::message::{self, Message, RawId};
use crate::outbox::{Outbox, Writer};

/// How many handlers run at once. Each is short, or waits for an analysis.
const CONCURRENT_HANDLERS: usize = 64;

/// Requests that wait may hold this many bytes before reading pauses; ten thousand ordinary ones have 3 MB.
const LONGEST_QUEUE: usize = 128 << 20;

/// How long the answers of running handlers are waited for at the end, and then for the client to read them.
const LAST_ANSWERS: Duration = Duration::from_millis(700);

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The `exit` notification.
    Exit,
    /// Nothing more will come.
    NoMoreInput,
    /// The client no longer reads, or we were told to stop.
    Gone,
}

/// Handles messages until the end. `gone` ends it from outside, and is cancelled when the client no longer reads.
///
/// # Errors
/// The system gives no more threads.
pub async fn run<S>(
    input: impl AsyncRead + Unpin,
    output: impl Write + Send + 'static,
    (outbox, writer): (Outbox, Writer),
    service: S,
    socket: ClientSocket,
    gone: &CancellationToken,
) -> io::Result<End>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
{
    let closed = gone.clone();
    let write = move || {
        if let Err(error) = writer.run(output) {
            tracing::warn!("the client no longer reads: {error}");
            closed.cancel();
        }
    };
    std::thread::Builder::new().name("writer".into()).spawn(write)?;
    let (ours, answers) = socket.split();
    let sending = tokio::spawn(send_ours(ours, outbox.clone()));
    let mut connection = Connection::new(service, answers, outbox.clone());
    let end = tokio::select! {
        biased;
        () = gone.cancelled() => End::Gone,
        end = connection.read(input) => end,
    };
    if end != End::Gone {
        connection.finish().await;
    }
    sending.abort();
    outbox.end();
    Ok(end)
}

/// Sends our own requests and notifications.
async fn send_ours(mut ours: impl futures::Stream<Item = Request> + Unpin, outbox: Outbox) {
    loop {
        outbox.room_to_start().await;
        let Some(mut request) = ours.next().await else { return };
        if request.params().is_some_and(Value::is_null) {
            // The library writes `null` for none; JSON-RPC knows only objects and lists.
            let (method, id, _) = request.into_parts();
            let bare = Request::build(method);
            request = match id {
                Some(id) => bare.id(id).finish(),
                None => bare.finish(),
            };
        }
        if let Ok(body) = serde_json::to_string(&request) {
            outbox.send(&body);
        }
    }
}

struct Connection<S, R> {
    service: S,
    answers: R,
    outbox: Outbox,
    handlers: Handlers,
    next_id: i64,
}

/// What handlers share.
#[derive(Clone)]
struct Handlers {
    running: TaskTracker,
    permits: Arc<Semaphore>,
    cancel: Arc<Mutex<HashMap<RawId, CancellationToken>>>,
    queued: Arc<AtomicUsize>,
    taken: Arc<Notify>,
}

impl<S, R> Connection<S, R>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
    R: futures::Sink<Response> + Unpin,
{
    fn new(service: S, answers: R, outbox: Outbox) -> Self {
        let handlers = Handlers {
            running: TaskTracker::new(),
            permits: Arc::new(Semaphore::new(CONCURRENT_HANDLERS)),
            cancel: Arc::default(),
            queued: Arc::default(),
            taken: Arc::default(),
        };
        Self { service, answers, outbox, handlers, next_id: 0 }
    }

    async fn read(&mut self, mut input: impl AsyncRead + Unpin) -> End {
        let mut frames = FrameReader::default();
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = match input.read(&mut bytes).await {
                Ok(0) => return End::NoMoreInput,
                Ok(count) => count,
                Err(error) => {
                    tracing::warn!("the input can't be read any more: {error}");
                    return End::NoMoreInput;
                }
            };
            frames.push(&bytes[..count]);
            while let Some(frame) = frames.next_frame() {
                self.room().await;
                match frame {
                    Ok(body) => {
                        if self.take(&body, &mut frames).await {
                            return End::Exit;
                        }
                    }
                    Err(error) => {
                        tracing::warn!("a message could not be read: {error}");
                        let error = Error { message: error.to_string().into(), ..Error::parse_error() };
                        self.outbox.send(&message::response(&RawId::null(), &Err(error)));
                    }
                }
            }
        }
    }

    /// Waits while too much waits already.
    async fn room(&self) {
        self.outbox.room_to_read().await;
        loop {
            let taken = self.handlers.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self.handlers.queued.load(Ordering::SeqCst) < LONGEST_QUEUE {
                return;
            }
            taken.await;
        }
    }

    /// Handles one body; `true` for `exit`.
    async fn take(&mut self, body: &[u8], frames: &mut FrameReader) -> bool {
        match message::read(body) {
            Message::Request { id, method, params } => self.request(id, method, params, body.len()).await,
            Message::Notification { method, params } => return self.notification(method, params).await,
            Message::Response { id, outcome } => {
                // Fails only after `exit`.
                let _ = self.answers.send(Response::from_parts(id.into(), outcome)).await;
            }
            Message::Invalid { id, error, unreadable } => {
                tracing::warn!("a message was refused: {error}");
                self.outbox.send(&message::response(&id, &Err(error)));
                if unreadable {
                    frames.reject(body);
                }
            }
            Message::Ignored(reason) => tracing::warn!("a message was ignored: {reason}"),
        }
        false
    }

    async fn request(&mut self, id: RawId, method: String, params: Option<Value>, size: usize) {
        // The service sees ids of ours: the client's may be fractions, too large, or used twice.
        self.next_id += 1;
        let request = build(method.clone(), params).id(self.next_id).finish();
        let answer = match guard::catch(|| self.service.call(request)) {
            Ok(answer) => answer,
            Err(reason) => {
                let error = guard::internal(format!("`{method}` panicked: {reason}."));
                return self.outbox.send(&message::response(&id, &Err(error)));
            }
        };
        // What comes after these two depends on them.
        let is_turning_point = matches!(method.as_str(), "initialize" | "shutdown");
        let run = self.handlers.run(id, method, answer, self.outbox.clone(), size);
        if is_turning_point {
            run.await;
        } else {
            self.handlers.running.spawn(run);
        }
    }

    async fn notification(&mut self, method: String, params: Option<Value>) -> bool {
        if method == "$/cancelRequest" {
            let id =
                RawId::of_value(params.as_ref().and_then(|params| params.get("id")).unwrap_or(&Value::Null));
            if let Some(cancel) = lock(&self.handlers.cancel).get(&id) {
                cancel.cancel();
            }
            return false;
        }
        let exit = method == "exit";
        match guard::catch(|| self.service.call(build(method.clone(), params).finish())) {
            Ok(call) => {
                let mut run = Box::pin(async move { guard::handler(&method, call).await.map(drop) });
                // The first steps run here, in wire order; what waits for something goes on beside.
                if run.as_mut().now_or_never().is_none() {
                    self.handlers.running.spawn(run);
                }
            }
            Err(reason) => tracing::error!("`{method}` panicked: {reason}"),
        }
        exit
    }

    /// Waits a bounded time for the last answers, and for the client to read them.
    async fn finish(&self) {
        self.handlers.running.close();
        let last = async {
            self.handlers.running.wait().await;
            self.outbox.all_written().await;
        };
        if tokio::time::timeout(LAST_ANSWERS, last).await.is_err() {
            tracing::warn!("some requests were left unanswered at the end");
        }
    }
}

impl Handlers {
    /// Runs one request to its answer. It counts as waiting, and can be cancelled, from this call on.
    fn run<F, E>(
        &self,
        id: RawId,
        method: String,
        answer: F,
        outbox: Outbox,
        size: usize,
    ) -> impl Future<Output = ()> + Send + 'static + use<F, E>
    where
        F: Future<Output = Result<Option<Response>, E>> + Send + 'static,
    {
        let this = self.clone();
        let cancel = CancellationToken::new();
        lock(&this.cancel).insert(id.clone(), cancel.clone());
        this.queued.fetch_add(size, Ordering::SeqCst);
        async move {
            let turn = async {
                let permit = this.permits.acquire().await;
                outbox.room_to_start().await;
                permit
            };
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Error::request_cancelled()),
                outcome = async {
                    let _permit = turn.await;
                    guard::handler(&method, answer).await
                } => match outcome {
                    Ok(Ok(Some(response))) => response.into_parts().1,
                    Ok(_) => Err(Error::invalid_request()),
                    Err(error) => Err(error),
                },
            };
            this.queued.fetch_sub(size, Ordering::SeqCst);
            this.taken.notify_waiters();
            lock(&this.cancel).remove(&id);
            outbox.send(&message::response(&id, &outcome));
        }
    }
}

fn build(method: String, params: Option<Value>) -> tower_lsp::jsonrpc::RequestBuilder {
    let request = Request::build(method);
    match params {
        Some(params) => request.params(params),
        None => request,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
