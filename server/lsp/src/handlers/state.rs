//! The state of the server, and the switch that keeps it from compiling by itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use crate::compile;
use crate::session::Session;

/// `stitchcuda/status`: what the notification of that name tells.
///
/// # Errors
/// None that a client can mend.
pub fn status(session: &Session) -> Result<Value> {
    serde_json::to_value(session.status.now()).map_err(|_| Error::internal_error())
}

/// `stitchcuda/pause`: `{"paused": true}` ends what was started by itself and starts nothing more; `false` catches up.
///
/// # Errors
/// No such switch.
pub fn pause(session: &Arc<Session>, params: &Value) -> Result<Value> {
    let paused = params["paused"].as_bool().ok_or_else(|| {
        Error::invalid_params(format!("`stitchcuda/pause` takes true or false as `paused`, not {params}."))
    })?;
    session.paused.store(paused, Ordering::SeqCst);
    session.status.update(&session.notices, |status| status.paused = paused);
    let open: Vec<_> = session.documents().all().cloned().collect();
    for document in open {
        match paused {
            true => compile::forget(session, &document.key),
            false => drop(compile::start(session, &document, compile::Reason::Saved)),
        }
    }
    Ok(json!({ "paused": paused }))
}
