//! The program around its kernels: idle time, shares with ceilings, copies, waits, and lines of Python.

use super::{LIMIT, LINE, NUMBER, Piece, ROW};
use crate::profile::Profile;
use crate::python::PythonTime;
use crate::report::file_name;
use crate::system::{self, CopySum, Device, DeviceTime, KernelSum, System};
use crate::text;
use crate::units::{counted, percent, rate, size, time};

/// Kernels that are listed, by share.
const MOST_KERNELS: usize = 8;
/// Calls that wait, lines of Python and operators that are listed.
const MOST_ROWS: usize = 6;

pub(super) fn pieces(profile: &Profile) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(system) = &profile.system {
        of_system(system, profile.python.as_ref(), &mut pieces);
    }
    if let Some(python) = &profile.python {
        of_python(python, profile, &mut pieces);
    }
    pieces
}

fn of_system(system: &System, python: Option<&PythonTime>, pieces: &mut Vec<Piece>) {
    if let Some((device, spent)) = system.busiest() {
        pieces.push(Piece::new(NUMBER, 1, busy(device, spent)));
    }
    for (at, kernel) in (0..).zip(system.kernels.iter().flatten().take(MOST_KERNELS)) {
        pieces.push(Piece::new(ROW, 2 + at * 3, row(kernel)));
    }
    for (at, limit) in (0..).zip(system::explain(system, python)) {
        let place = limit.lines.first().map(|line| format!("{}:{}: ", file_name(&line.file), line.line));
        let text = format!(
            "- {}{} Gain: at most {} of the time ({}).",
            place.unwrap_or_default(),
            limit.limits,
            percent(limit.gain.share),
            limit.gain.formula
        );
        pieces.push(Piece::new(LIMIT, 4 + at * 5, text));
    }
    for (at, copy) in (0..).zip(system.copies.iter().flatten()) {
        pieces.push(Piece::new(NUMBER, 20 + at, copied(copy)));
    }
    let waiting = system.calls.iter().flatten().filter(|call| call.class.waits());
    for (at, call) in (0..).zip(waiting.take(MOST_ROWS)) {
        let waits = counted(call.count, "wait", "waits");
        let text = format!("- {waits} in {}, {} in all", call.name, time(call.total_ns));
        pieces.push(Piece::new(NUMBER, 22 + at, text));
    }
}

/// `The device was busy 1.20 ms of 3.40 ms; idle 65%: launching 41%, the host at work 20%.`
fn busy(device: &Device, spent: &DeviceTime) -> String {
    let base = spent.base_ns();
    let idle = &spent.idle;
    let causes = [
        ("waiting for the host to launch", idle.launch.ns),
        ("the host waited for the device", idle.synchronization.ns),
        ("the host did something else", idle.host_at_work().ns),
        ("allocating", idle.allocation.ns),
        ("for an unknown cause", idle.unknown.ns),
    ];
    let causes = causes
        .into_iter()
        .filter(|(_, ns)| *ns > 0)
        .map(|(cause, ns)| format!("{cause} {}", percent(system::model::share(ns, base))));
    let causes: Vec<String> = causes.collect();
    let why = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
    let name = device.name.as_deref().unwrap_or("The device");
    format!(
        "{name} was busy {} of {}; idle {}{why}.",
        time(spent.busy_ns),
        time(base),
        percent(spent.idle_share())
    )
}

fn row(kernel: &KernelSum) -> String {
    let ceiling = kernel
        .ceiling
        .map(|ceiling| format!("; without it the program is at most {ceiling:.2} times faster (Amdahl)"));
    let tiny = match kernel.tiny {
        0 => String::new(),
        tiny => format!("; {} under 5 µs", counted(tiny, "launch", "launches")),
    };
    format!(
        "- {} of the kernels' time: `{}`, {}, median {}{}{tiny}",
        percent(kernel.share),
        crate::kernel::kernel_name(&kernel.name).base,
        counted(kernel.count, "launch", "launches"),
        time(kernel.median_ns),
        ceiling.unwrap_or_default(),
    )
}

fn copied(copy: &CopySum) -> String {
    let rate = copy.rate.map(|bytes| format!(" at {}", rate(bytes))).unwrap_or_default();
    let pageable = if copy.route.is_pageable() { " (pageable)" } else { "" };
    format!(
        "- {} {}{pageable}, {} in {}{rate}",
        counted(copy.count, "copy", "copies"),
        copy.route.direction.label(),
        size(copy.bytes),
        time(copy.total_ns),
    )
}

fn of_python(python: &PythonTime, profile: &Profile, pieces: &mut Vec<Piece>) {
    for (at, line) in (0..).zip(python.lines.iter().filter(|line| line.kernel_ns > 0).take(MOST_ROWS)) {
        let class = text::class(line, profile).map(|class| format!(", {class}")).unwrap_or_default();
        let operators: Vec<&str> = line.operators.iter().take(3).map(|part| part.name.as_str()).collect();
        let text = format!(
            "- {}:{}: {} of the kernels' time, {}{class}; {}",
            file_name(&line.file),
            line.line,
            percent(line.share),
            counted(line.launches, "launch", "launches"),
            operators.join(", "),
        );
        pieces.push(Piece::new(LINE, 3 + at * 4, text));
        let estimated = line.estimates.first().zip(python.peaks.as_ref());
        let words = estimated.and_then(|(operator, peaks)| Some((operator, operator.words(peaks)?)));
        if let Some((operator, words)) = words {
            let text = format!("  by its shapes, {} moves {words}", operator.label());
            pieces.push(Piece::new(NUMBER, 5 + at * 4, text));
        }
    }
    if let Some(call) = &python.call {
        let took = crate::units::interval(call.median_ns, call.low_ns, call.high_ns);
        pieces.push(Piece::new(NUMBER, 1, format!("A call takes {took}; no profiler looked into it.")));
    }
    let Some(host) = &python.host else { return };
    let text = format!("Operators took {} on the CPU; no kernel ran on a GPU.", time(host.operator_ns));
    pieces.push(Piece::new(NUMBER, 1, text));
    for (at, line) in (0..).zip(host.lines.iter().take(MOST_ROWS)) {
        let operators: Vec<&str> = line.operators.iter().take(3).map(|part| part.name.as_str()).collect();
        let text = format!(
            "- {}:{}: {} of the operators' time; {}",
            file_name(&line.file),
            line.line,
            percent(line.share),
            operators.join(", "),
        );
        pieces.push(Piece::new(LINE, 2 + at * 4, text));
    }
    for (at, part) in (0..).zip(host.operators.iter().take(MOST_ROWS)) {
        let share = percent(system::model::share(part.ns, host.operator_ns));
        let text = format!(
            "- {share} of the operators' time: {}, {}",
            part.name,
            counted(part.count, "call", "calls")
        );
        pieces.push(Piece::new(ROW, 3 + at * 4, text));
    }
}
