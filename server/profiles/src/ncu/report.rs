//! One stream of Nsight Compute's output, read to its end.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};

use super::details::DetailsPage;
use super::numbers;
use super::raw::RawPage;
use super::records::{Record, Records};
use super::source::SourcePage;
use crate::kernel::kernel_name;
use crate::kernel::{KernelLaunch, Metric, Origin, Unit};
use crate::note::{Note, NoteKind};
use crate::utf16::decoded;

/// What was read of Nsight Compute's output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Launches, in the order of launching.
    pub launches: Vec<KernelLaunch>,
    /// What a reader has to know about the output itself.
    pub notes: Vec<Note>,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum NcuError {
    /// The stream itself failed.
    #[error("reading Nsight Compute's output failed: {0}")]
    Io(#[from] io::Error),
    /// The driver refuses performance counters to this user.
    #[error("{NOT_PERMITTED}")]
    NotPermitted,
    /// The profiler ran, and no kernel was profiled.
    #[error(
        "Nsight Compute profiled no kernel. If a child process launches the kernels, profile it with `--target-processes all`; if filters \
         were given (`-k`, `-s`, `-c`, NVTX), check that they let a kernel through.{0}"
    )]
    NoKernels(String),
    /// Kernels were profiled, and the page is for people, or went into a report.
    #[error(
        "Nsight Compute profiled {0} kernel{1}, but what it printed is no CSV. Run it with `--csv --page raw`, or export its report with \
         `ncu --import report.ncu-rep --csv --page raw`."
    )]
    NotCsv(usize, &'static str),
    /// No page of Nsight Compute is in the stream.
    #[error(
        "this is no CSV output of Nsight Compute: no line has the columns of its raw, details or source page. Export one with \
         `ncu --import report.ncu-rep --csv --page raw`.{0}"
    )]
    NotNcu(String),
}

/// What is said when counters are refused.
///
/// Source: NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with Performance Counters", <https://developer.nvidia.com/ERR_NVGPUCTRPERM>.
pub const NOT_PERMITTED: &str = "the NVIDIA driver forbids performance counters to this user (ERR_NVGPUCTRPERM), so Nsight Compute measured \
nothing. Run as root; or load the driver with the option NVreg_RestrictProfilingToAdminUsers=0 (on Linux in /etc/modprobe.d, then reboot; \
on Windows in the NVIDIA Control Panel under Developer, Manage GPU Performance Counters); or give a container the capability SYS_ADMIN \
(docker run --cap-add=SYS_ADMIN). See https://developer.nvidia.com/ERR_NVGPUCTRPERM";

/// Nothing is more than this: a year of the fastest device has less than 1e26 operations. Ours.
const MOST: f64 = 1e30;

/// What is said of values that can't be.
const IMPOSSIBLE: &str =
    "Some values are negative, or larger than anything that a device does; they count as not measured.";

/// What is said of values whose units were left out.
const NO_UNITS: &str = "The units are missing (the row below the header of a raw page, the column Metric Unit of a details page), so that times, \
bytes, rates and clocks count as not measured. Export the page again, and keep the row or column of its units.";

/// How many of the profiler's own warnings are kept.
const MOST_REMARKS: usize = 8;

/// Reads the output of Nsight Compute: CSV of the raw, details or source page, or several one after another, between lines of anything else.
///
/// # Errors
///
/// When the stream fails, when the driver forbade the counters, or when no page is in it. Rows that can't be read become notes.
pub fn read(reader: impl Read) -> Result<Report, NcuError> {
    let mut records = Records::new(decoded(reader)?);
    let mut collected = Collected::default();
    let mut page = Page::None;
    while let Some(record) = records.next()? {
        match record {
            Record::Talk(line) => collected.talk(&line),
            Record::TooLong => collected.note(
                NoteKind::Unreadable,
                "a line of more than 8 MB was left out: no row is so long".into(),
            ),
            Record::Row(fields) => page.row(&fields, &mut collected),
        }
    }
    page.end(&mut collected);
    collected.finish()
}

/// The page whose rows are coming.
enum Page {
    None,
    Raw(RawPage),
    Details(DetailsPage),
    Source(Box<SourcePage>),
}

impl Page {
    fn row(&mut self, fields: &[String], collected: &mut Collected) {
        if let Some(next) = Self::begun_by(fields) {
            // A source page has a header for each kernel.
            if let (Self::Source(current), Self::Source(_)) = (&mut *self, &next) {
                current.row(fields, collected);
                return;
            }
            self.end(collected);
            collected.page_seen = true;
            *self = next;
            if !matches!(self, Self::Source(_)) {
                return;
            }
        }
        match self {
            Self::None => collected.first_row(fields),
            Self::Raw(page) => page.row(fields, collected),
            Self::Details(page) => page.row(fields, collected),
            Self::Source(page) => page.row(fields, collected),
        }
    }

    /// The page that a header row begins.
    fn begun_by(fields: &[String]) -> Option<Self> {
        if SourcePage::begins(fields) {
            return Some(Self::Source(Box::default()));
        }
        if !fields.iter().any(|field| field == "Kernel Name") || fields.len() < 3 {
            return None;
        }
        Some(if fields.iter().any(|field| field == "Metric Name") {
            Self::Details(DetailsPage::new(fields))
        } else {
            Self::Raw(RawPage::new(fields))
        })
    }

    fn end(&mut self, collected: &mut Collected) {
        if let Self::Source(page) = self {
            page.end(collected);
        }
    }
}

/// A value as it was printed. Numbers are made of these at the end, since only the whole output tells how a decimal point is written.
struct Printed {
    rank: usize,
    text: String,
    /// `None` where no row of units was there.
    unit: Option<String>,
}

/// One launch while its rows are coming.
pub(super) struct Draft {
    pub launch: KernelLaunch,
    printed: BTreeMap<Metric, Printed>,
}

impl Draft {
    /// Takes a value in, unless one under a preferred name is there.
    pub fn print(&mut self, metric: Metric, rank: usize, text: &str, unit: Option<&str>) {
        if numbers::number(text, false).or_else(|| numbers::number(text, true)).is_none() {
            return;
        }
        if self.printed.get(&metric).is_none_or(|known| rank < known.rank) {
            let printed = Printed { rank, text: text.to_owned(), unit: unit.map(str::to_owned) };
            self.printed.insert(metric, printed);
        }
    }

    /// Notes that a page of the session was read.
    pub fn page(&mut self, page: &str) {
        if !self.launch.origin.pages.iter().any(|known| known == page) {
            self.launch.origin.pages.push(page.to_owned());
        }
    }
}

/// All that was read so far.
#[derive(Default)]
pub(super) struct Collected {
    drafts: Vec<Draft>,
    by_key: HashMap<String, usize>,
    /// Launches of source pages, which have no number.
    pub sources: Vec<KernelLaunch>,
    notes: Vec<Note>,
    /// Some number can only have a decimal comma.
    pub decimal_comma: bool,
    refused: bool,
    none_profiled: bool,
    profiler_seen: bool,
    /// Some page's header was seen.
    pub page_seen: bool,
    remarks: usize,
    first: Option<String>,
    /// How many times each launch was run, by its number.
    passes: HashMap<u64, u32>,
}

impl Collected {
    /// The launch with this number and kernel; a new one if there is none yet.
    pub fn draft(&mut self, id: &str, process: &str, signature: &str) -> &mut Draft {
        let key = format!("{id}\u{0}{process}\u{0}{signature}");
        let next = self.drafts.len();
        let at = *self.by_key.entry(key).or_insert(next);
        if at == next {
            let launch = KernelLaunch {
                id: id.trim().parse().unwrap_or(next as u64),
                kernel: kernel_name(signature),
                origin: Origin { tool: "Nsight Compute".into(), ..Origin::default() },
                ..KernelLaunch::default()
            };
            self.drafts.push(Draft { launch, printed: BTreeMap::new() });
        }
        &mut self.drafts[at]
    }

    /// Adds a note, once.
    pub fn note(&mut self, kind: NoteKind, text: String) {
        let note = Note::new(kind, text);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// A line that is no row: the profiler's own words, or the program's.
    fn talk(&mut self, line: &str) {
        let line = line.trim();
        if self.first.is_none() && !line.is_empty() {
            self.first = Some(shorten(line));
        }
        self.passes.extend(passes(line));
        self.refused |= line.contains("ERR_NVGPUCTRPERM");
        self.profiler_seen |= line.starts_with("==PROF==") || line.starts_with("==ERROR==");
        self.none_profiled |= line.starts_with("==WARNING== No kernels were profiled");
        let said = ["==ERROR==", "==WARNING=="].iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(said) = said.map(str::trim)
            && !line.contains("ERR_NVGPUCTRPERM")
            && self.remarks < MOST_REMARKS
        {
            self.remarks += 1;
            self.note(NoteKind::Remark, format!("Nsight Compute said: {}", shorten(said)));
        }
    }

    /// A row before any header.
    fn first_row(&mut self, fields: &[String]) {
        if self.first.is_none() {
            self.first = Some(shorten(&fields.join(",")));
        }
        // In some versions messages are quoted as rows are.
        if let [line] = fields {
            self.talk(line);
        }
    }

    fn finish(mut self) -> Result<Report, NcuError> {
        if self.drafts.is_empty() && self.sources.is_empty() {
            return Err(self.nothing());
        }
        if self.refused {
            self.note(NoteKind::NotPermitted, format!("Some kernels were not measured: {NOT_PERMITTED}"));
        }
        if self.decimal_comma {
            self.note(
                NoteKind::Remark,
                "The numbers are written with a decimal comma; they were read so. Exports with `LC_ALL=C` can't be misread.".into(),
            );
        }
        let mut unknown = Vec::new();
        let drafts = std::mem::take(&mut self.drafts);
        let launches =
            drafts.into_iter().map(|draft| resolve(draft, self.decimal_comma, &mut unknown)).collect();
        for text in unknown {
            self.note(NoteKind::Unreadable, text);
        }
        let mut report = Report { launches, notes: self.notes };
        for launch in &mut report.launches {
            launch.origin.passes = launch.origin.passes.or(self.passes.get(&launch.id).copied());
        }
        report.merge(Report { launches: self.sources, notes: Vec::new() });
        Ok(report)
    }

    /// Why there is nothing.
    fn nothing(&self) -> NcuError {
        if self.refused {
            return NcuError::NotPermitted;
        }
        if !self.passes.is_empty() && !self.page_seen {
            return NcuError::NotCsv(self.passes.len(), if self.passes.len() == 1 { "" } else { "s" });
        }
        let last = self.notes.iter().rev().find(|note| note.kind == NoteKind::Remark);
        if self.none_profiled || self.profiler_seen || self.page_seen {
            return NcuError::NoKernels(last.map(|note| format!(" {}", note.text)).unwrap_or_default());
        }
        NcuError::NotNcu(match &self.first {
            Some(first) => format!(" The first line is `{first}`."),
            None => " It is empty.".to_owned(),
        })
    }
}

/// Makes numbers of what was printed.
fn resolve(draft: Draft, decimal_comma: bool, unknown: &mut Vec<String>) -> KernelLaunch {
    let Draft { mut launch, printed } = draft;
    for (metric, printed) in printed {
        let Some(value) = numbers::number(&printed.text, decimal_comma) else { continue };
        let base = metric.info().unit;
        let factor = match &printed.unit {
            // A number without a dimension needs no unit; of a time it may have been nanoseconds or milliseconds.
            None => matches!(base, Unit::Count | Unit::Ratio | Unit::Percent).then_some(1.0),
            Some(unit) => numbers::factor(unit, base),
        };
        let value = factor.map(|factor| value * factor);
        if let Some(value) = value.filter(|value| (0.0..MOST).contains(value)) {
            launch.metrics.insert(metric, value);
            continue;
        }
        let text = match printed.unit {
            _ if value.is_some() => IMPOSSIBLE.to_owned(),
            None => NO_UNITS.to_owned(),
            Some(unit) => format!(
                "the unit `{unit}` of {} is not known; it counts as not measured",
                metric.info().title
            ),
        };
        if !unknown.contains(&text) {
            unknown.push(text);
        }
    }
    shape_from_metrics(&mut launch);
    launch
}

/// The grid and the block of pages that leave out their columns.
fn shape_from_metrics(launch: &mut KernelLaunch) {
    let whole = |value: Option<f64>| {
        value.filter(|value| *value >= 1.0 && *value < 4e9).map(|value| [value as u32, 1, 1])
    };
    debug_assert_eq!(Metric::GridSize.info().unit, Unit::Count);
    if launch.shape.grid.is_none() {
        launch.shape.grid = whole(launch.get(Metric::GridSize));
    }
    if launch.shape.block.is_none() {
        launch.shape.block = whole(launch.get(Metric::BlockSize));
    }
}

impl Report {
    /// Takes in what another page of the same session says. The k-th launch of a kernel is the k-th launch of that kernel there.
    pub fn merge(&mut self, other: Self) {
        // Pages may write a kernel's name in different ways; where the whole name is not found, its base has to do.
        let whole = |a: &KernelLaunch, b: &KernelLaunch| a.kernel.signature == b.kernel.signature;
        let by_base = |a: &KernelLaunch, b: &KernelLaunch| a.kernel.base == b.kernel.base;
        let known = self.launches.len();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for launch in other.launches {
            let exact = self.launches[..known].iter().any(|target| whole(target, &launch));
            let key = if exact { &launch.kernel.signature } else { &launch.kernel.base };
            let nth = seen.entry(key.clone()).or_insert(0);
            let mut targets = self.launches[..known]
                .iter_mut()
                .filter(|target| if exact { whole(target, &launch) } else { by_base(target, &launch) });
            match targets.nth(*nth) {
                Some(target) => fill(target, launch),
                None => self.launches.push(launch),
            }
            *nth += 1;
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// Adds to a launch what it lacks.
fn fill(target: &mut KernelLaunch, other: KernelLaunch) {
    for (metric, value) in other.metrics {
        target.metrics.entry(metric).or_insert(value);
    }
    if target.lines.is_empty() {
        target.lines = other.lines;
    }
    if target.instructions.is_empty() {
        target.instructions = other.instructions;
    }
    if target.tool_rules.is_empty() {
        target.tool_rules = other.tool_rules;
    }
    let (shape, given) = (&mut target.shape, other.shape);
    shape.grid = shape.grid.or(given.grid);
    shape.block = shape.block.or(given.block);
    shape.device = shape.device.or(given.device);
    shape.device_name = shape.device_name.take().or(given.device_name);
    shape.compute_capability = shape.compute_capability.take().or(given.compute_capability);
    shape.stream = shape.stream.or(given.stream);
    shape.process = shape.process.or(given.process);
    target.origin.passes = target.origin.passes.or(other.origin.passes);
    for page in other.origin.pages {
        if !target.origin.pages.contains(&page) {
            target.origin.pages.push(page);
        }
    }
}

/// The launch and its passes in `==PROF== Profiling "reduce" - 0: 0%....50%....100% - 9 passes`.
fn passes(line: &str) -> Option<(u64, u32)> {
    let rest = line.strip_prefix("==PROF== Profiling")?;
    let (rest, passes) =
        rest.strip_suffix(" passes").or_else(|| rest.strip_suffix(" pass"))?.rsplit_once(" - ")?;
    let (rest, _) = rest.rsplit_once(": ")?;
    Some((rest.rsplit(" - ").next()?.parse().ok()?, passes.parse().ok()?))
}

/// A line for a message.
fn shorten(line: &str) -> String {
    if line.chars().count() <= 160 {
        return line.to_owned();
    }
    line.chars().take(159).chain(['…']).collect()
}
