//! What the versions of one open document share: how new the newest is, and the last analysis.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use stitch_analysis::Analysis;
use tokio::sync::watch;

/// An analysis may go on with an older text for this long after the first edit that it does not know. Below, the newer text
/// wins; above, someone types without a pause and should see something.
const PATIENCE: Duration = Duration::from_millis(100);

/// The analysis of one version.
#[derive(Debug)]
pub struct Analysed {
    /// The version.
    pub revision: u64,
    /// `None` if the analysis failed on it.
    pub analysis: Option<Arc<Analysis>>,
}

/// What the versions of one document share.
#[derive(Debug)]
pub struct Live {
    revision: AtomicU64,
    /// The version that is on disk, as far as we know.
    saved: AtomicU64,
    closed: AtomicBool,
    waiting_since: Mutex<Option<Instant>>,
    /// The last analysis.
    pub analysed: watch::Sender<Option<Arc<Analysed>>>,
}

impl Live {
    /// For a document opened as `revision`.
    pub fn new(revision: u64) -> Self {
        Self {
            revision: AtomicU64::new(revision),
            saved: AtomicU64::new(revision),
            closed: AtomicBool::new(false),
            waiting_since: Mutex::new(Some(Instant::now())),
            analysed: watch::Sender::new(None),
        }
    }

    /// A newer version exists.
    pub fn edited(&self, revision: u64, now: Instant) {
        self.revision.store(revision, Ordering::SeqCst);
        self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
    }

    /// The newest version is on disk.
    pub fn save(&self) {
        self.saved.store(self.revision.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Whether there are changes that are not on disk.
    pub fn is_edited(&self) -> bool {
        self.saved.load(Ordering::SeqCst) != self.revision.load(Ordering::SeqCst)
    }

    /// The document is closed; nobody needs its analysis.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether `revision` is the newest.
    pub fn is_newest(&self, revision: u64) -> bool {
        self.revision.load(Ordering::SeqCst) == revision
    }

    /// Whether the analysis of `revision` should go on.
    pub fn is_worth(&self, revision: u64) -> bool {
        if self.is_closed() {
            return false;
        }
        self.is_newest(revision) || {
            let since = *self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner);
            since.is_some_and(|since| since.elapsed() > PATIENCE)
        }
    }

    /// An analysis is there. It is the last one unless a later one came first.
    pub fn finish(&self, analysed: Analysed) {
        let mut waiting = self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner);
        // A version that came meanwhile waits from now on.
        *waiting = if self.is_newest(analysed.revision) { None } else { Some(Instant::now()) };
        drop(waiting);
        self.analysed.send_if_modified(|last| {
            // The same version again, when a header said something new.
            let is_newer = last.as_ref().is_none_or(|last| last.revision <= analysed.revision);
            if is_newer {
                *last = Some(Arc::new(analysed));
            }
            is_newer
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_text_is_finished_only_for_who_types_without_a_pause() {
        let live = Live::new(1);
        assert!(live.is_worth(1));
        live.finish(Analysed { revision: 1, analysis: None });
        live.edited(2, Instant::now());
        assert!(live.is_worth(2));
        live.edited(3, Instant::now());
        assert!(!live.is_worth(2), "the newer text wins");
        live.finish(Analysed { revision: 3, analysis: None });
        let Some(long_ago) = Instant::now().checked_sub(PATIENCE * 2) else { return };
        live.edited(4, long_ago);
        live.edited(5, Instant::now());
        assert!(live.is_worth(4), "something has to be seen");
        live.finish(Analysed { revision: 4, analysis: None });
        live.edited(6, Instant::now());
        assert!(!live.is_worth(5), "patience begins anew");
        live.close();
        assert!(!live.is_worth(6));
    }
}
