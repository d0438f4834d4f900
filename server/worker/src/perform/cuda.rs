//! CUDA programs and kernels.

use std::sync::Arc;
use std::time::Duration;

use stitch_session::config::{Config, Device};
use stitch_toolchain::discovery;
use stitch_toolchain::process::Scratch;
use stitch_verifier::measure::program_of;
use stitch_verifier::profile::cuda::CollectError;
use stitch_verifier::profile::ladder::Rung;
use stitch_verifier::profile::take::{TakeError, Taken, Wanted, take};
use stitch_verifier::program::{self, Builder, End, Ran, RunDevice, Running, Target};
use stitch_verifier::simulation::{Options, checks};
use stitch_verifier::verify::{self, Request};
use tokio_util::sync::CancellationToken;

use super::{Failure, Here, Progress};
use crate::order::{Outcome, ProfileCuda, Settings, SimulatedRun, Verify};

/// The device that is simulated where the processor was asked for.
const USUAL: &str = "h200";

impl Here {
    /// How programs are built and where they run.
    pub(super) async fn builder(
        &self,
        settings: &Settings,
        target: &Target,
        config: Arc<Config>,
    ) -> Result<Builder, Failure> {
        let device = program::choose(&config.device).await.map_err(Failure::missing)?;
        let found = discovery::find(&self.search(settings.workspace.as_deref()));
        let Some(toolkit) = found.chosen.clone() else {
            return Err(Failure::missing(found.advice()));
        };
        let prepared = Builder::prepare(device, toolkit, config, settings.workspace.clone()).await;
        let mut builder = prepared.map_err(Failure::missing)?;
        // A person's own build is bounded like a run of theirs; a compile by nvcc as it is configured.
        if matches!(target, Target::Program(program) if program.own.is_some()) {
            builder.time_limit = settings.time_limit;
        }
        Ok(builder)
    }
}

/// Verifies CUDA programs or kernels.
pub(super) async fn verify(
    here: &Here,
    order: &Verify,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Outcome, Failure> {
    let settings = &order.settings;
    let builder = here.builder(settings, &order.reference, here.config(settings)).await?;
    let [reference_name, candidate_name] = order.names.clone();
    let request = Request {
        reference: order.reference.clone(),
        candidate: order.candidate.clone(),
        reference_name,
        candidate_name,
        builder,
        arguments: order.arguments.clone(),
        tolerance: order.tolerance,
        answers: order.answers.clone(),
        time_limit: settings.time_limit,
        executable: here.executable.clone(),
    };
    let say = |message: &str| progress(message, None);
    let mut verdict = verify::verify(&request, &say, cancel).await?;
    verdict.device = here.named(&verdict.device);
    Ok(Outcome::Verdict { verdict: Box::new(verdict) })
}

/// Profiles a CUDA program or kernel.
pub(super) async fn profile(
    here: &Here,
    order: &ProfileCuda,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Outcome, Failure> {
    let settings = &order.settings;
    let mut config = Config::clone(&here.config(settings));
    if order.or_simulated && config.device == Device::Cpu {
        config.device = Device::Simulator(USUAL.to_owned());
    }
    let builder = here.builder(settings, &order.target, Arc::new(config)).await?;
    let only = order.by.as_deref().and_then(Rung::named);
    let device = here.named(&builder.device.to_string());
    let is_simulated = matches!(builder.device, RunDevice::Simulator(_));
    if is_simulated && only.is_some() {
        return Err(Failure::usage(format!("`--by` is for a GPU, and the device is {device}.")));
    }
    let harnesses = Scratch::new("harness")
        .map_err(|error| Failure::bad(format!("There is no folder for a harness: {error}.")))?;
    let program = program_of(&order.target, &order.answers, &harnesses)?;
    let running = Running {
        device: builder.device.clone(),
        arguments: order.arguments.clone(),
        time_limit: settings.time_limit,
        simulation: Options {
            executable: here.executable.clone(),
            counters: true,
            // On one thread: for who asked, and has the time.
            caches: order.budget.is_none(),
            sample: order.sample,
            budget: order.budget,
            checks: checks(builder.config.simulator.checks),
            ..Options::default()
        },
    };
    let search = here.search(settings.workspace.as_deref());
    let (target, fresh) = (&*order.name, order.fresh);
    let wanted = Wanted {
        target,
        program: &program,
        builder: &builder,
        running: &running,
        search: &search,
        only,
        fresh,
    };
    let say = |message: &str| progress(message, None);
    let Taken { profile, ran, .. } = match take(&wanted, &say, cancel).await {
        Ok(taken) => taken,
        Err(TakeError::Collect(CollectError::Fails { how, said })) => {
            return Err(Failure::bad(format!(
                "The program {how}, so there is nothing to profile. {}",
                said.trim()
            )));
        }
        Err(error) => return Err(error.into()),
    };
    let mut profile = Box::new(profile);
    profile.device.iter_mut().for_each(|name| *name = here.named(name));
    Ok(match ran {
        Some(ran) => {
            let run = Box::new(simulated(ran, settings.time_limit));
            Outcome::Simulated { device, profile, run }
        }
        None => Outcome::Profile { profile },
    })
}

/// What travels of a run on the simulator.
fn simulated(ran: Ran, limit: Duration) -> SimulatedRun {
    let (exit_status, signal, ended) = match ran.end {
        End::Status(status) => (Some(status), None, None),
        End::Signal(signal) => (None, Some(signal), None),
        End::TimedOut => {
            let why = format!(
                "The program was ended after {} s, its time limit. Raise it with `--time-limit`, or simulate a share of the blocks with `--sample`.",
                limit.as_secs()
            );
            (None, None, Some(why))
        }
        End::Ended(why) => (None, None, Some(why)),
    };
    let report = ran.report.map(|report| (*report).clone());
    SimulatedRun { exit_status, signal, ended, stdout: ran.stdout, stderr: ran.stderr, report }
}
