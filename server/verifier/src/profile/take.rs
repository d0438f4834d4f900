//! Takes a profile of a program by the best way that works here: on a GPU by the ladder, on a simulated device by its counters.

use std::path::PathBuf;
use std::time::Duration;

use stitch_profiles::profile::Profile;
use stitch_session::cache::Cache;
use stitch_session::folders::Folders;
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::cuda::{CollectError, Order, collect, here};
use super::ladder::Rung;
use super::simulated;
use crate::measure::{Measurement, program_of};
use crate::program::{BuildError, Builder, End, Program, Ran, RunDevice, RunError, Running, Target, build, run};
use crate::simulation::Options;
use crate::verify::VerifyError;

/// What is profiled, and how.
pub struct Wanted<'a> {
    /// What a person named.
    pub target: &'a str,
    /// The program.
    pub program: &'a Program,
    /// How it is built, and for which device.
    pub builder: &'a Builder,
    /// How it is run.
    pub running: &'a Running,
    /// Where profilers are looked for.
    pub search: &'a Search,
    /// The only way that a person wants on a GPU, where they said so.
    pub only: Option<Rung>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What is known.
    pub profile: Profile,
    /// The run on the simulator, where there was one. How it ended is for the caller to judge.
    pub ran: Option<Ran>,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The program does not build.
    #[error(transparent)]
    Build(BuildError),
    /// It does not run.
    #[error(transparent)]
    Run(RunError),
    /// No profiler tells anything.
    #[error(transparent)]
    Collect(CollectError),
    /// There is no harness for the kernel.
    #[error(transparent)]
    Harness(#[from] VerifyError),
    /// The program came to no end of its own.
    #[error("{0}")]
    Ended(String),
    /// The job was cancelled.
    #[error("The profile was cancelled.")]
    Cancelled,
}

impl From<BuildError> for TakeError {
    fn from(error: BuildError) -> Self {
        if matches!(error, BuildError::Cancelled) { Self::Cancelled } else { Self::Build(error) }
    }
}

impl From<RunError> for TakeError {
    fn from(error: RunError) -> Self {
        if matches!(error, RunError::Cancelled) { Self::Cancelled } else { Self::Run(error) }
    }
}

impl From<CollectError> for TakeError {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Cancelled => Self::Cancelled,
            CollectError::Run(error) => error.into(),
            error => Self::Collect(error),
        }
    }
}

/// Takes a profile. `say` is told what is done.
///
/// # Errors
/// The program does not build or run, or the job was cancelled.
pub async fn take(
    wanted: &Wanted<'_>,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<Taken, TakeError> {
    let Wanted { target, program, builder, running, .. } = *wanted;
    say("building");
    let built = build(builder, program, cancel).await?;
    if matches!(running.device, RunDevice::Simulator(_)) {
        say("simulating");
        let ran = run(&built, running, cancel).await?;
        let report = ran.report.clone().unwrap_or_default();
        return Ok(Taken { profile: simulated::profile(&report, target, &running.device), ran: Some(ran) });
    }
    let cache = Cache::configured(&builder.config.cache, &Folders::find());
    let (here, memory) = here(wanted.search, &builder.toolkit, cache);
    let order = Order { target, built: &built, running, here: &here, only: wanted.only, memory: &memory };
    Ok(Taken { profile: collect(&order, say, cancel).await?, ran: None })
}

/// Takes a profile of a target as it is measured: of a program, or of a kernel in its harness. A run of it may take `limit`.
///
/// # Errors
/// It does not build or run to a good end, or the job was cancelled.
pub async fn of_target(
    measurement: &Measurement,
    target: &Target,
    name: &str,
    limit: Duration,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<Profile, TakeError> {
    let scratch = Scratch::new("harness")
        .map_err(|source| VerifyError::File { path: PathBuf::from("the scratch folder"), source })?;
    let program = program_of(target, &measurement.answers, &scratch)?;
    let running = Running {
        device: measurement.builder.device.clone(),
        arguments: measurement.arguments.clone(),
        time_limit: limit.min(measurement.time_limit),
        simulation: Options {
            executable: measurement.executable.clone(),
            counters: true,
            ..Options::default()
        },
    };
    let search = Search::new(Environment::of_this_process());
    let builder = &measurement.builder;
    let wanted =
        Wanted { target: name, program: &program, builder, running: &running, search: &search, only: None };
    let taken = take(&wanted, say, cancel).await?;
    match taken.ran.map(|ran| ran.end) {
        None | Some(End::Status(0)) => Ok(taken.profile),
        Some(end) => {
            Err(TakeError::Ended(format!("The program {}, so there is nothing to profile.", crate::verify::ended(&end))))
        }
    }
}
