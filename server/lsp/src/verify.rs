//! Verifies a document as a job: another file against it, or its text as it is now against the one that was saved or committed.
//!
//! Both versions are written to a scratch folder, so that what is verified is the text that the person saw, whatever is done to it
//! meanwhile. The verdict is kept with the job.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_agents::optimize::{JudgeError, Named, Version};
use stitch_findings::Span;
use stitch_session::jobs::{Context, JobError, JobId, JobKind, Request};
use stitch_toolchain::process::{Program, Scratch};
use tower_lsp::ls_types::MessageType;

use crate::documents::Document;
use crate::elsewhere;
use crate::optimize::{Chosen, Judging, target};
use crate::session::Session;
use crate::uri::Key;

/// How long one run of a program may take.
const RUN_LIMIT: Duration = Duration::from_secs(600);
/// How long git may take to print a file.
const GIT_LIMIT: Duration = Duration::from_secs(30);

/// What a document is verified against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// A file that claims to do what the document does.
    File(Key),
    /// Its text on disk, which the text of now claims to do the same as.
    Saved,
    /// Its text in the last commit, likewise.
    Committed,
}

/// A version of the file, as it is verified.
struct Side {
    name: String,
    text: String,
}

/// Starts to verify what is selected in a document, in bytes; without a selection, or where it touches nothing that runs, the one thing
/// that there is.
///
/// # Errors
/// Why it can't be verified.
pub fn start(
    session: &Arc<Session>,
    document: &Arc<Document>,
    selection: Option<Span>,
    against: Against,
) -> Result<JobId, String> {
    let chosen = target(session, document, selection)
        .or_else(|reason| target(session, document, None).map_err(|_| reason))?;
    let path = document.path.clone().ok_or("the document is no file of this machine")?;
    let current = document.text.to_source();
    let other = match &against {
        Against::File(key) => Some(text_of(session, key)?),
        Against::Saved => Some(read(&path)?),
        Against::Committed => None,
    };
    if other.as_deref() == Some(&*current) {
        let what = if against == Against::Saved {
            "nothing was changed since the file was saved"
        } else {
            "both are the same text"
        };
        return Err(what.to_owned());
    }
    let name = file_name(&path);
    let claims = match &against {
        Against::File(key) => {
            key.to_path().map_or_else(|| "the candidate".to_owned(), |path| file_name(&path))
        }
        Against::Saved | Against::Committed => name.clone(),
    };
    let request = Request::new(JobKind::Verify, format!("Verify {claims}"))
        .slot(format!("verify {}", document.key.as_str()))
        .limit(elsewhere::limit(session, Some(&path)));
    let current = current.to_string();
    let for_job = session.clone();
    let job = session.jobs.start(request, move |context| async move {
        let now = |name: String| Side { name, text: current.clone() };
        let sides = match (against, other) {
            (Against::File(_), Some(text)) => [now(name), Side { name: claims, text }],
            (Against::Saved, Some(text)) => {
                [Side { name: format!("{name} as it was saved"), text }, now(format!("{name} as it is now"))]
            }
            _ => {
                context.progress("reading the last commit", None);
                let text = committed(&for_job, &path, &context).await?;
                if text == current {
                    return Err(JobError::failed("Nothing was changed since the last commit."));
                }
                [
                    Side { name: format!("{name} as it was committed"), text },
                    now(format!("{name} as it is now")),
                ]
            }
        };
        work(&for_job, &path, chosen, &sides, &context).await
    });
    session.board.write(job.id(), |card| card.uri = Some(document.uri.to_string()));
    Ok(job.id())
}

/// From two texts to a verdict.
async fn work(
    session: &Arc<Session>,
    path: &Path,
    chosen: Chosen,
    [reference, candidate]: &[Side; 2],
    context: &Context,
) -> Result<(), JobError> {
    let config = session.configuration.for_path(Some(path));
    let chosen = chosen.in_text(&reference.text).map_err(JobError::Failed)?;
    let judging = Judging::prepare(session, path, &reference.text, &chosen, &config, context).await?;
    session.board.write(context.id(), |card| card.device = Some(judging.device()));
    let judgement = judging.judgement(chosen, RUN_LIMIT).map_err(JobError::failed)?;
    let scratch = Scratch::new("verify").map_err(JobError::failed)?;
    let before = version(&scratch, "reference", path, &reference.text)?;
    let after = version(&scratch, "candidate", path, &candidate.text)?;
    let progress = |stage: &str| context.progress(stage, None);
    let versions =
        [Named { version: &before, name: &reference.name }, Named { version: &after, name: &candidate.name }];
    let verified = judgement.verify(&versions[0], &versions[1], &progress, context.cancellation()).await;
    let verdict = verified.map_err(|error| match error {
        JudgeError::Cancelled => JobError::Cancelled,
        // Where the versions lay is of no use to anyone.
        error => JobError::Failed(without(&scratch, &error.to_string())),
    })?;
    let answer = match verdict.is_good() {
        true => format!("{} does what {} does", candidate.name, reference.name),
        false => {
            format!("{} does not do what {} does: {}", candidate.name, reference.name, verdict.trouble())
        }
    };
    let said = format!("{}. On {}: {}.", answer.trim_end_matches('.'), verdict.device, verdict.summary());
    let (answer, is_good) = (verdict.answer, verdict.is_good());
    session.board.judged(context.id(), verdict);
    session.board.write(context.id(), |card| (card.said, card.answer) = (Some(said.clone()), Some(answer)));
    if !session.features().plugin.jobs {
        session.notices.show(if is_good { MessageType::INFO } else { MessageType::WARNING }, said);
    }
    Ok(())
}

fn version(scratch: &Scratch, side: &str, path: &Path, text: &str) -> Result<Version, JobError> {
    let folder = scratch.path().join(side);
    let path = folder.join(file_name(path));
    std::fs::create_dir(&folder).and_then(|()| std::fs::write(&path, text)).map_err(JobError::failed)?;
    Ok(Version { path, text: text.to_owned() })
}

fn without(scratch: &Scratch, said: &str) -> String {
    said.replace(&format!("{}/", scratch.path().display()), "")
}

/// The text of a file: as it is in the editor where it is open there.
fn text_of(session: &Session, key: &Key) -> Result<String, String> {
    if let Some(open) = session.documents().get(key) {
        return Ok(open.text.to_source().to_string());
    }
    read(&key.to_path().ok_or("the candidate is no file of this machine")?)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{} could not be read: {error}", path.display()))
}

/// The text of a file in the last commit of the repository that it lies in.
async fn committed(session: &Session, path: &Path, context: &Context) -> Result<String, JobError> {
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let name = file_name(path);
    let git = Program::new("git")
        .args(["--no-optional-locks", "show", "--no-textconv", &format!("HEAD:./{name}")])
        .environment(session.environment.clone())
        .current_dir(&folder)
        .time_limit(GIT_LIMIT);
    let failed = |why: &str| {
        JobError::Failed(format!(
            "{name} of the last commit could not be read with git in {}: {why}",
            folder.display()
        ))
    };
    let ran = git.run(context.cancellation()).await.map_err(|error| failed(&error.to_string()))?;
    if !ran.status.success() {
        return Err(failed(ran.stderr_text().trim()));
    }
    String::from_utf8(ran.stdout).map_err(|_| failed("it is not UTF-8."))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
