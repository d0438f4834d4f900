//! `stitchcuda profile TARGET`: has profilers look at a target, or the simulator, and says what its kernels do; or reads what a profiler wrote.

mod human;
mod import;
mod report;
mod show;
mod torch;
mod work;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use stitch_profiles::profile::Profile;
use stitch_profiles::{kernel, system};
use stitch_verifier::profile::ladder::{LADDER, Rung};
use stitch_verifier::simulation::Report as Simulated;
use stitch_verifier::torch::find;

use self::report::Place;
use crate::check;
use crate::format::{Output, print_json};
use crate::settings::Surrounding;
use crate::setup::{ProgramArguments, PythonArguments};
use crate::status::Status;

/// Arguments of `profile`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A CUDA program (file.cu), a kernel (file.cu::name), a [target.NAME] of stitchcuda.toml, or a module or function of PyTorch
    /// (file.py::Name)
    #[arg(required_unless_present = "import")]
    program: Option<String>,
    /// Read what a profiler wrote: .ncu-rep, .nsys-rep, SQLite of nsys, CSV of ncu, a trace of PyTorch's profiler, text or XML of
    /// compute-sanitizer
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    import: Option<PathBuf>,
    /// On a GPU, profile a program in this way only: ncu+nsys, ncu or nsys. Else the best that works here
    #[arg(long, value_name = "WAY", value_parser = way, conflicts_with = "import")]
    by: Option<Rung>,
    /// Measure again, although nothing has changed since it was measured before
    #[arg(long, conflicts_with = "import")]
    fresh: bool,
    /// Simulate only this share of the blocks: counters are those of the share, and results are wrong
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sample: Option<f64>,
    /// Write a page of HTML for a browser, which needs nothing else
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// How to print; SARIF has what is told at lines
    #[arg(long, value_enum, default_value_t)]
    format: Output,
    #[command(flatten)]
    shared: ProgramArguments,
    /// Profile this candidate for it, file.py or file.py::Name, with the same inputs
    #[arg(long, value_name = "CANDIDATE", help_heading = "For PyTorch")]
    candidate: Option<String>,
    #[command(flatten)]
    called: PythonArguments,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("a number above 0, at most 1, is expected".to_owned()),
    }
}

fn way(text: &str) -> std::result::Result<Rung, String> {
    let words = || LADDER.map(Rung::word).join(", ");
    Rung::named(text).ok_or_else(|| format!("one of {} is expected", words()))
}

/// What is printed as JSON: the profile, and what rules say of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    #[serde(flatten)]
    profile: &'a Profile,
    /// What limits the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<system::Insight>,
    /// What limits each launch, in the order of `launches`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explanations: Vec<kernel::Explanation>,
    /// The run on the simulator, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run<'a>>,
}

/// A run on the simulator.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    /// The share of blocks that were simulated, where it is not all of them.
    sample: Option<f64>,
    exit_status: Option<i32>,
    signal: Option<i32>,
    #[serde(flatten)]
    simulated: &'a Simulated,
}

/// Profiles and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let surrounding = arguments.shared.surrounding()?;
    let report = match arguments.report.as_deref().map(Place::new).transpose() {
        Ok(report) => report,
        Err(status) => return Ok(status),
    };
    let shown = Shown { format: arguments.format, report, names: names(arguments, &surrounding) };
    match (&arguments.import, &arguments.program) {
        (Some(file), _) => import::run(file, &surrounding, &shown, out),
        (None, Some(target)) if find::is_python(target) => {
            torch::run(target, arguments, &surrounding, &shown, out)
        }
        (None, Some(target)) => work::run(target, arguments, &surrounding, &shown, out),
        // clap asks for one of the two.
        (None, None) => Ok(Status::Usage),
    }
}

/// The files that findings may be in: that of the target, or all in the folder where that is not known, as of a file that was written elsewhere.
fn names(arguments: &Arguments, surrounding: &Surrounding) -> Vec<PathBuf> {
    let named = [&arguments.program, &arguments.candidate].into_iter().flatten();
    let files = named.map(|name| PathBuf::from(name.split("::").next().unwrap_or_default()));
    let files: Vec<PathBuf> = files.filter(|file| surrounding.folder.join(file).is_file()).collect();
    if files.is_empty() { vec![surrounding.folder.clone()] } else { files }
}

/// Where a profile is shown.
struct Shown {
    format: Output,
    report: Option<Place>,
    /// Files and folders that findings may be in.
    names: Vec<PathBuf>,
}

impl Shown {
    /// Prints a profile in the format that was asked for and writes its page. Gives the status to end with: `status`, or a worse one where
    /// there is no page.
    fn print(
        &self,
        profile: &Profile,
        run: Option<Run<'_>>,
        status: Status,
        surrounding: &Surrounding,
        out: &mut impl Write,
    ) -> Result<Status> {
        let limits = profile.system.as_ref().map(|system| system::explain(system, profile.python.as_ref()));
        let limits = limits.unwrap_or_default();
        let explanations: Vec<kernel::Explanation> = profile.launches.iter().map(kernel::explain).collect();
        let written = self.report.as_ref().map_or(Ok(()), |place| place.write(profile, run.as_ref()));
        match self.format {
            Output::Json => print_json(out, &Report { profile, limits, explanations, run })?,
            Output::Human => show::print(profile, &limits, &explanations, run.as_ref(), out)?,
            Output::Sarif => {
                let simulated = run.as_ref().map(|run| run.simulated);
                let report = check::profiled::report(profile, simulated, &self.names, surrounding, status);
                print_json(out, &check::sarif::log(&report))?;
            }
        }
        Ok(written.map_or_else(|worse| status.worse(worse), |()| status))
    }
}
