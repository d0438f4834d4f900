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
