//! One job: its lock, so that no two processes do it; its files; its answer, which is kept until it was received.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::out::Out;
use crate::order::{Order, Outcome};
use crate::perform::Here;
use crate::perform::failure::Failure;
use crate::protocol::{BEATS, FromWorker, Sent};
use crate::relocate;
use crate::store::{Store, remove_folder, trouble};

/// How often a process that waits for another's job looks.
const LOOK: Duration = Duration::from_millis(100);

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

/// A process that does a job.
#[derive(Serialize, Deserialize)]
struct Doer {
    pid: i32,
    /// When it began, in the system's own count: numbers of processes are used again.
    began: String,
}

/// The answer of a job that was done.
pub fn answer(store: &Store, id: &str) -> Option<FromWorker> {
    serde_json::from_slice(&fs::read(store.job(id).join("answer")).ok()?).ok()
}

/// Whether another process waits for a job's answer.
pub fn is_awaited(store: &Store, id: &str) -> bool {
    let waiting = File::open(store.job(id).join("waiting"));
    waiting.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
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
    let lock = match hold(surroundings, id, &folder, cancel).await {
        Ok(lock) => lock,
        Err(failure) => return failed(id, failure),
    };
    if let Some(answer) = answer(&surroundings.store, id) {
        return answer;
    }
    let tree = folder.join("tree");
    let alive = tokio::spawn(say_alive(folder.clone(), surroundings.patience / BEATS, cancel.clone()));
    let result = done(surroundings, id, job, &tree, cancel).await;
    alive.abort();
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
            let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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

/// Shows other processes that this one is not stuck, and ends the job where one of them says that it is no longer wanted.
async fn say_alive(folder: PathBuf, every: Duration, cancel: CancellationToken) {
    let mut said: Option<Instant> = None;
    loop {
        if said.is_none_or(|said| said.elapsed() >= every) {
            // Whoever waits takes a job whose doer does not say so for its own.
            let _ = fs::write(folder.join("alive"), "");
            said = Some(Instant::now());
        }
        if folder.join("cancelled").exists() {
            cancel.cancel();
        }
        tokio::time::sleep(LOOK.min(every)).await;
    }
}

/// Takes the lock of a job. Where another process has it, waits until that is done; one that is stuck is ended.
async fn hold(
    surroundings: &Surroundings,
    id: &str,
    folder: &Path,
    cancel: &CancellationToken,
) -> Result<File, Failure> {
    let system =
        |path: &Path, error: &io::Error| Failure::missing(trouble(&surroundings.machine, path, error));
    fs::create_dir_all(folder).map_err(|error| system(folder, &error))?;
    let open = |name: &str| {
        let path = folder.join(name);
        File::options().create(true).append(true).open(&path).map_err(|error| system(&path, &error))
    };
    let lock = open("lock")?;
    if lock.try_lock().is_ok() {
        sign(folder).map_err(|error| system(folder, &error))?;
        return Ok(lock);
    }
    let waiting = open("waiting")?;
    let mut awaited = waiting.try_lock().is_ok();
    let say = |message: String| {
        surroundings.out.say(&FromWorker::Progress { id: id.to_owned(), message, share: None });
    };
    say(format!("{} is still at work on it", surroundings.machine));
    let (since, mut last) = (Instant::now(), String::new());
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = cancel.cancelled() => {
                // Seen by who does it.
                let _ = fs::write(folder.join("cancelled"), "");
                return Err(Failure::cancelled());
            }
        }
        // Whoever looks whether it is held holds it for a moment.
        awaited = awaited || waiting.try_lock().is_ok();
        if lock.try_lock().is_ok() {
            sign(folder).map_err(|error| system(folder, &error))?;
            return Ok(lock);
        }
        let progress = fs::read_to_string(folder.join("progress")).unwrap_or_default();
        if progress != last {
            say(progress.clone());
            last = progress;
        }
        let alive = folder.join("alive").metadata().and_then(|metadata| metadata.modified()).ok();
        let silent =
            alive.map_or(since.elapsed(), |at| SystemTime::now().duration_since(at).unwrap_or_default());
        if silent > surroundings.patience {
            say("the worker that did it was stuck; it is ended, and the job begun again".to_owned());
            end_doer(folder);
        }
    }
}

/// Writes down which process does a job.
fn sign(folder: &Path) -> io::Result<()> {
    let pid = i32::try_from(std::process::id()).unwrap_or_default();
    let doer = Doer { pid, began: began(pid).unwrap_or_default() };
    fs::write(folder.join("doer"), serde_json::to_vec(&doer)?)
}

/// When a process began, as the system counts.
fn began(pid: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the rest begins with the third field, and the 22nd is the start (proc(5)).
    text.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}

/// Ends the process that does a job. What it started ends with it.
fn end_doer(folder: &Path) {
    let doer = fs::read(folder.join("doer")).ok().and_then(|text| serde_json::from_slice::<Doer>(&text).ok());
    if let Some(Doer { pid, began: since }) = doer
        && pid > 1
        && u32::try_from(pid).is_ok_and(|pid| pid != std::process::id())
        && began(pid).is_some_and(|now| now == since)
    {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
}
