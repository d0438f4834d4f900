//! The commands that `workspace/executeCommand` knows. Each returns at once; what takes long is a job.

use std::sync::Arc;

use serde_json::{Value, json};
use stitch_findings::Code;
use stitch_session::jobs::JobId;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::ls_types::{MessageType, Range};

use crate::documents::Document;
use crate::handlers::hover;
use crate::optimize::Extent;
use crate::resources::Resources;
use crate::session::Session;
use crate::uri::Key;
use crate::verify::Against;
use crate::{compile, from_proto, guard, optimize, profile, progress, verify};

/// Says what is known of a kernel: `[{"uri", "kernel"}]` gives `{"kernel", "markdown"}`.
pub const SHOW_KERNEL: &str = "stitchcuda.showKernel";
/// Says what a code means: `["static/uncoalesced-access"]` gives `{"code", "markdown"}`.
pub const EXPLAIN: &str = "stitchcuda.explain";
/// Compiles a document as if it were saved: `["file:///…"]` gives `{"job"}`.
pub const RECOMPILE: &str = "stitchcuda.recompile";
/// Optimises what is selected: `[{"uri", "range"}]` gives `{"job"}`; the result is offered for review when the job ends.
pub const OPTIMIZE: &str = "stitchcuda.optimize";
/// Writes the plan for what is selected, and tries nothing of it: `[{"uri", "range"}]` gives `{"job"}`.
pub const PLAN: &str = "stitchcuda.plan";
/// Verifies a document against another file or another version: `[{"uri", "range"?, "candidate"}]` or `[{"uri", "range"?, "reference":
/// "saved" | "committed"}]` gives `{"job"}`.
pub const VERIFY: &str = "stitchcuda.verify";
/// Has profilers look at the program or the module that a document is, or the simulator: `["file:///…"]` gives `{"job"}`.
pub const PROFILE: &str = "stitchcuda.profile";
/// Reads what a profiler wrote elsewhere, and tells it at the lines of the documents that it speaks of: `["file:///…/report.ncu-rep"]` gives
/// `{"job"}`.
pub const IMPORT: &str = "stitchcuda.importProfile";
/// Cancels a job: `[7]` gives whether it ran.
pub const CANCEL: &str = "stitchcuda.cancel";
/// Lists the jobs that run: `[]` gives `[{"id", "title"}]`.
pub const JOBS: &str = "stitchcuda.jobs";

/// All of them.
pub const NAMES: &[&str] =
    &[SHOW_KERNEL, EXPLAIN, RECOMPILE, OPTIMIZE, PLAN, VERIFY, PROFILE, IMPORT, CANCEL, JOBS];

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
        OPTIMIZE => optimize(session, OPTIMIZE, Extent::Candidate, argument),
        PLAN => optimize(session, PLAN, Extent::Plan, argument),
        VERIFY => verify(session, argument),
        PROFILE => profile(session, argument),
        IMPORT => import(session, argument),
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

fn optimize(session: &Arc<Session>, name: &str, extent: Extent, argument: &Value) -> Result<Value> {
    let refuse = || wrong(name, "`uri` and `range` of an open document", argument);
    let document = open_document(session, &argument["uri"]).ok_or_else(refuse)?;
    let range: Range = serde_json::from_value(argument["range"].clone()).map_err(|_| refuse())?;
    let selection = from_proto::request_span(range, &document.text, session.features().encoding);
    begun(session, extent.done(), optimize::start(session, &document, selection, extent))
}

fn verify(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let refuse = || {
        let expected = "`uri` of an open document, and `candidate`, the URI of a file, or `reference`, `saved` or `committed`";
        wrong(VERIFY, expected, argument)
    };
    let document = open_document(session, &argument["uri"]).ok_or_else(refuse)?;
    let against = match (argument["candidate"].as_str(), argument["reference"].as_str()) {
        (Some(uri), None) => Against::File(Key::of(uri)),
        (None, Some("saved")) => Against::Saved,
        (None, Some("committed")) => Against::Committed,
        _ => return Err(refuse()),
    };
    let range: Option<Range> = serde_json::from_value(argument["range"].clone()).map_err(|_| refuse())?;
    let encoding = session.features().encoding;
    let selection = range.map(|range| from_proto::request_span(range, &document.text, encoding));
    begun(session, "verified", verify::start(session, &document, selection, against))
}

fn profile(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let document = open_document(session, argument);
    let document = document.ok_or_else(|| wrong(PROFILE, "the URI of an open document", argument))?;
    begun(session, "profiled", profile::start(session, &document))
}

fn import(session: &Arc<Session>, argument: &Value) -> Result<Value> {
    let path = argument.as_str().and_then(|uri| Key::of(uri).to_path());
    let path = path.ok_or_else(|| wrong(IMPORT, "the URI of a file of this machine", argument))?;
    begun(session, "imported", profile::import::start(session, path))
}

/// The job that was begun; or why none was, which the person is told too.
fn begun(session: &Session, done: &str, started: std::result::Result<JobId, String>) -> Result<Value> {
    started.map(|job| json!({"job": job})).map_err(|reason| {
        let said = format!("Nothing was {done}: {}.", reason.trim_end_matches('.'));
        session.notices.show(MessageType::WARNING, said.clone());
        guard::failed(said)
    })
}

fn open_document(session: &Session, uri: &Value) -> Option<Arc<Document>> {
    session.document(uri.as_str()?)
}

fn wrong(command: &str, expected: &str, argument: &Value) -> Error {
    Error::invalid_params(format!("`{command}` takes {expected}, not {argument}."))
}
