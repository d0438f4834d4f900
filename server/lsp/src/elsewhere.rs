//! Other machines whose devices are configured: one connection to each, opened when a job needs it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stitch_session::config::{Config, Device};
use stitch_session::jobs::{Context, JobError};
use stitch_worker::client::{Elsewhere, WorkerError};
use stitch_worker::files::Wanted;
use stitch_worker::order::{Order, Outcome, Settings};
use stitch_worker::protocol::Kind;

/// The machines that were used.
#[derive(Debug, Default)]
pub struct Machines(Mutex<Vec<Elsewhere>>);

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

/// The settings that travel.
pub fn settings(config: &Config, device: Device, workspace: Option<PathBuf>, limit: Duration) -> Settings {
    Settings::new(config, device, workspace, None, limit)
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
    let files = wanted.gather().await.map_err(of_job)?;
    elsewhere.perform(order, &files, &progress, context.cancellation()).await.map_err(of_job)
}

/// Why a job came to nothing.
pub fn of_job(error: WorkerError) -> JobError {
    match error.kind() {
        Kind::Cancelled => JobError::Cancelled,
        _ => JobError::failed(error),
    }
}
