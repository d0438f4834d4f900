//! clang's type check of unsaved text, in the pauses between keystrokes, where clang is installed.
//!
//! A check starts when nothing was typed for a moment, and a newer text kills it. It is no job: a person did not ask for it, and
//! an editor that shows progress at each pause would flicker. What nvcc says on the next save replaces it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stitch_analysis::Language;
use stitch_findings::{Batch, Producer};
use stitch_session::config::{self, Config, Switch};
use stitch_toolchain::compile_commands::CompileCommands;
use stitch_toolchain::process::Program;
use stitch_verifier::architecture::Architecture;
use stitch_verifier::clang::{self, Clang, ClangReport, ClangRequest};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::documents::Document;
use crate::live::Analysed;
use crate::session::Session;
use crate::toolkit;
use crate::view::edit_between;

/// How long nothing may be typed before a check starts.
const PAUSE: Duration = Duration::from_millis(150);

/// How long a program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// Checked for where neither the configuration nor a device says: all current CUDA versions know it.
const USUAL: Architecture = Architecture::new(8, 0);

/// The checks that run, and the clang they run.
#[derive(Debug, Default)]
pub struct TypeChecks {
    running: Mutex<HashMap<crate::uri::Key, CancellationToken>>,
    found: OnceCell<Option<Clang>>,
}

impl TypeChecks {
    /// Ends the check of a document, and gives the token of the next.
    fn renew(&self, document: &Document, parent: &CancellationToken) -> CancellationToken {
        let token = parent.child_token();
        let older = self.lock().insert(document.key.clone(), token.clone());
        if let Some(older) = older {
            older.cancel();
        }
        token
    }

    /// Ends the check of a document that was closed.
    pub fn forget(&self, key: &crate::uri::Key) {
        if let Some(token) = self.lock().remove(key) {
            token.cancel();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<crate::uri::Key, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A version was analysed: checks it after a pause, if it has changes that are not saved.
pub fn follow(session: &Arc<Session>, document: &Arc<Document>) {
    let Some(path) = document.path.clone().filter(|_| document.to_analyse() == Some(Language::Cuda)) else {
        return;
    };
    let token = session.type_checks.renew(document, &session.gone);
    if !document.live.is_edited() || !session.may_run_by_itself() {
        return;
    }
    let (session, document) = (session.clone(), document.clone());
    session.runtime.clone().spawn(async move {
        let check = async {
            tokio::time::sleep(PAUSE).await;
            check(&session, &document, &path, &token).await
        };
        if let Some(Some(report)) = token.run_until_cancelled(check).await {
            store(&session, &document, report);
        }
    });
}

async fn check(
    session: &Arc<Session>,
    document: &Document,
    path: &Path,
    token: &CancellationToken,
) -> Option<ClangReport> {
    let config = session.configuration.for_path(Some(path));
    if config.clang.enable == Switch::Off {
        return None;
    }
    let Some(clang) = find(session, &config, token).await else {
        if config.clang.enable == Switch::On {
            session.status.trouble(&session.notices, "clang is wanted between keystrokes, but none was found. Install clang 20 or newer, or set stitchcuda.clang.path.");
        }
        return None;
    };
    let workspace = session.configuration.folder_of(path);
    let toolkit = toolkit::find(session, &config, workspace.as_deref()).await.ok()?;
    let (directory, flags) = flags(path, workspace, &config).await;
    let text = document.text.to_source();
    let architecture = architecture(&config).await;
    let request = ClangRequest { path: path.to_owned(), text, flags, directory, toolkit, architecture };
    match clang::check(&clang, &request, token).await {
        Ok(report) => Some(report),
        Err(error) => {
            tracing::debug!("clang did not check: {error}");
            None
        }
    }
}

/// The clang to run: looked for once.
async fn find(session: &Session, config: &Config, token: &CancellationToken) -> Option<Clang> {
    if let Some(path) = &config.clang.path {
        let asked = Program::new(path).arg("--version").time_limit(VERSION_LIMIT).run(token).await.ok()?;
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        let major = said.split("version ").nth(1)?.split('.').next()?.parse().ok()?;
        return Some(Clang { path: path.clone(), major });
    }
    session.type_checks.found.get_or_init(|| Clang::find(&session.environment, &session.gone)).await.clone()
}

/// The project's flags for the file, and the folder that they are relative to.
async fn flags(path: &Path, workspace: Option<PathBuf>, config: &Config) -> (PathBuf, Vec<String>) {
    let file = path.to_owned();
    let asked = move || {
        let commands = CompileCommands::find(&file, workspace.as_deref())?.ok()?;
        commands.flags_for(&file)?.ok()
    };
    match tokio::task::spawn_blocking(asked).await.ok().flatten() {
        Some(flags) => (flags.directory, flags.arguments),
        None => (path.parent().unwrap_or(path).to_owned(), config.nvcc.extra_flags.clone()),
    }
}

async fn architecture(config: &Config) -> Architecture {
    let configured = match &config.nvcc.architecture {
        config::Architecture::Named(name) => name.parse().ok(),
        config::Architecture::Auto => None,
    };
    match configured {
        Some(architecture) => architecture,
        None => stitch_verifier::device::architecture().await.unwrap_or(USUAL),
    }
}

/// Puts what clang said in place of what it said before.
fn store(session: &Session, document: &Document, report: ClangReport) {
    if let Some(note) = &report.note {
        session.status.say_once(&session.notices, note);
    }
    let source = document.text.to_source();
    let analysed = document.last_analysis().filter(|last| last.revision == document.revision);
    let scopes =
        analysed.as_deref().and_then(|Analysed { analysis, .. }| Some(analysis.as_ref()?.function_spans()));
    let mut batch = Batch::new(&*source, &scopes.unwrap_or_default(), report.findings, Vec::new());
    let mut documents = session.documents();
    let Some(newest) =
        documents.get(&document.key).filter(|newest| Arc::ptr_eq(&newest.live, &document.live))
    else {
        return;
    };
    if newest.revision != document.revision {
        let now = newest.text.to_source();
        if let Some(edit) = edit_between(&source, &now) {
            batch.follow(&[edit], &*now);
        }
    }
    documents.store.replace(document.key.as_str(), Producer::Clang, document.key.as_str(), batch);
    drop(documents);
    session.publisher.mark([document.key.clone()]);
}
