//! A document was closed, perhaps with changes that were thrown away: what is still known of its file is placed in the text on disk.

use std::sync::Arc;

use stitch_analysis::Text;

use crate::session::Session;
use crate::uri::Key;
use crate::view::edit_between;

/// Places what other files' compiles said of a closed document. Nothing is read if they said nothing.
pub fn settle(session: &Arc<Session>, key: &Key) {
    let says_nothing = session.documents().store.findings(key.as_str()).is_empty();
    let Some(path) = key.to_path().filter(|_| !says_nothing) else { return };
    let (session, key) = (session.clone(), key.clone());
    session.runtime.clone().spawn_blocking(move || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut guard = session.documents();
        let documents = &mut *guard;
        // Opened again meanwhile, or nothing is left to be placed.
        let Some(closed) = documents.closed.get_mut(&key) else { return };
        let edit = edit_between(&closed.text.to_source(), &text);
        closed.text = Text::new(&text);
        documents.store.follow(key.as_str(), edit.as_slice(), &*text);
        drop(guard);
        session.publisher.mark([key]);
    });
}
