//! `stitchcuda verify reference.py candidate.py`: PyTorch modules and functions.

use std::io::Write;

use anyhow::{Result, bail};
use stitch_session::jobs::{JobKind, Limit, Request as Job};
use stitch_verifier::torch::find::{self, FindError, Said};
use stitch_verifier::torch::host::Place;
use stitch_verifier::torch::judge::Rule;
use stitch_verifier::torch::judge::statistics::LEAST_CALLS;
use stitch_verifier::torch::request::{Request, SanitizerPolicy, TorchError};
use stitch_verifier::torch::subject::Subject;
use stitch_verifier::torch::values::Dtype;
use stitch_verifier::torch::verify::verify;
use stitch_worker::client::Elsewhere;
use stitch_worker::files::Wanted;
use stitch_worker::order::{Order, VerifyTorch};
use stitch_worker::protocol::Kind;

use super::{Arguments, print, verified};
use crate::elsewhere::{self, Ordered};
use crate::interrupt;
use crate::progress::{Spinner, Telling};
use crate::settings::Surrounding;
use crate::setup::{PythonArguments, Tolerance, machine};
use crate::status::Status;

/// Flags for PyTorch.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "For PyTorch")]
pub struct TorchArguments {
    #[command(flatten)]
    called: PythonArguments,
    /// Types that inputs and parameters are turned into: fp32, fp16, bf16, fp64; each with every case
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = dtype)]
    dtype: Vec<Dtype>,
    /// Compare gradients of inputs and parameters too
    #[arg(long)]
    gradients: bool,
    /// Compare in training mode, with the buffers that a call updates
    #[arg(long)]
    train: bool,
    /// Compare in evaluation mode; usual but for KernelBench's `Model`, which stays as it constructs itself
    #[arg(long, conflicts_with = "train")]
    eval: bool,
    /// When compute-sanitizer looks at the candidate: whenever it is right, before it is called faster, or never
    #[arg(long, value_enum, default_value_t)]
    sanitizer: Sanitizer,
    /// Do not time torch.compile of the reference
    #[arg(long)]
    no_compile_baseline: bool,
    /// Calls of each version that are timed, at least; 0 times nothing
    #[arg(long, value_name = "N", default_value_t = LEAST_CALLS, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    calls: u64,
    /// Seconds that taking the times may take, instead of the setting `verify.timingSeconds`; it ends before, once the interval is narrow
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timing_seconds: Option<f64>,
}

/// When compute-sanitizer looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Sanitizer {
    /// Whenever the candidate is right
    Always,
    /// Before it is called faster
    #[default]
    Final,
    /// Never; the verdict says so
    Never,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number from 0.1 to 600 is expected".to_owned()),
    }
}

fn dtype(text: &str) -> Result<Dtype, String> {
    match text.trim() {
        "fp64" | "float64" => Ok(Dtype::Float64),
        "fp32" | "float32" => Ok(Dtype::Float32),
        "fp16" | "float16" | "half" => Ok(Dtype::Float16),
        "bf16" | "bfloat16" => Ok(Dtype::Bfloat16),
        _ => Err("one of fp64, fp32, fp16 and bf16 is expected".to_owned()),
    }
}

/// Whether a command is about PyTorch code.
pub(super) fn is_about(arguments: &Arguments) -> bool {
    find::is_python(&arguments.reference)
}

/// Verifies and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub(super) fn run(arguments: &Arguments, surrounding: &Surrounding, out: &mut impl Write) -> Result<Status> {
    let Some(candidate_name) = arguments.candidate.clone().filter(|_| arguments.write_harness.is_none())
    else {
        bail!("a harness is made for a CUDA kernel; for {} name a candidate", arguments.reference);
    };
    if !find::is_python(&candidate_name) {
        bail!(
            "{} is Python and {candidate_name} is not; a candidate for it is a file.py, or file.py::Name",
            arguments.reference
        );
    }
    let (reference, candidate) = match subjects(arguments, &candidate_name, surrounding) {
        Ok(subjects) => subjects,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            return Ok(Status::Usage);
        }
    };
    let file = candidate.path.clone();
    let config = surrounding.config_for(Some(&reference.path));
    if let Some(elsewhere) = Elsewhere::configured(&config.worker) {
        let ordered = ordered(elsewhere, arguments, surrounding, (reference, candidate), candidate_name);
        return verified(ordered, arguments.format, Some(&file), out);
    }
    let result = interrupt::until_done(1, |jobs, _| async move {
        let spinner = Spinner::new();
        let request = match request(arguments, surrounding, (reference, candidate), &candidate_name).await {
            Ok(request) => request,
            Err(status) => {
                spinner.clear();
                return Ok(Err(status));
            }
        };
        let job = Job::new(JobKind::Verify, format!("Verify {candidate_name}")).limit(limit_of(&request));
        let verified = spinner.watch(&jobs, job, async move |telling: Telling| {
            let progress = |message: &str, share: Option<f32>| telling.say(message, share);
            Ok(verify(&request, &progress, telling.cancellation()).await)
        });
        let result = verified.await;
        Ok::<_, anyhow::Error>(Ok(result))
    })??;
    match result {
        Err(status) => Ok(status),
        Ok(Err(error)) => Ok(Status::of_job(&error)),
        Ok(Ok(Err(error))) => Ok(failed(&error)),
        Ok(Ok(Ok(verdict))) => print(&verdict, arguments.format, Some(&file), out),
    }
}

fn subjects(
    arguments: &Arguments,
    candidate: &str,
    surrounding: &Surrounding,
) -> Result<(Subject, Subject), FindError> {
    let said = Said {
        inputs: arguments.torch.called.inputs.clone(),
        init: arguments.torch.called.init.clone(),
        dtypes: arguments.torch.dtype.clone(),
    };
    let reference = find::reference(&arguments.reference, &surrounding.folder, &said)?;
    let candidate = find::candidate(candidate, &surrounding.folder, &reference)?;
    Ok((reference, candidate))
}

/// What is asked of the Verifier. `Err` with the status where something is missing, which was said.
async fn request(
    arguments: &Arguments,
    surrounding: &Surrounding,
    (reference, candidate): (Subject, Subject),
    candidate_name: &str,
) -> Result<Request, Status> {
    let config = surrounding.config_for(Some(&reference.path));
    let asked = arguments.program.device.clone().unwrap_or_else(|| config.device.clone());
    let machine = machine(surrounding, &config, &asked, arguments.torch.called.python.as_deref()).await?;
    let tolerance = arguments.tolerance;
    let usual = machine.request(reference.clone(), candidate);
    Ok(Request {
        reference_name: arguments.reference.clone(),
        candidate_name: candidate_name.to_owned(),
        rule: Rule { tolerance: tolerance.map(Tolerance::share) },
        tolerance_name: tolerance.map_or("usual", Tolerance::name).to_owned(),
        gradients: arguments.torch.gradients,
        train: arguments.torch.mode(&reference),
        sanitizer: arguments.torch.sanitizer.into(),
        compile_baseline: !arguments.torch.no_compile_baseline,
        calls: arguments.torch.calls,
        timing_seconds: arguments.torch.timing_seconds.unwrap_or(usual.timing_seconds),
        time_limit: arguments.program.limit(),
        ..usual
    })
}

/// The same on another machine.
fn ordered(
    elsewhere: Elsewhere,
    arguments: &Arguments,
    surrounding: &Surrounding,
    (reference, candidate): (Subject, Subject),
    candidate_name: String,
) -> Ordered {
    let config = surrounding.config_for(Some(&reference.path));
    let device = arguments.program.device.clone().unwrap_or_else(|| config.device.clone());
    let (flags, tolerance) = (&arguments.torch, arguments.tolerance);
    let settings = elsewhere::settings(
        surrounding,
        &arguments.program,
        &config,
        device,
        Some(&reference.path),
        flags.called.python.clone(),
    );
    let workspace = crate::setup::workspace_around(surrounding, Some(&reference.path));
    let wanted = Wanted::of(&workspace).with_subject(&reference).with_subject(&candidate);
    let title = format!("Verify {candidate_name}");
    let order = Order::VerifyTorch(Box::new(VerifyTorch {
        settings,
        names: [arguments.reference.clone(), candidate_name],
        tolerance: (tolerance.map(Tolerance::share), tolerance.map_or("usual", Tolerance::name).to_owned()),
        gradients: flags.gradients,
        train: flags.mode(&reference),
        sanitizer: flags.sanitizer.into(),
        compile_baseline: !flags.no_compile_baseline,
        calls: flags.calls,
        timing_seconds: flags.timing_seconds,
        reference,
        candidate,
    }));
    Ordered { elsewhere, order, wanted, title, kind: JobKind::Verify }
}

impl TorchArguments {
    /// Training or evaluation mode; `None` leaves modules as they construct themselves, which KernelBench does with its own.
    fn mode(&self, reference: &Subject) -> Option<bool> {
        if self.train || self.eval { Some(self.train) } else { reference.usual_mode() }
    }
}

impl From<Sanitizer> for SanitizerPolicy {
    fn from(sanitizer: Sanitizer) -> Self {
        match sanitizer {
            Sanitizer::Always => Self::Always,
            Sanitizer::Final => Self::Final,
            Sanitizer::Never => Self::Never,
        }
    }
}

/// What a job about PyTorch code takes of the machine.
pub(crate) fn limit_of(request: &Request) -> Limit {
    match request.place {
        Place::Cpu => Limit::Processor,
        Place::Cuda(index) => Limit::Device(format!("cuda:{index}")),
    }
}

/// Says why there is no verdict, or no profile.
pub(crate) fn failed(error: &TorchError) -> Status {
    anstream::eprintln!("error: {error}");
    Status::from(Kind::from(error))
}
