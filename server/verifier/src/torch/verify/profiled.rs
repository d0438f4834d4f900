//! Has torch's profiler look at a subject: how long its kernels take, and which lines and modules they belong to.
//!
//! The profiler runs in the process of the code, so what it says explains that code, and is no evidence for it.

use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use stitch_profiles::python::{self, Workspace};
use stitch_profiles::read_error::ReadError;
use stitch_profiles::trace;
use stitch_session::CancellationToken;

use super::gpu::Gpu;
use super::pair::Side;
use super::secrets::Secrets;
use crate::profile::ladder::Rung;
use crate::torch::host::{Place, Profiling, Role};
use crate::torch::request::{Progress, Request, TorchError};

/// Calls in each trace: enough for a median, few enough for a trace that is read at once.
const CALLS: u32 = 5;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The code does not run.
    #[error(transparent)]
    Torch(#[from] TorchError),
    /// What the profiler wrote can't be read.
    #[error("{0}.")]
    Read(#[from] ReadError),
}

/// Profiles the reference of a request, which a person named `target`, on the first of its cases. Lines are told of files of the workspace.
///
/// # Errors
/// It does not run, or the profiler does not.
pub async fn profile(
    target: &str,
    request: &Request,
    workspace: &Workspace,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Profile, ProfileError> {
    let failed = |during: &'static str| move |error| TorchError::of_reference(during, error);
    progress("starting Python", None);
    let gpu = Gpu::of(request, cancel);
    let mut side = Side::start(request, Role::Reference, cancel).await?;
    let _place = gpu.place().await?;
    let mut child = side.child().await?;
    let mut secrets = Secrets::new();
    progress("loading", None);
    let load = side.load(request, &request.reference, None, secrets.draw());
    child.load(&load).await.map_err(failed(" to load"))?;
    let inputs = child.draw(secrets.draw(), 0).await.map_err(failed(" to draw its inputs"))?;
    let profiling = Profiling {
        calls: CALLS,
        path: side.scratch().join("calls.json"),
        lines_path: side.scratch().join("lines.json"),
        folders: workspace.folders.clone(),
    };
    // Nobody else's kernels may run among those that are recorded.
    let alone = gpu.alone().await?;
    progress("profiling", None);
    child.profile(&inputs, &profiling).await.map_err(failed(" under the profiler"))?;
    drop((child, alone));
    progress("reading the traces", None);
    let workspace = workspace.clone();
    let read = move || {
        let system = trace::read(&profiling.path)?;
        let (_, lines) = python::read(&profiling.lines_path, &workspace)?;
        Ok::<_, ReadError>((system, lines))
    };
    let read = tokio::task::spawn_blocking(read).await.map_err(|error| TorchError::System {
        what: "the traces were not read".to_owned(),
        source: std::io::Error::other(error),
    })?;
    side.end().await;
    let (mut system, mut python) = read?;
    let mut profile = Profile::new(target, way(request.place));
    profile.device = Some(request.device.clone());
    profile.notes.append(&mut python.notes);
    if request.place == Place::Cpu {
        // What of a GPU was not recorded is not missing.
        profile.notes.push(Note::new(NoteKind::Remark, ON_CPU));
        return Ok(Profile { python: Some(python), ..profile });
    }
    profile.notes.append(&mut system.notes);
    Ok(Profile { system: Some(system), python: Some(python), ..profile })
}

/// What is said of times on the CPU.
const ON_CPU: &str =
    "It ran on the CPU, so these are times of operators there; which of them a GPU would be slow at is not known.";

/// How Python is profiled, and why not by Nsight.
fn way(place: Place) -> Way {
    let by = match place {
        Place::Cpu => "torch.profiler on the CPU".to_owned(),
        Place::Cuda(_) => Rung::TorchProfiler.to_string(),
    };
    let why = match place {
        Place::Cpu => "There is no GPU to look at: the code ran on the CPU.",
        Place::Cuda(_) => {
            "They would look at the whole interpreter, its imports and its warm-up included, and know no line of Python; torch.profiler gets the times of \
             kernels, copies and calls from the same source, CUPTI. For a kernel's counters, run `ncu --set full` around your own script and import what it wrote."
        }
    };
    Way { by, not_taken: vec![NotTaken { by: Rung::NcuAndNsys.to_string(), why: why.to_owned() }], ..Way::default() }
}
