//! What lines and modules of Python cost.

use serde::Serialize;

use super::launch::bound;
use super::words;
use crate::kernel::kernel_name;
use crate::profile::Profile;
use crate::python::{LineCopies, LineSum, Part, Peaks, Precision, PythonTime};
use crate::{text, units};

/// Lines and modules that are listed.
const MOST_LINES: usize = 60;
const MOST_MODULES: usize = 60;
/// Kernels and operators that are named at a line.
const MOST_NAMES: usize = 3;

/// The time of the device by line and by module.
#[derive(Debug, Serialize)]
pub(super) struct PythonView {
    kernel: String,
    attributed: String,
    /// Kernels that belong to no line.
    unattributed: Vec<String>,
    /// Whether classes are estimates, and from what.
    estimated: Option<String>,
    lines: Vec<LineView>,
    lines_left_out: usize,
    of_functions: bool,
    modules: Vec<ModuleView>,
    modules_left_out: usize,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LineView {
    place: String,
    function: String,
    heat: u32,
    time: String,
    share: String,
    width: String,
    launches: String,
    /// Its roofline class, its name in the style sheet, and what that rests on.
    class: Option<String>,
    bound: &'static str,
    class_why: String,
    backward: Option<String>,
    kernels: Vec<String>,
    operators: Vec<String>,
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ModuleView {
    path: String,
    time: String,
    own: String,
    share: String,
    width: String,
    launches: String,
}

impl PythonView {
    /// Of the times of a program.
    pub(super) fn of(python: &PythonTime, profile: &Profile) -> Self {
        let hottest = python.lines.iter().map(|line| line.share).fold(0.0, f64::max);
        let module = |module: &crate::python::ModuleSum| ModuleView {
            path: module.path.clone(),
            time: units::time(module.kernel_ns),
            own: units::time(module.own_ns),
            share: units::percent(module.share),
            width: words::width(module.share),
            launches: units::count(module.launches),
        };
        Self {
            kernel: units::time(python.kernel_ns),
            attributed: units::percent(python.attributed_share),
            unattributed: unattributed(python),
            estimated: python.peaks.as_ref().map(estimated),
            lines: python.lines.iter().take(MOST_LINES).map(|sum| line(sum, hottest, profile)).collect(),
            lines_left_out: python.lines.len().saturating_sub(MOST_LINES),
            of_functions: python.lines.iter().any(|line| line.precision == Precision::Function),
            modules: python.modules.iter().take(MOST_MODULES).map(module).collect(),
            modules_left_out: python.modules.len().saturating_sub(MOST_MODULES),
            notes: python.notes.iter().map(|note| note.text.clone()).collect(),
        }
    }
}

/// `12.0 µs in 3 launches of k`
fn unattributed(python: &PythonTime) -> Vec<String> {
    let one = |part: &Part| {
        let launches = units::counted(part.count, "launch", "launches");
        format!("{} in {launches} of {}", units::time(part.ns), kernel_name(&part.name).base)
    };
    python.unattributed.iter().take(MOST_NAMES).map(one).collect()
}

fn estimated(peaks: &Peaks) -> String {
    format!(
        "Where no counter was read, the class of a line is an estimate from the shapes of tensors, each moved once, beside what {} can at most: {} of memory ({}).",
        peaks.device,
        units::rate(peaks.bandwidth),
        peaks.source
    )
}

/// What the class of a line rests on: the operator with most of its time.
fn class_why(sum: &LineSum, profile: &Profile) -> String {
    let Some(roofline) = &sum.roofline else { return String::new() };
    if let Some(why) = &roofline.unknown {
        return format!("no roofline class: {why}");
    }
    let peaks = profile.python.as_ref().and_then(|python| python.peaks.as_ref());
    let told = sum.estimates.iter().find(|operator| operator.bound == Some(roofline.bound));
    let words = told
        .zip(peaks)
        .and_then(|(operator, peaks)| Some(format!("{}: {}", operator.label(), operator.words(peaks)?)));
    words.unwrap_or_default()
}

fn line(sum: &LineSum, hottest: f64, profile: &Profile) -> LineView {
    let mut remarks = Vec::new();
    let waits = sum.waits.iter().fold((0, 0), |(count, ns), wait| (count + wait.count, ns + wait.ns));
    if waits.0 > 0 {
        let times = units::counted(waits.0, "time", "times");
        remarks.push(format!("waits {times}, {}", units::time(waits.1)));
    }
    remarks.extend(copies("to the device", sum.to_device));
    remarks.extend(copies("to the host", sum.to_host));
    LineView {
        place: format!("{}:{}", sum.file, sum.line),
        function: sum.function.clone(),
        heat: if hottest > 0.0 { (sum.share / hottest * 10.0).round() as u32 } else { 0 },
        time: units::time(sum.kernel_ns),
        share: units::percent(sum.share),
        width: words::width(sum.share),
        launches: units::counted(sum.launches, "kernel", "kernels"),
        class: text::class(sum, profile),
        bound: sum.roofline.as_ref().map_or("unknown", |roofline| bound(roofline.bound)),
        class_why: class_why(sum, profile),
        backward: (sum.backward_ns > 0).then(|| units::time(sum.backward_ns)),
        kernels: named(&sum.kernels, |name| kernel_name(name).base),
        operators: named(&sum.operators, str::to_owned),
        remarks,
    }
}

fn named(parts: &[Part], shown: impl Fn(&str) -> String) -> Vec<String> {
    let named = parts.iter().filter(|part| !part.name.is_empty()).take(MOST_NAMES);
    named.map(|part| shown(&part.name)).collect()
}

fn copies(way: &str, copies: LineCopies) -> Option<String> {
    let pageable = match copies.pageable {
        0 => String::new(),
        pageable if pageable == copies.count => ", pageable".to_owned(),
        pageable => format!(", {} of them pageable", units::count(pageable)),
    };
    (copies.count > 0).then(|| {
        let times = units::counted(copies.count, "copy", "copies");
        format!("{times} {way}: {} in {}{pageable}", units::size(copies.bytes), units::time(copies.ns))
    })
}
