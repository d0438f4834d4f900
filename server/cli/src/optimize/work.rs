//! Runs the loop as a job, and prints what happens while it does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use stitch_agents::engine::EngineError;
use stitch_agents::engines::Engines;
use stitch_agents::optimize::{
    CudaJudgement, ElsewhereJudgement, Event, JudgeError, Judgement, Observer, OptimizeError, PythonAim,
    TorchJudgement, Version, optimize, read,
};
use stitch_agents::patch;
use stitch_agents::run::{Conclusion, Manifest, Run};
use stitch_session::CancellationToken;
use stitch_session::config::Config;
use stitch_session::config::Device;
use stitch_session::jobs::{JobError, JobKind, Limit, Request as Job};
use stitch_verifier::measure::{Harnesses, MeasureError, Measurement};
use stitch_verifier::program::{Builder, RunError, Target};
use stitch_verifier::simulation::SimulationError;
use stitch_verifier::torch::machine::Machine;
use stitch_verifier::torch::request::TorchError;
use stitch_verifier::verify::VerifyError;
use stitch_worker::client::Elsewhere;
use stitch_worker::judge::{self, Carrier};
use stitch_worker::order::{Judged, Settings};
use stitch_worker::protocol::Kind;
use tokio::sync::mpsc;

use super::{Ending, Spending, human};
use crate::elsewhere;
use crate::format::Format;
use crate::interrupt;
use crate::progress::Spinner;
use crate::settings::Surrounding;
use crate::setup::{self, ProgramArguments};
use crate::status::Status;

/// What is optimised.
#[derive(Clone)]
pub enum Aimed {
    /// A CUDA program or kernel.
    Cuda(Target),
    /// PyTorch code.
    Python(Box<PythonAim>),
}

/// How its candidates are judged, where that is known before there is a run.
enum Judge {
    Cuda(Target, Box<Builder>),
    Python(Box<PythonAim>, Box<Machine>, Arc<Config>),
    Elsewhere(Box<There>),
}

/// A judge on another machine.
struct There {
    elsewhere: Elsewhere,
    device: judge::Device,
    settings: Settings,
    aimed: Aimed,
    config: Arc<Config>,
}

impl Judge {
    /// Looks for what judges it. `Err` with the status where something is missing, which was said.
    async fn prepare(order: &Order, cancel: &CancellationToken) -> Result<std::result::Result<Self, Status>> {
        let file = match &order.aimed {
            Aimed::Cuda(target) => setup::file(target),
            Aimed::Python(aim) => Some(&*aim.subject.path),
        };
        let config = order.surrounding.config_for(file);
        if let Some(elsewhere) = Elsewhere::configured(&config.worker) {
            let there = There::prepare(elsewhere, order, (file, config), cancel).await;
            return Ok(there.map(|there| Self::Elsewhere(Box::new(there))));
        }
        Ok(match &order.aimed {
            Aimed::Cuda(target) => setup::builder(&order.surrounding, &order.program, target)
                .await?
                .map(|builder| Self::Cuda(target.clone(), Box::new(builder))),
            Aimed::Python(aim) => {
                let config = order.surrounding.config_for(Some(&aim.subject.path));
                if let Some(status) = untimed(order) {
                    return Ok(Err(status));
                }
                let asked = order.program.device.clone().unwrap_or_else(|| Machine::timed(&config.device));
                let machine =
                    setup::machine(&order.surrounding, &config, &asked, order.python.as_deref()).await;
                machine.map(|machine| Self::Python(aim.clone(), Box::new(machine), config))
            }
        })
    }

    fn config(&self) -> &Config {
        match self {
            Self::Cuda(_, builder) => &builder.config,
            Self::Python(.., config) => config,
            Self::Elsewhere(there) => &there.config,
        }
    }

    fn device(&self) -> String {
        match self {
            Self::Cuda(_, builder) => builder.device.id(),
            Self::Python(_, machine, _) => machine.device_id(),
            Self::Elsewhere(there) => there.device.id.clone(),
        }
    }

    /// The judgement of a run's candidates.
    fn of_run(self, manifest: &Manifest, executable: PathBuf) -> Judgement {
        let time_limit = std::time::Duration::from_secs(manifest.time_limit_seconds);
        match self {
            Self::Cuda(target, mut builder) => {
                builder.origin = Some(manifest.file.clone());
                let measurement = Measurement {
                    builder: *builder,
                    arguments: manifest.arguments.clone(),
                    answers: manifest.answers.clone(),
                    scope: manifest.scope.clone(),
                    tolerance: manifest.tolerance,
                    time_limit,
                    executable,
                    harnesses: Harnesses::default(),
                };
                let (tolerance, precision) = (manifest.tolerance, manifest.precision);
                Judgement::Cuda(Box::new(CudaJudgement { target, measurement, tolerance, precision }))
            }
            Self::Python(aim, machine, _) => Judgement::Torch(Box::new(TorchJudgement {
                machine: *machine,
                subject: aim.subject,
                denoted: aim.denoted,
                train: manifest.train,
                tolerance: manifest.tolerance,
                precision: manifest.precision,
                time_limit,
            })),
            Self::Elsewhere(there) => there.of_run(manifest),
        }
    }

    /// The connection to close in the end.
    fn elsewhere(&self) -> Option<Elsewhere> {
        match self {
            Self::Cuda(..) | Self::Python(..) => None,
            Self::Elsewhere(there) => Some(there.elsewhere.clone()),
        }
    }
}

/// Says so where a device was asked for that takes no time of PyTorch code.
fn untimed(order: &Order) -> Option<Status> {
    let Some(Device::Simulator(name)) = &order.program.device else { return None };
    anstream::eprintln!(
        "error: `sim:{name}` measures no time, so no candidate for PyTorch code could be called faster there. Take `--device cpu` or \
         `--device cuda:0`; `stitchcuda verify` compares a candidate on `sim:{name}`."
    );
    Some(Status::Usage)
}

impl There {
    /// Asks the machine for its device. `Err` with the status where there is none, which was said.
    async fn prepare(
        elsewhere: Elsewhere,
        order: &Order,
        (file, config): (Option<&Path>, Arc<Config>),
        cancel: &CancellationToken,
    ) -> std::result::Result<Self, Status> {
        let (asked, torch) = match &order.aimed {
            Aimed::Cuda(target) => (setup::asked(&order.program, target, &config), false),
            Aimed::Python(_) => {
                if let Some(status) = untimed(order) {
                    return Err(status);
                }
                let asked = order.program.device.clone();
                (asked.unwrap_or_else(|| Machine::timed(&config.device)), true)
            }
        };
        let python = order.python.clone();
        let settings = elsewhere::settings(&order.surrounding, &order.program, &config, asked, file, python);
        let spinner = Spinner::new();
        let progress = |message: &str, _: Option<f32>| spinner.say(message);
        let looked = judge::look(&elsewhere, &settings, torch, &progress, cancel).await;
        spinner.clear();
        let device = looked.map_err(|error| elsewhere::failed(&error))?;
        Ok(Self { elsewhere, device, settings, aimed: order.aimed.clone(), config })
    }

    /// The judgement of a run's candidates.
    fn of_run(self, manifest: &Manifest) -> Judgement {
        let (target, denoted) = match self.aimed {
            Aimed::Cuda(target) => {
                let (arguments, answers) = (manifest.arguments.clone(), manifest.answers.clone());
                let scope = manifest.scope.clone();
                (Judged::Cuda { target, arguments, answers, scope }, None)
            }
            Aimed::Python(aim) => {
                let name = aim.denoted.title();
                (Judged::Torch { subject: aim.subject, name, train: manifest.train }, Some(aim.denoted))
            }
        };
        let carrier = Carrier {
            elsewhere: self.elsewhere,
            settings: self.settings,
            file: manifest.file.clone(),
            target,
            tolerance: manifest.tolerance,
            precision: manifest.precision,
        };
        Judgement::Elsewhere(Box::new(ElsewhereJudgement {
            carrier: Arc::new(carrier),
            device: self.device.name,
            precision: manifest.precision,
            denoted,
        }))
    }
}

/// What is to be done.
pub struct Order {
    /// The settings.
    pub surrounding: Surrounding,
    /// Flags that say where and how programs run.
    pub program: ProgramArguments,
    /// What is optimised.
    pub aimed: Aimed,
    /// The interpreter that was named, for PyTorch code.
    pub python: Option<PathBuf>,
    /// The folder of all runs.
    pub runs: PathBuf,
    /// A run to begin: what is asked for, and the text of the target's file.
    pub begin: Option<(Manifest, String)>,
    /// A run to go on with.
    pub resume: Option<String>,
    /// What plans and codes, and what it may spend.
    pub spending: Spending,
    /// Whether a run that begins ends with its plan.
    pub plan_only: bool,
    /// What becomes of the answer.
    pub ending: Ending,
}

/// What is told while a run is at work: a line for a person, or an event as JSON.
enum Told {
    Line(String),
    Json(serde_json::Value),
}

/// Tells the printing end what happens.
struct Teller {
    format: Format,
    spinner: Spinner,
    told: mpsc::UnboundedSender<Told>,
}

impl Observer for Teller {
    fn on(&self, event: &Event<'_>) {
        match event {
            Event::Stage { stage, about: "" } => self.spinner.say(stage),
            Event::Stage { stage, about } => self.spinner.say(&format!("{stage}: {about}")),
            Event::Streaming { role, bytes } => self.spinner.say(&format!("{role} answers: {bytes} bytes")),
            Event::Happened { .. } => {}
        }
        // Whoever would read it is gone only when the command is over.
        let _ = match (self.format, event) {
            (Format::Json, event) => match serde_json::to_value(event) {
                Ok(value) => self.told.send(Told::Json(value)),
                Err(_) => Ok(()),
            },
            (Format::Human, Event::Happened { entry }) => self.told.send(Told::Line(human::happened(entry))),
            _ => Ok(()),
        };
    }
}

/// How a run ended.
struct Ended {
    run: Run,
    result: std::result::Result<Conclusion, OptimizeError>,
}

/// Begins a run, or goes on with one, and prints what comes of it.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub fn go_on(order: Order, out: &mut impl Write) -> Result<Status> {
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    let ending = order.ending.clone();
    let format = ending.format;
    let shown = &mut *out;
    let ended = interrupt::until_done(1, |jobs, session| async move {
        let judge = match Judge::prepare(&order, &session).await? {
            Ok(judge) => judge,
            Err(status) => return Ok(Err(status)),
        };
        let elsewhere = judge.elsewhere();
        let Spending { engine: choice, model, .. } = order.spending.clone();
        let mut engine = match Engines::choose(judge.config(), choice, model, None) {
            Ok(engine) => engine,
            Err(error) => {
                anstream::eprintln!("error: {error}");
                return Ok(Err(Status::Missing));
            }
        };
        if let (Aimed::Python(_), Err(missing)) = (&order.aimed, engine.check_python()) {
            anstream::eprintln!("error: {missing}");
            return Ok(Err(Status::Missing));
        }
        if let Some(notice) = order.runs.parent().and_then(|state| engine.first_notice(state)) {
            anstream::eprintln!("note: {notice}");
        }
        let run = match (order.begin, order.resume) {
            (Some((mut manifest, text)), _) => {
                manifest.device = judge.device();
                manifest.engine = engine.name().to_owned();
                manifest.model = engine.model();
                let budget = order.spending.over(engine.budget(judge.config()));
                manifest.budget = if order.plan_only { budget.only_plan() } else { budget };
                Run::create(&order.runs, manifest, &text)?
            }
            (None, Some(id)) => {
                let mut run = Run::resume(&order.runs, &id)?;
                // Who goes on with a plan wants what is usual tried of it.
                let before = run.manifest().budget;
                let before = if before.is_only_plan() { engine.budget(judge.config()) } else { before };
                run.set_budget(order.spending.over(before))?;
                run
            }
            (None, None) => anyhow::bail!("there is no run to begin or to go on with"),
        };
        let manifest = run.manifest().clone();
        let judgement = judge.of_run(&manifest, executable);
        let (told, mut heard) = mpsc::unbounded_channel();
        let spinner = Spinner::new();
        announce(&run, format, shown)?;
        let teller = Teller { format, spinner: spinner.clone(), told };
        let (kind, what) = match manifest.budget.is_only_plan() {
            true => (JobKind::Plan, "Plan"),
            false => (JobKind::Optimize, "Optimize"),
        };
        let job = Job::new(kind, format!("{what} {}", manifest.target)).limit(Limit::Processor);
        let handle = jobs.start(job, move |context| async move {
            let mut run = run;
            let cancel = context.cancellation().clone();
            let result = optimize(&mut run, &judgement, &mut engine, &teller, &cancel).await;
            Ok::<_, JobError>(Ended { run, result })
        });
        // Ends when the job drops the sending end.
        while let Some(told) = heard.recv().await {
            spinner.suspend(|| tell(&told, shown))?;
        }
        let ended = handle.wait().await;
        spinner.clear();
        if let Some(elsewhere) = elsewhere {
            elsewhere.close().await;
        }
        Ok::<_, anyhow::Error>(Ok(ended))
    })??;
    match ended {
        Err(status) => Ok(status),
        Ok(Err(error)) => Ok(Status::of_job(&error)),
        Ok(Ok(ended)) => finish(&ended, &ending, out),
    }
}

fn announce(run: &Run, format: Format, out: &mut impl Write) -> Result<()> {
    let manifest = run.manifest();
    match format {
        Format::Json => {
            let event = json!({ "schema": "stitchcuda.optimize/1", "event": "begun", "run": manifest.id, "folder": run.folder(), "resumed": !run.history().is_empty(), "manifest": manifest });
            tell(&Told::Json(event), out)
        }
        Format::Human => tell(&Told::Line(human::begun(run)), out),
    }
}

fn tell(told: &Told, out: &mut impl Write) -> Result<()> {
    match told {
        Told::Line(line) => writeln!(out, "{line}")?,
        Told::Json(value) => writeln!(out, "{value}")?,
    }
    out.flush()?;
    Ok(())
}

fn finish(ended: &Ended, ending: &Ending, out: &mut impl Write) -> Result<Status> {
    let run = &ended.run;
    let conclusion = match &ended.result {
        Ok(conclusion) => conclusion,
        Err(error) => return Ok(failed(error, &run.manifest().id)),
    };
    let best = match conclusion.best {
        Some(number) => Some(run.candidate(number)?),
        None => None,
    };
    let patch = best.as_ref().map(|text| patch::unified(run.reference(), text, &run.manifest().file_name()));
    match ending.format {
        Format::Json => {
            let event = json!({ "schema": "stitchcuda.optimize/1", "event": "finished", "run": run.manifest().id, "conclusion": conclusion, "patch": patch });
            writeln!(out, "{event}")?;
        }
        Format::Human => human::finished(run, conclusion, patch.as_deref(), out)?,
    }
    match best {
        Some(text) if ending.apply => apply(run, &text),
        _ => Ok(Status::Good),
    }
}

/// Writes the best attempt over the file, unless that changed meanwhile.
fn apply(run: &Run, text: &str) -> Result<Status> {
    let manifest = run.manifest();
    let path = &manifest.file;
    let now = read(path).with_context(|| format!("{} could not be read", path.display()))?;
    if now != run.reference() {
        anstream::eprintln!(
            "error: {} has changed since the run began, so the answer was not written over it. `stitchcuda runs diff {}` prints it as a patch.",
            path.display(),
            manifest.id
        );
        return Ok(Status::Bad);
    }
    let version = Version { path: path.clone(), text: text.to_owned() };
    std::fs::write(&version.path, &version.text)
        .with_context(|| format!("{} could not be written", path.display()))?;
    anstream::eprintln!("note: {} was changed.", path.display());
    Ok(Status::Good)
}

fn failed(error: &OptimizeError, id: &str) -> Status {
    let status = match error {
        OptimizeError::Cancelled => Status::Interrupted,
        OptimizeError::Judge(error @ JudgeError::Elsewhere { .. }) => Status::from(Kind::from(error)),
        OptimizeError::Engine(EngineError::Missing(_)) => Status::Missing,
        OptimizeError::Judge(JudgeError::Measure(MeasureError::Run(RunError::Simulation(
            SimulationError::Missing { .. },
        )))) => Status::Missing,
        OptimizeError::Judge(JudgeError::Measure(MeasureError::Harness(
            VerifyError::Plan(_) | VerifyError::Kernel(_),
        ))) => Status::Usage,
        OptimizeError::Judge(JudgeError::Torch(TorchError::Reference { .. }) | JudgeError::Unsuitable(_)) => {
            Status::Usage
        }
        OptimizeError::Judge(JudgeError::Torch(TorchError::Host(_) | TorchError::Device(_))) => {
            Status::Missing
        }
        OptimizeError::Run(_) | OptimizeError::OtherDevice { .. } => Status::Usage,
        _ => Status::Bad,
    };
    match error {
        OptimizeError::Cancelled => {
            anstream::eprintln!(
                "note: The run was interrupted. `stitchcuda runs resume {id}` goes on with it."
            );
        }
        error => anstream::eprintln!("error: {error}"),
    }
    status
}
