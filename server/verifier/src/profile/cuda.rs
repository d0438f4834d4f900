//! Collects a profile of a CUDA program on a GPU, down the ladder until something works.

use std::collections::BTreeSet;
use std::path::Path;

use stitch_profiles::ncu as pages;
use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use stitch_profiles::system::System;
use stitch_session::cache::Cache;
use stitch_toolchain::discovery::{self, Search, Toolkit};
use tokio_util::sync::CancellationToken;

use super::ladder::{Here, Plan, Rung, plan};
use super::remember::Memory;
use super::{Refused, ncu, nsys};
use crate::program::{Built, End, Observer, Ran, RunError, Running, hold, run_observed};

/// Kernels that are looked at closely, at most: each costs a run of the program, in which it is replayed for every pass.
const MOST_KERNELS: usize = 5;
/// The share of the time of all kernels that those which are looked at closely have together, if so many are enough.
const ENOUGH: f64 = 0.95;
/// Launches in all up to which one run looks at all of them.
const FEW_LAUNCHES: u64 = 12;
/// A kernel's first launch loads it and finds caches cold, so where there are more, one after it is taken.
const SKIPPED: u64 = 1;

/// What is profiled, and with what.
pub struct Order<'a> {
    /// What a person named.
    pub target: &'a str,
    /// The program, built with `-lineinfo`.
    pub built: &'a Built,
    /// How it is run.
    pub running: &'a Running,
    /// What is known of this machine.
    pub here: &'a Here,
    /// The only way that a person wants, where they said so.
    pub only: Option<Rung>,
    /// Where what does not work here is written down.
    pub memory: &'a Memory,
}

/// What is known of this machine's profilers: those of the toolkit, on `PATH` and in the usual places, and what was found out about them before.
pub fn here(search: &Search, toolkit: &Toolkit, cache: Cache) -> (Here, Memory) {
    let profilers = discovery::profilers(search, Some(toolkit));
    let memory = Memory::of(cache, search, &profilers);
    let (counters, refused) = (discovery::counters(search), memory.refused());
    (Here { profilers, counters, refused }, memory)
}

/// Why nothing was collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The program does not run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It ran and failed, so that what it did is not what it is for.
    #[error("The program {how}, so there is nothing to profile.")]
    Fails {
        /// How: `ended with exit status 1`.
        how: String,
        /// What it said.
        said: String,
    },
    /// No profiler works.
    #[error(
        "No profiler works here. {} Without one, the simulator counts what lines move: `--device sim:h200`.",
        said(not_taken)
    )]
    NoWay {
        /// Why each does not.
        not_taken: Vec<NotTaken>,
    },
    /// The job was cancelled.
    #[error("The profile was cancelled.")]
    Cancelled,
}

/// Collects a profile on the GPU that the running names. `say` is told what is done.
///
/// # Errors
/// The program fails, no way works, or the job was cancelled.
pub async fn collect(
    order: &Order<'_>,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<Profile, CollectError> {
    let Plan { mut rungs, skipped } = plan(order.here);
    let mut not_taken: Vec<NotTaken> = skipped
        .into_iter()
        .map(|skipped| NotTaken { by: skipped.rung.to_string(), why: skipped.why })
        .collect();
    if let Some(only) = order.only {
        rungs.retain(|rung| *rung == only);
        not_taken.retain(|not| not.by == only.to_string());
    }
    let _lock = hold(&order.running.device, cancel).await?;
    for rung in rungs {
        match with_nsight(order, rung, say, cancel).await {
            Ok(mut profile) => {
                profile.way.not_taken = not_taken;
                return Ok(profile);
            }
            Err(Tried::Refused(Refused::Cancelled)) => return Err(CollectError::Cancelled),
            Err(Tried::Refused(Refused::Because { why, lasting })) => {
                if lasting {
                    order.memory.refuse(rung, &why);
                }
                not_taken.push(NotTaken { by: rung.to_string(), why });
            }
            Err(Tried::Collect(error)) => return Err(error),
        }
    }
    Err(CollectError::NoWay { not_taken })
}

/// A sentence for each way that was not taken.
fn said(not_taken: &[NotTaken]) -> String {
    not_taken.iter().map(|not| format!("{}: {}", not.by, not.why)).collect::<Vec<_>>().join(" ")
}

/// Why one way did not work.
enum Tried {
    /// Another may.
    Refused(Refused),
    /// None will.
    Collect(CollectError),
}

impl From<Refused> for Tried {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

async fn with_nsight(
    order: &Order<'_>,
    rung: Rung,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<Profile, Tried> {
    let mut profile = Profile::new(order.target, Way { by: rung.to_string(), ..Way::default() });
    profile.device = Some(order.running.device.to_string());
    if rung != Rung::Ncu {
        say("recording the program with Nsight Systems");
        let mut system = recorded(order, cancel).await?;
        profile.notes.append(&mut system.notes);
        profile.system = Some(system);
    }
    if rung != Rung::Nsys {
        let report = measured(order, profile.system.as_ref(), say, cancel).await?;
        profile.launches = report.launches;
        profile.notes.extend(report.notes);
        profile.notes.push(clocks());
    }
    Ok(profile)
}

fn clocks() -> Note {
    let text = "Nsight Compute left the clocks as they were, and replayed each launch for every pass: its durations are no times of the program.";
    Note::new(NoteKind::Remark, text)
}

/// The run of the program, by Nsight Systems.
async fn recorded(order: &Order<'_>, cancel: &CancellationToken) -> Result<System, Tried> {
    let tool = order.here.profilers.nsys.as_deref().ok_or_else(|| Refused::once("nsys was not found."))?;
    let report = order.built.folder().join("stitchcuda-nsys");
    run(order, &nsys::observer(tool, &report), cancel).await?;
    let sqlite = nsys::finish(tool, &report, cancel).await?;
    let read = move || stitch_profiles::nsys::read(&sqlite);
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(system)) => Ok(system),
        Ok(Err(error)) => Err(Refused::once(format!("{error}.")).into()),
        Err(error) => Err(Refused::once(format!("What nsys wrote could not be read: {error}.")).into()),
    }
}

/// Launches of the kernels that matter, by Nsight Compute.
async fn measured(
    order: &Order<'_>,
    system: Option<&System>,
    say: &(dyn Fn(&str) + Sync),
    cancel: &CancellationToken,
) -> Result<pages::Report, Tried> {
    let tool = order.here.profilers.ncu.as_deref().ok_or_else(|| Refused::once("ncu was not found."))?;
    let known = order.memory.metrics(tool, cancel).await?;
    let mut report = pages::Report::default();
    for pass in passes(system) {
        let what = if pass.kernels.is_empty() { "kernels".to_owned() } else { pass.kernels.join(", ") };
        say(&format!("measuring {what} with Nsight Compute"));
        let found = measure(order, tool, &pass, &known, cancel).await?;
        report.launches.extend(found.launches);
        let new: Vec<Note> = found.notes.into_iter().filter(|note| !report.notes.contains(note)).collect();
        report.notes.extend(new);
    }
    if report.launches.is_empty() {
        return Err(Refused::once("ncu measured no kernel.").into());
    }
    Ok(report)
}

/// One run under Nsight Compute.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pass {
    /// Names of kernels; of all where it is empty.
    kernels: Vec<String>,
    /// Launches of these that are passed over.
    skip: u64,
    /// Launches that are measured then.
    launches: u64,
}

/// Which kernels to look at: those that have most of the time, each in a run of its own where the program launches many.
fn passes(system: Option<&System>) -> Vec<Pass> {
    let Some(kernels) = system.and_then(|system| system.kernels.as_ref()) else {
        return vec![Pass { kernels: Vec::new(), skip: 0, launches: FEW_LAUNCHES }];
    };
    let launches: u64 = kernels.iter().map(|kernel| kernel.count).sum();
    if launches <= FEW_LAUNCHES {
        return vec![Pass { kernels: Vec::new(), skip: 0, launches }];
    }
    let mut covered = 0.0;
    let mut chosen: Vec<Pass> = Vec::new();
    for kernel in kernels.iter().filter(|kernel| !kernel.whole_graph) {
        if covered >= ENOUGH || chosen.len() == MOST_KERNELS {
            break;
        }
        covered += kernel.share;
        let name = pages::kernel_name(&kernel.name).base;
        // Instances of one template have one name for the filter.
        if !chosen.iter().any(|pass| pass.kernels[0] == name) {
            let skip = if kernel.count > SKIPPED { SKIPPED } else { 0 };
            chosen.push(Pass { kernels: vec![name], skip, launches: 1 });
        }
    }
    chosen
}

async fn measure(
    order: &Order<'_>,
    tool: &Path,
    pass: &Pass,
    known: &BTreeSet<String>,
    cancel: &CancellationToken,
) -> Result<pages::Report, Tried> {
    let mut report: Option<pages::Report> = None;
    for collection in ncu::collections(known) {
        let Pass { kernels, skip, launches } = pass.clone();
        let request = ncu::Request { kernels, skip, launches, collection };
        let path = order.built.folder().join("stitchcuda-ncu");
        let log = order.built.folder().join("stitchcuda-ncu.log");
        let _ = std::fs::remove_file(path.with_extension("ncu-rep"));
        let ran = run(order, &ncu::observer(tool, &request, &path, &log), cancel).await;
        // ncu ends the program when it has seen enough, and what it says of itself goes before what became of the program.
        let left = match (ncu::left(&path, &log), ran) {
            (Ok(left), _) => left,
            (Err(Refused::Because { lasting: false, .. }), Err(tried)) => return Err(tried),
            (Err(refused), _) => return Err(refused.into()),
        };
        let found = ncu::read(tool, &left, cancel).await?;
        match &mut report {
            Some(report) => report.merge(found),
            None => report = Some(found),
        }
    }
    Ok(report.unwrap_or_default())
}

/// Runs the program under an observer, and sees that it did what it does.
async fn run(order: &Order<'_>, observer: &Observer, cancel: &CancellationToken) -> Result<Ran, Tried> {
    let ran = match run_observed(order.built, order.running, observer, cancel).await {
        Ok(ran) => ran,
        Err(RunError::Cancelled) => return Err(Refused::Cancelled.into()),
        Err(error) => return Err(Refused::once(error.to_string()).into()),
    };
    match &ran.end {
        End::Status(0) => Ok(ran),
        end => {
            let how = crate::verify::ended(end);
            Err(Tried::Collect(CollectError::Fails { how, said: format!("{}{}", ran.stdout, ran.stderr) }))
        }
    }
}
