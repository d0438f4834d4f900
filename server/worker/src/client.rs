//! The person's side: one connection for all jobs, opened when the first one is ordered and closed when none was for a while.

mod command;
mod connection;
mod error;
mod greeting;

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stitch_session::config::Worker;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::files::Files;
use crate::order::{Order, Outcome};
use crate::perform::Progress;
use crate::protocol::{FromWorker, Kind, ToWorker};

pub(crate) use connection::Connection;
pub use error::{Lost, WorkerError};

/// A connection that nobody needs for so long is closed.
const IDLE: Duration = Duration::from_secs(120);
/// How long a worker may take to end a job that is cancelled, before it is left to itself.
const CANCELLING: Duration = Duration::from_secs(4);

/// The machine that a command leads to.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    command: Vec<String>,
    patience: Duration,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// What the machine called itself when it was last reached.
    machine: Mutex<Option<String>>,
    /// How many jobs were ordered, to see whether there was one since.
    ordered: AtomicU64,
    /// How many are at work.
    at_work: AtomicU64,
}

/// One more job is at work, until this is dropped.
struct AtWork<'a>(&'a Inner);

impl<'a> AtWork<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.ordered.fetch_add(1, Ordering::SeqCst);
        inner.at_work.fetch_add(1, Ordering::SeqCst);
        Self(inner)
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Elsewhere {
    /// The machine that is configured; `None` where it is this one.
    pub fn configured(config: &Worker) -> Option<Self> {
        let command = config.command.clone();
        let patience = Duration::from_secs(config.patience_seconds.into());
        (!command.is_empty()).then(|| Self {
            inner: Arc::new(Inner {
                command,
                patience,
                connection: Default::default(),
                machine: Mutex::default(),
                ordered: AtomicU64::new(0),
                at_work: AtomicU64::new(0),
            }),
        })
    }

    /// Whether this is what is configured.
    pub fn is(&self, config: &Worker) -> bool {
        self.inner.command == config.command
            && self.inner.patience == Duration::from_secs(config.patience_seconds.into())
    }

    /// The command, as one would type it.
    pub fn command_line(&self) -> String {
        shell_words::join(&self.inner.command)
    }

    /// What the machine calls itself, where it was ever reached.
    pub fn machine(&self) -> Option<String> {
        self.inner.machine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has an order done there. Files go there that are not there yet. A connection that is lost is made anew once; what was done by then is not done
    /// again.
    ///
    /// # Errors
    /// The machine can't be reached or understood, the connection is lost for good, or why nothing came of the order.
    pub async fn perform(
        &self,
        order: &Order,
        files: &Files,
        progress: &Progress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, WorkerError> {
        let _at_work = AtWork::new(&self.inner);
        let job = ToWorker::Job {
            id: new_id(),
            order: serde_json::to_value(order).map_err(WorkerError::Unspeakable)?,
            roots: files.roots.clone(),
            files: files.sent.clone(),
        };
        let mut before: Option<WorkerError> = None;
        loop {
            let connected = tokio::select! {
                connected = self.connected(progress) => connected,
                () = cancel.cancelled() => return Err(WorkerError::Cancelled),
            };
            let connection = match (connected, before.take()) {
                (Ok(connection), earlier) => {
                    before = earlier;
                    connection
                }
                (Err(error), None) => return Err(error),
                (Err(error), Some(lost)) => {
                    return Err(WorkerError::NotAgain { lost: Box::new(lost), error: Box::new(error) });
                }
            };
            let result = done(&connection, &job, files, progress, cancel).await;
            if let ToWorker::Job { id, .. } = &job {
                connection.forget(id);
            }
            match result {
                Err(error @ WorkerError::Lost { .. }) => {
                    self.forget(&connection).await;
                    if let Some(first) = before {
                        return Err(WorkerError::Twice { first: Box::new(first), second: Box::new(error) });
                    }
                    progress("the connection was lost; trying once more", None);
                    before = Some(error);
                }
                result => {
                    self.close_when_idle();
                    return result;
                }
            }
        }
    }

    /// The connection, made where there is none.
    async fn connected(&self, progress: &Progress<'_>) -> Result<Arc<Connection>, WorkerError> {
        let mut known = self.inner.connection.lock().await;
        if let Some(connection) = known.as_ref().filter(|connection| connection.is_open()) {
            return Ok(connection.clone());
        }
        *known = None;
        progress(&format!("connecting: {}", self.command_line()), None);
        let connection =
            Arc::new(Connection::open(&self.inner.command, self.inner.patience, progress).await?);
        let machine = connection.machine().to_owned();
        progress(&format!("connected to {machine}"), None);
        *self.inner.machine.lock().unwrap_or_else(PoisonError::into_inner) = Some(machine);
        *known = Some(connection.clone());
        Ok(connection)
    }

    async fn forget(&self, connection: &Arc<Connection>) {
        let mut known = self.inner.connection.lock().await;
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, connection)) {
            *known = None;
        }
    }

    fn close_when_idle(&self) {
        let (inner, ordered) = (self.inner.clone(), self.inner.ordered.load(Ordering::SeqCst));
        tokio::spawn(async move {
            tokio::time::sleep(IDLE).await;
            // Who orders something now waits for this, and then finds that there is none.
            let mut known = inner.connection.lock().await;
            let is_idle = inner.at_work.load(Ordering::SeqCst) == 0;
            let is_last = inner.ordered.load(Ordering::SeqCst) == ordered;
            let connection = if is_idle && is_last { known.take() } else { None };
            drop(known);
            if let Some(connection) = connection {
                connection.close().await;
            }
        });
    }

    /// Says farewell and ends the connection.
    pub async fn close(&self) {
        let connection = self.inner.connection.lock().await.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }
}

/// Files on their way.
type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), WorkerError>> + Send + 'a>>;

/// Ends when files on their way were sent; never where none are.
async fn sent(sending: &mut Option<Sending<'_>>) -> Result<(), WorkerError> {
    match sending {
        Some(sending) => sending.await,
        None => std::future::pending().await,
    }
}

/// Orders a job on a connection, sends what is asked for, and waits for what comes of it.
async fn done(
    connection: &Connection,
    job: &ToWorker,
    files: &Files,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Outcome, WorkerError> {
    let ToWorker::Job { id, .. } = job else {
        return Err(WorkerError::Internal("what was ordered is no job".to_owned()));
    };
    let mut heard = connection.listen(id);
    connection.say(job.clone()).await?;
    let mut asked = HashSet::new();
    let mut sending: Option<Sending<'_>> = None;
    loop {
        let message = tokio::select! {
            message = heard.recv() => message,
            sent = sent(&mut sending) => {
                sending = None;
                if let Err(error) = sent {
                    connection.say(ToWorker::Cancel { id: id.clone() }).await?;
                    return Err(error);
                }
                continue;
            }
            () = cancel.cancelled() => {
                drop(sending);
                let _ = tokio::time::timeout(CANCELLING, call_off(connection, id, &mut heard)).await;
                return Err(WorkerError::Cancelled);
            }
        };
        if matches!(message, Some(FromWorker::Result { .. } | FromWorker::Failed { .. })) {
            // In this order: who waits to send something keeps others waiting.
            sending = None;
            // What came is here, also where the connection is lost just now.
            let _ = connection.say(ToWorker::Done { id: id.clone() }).await;
        }
        match message {
            None => return Err(connection.lost()),
            Some(FromWorker::Progress { message, share, .. }) => progress(&message, share),
            Some(FromWorker::Need { contents, .. }) => {
                let contents = contents.into_iter().filter(|content| asked.insert(content.clone())).collect();
                sending = Some(Box::pin(files.send(contents, connection, progress)));
            }
            Some(FromWorker::Result { result, .. }) => {
                return serde_json::from_value(result).map_err(|error| {
                    WorkerError::Internal(format!(
                        "{} answered what is no outcome: {error}",
                        connection.machine()
                    ))
                });
            }
            Some(FromWorker::Failed { status: Kind::Cancelled, .. }) => return Err(WorkerError::Cancelled),
            Some(FromWorker::Failed { status, message, .. }) => {
                let machine = connection.machine().to_owned();
                return Err(WorkerError::Failed { machine, kind: status, message: files.explained(message) });
            }
            Some(FromWorker::Hello { .. } | FromWorker::Beat | FromWorker::Refused { .. }) => {}
        }
    }
}

/// Says that a job is no longer wanted, and hears that it ended.
async fn call_off(connection: &Connection, id: &str, heard: &mut mpsc::UnboundedReceiver<FromWorker>) {
    if connection.say(ToWorker::Cancel { id: id.to_owned() }).await.is_err() {
        return;
    }
    while let Some(message) = heard.recv().await {
        if matches!(message, FromWorker::Failed { .. } | FromWorker::Result { .. }) {
            let _ = connection.say(ToWorker::Done { id: id.to_owned() }).await;
            return;
        }
    }
}

/// The id of a job, which no other one has.
fn new_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Each is keyed by the system's random numbers.
    let numbers = [0u8, 1].map(|part| RandomState::new().hash_one((part, count, std::process::id())));
    format!("{:016x}{:016x}", numbers[0], numbers[1])
}
