//! One job: its files, and its answer, which is kept until it was received.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::lock;
use super::out::Out;
use crate::order::{Order, Outcome};
use crate::perform::Here;
use crate::perform::failure::Failure;
use crate::protocol::{BEATS, FromWorker, Sent};
use crate::relocate;
use crate::store::{Store, remove_folder, trouble};

/// What is around all jobs.
pub struct Surroundings {
    /// Where they are done.
    pub here: Here,
    /// Where they lie.
    pub store: Store,
    /// What this machine calls itself.
    pub machine: String,
    /// How long either side may be silent.
    pub patience: Duration,
    /// Where their answers go.
    pub out: Out,
    /// Told of each that came to an end.
    pub told: mpsc::UnboundedSender<String>,
}

/// A job as it was ordered.
pub struct Job {
    /// The order, with the paths of the other side.
    pub order: Value,
    /// What those begin with.
    pub roots: Vec<PathBuf>,
    /// Its files.
    pub files: Vec<Sent>,
}

/// The answer of a job that was done.
pub fn answer(store: &Store, id: &str) -> Option<FromWorker> {
    serde_json::from_slice(&fs::read(store.job(id).join("answer")).ok()?).ok()
}

/// Does a job, or waits for who does it, and says what came of it.
pub async fn work(surroundings: Arc<Surroundings>, id: String, job: Job, cancel: CancellationToken) {
    let (for_task, for_id) = (surroundings.clone(), id.clone());
    let task = tokio::spawn(async move { answered(&for_task, &for_id, job, &cancel).await });
    let answer = task.await.unwrap_or_else(|error| {
        let message = format!("The job failed inside StitchCUDA ({error}). This is a bug; please report it.");
        failed(&id, Failure::bad(message))
    });
    surroundings.out.say(&answer);
    // The host is gone only when this process ends.
    let _ = surroundings.told.send(id);
}

fn failed(id: &str, failure: Failure) -> FromWorker {
    FromWorker::Failed { id: id.to_owned(), status: failure.kind, message: failure.message }
}

async fn answered(
    surroundings: &Arc<Surroundings>,
    id: &str,
    job: Job,
    cancel: &CancellationToken,
) -> FromWorker {
    let folder = surroundings.store.job(id);
    let lock = match lock::hold(surroundings, id, cancel).await {
        Ok(lock) => lock,
        Err(failure) => return failed(id, failure),
    };
    if let Some(answer) = answer(&surroundings.store, id) {
        return answer;
    }
    let tree = folder.join("tree");
    let alive = lock::say_alive(folder.clone(), surroundings.patience / BEATS, cancel.clone());
    let alive = AbortOnDropHandle::new(tokio::spawn(alive));
    let result = done(surroundings, id, job, &tree, cancel).await;
    drop(alive);
    remove_folder(&tree);
    let answer = match result {
        Ok(result) => FromWorker::Result { id: id.to_owned(), result },
        Err(failure) if failure.kind == crate::protocol::Kind::Cancelled => {
            // What was not done may be ordered again.
            remove_folder(&folder);
            return failed(id, failure);
        }
        Err(failure) => failed(id, with_disk(&surroundings.machine, failure)),
    };
    if let Err(error) = keep(&folder, &answer) {
        // Only a connection that is lost just now would want it again.
        tracing::warn!("the answer of {id} could not be kept: {error}");
    }
    drop(lock);
    answer
}

/// Has the files laid out and the order done; paths in what comes of it are those of the other side.
async fn done(
    surroundings: &Arc<Surroundings>,
    id: &str,
    job: Job,
    tree: &Path,
    cancel: &CancellationToken,
) -> Result<Value, Failure> {
    let Job { mut order, roots, files } = job;
    let (store, to, laid_roots) = (surroundings.store.clone(), tree.to_owned(), roots.clone());
    let laid = tokio::task::spawn_blocking(move || store.lay_out(&files, &laid_roots, &to)).await;
    laid.map_err(Failure::bad)?
        .map_err(|(path, error)| Failure::missing(trouble(&surroundings.machine, &path, &error)))?;
    relocate::put_under(&mut order, &roots, tree);
    let order: Order = serde_json::from_value(order)
        .map_err(|error| Failure::usage(format!("The order can't be read: {error}.")))?;
    let last = Mutex::new(String::new());
    let progress = |message: &str, share: Option<f32>| {
        let message = message.replace(&*tree.to_string_lossy(), "");
        {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if *last != message {
                // Read by who came again, and of no other use.
                let _ = fs::write(tree.with_file_name("progress"), &message);
                last.clone_from(&message);
            }
        }
        surroundings.out.say(&FromWorker::Progress { id: id.to_owned(), message, share });
    };
    let performed = surroundings.here.perform(&order, &progress, cancel).await;
    let outcome: Outcome = match performed {
        Ok(outcome) if !cancel.is_cancelled() => outcome,
        Ok(_) => return Err(Failure::cancelled()),
        Err(failure) => {
            let message = failure.message.replace(&*tree.to_string_lossy(), "");
            return Err(Failure { message, ..failure });
        }
    };
    let mut value = serde_json::to_value(outcome).map_err(Failure::bad)?;
    relocate::take_out(&mut value, tree);
    Ok(value)
}

/// Says what to do where a disk ran full in the middle of a job.
fn with_disk(machine: &str, failure: Failure) -> Failure {
    let full = ["No space left on device", "Disk quota exceeded", "os error 28"];
    if failure.message.starts_with("The disk of") || !full.iter().any(|words| failure.message.contains(words))
    {
        return failure;
    }
    let message = format!(
        "{} The disk of {machine} is full: free some of it, or set STITCHCUDA_CACHE_DIR and TMPDIR there to folders on another disk.",
        failure.message
    );
    Failure::missing(message)
}

/// Keeps the answer, whole or not at all.
fn keep(folder: &Path, answer: &FromWorker) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, answer)?;
    file.persist(folder.join("answer")).map_err(|error| error.error)?;
    Ok(())
}
