//! Runs: the report, candidates, and what the person decides about them. Files are read on a thread that may wait.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stitch_agents::run;
use tower_lsp::jsonrpc::{Error, Result};

use crate::session::Session;
use crate::{guard, runs};

/// A run, and of its attempts the one of this number.
#[derive(Clone, Debug, Deserialize)]
pub struct RunParams {
    run: String,
    #[serde(default)]
    attempt: Option<u32>,
}

/// `stitchcuda/runs`: the runs on this machine in one line each, the oldest first.
///
/// # Errors
/// No folder for runs is known.
pub async fn list() -> Result<Value> {
    let folder = runs::folder().map_err(guard::failed)?;
    let list = blocking(move || Ok(run::list(&folder).0)).await?;
    Ok(json!({ "runs": list }))
}

/// `stitchcuda/run`: everything that a run holds.
///
/// # Errors
/// There is no such run, or it can't be read.
pub async fn report(params: RunParams) -> Result<Value> {
    blocking(move || runs::report(&params.run)).await
}

/// `stitchcuda/candidate`: a candidate beside the code as it was.
///
/// # Errors
/// There is none that was kept.
pub async fn candidate(session: &Arc<Session>, params: RunParams) -> Result<Value> {
    let session = session.clone();
    blocking(move || runs::candidate(&session, &params.run, params.attempt)).await
}

/// `stitchcuda/accept`: has the edit made, by `workspace/applyEdit`; the version it is made to.
///
/// # Errors
/// The document is not open, or has another text than the run began with.
pub async fn accept(session: &Arc<Session>, params: RunParams) -> Result<Value> {
    let session = session.clone();
    let version = blocking(move || runs::accept(&session, &params.run, params.attempt)).await?;
    Ok(json!({ "version": version }))
}

/// `stitchcuda/reject`: the person does not want it.
pub fn reject(session: &Session, params: &RunParams) -> Value {
    runs::reject(session, &params.run);
    json!({})
}

async fn blocking<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, String> + Send + 'static,
) -> Result<Value> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| guard::internal(format!("A run was not read: {error}.")))?;
    serde_json::to_value(done.map_err(guard::failed)?).map_err(|_| Error::internal_error())
}
