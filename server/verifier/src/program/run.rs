//! Runs a built program, on a device of this machine or on a simulated one.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stitch_session::folders::Folders;
use stitch_session::locks::{DeviceLock, LockError};
use stitch_toolchain::process::{Finished, Program as Process, ProgramError};
use tokio_util::sync::CancellationToken;

use super::build::{Built, Start};
use super::copy::{self, CopyError};
use super::device::RunDevice;
use super::own;
use super::watch;
use crate::simulation::{self, Ending, Report, SimulationError};

/// How much is kept of what a program prints, in bytes.
const OUTPUT_LIMIT: usize = 64 << 20;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Running {
    /// Where.
    pub device: RunDevice,
    /// Arguments after its own.
    pub arguments: Vec<String>,
    /// How long it may run.
    pub time_limit: Duration,
    /// What the simulator does besides.
    pub simulation: simulation::Options,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// It was ended, since it did not end itself.
    TimedOut,
    /// It was ended, since it printed or wrote far too much; in words.
    Ended(String),
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub stdout: String,
    /// What it printed on its standard error.
    pub stderr: String,
    /// How long it took.
    pub wall: Duration,
    /// What the simulator reports.
    pub report: Option<Arc<Report>>,
    /// What it copied back to the host, in order. `None` where nobody saw it.
    pub copies: Option<Vec<Vec<u8>>>,
    /// Copies to the device that were perturbed.
    pub perturbed: usize,
    /// Where copies were to be seen: what was not, or why none was, in sentences.
    pub unseen: Vec<String>,
}

/// Why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error(transparent)]
    Program(ProgramError),
    /// The simulator could not.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// Its folder could not be made.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The device can't be had.
    #[error(transparent)]
    Device(LockError),
    /// The job was cancelled.
    #[error("The run was cancelled.")]
    Cancelled,
}

/// Runs a program to its end, whatever that is.
///
/// # Errors
/// It could not be run at all, or the job was cancelled.
pub async fn run(built: &Built, running: &Running, cancel: &CancellationToken) -> Result<Ran, RunError> {
    let (process, folder) = start(built, running)?;
    let mut ran = run_in(built, running, &process, &folder, cancel).await?;
    // Many programs print their own path, which is another one in each build and run.
    for path in [folder.as_path(), built.scratch.path()] {
        ran.stdout = ran.stdout.replace(&*path.to_string_lossy(), "FOLDER");
    }
    Ok(ran)
}

async fn run_in(
    built: &Built,
    running: &Running,
    process: &Command,
    folder: &Path,
    cancel: &CancellationToken,
) -> Result<Ran, RunError> {
    match &running.device {
        RunDevice::Simulator(device) => {
            let simulated =
                simulation::run(process, folder, device.name, running, &built.scratch, cancel).await?;
            let mut ran = ended(simulated.finished)?;
            // The simulator's process has only a status to say how its program ended.
            match simulated.report.as_ref().map(|report| report.ending) {
                Some(Ending::Exited(status)) => ran.end = End::Status(status),
                Some(Ending::Signalled(signal)) => ran.end = End::Signal(signal),
                _ => {}
            }
            ran.perturbed = simulated.report.as_ref().map_or(0, |report| report.perturbed);
            ran.report = simulated.report.map(Arc::new);
            ran.copies = simulated.copies;
            Ok(ran)
        }
        RunDevice::Cuda { index, .. } => {
            let _lock = hold(&running.device, cancel).await?;
            on_device(built, running, *index, process, folder, cancel).await
        }
    }
}

/// Keeps a device for this process: two programs on one device would time each other. A simulated one is nobody's.
///
/// # Errors
/// The lock can't be had, or the job was cancelled.
pub(crate) async fn hold(
    device: &RunDevice,
    cancel: &CancellationToken,
) -> Result<Option<DeviceLock>, RunError> {
    let RunDevice::Cuda { .. } = device else { return Ok(None) };
    let Some(runtime) = Folders::find().runtime else { return Ok(None) };
    match DeviceLock::acquire(&runtime, &device.id(), cancel, |_| {}).await {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Cancelled { .. }) => Err(RunError::Cancelled),
        Err(error) => Err(RunError::Device(error)),
    }
}

/// Runs a program on a GPU that the caller holds, unwatched, since looking at its copies takes time.
///
/// # Errors
/// It could not be run at all, or the job was cancelled.
pub(crate) async fn run_held(
    built: &Built,
    running: &Running,
    cancel: &CancellationToken,
) -> Result<Ran, RunError> {
    let RunDevice::Cuda { index, .. } = &running.device else { return run(built, running, cancel).await };
    let (process, folder) = start(built, running)?;
    let ran = on_device(built, running, *index, &process, &folder, cancel).await;
    // Hundreds of runs would leave as many folders.
    if matches!(built.start, Start::Executable(_)) {
        let _ = std::fs::remove_dir_all(&folder);
    }
    ran
}

/// A program that starts another one and looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments, before the other's command line.
    pub arguments: Vec<OsString>,
}

/// Runs a program on a GPU that the caller holds, under an observer.
///
/// # Errors
/// It could not be run at all, or the job was cancelled.
pub(crate) async fn run_observed(
    built: &Built,
    running: &Running,
    observer: &Observer,
    cancel: &CancellationToken,
) -> Result<Ran, RunError> {
    let (command, folder) = start(built, running)?;
    let process = Process::new(&observer.path).args(&observer.arguments);
    let process = process.arg(&command.path).args(&command.arguments);
    let process = match &running.device {
        RunDevice::Cuda { index, .. } => process.env("CUDA_VISIBLE_DEVICES", index.to_string()),
        RunDevice::Simulator(_) => process,
    };
    let process = process
        .current_dir(folder)
        .scratch(&built.scratch)
        .large_files()
        .output_limit(OUTPUT_LIMIT)
        .time_limit(running.time_limit);
    ended(process.run(cancel).await)
}

async fn on_device(
    built: &Built,
    running: &Running,
    index: u32,
    process: &Command,
    folder: &Path,
    cancel: &CancellationToken,
) -> Result<Ran, RunError> {
    let process = Process::new(&process.path)
        .args(&process.arguments)
        .env("CUDA_VISIBLE_DEVICES", index.to_string())
        .current_dir(folder)
        .scratch(&built.scratch)
        .output_limit(OUTPUT_LIMIT)
        .time_limit(running.time_limit);
    let options = &running.simulation;
    let process = match options.date {
        Some(date) => watch::hold_the_date(process, date).await,
        None => process,
    };
    if !options.record {
        return ended(process.run(cancel).await);
    }
    match watch::begin(process, options.perturb).await {
        Ok((process, service)) => {
            let ran = ended(process.run(cancel).await)?;
            watch::end(service, ran).await
        }
        Err((process, why)) => {
            let mut ran = ended(process.run(cancel).await)?;
            ran.unseen.push(why);
            Ok(ran)
        }
    }
}

/// A program to be started, and its arguments.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// What is started, in which folder. A run in a folder of its own does not see what an earlier one left.
fn start(built: &Built, running: &Running) -> Result<(Command, PathBuf), CopyError> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let arguments: Vec<String> = built.program.arguments.iter().chain(&running.arguments).cloned().collect();
    match &built.start {
        Start::Executable(path) => {
            let number = RUNS.fetch_add(1, Ordering::Relaxed);
            let folder = built.scratch.path().join(format!("run-{number}"));
            copy::links(&built.program.folder, &built.program.inputs, &folder)?;
            Ok((Command { path: path.clone(), arguments }, folder))
        }
        Start::Shell { command, folder } => {
            let arguments = own::shell(command, &arguments);
            Ok((Command { path: PathBuf::from("/bin/sh"), arguments }, folder.clone()))
        }
    }
}

/// How a run ended, where it ended in a way that says something about the program.
fn ended(result: Result<Finished, ProgramError>) -> Result<Ran, RunError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (end, output, wall) = match result {
        Ok(finished) => {
            let end = match (finished.status.code(), finished.status.signal()) {
                (Some(code), _) => End::Status(code),
                (None, signal) => End::Signal(signal.unwrap_or_default()),
            };
            (end, (text(&finished.stdout), text(&finished.stderr)), finished.wall)
        }
        Err(ProgramError::Cancelled { .. }) => return Err(RunError::Cancelled),
        Err(ProgramError::TimedOut { limit, output, .. }) => {
            (End::TimedOut, (text(&output.stdout), text(&output.stderr)), limit)
        }
        Err(error @ (ProgramError::Flooded { .. } | ProgramError::ScratchFull { .. })) => {
            (End::Ended(error.to_string()), (String::new(), String::new()), Duration::ZERO)
        }
        Err(error) => return Err(RunError::Program(error)),
    };
    let (stdout, stderr) = output;
    Ok(Ran { end, stdout, stderr, wall, report: None, copies: None, perturbed: 0, unseen: Vec::new() })
}
