//! Watches files itself, for clients that can't: Neovim on Linux, and small ones. Where git or another program changes settings or
//! headers, it is seen as in the others.
//!
//! Only folders are watched in which a file lies that counts, or would: those of an open document's settings and headers. A whole tree
//! may hold more folders than a system lets one process watch.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use stitch_verifier::includes;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::session::Session;
use crate::watched;

/// How long changes are gathered before they are acted on: a checkout changes many files at once.
const GATHERED: Duration = Duration::from_millis(150);

/// Folders above a document without a project in which settings are looked for.
const MOST_FOLDERS_UP: usize = 8;

/// What is watched. Nothing until a document is open.
#[derive(Debug, Default)]
pub struct Disk(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Watching(RecommendedWatcher),
    /// The system gives no watcher, which was said.
    Refused,
}

/// Watches the folders that matter to a document at `path`, whose headers are these; where the client watches files, nothing. Touches
/// the disk: for a thread that may wait.
pub fn follow(session: &Arc<Session>, path: &Path, headers: &[PathBuf]) {
    if session.features().watched_files {
        return;
    }
    let above = path.ancestors().skip(1);
    let mut folders: Vec<PathBuf> = match session.configuration.project_of(path) {
        Some(top) => above.take_while(|folder| folder.starts_with(&top)).map(Path::to_owned).collect(),
        None => above.take(MOST_FOLDERS_UP).map(Path::to_owned).collect(),
    };
    folders.extend(includes::folders(path));
    folders.extend(headers.iter().filter_map(|header| header.parent()).map(Path::to_owned));
    let mut state = session.disk.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let State::Idle = *state {
        *state = start(session);
    }
    let State::Watching(watcher) = &mut *state else { return };
    // Again where it is watched already: one that was removed and is back is another.
    folders.sort_unstable();
    folders.dedup();
    folders.iter().for_each(|folder| drop(watcher.watch(folder, RecursiveMode::NonRecursive)));
}

fn start(session: &Arc<Session>) -> State {
    let (sender, changes) = mpsc::unbounded_channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        if is_change(event.kind) {
            event.paths.into_iter().filter(|path| watched::counts(path)).for_each(|path| {
                let _ = sender.send(path);
            });
        }
    });
    match watcher {
        Ok(watcher) => {
            session.runtime.spawn(act(Arc::downgrade(session), changes));
            State::Watching(watcher)
        }
        Err(error) => {
            let said =
                "Files that other programs change are not noticed, and neither does the editor tell of them";
            session.notices.warn(format!("{said}: {error}."));
            State::Refused
        }
    }
}

/// Whether a text may be another one. Files are also opened, read and closed.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

async fn act(session: Weak<Session>, mut changes: UnboundedReceiver<PathBuf>) {
    // Ends with the session, which holds the sending end.
    while let Some(first) = changes.recv().await {
        tokio::time::sleep(GATHERED).await;
        let mut paths = HashSet::from([first]);
        while let Ok(path) = changes.try_recv() {
            paths.insert(path);
        }
        let Some(session) = session.upgrade() else { return };
        watched::changed(&session, paths.iter().map(PathBuf::as_path));
    }
}
