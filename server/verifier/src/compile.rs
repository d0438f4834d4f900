//! Compiles what a person saved with their own nvcc, and turns all it says into findings and measurements.
//!
//! The flags are the project's, unmodified; what is added only asks for more words (`-Xptxas -v`) and sends the output to a
//! scratch folder. Host code is type-checked but not compiled, since device code is what the numbers are about, so a save
//! costs what the device pass costs.
//!
//! **Invariant:** trouble with tools is a [`Trouble`], never a finding. A finding has a place in a file of the user's.

mod alone;
pub(crate) mod cached;
pub(crate) mod command;
mod configurations;
mod findings;
mod foreign;
mod headers;
mod kernels;
mod lookups;
mod matching;
pub(crate) mod missing;
mod pasted;
pub(crate) mod plan;
mod python;
mod request;
mod trouble;
mod workings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stitch_analysis::{Analysis, Language};
use stitch_findings::{Finding, Measurement, Span};
use tokio_util::sync::CancellationToken;

use crate::occupancy::Occupancy;
pub use configurations::Configuration;
pub use python::{gives_source, is_compiled};
pub use request::CompileRequest;
pub use trouble::{Lack, NotCompiled, Trouble};

/// What the compile said of one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its text on disk when it was compiled; all spans are in it.
    pub text: Arc<str>,
    /// Errors, warnings, spills, in the order of the text.
    pub findings: Vec<Finding>,
    /// Registers, memory, occupancy of the kernels that are defined in it.
    pub measurements: Vec<Measurement>,
}

/// What one kernel uses: one instantiation, for one architecture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelResources {
    /// As a person would write it: `ns::sgemm<16>`; with its parameters where another kernel is called the same.
    pub name: String,
    /// With its parameters: `ns::sgemm<16>(const float*, int)`.
    pub signature: String,
    /// As the compiler writes it.
    pub mangled: String,
    /// `sm_90`.
    pub architecture: String,
    /// The file it is defined in and its name there; `None` where it was not found in the user's files.
    pub place: Option<(PathBuf, Span)>,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Static shared memory a block, in bytes.
    pub shared: u64,
    /// Dynamic shared memory a block, in bytes, where a launch in the file tells it.
    pub dynamic_shared: Option<u64>,
    /// Stack a thread, in bytes; that of the functions it calls included where ptxas says it.
    pub stack: u64,
    /// Spilled stores a thread, in bytes.
    pub spill_stores: u64,
    /// Spilled loads a thread, in bytes.
    pub spill_loads: u64,
    /// Barriers a block.
    pub barriers: Option<u32>,
    /// Constant memory in bytes, all banks.
    pub constant: u64,
    /// Threads a block that occupancy is reckoned with.
    pub block: u32,
    /// Where the block size comes from: `launch at line 12`.
    pub block_from: String,
    /// What fits on a multiprocessor. `None` for an architecture that is not in the table.
    pub occupancy: Option<Occupancy>,
    /// All ways in which the file launches it, in the order of the launches. What stands above is the first of those with the
    /// lowest occupancy.
    pub configurations: Vec<Configuration>,
}

/// What a compile found.
#[derive(Clone, Debug, Default)]
pub struct CompileReport {
    /// By file; the compiled file is always among them, first.
    pub files: Vec<FileReport>,
    /// Kernels in the order in which the compiler came to them.
    pub kernels: Vec<KernelResources>,
    /// What was run, as one could type it. Several commands, a line each, for a Python file.
    pub command: String,
    /// How long it took.
    pub wall: Duration,
    /// Whether nothing was run because neither the file nor what it includes has changed.
    pub from_cache: bool,
    /// What a person should know besides: an assumed architecture, flags taken from elsewhere, advice of ptxas.
    pub notes: Vec<String>,
    /// What of the file was not compiled, each reason once.
    pub not_compiled: Vec<NotCompiled>,
}

impl CompileReport {
    /// The report on one file.
    pub fn file(&self, path: &Path) -> Option<&FileReport> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Takes in another report about other parts of the same files.
    fn merge(&mut self, other: CompileReport) {
        for file in other.files {
            match self.files.iter_mut().find(|known| known.path == file.path) {
                Some(known) => {
                    known.findings.extend(file.findings);
                    known.measurements.extend(file.measurements);
                }
                None => self.files.push(file),
            }
        }
        self.kernels.extend(other.kernels);
        self.from_cache &= other.from_cache;
        if !other.command.is_empty() {
            if !self.command.is_empty() {
                self.command.push('\n');
            }
            self.command.push_str(&other.command);
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        other.not_compiled.into_iter().for_each(|not| self.leave_out(not));
    }

    /// Notes that something was not compiled.
    fn leave_out(&mut self, not: NotCompiled) {
        if !self.not_compiled.contains(&not) {
            self.not_compiled.push(not);
        }
    }

    /// Each finding once, in the order of the text.
    fn tidy(&mut self) {
        for file in &mut self.files {
            file.findings.sort_by(|a, b| (a.span, a.code, &a.message).cmp(&(b.span, b.code, &b.message)));
            file.findings.dedup_by(|a, b| (a.span, a.code, &a.message) == (b.span, b.code, &b.message));
            file.measurements.sort_by_key(|measurement| measurement.span);
        }
    }
}

/// Whether a text has anything for a compiler: all CUDA has; Python where a CUDA string is given to one.
pub fn has_something_to_compile(language: Language, text: &str) -> bool {
    match language {
        Language::Cuda => true,
        Language::Python => {
            let analysis = Analysis::of(language, &Arc::from(text));
            gives_source(&analysis)
        }
    }
}

/// Compiles a file as it is on disk: a CUDA source, a header through a source that includes it, or the CUDA strings of a
/// Python file.
///
/// # Errors
/// [`Trouble`] where no compile came about, or it came to nothing that has a place: a status, never a finding.
pub async fn compile(request: &CompileRequest, cancel: &CancellationToken) -> Result<CompileReport, Trouble> {
    let begin = Instant::now();
    let mut report = match request.language {
        Language::Cuda => compile_cuda(request, cancel).await?,
        Language::Python => python::compile(request, cancel).await?,
    };
    report.tidy();
    report.wall = begin.elapsed();
    Ok(report)
}

async fn compile_cuda(
    request: &CompileRequest,
    cancel: &CancellationToken,
) -> Result<CompileReport, Trouble> {
    let path = crate::paths::canonical(&request.path);
    let text = saved_text(&path).await?;
    let mut notes = Vec::new();
    if *text != *request.text {
        notes.push(format!(
            "{} has changes that are not saved; it was compiled as it is saved",
            path.display()
        ));
    }
    let request_ = request.clone();
    let path_ = path.clone();
    let plan = blocking(move || plan::plan(&request_, &path_)).await??;
    let Some(mut plan) = plan else {
        let reason =
            "no CUDA source of the workspace includes this header, so there is nothing to compile it by";
        let not_compiled = vec![NotCompiled::by_nature(reason)];
        let file = FileReport { path, text, findings: Vec::new(), measurements: Vec::new() };
        return Ok(CompileReport { files: vec![file], notes, not_compiled, ..CompileReport::default() });
    };
    notes.append(&mut plan.notes);
    let outcome = run_until_complete(request, &mut plan, &mut notes, cancel).await?;
    if let Some(report) = kernels_alone(request, &path, &text, &plan, &outcome, cancel).await? {
        notes.extend(report.notes);
        return Ok(CompileReport { notes, ..report });
    }
    let workings = workings::Workings {
        unit: plan.unit.clone(),
        asked: path,
        asked_text: text,
        block_size: request.block_size,
        tool: plan.tool.clone(),
        directory: plan.directory.clone(),
        system: plan.system_folders(),
        default_architecture: plan.architecture.clone(),
        foreign: None,
    };
    let mut report = blocking(move || workings.report(&outcome)).await??;
    notes.append(&mut report.notes);
    report.notes = notes;
    Ok(report)
}

/// Flags that are added before a compile is left to fail.
const MOST_ADDITIONS: usize = 8;

/// Runs a plan. Where no database says how the project is compiled, what its own build must have is added: the folder of a
/// header that is not found, and relocatable device code where nothing else can work.
async fn run_until_complete(
    request: &CompileRequest,
    plan: &mut plan::Plan,
    notes: &mut Vec<String>,
    cancel: &CancellationToken,
) -> Result<cached::Outcome, Trouble> {
    let mut outcome = cached::run(request, plan, cancel).await?;
    for _ in 0..MOST_ADDITIONS {
        if outcome.success || plan.from_database {
            break;
        }
        let Some(note) = add_what_lacks(request, plan, &outcome).await? else { break };
        notes.push(note);
        outcome = cached::run(request, plan, cancel).await?;
    }
    Ok(outcome)
}

/// Adds to a plan what its failed run lacked, and says what that is. `None` if that is not known.
async fn add_what_lacks(
    request: &CompileRequest,
    plan: &mut plan::Plan,
    outcome: &cached::Outcome,
) -> Result<Option<String>, Trouble> {
    if missing::needs_linking(&outcome.text) && !plan.is_relocatable() {
        plan.arguments.push("-rdc=true".to_owned());
        let reason = "the code calls device code of other files, or launches kernels from kernels";
        return Ok(Some(format!("{reason}, so `-rdc=true` was added")));
    }
    let Some((header, workspace)) = missing::header(&outcome.text).zip(request.workspace.clone()) else {
        return Ok(None);
    };
    let (unit, name) = (plan.unit.clone(), header.clone());
    let found = blocking(move || missing::folder_of(&name, &unit, &workspace)).await?;
    Ok(found.map(|folder| {
        plan.arguments.extend(["-I".to_owned(), folder.display().to_string()]);
        format!("{header} was found in {}, which was added to the include folders", folder.display())
    }))
}

/// The report on the kernels of a source that can't be compiled for want of torch's headers. `None` for any other source.
async fn kernels_alone(
    request: &CompileRequest,
    path: &Path,
    text: &Arc<str>,
    plan: &plan::Plan,
    outcome: &cached::Outcome,
    cancel: &CancellationToken,
) -> Result<Option<CompileReport>, Trouble> {
    if outcome.success || plan.unit != path || !missing::needs_torch(&outcome.text) {
        return Ok(None);
    }
    let (code, flags, at) = (text.clone(), plan.arguments.clone(), path.to_owned());
    let source = blocking(move || {
        let analysis = Analysis::of(Language::Cuda, &code);
        let source = alone::Source::without_torch(&code, analysis.outline(), flags)?;
        Some(source.without_headers_that_need_torch(&at))
    })
    .await?;
    let note = "the headers of torch were not found, so the kernels were compiled by themselves; host code was not checked".to_owned();
    let Some(source) = source else {
        let file = FileReport {
            path: path.to_owned(),
            text: text.clone(),
            findings: Vec::new(),
            measurements: Vec::new(),
        };
        return Ok(Some(CompileReport { files: vec![file], notes: vec![note], ..CompileReport::default() }));
    };
    let alone::Alone { mut report, file } = alone::compile(request, path, source, cancel).await?;
    for known in report.files.iter_mut().filter(|known| known.path == file) {
        known.path = path.to_owned();
        known.text = text.clone();
        known.findings.retain(|finding| finding.span.end <= text.len());
        known.measurements.retain(|measurement| measurement.span.end <= text.len());
    }
    for (known, _) in report.kernels.iter_mut().filter_map(|kernel| kernel.place.as_mut()) {
        if *known == file {
            *known = path.to_owned();
        }
    }
    report.notes.push(note);
    Ok(Some(report))
}

/// Runs what reads files and takes milliseconds off the threads that answer requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Trouble::Internal { reason: error.to_string() })
}

/// A file as it is saved, as long in bytes: what is no UTF-8 is replaced byte for byte.
async fn saved_text(path: &Path) -> Result<Arc<str>, Trouble> {
    let unreadable = |reason: String| Trouble::Unreadable { path: path.to_owned(), reason };
    let bytes = tokio::fs::read(path).await.map_err(|error| unreadable(error.to_string()))?;
    let decoded =
        stitch_analysis::decode(&bytes).ok_or_else(|| unreadable("it is UTF-16, not UTF-8".to_owned()))?;
    Ok(decoded.text.into())
}

#[cfg(test)]
mod tests;
