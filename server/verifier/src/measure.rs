//! What running a target costs: on a GPU measured time, on the simulator an estimate from what was counted, under stated weights.
//!
//! Time is that of our own clock, around calls that another process makes when it is told to, or around whole processes. What runs in the judged
//! process (events, profilers) may accuse it, and never acquits it. See [`sample`] for how the time of a call follows.
//!
//! A functional model knows how many instructions warps issue and how many sectors and wavefronts memory moves, and nothing of
//! how these overlap. So an estimate is a sum, not a time: each kind of work at the rate at which a multiprocessor does it alone. That makes
//! every kind worth saving, and a candidate that saves one and spends another is judged by what both are worth.

mod cost;
mod counted;
mod harnesses;
mod pick;
mod process;
pub mod sample;
mod stopwatch;
mod table;
mod timed;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

pub(crate) use cost::estimate;
pub use cost::{Cost, KernelCost, Time, Timed, Traffic, Weights};
pub(crate) use counted::twin;
pub use harnesses::Harnesses;
pub(crate) use table::interval;
pub use table::table;
pub use timed::{Comparison, build_ahead, compare};

use crate::harness::{self, Answers, Subject};
use crate::program::{BuildError, Builder, End, Program, RunDevice, RunError, Running, Target, build, run};
use crate::simulation::{Checks, Options, Report};
use crate::verify::{VerifyError, ended, harness_around, harness_for};

/// What was measured of one version of a target.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it costs.
    pub cost: Cost,
    /// What the simulator reports; for a GPU, of a device of its architecture, where the kernel can be simulated.
    pub report: Arc<Report>,
}

/// How a target is run to be measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// How it is built, and for which device.
    pub builder: Builder,
    /// Arguments for a program.
    pub arguments: Vec<String>,
    /// What was said of a kernel.
    pub answers: Answers,
    /// The functions that may be changed, whose kernels are timed; all of the file where it is empty.
    pub scope: Vec<String>,
    /// How far a number may be off after timed calls, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// How long one run may take.
    pub time_limit: Duration,
    /// Our own program, for the simulator's process.
    pub executable: PathBuf,
    /// Harnesses that were built for this target before.
    pub harnesses: Harnesses,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It does not build.
    #[error(transparent)]
    Build(BuildError),
    /// It does not run.
    #[error(transparent)]
    Run(RunError),
    /// It ran and failed.
    #[error("The program {how}, so there is nothing to measure.")]
    Fails {
        /// How: `ended with exit status 1`.
        how: String,
    },
    /// It launched no kernel.
    #[error("The program launched no kernel, so there is nothing to measure.")]
    NoKernel,
    /// What it gives after timed calls is not what the reference gives.
    #[error("What it computes is wrong when it is timed: {how}.")]
    Differs {
        /// Where.
        how: String,
    },
    /// What is timed is shorter than what all else varies by.
    #[error("It is too short to be timed: the rest of the process varies by more. Give it more data.")]
    Unresolved,
    /// There is no harness for the kernel.
    #[error(transparent)]
    Harness(#[from] VerifyError),
    /// The job was cancelled.
    #[error("The measurement was cancelled.")]
    Cancelled,
}

impl From<BuildError> for MeasureError {
    fn from(error: BuildError) -> Self {
        if matches!(error, BuildError::Cancelled) { Self::Cancelled } else { Self::Build(error) }
    }
}

impl From<RunError> for MeasureError {
    fn from(error: RunError) -> Self {
        if matches!(error, RunError::Cancelled) { Self::Cancelled } else { Self::Run(error) }
    }
}

/// Runs a version of a target, and says what its kernels cost. A kernel runs in the harness of the reference's
/// kernel, so that all versions get the same inputs.
///
/// # Errors
/// It does not build or run, or the job was cancelled.
pub async fn measure(
    measurement: &Measurement,
    reference: &Target,
    version: &Target,
    cancel: &CancellationToken,
) -> Result<Measured, MeasureError> {
    if matches!(measurement.builder.device, RunDevice::Cuda { .. }) {
        return timed::baseline(measurement, reference, version, cancel).await;
    }
    let scratch = Scratch::new("harness")
        .map_err(|source| VerifyError::File { path: PathBuf::from("the scratch folder"), source })?;
    let program = match reference {
        Target::Program(_) => program_of(version, &measurement.answers, &scratch)?,
        Target::Kernel { path, kernel } => {
            let text = harness_around((path, kernel), version, &measurement.answers, harness::write)?;
            harness_program(&text, path, kernel, &scratch)?
        }
    };
    let built = build(&measurement.builder, &program, cancel).await?;
    let running = Running {
        device: measurement.builder.device.clone(),
        arguments: measurement.arguments.clone(),
        time_limit: measurement.time_limit,
        simulation: Options {
            executable: measurement.executable.clone(),
            counters: true,
            // What it costs is asked here, not what is wrong with it.
            checks: Checks::None,
            ..Options::default()
        },
    };
    let ran = run(&built, &running, cancel).await?;
    let report = ran.report.unwrap_or_default();
    let how = match (&ran.end, report.faults.first()) {
        (End::Status(0), None) => None,
        (_, Some(fault)) => Some(format!("faults ({})", fault.words())),
        (end, None) => Some(ended(end)),
    };
    if let Some(how) = how {
        return Err(MeasureError::Fails { how });
    }
    if report.kernels.is_empty() {
        return Err(MeasureError::NoKernel);
    }
    let weights = Weights::of(&measurement.builder.device);
    let cost = Cost::of(&report, &weights, measurement.builder.device.to_string());
    Ok(Measured { cost, report })
}

/// The program to run for a target: itself, or the harness of a kernel, written into `scratch`.
///
/// # Errors
/// There is no such kernel, something must be said about it, or the harness can't be written.
pub fn program_of(target: &Target, answers: &Answers, scratch: &Scratch) -> Result<Program, VerifyError> {
    match target {
        Target::Program(program) => Ok(Program::clone(program)),
        Target::Kernel { path, kernel } => {
            let prepared = harness_for(path, kernel, answers)?;
            let subject = Subject { path, kernel: &prepared.kernel, configuration: None };
            harness_program(&harness::write(&prepared.harness, &subject), path, kernel, scratch)
        }
    }
}

/// Writes the text of a harness around a kernel of `path` into `scratch`, as a program.
fn harness_program(text: &str, path: &Path, name: &str, scratch: &Scratch) -> Result<Program, VerifyError> {
    let file = scratch.path().join("harness.cu");
    std::fs::write(&file, text).map_err(|source| VerifyError::File { path: file.clone(), source })?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(Program { name: name.to_owned(), sources: vec![file], folder, ..Program::default() })
}

#[cfg(test)]
mod tests;
