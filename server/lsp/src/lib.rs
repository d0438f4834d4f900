//! The language server: the only room that knows the Language Server Protocol.
//!
//! ```text
//! stdin -> frames -> message -> transport -> ingress -> tower-lsp's router -> server -> handlers
//!                                              |                                          ^
//!                                         documents -> analysis -> store -> publisher    view
//!                                              ^                      |
//!                                         compile (on save) ----------+
//! ```
//!
//! **Invariants.** Texts change in the order of the wire, in one place (`ingress`). One place publishes (`publisher`). A handler is
//! convert in, call, convert out, and waits for nothing longer than an analysis. No panic leaves a handler (`guard`). The
//! process ends within two seconds of its client (`watchdog`).

mod analysis;
mod board;
mod capabilities;
mod closed;
mod compile;
mod configuration;
mod dependents;
mod disk;
mod documents;
mod elsewhere;
mod frames;
mod from_proto;
mod guard;
mod handlers;
mod headers;
mod ingress;
mod initialize;
mod live;
mod logfile;
mod message;
mod notices;
mod optimize;
mod outbox;
mod plain;
mod plugin;
mod profile;
mod progress;
mod publisher;
mod related;
mod resources;
mod review;
mod runs;
mod server;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod to_proto;
mod toolkit;
mod transport;
mod typecheck;
mod uri;
mod verify;
mod view;
mod watchdog;
mod watched;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use stitch_session::config::Surroundings;
use stitch_toolchain::environment::Environment;
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;
use tower_lsp::LspService;

use crate::ingress::Ingress;
use crate::publisher::Publisher;
use crate::server::Server;
use crate::session::Session;
use crate::watchdog::Watchdog;

/// How the server runs.
#[derive(Clone)]
pub struct Options {
    /// Whether the process is only this server, on its own standard streams: it is then ended when the client is gone, even if
    /// parts of it are stuck.
    pub owns_process: bool,
    /// What the settings depend on besides the client.
    pub surroundings: Surroundings,
    /// The environment in which tools are looked for.
    pub environment: Environment,
}

impl Options {
    /// For a server that is all its process does, started with these settings as flags.
    pub fn of_this_process(flags: Vec<(String, String)>) -> Self {
        Self {
            owns_process: true,
            surroundings: Surroundings::of_this_process(flags),
            environment: Environment::of_this_process(),
        }
    }
}

/// How long jobs are waited for at the end. With the last answers it stays under the two seconds that are promised.
const LAST_JOBS: Duration = Duration::from_millis(700);

/// Serves one client until it is gone, and returns the exit status that LSP 3.17 asks for: 0 after `shutdown`, else 1.
///
/// # Errors
/// The system gives no more threads.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl io::Write + Send + 'static,
    options: Options,
) -> io::Result<u8> {
    let gone = CancellationToken::new();
    let watchdog = Watchdog::default();
    watchdog.set_status(1);
    if options.owns_process {
        watchdog.guard_process(gone.clone())?;
    }
    let (notices, said) = notices::channel();
    let (outbox, writer) = outbox::outbox();
    let session = Arc::new(Session::new(notices, Publisher::new(outbox.clone()), &gone, options));
    let (service, socket) = service(&session, &watchdog);
    let client = service.inner().client.clone();
    session.set_client(client.clone());
    analysis::start(&session)?;
    let ready = session.clone();
    let ready = async move { ready.ready.notified().await };
    let beside = [
        tokio::spawn(publisher::run(session.clone())),
        tokio::spawn(progress::run(session.clone(), client.clone(), session.jobs.listen())),
        tokio::spawn(notices::run(session.clone(), said, client, ready)),
        tokio::spawn(watchdog.clone().run(gone.clone())),
    ];
    let ingress = Ingress::new(service, session.clone());
    let end = transport::run(input, output, (outbox, writer), ingress, socket, &gone).await?;
    tracing::debug!("the connection ended: {end:?}");
    let status = u8::from(!session.phase.is_shut_down());
    gone.cancel();
    session.queue.stop();
    // What does not end in time is killed by its supervisor once this process is gone.
    let _ = tokio::time::timeout(LAST_JOBS, session.jobs.shutdown()).await;
    beside.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(status)
}

fn service(session: &Arc<Session>, watchdog: &Watchdog) -> (LspService<Server>, tower_lsp::ClientSocket) {
    let (session, watchdog) = (session.clone(), watchdog.clone());
    let builder = LspService::build(|client| Server { session, client, watchdog })
        .custom_method("window/workDoneProgress/cancel", Server::cancel_progress)
        .custom_method("stitchcuda/jobs", Server::plugin_jobs)
        .custom_method("stitchcuda/cancel", Server::plugin_cancel)
        .custom_method("stitchcuda/verdict", Server::plugin_verdict)
        .custom_method("stitchcuda/runs", Server::plugin_runs)
        .custom_method("stitchcuda/run", Server::plugin_run)
        .custom_method("stitchcuda/candidate", Server::plugin_candidate)
        .custom_method("stitchcuda/accept", Server::plugin_accept)
        .custom_method("stitchcuda/reject", Server::plugin_reject)
        .custom_method("stitchcuda/status", Server::plugin_status)
        .custom_method("stitchcuda/pause", Server::plugin_pause)
        .custom_method("stitchcuda/heat", Server::plugin_heat)
        .custom_method("stitchcuda/doctor", Server::plugin_doctor);
    #[cfg(test)]
    let builder = tests::hooks::add(builder);
    builder.finish()
}
