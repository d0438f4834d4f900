//! Who hears of events, without ever holding up a job.
//!
//! Each listener has a queue of its own. When it is behind, progress gives way first: a newer one replaces an older one of the same job,
//! and beyond a length the oldest progress and notes are lost. `Started` and `Finished` are always kept, so a listener
//! that wakes late still learns how every job ended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::event::{Event, Happening};

/// How many events may wait before progress and notes are lost.
pub(super) const LONGEST_QUEUE: usize = 256;

/// Hears of what happens to all jobs.
#[derive(Debug)]
pub struct Listener {
    queue: Arc<Queue>,
}

impl Listener {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// The next event; `None` after the last one of a session that was shut down. Nothing is lost when this is dropped
    /// while it waits.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let woken = self.queue.notify.notified();
            {
                let mut waiting = self.queue.lock();
                if let Some(event) = waiting.events.pop_front() {
                    return Some(event);
                }
                if waiting.closed {
                    return None;
                }
            }
            woken.await;
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, event: Event) {
        let mut waiting = self.lock();
        if matches!(event.happening, Happening::Progress { .. }) {
            // Only the job's last event may be replaced: progress must not jump over a note.
            let last = waiting.events.iter_mut().rev().find(|earlier| earlier.job == event.job);
            if let Some(last) = last
                && matches!(last.happening, Happening::Progress { .. })
            {
                *last = event;
                return;
            }
        }
        waiting.events.push_back(event);
        if waiting.events.len() > LONGEST_QUEUE {
            let loses = |event: &Event| {
                matches!(event.happening, Happening::Progress { .. } | Happening::Note { .. })
            };
            if let Some(index) = waiting.events.iter().position(loses) {
                waiting.events.remove(index);
            }
        }
        drop(waiting);
        self.notify.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.notify.notify_one();
    }
}
