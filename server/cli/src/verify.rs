//! `stitchcuda verify REF CAND`: whether a candidate does what its reference does.

mod human;
pub(crate) mod torch;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use stitch_findings::Verdict;
use stitch_session::jobs::{JobKind, Limit, Request as Job};
use stitch_verifier::harness::{self, Subject};
use stitch_verifier::program::{RunDevice, Target};
use stitch_verifier::verify::{Request, VerifyError, harness_for, verify};
use stitch_worker::client::Elsewhere;
use stitch_worker::order::{self, Order, Outcome};
use stitch_worker::protocol::Kind;

use crate::elsewhere::{self, Ordered};
use crate::format::{Format, print_json};
use crate::interrupt;
use crate::progress::{Spinner, Telling};
use crate::setup::{self, ProgramArguments};
use crate::status::Status;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What is right: a CUDA program (file.cu), a kernel (file.cu::name), a [target.NAME] of stitchcuda.toml, or a PyTorch module or function
    /// (file.py, file.py::Name)
    reference: String,
    /// What claims to do the same
    #[arg(required_unless_present = "write_harness")]
    candidate: Option<String>,
    /// How far a number may be off, relative to it, from 0 to 1 (default: 1e-4 for fp32 and text, 1e-2 for fp16 and bf16, 1e-9 for fp64), or
    /// kernelbench-old for 1e-2
    #[arg(long, value_name = "SHARE", value_parser = setup::tolerance)]
    tolerance: Option<setup::Tolerance>,
    /// Write the harness of the kernel to this file, and do no more
    #[arg(long, value_name = "FILE")]
    write_harness: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    program: ProgramArguments,
    #[command(flatten)]
    torch: torch::TorchArguments,
}

/// The report of `--format json`.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// Verifies and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let surrounding = arguments.program.surrounding()?;
    if torch::is_about(arguments) {
        return torch::run(arguments, &surrounding, out);
    }
    let answers = arguments.program.answers()?;
    let reference = setup::target(&surrounding, &arguments.reference, &arguments.program.with)?;
    if let Some(path) = &arguments.write_harness {
        return write_harness(&reference, &answers, path, out);
    }
    let candidate_name = arguments.candidate.clone().unwrap_or_default();
    let candidate = setup::target(&surrounding, &candidate_name, &[])?;
    let candidate_file = setup::file(&candidate).map(std::path::Path::to_owned);
    let config = surrounding.config_for(setup::file(&reference));
    if let Some(elsewhere) = Elsewhere::configured(&config.worker) {
        let mut wanted = elsewhere::wanted(&surrounding, &reference)
            .with_target(&candidate)
            .with_flags(&config.nvcc.extra_flags);
        wanted.arguments.extend(arguments.program.arguments.iter().cloned());
        let device = setup::asked(&arguments.program, &reference, &config);
        let file = setup::file(&reference);
        let settings = elsewhere::settings(&surrounding, &arguments.program, &config, device, file, None);
        let title = format!("Verify {candidate_name}");
        let order = Order::Verify(Box::new(order::Verify {
            settings,
            names: [arguments.reference.clone(), candidate_name],
            arguments: arguments.program.arguments.clone(),
            tolerance: arguments.tolerance.map(setup::Tolerance::share),
            answers,
            reference,
            candidate,
        }));
        let ordered = Ordered { elsewhere, order, wanted, title, kind: JobKind::Verify };
        return verified(ordered, arguments.format, candidate_file.as_deref(), out);
    }
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    let result = interrupt::until_done(1, |jobs, _| async move {
        let builder = match setup::builder(&surrounding, &arguments.program, &reference).await? {
            Ok(builder) => builder,
            Err(status) => return Ok(Err(status)),
        };
        let limit = match &builder.device {
            RunDevice::Cuda { .. } => Limit::Device(builder.device.id()),
            RunDevice::Simulator(_) => Limit::Processor,
        };
        let request = Request {
            reference,
            candidate,
            reference_name: arguments.reference.clone(),
            candidate_name,
            builder,
            arguments: arguments.program.arguments.clone(),
            tolerance: arguments.tolerance.map(setup::Tolerance::share),
            answers,
            time_limit: arguments.program.limit(),
            executable,
        };
        let job = Job::new(JobKind::Verify, format!("Verify {}", request.candidate_name)).limit(limit);
        let verified = Spinner::new().watch(&jobs, job, async move |telling: Telling| {
            let progress = |message: &str| telling.say(message, None);
            Ok(verify(&request, &progress, telling.cancellation()).await)
        });
        let result = verified.await;
        Ok::<_, anyhow::Error>(Ok(result))
    })??;
    match result {
        Err(status) => Ok(status),
        Ok(Err(error)) => Ok(Status::of_job(&error)),
        Ok(Ok(Err(VerifyError::Cancelled))) => Ok(Status::Interrupted),
        Ok(Ok(Err(error))) => Ok(failed(&error)),
        Ok(Ok(Ok(verdict))) => print(&verdict, arguments.format, candidate_file.as_deref(), out),
    }
}

/// Has a verification done elsewhere, and prints the verdict.
pub(crate) fn verified(
    ordered: Ordered,
    format: Format,
    file: Option<&std::path::Path>,
    out: &mut impl Write,
) -> Result<Status> {
    match ordered.done()? {
        Ok(Outcome::Verdict { verdict }) => print(&verdict, format, file, out),
        Ok(_) => Ok(elsewhere::other_outcome()),
        Err(status) => Ok(status),
    }
}

/// Prints a verdict; `file` is the candidate's, which findings are about.
fn print(
    verdict: &Verdict,
    format: Format,
    file: Option<&std::path::Path>,
    out: &mut impl Write,
) -> Result<Status> {
    match format {
        Format::Json => print_json(out, &Report { schema: "stitchcuda.verdict/1", verdict })?,
        Format::Human => human::print(verdict, file, out)?,
    }
    Ok(if verdict.is_good() { Status::Good } else { Status::Bad })
}

fn failed(error: &VerifyError) -> Status {
    anstream::eprintln!("error: {error}");
    Status::from(Kind::from(error))
}

fn write_harness(
    reference: &Target,
    answers: &harness::Answers,
    path: &std::path::Path,
    out: &mut impl Write,
) -> Result<Status> {
    let Target::Kernel { path: source, kernel } = reference else {
        anyhow::bail!("a harness is made for a kernel; write it as file.cu::name");
    };
    let prepared = harness_for(source, kernel, answers)?;
    let subject = Subject { path: source, kernel: &prepared.kernel, configuration: None };
    let text = harness::write(&prepared.harness, &subject);
    // A person may have edited an older one.
    let mut file =
        std::fs::File::create_new(path).with_context(|| format!("{} could not be made", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("{} could not be written", path.display()))?;
    writeln!(out, "{} holds the harness of `{}`.", path.display(), prepared.kernel)?;
    Ok(Status::Good)
}
