//! Compiles documents as jobs, on save and when they are opened, and puts what the compiler said where it belongs.
//!
//! One slot a document: the newest save wins, and the older compile's processes are killed. Opening compiles too, since the
//! result is mostly in the cache and a person wants numbers without touching the file. A run that finished replaces what the
//! compiler said before for the same file, also in headers it included; one that failed leaves it.
//!
//! Trouble with the tools is a status, never a finding.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stitch_analysis::{Analysis, Language, Text};
use stitch_findings::{Batch, Finding, Measurement, Producer, Span};
use stitch_session::cache::Cache;
use stitch_session::config::{Architecture, Config};
use stitch_session::folders::Folders;
use stitch_session::jobs::{Context, JobError, JobId, JobKind, Limit, Request};
use stitch_verifier::compile::{CompileReport, CompileRequest, FileReport, Lack, Trouble, gives_source};

use crate::configuration;
use crate::documents::{ClosedFile, Document};
use crate::related;
use crate::session::Session;
use crate::toolkit;
use crate::uri::{self, Key};
use crate::view::edit_between;

/// How long a Python file's analysis is waited for. Most have no CUDA in them and nothing to compile, and get no job.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Producers whose findings a compile makes.
const PRODUCERS: [Producer; 2] = [Producer::Nvcc, Producer::Ptxas];

/// Why a document is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was saved or opened; the configuration may have it off.
    Saved,
    /// A person asked.
    Asked,
}

/// The last compile of each open document.
#[derive(Debug, Default)]
pub struct Compiles(Mutex<HashMap<Key, JobId>>);

impl Compiles {
    fn put(&self, key: Key, job: JobId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, job);
    }

    fn take(&self, key: &Key) -> Option<JobId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }
}

/// Starts a compile. `None` for a document that has nothing to compile, or where it is off, or as long as that is not known.
pub fn start(session: &Arc<Session>, document: &Arc<Document>, reason: Reason) -> Option<JobId> {
    let path = document.path.clone()?;
    let language = document.to_analyse()?;
    let config = session.configuration.for_path(Some(&path));
    let by_itself = config.compile.on_save && session.may_run_by_itself();
    if !session.configuration.is_trusted() || reason == Reason::Saved && !by_itself {
        return None;
    }
    // New in the editor and not saved yet, or deleted behind its back: nothing is wrong, and there is nothing to compile.
    if reason == Reason::Saved && !path.exists() {
        return None;
    }
    if reason == Reason::Asked || language == Language::Cuda {
        return Some(begin(session, document, path, config));
    }
    let (session, document) = (session.clone(), document.clone());
    tokio::spawn(async move {
        if has_cuda(&document).await {
            begin(&session, &document, path, config);
        }
    });
    None
}

fn begin(session: &Arc<Session>, document: &Arc<Document>, path: PathBuf, config: Arc<Config>) -> JobId {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let request = Request::new(JobKind::Compile, format!("Compile {name}"))
        .slot(format!("compile {}", document.key.as_str()))
        .limit(Limit::Processor);
    let (for_job, compiled) = (session.clone(), document.clone());
    let job = session.jobs.start(request, move |context| async move {
        compile(&for_job, &compiled, &path, &config, &context).await
    });
    session.board.write(job.id(), |card| card.uri = Some(document.uri.to_string()));
    session.compiles.put(document.key.clone(), job.id());
    job.id()
}

/// The document was closed: nobody waits for its compile any more.
pub fn forget(session: &Session, key: &Key) {
    if let Some(job) = session.compiles.take(key) {
        session.jobs.cancel(job);
    }
}

async fn compile(
    session: &Arc<Session>,
    document: &Arc<Document>,
    path: &Path,
    config: &Config,
    context: &Context,
) -> Result<(), JobError> {
    let language = document.to_analyse().ok_or(JobError::Cancelled)?;
    let workspace = session.configuration.project_of(path);
    let toolkit = match toolkit::find(session, config, workspace.as_deref()).await {
        Ok(toolkit) => toolkit,
        // The status is told by who follows the jobs.
        Err(advice) => return Err(JobError::Failed(advice)),
    };
    let mut request = CompileRequest::new(path, document.text.to_source(), language, toolkit);
    request.workspace = workspace;
    request.flags = config.nvcc.extra_flags.clone();
    request.block_size = config.occupancy.assumed_block_size;
    request.time_limit = Duration::from_secs(config.compile.time_limit_seconds.into());
    request.cache = Some(Cache::configured(&config.cache, &Folders::find()));
    request.device = stitch_verifier::device::architecture().await;
    if let Architecture::Named(name) = &config.nvcc.architecture {
        request.architecture = Some(name.clone());
    }
    let report = match stitch_verifier::compile::compile(&request, context.cancellation()).await {
        Ok(report) => report,
        Err(Trouble::Cancelled) => return Err(JobError::Cancelled),
        Err(trouble) => return Err(JobError::failed(trouble)),
    };
    report.notes.iter().for_each(|note| context.note(note.clone()));
    let architecture = report.kernels.first().map(|kernel| kernel.architecture.clone());
    session
        .status
        .update(&session.notices, |status| status.architecture = architecture.or(status.architecture.take()));
    say_what_was_left_out(session, &report, context);
    take(session, document, report).await;
    configuration::refresh(session);
    Ok(())
}

/// What was not compiled for want of something is a status, as other trouble with tools is; the rest is a note.
fn say_what_was_left_out(session: &Session, report: &CompileReport, context: &Context) {
    for not in &report.not_compiled {
        context.note(format!("not compiled: {}", not.reason));
    }
    match report.not_compiled.iter().find(|not| not.lack != Lack::Nothing) {
        Some(not) => session.status.trouble(&session.notices, &not.reason),
        None => session.status.well(&session.notices),
    }
}

/// Whether a Python file has CUDA in it for a compiler.
async fn has_cuda(document: &Document) -> bool {
    let analysed = tokio::time::timeout(LONGEST_WAIT, document.analysed()).await.ok().flatten();
    analysed.and_then(|analysed| analysed.analysis.clone()).is_some_and(|analysis| gives_source(&analysis))
}

/// Puts a report into the store, in place of the last one of the same document.
async fn take(session: &Arc<Session>, document: &Arc<Document>, mut report: CompileReport) {
    let (for_blocking, origin) = (session.clone(), document.clone());
    let work = move || {
        let spellings = spellings(&for_blocking);
        related::count_as_client(&mut report.files, for_blocking.features().encoding);
        let files = report.files.into_iter().enumerate().map(|(index, file)| {
            // The compiled file is the first, however the compiler spells it.
            let key = match index {
                0 => origin.key.clone(),
                _ => spellings.get(&file.path).cloned().unwrap_or_else(|| Key::of_path(&file.path)),
            };
            let scopes = scopes(&for_blocking, &key, &file);
            Placed { key, file, scopes }
        });
        files.collect::<Vec<_>>()
    };
    let Ok(files) = tokio::task::spawn_blocking(work).await else { return };
    let dirty = store(session, &document.key, files);
    session.publisher.mark(dirty);
}

/// One file's report, with the document it is about.
struct Placed {
    key: Key,
    file: FileReport,
    scopes: Vec<Span>,
}

/// The open documents by the name that the system gives their file: a compiler follows links, an editor need not.
fn spellings(session: &Session) -> HashMap<PathBuf, Key> {
    let open: Vec<_> =
        session.documents().all().map(|document| (document.key.clone(), document.path.clone())).collect();
    let real = |(key, path): (Key, Option<PathBuf>)| {
        let path = path?;
        Some((path.canonicalize().unwrap_or(path), key))
    };
    open.into_iter().filter_map(real).collect()
}

/// The functions that findings hang on, in the text that was compiled.
fn scopes(session: &Session, key: &Key, file: &FileReport) -> Vec<Span> {
    let document = session.documents().get(key).cloned();
    let last = document.as_ref().and_then(|document| document.last_analysis()?.analysis.clone());
    if let Some(analysis) = last.filter(|analysis| *analysis.source() == file.text) {
        return analysis.function_spans();
    }
    let language =
        document.and_then(|document| document.to_analyse()).or_else(|| Language::of_path(&file.path));
    match language {
        Some(language) if file.text.len() <= session.documents().longest => {
            Analysis::of(language, &file.text).function_spans()
        }
        _ => Vec::new(),
    }
}

fn store(session: &Session, origin: &Key, files: Vec<Placed>) -> Vec<Key> {
    let mut documents = session.documents();
    // Closed while it was compiled: what it said is of no use to anyone.
    if documents.get(origin).is_none() {
        return Vec::new();
    }
    let keep: Vec<String> = files.iter().map(|placed| placed.key.as_str().to_owned()).collect();
    let mut dirty: Vec<Key> = files.iter().map(|placed| placed.key.clone()).collect();
    for placed in files {
        let open = documents.get(&placed.key).map(|document| document.text.to_source());
        let edit = open.as_ref().and_then(|now| edit_between(&placed.file.text, now));
        let text = placed.file.text.clone();
        let now = open.clone().unwrap_or_else(|| text.clone());
        for (producer, (findings, measurements)) in by_producer(placed.file) {
            let mut batch = Batch::new(&*text, &placed.scopes, findings, measurements);
            if let Some(edit) = edit {
                batch.follow(&[edit], &*now);
            }
            documents.store.replace(placed.key.as_str(), producer, origin.as_str(), batch);
        }
        if open.is_none() {
            let uri = placed.key.to_path().map(|path| uri::from_path(&path)).unwrap_or_default();
            documents
                .closed
                .entry(placed.key)
                .or_insert(ClosedFile { uri: uri.into(), text: Text::new("") })
                .text = Text::new(&text);
        }
    }
    for producer in PRODUCERS {
        let cleared = documents.store.retract(producer, origin.as_str(), &keep);
        dirty.extend(cleared.iter().map(|id| Key::of_id(id)));
    }
    // The compiler has the last word on what clang said of the same text.
    let nothing = Batch::new("", &[], Vec::new(), Vec::new());
    documents.store.replace(origin.as_str(), Producer::Clang, origin.as_str(), nothing);
    dirty
}

/// What each producer said; an empty set for one that said nothing, which clears what it said before.
fn by_producer(file: FileReport) -> BTreeMap<Producer, (Vec<Finding>, Vec<Measurement>)> {
    let mut sets: BTreeMap<_, (Vec<Finding>, Vec<Measurement>)> =
        PRODUCERS.into_iter().map(|producer| (producer, Default::default())).collect();
    for finding in file.findings {
        sets.entry(finding.code.info().producer).or_default().0.push(finding);
    }
    for measurement in file.measurements {
        sets.entry(measurement.provenance.producer).or_default().1.push(measurement);
    }
    sets
}
