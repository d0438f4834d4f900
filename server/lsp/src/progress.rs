//! Shows jobs as progress in the editor, with a button to cancel; whether any runs, and why one failed, in the status.
//!
//! Each job's messages have a task of their own: the client has to accept a token before the first, and may take its time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use stitch_session::jobs::{Event, Happening, JobId, JobKind, Listener, Outcome};
use tokio::sync::mpsc;
use tower_lsp::Client;
use tower_lsp::ls_types::notification::Progress;
use tower_lsp::ls_types::{
    MessageType, NumberOrString, ProgressParams, ProgressParamsValue, WorkDoneProgress,
    WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport,
};

use crate::session::Session;
use crate::{board, guard};

/// Tokens are `stitchcuda/7` for job 7.
const PREFIX: &str = "stitchcuda/";

/// Follows all jobs until the session ends.
pub async fn run(session: Arc<Session>, client: Client, mut events: Listener) {
    let mut shown: HashMap<JobId, mpsc::UnboundedSender<Happening>> = HashMap::new();
    let mut running = HashSet::new();
    while let Some(Event { job, kind, title, happening }) = events.next().await {
        let ended = matches!(happening, Happening::Finished(_));
        match &happening {
            Happening::Started => {
                running.insert(job);
                if session.features().progress {
                    let (sender, happenings) = mpsc::unbounded_channel();
                    shown.insert(job, sender);
                    tokio::spawn(show(client.clone(), job, title, happenings));
                }
            }
            Happening::Finished(outcome) => {
                running.remove(&job);
                if let Outcome::Failed { message } = outcome {
                    failed(&session, kind, &title, message);
                }
            }
            Happening::Note { message } => {
                session.board.write(job, |card| card.note = Some(message.clone()));
                session.notices.info(format!("{title}: {message}"));
            }
            Happening::Progress { .. } => {}
        }
        session.status.update(&session.notices, |status| status.busy = !running.is_empty());
        // A job may be over while its notes are still told. Its end is told with the last of them.
        if ended || !board::is_over(&session, job) {
            board::tell(&session, job);
        }
        if let Some(sender) = shown.get(&job) {
            // Its task ends only when the client did not accept the token.
            let _ = sender.send(happening);
        }
        if ended {
            shown.remove(&job);
        }
    }
}

/// A job could not do what it was for. Of one that a person asked for that is an answer; of one that came by itself it is how the
/// tools are.
fn failed(session: &Session, kind: JobKind, title: &str, message: &str) {
    match kind {
        JobKind::Compile | JobKind::TypeCheck | JobKind::Install => {
            session.status.trouble(&session.notices, message);
        }
        JobKind::Profile | JobKind::Verify | JobKind::Plan | JobKind::Optimize => {
            session.notices.show(MessageType::ERROR, format!("{title}: {message}"));
        }
    }
}

/// The job that a token of ours stands for.
pub fn job_of(token: &NumberOrString) -> Option<JobId> {
    let NumberOrString::String(token) = token else { return None };
    job_numbered(token.strip_prefix(PREFIX)?.parse().ok()?)
}

/// The job of this number.
pub fn job_numbered(number: u64) -> Option<JobId> {
    serde_json::from_value(number.into()).ok()
}

async fn show(client: Client, job: JobId, title: String, mut happenings: mpsc::UnboundedReceiver<Happening>) {
    let number = serde_json::to_value(job).unwrap_or_default();
    let token = NumberOrString::String(format!("{PREFIX}{number}"));
    if guard::answer(client.create_work_done_progress(token.clone())).await.is_none() {
        return;
    }
    let send = async |value| {
        let value = ProgressParamsValue::WorkDone(value);
        client.send_notification::<Progress>(ProgressParams { token: token.clone(), value }).await;
    };
    let begin = WorkDoneProgressBegin { title, cancellable: Some(true), message: None, percentage: None };
    send(WorkDoneProgress::Begin(begin)).await;
    let mut last = None;
    while let Some(happening) = happenings.recv().await {
        match happening {
            Happening::Progress { message, fraction } => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
                let percentage = fraction.map(|fraction| (fraction.clamp(0.0, 1.0) * 100.0) as u32);
                let report =
                    WorkDoneProgressReport { cancellable: Some(true), message: Some(message), percentage };
                send(WorkDoneProgress::Report(report)).await;
            }
            Happening::Finished(outcome) => {
                last = Some(match outcome {
                    Outcome::Done => "done".to_owned(),
                    Outcome::Cancelled => "cancelled".to_owned(),
                    Outcome::Failed { .. } => "failed".to_owned(),
                });
            }
            Happening::Started | Happening::Note { .. } => {}
        }
    }
    send(WorkDoneProgress::End(WorkDoneProgressEnd { message: last })).await;
}
