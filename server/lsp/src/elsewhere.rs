//! Other machines whose devices are configured: one connection to each, opened when a job needs it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stitch_session::config::{Config, Device};
use stitch_session::jobs::{Context, JobError, Limit};
use stitch_toolchain::doctor::Item;
use stitch_worker::client::{Elsewhere, WorkerError};
use stitch_worker::files::{Files, Wanted};
use stitch_worker::order::{Order, Outcome, Settings};
use stitch_worker::protocol::Kind;
use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// The machines that were used.
#[derive(Debug, Default)]
pub struct Machines(Mutex<Vec<Elsewhere>>);

/// How long a person waits for what another machine has.
const LONGEST_EXAMINATION: Duration = Duration::from_secs(30);
/// More are not configured at once; a connection that is no longer known here ends when its jobs do.
const MOST: usize = 8;

impl Machines {
    /// The machine that is configured; `None` where it is this one.
    pub fn of(&self, config: &Config) -> Option<Elsewhere> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(machine) = known.iter().find(|machine| machine.is(&config.worker)) {
            return Some(machine.clone());
        }
        let machine = Elsewhere::configured(&config.worker)?;
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push(machine.clone());
        Some(machine)
    }
}

/// What a job about a file takes of this machine: where another one does it, nothing that a compile would wait for.
pub fn limit(session: &Session, path: Option<&Path>) -> Limit {
    let config = session.configuration.for_path(path);
    if session.machines.of(&config).is_some() { Limit::None } else { Limit::Processor }
}

/// The settings that travel.
pub fn settings(config: &Config, device: Device, workspace: Option<PathBuf>, limit: Duration) -> Settings {
    Settings::new(config, device, workspace, None, limit)
}

/// A device of another machine in a few words: `cuda:0 on gpu01`, and before that was reached ``cuda:0 by `ssh gpu01 stitchcuda worker` ``.
pub fn described(elsewhere: &Elsewhere, device: &Device) -> String {
    match elsewhere.machine() {
        Some(machine) => format!("{device} on {machine}"),
        None => format!("{device} by `{}`", elsewhere.command_line()),
    }
}

/// What another machine has, and what it calls itself.
///
/// # Errors
/// It can't be asked within a time that a person waits.
pub async fn examine(elsewhere: &Elsewhere) -> Result<(String, Vec<Item>), String> {
    let (quiet, cancel) = (|_: &str, _: Option<f32>| {}, CancellationToken::new());
    let files = Files::default();
    let asked = elsewhere.perform(&Order::Doctor, &files, &quiet, &cancel);
    match tokio::time::timeout(LONGEST_EXAMINATION, asked).await {
        Ok(Ok(Outcome::Doctor { items })) => Ok((elsewhere.machine().unwrap_or_default(), items)),
        Ok(Ok(_)) => Err("The worker did something else than was ordered.".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("Nothing came from it within {} s.", LONGEST_EXAMINATION.as_secs())),
    }
}

/// The project of a file, or its folder.
pub fn wanted(workspace: Option<&Path>, path: &Path) -> Wanted {
    Wanted::of(workspace.or_else(|| path.parent()).unwrap_or(path))
}

/// Has an order done as a part of a job.
///
/// # Errors
/// The machine can't be reached, or why nothing came of it.
pub async fn done(
    elsewhere: &Elsewhere,
    order: &Order,
    wanted: Wanted,
    context: &Context,
) -> Result<Outcome, JobError> {
    let progress = |message: &str, share: Option<f32>| context.progress(message, share);
    let files = wanted.gather(context.cancellation()).await.map_err(of_job)?;
    elsewhere.perform(order, &files, &progress, context.cancellation()).await.map_err(of_job)
}

/// Why a job came to nothing.
pub fn of_job(error: WorkerError) -> JobError {
    match error.kind() {
        Kind::Cancelled => JobError::Cancelled,
        _ => JobError::failed(error),
    }
}
