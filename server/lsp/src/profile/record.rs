//! Makes a profile of a document: on the GPU that is configured, or else on the simulator.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_analysis::Language;
use stitch_findings::{Finding, Span};
use stitch_profiles::profile::Profile as Recorded;
use stitch_profiles::python::Workspace;
use stitch_session::config::Device;
use stitch_session::jobs::{Context, JobError};
use stitch_toolchain::discovery::Search;
use stitch_verifier::profile::take::{TakeError, Taken, Wanted, kept, take};
use stitch_verifier::program::{self, Builder, End, Program, Ran, Running};
use stitch_verifier::simulation::{Options, Report, Source, checks};
use stitch_verifier::torch::machine::Machine;
use stitch_verifier::torch::request::{Request, TorchError};
use stitch_verifier::torch::verify::profiled;

use super::{Moved, abroad};
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
    /// How long building and running took.
    pub took: Duration,
}

/// How long a program may run where nobody asked for it but saved the file; on the simulator, how long all of its blocks are simulated, and beyond that a
/// sample of them.
pub(super) const ON_SAVE_BUDGET: Duration = Duration::from_secs(5);

/// What a profile may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long the program may run.
    pub run: Duration,
    /// On the simulator, for how long all of its blocks are simulated; all the time where it is not said.
    pub blocks: Option<Duration>,
}

/// What a document's program is profiled with, and how.
struct Prepared {
    program: Program,
    builder: Builder,
    running: Running,
    search: Search,
}

impl Prepared {
    /// Looks for what profiles the file at `path`.
    async fn of(
        session: &Arc<Session>,
        path: PathBuf,
        name: String,
        limits: Limits,
    ) -> Result<Self, JobError> {
        let config = session.configuration.for_path(Some(&path));
        let workspace = session.configuration.project_of(&path);
        let toolkit =
            toolkit::find(session, &config, workspace.as_deref()).await.map_err(JobError::Failed)?;
        let wanted = match &config.device {
            Device::Cpu => Device::Simulator(USUAL.to_owned()),
            device => device.clone(),
        };
        let device = program::choose(&wanted).await.map_err(JobError::failed)?;
        let search = session.search(&config, workspace.clone());
        let builder =
            Builder::prepare(device.clone(), toolkit, config, workspace).await.map_err(JobError::Failed)?;
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        let program = Program { name, sources: vec![path], folder, ..Program::default() };
        let executable = std::env::current_exe().map_err(JobError::failed)?;
        let simulation = Options {
            executable,
            counters: true,
            budget: limits.blocks,
            // On one thread: for who asked, and has the time.
            caches: limits.blocks.is_none(),
            checks: checks(builder.config.simulator.checks),
            ..Options::default()
        };
        let running = Running { device, arguments: Vec::new(), time_limit: limits.run, simulation };
        Ok(Self { program, builder, running, search })
    }

    fn wanted(&self, fresh: bool) -> Wanted<'_> {
        let Self { program, builder, running, search } = self;
        Wanted { target: &program.name, program, builder, running, search, only: None, fresh }
    }

    /// What was kept: where there is one, a profile of all blocks.
    async fn kept(&self) -> Option<Taken> {
        let mut whole = self.running.clone();
        (whole.simulation.budget, whole.simulation.caches) = (None, true);
        if let Some(taken) = kept(&Wanted { running: &whole, ..self.wanted(false) }).await {
            return Some(taken);
        }
        kept(&self.wanted(false)).await
    }
}

/// What is told of a profile of `program` at the lines of `text`.
pub(super) fn made(
    program: &Program,
    text: &str,
    (recorded, ran): (Recorded, Option<&Ran>),
    device: String,
    took: Duration,
) -> Result<Made, JobError> {
    let Some(ran) = ran else {
        return Ok(Made { lines: Vec::new(), device, recorded, defects: Vec::new(), took });
    };
    let report = match (&ran.end, &ran.report) {
        (End::Status(_) | End::Signal(_), Some(report)) => report,
        (End::Ended(why), _) => return Err(JobError::failed(why)),
        _ => return Err(JobError::failed("The program came to no end in its time, or used no device.")),
    };
    let lines = lines(report, program, text);
    // What a sample does wrong may come of what it left out.
    let is_whole = report.sampled().next().is_none();
    let path = program.sources.first().map_or(Path::new(""), PathBuf::as_path);
    let defects = if is_whole { report.findings(&Source::new(path, text)) } else { Vec::new() };
    Ok(Made { lines, device, recorded, defects, took })
}

/// Says how a profile was made and what stands out.
pub(super) fn say(made: &Made, is_simulated: bool, context: &Context) {
    let way = &made.recorded.way;
    context.note(format!("profiled by {}", way.by));
    way.not_taken.iter().for_each(|not| context.note(format!("not by {}: {}", not.by, not.why)));
    if is_simulated {
        let most = made.lines.iter().max_by_key(|line| line.weight);
        context.note(most.map_or("no line moves anything".to_owned(), |line| {
            format!("the heaviest line: {}", line.words)
        }));
    }
    // Last, since a plugin shows the last note: what is an estimate says so.
    made.recorded.notes.iter().for_each(|note| context.note(note.text.clone()));
}

/// Profiles a document, whose program may run for so long.
pub(super) async fn record(
    session: &Arc<Session>,
    document: &Document,
    path: PathBuf,
    name: String,
    limits: Limits,
    context: &Context,
) -> Result<Made, JobError> {
    let is_python = document.to_analyse() == Some(Language::Python);
    if let Some(machine) = session.machines.of(&session.configuration.for_path(Some(&path))) {
        return match is_python {
            true => abroad::torch(session, document, (&machine, &path), name, limits.run, context).await,
            false => abroad::cuda(session, document, (&machine, path), name, limits, context).await,
        };
    }
    if is_python {
        return python(session, document, &path, name, limits.run, context).await;
    }
    let prepared = Prepared::of(session, path.clone(), name, limits).await?;
    session.board.write(context.id(), |card| card.device = Some(prepared.running.device.id()));
    let progress = |message: &str| context.progress(message, None);
    // Who asks for a profile wants it measured; a save may undo an edit, and find what was kept.
    let is_asked = limits.blocks.is_none();
    let kept = if is_asked { None } else { prepared.kept().await };
    let taken = match kept {
        Some(taken) => Ok(taken),
        None => take(&prepared.wanted(is_asked), &progress, context.cancellation()).await,
    };
    let taken = match taken {
        Ok(taken) => taken,
        Err(TakeError::Cancelled) => return Err(JobError::Cancelled),
        Err(error) => return Err(JobError::failed(error)),
    };
    let Taken { profile, ran, took } = taken;
    let device = prepared.running.device.id();
    let text = document.text.to_source();
    let made = made(&prepared.program, &text, (profile, ran.as_ref()), device, took)?;
    say(&made, ran.is_some(), context);
    Ok(made)
}

/// The profile of a document that was kept from before, if it still holds. Nothing is built or run.
pub(super) async fn recall(session: &Arc<Session>, document: &Document, path: &Path) -> Option<Made> {
    if session.machines.of(&session.configuration.for_path(Some(path))).is_some() {
        // What is kept of another machine is kept there.
        return None;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = document.text.to_source();
    if document.to_analyse() == Some(Language::Python) {
        let (request, files) = torch_request(session, document, path, Duration::ZERO).await.ok()?;
        let (recorded, took) = profiled::kept(&name, &request, &files).await?;
        return Some(Made { lines: Vec::new(), device: request.device, recorded, defects: Vec::new(), took });
    }
    let limits = Limits { run: Duration::ZERO, blocks: Some(ON_SAVE_BUDGET) };
    let prepared = Prepared::of(session, path.to_owned(), name, limits).await.ok()?;
    let Taken { profile, ran, took } = prepared.kept().await?;
    made(&prepared.program, &text, (profile, ran.as_ref()), prepared.running.device.id(), took).ok()
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
    let (request, files) = torch_request(session, document, path, limit).await?;
    session.board.write(context.id(), |card| card.device = Some(request.device.clone()));
    let progress = |message: &str, share: Option<f32>| context.progress(message, share);
    let began = Instant::now();
    let profiled = profiled::profile(&name, &request, &files, true, &progress, context.cancellation()).await;
    let recorded = match profiled {
        Ok(recorded) => recorded,
        Err(TorchError::Cancelled) => return Err(JobError::Cancelled),
        Err(error) => return Err(JobError::failed(error)),
    };
    recorded.notes.iter().for_each(|note| context.note(note.text.clone()));
    let took = began.elapsed();
    Ok(Made { lines: Vec::new(), device: request.device, recorded, defects: Vec::new(), took })
}

/// How a document's module or function is profiled, and which files are the person's own.
async fn torch_request(
    session: &Arc<Session>,
    document: &Document,
    path: &Path,
    limit: Duration,
) -> Result<(Request, Workspace), JobError> {
    let Chosen::Python(aim) = target(session, document, None).map_err(JobError::Failed)? else {
        return Err(JobError::failed("there is no module or function to profile"));
    };
    let config = session.configuration.for_path(Some(path));
    let workspace = session.configuration.project_of(path);
    let device = Machine::timed(&config.device);
    let search = session.search(&config, workspace.clone());
    let executable = std::env::current_exe().map_err(JobError::failed)?;
    let machine =
        Machine::find(&config, &search, &device, None, &executable).await.map_err(JobError::failed)?;
    let mut request = machine.request(aim.subject.clone(), aim.subject);
    request.time_limit = limit.max(request.time_limit.min(LOADING));
    let folders = workspace.into_iter().chain(path.parent().map(PathBuf::from)).collect();
    Ok((request, Workspace { folders, files: vec![path.to_owned()], ..Workspace::default() }))
}

/// Importing torch and building an extension take longer than a call may.
pub(super) const LOADING: Duration = Duration::from_secs(120);

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
