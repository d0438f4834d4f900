//! Takes a profile of a program by the best way that works here: on a GPU by the ladder, on a simulated device by its counters.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_profiles::profile::{NotTaken, Profile};
use stitch_session::cache::Cache;
use stitch_session::folders::Folders;
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::cuda::{CollectError, Order, collect, here};
use super::kept::Place;
use super::ladder::{Here, Rung, plan};
use super::remember::Memory;
use super::{lower, simulated};
use crate::measure::{Measurement, program_of};
use crate::program::{
    BuildError, Builder, Built, End, Listing, Program, Ran, RunDevice, RunError, Running, Target, build_and,
    run,
};
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
    /// Whether what was measured before is measured again.
    pub fresh: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What is known.
    pub profile: Profile,
    /// The run on the simulator, where there was one. How it ended is for the caller to judge.
    pub ran: Option<Ran>,
    /// How long building and running took.
    pub took: Duration,
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

/// What was kept of the same profile, if it still holds. Nothing is built or run.
pub async fn kept(wanted: &Wanted<'_>) -> Option<Taken> {
    let (_, place) = place(wanted).await;
    found(place?.into(), wanted.target).await
}

/// The ways to profile that there are on a GPU, and where what is wanted is kept.
async fn place(wanted: &Wanted<'_>) -> (Option<(Here, Memory)>, Option<Place>) {
    let cache = Cache::configured(&wanted.builder.config.cache, &Folders::find());
    let ladder = match wanted.running.device {
        RunDevice::Simulator(_) => None,
        RunDevice::Cuda { .. } => Some(here(wanted.search, &wanted.builder.toolkit, cache.clone())),
    };
    let ways = ladder.as_ref().map(|(here, _)| format!("{:?} {:?}", here.profilers, plan(here)));
    (ladder, Place::of(wanted, cache, &ways.unwrap_or_default()).await)
}

/// What is kept at a place, under the name that a person gave now.
async fn found(place: Arc<Place>, target: &str) -> Option<Taken> {
    let found = tokio::task::spawn_blocking(move || place.get()).await.ok()??;
    Some(Taken { profile: Profile { target: target.to_owned(), ..found.profile }, ..found })
}

/// Takes a profile, or gives the one that was kept. `say` is told what is done.
///
/// # Errors
/// The program does not build or run, or the job was cancelled.
pub async fn take(
    wanted: &Wanted<'_>,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<Taken, TakeError> {
    let (ladder, place) = place(wanted).await;
    let place = place.map(Arc::new);
    if let Some(place) = place.clone().filter(|_| !wanted.fresh)
        && let Some(kept) = found(place, wanted.target).await
    {
        return Ok(kept);
    }
    let began = Instant::now();
    say("building");
    let built = build_and(wanted.builder, wanted.program, Listing::Files, cancel).await?;
    let (mut profile, ran) = match ladder {
        None => on_simulator(wanted, &built, say, cancel).await?,
        Some(ladder) => (on_gpu(wanted, &built, &ladder, say, cancel).await?, None),
    };
    profile.way.measured = now();
    let taken = Taken { profile, ran, took: began.elapsed() };
    if let Some(place) = place {
        let for_blocking = taken.clone();
        // What is not kept is only measured again.
        let _ = tokio::task::spawn_blocking(move || place.put(&for_blocking, &built)).await;
    }
    Ok(taken)
}

async fn on_simulator(
    wanted: &Wanted<'_>,
    built: &Built,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<(Profile, Option<Ran>), TakeError> {
    say("simulating");
    let device = &wanted.running.device;
    let ran = match run(built, wanted.running, cancel).await {
        // The simulator refuses the program; what is written of it can still be read.
        Err(RunError::Simulation(error)) => {
            say("looking at it without running it");
            let refused = NotTaken { by: Rung::Simulator.to_string(), why: error.to_string() };
            let not_taken = vec![simulated::without_gpu(&device.to_string()), refused];
            return Ok((lower::statically(wanted, not_taken, cancel).await?, None));
        }
        ran => ran?,
    };
    let report = ran.report.clone().unwrap_or_default();
    Ok((simulated::profile(&report, wanted.target, device), Some(ran)))
}

async fn on_gpu(
    wanted: &Wanted<'_>,
    built: &Built,
    (here, memory): &(Here, Memory),
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<Profile, TakeError> {
    let Wanted { target, running, only, .. } = *wanted;
    let order = Order { target, built, running, here, only, memory };
    let mut not_taken = match collect(&order, say, cancel).await {
        // Who wants one way wants no other.
        Err(CollectError::NoWay { not_taken }) if only.is_none() => not_taken,
        collected => return Ok(collected?),
    };
    let with = |mut profile: Profile, not_taken| {
        profile.way.not_taken = not_taken;
        profile
    };
    say("timing it by our own clock");
    match lower::timed(wanted, cancel).await? {
        Ok(profile) => return Ok(with(profile, not_taken)),
        Err(why) => not_taken.push(NotTaken { by: Rung::Clock.to_string(), why }),
    }
    say("simulating");
    match lower::on_twin(wanted, cancel).await? {
        Ok(profile) => return Ok(with(profile, not_taken)),
        Err(why) => not_taken.push(NotTaken { by: Rung::Simulator.to_string(), why }),
    }
    say("looking at it without running it");
    lower::statically(wanted, not_taken, cancel).await
}

/// Now, as [`Way::measured`](stitch_profiles::profile::Way) has it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
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
    let wanted = Wanted {
        target: name,
        program: &program,
        builder,
        running: &running,
        search: &search,
        only: None,
        fresh: false,
    };
    let taken = take(&wanted, say, cancel).await?;
    match taken.ran.map(|ran| ran.end) {
        None | Some(End::Status(0)) => Ok(taken.profile),
        Some(end) => Err(TakeError::Ended(format!(
            "The program {}, so there is nothing to profile.",
            crate::verify::ended(&end)
        ))),
    }
}
