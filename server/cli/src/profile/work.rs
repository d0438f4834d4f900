//! Profiles a program or a kernel, on a GPU or on the simulator.

use std::io::Write;

use anyhow::{Context, Result};
use stitch_profiles::profile::Profile;
use stitch_session::jobs::{JobKind, Limit, Request as Job};
use stitch_toolchain::discovery::Search;
use stitch_toolchain::process::Scratch;
use stitch_verifier::measure::program_of;
use stitch_verifier::profile::cuda::CollectError;
use stitch_verifier::profile::ladder::Rung;
use stitch_verifier::profile::take::{TakeError, Taken, Wanted, take};
use stitch_verifier::program::{BuildError, Builder, End, Program, Ran, RunDevice, RunError, Running};
use stitch_verifier::simulation::{Options, Report as Simulated, SimulationError, checks};

use stitch_worker::client::Elsewhere;
use stitch_worker::order::{Order, Outcome, ProfileCuda};

use super::{Arguments, Run, Shown};
use crate::elsewhere::{self, Ordered};
use crate::interrupt;
use crate::progress::{Spinner, Telling};
use crate::settings::Surrounding;
use crate::setup;
use crate::status::Status;

/// Profiles and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub(super) fn run(
    name: &str,
    arguments: &Arguments,
    surrounding: &Surrounding,
    page: &Shown,
    out: &mut impl Write,
) -> Result<Status> {
    let target = setup::target(surrounding, name, &arguments.shared.with)?;
    let answers = arguments.shared.answers()?;
    let config = surrounding.config_for(setup::file(&target));
    if let Some(elsewhere) = Elsewhere::configured(&config.worker) {
        let device = setup::asked(&arguments.shared, &target, &config);
        let file = setup::file(&target);
        let settings = elsewhere::settings(surrounding, &arguments.shared, &config, device, file, None);
        let mut wanted = elsewhere::wanted(surrounding, &target).with_flags(&config.nvcc.extra_flags);
        wanted.arguments.extend(arguments.shared.arguments.iter().cloned());
        let order = Order::Profile(Box::new(ProfileCuda {
            settings,
            target,
            name: name.to_owned(),
            arguments: arguments.shared.arguments.clone(),
            answers,
            by: arguments.by.map(|rung| rung.word().to_owned()),
            sample: arguments.sample,
            budget: None,
            fresh: arguments.fresh,
            or_simulated: false,
        }));
        let title = format!("Profile {name}");
        let ordered = Ordered { elsewhere, order, wanted, title, kind: JobKind::Profile };
        return done_elsewhere(ordered, arguments.sample, page, surrounding, out);
    }
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    let harnesses = Scratch::new("harness").context("there is no folder for a harness")?;
    let program = program_of(&target, &answers, &harnesses)?;
    let result = interrupt::until_done(1, |jobs, _| async move {
        let builder = match setup::builder(surrounding, &arguments.shared, &target).await? {
            Ok(builder) => builder,
            Err(status) => return Ok(Err(status)),
        };
        let limit = match &builder.device {
            RunDevice::Cuda { .. } => Limit::Device(builder.device.id()),
            RunDevice::Simulator(_) if arguments.by.is_some() => {
                anstream::eprintln!("error: `--by` is for a GPU, and the device is {}.", builder.device);
                return Ok(Err(Status::Usage));
            }
            RunDevice::Simulator(_) => Limit::Processor,
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
        let (only, fresh) = (arguments.by, arguments.fresh);
        let work = Work { target: name.to_owned(), only, fresh, program, builder, running, search };
        let job = Job::new(JobKind::Profile, format!("Profile {name}")).limit(limit);
        let work = async move |telling: Telling| Ok(work.taken(&telling).await);
        Ok::<_, anyhow::Error>(Ok(Spinner::new().watch(&jobs, job, work).await))
    })??;
    match result {
        Err(status) => Ok(status),
        Ok(Err(error)) => Ok(Status::of_job(&error)),
        Ok(Ok(Err(error))) => Ok(failed(&error)),
        Ok(Ok(Ok(Taken { profile, ran: Some(ran), .. }))) => {
            print_run(arguments.sample, page, &profile, &ran, surrounding, out)
        }
        Ok(Ok(Ok(Taken { profile, .. }))) => {
            let status = if profile.has_kernels() { Status::Good } else { Status::Bad };
            page.print(&profile, None, status, surrounding, out)
        }
    }
}

/// Has a profile made elsewhere, and prints it.
fn done_elsewhere(
    ordered: Ordered,
    sample: Option<f64>,
    page: &Shown,
    surrounding: &Surrounding,
    out: &mut impl Write,
) -> Result<Status> {
    match ordered.done()? {
        Ok(Outcome::Profile { profile }) => {
            let status = if profile.has_kernels() { Status::Good } else { Status::Bad };
            page.print(&profile, None, status, surrounding, out)
        }
        Ok(Outcome::Simulated { profile, run, .. }) => {
            print_run(sample, page, &profile, &Ran::from(*run), surrounding, out)
        }
        Ok(_) => Ok(elsewhere::other_outcome()),
        Err(status) => Ok(status),
    }
}

/// What is built and profiled, and what is around it.
struct Work {
    target: String,
    only: Option<Rung>,
    fresh: bool,
    program: Program,
    builder: Builder,
    running: Running,
    search: Search,
}

impl Work {
    async fn taken(&self, telling: &Telling) -> std::result::Result<Taken, TakeError> {
        let Self { target, only, fresh, program, builder, running, search } = self;
        let (only, fresh) = (*only, *fresh);
        let wanted = Wanted { target, program, builder, running, search, only, fresh };
        let say = |message: &str| telling.say(message, None);
        take(&wanted, &say, telling.cancellation()).await
    }
}

fn failed(error: &TakeError) -> Status {
    let status = match error {
        TakeError::Cancelled => return Status::Interrupted,
        // As `verify` ends for a reference that does not build.
        TakeError::Build(BuildError::Compiler { .. }) => Status::Usage,
        TakeError::Build(_)
        | TakeError::Collect(CollectError::NoWay { .. })
        | TakeError::Run(RunError::Simulation(SimulationError::Missing { .. } | SimulationError::NotUsed)) => {
            Status::Missing
        }
        TakeError::Collect(CollectError::Fails { said, .. }) => {
            anstream::eprint!("{said}");
            Status::Bad
        }
        TakeError::Run(_) | TakeError::Collect(_) | TakeError::Harness(_) | TakeError::Ended(_) => {
            Status::Bad
        }
    };
    anstream::eprintln!("error: {error}");
    status
}

fn print_run(
    sample: Option<f64>,
    page: &Shown,
    profile: &Profile,
    ran: &Ran,
    surrounding: &Surrounding,
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
    let run = Run { sample, exit_status, signal, simulated };
    let good = exit_status == Some(0) && simulated.faults.is_empty() && !simulated.kernels.is_empty();
    page.print(profile, Some(run), if good { Status::Good } else { Status::Bad }, surrounding, out)
}
