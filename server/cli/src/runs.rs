//! `stitchcuda runs`: the runs of `optimize`, each a folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use stitch_agents::optimize::{aim, aim_python};
use stitch_agents::patch;
use stitch_agents::run::{Record, RunError, Summary, list, remove};
use stitch_session::config::{Device, EngineChoice};
use stitch_session::folders::Folders;
use stitch_verifier::torch::find::{Asked, is_python};

use crate::format::{Format, print_json};
use crate::optimize::{Aimed, Ending, Order, Spending, go_on, print_record};
use crate::settings::Surrounding;
use crate::setup::{self, ProgramArguments};
use crate::status::Status;

/// Arguments of `runs`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List all runs
    List {
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show one run: plans, attempts, verdicts, the best as a diff
    Show {
        /// The run
        id: String,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print an attempt as a patch against the code as it was
    Diff {
        /// The run
        id: String,
        /// The attempt; the best if it is not said
        #[arg(long, value_name = "N")]
        attempt: Option<u32>,
    },
    /// Go on with a run that was interrupted, or that a larger budget takes further
    Resume {
        /// The run
        id: String,
        /// Where to go on, if not where the run began; it must be the device that the run was measured on
        #[arg(long, value_parser = setup::device)]
        device: Option<Device>,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        ending: Ending,
    },
    /// Remove runs
    Remove {
        /// The runs
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// Does what is asked.
///
/// # Errors
/// There is no such run, or it can't be read; writing to `out`.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let root = folder()?;
    match &arguments.command {
        Command::List { format } => print_list(&root, *format, out),
        Command::Show { id, format } => show(&root, id, *format, out),
        Command::Diff { id, attempt } => diff(&root, id, *attempt, out),
        Command::Resume { id, device, spending, ending } => {
            resume(&root, id, device.as_ref(), (spending, ending), out)
        }
        Command::Remove { ids } => {
            for id in ids {
                remove(&root, id)?;
            }
            Ok(Status::Good)
        }
    }
}

/// The folder of all runs.
///
/// # Errors
/// None is known.
pub fn folder() -> Result<PathBuf> {
    Ok(Folders::find().state.context("no folder for runs is known; set STITCHCUDA_STATE_DIR")?.join("runs"))
}

#[derive(Serialize)]
struct List<'a> {
    schema: &'static str,
    folder: &'a Path,
    runs: Vec<Summary>,
}

fn print_list(root: &Path, format: Format, out: &mut impl Write) -> Result<Status> {
    let (runs, troubles) = list(root);
    for trouble in &troubles {
        anstream::eprintln!("warning: {trouble}");
    }
    match format {
        Format::Json => print_json(out, &List { schema: "stitchcuda.runs/1", folder: root, runs })?,
        Format::Human if runs.is_empty() => {
            writeln!(out, "There are no runs yet. `stitchcuda optimize TARGET` begins one.")?;
        }
        Format::Human => {
            for run in runs {
                let state = if run.finished { "" } else { ", not at its end" };
                let came_to = match run.gain {
                    _ if run.only_plan => "a plan".to_owned(),
                    Some(gain) => format!("{gain:.2} times better in {} attempts", run.attempts),
                    None => format!("nothing better in {} attempts", run.attempts),
                };
                writeln!(out, "{}  {} on {}: {came_to}{state}", run.id, run.target, run.device)?;
            }
        }
    }
    Ok(Status::Good)
}

#[derive(Serialize)]
struct Shown<'a> {
    schema: &'static str,
    folder: &'a Path,
    manifest: &'a stitch_agents::run::Manifest,
    history: &'a [stitch_agents::run::Entry],
    patch: Option<String>,
}

fn show(root: &Path, id: &str, format: Format, out: &mut impl Write) -> Result<Status> {
    let record = Record::read(root, id)?;
    let patch = record
        .best()?
        .map(|(_, text)| patch::unified(&record.reference, &text, &record.manifest.file_name()));
    match format {
        Format::Json => print_json(
            out,
            &Shown {
                schema: "stitchcuda.run/1",
                folder: &record.folder,
                manifest: &record.manifest,
                history: &record.history,
                patch,
            },
        )?,
        Format::Human => print_record(&record, patch.as_deref(), out)?,
    }
    Ok(Status::Good)
}

fn diff(root: &Path, id: &str, attempt: Option<u32>, out: &mut impl Write) -> Result<Status> {
    let record = Record::read(root, id)?;
    let text = match attempt {
        Some(number) => record.candidate(number).map_err(|error| match error {
            RunError::File { .. } => anyhow::anyhow!("the run {id} has no attempt {number}"),
            error => error.into(),
        })?,
        None => match record.best()? {
            Some((_, text)) => text,
            None => {
                anstream::eprintln!("note: No attempt of the run {id} was better than the code as it was.");
                return Ok(Status::Bad);
            }
        },
    };
    // From the folder in which the target was named, as `git apply` and `patch -p1` want it.
    let manifest = &record.manifest;
    let name = manifest.file.strip_prefix(&manifest.folder).unwrap_or(&manifest.file);
    let name = name.display().to_string();
    write!(out, "{}", patch::unified(&record.reference, &text, name.trim_start_matches('/')))?;
    Ok(Status::Good)
}

/// What a run is of, as it was named.
fn aimed(record: &Record, surrounding: &Surrounding) -> Result<Aimed> {
    let manifest = &record.manifest;
    let refused = |error: String| anyhow::anyhow!("{} can't be optimised: {error}", manifest.target);
    if is_python(&manifest.target) {
        let asked = Asked {
            init: manifest.init.clone(),
            inputs: manifest.inputs.clone(),
            ..Asked::of(&manifest.target).within(&manifest.folder)
        };
        let aim = aim_python(&asked, &record.reference, manifest.selection).map_err(refused)?;
        return Ok(Aimed::Python(Box::new(aim)));
    }
    let named = stitch_verifier::program::find(
        &manifest.target,
        &manifest.folder,
        &manifest.with,
        surrounding.settings(),
    )?;
    let aim =
        aim(&named, &record.reference, manifest.selection).map_err(|error| refused(error.to_string()))?;
    Ok(Aimed::Cuda(aim.target))
}

fn resume(
    root: &Path,
    id: &str,
    device: Option<&Device>,
    (spending, ending): (&Spending, &Ending),
    out: &mut impl Write,
) -> Result<Status> {
    let record = Record::read(root, id)?;
    let manifest = &record.manifest;
    let surrounding = Surrounding::read(Vec::new())?.about(std::iter::once(manifest.file.as_path()));
    let aimed = aimed(&record, &surrounding)?;
    let mut program = ProgramArguments::of_run(manifest)?;
    program.device = device.cloned().or(program.device);
    let mut spending = spending.clone();
    spending.engine = spending.engine.or(match manifest.engine.as_str() {
        "builtin" => Some(EngineChoice::Builtin),
        _ => Some(EngineChoice::Llm),
    });
    spending.model = spending.model.or_else(|| manifest.model.clone());
    let order = Order {
        surrounding,
        program,
        aimed,
        python: manifest.python.clone(),
        runs: root.to_owned(),
        begin: None,
        resume: Some(id.to_owned()),
        spending,
        plan_only: false,
        ending: ending.clone(),
    };
    go_on(order, out)
}
