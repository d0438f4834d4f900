//! How a job gets its slot and its turn, runs, and ends.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::event::JobId;
use super::{GRACE, JobError, Jobs, Limit};

/// How long dropping a job may take. It takes no time, unless the job blocks its thread, and then nothing helps.
pub(super) const DROP_GRACE: Duration = Duration::from_millis(100);

/// What a job's work is given: how to report, and how to notice that it should end.
#[derive(Clone, Debug)]
pub struct Context {
    id: JobId,
    cancel: CancellationToken,
    jobs: Jobs,
}

impl Context {
    /// The job's id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Fires when the job should end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// A token for one stage of the job, which can be cancelled alone and ends with the job.
    pub fn stage(&self) -> CancellationToken {
        self.cancel.child_token()
    }

    /// Says what it does now, and how much is done, from 0 to 1, where that can be known. Never waits.
    pub fn progress(&self, message: impl Into<String>, fraction: Option<f32>) {
        let message = message.into();
        self.jobs.table(|table| table.progress(self.id, message, fraction));
    }

    /// Says something that stays true. Never waits.
    pub fn note(&self, message: impl Into<String>) {
        let message = message.into();
        self.jobs.table(|table| table.note(self.id, message));
    }
}

impl Jobs {
    /// Waits until the older job in the slot has ended, and then until what it uses up is free.
    pub(super) async fn turn(&self, slot: Option<&Place>, limit: &Limit) -> Turn {
        let place = match slot {
            Some(place) => Some(place.lock.clone().lock_owned().await),
            None => None,
        };
        Turn { _place: place, _permit: self.permit(limit).await }
    }

    /// Runs a job that has its turn, to its end.
    pub(super) async fn run<T, Work, Running>(
        &self,
        id: JobId,
        cancel: CancellationToken,
        work: Work,
    ) -> Result<T, JobError>
    where
        T: Send + 'static,
        Work: FnOnce(Context) -> Running + Send + 'static,
        Running: Future<Output = Result<T, JobError>> + Send + 'static,
    {
        if cancel.is_cancelled() {
            return Err(JobError::Cancelled);
        }
        self.table(|table| table.start(id));
        let context = Context { id, cancel: cancel.clone(), jobs: self.clone() };
        // A task of its own, so that a panic ends there.
        let mut task = self.shared.runtime.spawn(async move { work(context).await });
        let ended = tokio::select! {
            ended = &mut task => Some(ended),
            () = self.overdue(&cancel) => {
                task.abort();
                tokio::time::timeout(DROP_GRACE, task).await.ok()
            }
        };
        match ended {
            Some(Ok(Ok(value))) => Ok(value),
            Some(Ok(Err(_))) if cancel.is_cancelled() => Err(JobError::Cancelled),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(error)) => Err(explain(error)),
            None => Err(JobError::Cancelled),
        }
    }

    /// Returns when a job should have ended long ago, or when there is no time left to wait for it.
    async fn overdue(&self, cancel: &CancellationToken) {
        cancel.cancelled().await;
        let _ = self.shared.abandon.run_until_cancelled(tokio::time::sleep(GRACE)).await;
    }

    async fn permit(&self, limit: &Limit) -> Option<OwnedSemaphorePermit> {
        let semaphore = match limit {
            Limit::None => return None,
            Limit::Processor => self.shared.processors.clone(),
            Limit::Device(device) => {
                let mut devices = self.shared.devices.lock().unwrap_or_else(PoisonError::into_inner);
                devices.entry(device.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
            }
        };
        // It fails only when the semaphore is closed, which these never are.
        semaphore.acquire_owned().await.ok()
    }
}

fn explain(error: JoinError) -> JobError {
    match error.try_into_panic() {
        Ok(panic) => JobError::Failed(format!(
            "The job panicked: {}. This is a bug in StitchCUDA; please report it.",
            panic_message(panic.as_ref())
        )),
        Err(_) => JobError::Cancelled,
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// What a job holds while it runs.
#[derive(Debug)]
pub(super) struct Turn {
    _place: Option<OwnedMutexGuard<()>>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The slots that hold a job.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Arc<Mutex<HashMap<String, Slot>>>,
}

#[derive(Debug)]
struct Slot {
    lock: Arc<tokio::sync::Mutex<()>>,
    newest: CancellationToken,
    places: usize,
}

/// A job's place in a slot. Whoever has locked it is the one that runs there.
#[derive(Debug)]
pub(super) struct Place {
    name: String,
    lock: Arc<tokio::sync::Mutex<()>>,
    slots: Arc<Mutex<HashMap<String, Slot>>>,
}

impl Slots {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Makes the job of `cancel` the newest in a slot, and cancels the one that was.
    pub(super) fn enter(&self, name: String, cancel: CancellationToken) -> Place {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let (lock, older) = match slots.get_mut(&name) {
            Some(slot) => {
                slot.places += 1;
                (slot.lock.clone(), Some(std::mem::replace(&mut slot.newest, cancel)))
            }
            None => {
                let lock = Arc::default();
                let slot = Slot { lock: Arc::clone(&lock), newest: cancel, places: 1 };
                slots.insert(name.clone(), slot);
                (lock, None)
            }
        };
        drop(slots);
        if let Some(older) = older {
            older.cancel();
        }
        Place { name, lock, slots: self.slots.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get_mut(&self.name) {
            slot.places -= 1;
            if slot.places == 0 {
                slots.remove(&self.name);
            }
        }
    }
}
