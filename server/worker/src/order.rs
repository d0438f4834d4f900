//! What can be ordered of a worker, and what comes of it. Paths are those of whoever reads: [`relocate`](crate::relocate) changes them on the way.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stitch_agents::optimize::{Answered, Question};
use stitch_findings::Verdict;
use stitch_profiles::profile::Profile;
use stitch_session::config::{Config, Device, Precision};
use stitch_toolchain::doctor::Item;
use stitch_verifier::harness::Answers;
use stitch_verifier::program::{End, Ran, Target};
use stitch_verifier::simulation::Report;
use stitch_verifier::torch::request::SanitizerPolicy;
use stitch_verifier::torch::subject::Subject;

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Order {
    /// Say what the machine has.
    Doctor,
    /// Say which device it would be.
    Look(Box<Look>),
    /// Verify CUDA programs or kernels.
    Verify(Box<Verify>),
    /// Verify PyTorch code.
    VerifyTorch(Box<VerifyTorch>),
    /// Profile a CUDA program or kernel.
    Profile(Box<ProfileCuda>),
    /// Profile PyTorch code.
    ProfileTorch(Box<ProfileTorch>),
    /// Judge versions of a target.
    Judge(Box<Judge>),
}

/// Settings that travel: those that say what is judged and how. Where things lie is each machine's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The device.
    pub device: Device,
    /// What is configured on the person's side.
    pub config: Config,
    /// The folder that headers and compile databases are looked for in.
    pub workspace: Option<PathBuf>,
    /// The interpreter that was named, as the machine knows it.
    pub python: Option<PathBuf>,
    /// How long one run, or one request to a process, may take.
    pub time_limit: Duration,
}

impl Settings {
    /// Those of a person's side. What is of no use elsewhere stays here: programs, folders, and where a model is.
    pub fn new(
        config: &Config,
        device: Device,
        workspace: Option<PathBuf>,
        python: Option<PathBuf>,
        time_limit: Duration,
    ) -> Self {
        let mut config = config.clone();
        config.nvcc.path = None;
        config.cache.folder = None;
        config.log = Default::default();
        config.model = Default::default();
        config.worker = Default::default();
        Self { device, config, workspace, python, time_limit }
    }

    /// The settings that hold there: `own` where things lie and how much may be kept, and the person's for all else.
    pub fn over(&self, own: &Config) -> Config {
        let mut config = self.config.clone();
        config.nvcc.path = own.nvcc.path.clone();
        config.clang.clone_from(&own.clang);
        config.cache.clone_from(&own.cache);
        config.log.clone_from(&own.log);
        // A worker orders nothing of another one.
        config.worker.command.clear();
        config.device = self.device.clone();
        config
    }
}

/// Which device it would be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Look {
    /// The settings.
    pub settings: Settings,
    /// Whether PyTorch code is to run there.
    pub torch: bool,
}

/// Verify CUDA programs or kernels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verify {
    /// The settings.
    pub settings: Settings,
    /// What is right.
    pub reference: Target,
    /// What claims to do the same.
    pub candidate: Target,
    /// The reference and the candidate as they were named.
    pub names: [String; 2],
    /// Arguments for both.
    pub arguments: Vec<String>,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// What was said of a kernel.
    pub answers: Answers,
}

/// Verify PyTorch code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifyTorch {
    /// The settings.
    pub settings: Settings,
    /// What is right, with the inputs of both.
    pub reference: Subject,
    /// What claims to do the same.
    pub candidate: Subject,
    /// The reference and the candidate as they were named.
    pub names: [String; 2],
    /// How far elements may be off, where it was said, and what that is called.
    pub tolerance: (Option<f64>, String),
    /// Whether gradients are compared.
    pub gradients: bool,
    /// Training or evaluation mode; without, as the modules construct themselves.
    pub train: Option<bool>,
    /// When compute-sanitizer looks.
    pub sanitizer: SanitizerPolicy,
    /// Whether the candidate is timed against torch.compile's modes.
    pub compile_baseline: bool,
    /// Calls of each side that are timed, at least.
    pub calls: u64,
    /// How long taking the times may take, in seconds, where it was said.
    pub timing_seconds: Option<f64>,
}

/// Profile a CUDA program or kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileCuda {
    /// The settings.
    pub settings: Settings,
    /// What is profiled.
    pub target: Target,
    /// It as it was named.
    pub name: String,
    /// Arguments for it.
    pub arguments: Vec<String>,
    /// What was said of a kernel.
    pub answers: Answers,
    /// The way to profile that was asked for.
    pub by: Option<String>,
    /// The share of blocks that is simulated.
    pub sample: Option<f64>,
    /// For how long all blocks are simulated before a sample of them is.
    pub budget: Option<Duration>,
    /// Whether it is measured also where it was kept.
    pub fresh: bool,
    /// Whether PyTorch's own device, `cpu`, means the simulator.
    pub or_simulated: bool,
}

/// Profile PyTorch code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileTorch {
    /// The settings.
    pub settings: Settings,
    /// What is called.
    pub subject: Subject,
    /// It as it was named.
    pub name: String,
    /// The person's own folders, whose lines a trace is told at.
    pub folders: Vec<PathBuf>,
    /// Whether it is measured also where it was kept.
    pub fresh: bool,
}

/// Judge versions of a target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judge {
    /// The settings.
    pub settings: Settings,
    /// The person's own file, which versions stand for.
    pub file: PathBuf,
    /// What is judged.
    pub target: Judged,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
    /// What is asked.
    pub question: Question,
}

/// What is judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Judged {
    /// A CUDA program or kernel.
    Cuda {
        /// It.
        target: Target,
        /// Arguments for a program.
        arguments: Vec<String>,
        /// What was said of a kernel.
        answers: Answers,
        /// The functions that may be changed.
        scope: Vec<String>,
    },
    /// PyTorch code; what it is called with is read there, from the text of the reference.
    Torch {
        /// What is called and with what, as it was found.
        subject: Subject,
        /// The name of the class or function, or the lines.
        name: String,
        /// Training or evaluation mode, where it was said.
        train: Option<bool>,
    },
}

/// What came of an order, of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "kebab-case")]
pub enum Outcome {
    /// What the machine has.
    Doctor {
        /// Its items.
        items: Vec<Item>,
    },
    /// The device.
    Looked {
        /// Its short name: `cuda:0`.
        id: String,
        /// As a verdict names it: `cuda:0 (NVIDIA H200) on gpu01`.
        device: String,
    },
    /// A verdict.
    Verdict {
        /// It.
        verdict: Box<Verdict>,
    },
    /// A profile of a GPU.
    Profile {
        /// It.
        profile: Box<Profile>,
    },
    /// A run on the simulator.
    Simulated {
        /// The device.
        device: String,
        /// What is known of it.
        profile: Box<Profile>,
        /// It.
        run: Box<SimulatedRun>,
    },
    /// An answer of a judgement.
    Judged {
        /// It.
        answered: Answered,
    },
}

/// A program's run on the simulator.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SimulatedRun {
    /// The program's exit status.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it came to no end by itself, in a sentence.
    pub ended: Option<String>,
    /// What it printed.
    pub stdout: String,
    /// What it printed on its standard error.
    pub stderr: String,
    /// What was counted.
    pub report: Option<Report>,
}

impl From<SimulatedRun> for Ran {
    fn from(run: SimulatedRun) -> Self {
        let end = match (run.exit_status, run.signal, run.ended) {
            (Some(status), ..) => End::Status(status),
            (_, Some(signal), _) => End::Signal(signal),
            (.., ended) => End::Ended(ended.unwrap_or_default()),
        };
        Self {
            end,
            stdout: run.stdout,
            stderr: run.stderr,
            wall: Duration::ZERO,
            report: run.report.map(Arc::new),
            copies: None,
            perturbed: 0,
            unseen: Vec::new(),
        }
    }
}
