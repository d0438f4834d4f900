//! Files that change behind the editor's back: settings, compile commands, headers.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use stitch_session::config::FILE_NAME;
use tower_lsp::Client;
use tower_lsp::ls_types::Registration;

use crate::capabilities::ClientFeatures;
use crate::configuration;
use crate::guard;
use crate::session::Session;

/// The files that matter. Compile commands are read with each compile, so nothing is kept that a change would make wrong.
const HEADERS: [&str; 5] = ["cuh", "h", "hpp", "inl", "inc"];

/// Asks to be told of changes, where the client can be asked; where it can't, `disk` looks itself.
pub async fn register(client: Client, features: ClientFeatures) {
    let mut registrations = Vec::new();
    if features.watched_files {
        let patterns = [format!("**/{FILE_NAME}"), format!("**/*.{{{}}}", HEADERS.join(","))];
        let watchers: Vec<_> = patterns.iter().map(|pattern| json!({"globPattern": pattern})).collect();
        registrations.push(Registration {
            id: "stitchcuda/files".into(),
            method: "workspace/didChangeWatchedFiles".into(),
            register_options: Some(json!({"watchers": watchers})),
        });
    }
    if features.configuration_registration {
        registrations.push(Registration {
            id: "stitchcuda/configuration".into(),
            method: "workspace/didChangeConfiguration".into(),
            register_options: Some(json!({"section": "stitchcuda"})),
        });
    }
    if !registrations.is_empty() {
        guard::answer(client.register_capability(registrations)).await;
    }
}

/// Whether a file is one that others include, by its name.
pub fn is_header(path: &Path) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|name| HEADERS.contains(&name))
}

/// Whether it matters that a file changes.
pub fn counts(path: &Path) -> bool {
    is_header(path) || path.file_name().is_some_and(|name| name == FILE_NAME)
}

/// These files changed, came or went.
pub fn changed<'a>(session: &Arc<Session>, paths: impl Iterator<Item = &'a Path>) {
    let (mut settings, mut headers) = (false, false);
    for path in paths {
        settings |= path.file_name().is_some_and(|name| name == FILE_NAME);
        headers |= is_header(path);
    }
    if settings {
        session.configuration.reload();
        configuration::changed(session);
    }
    if headers {
        session.headers.changed_on_disk();
        let open: Vec<_> = session.documents().all().map(|document| document.key.clone()).collect();
        open.into_iter().for_each(|key| session.queue.push(key));
    }
}
