//! What a verification of PyTorch code is asked for, and why there is no verdict.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stitch_session::cache::Cache;

use super::host::{ChildError, HostError, Place, Python, Role, Wrap};
use super::judge::Rule;
use super::simulated::Simulation;
use super::subject::Subject;

/// When the tools of compute-sanitizer look at a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SanitizerPolicy {
    /// Whenever it is right.
    Always,
    /// Before it is called faster.
    #[default]
    Final,
    /// Never; the verdict says so.
    Never,
}

/// A verification.
#[derive(Clone)]
pub struct Request {
    /// What is right, with the inputs of both.
    pub reference: Subject,
    /// What claims to do the same. Its cases are the reference's.
    pub candidate: Subject,
    /// The reference as it was named.
    pub reference_name: String,
    /// The candidate as it was named.
    pub candidate_name: String,
    /// Where tensors live.
    pub place: Place,
    /// Runs the candidate's CUDA extensions, where its tensors live on the CPU and pass for those of a GPU.
    pub simulation: Option<Simulation>,
    /// The device as a verdict names it: `cpu`, `cuda:0 (NVIDIA H200)`.
    pub device: String,
    /// The device as the guard of an edited file names it: `cpu`, `cuda:9.0` with the compute capability.
    pub kind_of_device: String,
    /// The person's own file, for which both versions stand: what they import is looked for beside it. Without, beside each.
    pub stands_for: Option<PathBuf>,
    /// The size of the device's L2 cache in bytes; 0 leaves it alone.
    pub l2_bytes: u64,
    /// The newest CUDA version that the driver runs.
    pub driver: Option<String>,
    /// The interpreter.
    pub python: Python,
    /// How far elements may be off.
    pub rule: Rule,
    /// What that is called: `usual`, `kernelbench-old`, `given`.
    pub tolerance_name: String,
    /// Whether gradients are compared.
    pub gradients: bool,
    /// Training or evaluation mode; without, as the modules construct themselves.
    pub train: Option<bool>,
    /// When compute-sanitizer looks.
    pub sanitizer: SanitizerPolicy,
    /// Its program, where it was found.
    pub sanitizer_program: Option<PathBuf>,
    /// Whether the candidate is timed against torch.compile's modes.
    pub compile_baseline: bool,
    /// Calls of each side that are timed, at least; 0 times nothing.
    pub calls: u64,
    /// How long taking the times of both sides may take, in seconds. It ends before, as soon as the interval is narrow or can't become so; where
    /// fewer calls than these were made by then, it goes on to four times as long.
    pub timing_seconds: f64,
    /// How long one request to a process may take.
    pub time_limit: Duration,
    /// How much memory a process may take, in bytes, where the sandbox can see to it.
    pub memory_bytes: Option<u64>,
    /// Puts a process into a sandbox.
    pub wrap: Wrap,
    /// What that sandbox is, in a sentence.
    pub sandbox: String,
    /// Variables that processes get besides the usual: `CUDA_HOME`.
    pub environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// Files and folders that both sides read besides their own: the toolkit.
    pub readable: Vec<PathBuf>,
    /// Where times of baselines are kept.
    pub cache: Cache,
}

impl Request {
    /// The version of a role.
    pub fn subject(&self, role: Role) -> &Subject {
        match role {
            Role::Reference => &self.reference,
            Role::Candidate => &self.candidate,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = (&self.reference_name, &self.candidate_name, &self.device);
        formatter.debug_tuple("Request").field(&names).finish()
    }
}

/// Called with what is done now, and how much is done, from 0 to 1, where that is known.
pub type Progress<'a> = dyn Fn(&str, Option<f32>) + Send + Sync + 'a;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum TorchError {
    /// The reference fails by itself.
    #[error("The reference itself fails{during}, so there is nothing to compare with: {error}")]
    Reference {
        /// When, to follow "fails": ` for its own inputs`.
        during: String,
        /// How.
        error: Box<ChildError>,
    },
    /// There is no process to ask: no torch, no system resources.
    #[error(transparent)]
    Host(HostError),
    /// The device can't be had.
    #[error("{0}")]
    Device(String),
    /// The system gave no folder.
    #[error("{what}: {source}.")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The job was cancelled.
    #[error("The verification was cancelled.")]
    Cancelled,
}

impl From<HostError> for TorchError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Cancelled => Self::Cancelled,
            error => Self::Host(error),
        }
    }
}

impl TorchError {
    /// An error of the reference's process.
    pub(super) fn of_reference(during: &str, error: ChildError) -> Self {
        match error {
            ChildError::Cancelled => Self::Cancelled,
            error => Self::Reference { during: during.to_owned(), error: Box::new(error) },
        }
    }
}
