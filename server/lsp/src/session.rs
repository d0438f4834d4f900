//! What all parts of the server share.
//!
//! Locks are held for microseconds, never across an await, and never two at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stitch_analysis::Workspace;
use stitch_findings::{Anchored, Finding, Severity, Span};
use stitch_session::config::Config;
use stitch_session::jobs::Jobs;
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower_lsp::Client;

use crate::analysis::Queue;
use crate::board::Board;
use crate::capabilities::ClientFeatures;
use crate::compile::Compiles;
use crate::configuration::Configuration;
use crate::disk::{self, Disk};
use crate::documents::{Document, Documents, Outcome};
use crate::elsewhere::Machines;
use crate::headers::Headers;
use crate::ingress::Phase;
use crate::notices::Notices;
use crate::profile::import::Imports;
use crate::profile::{self, Profiles};
use crate::publisher::Publisher;
use crate::status::StatusLine;
use crate::to_proto::{self, Publish, Target};
use crate::toolkit::Toolkits;
use crate::typecheck::TypeChecks;
use crate::uri::Key;
use crate::view::{Placed, View, edit_between};
use crate::{Options, closed, compile};

/// How long a request waits for the analysis of its version. An answer from an older one, moved to the right places, is better than
/// one that comes too late.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long one waits whose answer would be wrong from nothing: an empty outline says that there is nothing in the file. Less than
/// a handler may take.
const LONGEST_WAIT_FOR_FIRST: Duration = Duration::from_secs(50);

/// Diagnostics that a client is sent of one file. More are read by nobody, and cost each editor seconds.
const MOST_DIAGNOSTICS: usize = 1000;

/// What all parts share.
#[derive(Debug)]
pub struct Session {
    /// How far the connection is.
    pub phase: Phase,
    /// Documents that wait for their analysis.
    pub queue: Queue,
    /// Documents with something new to publish.
    pub publisher: Publisher,
    /// What is to be said to the person.
    pub notices: Notices,
    /// Told when `initialize` was answered and the client is ready.
    pub ready: Notify,
    /// What runs in the background.
    pub jobs: Jobs,
    /// What plugins are shown of that.
    pub board: Board,
    /// What the lines of programs move.
    pub profiles: Profiles,
    /// What profilers wrote elsewhere.
    pub imports: Imports,
    /// Whether the person wants nothing to be compiled by itself.
    pub paused: AtomicBool,
    /// The last compile of each document.
    pub compiles: Compiles,
    /// The settings.
    pub configuration: Configuration,
    /// The status line.
    pub status: StatusLine,
    /// The toolkits that were found.
    pub toolkits: Toolkits,
    /// Other machines whose devices are configured.
    pub machines: Machines,
    /// What headers define.
    pub headers: Headers,
    /// Files that the server watches itself.
    pub disk: Disk,
    /// clang's checks between keystrokes.
    pub type_checks: TypeChecks,
    /// Cancelled when the server ends.
    pub gone: CancellationToken,
    /// The environment in which tools are looked for.
    pub environment: Environment,
    /// Where work goes from threads that are not the runtime's.
    pub runtime: Handle,
    /// Makes the next analysis panic.
    #[cfg(test)]
    pub fail_analysis: std::sync::atomic::AtomicBool,
    client: OnceLock<Client>,
    features: OnceLock<ClientFeatures>,
    documents: Mutex<Documents>,
}

impl Session {
    /// A session that nothing has happened in, on the runtime that it is made on.
    pub fn new(notices: Notices, publisher: Publisher, gone: &CancellationToken, options: Options) -> Self {
        let runtime = Handle::current();
        Self {
            phase: Phase::default(),
            queue: Queue::default(),
            publisher,
            notices,
            jobs: Jobs::new(runtime.clone(), gone.child_token(), Jobs::processors()),
            board: Board::default(),
            profiles: Profiles::default(),
            imports: Imports::default(),
            paused: AtomicBool::new(false),
            ready: Notify::new(),
            compiles: Compiles::default(),
            configuration: Configuration::new(options.surroundings),
            status: StatusLine::default(),
            toolkits: Toolkits::default(),
            machines: Machines::default(),
            headers: Headers::default(),
            disk: Disk::default(),
            type_checks: TypeChecks::default(),
            gone: gone.child_token(),
            environment: options.environment,
            runtime,
            #[cfg(test)]
            fail_analysis: false.into(),
            client: OnceLock::new(),
            features: OnceLock::new(),
            documents: Mutex::default(),
        }
    }

    /// The client, once the service is built.
    pub fn client(&self) -> Option<Client> {
        self.client.get().cloned()
    }

    /// Gives the client that the service was built with.
    pub fn set_client(&self, client: Client) {
        let _ = self.client.set(client);
    }

    /// What the client can do; nothing before `initialize`.
    pub fn features(&self) -> ClientFeatures {
        self.features.get().cloned().unwrap_or_default()
    }

    /// What the client said in `initialize`. Only the first time counts.
    pub fn set_features(&self, features: ClientFeatures) {
        self.documents().encoding = features.encoding;
        let _ = self.features.set(features);
    }

    /// All documents. Hold it shortly.
    pub fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest version of a document, by any of its spellings.
    pub fn document(&self, uri: &str) -> Option<Arc<Document>> {
        self.documents().get(&Key::of(uri)).cloned()
    }

    /// Makes a change to the documents, or says why it can't be read.
    pub fn apply<P>(
        self: &Arc<Self>,
        params: Result<P, String>,
        change: impl FnOnce(&mut Documents, P) -> Outcome,
    ) {
        let outcome = match params {
            Ok(params) => change(&mut self.documents(), params),
            Err(note) => Outcome { note: Some(note), ..Outcome::default() },
        };
        if let Some(key) = outcome.changed {
            self.queue.push(key);
        }
        if !outcome.dirty.is_empty() {
            self.publisher.mark(outcome.dirty);
        }
        if let Some(note) = outcome.note {
            self.notices.warn(note);
        }
        if let Some(document) = outcome.opened.and_then(|key| self.documents().get(&key).cloned()) {
            // Settings of a folder are read with its first document, and so are their mistakes.
            self.say_warnings();
            if let Some(path) = document.path.clone() {
                let session = self.clone();
                self.runtime.spawn_blocking(move || disk::follow(&session, &path, &[]));
            }
            compile::start(self, &document, compile::Reason::Saved);
            profile::opened(self, document);
        }
        if let Some(key) = outcome.closed {
            compile::forget(self, &key);
            self.headers.forget(&key);
            self.type_checks.forget(&key);
            self.profiles.forget(&key);
            closed::settle(self, &key);
        }
    }

    /// Whether programs may be started that nobody asked for: compiles on save, checks between keystrokes.
    pub fn may_run_by_itself(&self) -> bool {
        self.configuration.is_trusted() && !self.paused.load(Ordering::SeqCst)
    }

    /// Where to look for toolkits and profilers under `config`, for the project in `workspace`.
    pub fn search(&self, config: &Config, workspace: Option<PathBuf>) -> Search {
        Search { configured: config.nvcc.path.clone(), workspace, environment: self.environment.clone() }
    }

    /// Says what is wrong with the settings, each thing once.
    pub fn say_warnings(&self) {
        self.configuration.take_warnings().iter().for_each(|warning| self.notices.warn(warning.to_string()));
    }

    /// What headers near the document define.
    pub fn workspace_for(&self, document: &Document) -> Workspace {
        self.headers.workspace(&document.key)
    }

    /// A version with all that is known of it. Waits a bounded time for its analysis.
    pub async fn view(&self, document: Arc<Document>) -> View {
        if document.to_analyse().is_some() {
            let _ = tokio::time::timeout(LONGEST_WAIT, document.analysed()).await;
        }
        self.view_now(document)
    }

    /// The same, but waits long for the first analysis of a document. `None` if there is still none.
    pub async fn view_of_known(&self, document: Arc<Document>) -> Option<View> {
        if document.to_analyse().is_some() && document.last_analysis().is_none() {
            let _ = tokio::time::timeout(LONGEST_WAIT_FOR_FIRST, document.analysed()).await;
            document.last_analysis()?;
        }
        Some(self.view(document).await)
    }

    /// The same, from what is there.
    pub fn view_now(&self, document: Arc<Document>) -> View {
        let mut view = View::new(document.clone(), self.features().encoding);
        let path = document.path.as_deref();
        view.profile = self.profiles.shown(&document.key, path, || document.text.to_source());
        let config = self.configuration.for_path(document.path.as_deref());
        let documents = self.documents();
        let Some(newest) = documents.get(&document.key) else { return view };
        let moved = match newest.revision == document.revision {
            true => None,
            false => edit_between(&newest.text.to_source(), &document.text.to_source()),
        };
        let place = |span| moved.map_or(span, |edit| edit.stretch(span));
        let findings = documents.store.findings(document.key.as_str());
        view.findings = findings
            .iter()
            .filter(|found| config.severity(found.item.code, found.item.severity).is_some())
            .map(|found| Placed { item: found.item.clone(), span: place(found.span), state: found.state })
            .collect();
        let measurements = documents.store.measurements(document.key.as_str());
        view.measurements = measurements
            .iter()
            .map(|found| Placed { item: found.item.clone(), span: place(found.span), state: found.state })
            .collect();
        view
    }

    /// Whether a document is open and of a kind that is analysed.
    pub fn is_analysed(&self, key: &Key) -> bool {
        self.documents().get(key).is_some_and(|document| document.to_analyse().is_some())
    }

    /// Everything the client should know of a document now. `None` for one that it never heard of, and before the first
    /// analysis: an empty list would say that all is well.
    pub fn publish(&self, key: &Key) -> Option<Publish> {
        let features = self.features();
        let config = self.configuration.for_path(key.to_path().as_deref());
        let mut documents = self.documents();
        let (uri, version, text) = match (documents.get(key), documents.closed.get(key)) {
            (Some(open), _) if open.to_analyse().is_some() && open.last_analysis().is_none() => return None,
            (Some(open), _) => (open.uri.clone(), open.version, open.text.clone()),
            (None, Some(closed)) => (closed.uri.clone(), None, closed.text.clone()),
            (None, None) => return None,
        };
        let target = Target { uri: &uri, text: &text, encoding: documents.encoding };
        let mut found: Vec<_> = Vec::new();
        for one in documents.store.findings(key.as_str()) {
            let severity = config.severity(one.item.code, one.item.severity);
            found.extend(severity.filter(|_| config.diagnostics.enable).map(|severity| (one, severity)));
        }
        // A header says the same for each file that includes it.
        found.dedup_by(|(one, _), (other, _)| one.span == other.span && one.item == other.item);
        let more = to_proto::more(&most_severe(&mut found, MOST_DIAGNOSTICS), target);
        let of = |(found, severity): &_| to_proto::diagnostic(found, *severity, target, &features);
        let mut diagnostics: Vec<_> = found.iter().map(of).collect();
        diagnostics.extend(more);
        if documents.get(key).is_none() && documents.store.findings(key.as_str()).is_empty() {
            documents.closed.remove(key);
        }
        Some(Publish { uri: uri.to_string(), version, diagnostics })
    }
}

/// Leaves the `most` most severe findings, in the order of the text, and returns the places of the others.
fn most_severe(found: &mut Vec<(Anchored<'_, Finding>, Severity)>, most: usize) -> Vec<Span> {
    if found.len() <= most {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    // Those of one severity stay in the order of the text.
    order.sort_by_key(|index| found[*index].1);
    let mut rest = order.split_off(most);
    rest.sort_unstable();
    order.sort_unstable();
    let spans = rest.iter().map(|index| found[*index].0.span).collect();
    *found = order.into_iter().map(|index| found[index].clone()).collect();
    spans
}
