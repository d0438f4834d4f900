//! The lock of a job, which lies on disk beside its answer: no two processes do one job, and who comes second waits for the answer of the first.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::job::Surroundings;
use crate::perform::failure::Failure;
use crate::protocol::FromWorker;
use crate::store::{Store, trouble};

/// How often a process that waits for another's job looks.
const LOOK: Duration = Duration::from_millis(100);
/// How long a process may take to end that was ended.
const ENDING: Duration = Duration::from_secs(10);

/// A process that does a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Doer {
    pid: i32,
    /// When it began, in the system's own count: numbers of processes are used again.
    began: String,
    /// The machine that it runs on: several may share a home.
    machine: String,
}

/// Whether another process waits for a job's answer.
pub fn is_awaited(store: &Store, id: &str) -> bool {
    let waiting = File::open(store.job(id).join("waiting"));
    waiting.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Shows other processes that this one is not stuck, and ends the job where one of them says that it is no longer wanted.
pub async fn say_alive(folder: PathBuf, every: Duration, cancel: CancellationToken) {
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
///
/// # Errors
/// The job is cancelled; there is no such lock on this disk; or the one that is stuck can't be ended.
pub async fn hold(
    surroundings: &Surroundings,
    id: &str,
    cancel: &CancellationToken,
) -> Result<File, Failure> {
    let folder = surroundings.store.job(id);
    let system = |error: io::Error| unlockable(&surroundings.machine, &folder, &error);
    let say = |message: String| {
        surroundings.out.say(&FromWorker::Progress { id: id.to_owned(), message, share: None });
    };
    if let Some(lock) = taken(&folder, &surroundings.machine).map_err(system)? {
        return Ok(lock);
    }
    say(format!("{} is still at work on it", surroundings.machine));
    let mut other = Other::of(&folder).map_err(system)?;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = cancel.cancelled() => {
                // Seen by who does it.
                let _ = fs::write(folder.join("cancelled"), "");
                return Err(Failure::cancelled());
            }
        }
        if let Some(lock) = taken(&folder, &surroundings.machine).map_err(system)? {
            return Ok(lock);
        }
        if let Some(progress) = other.look(&folder) {
            say(progress);
        }
        match other.ended {
            None if other.heard.elapsed() > surroundings.patience => {
                say("the worker that did it was stuck; it is ended, and the job begun again".to_owned());
                end_doer(&folder, &surroundings.machine);
                other.ended = Some(Instant::now());
            }
            Some(since) if since.elapsed() > ENDING => return Err(Failure::bad(unending(&folder))),
            _ => {}
        }
    }
}

/// What is seen of another process that does a job.
struct Other {
    /// When it last said that it lives, by whatever clock its disk has: only that it changes counts.
    alive: Option<SystemTime>,
    /// When that was seen to change.
    heard: Instant,
    /// What it was about.
    progress: String,
    /// When it was ended, because it was stuck.
    ended: Option<Instant>,
    /// Locked, so that it sees that somebody waits.
    waiting: File,
    is_waiting: bool,
}

impl Other {
    fn of(folder: &Path) -> io::Result<Self> {
        let waiting = open(&folder.join("waiting"))?;
        let (heard, progress) = (Instant::now(), String::new());
        Ok(Self { alive: None, heard, progress, ended: None, waiting, is_waiting: false })
    }

    /// Looks at it: what it is about now, where that is something else.
    fn look(&mut self, folder: &Path) -> Option<String> {
        // Whoever looks whether it is held holds it for a moment.
        self.is_waiting = self.is_waiting || self.waiting.try_lock().is_ok();
        let alive = folder.join("alive").metadata().and_then(|metadata| metadata.modified()).ok();
        if alive != self.alive {
            (self.alive, self.heard, self.ended) = (alive, Instant::now(), None);
        }
        let progress =
            fs::read_to_string(folder.join("progress")).ok().filter(|text| *text != self.progress)?;
        self.progress.clone_from(&progress);
        Some(progress)
    }
}

/// The lock, with this process written down as the one that has it; `None` where another one has it.
fn taken(folder: &Path, machine: &str) -> io::Result<Option<File>> {
    loop {
        fs::create_dir_all(folder)?;
        let path = folder.join("lock");
        let lock = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            lock => lock?,
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Who had it may have removed the folder before that, and with it this lock, which then keeps nobody away.
        let mine = lock.metadata()?;
        let is_there = path.metadata().is_ok_and(|now| (now.dev(), now.ino()) == (mine.dev(), mine.ino()));
        if is_there {
            sign(folder, machine)?;
            return Ok(Some(lock));
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Why a job can't be locked: a full disk, or one that has no locks.
fn unlockable(machine: &str, folder: &Path, error: &io::Error) -> Failure {
    use nix::errno::Errno;
    let code = error.raw_os_error().map(Errno::from_raw);
    if !matches!(code, Some(Errno::ENOLCK | Errno::ENOSYS | Errno::EOPNOTSUPP)) {
        return Failure::missing(trouble(machine, folder, error));
    }
    Failure::missing(format!(
        "{} can't be locked on {machine} ({error}), so that nothing there is done twice. Set STITCHCUDA_CACHE_DIR there to a folder on a local disk.",
        folder.display()
    ))
}

/// Writes down which process does a job.
fn sign(folder: &Path, machine: &str) -> io::Result<()> {
    let pid = i32::try_from(std::process::id()).unwrap_or_default();
    let doer = Doer { pid, began: began(pid).unwrap_or_default(), machine: machine.to_owned() };
    fs::write(folder.join("doer"), serde_json::to_vec(&doer)?)
}

fn doer(folder: &Path) -> Option<Doer> {
    serde_json::from_slice(&fs::read(folder.join("doer")).ok()?).ok()
}

/// When a process began, as the system counts.
fn began(pid: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the rest begins with the third field, and the 22nd is the start (proc(5)).
    text.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}

/// Ends the process that does a job, if it is one of this machine. What it started ends with it.
fn end_doer(folder: &Path, machine: &str) {
    let Some(doer) = doer(folder).filter(|doer| doer.machine == machine && doer.pid > 1) else { return };
    let is_other = u32::try_from(doer.pid).is_ok_and(|pid| pid != std::process::id());
    if is_other && began(doer.pid).is_some_and(|now| now == doer.began) {
        let _ =
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(doer.pid), nix::sys::signal::Signal::SIGKILL);
    }
}

/// That the process which does a job is stuck and can't be ended.
fn unending(folder: &Path) -> String {
    let who = doer(folder).map_or("Another worker".to_owned(), |Doer { pid, machine, .. }| {
        format!("The worker that is process {pid} of {machine}")
    });
    format!(
        "{who} has this job, says nothing any more and could not be ended. End it by hand, and try again."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_others_away_until_it_is_dropped_also_where_its_folder_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let job = folder.path().join("job");
        let first = taken(&job, "gpu01").unwrap().unwrap();
        assert!(taken(&job, "gpu01").unwrap().is_none());
        assert_eq!(doer(&job).unwrap().pid, i32::try_from(std::process::id()).unwrap());
        drop(first);
        let second = taken(&job, "gpu01").unwrap().unwrap();
        // Whoever has it may remove it: the next one has another, and is not kept away by the first.
        fs::remove_dir_all(&job).unwrap();
        let third = taken(&job, "gpu01").unwrap().unwrap();
        assert!(taken(&job, "gpu01").unwrap().is_none());
        drop((second, third));
    }

    #[test]
    fn who_waits_goes_by_what_changes_and_not_by_a_clock() {
        let folder = tempfile::tempdir().unwrap();
        let mut other = Other::of(folder.path()).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let alive = open(&folder.path().join("alive")).unwrap();
        for seconds in 1..3 {
            let before = other.heard;
            alive.set_modified(long_ago + Duration::from_secs(seconds)).unwrap();
            assert_eq!(other.look(folder.path()), None);
            assert!(other.heard > before, "a beat of another clock was not seen");
        }
        let before = other.heard;
        fs::write(folder.path().join("progress"), "building").unwrap();
        assert_eq!(other.look(folder.path()).as_deref(), Some("building"));
        assert_eq!(other.look(folder.path()), None);
        assert_eq!(other.heard, before);
    }

    #[test]
    fn only_the_process_that_was_written_down_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let right = Doer { pid, began: began(pid).unwrap(), machine: "gpu01".into() };
        let write = |doer: &Doer| {
            fs::write(folder.path().join("doer"), serde_json::to_vec(doer).unwrap()).unwrap();
            end_doer(folder.path(), "gpu01");
        };
        write(&Doer { machine: "gpu02".into(), ..right.clone() });
        write(&Doer { began: "1".into(), ..right.clone() });
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "another process was ended");
        assert!(unending(folder.path()).contains(&pid.to_string()));
        write(&right);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_disk_without_locks_is_said() {
        let error = io::Error::from_raw_os_error(nix::errno::Errno::ENOLCK as i32);
        let failure = unlockable("gpu01", Path::new("/c/jobs/1"), &error);
        assert!(
            failure.message.contains("can't be locked on gpu01") && failure.message.contains("local disk")
        );
    }
}
