//! A defect that compute-sanitizer found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stitch_findings::{Code, Finding, Severity, Span};

use super::location::{Frame, Location};
use crate::kernel::{KernelName, LinePlace, kernel_name};
use crate::note::Note;

/// The kinds of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DefectKind {
    /// An access outside of every allocation (memcheck).
    OutOfBounds,
    /// An address that is no multiple of the access (memcheck).
    Misaligned,
    /// Memory freed that is not allocated (memcheck).
    InvalidFree,
    /// Memory that was not freed (memcheck with the leak check).
    Leak,
    /// A CUDA API call that returned an error (memcheck).
    ApiError,
    /// A fault that the hardware reported (memcheck).
    Exception,
    /// Two threads at one address (racecheck).
    Race,
    /// Memory read before it was written (initcheck).
    UninitializedRead,
    /// Memory that was allocated for nothing (initcheck).
    UnusedMemory,
    /// A barrier, or a warpgroup's instruction, that not all threads reach (synccheck).
    Barrier,
    /// Anything else.
    Other,
}

impl DefectKind {
    /// The finding's code.
    pub fn code(self) -> Code {
        match self {
            Self::OutOfBounds => Code::SANITIZER_OUT_OF_BOUNDS,
            Self::Misaligned => Code::SANITIZER_MISALIGNED,
            Self::InvalidFree => Code::SANITIZER_INVALID_FREE,
            Self::Leak => Code::SANITIZER_LEAK,
            Self::ApiError => Code::SANITIZER_API_ERROR,
            Self::Exception => Code::SANITIZER_EXCEPTION,
            Self::Race => Code::SANITIZER_RACE,
            Self::UninitializedRead => Code::SANITIZER_UNINITIALIZED_READ,
            Self::UnusedMemory => Code::SANITIZER_UNUSED_MEMORY,
            Self::Barrier => Code::SANITIZER_BARRIER,
            Self::Other => Code::SANITIZER_OTHER,
        }
    }
}

/// The range of an index over the reports that are the same: x, y and z of the least and of the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Indices {
    /// The least of each dimension.
    pub least: [u32; 3],
    /// The greatest of each dimension.
    pub greatest: [u32; 3],
}

impl Indices {
    /// A single index.
    pub fn one(index: [u32; 3]) -> Self {
        Self { least: index, greatest: index }
    }

    /// Takes in another range.
    pub fn extend(&mut self, other: Self) {
        for at in 0..3 {
            self.least[at] = self.least[at].min(other.least[at]);
            self.greatest[at] = self.greatest[at].max(other.greatest[at]);
        }
    }

    /// In words: `(232,0,0)`, `(232..255,0,0)`.
    pub fn label(&self) -> String {
        let parts = (0..3).map(|at| match (self.least[at], self.greatest[at]) {
            (a, b) if a == b => a.to_string(),
            (a, b) => format!("{a}..{b}"),
        });
        format!("({})", parts.collect::<Vec<_>>().join(","))
    }
}

/// Where an address lies beside the nearest allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// Before its begin.
    Before,
    /// Behind its end.
    After,
    /// In it.
    Inside,
}

/// The nearest allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes, where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How many bytes from it the access is.
    pub distance: u64,
    /// On which side.
    pub side: Side,
}

/// One defect, with all reports of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defect {
    /// What kind.
    pub kind: DefectKind,
    /// The tool's own words.
    pub text: String,
    /// Where in device code.
    pub at: Location,
    /// Who called that, the kernel last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_stack: Vec<Location>,
    /// The host's stack at the launch, the call or the allocation, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_stack: Vec<Frame>,
    /// The other accesses of a race: what each does (`Read`), and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(String, Location)>,
    /// What the first access of a race does: `Write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// Threads in their blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Indices>,
    /// Blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Indices>,
    /// The memory: `global`, `shared`, `local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Bytes of the access, or of the leak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The nearest allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// The API call that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Its error's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<i64>,
    /// How many reports were the same but for the thread and the address.
    pub count: u64,
    /// How many hazards the tool counted, byte by byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hazards: Option<u64>,
}

/// API calls whose failure is no defect: a runtime asks a driver for what it may not have.
///
/// Source: reports of the CUDA 13 runtime on clean programs, in which every error is one of these.
const PROBES: &[&str] = &["cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"];

impl Defect {
    /// A defect of which only the tool's words are known.
    pub(super) fn new(kind: DefectKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            at: Location::default(),
            device_stack: Vec::new(),
            host_stack: Vec::new(),
            others: Vec::new(),
            access: None,
            threads: None,
            blocks: None,
            space: None,
            address: None,
            size: None,
            allocation: None,
            api: None,
            error: None,
            count: 1,
            hazards: None,
        }
    }

    /// The kernel: the last of the device's stack, or the function itself.
    pub fn kernel(&self) -> Option<KernelName> {
        let function = self
            .device_stack
            .iter()
            .rev()
            .find_map(|frame| frame.function.as_ref())
            .or(self.at.function.as_ref())?;
        Some(kernel_name(function))
    }

    /// The line to tell it at: in device code, or for what the host did, where the host did it.
    pub fn place(&self) -> Option<&LinePlace> {
        let device = self
            .at
            .place
            .as_ref()
            .or_else(|| self.device_stack.iter().find_map(|frame| frame.place.as_ref()));
        let host = || self.host_stack.iter().find_map(|frame| frame.place.as_ref());
        match self.kind {
            DefectKind::Leak | DefectKind::ApiError | DefectKind::UnusedMemory => host(),
            _ => device,
        }
    }

    /// Whether two reports are about the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.at == other.at
            && self.others == other.others
            && self.device_stack == other.device_stack
            && self.size == other.size
            && self.api == other.api
            && self.error == other.error
            && (self.at != Location::default() || self.host_stack == other.host_stack)
            && (self.at != Location::default() || !self.host_stack.is_empty() || self.text == other.text)
    }

    /// Takes in a report that is the same.
    pub(super) fn extend(&mut self, other: &Self) {
        self.count += other.count;
        for (range, given) in [(&mut self.threads, other.threads), (&mut self.blocks, other.blocks)] {
            match (range.as_mut(), given) {
                (Some(range), Some(given)) => range.extend(given),
                (None, given) => *range = given,
                (Some(_), None) => {}
            }
        }
        self.hazards = match (self.hazards, other.hazards) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match &self.api {
            Some(api) if PROBES.contains(&api.as_str()) => Severity::Hint,
            _ => self.kind.code().info().severity,
        }
    }

    /// The finding, at a span of a text that the caller has found for [`Defect::place`] or for the kernel.
    pub fn finding(&self, span: Span) -> Finding {
        let mut finding = Finding::new(self.kind.code(), span, self.message()).advise(self.advice());
        finding.severity = self.severity();
        finding.subject = self.kernel().map(|kernel| kernel.base);
        finding
    }
}

/// What was read of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SanitizerReport {
    /// Defects, in the order of their first reports.
    pub defects: Vec<Defect>,
    /// How many errors the tool counted. `None` where it did not come to its summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// How many of them it did not print.
    pub not_printed: u64,
    /// What a reader has to know about the report itself.
    pub notes: Vec<Note>,
}

impl SanitizerReport {
    /// Adds a report of a defect to what is known.
    pub(super) fn push(&mut self, defect: Defect) {
        match self.defects.iter_mut().find(|known| known.same(&defect)) {
            Some(known) => known.extend(&defect),
            None => self.defects.push(defect),
        }
    }
}
