//! The table of jobs. Every change of a job's state and every event goes through it under one lock, so all listeners see
//! the same order, and nothing is said of a job after its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::KEPT;
use super::event::{Event, Happening, JobId, JobInfo, JobKind, Outcome, State};
use super::listener::{Listener, Queue};

#[derive(Debug, Default)]
pub(super) struct Table {
    jobs: BTreeMap<JobId, Row>,
    last_id: u64,
    listeners: Vec<Weak<Queue>>,
    closed: bool,
}

#[derive(Debug)]
struct Row {
    kind: JobKind,
    title: String,
    cancel: CancellationToken,
    state: State,
    message: Option<String>,
    fraction: Option<f32>,
    added: Instant,
    started: Option<Instant>,
    ended: Option<Instant>,
}

impl Table {
    pub(super) fn add(&mut self, kind: JobKind, title: String, cancel: CancellationToken) -> JobId {
        self.last_id += 1;
        let id = JobId(self.last_id);
        let row = Row {
            kind,
            title,
            cancel,
            state: State::Queued,
            message: None,
            fraction: None,
            added: Instant::now(),
            started: None,
            ended: None,
        };
        self.jobs.insert(id, row);
        id
    }

    pub(super) fn start(&mut self, id: JobId) {
        if let Some(row) = self.jobs.get_mut(&id) {
            row.state = State::Running;
            row.started = Some(Instant::now());
            self.tell(id, Happening::Started);
        }
    }

    pub(super) fn progress(&mut self, id: JobId, message: String, fraction: Option<f32>) {
        // A NaN has no place in JSON, nor in a progress bar.
        let fraction =
            fraction.filter(|fraction| !fraction.is_nan()).map(|fraction| fraction.clamp(0.0, 1.0));
        if let Some(row) = self.jobs.get_mut(&id).filter(|row| row.state == State::Running) {
            row.message = Some(message.clone());
            row.fraction = fraction;
            self.tell(id, Happening::Progress { message, fraction });
        }
    }

    pub(super) fn note(&mut self, id: JobId, message: String) {
        if self.jobs.get(&id).is_some_and(|row| row.state == State::Running) {
            self.tell(id, Happening::Note { message });
        }
    }

    pub(super) fn finish(&mut self, id: JobId, outcome: Outcome) {
        let Some(row) = self.jobs.get_mut(&id) else { return };
        row.state = outcome.state();
        row.ended = Some(Instant::now());
        if let Outcome::Failed { message } = &outcome {
            row.message = Some(message.clone());
        }
        self.tell(id, Happening::Finished(outcome));
        let ended: Vec<_> =
            self.jobs.iter().filter(|(_, row)| row.ended.is_some()).map(|(id, _)| *id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(KEPT)) {
            self.jobs.remove(id);
        }
    }

    /// The token of a job that has not ended.
    pub(super) fn token(&self, id: JobId) -> Option<CancellationToken> {
        self.jobs.get(&id).filter(|row| row.ended.is_none()).map(|row| row.cancel.clone())
    }

    pub(super) fn list(&self) -> Vec<JobInfo> {
        let now = Instant::now();
        let info = |(id, row): (&JobId, &Row)| {
            let ended = row.ended.unwrap_or(now);
            let started = row.started.unwrap_or(ended);
            JobInfo {
                id: *id,
                kind: row.kind,
                title: row.title.clone(),
                state: row.state,
                message: row.message.clone(),
                fraction: row.fraction,
                waited_seconds: (started - row.added).as_secs_f64(),
                ran_seconds: (ended - started).as_secs_f64(),
            }
        };
        self.jobs.iter().map(info).collect()
    }

    pub(super) fn listen(&mut self) -> Listener {
        let queue = Arc::new(Queue::default());
        if self.closed {
            queue.close();
        }
        self.listeners.push(Arc::downgrade(&queue));
        Listener::new(queue)
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.listeners.iter().filter_map(Weak::upgrade).for_each(|queue| queue.close());
    }

    fn tell(&mut self, id: JobId, happening: Happening) {
        self.listeners.retain(|listener| listener.strong_count() > 0);
        let Some(row) = self.jobs.get(&id) else { return };
        let event = Event { job: id, kind: row.kind, title: row.title.clone(), happening };
        for queue in self.listeners.iter().filter_map(Weak::upgrade) {
            queue.push(event.clone());
        }
    }
}
