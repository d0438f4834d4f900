//! `stitchcuda profile TARGET`: has profilers look at a target, or the simulator, and says what its kernels do; or reads what a profiler wrote.

mod human;
mod import;
mod show;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use stitch_session::jobs::{JobError, JobKind, Limit, Request as Job};
use stitch_toolchain::process::Scratch;
use stitch_verifier::measure::program_of;
use stitch_verifier::program::{
    BuildError, End, Ran, RunDevice, RunError, Running, build, run as run_program,
};
use stitch_verifier::simulation::{Options, Report as Simulated, SimulationError, checks};

use crate::format::{Format, print_json};
use crate::interrupt;
use crate::progress::Spinner;
use crate::setup::{self, ProgramArguments};
use crate::status::Status;

/// Arguments of `profile`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A CUDA program (file.cu), a kernel (file.cu::name), or a [target.NAME] of stitchcuda.toml
    #[arg(required_unless_present = "import")]
    program: Option<String>,
    /// Read what a profiler wrote: .ncu-rep, .nsys-rep, SQLite of nsys, CSV of ncu, a trace of PyTorch's profiler, text or XML of
    /// compute-sanitizer
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    import: Option<PathBuf>,
    /// Simulate only this share of the blocks: counters are scaled up, and results are wrong
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sample: Option<f64>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    shared: ProgramArguments,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("a number above 0, at most 1, is expected".to_owned()),
    }
}

/// What is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    schema: &'static str,
    program: &'a str,
    device: String,
    /// The share of blocks that were simulated, where it is not all of them.
    sample: Option<f64>,
    exit_status: Option<i32>,
    signal: Option<i32>,
    #[serde(flatten)]
    simulated: &'a Simulated,
}

/// How a profile came to nothing.
enum Failure {
    Build(BuildError),
    Run(RunError),
}

/// Profiles and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let surrounding = arguments.shared.surrounding()?;
    if let Some(file) = &arguments.import {
        return import::run(file, &surrounding, arguments.format, out);
    }
    // clap asks for one of the two.
    let Some(program_name) = &arguments.program else { return Ok(Status::Usage) };
    let target = setup::target(&surrounding, program_name, &arguments.shared.with)?;
    let answers = arguments.shared.answers()?;
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    let harnesses = Scratch::new("harness").context("there is no folder for a harness")?;
    let program = program_of(&target, &answers, &harnesses)?;
    let result = interrupt::until_done(1, |jobs, _| async move {
        let builder = match setup::builder(&surrounding, &arguments.shared, &target).await? {
            Ok(builder) => builder,
            Err(status) => return Ok(Err(status)),
        };
        if !matches!(builder.device, RunDevice::Simulator(_)) {
            anstream::eprintln!(
                "error: Programs are profiled on the simulator so far; say `--device sim:h200`. On a GPU, use ncu and nsys."
            );
            return Ok(Err(Status::Missing));
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
        let spinner = Spinner::new();
        let shown = spinner.clone();
        let job = Job::new(JobKind::Profile, format!("Profile {program_name}")).limit(Limit::Processor);
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
            say("simulating");
            Ok(run_program(&built, &running, cancel).await.map_err(Failure::Run))
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
        Err(JobError::Cancelled)
        | Ok(Err(Failure::Build(BuildError::Cancelled) | Failure::Run(RunError::Cancelled))) => {
            Ok(Status::Interrupted)
        }
        Err(JobError::Failed(message)) => {
            anstream::eprintln!("error: {message}");
            Ok(Status::Bad)
        }
        Ok(Err(failure)) => Ok(failed(&failure)),
        Ok(Ok(ran)) => print(arguments, program_name, &device, &ran, out),
    }
}

fn failed(failure: &Failure) -> Status {
    match failure {
        Failure::Build(error) => {
            anstream::eprintln!("error: {error}");
            match error {
                // As `verify` ends for a reference that does not build.
                BuildError::Compiler { .. } => Status::Usage,
                _ => Status::Missing,
            }
        }
        Failure::Run(error) => {
            anstream::eprintln!("error: {error}");
            match error {
                RunError::Simulation(SimulationError::Missing { .. } | SimulationError::NotUsed) => {
                    Status::Missing
                }
                _ => Status::Bad,
            }
        }
    }
}

fn print(
    arguments: &Arguments,
    program: &str,
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
    let report = Report {
        schema: "stitchcuda.profile/1",
        program,
        device: device.to_owned(),
        sample: arguments.sample,
        exit_status,
        signal,
        simulated,
    };
    match arguments.format {
        Format::Json => print_json(out, &report)?,
        Format::Human => human::print(&report, out)?,
    }
    let good = exit_status == Some(0) && simulated.faults.is_empty() && !simulated.kernels.is_empty();
    Ok(if good { Status::Good } else { Status::Bad })
}
