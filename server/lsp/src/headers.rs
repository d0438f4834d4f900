//! What the headers of a document define, kept for the reading of its macros and constants while it is open.
//!
//! They are read off the threads that answer, and again only when the names that the document includes change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stitch_analysis::{Analysis, Language, Workspace};
use stitch_findings::ReadText;
use stitch_verifier::includes;

use crate::disk;
use crate::documents::Document;
use crate::session::Session;
use crate::uri::Key;

/// What is known of the headers of each open document.
#[derive(Debug, Default)]
pub struct Headers(Mutex<HashMap<Key, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The includes that it was made from.
    includes: Option<Vec<String>>,
    /// A hash of all that was read.
    hash: u64,
    workspace: Workspace,
}

impl Headers {
    /// What is known for a document.
    pub fn workspace(&self, key: &Key) -> Workspace {
        self.lock().get(key).map(|known| known.workspace.clone()).unwrap_or_default()
    }

    /// Forgets a document that was closed.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Reads all again after the next analysis: a header changed on disk.
    pub fn changed_on_disk(&self) {
        self.lock().values_mut().for_each(|known| known.includes = None);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After an analysis: reads the headers if the includes changed, and analyses again if they say something new.
pub fn follow(session: &Arc<Session>, document: &Document, analysis: &Analysis) {
    let Some(path) = document.path.clone().filter(|_| analysis.language() == Language::Cuda) else { return };
    let quoted = includes::quoted(analysis.source());
    let mut headers = session.headers.lock();
    let known = headers.entry(document.key.clone()).or_default();
    if known.includes.as_ref() == Some(&quoted) {
        return;
    }
    known.includes = Some(quoted);
    drop(headers);
    let (session, key) = (session.clone(), document.key.clone());
    let (runtime, source) = (session.runtime.clone(), analysis.source().clone());
    runtime.spawn_blocking(move || {
        let files = includes::headers(&path, &source);
        disk::follow(&session, &path, &files);
        let texts: Vec<String> = files.iter().filter_map(|file| includes::read(file)).collect();
        let mut workspace = Workspace::default();
        texts.iter().for_each(|text| workspace.add(text));
        let hash = texts.concat().as_str().content_hash();
        let mut headers = session.headers.lock();
        let Some(known) = headers.get_mut(&key).filter(|known| known.hash != hash) else { return };
        (known.hash, known.workspace) = (hash, workspace);
        drop(headers);
        session.queue.push(key);
    });
}
