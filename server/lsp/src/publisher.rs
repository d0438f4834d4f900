//! The one place that publishes diagnostics, one publish after the other, so that their order is right by construction.
//!
//! Text and findings are read together, and what differs from what the client has is queued for it, all under one lock.
//! An analysis publishes what it found on its own thread: on a busy machine each thread that has to wake up costs milliseconds.
//! Everybody else marks documents, and a task takes what is marked. Nothing is delayed: while the client is slow to read, marks
//! gather into one publish.
//!
//! A publish repeats all of a document's findings at each keystroke. So it is written as JSON once, goes straight to the
//! writer, and what is remembered of it is a hash.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stitch_findings::ReadText;
use tokio::sync::Notify;

use crate::message;
use crate::outbox::Outbox;
use crate::session::Session;
use crate::uri::Key;

const METHOD: &str = "textDocument/publishDiagnostics";

/// What was published, and what has something new.
#[derive(Debug)]
pub struct Publisher {
    outbox: Outbox,
    /// What the client has of each document: a hash of the parameters.
    published: Mutex<HashMap<Key, u64>>,
    dirty: Mutex<BTreeSet<Key>>,
    marked: Notify,
}

impl Publisher {
    /// Publishes to a client that was told nothing yet.
    pub fn new(outbox: Outbox) -> Self {
        Self { outbox, published: Mutex::default(), dirty: Mutex::default(), marked: Notify::new() }
    }

    /// These documents have something new.
    pub fn mark(&self, keys: impl IntoIterator<Item = Key>) {
        lock(&self.dirty).extend(keys);
        self.marked.notify_one();
    }

    /// This document has something new, which is published by this call if the client keeps up. Hold no lock.
    pub fn publish(&self, session: &Session, key: &Key) {
        if self.outbox.has_room() {
            self.send(session, key);
        } else {
            self.mark([key.clone()]);
        }
    }

    fn send(&self, session: &Session, key: &Key) {
        let mut published = lock(&self.published);
        let Some(publish) = session.publish(key) else { return };
        let is_empty = publish.diagnostics.is_empty();
        if is_empty && !published.contains_key(key) && !session.is_analysed(key) {
            return;
        }
        let params = match serde_json::to_string(&publish) {
            Ok(params) => params,
            Err(error) => {
                tracing::error!("the findings of {} can't be written as JSON: {error}", publish.uri);
                return;
            }
        };
        let hash = params.as_str().content_hash();
        if published.get(key) == Some(&hash) {
            return;
        }
        if publish.version.is_none() && is_empty {
            published.remove(key);
        } else {
            published.insert(key.clone(), hash);
        }
        self.outbox.send(&message::notification(METHOD, &params));
    }
}

/// Publishes what is marked, for ever.
pub async fn run(session: Arc<Session>) {
    let publisher = &session.publisher;
    loop {
        publisher.marked.notified().await;
        publisher.outbox.room_to_start().await;
        let marked = std::mem::take(&mut *lock(&publisher.dirty));
        for key in marked {
            publisher.send(&session, &key);
            publisher.outbox.room_to_start().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
