//! The course of one run: start, feed, read, watch the limits, end.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::capture::{self, Capture};
use super::error::{failed_start, not_a_program};
use super::guard::Order;
#[cfg(target_os = "linux")]
use super::guard_linux::Guard;
#[cfg(not(target_os = "linux"))]
use super::guard_unix::Guard;
use super::scratch::folder_size;
use super::{Finished, JOB_VARIABLE, Output, Program, ProgramError};

/// The scratch folder is measured this often at most; less often if measuring takes long.
const MEASURE_EVERY: Duration = Duration::from_millis(100);
/// Measuring may take this part of one core.
const MEASURE_SHARE: u32 = 10;
/// What is left in the pipes when everything is gone is read within this time.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why the watching ended.
enum End {
    Itself(ExitStatus),
    NotStarted(io::Error),
    Lost,
    TimedOut,
    Cancelled,
    ScratchFull,
    Flooded,
}

pub(super) async fn run(program: Program, cancel: &CancellationToken) -> Result<Finished, ProgramError> {
    let path = resolve(&program)?;
    if path.is_file()
        && let Some(reason) = not_a_program(&path)
    {
        return Err(ProgramError::NotExecutable { program: path, reason });
    }
    let job = job_name();
    let started = Instant::now();
    if cancel.is_cancelled() {
        return Err(ProgramError::Cancelled { program: path });
    }
    // Not given up half-way when cancelled: what has begun to start must be seen to end.
    let mut guard = start(&program, &path, &job).await?;

    let (out, err) =
        (Mutex::new(Capture::new(program.output_limit)), Mutex::new(Capture::new(program.output_limit)));
    let flood = Notify::new();
    let (to, from_out, from_err) = guard.pipes();
    let pipes = async {
        tokio::join!(
            drain(from_out, &out, &flood),
            drain(from_err, &err, &flood),
            feed(to, program.stdin.as_deref().unwrap_or_default())
        );
    };
    tokio::pin!(pipes);
    let mut pipes_open = true;
    let watching = watch(&mut guard, &program, &flood, cancel);
    let end = alongside(watching, pipes.as_mut(), &mut pipes_open).await;
    let wall = started.elapsed();
    alongside(clear(&mut guard, &end, &job), pipes.as_mut(), &mut pipes_open).await;
    if pipes_open {
        // A process that could not be killed may hold the pipe open; what it says is not waited for.
        let _ = tokio::time::timeout(LAST_WORDS, &mut pipes).await;
    }
    let (stdout, out_cut) = take(&out);
    let (stderr, err_cut) = take(&err);
    finish(end, path, &program, Finish { stdout, stderr, truncated: out_cut || err_cut, wall })
}

/// Awaits `main` while the pipes are read on, until they end.
async fn alongside<T>(
    main: impl Future<Output = T>,
    mut pipes: Pin<&mut impl Future<Output = ()>>,
    open: &mut bool,
) -> T {
    tokio::pin!(main);
    loop {
        tokio::select! {
            done = &mut main => return done,
            () = pipes.as_mut(), if *open => *open = false,
        }
    }
}

struct Finish {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncated: bool,
    wall: Duration,
}

fn finish(end: End, path: PathBuf, program: &Program, done: Finish) -> Result<Finished, ProgramError> {
    let Finish { stdout, stderr, truncated, wall } = done;
    let status = match end {
        End::Itself(status) => status,
        other => {
            let output = Box::new(Output { stdout, stderr });
            return Err(match other {
                End::NotStarted(error) => {
                    let folder = program.scratch.as_ref().map(|(folder, _)| folder);
                    failed_start(&path, program.current_dir.as_ref().or(folder).map(PathBuf::as_path), error)
                }
                End::Itself(_) | End::Lost => ProgramError::Lost { program: path },
                End::TimedOut => ProgramError::TimedOut { program: path, limit: program.time_limit, output },
                End::Cancelled => ProgramError::Cancelled { program: path },
                End::Flooded => {
                    let limit = capture::most(program.output_limit);
                    ProgramError::Flooded { program: path, limit, output }
                }
                End::ScratchFull => {
                    let (folder, limit) = program.scratch.clone().unwrap_or_default();
                    ProgramError::ScratchFull { program: path, folder, limit, output }
                }
            });
        }
    };
    Ok(Finished { status, stdout, stderr, truncated, wall })
}

/// The program's file: a name without a slash is looked up on `PATH` of its own environment.
fn resolve(program: &Program) -> Result<PathBuf, ProgramError> {
    let path = &program.path;
    if path.components().count() != 1 || path.is_absolute() || path.starts_with(".") {
        return Ok(path.clone());
    }
    match path.to_str().and_then(|name| program.environment.find_program(name)) {
        Some(found) => Ok(found),
        None => Err(ProgramError::NotFound { program: path.clone() }),
    }
}

/// A name for the job that no other has: our process id, a number, and when it began in nanoseconds.
fn job_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed), now.as_nanos())
}

/// Starts it under a guard.
async fn start(program: &Program, path: &Path, job: &str) -> Result<Guard, ProgramError> {
    let scratch = program.scratch.as_ref().map(|(folder, _)| folder.as_path());
    let mut variables: Vec<(OsString, OsString)> =
        program.environment.variables().map(|(name, value)| (name.into(), value.into())).collect();
    let own = [(JOB_VARIABLE, OsStr::new(job))];
    let of_scratch =
        ["TMPDIR", "TMP", "TEMP"].into_iter().filter_map(|name| Some((name, scratch?.as_os_str())));
    for (name, value) in own.into_iter().chain(of_scratch) {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value.into()));
    }
    let folder = program.current_dir.as_deref().or(scratch);
    let order = Order {
        path,
        arguments: &program.arguments,
        variables,
        folder,
        with_stdin: program.stdin.is_some(),
        largest_file: program.scratch.as_ref().map(|(_, limit)| *limit).filter(|_| !program.large_files),
    };
    Guard::spawn(&order).await.map_err(|error| failed_start(path, folder, error))
}

/// Waits for the first reason to end.
async fn watch(guard: &mut Guard, program: &Program, flood: &Notify, cancel: &CancellationToken) -> End {
    tokio::select! {
        biased;
        status = guard.ended() => match status {
            // SIGXFSZ: a file grew over the scratch folder's limit.
            Ok(Some(status)) if program.scratch.is_some() && file_too_large(status) => End::ScratchFull,
            Ok(Some(status)) => End::Itself(status),
            Ok(None) => End::Lost,
            Err(error) => End::NotStarted(error),
        },
        () = cancel.cancelled() => End::Cancelled,
        () = tokio::time::sleep(program.time_limit) => End::TimedOut,
        () = flood.notified() => End::Flooded,
        () = scratch_full(program) => End::ScratchFull,
    }
}

fn file_too_large(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(nix::sys::signal::Signal::SIGXFSZ as i32)
}

/// Ends when the scratch folder holds too much; never without one.
async fn scratch_full(program: &Program) {
    let Some((folder, limit)) = program.scratch.clone() else { return std::future::pending().await };
    let mut pause = MEASURE_EVERY;
    loop {
        tokio::time::sleep(pause).await;
        let folder = folder.clone();
        let began = Instant::now();
        let size = tokio::task::spawn_blocking(move || folder_size(&folder, limit)).await.unwrap_or(0);
        if size > limit {
            return;
        }
        pause = MEASURE_EVERY.max(began.elapsed() * MEASURE_SHARE);
    }
}

/// Ends everything that is left, and waits until it is gone.
async fn clear(guard: &mut Guard, end: &End, job: &str) {
    if !matches!(end, End::Itself(_) | End::NotStarted(_) | End::Lost) {
        guard.terminate().await;
    }
    if !guard.gone().await {
        tracing::warn!("A process of job {job} could not be killed; it hangs in the kernel.");
    }
    #[cfg(target_os = "linux")]
    if matches!(end, End::Lost) {
        let job = job.to_owned();
        let _ = tokio::task::spawn_blocking(move || super::leftovers::kill_job(&job)).await;
    }
}

/// Reads a pipe to its end.
async fn drain(pipe: Option<impl AsyncRead + Unpin>, capture: &Mutex<Capture>, flood: &Notify) {
    let Some(mut pipe) = pipe else { return };
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count) = pipe.read(&mut bytes).await {
        if count == 0 {
            return;
        }
        let mut capture = capture.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        capture.push(&bytes[..count]);
        if capture.is_flood() {
            flood.notify_one();
        }
    }
}

/// Writes standard input. A program that does not read it to the end does not want it.
async fn feed(pipe: Option<ChildStdin>, bytes: &[u8]) {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(bytes).await;
    }
}

fn take(capture: &Mutex<Capture>) -> (Vec<u8>, bool) {
    capture.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
}
