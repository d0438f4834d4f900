//! The jobs, for a view of them.

use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use crate::session::Session;
use crate::{board, progress};

/// `stitchcuda/jobs`: `{"jobs": […]}`, each as `stitchcuda/job` tells it, the oldest first.
///
/// # Errors
/// None that a client can mend.
pub fn list(session: &Session) -> Result<Value> {
    let jobs = serde_json::to_value(board::all(session)).map_err(|_| Error::internal_error())?;
    Ok(json!({ "jobs": jobs }))
}

/// `stitchcuda/verdict`: `{"job": 7}` gives what the Verifier said in it, as `stitchcuda verify --format json` prints it.
///
/// # Errors
/// No number of a job that came to a verdict.
pub fn verdict(session: &Session, params: &Value) -> Result<Value> {
    let job = params["job"].as_u64().and_then(progress::job_numbered);
    let verdict = job.and_then(|job| session.board.verdict(job)).ok_or_else(|| {
        Error::invalid_params(format!(
            "`stitchcuda/verdict` takes the number of a job that came to a verdict as `job`, not {params}."
        ))
    })?;
    let mut value = serde_json::to_value(&*verdict).map_err(|_| Error::internal_error())?;
    value["schema"] = "stitchcuda.verdict/1".into();
    Ok(value)
}

/// `stitchcuda/cancel`: `{"job": 7}` gives whether it ran.
///
/// # Errors
/// No number of a job.
pub fn cancel(session: &Session, params: &Value) -> Result<Value> {
    let job = params["job"].as_u64().and_then(progress::job_numbered);
    let job = job.ok_or_else(|| {
        Error::invalid_params(format!(
            "`stitchcuda/cancel` takes the number of a job as `job`, not {params}."
        ))
    })?;
    Ok(json!({ "cancelled": session.jobs.cancel(job) }))
}
