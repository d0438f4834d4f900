//! `stitchcuda check FILES…`: the same findings that an editor shows, for a terminal, a script or a code host.

mod compile;
mod files;
mod gather;
mod human;
pub mod profiled;
mod report;
mod run;
pub mod sarif;
mod table;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use stitch_session::config::Architecture;

use crate::format::{Format, Output, print_json};
use crate::settings::Surrounding;
use crate::status::Status;
use compile::Compiled;
use files::Sources;
use gather::Gathered;
use report::Report;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Files to check, or folders with CUDA (.cu, .cuh) and Python (.py) files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Output,
    /// Only the static rules: run no compiler
    #[arg(long)]
    no_compile: bool,
    /// Run the programs among the files on the simulator too, for what it catches: races, accesses out of bounds, …
    #[arg(long, conflicts_with = "no_compile")]
    run: bool,
    /// Which defects the simulator looks for: none, memory or all
    #[arg(long, value_name = "CHECKS", requires = "run", value_parser = ["none", "memory", "all"])]
    checks: Option<String>,
    /// The architecture to compile for, for example sm_90
    #[arg(long, value_name = "ARCHITECTURE", value_parser = architecture)]
    arch: Option<String>,
    /// The nvcc to compile with
    #[arg(long, value_name = "PATH")]
    nvcc: Option<String>,
}

impl Arguments {
    /// A check by the static rules alone.
    pub fn for_demo(files: Vec<PathBuf>, format: Format) -> Self {
        Self {
            files,
            format: format.into(),
            no_compile: true,
            run: false,
            checks: None,
            arch: None,
            nvcc: None,
        }
    }

    fn flags(&self) -> Vec<(String, String)> {
        let flag =
            |key: &str, value: &Option<String>| value.as_ref().map(|value| (key.to_owned(), value.clone()));
        let flags = [
            flag("nvcc.architecture", &self.arch),
            flag("nvcc.path", &self.nvcc),
            flag("simulator.checks", &self.checks),
        ];
        flags.into_iter().flatten().collect()
    }
}

/// Refuses what the configuration would only warn of: who types a flag wants to know at once.
fn architecture(text: &str) -> std::result::Result<String, &'static str> {
    Architecture::try_from(text.to_owned()).map(String::from)
}

/// Checks and prints.
///
/// # Errors
/// Writing to `out`; a working folder that is gone; a system that gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let sources = Sources::read(&arguments.files);
    for problem in &sources.problems {
        anstream::eprintln!("error: {}: {}", problem.path.display(), problem.message);
    }
    let about = sources.files.iter().map(|file| file.canonical.as_path());
    let surrounding = Surrounding::read(arguments.flags())?.about(about);
    let mut gathered = Gathered::by_rules(&sources.files);
    let compiled =
        if arguments.no_compile { Compiled::default() } else { compile::all(&surrounding, &sources.files)? };
    if compiled.interrupted {
        return Ok(Status::Interrupted);
    }
    for report in compiled.reports {
        gathered.add(report, &surrounding.folder);
    }
    for (path, not) in compiled.left_out {
        gathered.leave_out(&path, not);
    }
    let ran = if arguments.run { run::all(&surrounding, &sources.files)? } else { run::Runs::default() };
    if ran.interrupted {
        return Ok(Status::Interrupted);
    }
    for (path, findings) in ran.findings {
        gathered.add_findings(&path, findings);
    }
    for (path, not) in ran.left_out {
        gathered.leave_out(&path, not);
    }
    let notes = [sources.notes, std::mem::take(&mut gathered.notes), compiled.notes, ran.notes].concat();
    let report = Report::new(gathered.report(&surrounding), sources.problems);
    let report = Report { notes, warnings: surrounding.warnings(), ..report };
    print(&report, arguments.format, out)?;
    Ok(report.status())
}

fn print(report: &Report, format: Output, out: &mut impl Write) -> Result<()> {
    match format {
        Output::Json => print_json(out, report)?,
        Output::Sarif => print_json(out, &sarif::log(report))?,
        Output::Human => {
            human::print(report, out)?;
            // On a terminal, notes belong below the report.
            out.flush()?;
            for note in &report.notes {
                anstream::eprintln!("note: {note}");
            }
        }
    }
    Ok(())
}
