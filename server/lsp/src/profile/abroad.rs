//! Makes a profile of a document on another machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_session::jobs::{Context, JobError};
use stitch_verifier::harness::Answers;
use stitch_verifier::program::{Program, Ran, Target};
use stitch_verifier::torch::machine::Machine;
use stitch_worker::client::Elsewhere;
use stitch_worker::order::{self, Outcome, ProfileCuda, ProfileTorch};

use super::record::{LOADING, Limits, Made, made, say};
use crate::documents::Document;
use crate::elsewhere;
use crate::optimize::{Chosen, target};
use crate::session::Session;

/// The program that a CUDA file is.
pub(super) async fn cuda(
    session: &Arc<Session>,
    document: &Document,
    (machine, path): (&Elsewhere, PathBuf),
    name: String,
    limits: Limits,
    context: &Context,
) -> Result<Made, JobError> {
    let config = session.configuration.for_path(Some(&path));
    let workspace = session.configuration.project_of(&path);
    let settings = elsewhere::settings(&config, config.device.clone(), workspace, limits.run);
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let program = Program { name, sources: vec![path.clone()], folder, ..Program::default() };
    let target = Target::Program(Box::new(program.clone()));
    let flags = settings.config.nvcc.extra_flags.clone();
    let wanted =
        elsewhere::wanted(settings.workspace.as_deref(), &path).with_target(&target).with_flags(&flags);
    let order = ProfileCuda {
        settings,
        target,
        name: program.name.clone(),
        arguments: Vec::new(),
        answers: Answers::default(),
        by: None,
        sample: None,
        budget: limits.blocks,
        // Who asks for a profile wants it measured; a save may undo an edit, and find what was kept.
        fresh: limits.blocks.is_none(),
        or_simulated: true,
    };
    let began = Instant::now();
    let outcome = elsewhere::done(machine, &order::Order::Profile(Box::new(order)), wanted, context).await?;
    // The status can name the machine now.
    crate::configuration::tell_status(session).await;
    let (device, profile, ran) = match outcome {
        Outcome::Profile { profile } => (device_of(machine), profile, None),
        Outcome::Simulated { device, profile, run } => (device, profile, Some(Ran::from(*run))),
        _ => return Err(other()),
    };
    session.board.write(context.id(), |card| card.device = Some(device.clone()));
    let text = document.text.to_source();
    let made = made(&program, &text, (*profile, ran.as_ref()), device, began.elapsed())?;
    say(&made, ran.is_some(), context);
    Ok(made)
}

/// A module or a function of PyTorch.
pub(super) async fn torch(
    session: &Arc<Session>,
    document: &Document,
    (machine, path): (&Elsewhere, &Path),
    name: String,
    limit: Duration,
    context: &Context,
) -> Result<Made, JobError> {
    let Chosen::Python(aim) = target(session, document, None).map_err(JobError::Failed)? else {
        return Err(JobError::failed("there is no module or function to profile"));
    };
    let config = session.configuration.for_path(Some(path));
    let workspace = session.configuration.project_of(path);
    let wanted = elsewhere::wanted(workspace.as_deref(), path).with_subject(&aim.subject);
    let folders = workspace.iter().cloned().chain(path.parent().map(PathBuf::from)).collect();
    let device = Machine::timed(&config.device);
    let settings = elsewhere::settings(&config, device, workspace, limit.max(LOADING));
    let order = ProfileTorch { settings, subject: aim.subject, name, folders, fresh: true };
    let began = Instant::now();
    let order = order::Order::ProfileTorch(Box::new(order));
    let Outcome::Profile { profile } = elsewhere::done(machine, &order, wanted, context).await? else {
        return Err(other());
    };
    let device = device_of(machine);
    session.board.write(context.id(), |card| card.device = Some(device.clone()));
    let took = began.elapsed();
    let made = Made { lines: Vec::new(), device, recorded: *profile, defects: Vec::new(), took };
    say(&made, false, context);
    Ok(made)
}

fn device_of(machine: &Elsewhere) -> String {
    let name = machine.machine();
    name.map_or("a device elsewhere".to_owned(), |name| format!("a device of {name}"))
}

fn other() -> JobError {
    JobError::failed("The worker did something else than was ordered.")
}
