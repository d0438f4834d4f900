//! What else is compiled when a file is saved: the open sources that include it, whose findings it may have changed.

use std::path::Path;
use std::sync::Arc;

use stitch_analysis::Language;
use stitch_verifier::includes;

use crate::compile::{self, Reason};
use crate::documents::Document;
use crate::session::Session;
use crate::watched;

/// Compiles the open sources that include `saved`, directly or through others. Files are read, off the threads that answer.
pub fn compile(session: &Arc<Session>, saved: &Document) {
    let Some(path) = saved.path.clone() else { return };
    let is_source = |document: &&Arc<Document>| {
        document.key != saved.key
            && document.to_analyse() == Some(Language::Cuda)
            && document.path.as_ref().is_some_and(|path| !watched::is_header(path))
    };
    let mut sources: Vec<_> = session.documents().all().filter(is_source).cloned().collect();
    if sources.is_empty() {
        return;
    }
    let session = session.clone();
    session.runtime.clone().spawn(async move {
        let search = move || {
            let path = path.canonicalize().unwrap_or(path);
            sources.retain(|source| includes_file(source, &path));
            sources
        };
        let Ok(sources) = tokio::task::spawn_blocking(search).await else { return };
        for source in &sources {
            compile::start(&session, source, Reason::Saved);
        }
    });
}

fn includes_file(source: &Document, file: &Path) -> bool {
    let Some(path) = &source.path else { return false };
    includes::headers(path, &source.text.to_source()).iter().any(|header| header == file)
}
