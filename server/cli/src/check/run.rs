//! `check --run`: runs the programs among the files on the simulator, for what it catches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use stitch_analysis::Language;
use stitch_findings::Finding;
use stitch_session::config::Device;
use stitch_session::jobs::{JobError, JobKind, Limit, Request as Job};
use stitch_verifier::compile::{Lack, NotCompiled};
use stitch_verifier::program::{BuildError, Builder, End, Program, RunError, Running, Target, build, run};
use stitch_verifier::simulation::{Options, Source as About, checks};

use super::files::Source;
use crate::interrupt;
use crate::settings::Surrounding;
use crate::setup::{self, ProgramArguments};

/// What came of all runs.
#[derive(Default)]
pub struct Runs {
    /// What the simulator caught, by the file's one path.
    pub findings: Vec<(PathBuf, Vec<Finding>)>,
    /// Programs that did not run, by the file's one path.
    pub left_out: Vec<(PathBuf, NotCompiled)>,
    /// What was looked for, and how programs ended.
    pub notes: Vec<String>,
    /// Whether the user pressed Ctrl-C.
    pub interrupted: bool,
}

/// A simulated device where none is configured.
const USUAL: &str = "h200";

/// Builds and runs each file that has a `main`, one after the other.
///
/// # Errors
/// The system gives no threads.
pub fn all(surrounding: &Surrounding, sources: &[Source]) -> Result<Runs> {
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    interrupt::until_done(1, |jobs, session| async move {
        let mut runs = Runs::default();
        for source in sources.iter().filter(|source| is_program(source)) {
            let name = source.path.display().to_string();
            let (program, builder) = match prepare(surrounding, source).await {
                Ok(prepared) => prepared,
                Err(reason) => {
                    runs.leave_out(source, reason, Lack::Tool);
                    continue;
                }
            };
            let options = Options {
                executable: executable.clone(),
                checks: checks(builder.config.simulator.checks),
                ..Options::default()
            };
            let job = Job::new(JobKind::Verify, format!("Run {name}")).limit(Limit::Processor);
            let handle = jobs.start(job, move |context| async move {
                let cancel = context.cancellation();
                let built = match build(&builder, &program, cancel).await {
                    Ok(built) => built,
                    Err(error) => return Ok::<_, JobError>(Err(Failure::Build(error))),
                };
                let running = Running {
                    device: builder.device.clone(),
                    arguments: Vec::new(),
                    time_limit: ProgramArguments::unsaid().limit(),
                    simulation: options,
                };
                Ok(run(&built, &running, cancel).await.map_err(Failure::Run))
            });
            match handle.wait().await {
                Ok(Ok(ran)) => {
                    let report = ran.report.unwrap_or_default();
                    let found = report.findings(&About::new(&source.canonical, &source.text));
                    runs.findings.push((source.canonical.clone(), found));
                    runs.note(report.checked());
                    runs.note(ended(&name, &ran.end));
                }
                Ok(Err(failure)) => match failure {
                    // What the compiler refused it has said already.
                    Failure::Build(BuildError::Compiler { .. }) => {
                        runs.note(Some(format!("{name} was not run, since it does not build.")));
                    }
                    Failure::Build(BuildError::Cancelled) | Failure::Run(RunError::Cancelled) => {}
                    Failure::Build(error) => runs.leave_out(source, error.to_string(), Lack::Tool),
                    Failure::Run(error) => runs.leave_out(source, error.to_string(), Lack::Tool),
                },
                Err(JobError::Cancelled) => {}
                Err(JobError::Failed(reason)) => runs.leave_out(source, reason, Lack::Tool),
            }
        }
        runs.interrupted = session.is_cancelled();
        runs
    })
}

/// How a run came to nothing.
enum Failure {
    Build(BuildError),
    Run(RunError),
}

/// Whether a file is a program by itself.
fn is_program(source: &Source) -> bool {
    let analysis = stitch_analysis::Analysis::of(Language::Cuda, &source.text);
    let is_main = |function: &stitch_analysis::Function| function.qualified_name == "main";
    source.language == Language::Cuda && analysis.outline().functions.iter().any(is_main)
}

/// The program and how it is built: for a simulated device, whatever is configured.
async fn prepare(
    surrounding: &Surrounding,
    source: &Source,
) -> std::result::Result<(Program, Arc<Builder>), String> {
    let path = source.canonical.clone();
    let device = match &surrounding.config_for(Some(&path)).device {
        Device::Simulator(name) => Device::Simulator(name.clone()),
        Device::Auto | Device::Cuda(_) | Device::Cpu => Device::Simulator(USUAL.to_owned()),
    };
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let name = source.path.display().to_string();
    let program = Program { name, sources: vec![path], folder, ..Program::default() };
    let target = Target::Program(Box::new(program.clone()));
    let mut arguments = ProgramArguments::unsaid();
    arguments.device = Some(device);
    match setup::builder(surrounding, &arguments, &target).await {
        Ok(Ok(builder)) => Ok((program, Arc::new(builder))),
        Ok(Err(_)) => Err("It was not run on the simulator: something is missing, as said above".to_owned()),
        Err(error) => Err(format!("It was not run on the simulator: {error}")),
    }
}

/// How a program ended, where that was not well.
fn ended(name: &str, end: &End) -> Option<String> {
    match end {
        End::Status(0) => None,
        End::Status(status) => Some(format!("{name} ended with exit status {status}.")),
        End::Signal(signal) => Some(format!("{name} was ended by signal {signal}.")),
        End::TimedOut => {
            Some(format!("{name} did not come to an end in its time, so not all of it was looked at."))
        }
        End::Ended(why) => Some(format!("{name} was ended: {why}")),
    }
}

impl Runs {
    fn note(&mut self, text: Option<String>) {
        self.notes.extend(text.filter(|text| !self.notes.contains(text)));
    }

    fn leave_out(&mut self, source: &Source, reason: String, lack: Lack) {
        self.left_out.push((source.canonical.clone(), NotCompiled { reason, lack }));
    }
}
