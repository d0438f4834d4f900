//! Profiles a program or a kernel, on a GPU or on the simulator.

use std::io::Write;

use anyhow::{Context, Result};
use stitch_profiles::profile::Profile;
use stitch_session::cache::Cache;
use stitch_session::folders::Folders;
use stitch_session::jobs::{JobKind, Limit, Request as Job};
use stitch_toolchain::discovery;
use stitch_toolchain::process::Scratch;
use stitch_verifier::measure::program_of;
use stitch_verifier::profile::cuda::{CollectError, Order, collect, here};
use stitch_verifier::profile::ladder::Rung;
use stitch_verifier::profile::simulated;
use stitch_verifier::program::{
    BuildError, Builder, End, Program, Ran, RunDevice, RunError, Running, build, run as run_program,
};
use stitch_verifier::simulation::{Options, Report as Simulated, SimulationError, checks};

use super::{Arguments, Run, Shown};
use crate::interrupt;
use crate::progress::{Spinner, Telling};
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
    let result = interrupt::until_done(1, |jobs, _| async move {
        let builder = match setup::builder(&surrounding, &arguments.shared, &target).await? {
            Ok(builder) => builder,
            Err(status) => return Ok(Err(status)),
        };
        let (device, limit) = match &builder.device {
            RunDevice::Cuda { .. } => (builder.device.to_string(), Limit::Device(builder.device.id())),
            RunDevice::Simulator(_) if arguments.by.is_some() => {
                anstream::eprintln!("error: `--by` is for a GPU, and the device is {}.", builder.device);
                return Ok(Err(Status::Usage));
            }
            RunDevice::Simulator(_) => (builder.device.to_string(), Limit::Processor),
        };
        let simulation = Options {
            executable,
            counters: true,
            caches: true,
            sample: arguments.sample,
            checks: checks(builder.config.simulator.checks),
            ..Options::default()
        };
        let running = Running {
            device: builder.device.clone(),
            arguments: arguments.shared.arguments.clone(),
            time_limit: arguments.shared.limit(),
            simulation,
        };
        let search = surrounding.search(&builder.config);
        let work = Work { target: name.to_owned(), only: arguments.by, program, builder, running, search };
        let job = Job::new(JobKind::Profile, format!("Profile {name}")).limit(limit);
        let work = async move |telling: Telling| Ok(work.outcome(&telling).await);
        Ok::<_, anyhow::Error>(Ok((Spinner::new().watch(&jobs, job, work).await, device)))
    })??;
    match result {
        Err(status) => Ok(status),
        Ok((Err(error), _)) => Ok(Status::of_job(&error)),
        Ok((Ok(Err(failure)), _)) => Ok(failed(&failure)),
        Ok((Ok(Ok(Outcome::Ran(ran))), device)) => {
            print_run(arguments.sample, page, name, &device, &ran, out)
        }
        Ok((Ok(Ok(Outcome::Profile(profile))), _)) => {
            let status = if profile.has_kernels() { Status::Good } else { Status::Bad };
            page.print(&profile, None, status, out)
        }
    }
}

/// What is built and profiled, and what is around it.
struct Work {
    target: String,
    only: Option<Rung>,
    program: Program,
    builder: Builder,
    running: Running,
    search: discovery::Search,
}

impl Work {
    async fn outcome(&self, telling: &Telling) -> std::result::Result<Outcome, Failure> {
        let say = |message: &str| telling.say(message, None);
        let cancel = telling.cancellation();
        say("building");
        let built = build(&self.builder, &self.program, cancel).await.map_err(Failure::Build)?;
        if matches!(self.running.device, RunDevice::Simulator(_)) {
            say("simulating");
            return run_program(&built, &self.running, cancel).await.map(Outcome::Ran).map_err(Failure::Run);
        }
        let cache = Cache::configured(&self.builder.config.cache, &Folders::find());
        let (here, memory) = here(&self.search, &self.builder.toolkit, cache);
        let (target, running, only) = (&*self.target, &self.running, self.only);
        let order = Order { target, built: &built, running, here: &here, only, memory: &memory };
        let profile = collect(&order, &say, cancel).await.map_err(Failure::Collect)?;
        Ok(Outcome::Profile(Box::new(profile)))
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
    let profile = simulated::profile(simulated, target, device);
    let run = Run { sample, exit_status, signal, simulated };
    let good = exit_status == Some(0) && simulated.faults.is_empty() && !simulated.kernels.is_empty();
    page.print(&profile, Some(run), if good { Status::Good } else { Status::Bad }, out)
}
