//! A line or a module of Python in words: its kernels and operators with their shares, where it waits, what it copies.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{cell, code, short};
use crate::kernel::{Bound, Class};
use crate::profile::Profile;
use crate::python::estimate::MOST_OF_IT;
use crate::python::{LineCopies, LineSum, ModuleSum, OperatorEstimate, Part, Precision};
use crate::units;

/// Kernels and operators that are listed.
const MOST_KERNELS: usize = 6;
const MOST_OPERATORS: usize = 5;

/// Letters of a kernel's name that are shown: instantiations of PyTorch's take hundreds.
const MOST_LETTERS: usize = 60;

/// Operators whose estimates are told.
const MOST_ESTIMATES: usize = 3;

/// An estimate is told of an operator with at least this part of the line's time.
const WORTH: f64 = 0.05;

/// One line.
pub fn python_line(line: &LineSum, profile: &Profile) -> String {
    let launches = units::counted(line.launches, "kernel", "kernels");
    let mut text = format!(
        "**{} · {} of the GPU's time · {launches}**",
        units::time(line.kernel_ns),
        units::percent(line.share)
    );
    if let Some(class) = class(line, profile) {
        let _ = write!(text, " · {class}");
    }
    let _ = writeln!(text, " · {}\n", profile.way.by);
    if line.precision == Precision::Function {
        text.push_str(
            "These are the sums of the whole function: the profiler recorded no lines within it.\n\n",
        );
    }
    text.push_str(&estimated(line, profile));
    if line.backward_ns > 0 {
        let part = units::percent(line.backward_ns as f64 / line.kernel_ns.max(1) as f64);
        let _ = writeln!(text, "The backward pass has {part} of it, {}.\n", units::time(line.backward_ns));
    }
    text.push_str(&table("kernel", &line.kernels, MOST_KERNELS, line.kernel_ns));
    text.push_str(&table("operator", &line.operators, MOST_OPERATORS, line.kernel_ns));
    for wait in line.waits.iter().filter(|wait| wait.count > 0) {
        let within = if wait.name.is_empty() { String::new() } else { format!(" in {}", code(&wait.name)) };
        let times = units::times(wait.count);
        let _ = writeln!(text, "- waits for the device {times}{within}: {}", units::time(wait.ns));
    }
    text.push_str(&copies("to the device", line.to_device));
    text.push_str(&copies("to the host", line.to_host));
    text
}

/// One module.
pub fn module(sum: &ModuleSum) -> String {
    let launches = units::counted(sum.launches, "kernel", "kernels");
    let mut text = format!(
        "- {}: {} · {} of the GPU's time · {launches}",
        code(&sum.path),
        units::time(sum.kernel_ns),
        units::percent(sum.share)
    );
    if sum.own_ns < sum.kernel_ns {
        let _ = write!(text, "; {} of it not in modules within", units::time(sum.own_ns));
    }
    text + "\n"
}

/// The roofline class that has most of the time of a line's kernels: `memory-bound`. As a profiler measured it, or else as the shapes of tensors make it.
pub fn class(line: &LineSum, profile: &Profile) -> Option<String> {
    let estimated =
        || line.roofline.as_ref().map(|found| found.bound).filter(|bound| *bound != Bound::Unknown);
    measured_class(line, profile).or_else(|| estimated().map(|bound| bound.label().to_owned()))
}

/// The class by counters that a profiler read.
fn measured_class(line: &LineSum, profile: &Profile) -> Option<String> {
    let mut times: BTreeMap<&'static str, u64> = BTreeMap::new();
    for kernel in &line.kernels {
        let measured = profile.launches.iter().find(|launch| launch.kernel.signature == kernel.name);
        let bound = measured.map(|launch| Class::of(launch).bound).filter(|bound| *bound != Bound::Unknown);
        if let Some(bound) = bound {
            *times.entry(bound.label()).or_default() += kernel.ns;
        }
    }
    let (class, ns) = times.into_iter().max_by_key(|(_, ns)| *ns)?;
    (ns as f64 >= MOST_OF_IT * line.kernel_ns as f64).then(|| class.to_owned())
}

/// What the class rests on where no counter was read, or why there is none.
fn estimated(line: &LineSum, profile: &Profile) -> String {
    if measured_class(line, profile).is_some() {
        return String::new();
    }
    let Some(roofline) = &line.roofline else { return String::new() };
    let mut text = match &roofline.unknown {
        Some(why) => format!("No roofline class: {why}.\n\n"),
        None => format!(
            "Its class is an estimate from the shapes of tensors, each moved once; no counter was read. {} of its time is {}.\n\n",
            units::percent(roofline.share),
            roofline.bound.label()
        ),
    };
    let Some(peaks) = profile.python.as_ref().and_then(|python| python.peaks.as_ref()) else { return text };
    let told = line.estimates.iter().filter(|operator| operator.ns as f64 >= WORTH * line.kernel_ns as f64);
    let rows = told.filter_map(|operator| Some((operator, operator.bound?, operator.words(peaks)?)));
    for (operator, bound, words) in rows.take(MOST_ESTIMATES) {
        let _ = writeln!(text, "- {} is {}: {words}", named(operator), bound.label());
    }
    if !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

/// `aten::mm` of float [64, 64]
fn named(operator: &OperatorEstimate) -> String {
    let name = if operator.name.is_empty() { operator.label().to_owned() } else { code(&operator.name) };
    match operator.shapes.is_empty() {
        true => name,
        false => format!("{name} of {}", operator.shapes.replace(['`', '\n', '\r', '|'], "'")),
    }
}

fn table(what: &str, parts: &[Part], most: usize, all_ns: u64) -> String {
    let parts: Vec<&Part> = parts.iter().filter(|part| part.count > 0).collect();
    if parts.is_empty() {
        return String::new();
    }
    let mut text = format!("| {what} | time | of the line | launches |\n|---|---:|---:|---:|\n");
    for part in parts.iter().take(most) {
        let share = part.ns as f64 / all_ns.max(1) as f64;
        let name = if part.name.is_empty() { "not known" } else { &part.name };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cell(&short(name, MOST_LETTERS)),
            units::time(part.ns),
            units::percent(share),
            units::count(part.count)
        );
    }
    if parts.len() > most {
        let _ = writeln!(text, "| and {} more | | | |", parts.len() - most);
    }
    text + "\n"
}

fn copies(way: &str, copies: LineCopies) -> String {
    if copies.count == 0 {
        return String::new();
    }
    let pageable = match copies.pageable {
        0 => String::new(),
        pageable if pageable == copies.count => ", from or to pageable memory".to_owned(),
        pageable => format!(", {} of them from or to pageable memory", units::count(pageable)),
    };
    let times = units::times(copies.count);
    format!("- copies {way} {times}: {} in {}{pageable}\n", units::size(copies.bytes), units::time(copies.ns))
}
