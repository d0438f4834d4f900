//! Profiles a program or a kernel, on a GPU or on the simulator.

use std::io::Write;

use anyhow::{Context, Result};
use stitch_profiles::profile::{Profile, Way};
use stitch_session::cache::Cache;
use stitch_session::folders::Folders;
use stitch_session::jobs::{JobError, JobKind, Limit, Request as Job};
use stitch_toolchain::discovery;
use stitch_toolchain::process::Scratch;
use stitch_verifier::measure::program_of;
use stitch_verifier::profile::cuda::{CollectError, Order, collect, here};
use stitch_verifier::profile::ladder::{Kind, Rung};
use stitch_verifier::profile::simulated;
use stitch_verifier::program::{
    BuildError, Builder, Built, End, Ran, RunDevice, RunError, Running, Target, build, run as run_program,
};
use stitch_verifier::simulation::{Options, Report as Simulated, SimulationError, checks};
use tokio_util::sync::CancellationToken;

use super::{Arguments, Run, Shown};
use crate::interrupt;
use crate::progress::Spinner;
use crate::settings::Surrounding;
use crate::setup;
use crate::status::Status;

/// How a profile came to nothing.
enum Failure {
    Build(BuildError),
    Run(RunError),
    Collect(CollectError),
}

/// What came of it.
enum Outcome {
    /// A GPU's profile.
    Profile(Box<Profile>),
    /// A run on the simulator.
    Ran(Ran),
}

/// Profiles and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub(super) fn run(
    name: &str,
    arguments: &Arguments,
    surrounding: Surrounding,
    page: &Shown,
    out: &mut impl Write,
) -> Result<Status> {
    let target = setup::target(&surrounding, name, &arguments.shared.with)?;
    let answers = arguments.shared.answers()?;
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    let harnesses = Scratch::new("harness").context("there is no folder for a harness")?;
    let program = program_of(&target, &answers, &harnesses)?;
    let kind = if matches!(target, Target::Kernel { .. }) { Kind::Kernel } else { Kind::Program };
    let result = interrupt::until_done(1, |jobs, _| async move {
        let builder = match setup::builder(&surrounding, &arguments.shared, &target).await? {
            Ok(builder) => builder,
            Err(status) => return Ok(Err(status)),
        };
        if let Err(status) = fits(arguments.by, &builder.device) {
            return Ok(Err(status));
        }
        let device = builder.device.to_string();
        let running = Running {
            device: builder.device.clone(),
            arguments: arguments.shared.arguments.clone(),
            time_limit: arguments.shared.limit(),
            simulation: Options {
                executable,
                counters: true,
                sample: arguments.sample,
                checks: checks(builder.config.simulator.checks),
                ..Options::default()
            },
        };
        let search = surrounding.search(&builder.config);
        let (named, only) = (name.to_owned(), arguments.by);
        let spinner = Spinner::new();
        let shown = spinner.clone();
        let job = Job::new(JobKind::Profile, format!("Profile {name}")).limit(Limit::Processor);
        let handle = jobs.start(job, move |context| async move {
            let cancel = context.cancellation();
            let say = |message: &str| {
                shown.say(message);
                context.progress(message, None);
            };
            say("building");
            let built = match build(&builder, &program, cancel).await {
                Ok(built) => built,
                Err(error) => return Ok::<_, JobError>(Err(Failure::Build(error))),
            };
            if matches!(running.device, RunDevice::Simulator(_)) {
                say("simulating");
                let ran = run_program(&built, &running, cancel).await;
                return Ok(ran.map(Outcome::Ran).map_err(Failure::Run));
            }
            let on_gpu = OnGpu { target: &named, kind, only, builder: &builder, search: &search };
            let profile = on_gpu.collect(&built, &running, &say, cancel).await;
            Ok(profile.map(|profile| Outcome::Profile(Box::new(profile))).map_err(Failure::Collect))
        });
        let result = handle.wait().await;
        spinner.clear();
        Ok::<_, anyhow::Error>(Ok((result, device)))
    })??;
    let (result, device) = match result {
        Ok(result) => result,
        Err(status) => return Ok(status),
    };
    match result {
        Err(JobError::Cancelled) => Ok(Status::Interrupted),
        Err(JobError::Failed(message)) => {
            anstream::eprintln!("error: {message}");
            Ok(Status::Bad)
        }
        Ok(Err(failure)) => Ok(failed(&failure)),
        Ok(Ok(Outcome::Ran(ran))) => print_run(arguments.sample, page, name, &device, &ran, out),
        Ok(Ok(Outcome::Profile(profile))) => {
            let status = if profile.has_kernels() { Status::Good } else { Status::Bad };
            page.print(&profile, None, status, out)
        }
    }
}

/// Whether a way that a person wants can be gone on this device; says why not.
fn fits(by: Option<Rung>, device: &RunDevice) -> std::result::Result<(), Status> {
    let is_simulated = matches!(device, RunDevice::Simulator(_));
    match by {
        Some(Rung::Simulator) if !is_simulated => {
            anstream::eprintln!("error: The simulator is a device of its own: say `--device sim:h200`.");
            Err(Status::Usage)
        }
        Some(rung) if rung != Rung::Simulator && is_simulated => {
            anstream::eprintln!("error: {rung} needs a GPU, and the device is {device}. Leave out `--by`.");
            Err(Status::Usage)
        }
        _ => Ok(()),
    }
}

/// What is profiled on a GPU, and what is around it.
struct OnGpu<'a> {
    target: &'a str,
    kind: Kind,
    only: Option<Rung>,
    builder: &'a Builder,
    search: &'a discovery::Search,
}

impl OnGpu<'_> {
    async fn collect(
        &self,
        built: &Built,
        running: &Running,
        say: &(dyn Fn(&str) + Sync),
        cancel: &CancellationToken,
    ) -> std::result::Result<Profile, CollectError> {
        let cache = Cache::configured(&self.builder.config.cache, &Folders::find());
        let (here, memory) = here(self.search, &self.builder.toolkit, cache);
        let (target, kind, only) = (self.target, self.kind, self.only);
        let order = Order { target, kind, built, running, here: &here, only, memory: &memory };
        collect(&order, say, cancel).await
    }
}

fn failed(failure: &Failure) -> Status {
    let (message, status) = match failure {
        Failure::Build(BuildError::Cancelled)
        | Failure::Run(RunError::Cancelled)
        | Failure::Collect(CollectError::Cancelled) => return Status::Interrupted,
        // As `verify` ends for a reference that does not build.
        Failure::Build(error @ BuildError::Compiler { .. }) => (error.to_string(), Status::Usage),
        Failure::Build(error) => (error.to_string(), Status::Missing),
        Failure::Run(error) => {
            let is_missing = matches!(
                error,
                RunError::Simulation(SimulationError::Missing { .. } | SimulationError::NotUsed)
            );
            (error.to_string(), if is_missing { Status::Missing } else { Status::Bad })
        }
        Failure::Collect(error) => {
            if let CollectError::Fails { said, .. } = error {
                anstream::eprint!("{said}");
            }
            let is_missing = matches!(error, CollectError::NoWay { .. });
            (error.to_string(), if is_missing { Status::Missing } else { Status::Bad })
        }
    };
    anstream::eprintln!("error: {message}");
    status
}

fn print_run(
    sample: Option<f64>,
    page: &Shown,
    target: &str,
    device: &str,
    ran: &Ran,
    out: &mut impl Write,
) -> Result<Status> {
    // What the program says is no result of ours.
    anstream::eprint!("{}{}", ran.stdout, ran.stderr);
    let nothing = Simulated::default();
    let simulated = ran.report.as_deref().unwrap_or(&nothing);
    let (exit_status, signal) = match &ran.end {
        End::Status(status) => (Some(*status), None),
        End::Signal(signal) => (None, Some(*signal)),
        End::TimedOut => {
            anstream::eprintln!(
                "error: The program was ended after {} s, its time limit. Raise it with `--time-limit`, or simulate a share of the blocks with `--sample`.",
                ran.wall.as_secs()
            );
            return Ok(Status::Bad);
        }
        End::Ended(why) => {
            anstream::eprintln!("error: {why}");
            return Ok(Status::Bad);
        }
    };
    let mut profile = Profile::new(target, Way { by: Rung::Simulator.to_string(), ..Way::default() });
    profile.device = Some(device.to_owned());
    profile.launches = simulated::launches(simulated, device);
    let run = Run { sample, exit_status, signal, simulated };
    let good = exit_status == Some(0) && simulated.faults.is_empty() && !simulated.kernels.is_empty();
    page.print(&profile, Some(run), if good { Status::Good } else { Status::Bad }, out)
}
