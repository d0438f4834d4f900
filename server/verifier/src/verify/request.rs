//! What a verification is asked for, and why there is no verdict.

use std::path::PathBuf;
use std::time::Duration;

use crate::harness::{Answers, KernelError, PlanError};
use crate::program::{BuildError, Builder, RunError, Target};

/// A verification.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is right.
    pub reference: Target,
    /// What claims to do the same.
    pub candidate: Target,
    /// The reference as it was named.
    pub reference_name: String,
    /// The candidate as it was named.
    pub candidate_name: String,
    /// How both are built, and for which device.
    pub builder: Builder,
    /// Arguments for both.
    pub arguments: Vec<String>,
    /// How far a number may be off, relative to it; what is usual for its type where it is `None`.
    pub tolerance: Option<f64>,
    /// What was said of a kernel.
    pub answers: Answers,
    /// How long one run may take.
    pub time_limit: Duration,
    /// Our own program, for the simulator's process.
    pub executable: PathBuf,
}

/// Called with what is done now.
pub type Progress<'a> = dyn Fn(&str) + Send + Sync + 'a;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The reference does not build.
    #[error("The reference does not build, so there is nothing to compare with. {0}")]
    ReferenceBuild(BuildError),
    /// The reference runs, but fails.
    #[error("The reference itself fails, so there is nothing to compare with: it {how}.{said}")]
    ReferenceFails {
        /// How: `ended with exit status 1`.
        how: String,
        /// Its last words.
        said: String,
    },
    /// A program could not be built for want of something.
    #[error(transparent)]
    Build(BuildError),
    /// A program could not be run.
    #[error(transparent)]
    Run(RunError),
    /// There is no harness.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no such kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The two are not of a kind.
    #[error("{0}")]
    Mismatch(String),
    /// A file can't be read or written.
    #[error("{} could not be read or written: {source}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The job was cancelled.
    #[error("The verification was cancelled.")]
    Cancelled,
}

impl From<RunError> for VerifyError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Cancelled => Self::Cancelled,
            error => Self::Run(error),
        }
    }
}
