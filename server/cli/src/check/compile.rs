//! The compiles of a `check`: one job a file, as many at once as there are processors to spare, with a bar on a terminal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use stitch_session::config::workspace_of;
use stitch_session::jobs::{JobError, JobHandle, JobKind, Jobs, Limit, Request};
use stitch_toolchain::discovery::{self, Discovery};
use stitch_verifier::compile::{
    CompileReport, CompileRequest, Lack, NotCompiled, Trouble, compile, has_something_to_compile,
};

use super::files::Source;
use crate::interrupt;
use crate::settings::{Surrounding, describe};

/// What came of all compiles.
#[derive(Default)]
pub struct Compiled {
    /// What the compilers said, in the order of the files.
    pub reports: Vec<CompileReport>,
    /// What was not compiled, by the file's one path.
    pub left_out: Vec<(PathBuf, NotCompiled)>,
    /// Which compiler was used, and what else a person should know.
    pub notes: Vec<String>,
    /// Whether the user pressed Ctrl-C.
    pub interrupted: bool,
}

/// Compiles each file with the toolkit that its configuration leads to.
///
/// # Errors
/// The system gives no threads.
pub fn all(surrounding: &Surrounding, sources: &[Source]) -> Result<Compiled> {
    interrupt::until_done(Jobs::processors(), |jobs, session| async move {
        let mut compiled = Compiled::default();
        let started = start(surrounding, sources, &jobs, &mut compiled);
        wait(started, &mut compiled).await;
        compiled.interrupted = session.is_cancelled();
        compiled
    })
}

/// A compile that was started.
struct Started {
    /// The file as a person named it, and its one path.
    name: String,
    path: PathBuf,
    /// The toolkit, as a person would name it.
    toolkit: String,
    handle: JobHandle<Result<CompileReport, Trouble>>,
}

fn start(
    surrounding: &Surrounding,
    sources: &[Source],
    jobs: &Jobs,
    compiled: &mut Compiled,
) -> Vec<Started> {
    let mut started = Vec::new();
    let mut searched: HashMap<(Option<PathBuf>, PathBuf), Discovery> = HashMap::new();
    for source in sources {
        let path = source.canonical.clone();
        let config = surrounding.config_for(Some(&path));
        let workspace = workspace_of(&path).unwrap_or_else(|| surrounding.folder.clone());
        let found = searched
            .entry((config.nvcc.path.clone(), workspace.clone()))
            .or_insert_with(|| discovery::find(&surrounding.search_for(&config, workspace.clone())));
        let Some(toolkit) = found.chosen.clone() else {
            if has_something_to_compile(source.language, &source.text) {
                let reason = found.advice().trim_end_matches('.').to_owned();
                compiled.left_out.push((path, NotCompiled { reason, lack: Lack::Tool }));
            }
            continue;
        };
        let described = describe(&toolkit);
        let request = CompileRequest::new(path.clone(), source.text.as_str(), source.language, toolkit);
        let name = source.path.display().to_string();
        let job = Request::new(JobKind::Compile, format!("Compile {name}")).limit(Limit::Processor);
        let handle = jobs.start(job, move |context| async move {
            let request = request.configured(&config, Some(workspace)).await;
            Ok::<_, JobError>(compile(&request, context.cancellation()).await)
        });
        started.push(Started { name, path, toolkit: described, handle });
    }
    started
}

async fn wait(started: Vec<Started>, compiled: &mut Compiled) {
    let bar = ProgressBar::new(started.len() as u64).with_style(style());
    bar.enable_steady_tick(Duration::from_millis(100));
    for Started { name, path, toolkit, handle } in started {
        bar.set_message(name.clone());
        match handle.wait().await {
            Ok(Ok(report)) => compiled.take(&name, &path, &toolkit, report),
            Ok(Err(Trouble::Cancelled)) | Err(JobError::Cancelled) => {}
            Ok(Err(trouble)) => compiled.left_out.push((path, trouble.into())),
            Err(JobError::Failed(reason)) => {
                compiled.left_out.push((path, NotCompiled { reason, lack: Lack::Tool }));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
}

impl Compiled {
    fn take(&mut self, name: &str, path: &Path, toolkit: &str, mut report: CompileReport) {
        let lacks = report.not_compiled.iter().any(|not| not.lack != Lack::Nothing);
        let came_to_nothing = lacks && report.kernels.is_empty();
        if !(report.command.is_empty() || came_to_nothing) {
            self.note(format!("Compiled with {toolkit}."));
        }
        for said in std::mem::take(&mut report.notes) {
            self.note(format!("{name}: {said}"));
        }
        let left_out = std::mem::take(&mut report.not_compiled);
        self.left_out.extend(left_out.into_iter().map(|not| (path.to_owned(), not)));
        self.reports.push(report);
    }

    /// Each note once: what holds for one file of a toolkit or a project holds for most.
    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// Drawn on standard error, and only if that is a terminal.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
