//! What a command has done on another machine, where `worker.command` names one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use stitch_session::config::{Config, Device};
use stitch_session::jobs::{JobKind, Request as Job};
use stitch_verifier::program::Target;
use stitch_worker::client::{Elsewhere, WorkerError};
use stitch_worker::files::Wanted;
use stitch_worker::order::{Order, Outcome, Settings};
use stitch_worker::protocol::Kind;

use crate::interrupt;
use crate::progress::{Spinner, Telling};
use crate::settings::Surrounding;
use crate::setup::ProgramArguments;
use crate::status::Status;

/// What is ordered, of which machine.
pub struct Ordered {
    /// The machine.
    pub elsewhere: Elsewhere,
    /// What is to be done.
    pub order: Order,
    /// What it is about.
    pub wanted: Wanted,
    /// What the job is called.
    pub title: String,
    /// Of what kind it is.
    pub kind: JobKind,
}

/// The settings that travel, for code in `file`.
pub fn settings(
    surrounding: &Surrounding,
    arguments: &ProgramArguments,
    config: &Config,
    device: Device,
    file: Option<&Path>,
    python: Option<PathBuf>,
) -> Settings {
    let workspace = crate::setup::workspace_around(surrounding, file);
    Settings::new(config, device, Some(workspace), python, arguments.limit())
}

/// What a target is about.
pub fn wanted(surrounding: &Surrounding, target: &Target) -> Wanted {
    Wanted::of(&crate::setup::workspace_around(surrounding, crate::setup::file(target))).with_target(target)
}

impl Ordered {
    /// Has it done, with what is done now shown. `Err` with the status where nothing came of it; why was said.
    ///
    /// # Errors
    /// A system that gives no threads.
    pub fn done(self) -> Result<std::result::Result<Outcome, Status>> {
        let Self { elsewhere, order, wanted, title, kind } = self;
        let result = interrupt::until_done(1, |jobs, _| async move {
            let machine = elsewhere.clone();
            let work = async move |telling: Telling| {
                let progress = |message: &str, share: Option<f32>| telling.say(message, share);
                let performed = async {
                    let files = wanted.gather(telling.cancellation()).await?;
                    machine.perform(&order, &files, &progress, telling.cancellation()).await
                };
                Ok(performed.await)
            };
            let result = Spinner::new().watch(&jobs, Job::new(kind, title), work).await;
            elsewhere.close().await;
            result
        })?;
        Ok(match result {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(Status::of_job(&error)),
        })
    }
}

/// Says why nothing came of an order.
pub fn failed(error: &WorkerError) -> Status {
    let status = Status::from(error.kind());
    if status != Status::Interrupted {
        anstream::eprintln!("error: {error}");
    }
    status
}

/// Another machine answered what nobody asked.
pub fn other_outcome() -> Status {
    anstream::eprintln!(
        "error: The worker did something else than was ordered. This is a bug; please report it."
    );
    Status::Bad
}

impl From<Kind> for Status {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Bad => Self::Bad,
            Kind::Usage => Self::Usage,
            Kind::Missing => Self::Missing,
            Kind::Cancelled => Self::Interrupted,
        }
    }
}
