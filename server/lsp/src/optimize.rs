//! Optimises a selection as a job, and offers the result for review; or writes the plan for it, and tries nothing.
//!
//! The job works on the text as it was when it began, in a run's folder. Its result is offered as an edit of that version of the document,
//! so that it is never made over text that has changed meanwhile; then, and where the person declines, it can still be had from the run.

mod chosen;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stitch_agents::engines::Engines;
use stitch_agents::optimize::{Event, Observer, OptimizeError, optimize};
use stitch_agents::run::{Conclusion, Entry, Manifest, Outcome, Run};
use stitch_analysis::Language;
use stitch_findings::Span;
use stitch_session::jobs::{Context, JobError, JobId, JobKind, Request};
use stitch_verifier::harness::Answers;
use tower_lsp::ls_types::MessageType;

pub use chosen::{Chosen, Judging, target};

use crate::documents::Document;
use crate::session::Session;
use crate::{elsewhere, review, runs};

/// How long one run of a program may take.
pub(crate) const RUN_LIMIT: Duration = Duration::from_secs(600);

/// Whether anything of a document can be optimised, as far as that can be told without looking into it.
pub fn is_possible(session: &Session, document: &Document) -> bool {
    matches!(document.to_analyse(), Some(Language::Cuda | Language::Python))
        && document.path.is_some()
        && session.configuration.is_trusted()
}

/// How far a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// To a plan, of which nothing is tried.
    Plan,
    /// To the best candidate that is found.
    Candidate,
}

impl Extent {
    /// What is done by it, in a word.
    pub fn done(self) -> &'static str {
        match self {
            Self::Plan => "planned",
            Self::Candidate => "optimised",
        }
    }
}

/// Starts to optimise a selection, in bytes of the document, or to plan that.
///
/// # Errors
/// Why it can't be optimised.
pub fn start(
    session: &Arc<Session>,
    document: &Arc<Document>,
    selection: Span,
    extent: Extent,
) -> Result<JobId, String> {
    let chosen = target(session, document, Some(selection))?;
    let of = chosen.name().or_else(|| chosen.scope().first().cloned()).unwrap_or_default();
    let (kind, what) = match extent {
        Extent::Plan => (JobKind::Plan, "Plan"),
        Extent::Candidate => (JobKind::Optimize, "Optimize"),
    };
    let request =
        Request::new(kind, format!("{what} {of}")).limit(elsewhere::limit(session, document.path.as_deref()));
    let (for_job, optimised) = (session.clone(), document.clone());
    let job = session.jobs.start(request, move |context| async move {
        let job = context.id();
        let (run, conclusion) = work(&for_job, &optimised, chosen, (selection, extent), &context).await?;
        for_job.board.write(job, |card| {
            card.said = Some(conclusion.said.clone());
            (card.attempt, card.speedup) = (conclusion.best, conclusion.gain);
        });
        if extent == Extent::Plan {
            told(&for_job, run.manifest(), &conclusion);
            return Ok(());
        }
        // The job is over; that the person takes time to look at the result is not part of it.
        tokio::spawn(review::offer(for_job.clone(), job, optimised.clone(), run, conclusion));
        Ok(())
    });
    Ok(job.id())
}

/// Says what a plan holds to whom no plugin shows it.
fn told(session: &Session, manifest: &Manifest, conclusion: &Conclusion) {
    if !session.features().plugin.jobs {
        let Manifest { target, id, .. } = manifest;
        let said = format!("{target}: {} All of it: `stitchcuda runs show {id}`.", conclusion.said);
        session.notices.show(MessageType::INFO, said);
    }
}

/// From the document to the end of the run.
async fn work(
    session: &Arc<Session>,
    document: &Arc<Document>,
    chosen: Chosen,
    (selection, extent): (Span, Extent),
    context: &Context,
) -> Result<(Run, Conclusion), JobError> {
    let path = document.path.clone().ok_or_else(|| JobError::failed("The document is no file."))?;
    let text = document.text.to_source();
    let config = session.configuration.for_path(Some(&path));
    let mut engine = Engines::choose(&config, None, None, None).map_err(JobError::failed)?;
    if matches!(chosen, Chosen::Python(_)) {
        engine.check_python().map_err(JobError::Failed)?;
    }
    let runs = runs::folder().map_err(JobError::Failed)?;
    let budget = match extent {
        Extent::Plan => engine.budget(&config).only_plan(),
        Extent::Candidate => engine.budget(&config),
    };
    let judging = Judging::prepare(session, &path, &text, &chosen, &config, context).await?;
    let device = judging.device();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let manifest = Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        id: String::new(),
        started: Manifest::now(),
        target: match chosen.name() {
            Some(of) => format!("{name}::{of}"),
            None => name,
        },
        folder: path.parent().map(PathBuf::from).unwrap_or_default(),
        file: path,
        kernel: chosen.kernel(),
        with: Vec::new(),
        selection: Some(selection),
        scope: chosen.scope().to_vec(),
        device: judging.device_id(),
        engine: engine.name().to_owned(),
        model: engine.model(),
        tolerance: judging.declared.tolerance,
        precision: judging.declared.precision,
        arguments: Vec::new(),
        answers: Answers::default(),
        inputs: Vec::new(),
        init: None,
        train: None,
        python: None,
        time_limit_seconds: RUN_LIMIT.as_secs(),
        budget,
    };
    let judgement = judging.judgement(chosen, RUN_LIMIT).map_err(JobError::failed)?;
    if let Some(notice) = engine.first_notice(runs.parent().unwrap_or(&runs)) {
        session.notices.show(MessageType::INFO, notice);
    }
    let mut run = Run::create(&runs, manifest, &text).map_err(JobError::failed)?;
    session.board.write(context.id(), |card| {
        card.uri = Some(document.uri.to_string());
        card.run = Some(run.manifest().id.clone());
        card.device = Some(device);
    });
    let teller = Teller { session: session.clone(), context: context.clone() };
    match optimize(&mut run, &judgement, &mut engine, &teller, context.cancellation()).await {
        Ok(conclusion) => Ok((run, conclusion)),
        Err(OptimizeError::Cancelled) => Err(JobError::Cancelled),
        Err(error) => Err(JobError::failed(error)),
    }
}

/// Shows what happens as the job's progress.
struct Teller {
    session: Arc<Session>,
    context: Context,
}

impl Observer for Teller {
    fn on(&self, event: &Event<'_>) {
        match event {
            Event::Stage { stage, about: "" } => self.context.progress(*stage, None),
            Event::Stage { stage, about } => self.context.progress(format!("{stage}: {about}"), None),
            Event::Streaming { role, bytes } => {
                self.context.progress(format!("{role} answers: {bytes} bytes"), None);
            }
            Event::Happened { entry: Entry::Attempt(attempt) } => {
                self.session.board.write(self.context.id(), |card| {
                    let better = attempt.gain > card.speedup && attempt.outcome == Outcome::Kept;
                    if better {
                        (card.attempt, card.speedup) = (Some(attempt.number), attempt.gain);
                    }
                });
                self.context.note(format!("attempt {}: {}: {}", attempt.number, attempt.title, attempt.said));
            }
            Event::Happened { .. } => {}
        }
    }
}
