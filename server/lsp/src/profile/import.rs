//! Tells what a profiler wrote elsewhere at the lines of the documents that it speaks of: of those that are open, and of those that are
//! opened later.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use stitch_analysis::Analysis;
use stitch_findings::Producer;
use stitch_profiles::profile::Profile as Recorded;
use stitch_profiles::sniff::FileKind;
use stitch_profiles::units::counted;
use stitch_session::jobs::{Context, JobError, JobId, JobKind, Request};
use stitch_toolchain::discovery;
use stitch_verifier::profile::import::{ImportError, import};
use stitch_verifier::profile::sources;
use tower_lsp::ls_types::MessageType;

use super::told::Told;
use crate::documents::Document;
use crate::session::Session;

/// Files that are named where none of them is open, at most.
const MOST_NAMED: usize = 4;

/// One file of a profiler.
#[derive(Debug)]
struct Import {
    /// Where it lies. Imported again, it replaces what it said.
    path: PathBuf,
    recorded: Recorded,
    /// Who speaks in it: only what these said before is replaced.
    producers: &'static [Producer],
    /// When it was written, where the system tells.
    written: Option<SystemTime>,
}

/// What was imported since the server started, the oldest first.
#[derive(Debug, Default)]
pub struct Imports(Mutex<Vec<Arc<Import>>>);

impl Imports {
    fn all(&self) -> Vec<Arc<Import>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, import: Arc<Import>) {
        let mut imports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        imports.retain(|known| known.path != import.path);
        imports.push(import);
    }
}

/// Starts to import a file.
///
/// # Errors
/// Why it can't be, in a few words.
pub fn start(session: &Arc<Session>, path: PathBuf) -> Result<JobId, String> {
    if !session.configuration.is_trusted() {
        return Err(
            "the workspace is not trusted, and reports are read by programs that it may name".to_owned()
        );
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let request =
        Request::new(JobKind::Profile, format!("Import {name}")).slot(format!("import {}", path.display()));
    let for_job = session.clone();
    let job = session.jobs.start(request, move |context| async move {
        context.progress("reading", None);
        let imported = Arc::new(read(&for_job, path, &context).await?);
        for_job.imports.keep(imported.clone());
        let mut documents: Vec<Arc<Document>> = for_job.documents().all().cloned().collect();
        documents.sort_by(|one, other| one.uri.cmp(&other.uri));
        let told: Vec<Count> =
            documents.iter().filter_map(|document| show(&for_job, document, &imported)).collect();
        if let Some(first) = told.first() {
            for_job.board.write(context.id(), |card| card.uri = Some(first.uri.clone()));
        }
        for_job.notices.show(MessageType::INFO, summary(&name, &imported, &told));
        Ok(())
    });
    Ok(job.id())
}

/// A document was opened: it is told what was imported about it.
pub fn opened(session: &Arc<Session>, document: &Document) {
    for import in session.imports.all() {
        show(session, document, &import);
    }
}

/// Reads a file, on a thread that may take its time.
async fn read(session: &Arc<Session>, path: PathBuf, context: &Context) -> Result<Import, JobError> {
    let config = session.configuration.for_path(Some(&path));
    let search = session.search(&config, session.configuration.project_of(&path));
    let (folders, cancel) = (session.configuration.folders(), context.cancellation().clone());
    let here = session.runtime.clone();
    let work = move || {
        let toolkit = discovery::find(&search).chosen;
        let tools = discovery::profilers(&search, toolkit.as_ref());
        let read = here.block_on(import(&path, &tools, &sources::of_folders(folders), &cancel));
        read.map(|(recorded, kind)| (path, recorded, kind))
    };
    let read = tokio::task::spawn_blocking(work).await.map_err(JobError::failed)?;
    let (path, recorded, kind) = read.map_err(|error| match error {
        ImportError::Cancelled => JobError::Cancelled,
        error => JobError::failed(error),
    })?;
    recorded.notes.iter().for_each(|note| context.note(note.text.clone()));
    let written = std::fs::metadata(&path).and_then(|found| found.modified()).ok();
    Ok(Import { path, recorded, producers: producers(kind), written })
}

/// Whose findings and numbers a file holds.
fn producers(kind: FileKind) -> &'static [Producer] {
    match kind {
        FileKind::NcuReport | FileKind::NcuCsv => &[Producer::Ncu],
        FileKind::NsysReport | FileKind::Sqlite | FileKind::Trace => &[Producer::Nsys],
        FileKind::SanitizerText | FileKind::SanitizerXml => &[Producer::Sanitizer],
    }
}

/// What one document was told.
struct Count {
    uri: String,
    name: String,
    findings: usize,
    numbers: usize,
    /// Whether its file was changed after the profile was written.
    is_newer: bool,
}

/// Tells a document what an import says of it. `None` where that is nothing: then what is known of it stays.
fn show(session: &Arc<Session>, document: &Document, import: &Import) -> Option<Count> {
    let (path, language) = (document.path.as_deref()?, document.to_analyse()?);
    let text = document.text.to_source();
    let told = Told::of((path, &text), &Analysis::of(language, &text), &import.recorded, &[]);
    let (findings, numbers) = (told.findings.len(), told.measurements.len());
    if !told.is_about || findings + numbers == 0 {
        return None;
    }
    // First, since who reads what is told may ask for more at once.
    session.profiles.add(&document.key, &text, told.functions.clone(), &import.recorded);
    told.put(session, document, import.producers);
    let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok();
    Some(Count {
        uri: document.uri.to_string(),
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        findings,
        numbers,
        is_newer: matches!((changed, import.written), (Some(changed), Some(written)) if changed > written),
    })
}

/// What a person is told in the end.
fn summary(name: &str, import: &Import, told: &[Count]) -> String {
    let by = import.recorded.way.by.as_str();
    if told.is_empty() {
        let files = files(&import.recorded);
        let named: Vec<&str> = files.iter().take(MOST_NAMED).map(String::as_str).collect();
        return match named.is_empty() {
            true => {
                format!("{name}, {by}, speaks of no source line and of no kernel of a file that is open.")
            }
            false => {
                format!("{name}, {by}, speaks of {}: open one to see it at its lines.", named.join(", "))
            }
        };
    }
    let one = |told: &Count| {
        let findings = counted(told.findings as u64, "finding", "findings");
        let numbers = counted(told.numbers as u64, "number", "numbers");
        let newer = if told.is_newer { " (which was changed since)" } else { "" };
        format!("{findings} and {numbers} in {}{newer}", told.name)
    };
    format!("{name}, {by}: {}.", told.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// Names of the files that a profile speaks of, the one with most of its lines first.
fn files(recorded: &Recorded) -> Vec<String> {
    let kernels = recorded.launches.iter().flat_map(|launch| &launch.lines).map(|line| &line.file);
    let python = recorded.python.iter().flat_map(|python| &python.lines).map(|line| &line.file);
    let places: Vec<_> = recorded.defects.iter().filter_map(|defect| defect.place()).collect();
    let defects = places.iter().map(|place| &place.file);
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for file in kernels.chain(python).chain(defects) {
        if let Some(name) = Path::new(file).file_name() {
            *lines.entry(name.to_string_lossy().into_owned()).or_default() += 1;
        }
    }
    let mut files: Vec<(String, usize)> = lines.into_iter().collect();
    files.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    files.into_iter().map(|(name, _)| name).collect()
}
