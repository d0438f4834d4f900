//! `stitchcuda profile --import FILE`: what a profiler wrote, explained.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use stitch_findings::Severity;
use stitch_profiles::note::NoteKind;
use stitch_profiles::sniff::FileKind;
use stitch_session::jobs::{JobKind, Request as Job};
use stitch_toolchain::discovery;
use stitch_verifier::profile::import::{ImportError, import};
use stitch_verifier::profile::sources;

use super::Shown;
use crate::interrupt;
use crate::progress::{Spinner, Telling};
use crate::settings::Surrounding;
use crate::status::Status;

/// Reads and prints.
///
/// # Errors
/// Writing to `out`; a system that gives no threads.
pub(super) fn run(
    file: &Path,
    surrounding: &Surrounding,
    shown: &Shown,
    out: &mut impl Write,
) -> Result<Status> {
    let search = surrounding.search(&surrounding.config_for(None));
    let path = file.to_owned();
    let workspace = sources::of_folders(vec![surrounding.folder.clone()]);
    let imported = interrupt::until_done(1, |jobs, _| async move {
        let job = Job::new(JobKind::Profile, format!("Import {}", path.display()));
        let work = async move |telling: Telling| {
            let toolkit = discovery::find(&search).chosen;
            let tools = discovery::profilers(&search, toolkit.as_ref());
            telling.say("reading", None);
            Ok(import(&path, &tools, &workspace, telling.cancellation()).await)
        };
        Spinner::new().watch(&jobs, job, work).await
    })?;
    let (profile, kind) = match imported {
        Ok(Ok(imported)) => imported,
        Err(error) => return Ok(Status::of_job(&error)),
        Ok(Err(ImportError::Cancelled)) => return Ok(Status::Interrupted),
        Ok(Err(error)) => {
            anstream::eprintln!("error: {error}");
            return Ok(status_of(&error));
        }
    };
    let is_wrong = profile.defects.iter().any(|defect| defect.severity() != Severity::Hint);
    let from_sanitizer = matches!(kind, FileKind::SanitizerText | FileKind::SanitizerXml);
    let is_empty = !profile.has_kernels() && !from_sanitizer;
    let is_damaged = profile.notes.iter().any(|note| note.kind == NoteKind::Unreadable);
    let status = match (is_wrong || is_empty, from_sanitizer && is_damaged) {
        (true, _) => Status::Bad,
        // No error stands in what is left of it, which does not say that there was none.
        (false, true) => Status::Usage,
        (false, false) => Status::Good,
    };
    shown.print(&profile, None, status, surrounding, out)
}

fn status_of(error: &ImportError) -> Status {
    match error {
        // The file may be sound: what is missing is a tool that works here and is as new as what wrote it.
        ImportError::NoTool { .. } | ImportError::Tool(_) => Status::Missing,
        // The profiler ran and measured nothing.
        ImportError::Pages(stitch_profiles::ncu::NcuError::NoKernels(_)) => Status::Bad,
        ImportError::Pages(stitch_profiles::ncu::NcuError::NotPermitted) => Status::Missing,
        _ => Status::Usage,
    }
}
