//! Runs as plugins read them: the report, a candidate beside the code as it was, and what the person decides.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use stitch_agents::patch;
use stitch_agents::run::{Attempt, Entry, Manifest, Outcome, Record, Summary};
use stitch_session::folders::Folders;

use crate::board::{self, Decision};
use crate::documents::Document;
use crate::review;
use crate::session::Session;
use crate::uri::{self, Key};

/// The folder of all runs.
///
/// # Errors
/// None is known.
pub fn folder() -> Result<PathBuf, String> {
    let state = Folders::find().state.ok_or("No folder for runs is known; set STITCHCUDA_STATE_DIR.")?;
    Ok(state.join("runs"))
}

/// A run with all that it holds: what `stitchcuda runs show --format json` prints, and a summary.
#[derive(Serialize)]
pub struct Report {
    schema: &'static str,
    folder: PathBuf,
    summary: Summary,
    manifest: Manifest,
    history: Vec<Entry>,
    patch: Option<String>,
}

/// Reads a run.
///
/// # Errors
/// There is none of that name, or it can't be read.
pub fn report(id: &str) -> Result<Report, String> {
    let record = read(id)?;
    let best = record.best().map_err(|error| error.to_string())?;
    let name = record.manifest.file_name();
    Ok(Report {
        schema: Manifest::SCHEMA,
        summary: record.summary(),
        patch: best.map(|(_, text)| patch::unified(&record.reference, &text, &name)),
        folder: record.folder,
        manifest: record.manifest,
        history: record.history,
    })
}

/// A candidate beside the code as it was.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    run: String,
    attempt: u32,
    /// The target as it was named.
    target: String,
    /// The file, as the client spells it where it has it open.
    uri: String,
    /// The code as it was.
    original: String,
    /// The code that is offered.
    candidate: String,
    /// What the attempt came to, with its numbers.
    said: String,
    /// How many times less it costs than the reference.
    speedup: Option<f64>,
    /// The version of the open document that has the original text; `None` if it is not open or has another.
    version: Option<i32>,
    /// Whether an edit could be made now.
    is_current: bool,
}

/// A candidate of a run: the best one unless one is named.
///
/// # Errors
/// There is none that was kept.
pub fn candidate(session: &Session, id: &str, attempt: Option<u32>) -> Result<Candidate, String> {
    let Kept { record, attempt, text } = Kept::read(id, attempt)?;
    let open = session.documents().get(&Key::of_path(&record.manifest.file)).cloned();
    let current = open.as_ref().filter(|open| *open.text.to_source() == *record.reference);
    Ok(Candidate {
        run: id.to_owned(),
        attempt: attempt.number,
        target: record.manifest.target.clone(),
        uri: open.as_ref().map_or_else(|| uri::from_path(&record.manifest.file), |open| open.uri.to_string()),
        version: current.and_then(|document| document.version),
        is_current: current.is_some(),
        said: attempt.said.clone(),
        speedup: attempt.gain,
        original: record.reference,
        candidate: text,
    })
}

/// Makes the edit that the person accepted, of the version that is open now, if that has the text that the run began with.
/// Whether it was made is told with the job.
///
/// # Errors
/// The document is not open, or has another text.
pub fn accept(session: &Arc<Session>, id: &str, attempt: Option<u32>) -> Result<Option<i32>, String> {
    let kept = Kept::read(id, attempt)?;
    let document = unchanged(session, &kept.record)?;
    let version = document.version;
    let session = session.clone();
    tokio::spawn(async move {
        let Kept { record, attempt, text } = kept;
        let changes = patch::changes(&record.reference, &text);
        if review::apply(&session, &document, &changes, &record.manifest.target, &attempt.said).await {
            decide(&session, &record.manifest.id, Decision::Accepted);
        }
    });
    Ok(version)
}

/// The person does not want the candidate.
pub fn reject(session: &Session, id: &str) {
    decide(session, id, Decision::Rejected);
}

fn decide(session: &Session, id: &str, decision: Decision) {
    if let Some(job) = session.board.job_of_run(id) {
        session.board.write(job, |card| card.decision = Some(decision));
        board::tell_again(session, job);
    }
}

/// The open document of a run's file, with the text that the run began with.
fn unchanged(session: &Session, record: &Record) -> Result<Arc<Document>, String> {
    let (file, id) = (&record.manifest.file, &record.manifest.id);
    let open = session.documents().get(&Key::of_path(file)).cloned();
    let open = open
        .ok_or_else(|| format!("{} is not open; open it, and accept the candidate again.", file.display()))?;
    if *open.text.to_source() != *record.reference {
        return Err(format!(
            "{} has changed since the run {id} began, so nothing was changed. Undo your edits, or take the patch that `stitchcuda runs diff {id}` prints.",
            file.display()
        ));
    }
    Ok(open)
}

/// A candidate that was kept, with the run it is of. Others are not offered.
struct Kept {
    record: Record,
    attempt: Attempt,
    text: String,
}

impl Kept {
    fn read(id: &str, number: Option<u32>) -> Result<Self, String> {
        let record = read(id)?;
        let best = record.best().map_err(|error| error.to_string())?;
        let Some(number) = number else {
            let (attempt, text) = best
                .ok_or_else(|| format!("No attempt of the run {id} was better than the code as it was."))?;
            return Ok(Self { record, attempt, text });
        };
        let attempt = record.history.iter().find_map(|entry| match entry {
            Entry::Attempt(attempt) if attempt.number == number => Some(attempt.as_ref().clone()),
            _ => None,
        });
        let attempt = attempt
            .filter(|attempt| attempt.outcome == Outcome::Kept)
            .ok_or_else(|| format!("The run {id} has no attempt {number} that was kept."))?;
        let text = record.candidate(number).map_err(|error| error.to_string())?;
        Ok(Self { record, attempt, text })
    }
}

fn read(id: &str) -> Result<Record, String> {
    Record::read(&folder()?, id).map_err(|error| error.to_string())
}
