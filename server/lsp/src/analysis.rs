//! Analyses the newest text of each document on threads of its own.
//!
//! One thread works on a document at a time and keeps its analyzer, which knows the last tree. When a newer text comes the work
//! on the older one is cut off, unless someone types without a pause (see [`Live::is_worth`]). The document edited last comes
//! first. There is no delay: what a keystroke changes is small, and waiting would only show it later.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use stitch_analysis::{Analysis, Analyzer};
use stitch_findings::{Batch, Edit, Producer};

use crate::documents::{Document, difference};
use crate::live::{Analysed, Live};
use crate::session::Session;
use crate::uri::Key;
use crate::{guard, headers, typecheck};

/// Two documents at once: one large file must not hold up the one that is being edited.
const THREADS: usize = 2;

/// The analysis follows the nesting of the source without recursion; the grammars' scanners may not.
const STACK: usize = 8 << 20;

/// Documents that wait for their analysis.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The last one is next.
    waiting: Vec<Key>,
    running: HashSet<Key>,
    stopped: bool,
}

impl Queue {
    /// The document has a new text.
    pub fn push(&self, key: Key) {
        let mut state = self.lock();
        state.waiting.retain(|other| *other != key);
        state.waiting.push(key);
        drop(state);
        self.changed.notify_one();
    }

    /// Ends the threads, as soon as they notice.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    fn next(&self) -> Option<Key> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let free = state.waiting.iter().rposition(|key| !state.running.contains(key));
            if let Some(at) = free {
                let key = state.waiting.remove(at);
                state.running.insert(key.clone());
                return Some(key);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, key: &Key) {
        self.lock().running.remove(key);
        // It may be waiting again, with a newer text.
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The analyzers of the open documents, while none of the threads has them.
type Analyzers = Mutex<HashMap<Key, Held>>;

struct Held {
    live: Arc<Live>,
    analyzer: Analyzer,
}

/// Starts the threads. They end with [`Queue::stop`].
///
/// # Errors
/// The system gives no more threads.
pub fn start(session: &Arc<Session>) -> std::io::Result<()> {
    let analyzers: Arc<Analyzers> = Arc::default();
    for _ in 0..THREADS {
        let (session, analyzers) = (session.clone(), analyzers.clone());
        let run = move || {
            while let Some(key) = session.queue.next() {
                work(&session, &analyzers, &key);
                session.queue.done(&key);
            }
        };
        std::thread::Builder::new().name("analysis".into()).stack_size(STACK).spawn(run)?;
    }
    Ok(())
}

fn work(session: &Arc<Session>, analyzers: &Analyzers, key: &Key) {
    let mut held = analyzers.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    let Some(document) = session.documents().get(key).cloned() else { return };
    let Some(language) = document.to_analyse() else { return };
    // A document that was closed and opened again may be in another language.
    let mut analyzer = match held.take().filter(|held| Arc::ptr_eq(&held.live, &document.live)) {
        Some(held) => held.analyzer,
        None => Analyzer::new(language),
    };
    let workspace = session.workspace_for(&document);
    let source = document.text.to_source();
    let keep_going = || document.live.is_worth(document.revision) && !session.queue.is_stopped();
    let update = || {
        #[cfg(test)]
        assert!(!session.fail_analysis.swap(false, std::sync::atomic::Ordering::SeqCst), "on purpose");
        analyzer.update(source, &workspace, &keep_going)
    };
    match guard::catch(update) {
        Ok(Ok(analysis)) => {
            finish(session, &document, &analysis);
            keep(analyzers, &document, analyzer);
        }
        Ok(Err(_)) => {
            keep(analyzers, &document, analyzer);
            if !document.live.is_closed() {
                session.queue.push(key.clone());
            }
        }
        Err(reason) => {
            tracing::error!("the analysis panicked: {reason}");
            document.live.finish(Analysed { revision: document.revision, analysis: None });
            session.publisher.mark([key.clone()]);
        }
    }
}

fn keep(analyzers: &Analyzers, document: &Document, analyzer: Analyzer) {
    let mut analyzers = analyzers.lock().unwrap_or_else(PoisonError::into_inner);
    analyzers.retain(|_, held| !held.live.is_closed());
    if !document.live.is_closed() {
        analyzers.insert(document.key.clone(), Held { live: document.live.clone(), analyzer });
    }
}

/// Puts the findings into the store, at their places in the text of now.
fn finish(session: &Arc<Session>, document: &Arc<Document>, analysis: &Arc<Analysis>) {
    let source: &str = analysis.source();
    let mut batch = Batch::new(source, &analysis.function_spans(), analysis.findings().to_vec(), Vec::new());
    let mut documents = session.documents();
    let Some(newest) =
        documents.get(&document.key).filter(|newest| Arc::ptr_eq(&newest.live, &document.live)).cloned()
    else {
        return;
    };
    if newest.revision != document.revision {
        let now = newest.text.to_source();
        let (old, new) = difference(source, &now);
        batch.follow(&[Edit { start: old.start, old_end: old.end, new_end: new.end }], &*now);
    }
    documents.store.replace(document.key.as_str(), Producer::Static, document.key.as_str(), batch);
    drop(documents);
    // A newer text that comes at once is published with findings that know it.
    let is_worth = document.live.is_worth(document.revision);
    document.live.finish(Analysed { revision: document.revision, analysis: Some(analysis.clone()) });
    if is_worth {
        session.publisher.publish(session, &document.key);
    }
    headers::follow(session, document, analysis);
    typecheck::follow(session, document);
}
