//! The one task that publishes diagnostics, so that their order is right by construction.
//!
//! Others mark documents; the task takes what is marked, reads text and findings together under the lock, and sends what
//! differs from what the client has. Nothing is delayed: while the client is slow to read, marks gather into one publish.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tower_lsp::Client;
use tower_lsp::ls_types::notification::Notification;

use crate::session::Session;
use crate::to_proto::Diagnostic;
use crate::uri::Key;

/// Documents with something new to publish.
#[derive(Debug, Default)]
pub struct Publisher {
    dirty: Mutex<BTreeSet<Key>>,
    marked: Notify,
}

/// The notification. Its parameters are made by [`crate::to_proto`]: the library's can't hold every URI.
enum PublishDiagnostics {}

impl Notification for PublishDiagnostics {
    type Params = serde_json::Value;
    const METHOD: &'static str = "textDocument/publishDiagnostics";
}

impl Publisher {
    /// These documents have something new.
    pub fn mark(&self, keys: impl IntoIterator<Item = Key>) {
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.extend(keys);
        drop(dirty);
        self.marked.notify_one();
    }

    fn take(&self) -> BTreeSet<Key> {
        std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Publishes for ever.
pub async fn run(session: Arc<Session>, client: Client) {
    let mut published: HashMap<Key, (Option<i32>, Vec<Diagnostic>)> = HashMap::new();
    loop {
        session.publisher.marked.notified().await;
        for key in session.publisher.take() {
            let Some(publish) = session.publish(&key) else { continue };
            let last = published.get(&key);
            let is_known = last
                .is_some_and(|(version, known)| *version == publish.version && *known == publish.diagnostics);
            let says_nothing = last.is_none() && publish.diagnostics.is_empty() && !session.is_analysed(&key);
            if is_known || says_nothing {
                continue;
            }
            if publish.version.is_none() && publish.diagnostics.is_empty() {
                published.remove(&key);
            } else {
                published.insert(key, (publish.version, publish.diagnostics.clone()));
            }
            let publish = serde_json::to_value(publish).unwrap_or_default();
            client.send_notification::<PublishDiagnostics>(publish).await;
        }
    }
}
