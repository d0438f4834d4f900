//! What is said to the person: log lines, messages, the status. One task sends them, in order, and none before `initialize`
//! was answered. Anyone may say something from anywhere without waiting; what a client is too slow to take is dropped.

use std::sync::Arc;

use serde::Serialize;
use stitch_session::config::LogLevel;
use tokio::sync::mpsc;
use tower_lsp::Client;
use tower_lsp::ls_types::MessageType;
use tower_lsp::ls_types::notification::Notification;

use crate::logfile;
use crate::session::Session;

/// More than a person would read.
const MOST_WAITING: usize = 512;

/// The server's state, for the editor's status line: `stitchcuda/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How well it goes.
    pub health: Health,
    /// What is wrong and what to do, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The toolkit that compiles: `CUDA 13.0 (/usr/local/cuda)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<String>,
    /// What it compiles for, and who says so: `sm_90`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Where kernels run: `cuda:0 (NVIDIA H200)`, `sim:h200`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What plans and codes: `builtin`, or `llm` with the model where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Whether a job runs.
    pub busy: bool,
    /// Whether the person wants nothing to be compiled by itself.
    pub paused: bool,
    /// Whether the workspace is not trusted, so that no program is run.
    pub restricted: bool,
}

/// How well it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// Everything that is wanted works.
    #[default]
    Ok,
    /// Something is missing; the rest works.
    Warning,
}

/// The notification `stitchcuda/status`.
pub enum StatusChanged {}

impl Notification for StatusChanged {
    type Params = serde_json::Value;
    const METHOD: &'static str = "stitchcuda/status";
}

/// The notification `stitchcuda/job`.
pub enum JobChanged {}

impl Notification for JobChanged {
    type Params = serde_json::Value;
    const METHOD: &'static str = "stitchcuda/job";
}

/// The notification `stitchcuda/review`.
pub enum ReviewOffered {}

impl Notification for ReviewOffered {
    type Params = serde_json::Value;
    const METHOD: &'static str = "stitchcuda/review";
}

/// Something to say.
#[derive(Debug)]
pub enum Notice {
    /// For the log.
    Log(MessageType, String),
    /// For the person's eyes, now.
    Show(MessageType, String),
    /// For the status line.
    Status(Status),
    /// For the list of jobs.
    Job(serde_json::Value),
    /// A candidate that the person may look at.
    Review(serde_json::Value),
}

/// The saying end.
#[derive(Clone, Debug)]
pub struct Notices(mpsc::Sender<Notice>);

/// A channel for what is to be said.
pub fn channel() -> (Notices, mpsc::Receiver<Notice>) {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    (Notices(sender), receiver)
}

impl Notices {
    /// For the log. Never source text.
    pub fn info(&self, text: impl Into<String>) {
        self.say(Notice::Log(MessageType::INFO, text.into()));
    }

    /// For the log, as a warning.
    pub fn warn(&self, text: impl Into<String>) {
        self.say(Notice::Log(MessageType::WARNING, text.into()));
    }

    /// A message that pops up.
    pub fn show(&self, kind: MessageType, text: impl Into<String>) {
        self.say(Notice::Show(kind, text.into()));
    }

    /// The status.
    pub fn status(&self, status: Status) {
        self.say(Notice::Status(status));
    }

    /// A job as it is now.
    pub fn job(&self, job: serde_json::Value) {
        self.say(Notice::Job(job));
    }

    /// A candidate that the person may look at.
    pub fn review(&self, offer: serde_json::Value) {
        self.say(Notice::Review(offer));
    }

    fn say(&self, notice: Notice) {
        // Full: the client does not read, and nobody sees it either way.
        let _ = self.0.try_send(notice);
    }
}

/// Sends what is to be said, once the client is ready. The log goes to a file instead, where one is configured.
pub async fn run(
    session: Arc<Session>,
    mut notices: mpsc::Receiver<Notice>,
    client: Client,
    ready: impl Future<Output = ()>,
) {
    ready.await;
    while let Some(notice) = notices.recv().await {
        match notice {
            Notice::Log(kind, text) => {
                let log = session.configuration.for_path(None).log.clone();
                if !is_wanted(log.level, kind) {
                    continue;
                }
                let name = if kind == MessageType::INFO { "info" } else { "warning" };
                let is_written = log.file.is_some_and(|path| logfile::append(&path, name, &text).is_ok());
                if !is_written {
                    client.log_message(kind, text).await;
                }
            }
            Notice::Show(kind, text) => client.show_message(kind, text).await,
            Notice::Job(job) => client.send_notification::<JobChanged>(job).await,
            Notice::Review(offer) => client.send_notification::<ReviewOffered>(offer).await,
            Notice::Status(_) if !session.features().plugin.status => {}
            Notice::Status(status) => {
                let status = serde_json::to_value(status).unwrap_or_default();
                client.send_notification::<StatusChanged>(status).await;
            }
        }
    }
}

fn is_wanted(level: LogLevel, kind: MessageType) -> bool {
    match level {
        LogLevel::Error => kind == MessageType::ERROR,
        LogLevel::Warn => kind != MessageType::INFO,
        LogLevel::Info | LogLevel::Debug | LogLevel::Trace => true,
    }
}
