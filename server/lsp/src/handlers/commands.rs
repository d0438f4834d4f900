//! The commands that `workspace/executeCommand` knows. Each returns at once; what takes long is a job.

use std::sync::Arc;

use serde_json::{Value, json};
use stitch_findings::Code;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::ls_types::{MessageType, Range};

use crate::documents::Document;
use crate::handlers::hover;
use crate::resources::Resources;
use crate::session::Session;
use crate::{compile, from_proto, guard, optimize, profile, progress};

/// Says what is known of a kernel: `[{"uri", "kernel"}]` gives `{"kernel", "markdown"}`.
pub const SHOW_KERNEL: &str = "stitchcuda.showKernel";
/// Says what a code means: `["static/uncoalesced-access"]` gives `{"code", "markdown"}`.
pub const EXPLAIN: &str = "stitchcuda.explain";
/// Compiles a document as if it were saved: `["file:///…"]` gives `{"job"}`.
pub const RECOMPILE: &str = "stitchcuda.recompile";
/// Optimises what is selected: `[{"uri", "range"}]` gives `{"job"}`; the result is offered for review when the job ends.
pub const OPTIMIZE: &str = "stitchcuda.optimize";
/// Runs the program that a document is on the simulator, for the heat of its lines: `["file:///…"]` gives `{"job"}`.
pub const PROFILE: &str = "stitchcuda.profile";
/// Cancels a job: `[7]` gives whether it ran.
pub const CANCEL: &str = "stitchcuda.cancel";
/// Lists the jobs that run: `[]` gives `[{"id", "title"}]`.
pub const JOBS: &str = "stitchcuda.jobs";

/// All of them.
pub const NAMES: &[&str] = &[SHOW_KERNEL, EXPLAIN, RECOMPILE, OPTIMIZE, PROFILE, CANCEL, JOBS];

/// Runs a command.
///
/// # Errors
/// An unknown command, or arguments that name nothing.
pub async fn execute(session: &Arc<Session>, command: &str, arguments: &[Value]) -> Result<Value> {
    let argument = arguments.first().unwrap_or(&Value::Null);
    match command {
        SHOW_KERNEL => show_kernel(session, argument).await,
        EXPLAIN => explain(argument),
        RECOMPILE => recompile(session, argument),
        OPTIMIZE => optimize(session, argument),
        PROFILE => profile(session, argument),
        CANCEL => {
            let job = argument.as_u64().and_then(progress::job_numbered);
            let job = job.ok_or_else(|| wrong(CANCEL, "the number of a job", argument))?;
            Ok(session.jobs.cancel(job).into())
        }
        JOBS => serde_json::to_value(session.jobs.list()).map_err(|_| Error::internal_error()),
        _ => Err(Error::invalid_params(format!("`{command}` is no command of this server."))),
    }
}

async fn show_kernel(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let refuse = || wrong(SHOW_KERNEL, "`uri` and `kernel` of an open document", argument);
    let document = open_document(session, &argument["uri"]).ok_or_else(refuse)?;
    let kernel = argument["kernel"].as_str().ok_or_else(refuse)?;
    let view = session.view(document).await;
    let span = view.kernels().find(|known| known.name == kernel).map(|known| view.place(known.name_span));
    let span = span.ok_or_else(refuse)?;
    // Editors without our plugin show nothing of a command's result.
    let summary = Resources::of(&view).iter().find(|known| known.span == span).map(Resources::summary);
    let summary = summary.unwrap_or_else(|| "not compiled yet; save the file".into());
    session.notices.show(MessageType::INFO, format!("{kernel}: {summary}"));
    Ok(json!({"kernel": kernel, "markdown": hover::about_kernel(&view, kernel)}))
}

fn explain(argument: &Value) -> Result<Value> {
    let code = argument
        .as_str()
        .and_then(Code::parse)
        .ok_or_else(|| wrong(EXPLAIN, "the code of a finding", argument))?;
    Ok(json!({"code": code.as_str(), "markdown": code.info().page}))
}

fn recompile(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let document = open_document(session, argument);
    let job = document.and_then(|document| compile::start(session, &document, compile::Reason::Asked));
    let job = job.ok_or_else(|| {
        wrong(RECOMPILE, "the URI of an open CUDA or Python file of a trusted workspace", argument)
    })?;
    Ok(json!({"job": job}))
}

fn optimize(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let refuse = || wrong(OPTIMIZE, "`uri` and `range` of an open document", argument);
    let document = open_document(session, &argument["uri"]).ok_or_else(refuse)?;
    let range: Range = serde_json::from_value(argument["range"].clone()).map_err(|_| refuse())?;
    let selection = from_proto::request_span(range, &document.text, session.features().encoding);
    match optimize::start(session, &document, selection) {
        Ok(job) => Ok(json!({"job": job})),
        Err(reason) => {
            session.notices.show(MessageType::WARNING, format!("Nothing was optimised: {reason}."));
            Err(guard::failed(format!("Nothing was optimised: {reason}.")))
        }
    }
}

fn profile(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let document = open_document(session, argument);
    let document = document.ok_or_else(|| wrong(PROFILE, "the URI of an open document", argument))?;
    match profile::start(session, &document) {
        Ok(job) => Ok(json!({"job": job})),
        Err(reason) => {
            session.notices.show(MessageType::WARNING, format!("Nothing was profiled: {reason}."));
            Err(guard::failed(format!("Nothing was profiled: {reason}.")))
        }
    }
}

fn open_document(session: &Session, uri: &Value) -> Option<Arc<Document>> {
    session.document(uri.as_str()?)
}

fn wrong(command: &str, expected: &str, argument: &Value) -> Error {
    Error::invalid_params(format!("`{command}` takes {expected}, not {argument}."))
}
