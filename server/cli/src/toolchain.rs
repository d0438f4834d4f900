//! `stitchcuda toolchain`: which CUDA toolkit is used, and private ones installed and removed.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use stitch_session::jobs::{JobError, JobKind, Request};
use stitch_toolchain::discovery::{self, Discovery};
use stitch_toolchain::install::{InstallError, Installed, Installer, Kind, Part, Progress, Release, Stage};

use crate::format::{Format, print_json};
use crate::interrupt;
use crate::settings::{Surrounding, describe};
use crate::status::Status;

/// Arguments of `toolchain`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// How to print
    #[arg(long, value_enum, default_value_t, global = true)]
    format: Format,
}

impl Arguments {
    /// Installs the newest release.
    pub fn install_latest(format: Format) -> Self {
        Self { command: Some(Command::Install { release: "latest".to_owned(), with: Vec::new() }), format }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Install a private CUDA toolkit from your Python package index into the user's cache folder
    Install {
        /// The CUDA release: 13.5, or 13 for its newest, or latest
        #[arg(default_value = "latest")]
        release: String,
        /// Libraries whose headers programs include, such as cublas,cufft; they are added to a toolkit that is there. Of their wheels
        /// only what a compile needs is kept
        #[arg(long, value_name = "LIBRARIES", value_delimiter = ',')]
        with: Vec<String>,
    },
    /// Remove a private toolkit
    Remove {
        /// The CUDA release: 13.5; or 13 or latest, where that can mean only one
        release: String,
    },
}

/// Shows, installs or removes.
///
/// # Errors
/// Writing to `out`; the system gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let surrounding = Surrounding::read(Vec::new())?;
    let search = surrounding.search(&surrounding.config_for(None));
    let installer = Installer::new(&search);
    match &arguments.command {
        None => show(&discovery::find(&search), &installer.list(), arguments.format, out),
        Some(Command::Install { release, with }) => {
            let parts: Result<Vec<Part>, _> = with.iter().map(|name| name.parse()).collect();
            match parts {
                Ok(parts) => install(installer.with(parts), release, arguments.format, out),
                Err(error) => Ok(failed(&error)),
            }
        }
        Some(Command::Remove { release }) => remove(&installer, release, arguments.format, out),
    }
}

fn show(found: &Discovery, installed: &[Installed], format: Format, out: &mut impl Write) -> Result<Status> {
    match format {
        Format::Json => {
            let private: Vec<_> = installed.iter().map(describe_installed).collect();
            let value = json!({
                "schema": "stitchcuda.toolchain/1",
                "chosen": found.chosen,
                "seen": found.seen,
                "problems": found.problems,
                "notes": found.notes,
                "installed": private,
            });
            print_json(out, &value)?;
        }
        Format::Human => {
            match &found.chosen {
                Some(toolkit) => {
                    writeln!(out, "Used: {}", describe(toolkit))?;
                    writeln!(out, "      headers {}", toolkit.include.display())?;
                }
                None => writeln!(out, "{}", found.advice())?,
            }
            for toolkit in &found.seen {
                writeln!(out, "Seen, not used: {}", describe(toolkit))?;
            }
            for line in found.problems.iter().filter(|_| found.chosen.is_some()).chain(&found.notes) {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(if found.chosen.is_some() { Status::Good } else { Status::Missing })
}

fn describe_installed(installed: &Installed) -> serde_json::Value {
    json!({ "folder": installed.folder, "manifest": installed.manifest })
}

/// Installs as a job, so that Ctrl-C ends it where it is; the next try goes on from there.
fn install(installer: Installer, release: &str, format: Format, out: &mut impl Write) -> Result<Status> {
    let release: Release = match release.parse() {
        Ok(release) => release,
        Err(error) => return Ok(failed(&error)),
    };
    let said_when_cancelled = installer.clone();
    let result = interrupt::until_done(1, |jobs, _| {
        let request = Request::new(JobKind::Install, format!("Install CUDA {release}"));
        let handle = jobs.start(request, move |context| async move {
            let bar = Bar::default();
            let installed =
                installer.install(&release, &|progress| bar.show(&progress), context.cancellation()).await;
            bar.clear();
            Ok::<_, JobError>(installed)
        });
        handle.wait()
    })?;
    match result {
        Ok(Ok(installed)) => {
            match format {
                Format::Json => {
                    let mut value = describe_installed(&installed);
                    value["schema"] = json!("stitchcuda.toolchain-install/1");
                    print_json(out, &value)?;
                }
                Format::Human => {
                    let version = installed.manifest.version;
                    writeln!(out, "CUDA {version} is in {}.", installed.folder.display())?;
                }
            }
            Ok(Status::Good)
        }
        Ok(Err(error)) => Ok(failed(&error)),
        Err(JobError::Cancelled) => Ok(failed(&said_when_cancelled.cancelled())),
        Err(JobError::Failed(message)) => {
            anstream::eprintln!("error: {message}");
            Ok(Status::Bad)
        }
    }
}

fn remove(installer: &Installer, release: &str, format: Format, out: &mut impl Write) -> Result<Status> {
    let version = match release.parse::<Release>().and_then(|release| installer.installed_as(&release)) {
        Ok(version) => version,
        Err(error) => return Ok(failed(&error)),
    };
    let runtime = tokio::runtime::Runtime::new().context("no threads to remove with")?;
    match runtime.block_on(installer.remove(version)) {
        Ok(removed) => {
            match format {
                Format::Json => {
                    print_json(
                        out,
                        &json!({ "schema": "stitchcuda.toolchain-remove/1", "removed": removed }),
                    )?;
                }
                Format::Human => writeln!(out, "CUDA {version} was removed.")?,
            }
            Ok(Status::Good)
        }
        Err(error) => Ok(failed(&error)),
    }
}

fn failed(error: &InstallError) -> Status {
    anstream::eprintln!("error: {error}");
    match error.kind() {
        Kind::Usage => Status::Usage,
        Kind::Missing => Status::Missing,
        Kind::Failed => Status::Bad,
        Kind::Cancelled => Status::Interrupted,
    }
}

/// A bar on standard error, if that is a terminal; else a line a stage.
#[derive(Default)]
struct Bar {
    shown: Arc<Mutex<Option<(Stage, ProgressBar)>>>,
}

impl Bar {
    fn show(&self, progress: &Progress) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_none_or(|(stage, _)| *stage != progress.stage) {
            if let Some((_, bar)) = shown.take() {
                bar.finish_and_clear();
            }
            let bar = ProgressBar::new(0).with_style(style(progress.stage));
            bar.enable_steady_tick(Duration::from_millis(100));
            if bar.is_hidden() && progress.stage != Stage::Done {
                anstream::eprintln!("{}…", words(progress.stage));
            }
            *shown = Some((progress.stage, bar));
        }
        if let Some((_, bar)) = shown.as_ref() {
            bar.set_length(progress.total.unwrap_or(0));
            bar.set_position(progress.done);
            let fetched = match progress.stage {
                Stage::Resolving if progress.done > 0 => {
                    format!(
                        " (pip fetched {} MB to answer; 25.3 and newer need less)",
                        progress.done / 1_000_000
                    )
                }
                _ => String::new(),
            };
            bar.set_message(format!("{}{fetched}", progress.item));
        }
    }

    fn clear(&self) {
        if let Some((_, bar)) = self.shown.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}

fn style(stage: Stage) -> ProgressStyle {
    let template = match stage {
        Stage::Downloading | Stage::Unpacking => {
            format!("{} {{bar:30}} {{bytes}}/{{total_bytes}} {{bytes_per_sec}} {{wide_msg}}", words(stage))
        }
        _ => format!("{{spinner}} {} {{wide_msg}}", words(stage)),
    };
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::Waiting => "Waiting for another installation",
        Stage::Resolving => "Asking pip for the wheels",
        Stage::Downloading => "Downloading",
        Stage::Unpacking => "Unpacking",
        Stage::Checking => "Trying it",
        Stage::Done => "Done",
    }
}
