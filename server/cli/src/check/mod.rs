//! `stitchcuda check FILES…`: the same findings that an editor shows, for a terminal, a script or a code host.

mod compile;
mod files;
mod human;
mod report;
mod sarif;
mod table;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use stitch_analysis::{Analyzer, Text};
use stitch_findings::Finding;
use stitch_verifier::compile::{CompileReport, KernelResources};

use crate::format::{Format, print_json};
use crate::settings::Surrounding;
use crate::status::Status;
use files::{Source, Sources};
use report::{FileReport, FindingReport, Report};

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
    /// The architecture to compile for, for example sm_90
    #[arg(long, value_name = "ARCHITECTURE")]
    arch: Option<String>,
    /// The nvcc to compile with
    #[arg(long, value_name = "PATH")]
    nvcc: Option<String>,
}

/// The formats of `check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Findings with their lines, for a person
    #[default]
    Human,
    /// One JSON object with a `schema` field
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
}

impl Arguments {
    /// A check of one file with everything as it is configured.
    pub fn for_demo(path: PathBuf, format: Format) -> Self {
        let format = match format {
            Format::Human => Output::Human,
            Format::Json => Output::Json,
        };
        Self { files: vec![path], format, no_compile: false, arch: None, nvcc: None }
    }

    fn flags(&self) -> Vec<(String, String)> {
        let flag = |key: &str, value: &Option<String>| value.as_ref().map(|value| (key.to_owned(), value.clone()));
        [flag("nvcc.architecture", &self.arch), flag("nvcc.path", &self.nvcc)].into_iter().flatten().collect()
    }
}

/// Checks and prints.
///
/// # Errors
/// Writing to `out`; a working folder that is gone.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let sources = Sources::read(&arguments.files);
    for problem in &sources.problems {
        anstream::eprintln!("error: {problem}");
    }
    let surrounding = Surrounding::read(arguments.flags())?;
    let mut notes = sources.notes;
    let compiled = if arguments.no_compile {
        compile::Compiled::default()
    } else {
        compile::all(&surrounding, &sources.files, arguments.nvcc.is_some())?
    };
    if compiled.interrupted {
        return Ok(Status::Interrupted);
    }
    notes.extend(compiled.notes);
    let report = Report::new(assemble(&surrounding, sources.files, compiled.reports), notes);
    print(&report, arguments.format, out)?;
    Ok(if !sources.problems.is_empty() {
        Status::Usage
    } else if compiled.missing {
        Status::Missing
    } else if report.summary.errors > 0 {
        Status::Bad
    } else {
        Status::Good
    })
}

fn print(report: &Report, format: Output, out: &mut impl Write) -> Result<()> {
    match format {
        Output::Human => {
            human::print(report, out)?;
            out.flush()?;
        }
        Output::Json => print_json(out, report)?,
        Output::Sarif => print_json(out, &sarif::log(report))?,
    }
    if format == Output::Human {
        for note in &report.notes {
            anstream::eprintln!("note: {note}");
        }
    }
    Ok(())
}

/// One file's findings and kernels while they are gathered from several compiles.
#[derive(Default)]
struct Gathered {
    text: Arc<str>,
    findings: Vec<Finding>,
    kernels: Vec<KernelResources>,
}

/// Puts what the rules and the compilers say together, file by file: those named first, then their headers.
fn assemble(surrounding: &Surrounding, sources: Vec<Source>, reports: Vec<CompileReport>) -> Vec<FileReport> {
    let mut order = Vec::new();
    let mut files: BTreeMap<PathBuf, Gathered> = BTreeMap::new();
    for source in sources {
        let key = canonical(&source.path);
        let findings = static_findings(&source);
        order.push((key.clone(), source.path));
        files.insert(key, Gathered { text: source.text.into(), findings, kernels: Vec::new() });
    }
    for report in reports {
        for file in report.files {
            let key = canonical(&file.path);
            let kernels = report.kernels.iter().filter(|kernel| {
                kernel.place.as_ref().is_some_and(|(path, _)| canonical(path) == key)
            });
            let known = files.entry(key.clone()).or_insert_with(|| {
                order.push((key.clone(), file.path.clone()));
                Gathered { text: file.text.clone(), ..Gathered::default() }
            });
            for finding in file.findings {
                if !known.findings.contains(&finding) {
                    known.findings.push(finding);
                }
            }
            for kernel in kernels {
                if !known.kernels.contains(kernel) {
                    known.kernels.push(kernel.clone());
                }
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    order
        .into_iter()
        .filter(|(key, _)| seen.insert(key.clone()))
        .filter_map(|(key, path)| Some(file_report(surrounding, path, files.remove(&key)?)))
        .collect()
}

fn static_findings(source: &Source) -> Vec<Finding> {
    let workspace = stitch_verifier::includes::workspace_of(&source.path, &source.text);
    let mut analyzer = Analyzer::new(source.language);
    // Nothing cuts it off, so it can't be cut off.
    let analysis = analyzer.update(source.text.as_str().into(), &workspace, &|| true);
    analysis.map(|analysis| analysis.findings().to_vec()).unwrap_or_default()
}

fn file_report(surrounding: &Surrounding, path: PathBuf, gathered: Gathered) -> FileReport {
    let config = surrounding.config_for(Some(&canonical(&path)));
    let text = Text::new(&gathered.text);
    let mut findings: Vec<FindingReport> = gathered
        .findings
        .into_iter()
        .filter_map(|finding| {
            let severity = config.severity(finding.code, finding.severity)?;
            Some(FindingReport::new(finding, severity, &text))
        })
        .collect();
    findings.sort_by_key(|finding| (finding.range.bytes, finding.code));
    // In the order of the text; the compiler's own is the reverse.
    let mut kernels = gathered.kernels;
    kernels.sort_by(|a, b| (a.place.as_ref(), &a.name).cmp(&(b.place.as_ref(), &b.name)));
    FileReport { path, findings, kernels, text }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
