//! Makes a profile of a document: on the GPU that is configured, or else on the simulator.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_analysis::Language;
use stitch_findings::{Finding, Span};
use stitch_profiles::profile::Profile as Recorded;
use stitch_profiles::python::Workspace;
use stitch_session::cache::Cache;
use stitch_session::config::Device;
use stitch_session::folders::Folders;
use stitch_session::jobs::{Context, JobError};
use stitch_verifier::profile::cuda::{CollectError, Order, collect, here};
use stitch_verifier::profile::simulated;
use stitch_verifier::program::{self, Builder, Built, End, Program, RunDevice, Running};
use stitch_verifier::simulation::{Options, Report, Source, checks};
use stitch_verifier::torch::machine::Machine;
use stitch_verifier::torch::request::TorchError;
use stitch_verifier::torch::verify::profiled::{self, ProfileError};

use super::Moved;
use crate::documents::Document;
use crate::optimize::{Chosen, target};
use crate::session::Session;
use crate::toolkit;

/// The device that is simulated where none is configured.
const USUAL: &str = "h200";

/// What was made.
pub(super) struct Made {
    /// What lines move, as far as the simulator counted.
    pub lines: Vec<Moved>,
    /// The device.
    pub device: String,
    /// What is known, in the form that rules read.
    pub recorded: Recorded,
    /// What kernels did wrong.
    pub defects: Vec<Finding>,
}

/// Profiles a document, whose program may run for so long.
pub(super) async fn record(
    session: &Arc<Session>,
    document: &Document,
    path: PathBuf,
    name: String,
    limit: Duration,
    context: &Context,
) -> Result<Made, JobError> {
    if document.to_analyse() == Some(Language::Python) {
        return python(session, document, &path, name, limit, context).await;
    }
    let config = session.configuration.for_path(Some(&path));
    let workspace = session.configuration.project_of(&path);
    let toolkit = toolkit::find(session, &config, workspace.as_deref()).await.map_err(JobError::Failed)?;
    let wanted = match &config.device {
        Device::Cpu => Device::Simulator(USUAL.to_owned()),
        device => device.clone(),
    };
    let device = program::choose(&wanted).await.map_err(JobError::failed)?;
    session.board.write(context.id(), |card| card.device = Some(device.id()));
    let builder =
        Builder::prepare(device.clone(), toolkit, config, workspace).await.map_err(JobError::Failed)?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let program = Program { name, sources: vec![path], folder, ..Program::default() };
    context.progress("building", None);
    let built = program::build(&builder, &program, context.cancellation()).await.map_err(JobError::failed)?;
    let executable = std::env::current_exe().map_err(JobError::failed)?;
    let running = Running {
        device: device.clone(),
        arguments: Vec::new(),
        time_limit: limit,
        simulation: Options {
            executable,
            counters: true,
            caches: true,
            checks: checks(builder.config.simulator.checks),
            ..Options::default()
        },
    };
    match device {
        RunDevice::Cuda { .. } => on_gpu(session, &builder, &built, &running, context).await,
        RunDevice::Simulator(_) => simulated(document, &program, &built, &running, context).await,
    }
}

/// By the best of the profilers that work here.
async fn on_gpu(
    session: &Session,
    builder: &Builder,
    built: &Built,
    running: &Running,
    context: &Context,
) -> Result<Made, JobError> {
    let search = session.search(&builder.config, builder.workspace.clone());
    let cache = Cache::configured(&builder.config.cache, &Folders::find());
    let (here, memory) = here(&search, &builder.toolkit, cache);
    let target = built.program.name.as_str();
    let order = Order { target, built, running, here: &here, only: None, memory: &memory };
    let say = |message: &str| context.progress(message, None);
    let recorded = match collect(&order, &say, context.cancellation()).await {
        Ok(recorded) => recorded,
        Err(CollectError::Cancelled) => return Err(JobError::Cancelled),
        Err(error) => return Err(JobError::failed(error)),
    };
    context.note(format!("profiled by {}", recorded.way.by));
    recorded.way.not_taken.iter().for_each(|not| context.note(format!("not by {}: {}", not.by, not.why)));
    Ok(Made { lines: Vec::new(), device: running.device.id(), recorded, defects: Vec::new() })
}

async fn simulated(
    document: &Document,
    program: &Program,
    built: &Built,
    running: &Running,
    context: &Context,
) -> Result<Made, JobError> {
    context.progress("simulating", None);
    let ran = program::run(built, running, context.cancellation()).await.map_err(JobError::failed)?;
    let report = match (&ran.end, &ran.report) {
        (End::Status(_) | End::Signal(_), Some(report)) => report,
        (End::Ended(why), _) => return Err(JobError::failed(why)),
        _ => return Err(JobError::failed("The program came to no end in its time, or used no device.")),
    };
    let text = document.text.to_source();
    let lines = lines(report, program, &text);
    let most = lines.iter().max_by_key(|line| line.weight);
    context.note(
        most.map_or("no line moves anything".to_owned(), |line| format!("the heaviest line: {}", line.words)),
    );
    let device = running.device.id();
    let recorded = simulated::profile(report, &program.name, &device);
    let defects = report.findings(&Source::new(document.path.as_deref().unwrap_or(Path::new("")), &text));
    Ok(Made { lines, device, recorded, defects })
}

/// A module or a function of PyTorch, by torch's own profiler.
async fn python(
    session: &Arc<Session>,
    document: &Document,
    path: &Path,
    name: String,
    limit: Duration,
    context: &Context,
) -> Result<Made, JobError> {
    let Chosen::Python(aim) = target(session, document, None).map_err(JobError::Failed)? else {
        return Err(JobError::failed("there is no module or function to profile"));
    };
    let config = session.configuration.for_path(Some(path));
    let workspace = session.configuration.project_of(path);
    let search = session.search(&config, workspace.clone());
    let executable = std::env::current_exe().map_err(JobError::failed)?;
    let device = Machine::timed(&config.device);
    let machine =
        Machine::find(&config, &search, &device, None, &executable).await.map_err(JobError::failed)?;
    session.board.write(context.id(), |card| card.device = Some(machine.device_id()));
    let mut request = machine.request(aim.subject.clone(), aim.subject);
    request.time_limit = limit.max(request.time_limit.min(LOADING));
    let folders = workspace.into_iter().chain(path.parent().map(PathBuf::from)).collect();
    let files = Workspace { folders, files: vec![path.to_owned()] };
    let progress = |message: &str, share: Option<f32>| context.progress(message, share);
    let profiled = profiled::profile(&name, &request, &files, &progress, context.cancellation()).await;
    let recorded = match profiled {
        Ok(recorded) => recorded,
        Err(ProfileError::Torch(TorchError::Cancelled)) => return Err(JobError::Cancelled),
        Err(error) => return Err(JobError::failed(error)),
    };
    recorded.notes.iter().for_each(|note| context.note(note.text.clone()));
    Ok(Made { lines: Vec::new(), device: machine.device_id(), recorded, defects: Vec::new() })
}

/// Importing torch and building an extension take longer than a call may.
const LOADING: Duration = Duration::from_secs(120);

/// The lines of the program's own file, over all kernels.
fn lines(report: &Report, program: &Program, text: &str) -> Vec<Moved> {
    let own = program.sources.first().and_then(|path| path.file_name());
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut found: HashMap<u32, (u64, Vec<String>)> = HashMap::new();
    for line in report.kernels.iter().flat_map(|kernel| &kernel.counters.lines) {
        if line.count.weight() > 0 && std::path::Path::new(&line.file).file_name() == own {
            let (weight, words) = found.entry(line.line).or_default();
            *weight += line.count.weight();
            words.push(line.count.words());
        }
    }
    let place = |number: u32| {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let start = *starts.get(index)?;
        let line = text[start..].lines().next().unwrap_or_default();
        Some(Span::new(start + (line.len() - line.trim_start().len()), start + line.len()))
    };
    let moved = |(number, (weight, words)): (u32, (u64, Vec<String>))| {
        Some(Moved { span: place(number)?, weight, words: words.join("; ") })
    };
    let mut lines: Vec<Moved> = found.into_iter().filter_map(moved).collect();
    lines.sort_by_key(|line| line.span.start);
    lines
}
