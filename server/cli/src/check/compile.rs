//! The compiles of a `check`: one job a file, as many at once as there are processors to spare, with a bar on a terminal.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use stitch_session::jobs::{JobError, JobHandle, JobKind, Jobs, Limit, Request};
use stitch_session::CancellationToken;
use stitch_toolchain::discovery::{self, Discovery};
use stitch_verifier::compile::{CompileReport, CompileRequest, Trouble, compile};

use super::canonical;
use super::files::Source;
use crate::settings::{Surrounding, describe};

/// What came of all compiles.
#[derive(Default)]
pub struct Compiled {
    /// What the compilers said, in the order of the files.
    pub reports: Vec<CompileReport>,
    /// What was not compiled and why, and which compiler was used.
    pub notes: Vec<String>,
    /// A compiler was asked for by name and can't be used.
    pub missing: bool,
    /// The user pressed Ctrl-C.
    pub interrupted: bool,
}

/// Compiles each file with the toolkit that its configuration leads to. Without a toolkit it says so in a note, and that
/// is all, unless a compiler was `demanded`.
///
/// # Errors
/// The system gives no threads.
pub fn all(surrounding: &Surrounding, sources: &[Source], demanded: bool) -> Result<Compiled> {
    let runtime = tokio::runtime::Runtime::new().context("no threads to compile with")?;
    runtime.block_on(async {
        let session = CancellationToken::new();
        let jobs = Jobs::new(runtime.handle().clone(), session.clone(), Jobs::processors());
        let interrupt = session.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupt.cancel();
            }
        });
        let mut compiled = Compiled::default();
        let started = start(surrounding, sources, &jobs, &mut compiled, demanded);
        wait(started, &mut compiled).await;
        compiled.interrupted = session.is_cancelled();
        jobs.shutdown().await;
        Ok(compiled)
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
        let path = canonical(&source.path);
        let config = surrounding.config_for(Some(&path));
        let found = searched
            .entry(config.nvcc.path.clone())
            .or_insert_with(|| discovery::find(&surrounding.search(&config)));
        let Some(toolkit) = found.chosen.clone() else {
            compiled.missing |= demanded || config.nvcc.path.is_some();
            note(compiled, format!("Not compiled, so only the static rules were checked. {}", found.advice()));
            continue;
        };
        note(compiled, format!("Compiled with {}.", describe(&toolkit)));
        let request = CompileRequest::new(path, source.text.as_str(), source.language, toolkit);
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
            Ok(Ok(mut report)) => {
                for said in std::mem::take(&mut report.notes) {
                    note(compiled, format!("{name}: {said}"));
                }
                compiled.reports.push(report);
            }
            Ok(Err(Trouble::Cancelled)) | Err(JobError::Cancelled) => {}
            Ok(Err(trouble)) => note(compiled, format!("{name}: {trouble}.")),
            Err(JobError::Failed(message)) => note(compiled, format!("{name}: {message}")),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
}

/// Drawn on standard error, and only if that is a terminal.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn note(compiled: &mut Compiled, text: String) {
    if !compiled.notes.contains(&text) {
        compiled.notes.push(text);
    }
}
