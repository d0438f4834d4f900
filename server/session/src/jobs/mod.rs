//! Jobs: anything that takes longer than an answer should.
//!
//! A job has an id, a state, events and a token to cancel it, whoever shows it: the server as progress, the command line
//! as a bar or as JSON lines. It waits for its slot, then for its turn, then runs:
//!
//! - A *slot* holds one job. Starting another there cancels the older ones, and the new one begins only after they have
//!   ended, so two compiles of one file never run side by side and the newest save wins.
//! - A *limit* is what it uses up: a processor, or a device of which there is one.
//!
//! A job ends by itself, soon after its token fires. One that doesn't is dropped after a grace, so that nothing a job
//! does can block a slot for ever. A panic in a job is that job's failure and nobody else's.

mod event;
mod listener;
mod run;
mod table;

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

pub use event::{Event, Happening, JobId, JobInfo, JobKind, Outcome, State};
pub use listener::Listener;
pub use run::Context;

use run::Slots;
use table::Table;

/// How long a cancelled job may take to end by itself before it is dropped. An outside program gets 2 s between
/// SIGTERM and SIGKILL, so this is longer.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long [`Jobs::shutdown`] waits: the server is gone two seconds after its client.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// How many finished jobs are kept for [`Jobs::list`].
pub const KEPT: usize = 100;

/// What a job uses up while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nothing that is scarce: it waits for the network or the disk.
    None,
    /// A processor core, as a compile does. One core is left for answers, if there is more than one.
    Processor,
    /// A device, which runs one job at a time in this process. Other processes are kept away by
    /// [`DeviceLock`](crate::locks::DeviceLock).
    Device(String),
}

/// A job to be started.
#[derive(Clone, Debug)]
pub struct Request {
    kind: JobKind,
    title: String,
    slot: Option<String>,
    limit: Limit,
}

impl Request {
    /// A job that a person would call `title`: `Compile saxpy.cu`.
    pub fn new(kind: JobKind, title: impl Into<String>) -> Self {
        Self { kind, title: title.into(), slot: None, limit: Limit::None }
    }

    /// Puts it in the slot of this name, in place of the older job there.
    pub fn slot(mut self, name: impl Into<String>) -> Self {
        self.slot = Some(name.into());
        self
    }

    /// Says what it uses up.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = limit;
        self
    }
}

/// Why a job has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It was cancelled, by a person, by a newer job in its slot, or by the end of the session.
    #[error("cancelled")]
    Cancelled,
    /// It failed; the message says what was tried and what to do.
    #[error("{0}")]
    Failed(String),
}

impl JobError {
    /// A failure with this message.
    pub fn failed(message: impl Display) -> Self {
        Self::Failed(message.to_string())
    }
}

/// A job that was started. Dropping it leaves the job running.
#[derive(Debug)]
pub struct JobHandle<T> {
    id: JobId,
    cancel: CancellationToken,
    result: tokio::sync::oneshot::Receiver<Result<T, JobError>>,
}

impl<T> JobHandle<T> {
    /// Its id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Asks it to end.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it failed or was cancelled.
    pub async fn wait(self) -> Result<T, JobError> {
        self.result.await.unwrap_or(Err(JobError::Cancelled))
    }
}

/// All jobs of a session. Cloning it gives another handle on the same jobs.
#[derive(Clone, Debug)]
pub struct Jobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    runtime: Handle,
    session: CancellationToken,
    table: Mutex<Table>,
    slots: Slots,
    processors: Arc<Semaphore>,
    devices: Mutex<HashMap<String, Arc<Semaphore>>>,
    running: watch::Sender<usize>,
    /// Fired when there is no time left to wait for jobs that were cancelled.
    abandon: CancellationToken,
}

impl Jobs {
    /// No jobs yet. They will run on `runtime`, at most `processors` of those that use a processor at once (at least
    /// one), and all end when `session` is cancelled.
    pub fn new(runtime: Handle, session: CancellationToken, processors: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                runtime,
                session,
                table: Mutex::default(),
                slots: Slots::default(),
                processors: Arc::new(Semaphore::new(processors.clamp(1, Semaphore::MAX_PERMITS))),
                devices: Mutex::default(),
                running: watch::Sender::new(0),
                abandon: CancellationToken::new(),
            }),
        }
    }

    /// How many jobs may use a processor at once on this machine: all cores but one, at least one.
    pub fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
    }

    /// Starts a job. `work` gets the means to report and to notice that it is cancelled.
    ///
    /// An error it returns after it was cancelled counts as the cancellation. A result that it returns all the same is
    /// its result: it was faster than the wish to stop it.
    pub fn start<T, Work, Running>(&self, request: Request, work: Work) -> JobHandle<T>
    where
        T: Send + 'static,
        Work: FnOnce(Context) -> Running + Send + 'static,
        Running: Future<Output = Result<T, JobError>> + Send + 'static,
    {
        let cancel = self.shared.session.child_token();
        let id = self.table(|table| table.add(request.kind, request.title, cancel.clone()));
        self.shared.running.send_modify(|running| *running += 1);
        // Taken now, not in the task: the order of the calls decides which job is the newest.
        let slot = request.slot.map(|name| self.shared.slots.enter(name, cancel.clone()));
        let (sender, result) = tokio::sync::oneshot::channel();
        let (jobs, limit, token) = (self.clone(), request.limit, cancel.clone());
        self.shared.runtime.spawn(async move {
            let turn = token.run_until_cancelled(jobs.turn(slot.as_ref(), &limit)).await;
            let result = match &turn {
                Some(_) => jobs.run(id, token, work).await,
                None => Err(JobError::Cancelled),
            };
            let outcome = match &result {
                Ok(_) => Outcome::Done,
                Err(JobError::Cancelled) => Outcome::Cancelled,
                Err(JobError::Failed(message)) => Outcome::Failed { message: message.clone() },
            };
            jobs.table(|table| table.finish(id, outcome));
            // Only now, so that the next in the slot starts after the end of this one was told.
            drop((turn, slot));
            // The receiver may be gone: nobody has to wait for a job.
            let _ = sender.send(result);
            jobs.shared.running.send_modify(|running| *running -= 1);
        });
        JobHandle { id, cancel, result }
    }

    /// Asks a job to end. Whether there is such a job and it has not ended yet.
    pub fn cancel(&self, id: JobId) -> bool {
        // Fired outside the table: a token wakes whoever waits for it.
        let token = self.table(|table| table.token(id));
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// The jobs that wait or run, and the last ones that ended, oldest first.
    pub fn list(&self) -> Vec<JobInfo> {
        self.table(|table| table.list())
    }

    /// Everything that happens from now on.
    pub fn listen(&self) -> Listener {
        self.table(Table::listen)
    }

    /// Cancels all jobs, waits for their end at most [`SHUTDOWN_GRACE`], and drops those that are left, with the
    /// processes they hold. Later jobs are cancelled at once, and listeners end after the last event. How many jobs had
    /// to be dropped.
    pub async fn shutdown(&self) -> usize {
        self.shared.session.cancel();
        let mut running = self.shared.running.subscribe();
        let timely =
            tokio::time::timeout(SHUTDOWN_GRACE, running.wait_for(|running| *running == 0)).await.is_ok();
        let left = if timely { 0 } else { *self.shared.running.borrow() };
        if left > 0 {
            self.shared.abandon.cancel();
            let dropped = running.wait_for(|running| *running == 0);
            // Only a job that blocks its thread is not dropped by now, and the end of the process ends it.
            let _ = tokio::time::timeout(run::DROP_GRACE * 2, dropped).await;
        }
        self.table(Table::close);
        left
    }

    fn table<R>(&self, use_it: impl FnOnce(&mut Table) -> R) -> R {
        // Nothing in the table can panic half way, so a poisoned lock still guards a sound table.
        use_it(&mut self.shared.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
