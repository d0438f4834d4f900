//! What `check` found, as data: one report that every output format prints.
//!
//! Positions are given three ways, since each reader has its own habit: bytes for programs that hold the file, lines
//! and columns from one for people and for SARIF. Columns count UTF-16 units, as editors and SARIF viewers do.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use stitch_analysis::{Encoding, Text};
use stitch_findings::{Code, Finding, Place, Severity, Span};
use stitch_verifier::compile::{Configuration, KernelResources, Lack, NotCompiled};
use stitch_verifier::occupancy::{Limiter, Occupancy};

use super::files::Problem;
use crate::status::Status;

/// Everything one `check` says.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// `stitchcuda.check/1`.
    pub schema: &'static str,
    /// The files that were checked, and headers of theirs with findings.
    pub files: Vec<FileReport>,
    /// How many findings of each severity.
    pub summary: Summary,
    /// Names that lead to nothing that can be checked.
    pub problems: Vec<Problem>,
    /// What is wrong with the settings.
    pub warnings: Vec<String>,
    /// What a person should know besides: which compiler, files that are no UTF-8, …
    pub notes: Vec<String>,
    /// What the command ends with.
    pub exit_status: u8,
}

/// What was found in one file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileReport {
    /// The file, as it was named, or as the compiler named it.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// In the order of the text.
    pub findings: Vec<FindingReport>,
    /// What ptxas says of each kernel, where it was compiled; in the order of the text.
    pub kernels: Vec<KernelReport>,
    /// What of it was not compiled, so that silence of the compiler means nothing.
    pub not_compiled: Vec<NotCompiledReport>,
    /// The text, to quote from.
    #[serde(skip)]
    pub text: Text,
}

/// Something of a file that was not compiled.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotCompiledReport {
    /// Why, and what to do.
    pub reason: String,
    /// What was lacking: a tool, right input, or nothing that could be mended.
    pub lack: Lack,
}

/// One finding with its place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    /// `producer/slug`.
    pub code: Code,
    /// As configured.
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// What to do.
    pub advice: Option<String>,
    /// The kernel or function.
    pub subject: Option<String>,
    /// Where.
    pub range: Range,
    /// Other places that explain it.
    pub related: Vec<RelatedReport>,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// Line from one.
    pub start_line: u32,
    /// Column from one, in UTF-16 units.
    pub start_column: u32,
    /// Line from one.
    pub end_line: u32,
    /// Column from one, behind the last character.
    pub end_column: u32,
    /// The same in bytes from the start of the file.
    pub bytes: Span,
}

/// Another place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedReport {
    /// The file, if it is another one.
    #[serde(serialize_with = "optional_path")]
    pub path: Option<PathBuf>,
    /// Line from one.
    pub line: u32,
    /// Column from one, in UTF-16 units.
    pub column: u32,
    /// What is there.
    pub message: String,
}

/// What one kernel uses: one instantiation, for one architecture.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelReport {
    /// As a person would write it.
    pub name: String,
    /// With its parameters.
    pub signature: String,
    /// As the compiler writes it.
    pub mangled: String,
    /// `sm_90`.
    pub architecture: String,
    /// Its name where it is defined.
    pub range: Range,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Static shared memory a block.
    pub shared_bytes: u64,
    /// Dynamic shared memory a block, where a launch tells it.
    pub dynamic_shared_bytes: Option<u64>,
    /// Stack a thread.
    pub stack_bytes: u64,
    /// Spilled stores a thread.
    pub spill_store_bytes: u64,
    /// Spilled loads a thread.
    pub spill_load_bytes: u64,
    /// Barriers a block.
    pub barriers: Option<u32>,
    /// Constant memory, all banks.
    pub constant_bytes: u64,
    /// Threads a block that occupancy is reckoned with.
    pub block_size: u32,
    /// Where the block size comes from.
    pub block_size_from: String,
    /// What fits on a multiprocessor; `None` for an architecture whose limits are not known.
    pub occupancy: Option<OccupancyReport>,
    /// All ways in which the file launches it. The block size and the occupancy above are those of the first with the lowest
    /// occupancy.
    pub configurations: Vec<ConfigurationReport>,
}

/// One way in which a kernel is launched.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationReport {
    /// Threads a block.
    pub block_size: u32,
    /// Where that comes from.
    pub block_size_from: String,
    /// Dynamic shared memory a block, where a launch tells it.
    pub dynamic_shared_bytes: Option<u64>,
    /// What fits on a multiprocessor then.
    pub occupancy: Option<OccupancyReport>,
}

/// What fits on one multiprocessor.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OccupancyReport {
    /// Resident warps over the most that could be, from 0 to 1.
    pub ratio: f64,
    /// Resident blocks.
    pub active_blocks: u32,
    /// Resident warps.
    pub active_warps: u32,
    /// Most warps that could be resident.
    pub max_warps: u32,
    /// All that allow no more blocks than this, the most telling first.
    pub limiters: Vec<Limiter>,
    /// The same in words.
    pub reason: String,
}

/// Findings by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Information.
    pub information: usize,
    /// Hints.
    pub hints: usize,
}

impl Range {
    /// Where `span` is in `text`.
    pub fn of(span: Span, text: &Text) -> Self {
        let start = text.position(span.start, Encoding::Utf16);
        let end = text.position(span.end, Encoding::Utf16);
        Self {
            start_line: start.line + 1,
            start_column: start.character + 1,
            end_line: end.line + 1,
            end_column: end.character + 1,
            bytes: span,
        }
    }
}

impl FindingReport {
    /// `finding` with its place in `text`, shown as `severity`. `elsewhere` says how a place in another file is shown: the
    /// file's name, and the column of a byte in a line.
    pub fn new(
        finding: Finding,
        severity: Severity,
        text: &Text,
        elsewhere: impl Fn(&Path, u32, u32) -> (PathBuf, u32),
    ) -> Self {
        let related = finding.related.into_iter().map(|related| {
            let (path, line, column) = match related.place {
                Place::Here(span) => {
                    let range = Range::of(span, text);
                    (None, range.start_line, range.start_column)
                }
                Place::File { path, line, column } => {
                    let (path, column) = elsewhere(&path, line, column);
                    (Some(path), line + 1, column + 1)
                }
            };
            RelatedReport { path, line, column, message: related.message }
        });
        Self {
            code: finding.code,
            severity,
            message: finding.message,
            advice: finding.advice,
            subject: finding.subject,
            range: Range::of(finding.span, text),
            related: related.collect(),
        }
    }
}

impl KernelReport {
    /// `kernel` with its place in `text`. `None` for one that is not in the user's files.
    pub fn new(kernel: KernelResources, text: &Text) -> Option<Self> {
        let (_, span) = kernel.place?;
        Some(Self {
            name: kernel.name,
            signature: kernel.signature,
            mangled: kernel.mangled,
            architecture: kernel.architecture,
            range: Range::of(span, text),
            registers: kernel.registers,
            shared_bytes: kernel.shared,
            dynamic_shared_bytes: kernel.dynamic_shared,
            stack_bytes: kernel.stack,
            spill_store_bytes: kernel.spill_stores,
            spill_load_bytes: kernel.spill_loads,
            barriers: kernel.barriers,
            constant_bytes: kernel.constant,
            block_size: kernel.block,
            block_size_from: kernel.block_from,
            occupancy: kernel.occupancy.map(OccupancyReport::from),
            configurations: kernel.configurations.into_iter().map(ConfigurationReport::from).collect(),
        })
    }
}

impl From<Configuration> for ConfigurationReport {
    fn from(one: Configuration) -> Self {
        Self {
            block_size: one.block,
            block_size_from: one.from,
            dynamic_shared_bytes: one.dynamic_shared,
            occupancy: one.occupancy.map(OccupancyReport::from),
        }
    }
}

impl From<NotCompiled> for NotCompiledReport {
    fn from(not: NotCompiled) -> Self {
        Self { reason: not.reason, lack: not.lack }
    }
}

impl From<Occupancy> for OccupancyReport {
    fn from(occupancy: Occupancy) -> Self {
        Self {
            ratio: occupancy.ratio(),
            active_blocks: occupancy.active_blocks,
            active_warps: occupancy.active_warps,
            max_warps: occupancy.max_warps,
            reason: occupancy.reason(),
            limiters: occupancy.limiters,
        }
    }
}

impl Report {
    /// A report over `files`, counted, with the status that they and the input lead to.
    pub fn new(files: Vec<FileReport>, problems: Vec<Problem>) -> Self {
        let mut summary = Summary::default();
        for finding in files.iter().flat_map(|file| &file.findings) {
            *match finding.severity {
                Severity::Error => &mut summary.errors,
                Severity::Warning => &mut summary.warnings,
                Severity::Information => &mut summary.information,
                Severity::Hint => &mut summary.hints,
            } += 1;
        }
        let mut report = Self { schema: "stitchcuda.check/1", files, summary, problems, ..Self::default() };
        report.exit_status = report.status().number();
        report
    }

    /// The worst of all that was found and of all that was not done.
    pub fn status(&self) -> Status {
        let found = if self.summary.errors > 0 { Status::Bad } else { Status::Good };
        let input = if self.problems.is_empty() { Status::Good } else { Status::Usage };
        let lacks = self.files.iter().flat_map(|file| &file.not_compiled).map(|not| Status::from(not.lack));
        lacks.fold(found.worse(input), Status::worse)
    }
}

/// A path as text. One that is no UTF-8 is written with `\u{fffd}` for what can't be.
pub fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
