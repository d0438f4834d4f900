//! Has torch's profiler look at a subject: how long its kernels take, and which lines and modules they belong to.
//!
//! The profiler runs in the process of the code, so what it says explains that code, and is no evidence for it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use stitch_profiles::python::{self, PythonTime, Workspace};
use stitch_profiles::read_error::ReadError;
use stitch_profiles::system::System;
use stitch_profiles::trace;
use stitch_session::CancellationToken;
use stitch_session::cache::Key;

use super::gpu::Gpu;
use super::pair::Side;
use super::secrets::Secrets;
use super::unprofiled::Lower;
use crate::compile::cached::{fingerprint, fingerprint_of_program};
use crate::profile::ladder::Rung;
use crate::profile::{peaks, take};
use crate::torch::host::{ChildError, Place, Profiling, Role};
use crate::torch::request::{Progress, Request, TorchError};

/// Calls in each trace: enough for a median, few enough for a trace that is read at once.
const CALLS: u32 = 5;

/// Profiles the reference of a request, which a person named `target`, on the first of its cases, or gives the profile that was kept unless it is to be
/// `fresh`. Lines are told of files of the workspace.
///
/// # Errors
/// It does not run.
pub async fn profile(
    target: &str,
    request: &Request,
    workspace: &Workspace,
    fresh: bool,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Profile, TorchError> {
    if !fresh && let Some((profile, _)) = kept(target, request, workspace).await {
        return Ok(profile);
    }
    let began = Instant::now();
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
        files_path: side.scratch().join("files.json"),
        folders: workspace.folders.clone(),
    };
    // Nobody else's kernels may run among those that are recorded.
    let alone = gpu.alone().await?;
    progress("profiling", None);
    let profiled = child.profile(&inputs, &profiling).await;
    drop((child, alone));
    let recorded = match profiled {
        Ok(()) => {
            progress("reading the traces", None);
            recorded(&profiling, workspace, request.place).await
        }
        Err(ChildError::Cancelled) => return Err(TorchError::Cancelled),
        Err(error) => Err(format!("It failed: {error}")),
    };
    let read = match recorded {
        Ok(read) => read,
        Err(why) => {
            let lower = Lower { target, request, gpu: &gpu, progress };
            let taken = lower.take(&mut side, &mut secrets, &why).await;
            side.end().await;
            return taken;
        }
    };
    side.end().await;
    let Recorded { mut system, mut python, files } = read;
    let mut profile = Profile::new(target, way(request.place));
    profile.device = Some(request.device.clone());
    profile.notes.append(&mut python.notes);
    if let Place::Cuda(index) = request.place {
        profile.notes.append(&mut system.notes);
        python::classify(&mut python, Some(&system), peaks::here(index).await);
        profile.system = Some(system);
    } else {
        // What of a GPU was not recorded is not missing.
        profile.notes.push(Note::new(NoteKind::Remark, ON_CPU));
    }
    profile.python = Some(python);
    profile.way.measured = take::now();
    keep(request, &profile, began.elapsed(), &files).await;
    Ok(profile)
}

/// What the traces hold.
struct Recorded {
    system: System,
    python: PythonTime,
    /// The files of the workspace that were imported, as JSON.
    files: Vec<u8>,
}

/// Reads the traces. `Err` with the reason why they say nothing, in a sentence: they can't be read, or CUPTI told of no kernel.
async fn recorded(profiling: &Profiling, workspace: &Workspace, place: Place) -> Result<Recorded, String> {
    let (profiling, workspace) = (profiling.clone(), workspace.clone());
    let read = move || {
        let system = trace::read(&profiling.path)?;
        let (_, python) = python::read(&profiling.lines_path, &workspace)?;
        let files = std::fs::read(&profiling.files_path).unwrap_or_default();
        Ok::<_, ReadError>(Recorded { system, python, files })
    };
    let read = tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| format!("Its traces were not read: {error}."))?;
    let read = read.map_err(|error| format!("{error}."))?;
    let is_empty = |recorded: &Recorded| {
        recorded.system.kernels.as_ref().is_none_or(Vec::is_empty) && recorded.python.kernel_ns == 0
    };
    if matches!(place, Place::Cuda(_)) && is_empty(&read) {
        return Err(NO_KERNELS.to_owned());
    }
    Ok(read)
}

/// What is kept on disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    profile: Profile,
    took: Duration,
    /// Files of the workspace that were imported, and what tells one version of each from another.
    files: Vec<(PathBuf, u64)>,
}

/// The profile that was kept, if it still holds, and how long it took: the file, what is called with what, the interpreter and its torch, the device, this
/// program, and what was imported of the workspace are what they were. What the code reads besides is not known. Nothing is run.
pub async fn kept(target: &str, request: &Request, workspace: &Workspace) -> Option<(Profile, Duration)> {
    let (cache, request, target) = (request.cache.clone(), request.clone(), target.to_owned());
    let folders = workspace.folders.clone();
    let find = move || {
        let mut kept: Kept = serde_json::from_slice(&cache.get(&key(&request)?)?).ok()?;
        let holds = |(path, print): &(PathBuf, u64)| {
            folders.iter().any(|folder| path.starts_with(folder)) && fingerprint(path) == Some(*print)
        };
        if !kept.files.iter().all(holds) {
            return None;
        }
        kept.profile.way.kept = true;
        kept.profile.target = target;
        Some((kept.profile, kept.took))
    };
    tokio::task::spawn_blocking(find).await.ok()?
}

/// Keeps a profile. What is not kept is only measured again.
async fn keep(request: &Request, profile: &Profile, took: Duration, files: &[u8]) {
    let Ok(files) = serde_json::from_slice::<Vec<PathBuf>>(files) else { return };
    let (cache, request, profile) = (request.cache.clone(), request.clone(), profile.clone());
    let put = move || {
        let key = key(&request)?;
        let beside = beside(&request.reference.path);
        let files: Option<Vec<(PathBuf, u64)>> =
            files.into_iter().chain(beside).map(|path| Some((path.clone(), fingerprint(&path)?))).collect();
        let bytes = serde_json::to_vec(&Kept { profile, took, files: files? }).ok()?;
        cache.put(&key, &bytes).then_some(())
    };
    let _ = tokio::task::spawn_blocking(put).await;
}

/// The key of a profile of the request's reference.
fn key(request: &Request) -> Option<Key> {
    let Request { reference, python, .. } = request;
    let own = std::env::current_exe().ok()?;
    let name = request.stands_for.as_ref().unwrap_or(&reference.path).file_name()?.as_encoded_bytes();
    let parts = [
        name.to_vec(),
        std::fs::read(&reference.path).ok()?,
        serde_json::to_vec(&(&reference.callable, &reference.cases)).ok()?,
        fingerprint_of_program(&own)?.into_bytes(),
        format!("{} {} {} {:?}", python.path.display(), python.version, python.torch, python.cuda)
            .into_bytes(),
        format!("{} {:?} {:?}", request.device, request.place, request.driver).into_bytes(),
    ];
    Some(Key::of("profile of PyTorch", parts.iter().map(Vec::as_slice)))
}

/// Sources of extensions that a file names in quotes, beside it.
fn beside(path: &Path) -> Vec<PathBuf> {
    const ENDINGS: [&str; 5] = [".cu", ".cuh", ".cpp", ".h", ".hpp"];
    let (Ok(text), Some(folder)) = (std::fs::read_to_string(path), path.parent()) else { return Vec::new() };
    let quoted = text.split(['"', '\'']).filter(|part| ENDINGS.iter().any(|ending| part.ends_with(ending)));
    quoted.map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
}

/// What is said of times on the CPU.
const ON_CPU: &str = "It ran on the CPU, so these are times of operators there; which of them a GPU would be slow at is not known.";

/// What is said where torch.profiler recorded calls and no kernel.
const NO_KERNELS: &str = "It recorded no kernel: PyTorch was built without CUPTI, another profiler has it, the driver refuses it (`NVreg_RestrictProfilingToAdminUsers`), or the code launches none.";

/// How Python is profiled, and why not by Nsight.
pub(super) fn way(place: Place) -> Way {
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
    Way {
        by,
        not_taken: vec![NotTaken { by: Rung::NcuAndNsys.to_string(), why: why.to_owned() }],
        ..Way::default()
    }
}
