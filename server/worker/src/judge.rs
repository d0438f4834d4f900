//! Carries the questions of a judgement to another machine, with the files of the versions they are about.

use std::path::PathBuf;

use stitch_agents::optimize::{Answered, Asking, Carry, JudgeError, Question};
use stitch_session::config::Precision;
use tokio_util::sync::CancellationToken;

use crate::client::{Elsewhere, WorkerError};
use crate::files::Wanted;
use crate::order::{Judge, Judged, Look, Order, Outcome, Settings};
use crate::perform::Progress;
use crate::protocol::Kind;

/// A judgement on another machine, as it is ordered each time.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// The machine.
    pub elsewhere: Elsewhere,
    /// The settings that travel.
    pub settings: Settings,
    /// The person's own file, which versions stand for.
    pub file: PathBuf,
    /// What is judged.
    pub target: Judged,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
}

impl Carrier {
    /// The files of a question: the versions, and what the person's own file reads.
    fn wanted(&self, question: &Question) -> Wanted {
        let workspace = self.settings.workspace.clone().or_else(|| Some(self.file.parent()?.to_owned()));
        let wanted = Wanted::of(&workspace.unwrap_or_default());
        let mut wanted = match &self.target {
            Judged::Cuda { target, arguments, .. } => {
                let mut wanted = wanted.with_target(target);
                wanted.arguments.extend(arguments.iter().cloned());
                wanted
            }
            Judged::Torch { subject, .. } => wanted.with_subject(subject),
        }
        .with_flags(&self.settings.config.nvcc.extra_flags);
        wanted.sources.push(self.file.clone());
        wanted.sources.extend(question.files().into_iter().cloned());
        wanted
    }

    async fn answer(
        &self,
        question: Question,
        progress: &Progress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answered, WorkerError> {
        let files = self.wanted(&question).gather(cancel).await?;
        let order = Order::Judge(Box::new(Judge {
            settings: self.settings.clone(),
            file: self.file.clone(),
            target: self.target.clone(),
            tolerance: self.tolerance,
            precision: self.precision,
            question,
        }));
        match self.elsewhere.perform(&order, &files, progress, cancel).await? {
            Outcome::Judged { answered } => Ok(answered),
            _ => Err(WorkerError::Internal("another outcome than was ordered".to_owned())),
        }
    }
}

impl Carry for Carrier {
    fn ask<'a>(
        &'a self,
        question: Question,
        progress: &'a (dyn Fn(&str) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> Asking<'a> {
        Box::pin(async move {
            let say = |message: &str, _: Option<f32>| progress(message);
            self.answer(question, &say, cancel).await.map_err(JudgeError::from)
        })
    }
}

impl From<WorkerError> for JudgeError {
    fn from(error: WorkerError) -> Self {
        match error.kind() {
            Kind::Cancelled => Self::Cancelled,
            kind => Self::Elsewhere { message: error.to_string(), status: kind.status() },
        }
    }
}

/// A device of another machine: its short name, and as a verdict names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `cuda:0`.
    pub id: String,
    /// `cuda:0 (NVIDIA H200) on gpu01`.
    pub name: String,
}

/// Asks which device code of a kind would run on.
///
/// # Errors
/// The machine can't be reached, or has no such device.
pub async fn look(
    elsewhere: &Elsewhere,
    settings: &Settings,
    torch: bool,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Device, WorkerError> {
    let order = Order::Look(Box::new(Look { settings: settings.clone(), torch }));
    match elsewhere.perform(&order, &Default::default(), progress, cancel).await? {
        Outcome::Looked { id, device } => Ok(Device { id, name: device }),
        _ => Err(WorkerError::Internal("another outcome than was ordered".to_owned())),
    }
}
