//! The compiles of a `check`: one job a file, as many at once as there are processors to spare, with a bar on a terminal.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use stitch_session::jobs::{JobError, JobHandle, JobKind, Jobs, Limit, Request};
use stitch_toolchain::discovery::{self, Discovery};
use stitch_verifier::compile::{CompileReport, CompileRequest, Trouble, compile};

use super::files::Source;
use crate::interrupt;
use crate::settings::{Surrounding, describe};
use crate::status::Status;

/// What came of all compiles.
#[derive(Default)]
pub struct Compiled {
    /// What the compilers said, in the order of the files.
    pub reports: Vec<CompileReport>,
    /// What was not compiled and why, and which compiler was used.
    pub notes: Vec<String>,
    /// Why what was asked for can't be done, if that is so: the compiler that was named is missing, the configured
    /// flags are wrong, or the user pressed Ctrl-C.
    pub problem: Option<Status>,
}

/// Compiles each file with the toolkit that its configuration leads to. Without a toolkit it says so in a note, and that
/// is all, unless a compiler was `demanded`.
///
/// # Errors
/// The system gives no threads.
pub fn all(surrounding: &Surrounding, sources: &[Source], demanded: bool) -> Result<Compiled> {
    interrupt::until_done(Jobs::processors(), |jobs, session| async move {
        let mut compiled = Compiled::default();
        let started = start(surrounding, sources, &jobs, &mut compiled, demanded);
        wait(started, &mut compiled).await;
        if session.is_cancelled() {
            compiled.problem = Some(Status::Interrupted);
        }
        compiled
    })
}

type Started = (String, JobHandle<Result<CompileReport, Trouble>>);

fn start(
    surrounding: &Surrounding,
    sources: &[Source],
    jobs: &Jobs,
    compiled: &mut Compiled,
    demanded: bool,
) -> Vec<Started> {
    let mut started = Vec::new();
    let mut searched: HashMap<Option<PathBuf>, Discovery> = HashMap::new();
    for source in sources {
        let config = surrounding.config_for(Some(&source.canonical));
        let found = searched
            .entry(config.nvcc.path.clone())
            .or_insert_with(|| discovery::find(&surrounding.search(&config)));
        let Some(toolkit) = found.chosen.clone() else {
            if demanded || config.nvcc.path.is_some() {
                compiled.problem = Some(Status::Missing);
            }
            compiled.note(format!("Not compiled, so only the static rules were checked. {}", found.advice()));
            continue;
        };
        compiled.note(format!("Compiled with {}.", describe(&toolkit)));
        let request =
            CompileRequest::new(source.canonical.clone(), source.text.as_str(), source.language, toolkit);
        let workspace = Some(surrounding.folder.clone());
        let name = source.path.display().to_string();
        let job = Request::new(JobKind::Compile, format!("Compile {name}")).limit(Limit::Processor);
        let handle = jobs.start(job, move |context| async move {
            let request = request.configured(&config, workspace).await;
            Ok::<_, JobError>(compile(&request, context.cancellation()).await)
        });
        started.push((name, handle));
    }
    started
}

async fn wait(started: Vec<Started>, compiled: &mut Compiled) {
    let bar = ProgressBar::new(started.len() as u64).with_style(style());
    bar.enable_steady_tick(Duration::from_millis(100));
    for (name, handle) in started {
        bar.set_message(name.clone());
        match handle.wait().await {
            Ok(result) => compiled.take(&name, result),
            Err(JobError::Cancelled) => {}
            Err(JobError::Failed(message)) => compiled.note(format!("{name}: {message}")),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
}

impl Compiled {
    fn take(&mut self, name: &str, result: Result<CompileReport, Trouble>) {
        match result {
            Ok(mut report) => {
                for said in std::mem::take(&mut report.notes) {
                    self.note(format!("{name}: {said}"));
                }
                self.reports.push(report);
            }
            Err(Trouble::Cancelled) => {}
            Err(trouble) => {
                // These are in the words of the person who asked; everything else is the machine's.
                if matches!(trouble, Trouble::Architecture { .. } | Trouble::Options { .. }) {
                    self.problem = self.problem.or(Some(Status::Usage));
                }
                self.note(format!("{name}: {trouble}."));
            }
        }
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
