//! `stitchcuda profile --import FILE`: what a profiler wrote, explained.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use stitch_findings::Severity;
use stitch_profiles::sniff::FileKind;
use stitch_session::jobs::{JobError, JobKind, Request as Job};
use stitch_toolchain::discovery;
use stitch_verifier::profile::import::{ImportError, import};

use super::{Shown, workspace};
use crate::interrupt;
use crate::progress::Spinner;
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
    let workspace = workspace(&surrounding.folder);
    let imported = interrupt::until_done(1, |jobs, _| async move {
        let spinner = Spinner::new();
        let saying = spinner.clone();
        let job = Job::new(JobKind::Profile, format!("Import {}", path.display()));
        let handle = jobs.start(job, move |context| async move {
            let toolkit = discovery::find(&search).chosen;
            let tools = discovery::profilers(&search, toolkit.as_ref());
            saying.say("reading");
            Ok::<_, JobError>(import(&path, &tools, &workspace, context.cancellation()).await)
        });
        let result = handle.wait().await;
        spinner.clear();
        result
    })?;
    let (profile, kind) = match imported {
        Ok(Ok(imported)) => imported,
        Ok(Err(ImportError::Cancelled)) | Err(JobError::Cancelled) => return Ok(Status::Interrupted),
        Ok(Err(error)) => {
            anstream::eprintln!("error: {error}");
            return Ok(status_of(&error));
        }
        Err(JobError::Failed(message)) => {
            anstream::eprintln!("error: {message}");
            return Ok(Status::Bad);
        }
    };
    let is_wrong = profile.defects.iter().any(|defect| defect.severity() != Severity::Hint);
    let from_sanitizer = matches!(kind, FileKind::SanitizerText | FileKind::SanitizerXml);
    let is_empty = !profile.has_kernels() && !from_sanitizer;
    let status = if is_wrong || is_empty { Status::Bad } else { Status::Good };
    shown.print(&profile, None, status, out)
}

fn status_of(error: &ImportError) -> Status {
    match error {
        ImportError::NoTool { .. } => Status::Missing,
        // The profiler ran and measured nothing.
        ImportError::Pages(stitch_profiles::ncu::NcuError::NoKernels(_)) => Status::Bad,
        ImportError::Pages(stitch_profiles::ncu::NcuError::NotPermitted) => Status::Missing,
        _ => Status::Usage,
    }
}
