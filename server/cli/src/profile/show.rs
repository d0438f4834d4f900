//! A profile for a person: the program first, then its kernels, then what a reader has to know.

use std::io::{self, Write};

use stitch_profiles::kernel::{Explanation, KernelLaunch, Metric};
use stitch_profiles::note::NoteKind;
use stitch_profiles::profile::Profile;
use stitch_profiles::python::{HostTime, LineSum, PythonTime};
use stitch_profiles::system::{self, CopySum, KernelSum, System};

use stitch_profiles::text;
use stitch_profiles::units::{counted, interval, percent, rate, size, time};

use super::{Run, human};

/// Kernels of a program that are listed.
const MOST_KERNELS: usize = 10;
/// Calls of the CUDA API that are listed.
const MOST_CALLS: usize = 5;
/// Insights of a kernel that are told.
const MOST_INSIGHTS: usize = 6;
/// Lines of Python that are listed.
const MOST_LINES: usize = 12;
/// Kernels of no line that are listed.
const MOST_UNATTRIBUTED: usize = 5;

/// Prints a profile, what limits the program, and what limits each launch.
///
/// # Errors
/// Writing to `out`.
pub(super) fn print(
    profile: &Profile,
    limits: &[system::Insight],
    explanations: &[Explanation],
    run: Option<&Run<'_>>,
    out: &mut impl Write,
) -> io::Result<()> {
    let device = profile.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    writeln!(out, "{}{device}, by {}", profile.target, profile.way.by)?;
    if profile.way.kept {
        writeln!(
            out,
            "  measured {} and kept: nothing that it rests on has changed since; `--fresh` measures again",
            profile.way.measured
        )?;
    }
    for not in &profile.way.not_taken {
        writeln!(out, "  not by {}: {}", not.by, not.why)?;
    }
    if let Some(run) = run {
        human::print(run, out)?;
    }
    if let Some(system) = &profile.system {
        print_system(system, out)?;
    }
    for limit in limits.iter().take(MOST_INSIGHTS) {
        print_limit(limit, out)?;
    }
    if let Some(python) = &profile.python {
        print_python(python, profile, out)?;
    }
    for (launch, explanation) in profile.launches.iter().zip(explanations) {
        // What the simulator counted of it stands above.
        if run.is_none() {
            print_shape(launch, explanation, out)?;
        } else {
            writeln!(out, "\n{}\n  {}", launch.kernel.signature, explanation.class.label())?;
        }
        print_insights(explanation, out)?;
    }
    for defect in &profile.defects {
        let place =
            defect.place().map(|place| format!("{}:{}: ", place.file, place.line)).unwrap_or_default();
        writeln!(out, "\n{place}{} [{}]", defect.message(), defect.kind.code().as_str())?;
    }
    for note in &profile.notes {
        let label = if note.kind == NoteKind::Unreadable { "warning" } else { "note" };
        writeln!(out, "\n{label}: {}", note.text)?;
    }
    Ok(())
}

fn print_limit(limit: &system::Insight, out: &mut impl Write) -> io::Result<()> {
    let place = limit.lines.first().map(|line| format!("{}:{}: ", line.file, line.line)).unwrap_or_default();
    writeln!(out, "\n{place}{} [{}]", limit.limits, limit.code.as_str())?;
    writeln!(out, "    gain: at most {} of the time ({})", percent(limit.gain.share), limit.gain.formula)?;
    writeln!(out, "    {}", limit.advice)
}

fn print_host(host: &HostTime, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nThe time of operators on the CPU by line, {} in all", time(host.operator_ns))?;
    for line in host.lines.iter().take(MOST_LINES) {
        let operators: Vec<&str> = line.operators.iter().take(3).map(|part| part.name.as_str()).collect();
        let place = format!("{}:{}", line.file, line.line);
        writeln!(
            out,
            "{:>10}  {:>5}  {place}  {}",
            time(line.ns),
            percent(line.share),
            operators.join(", ")
        )?;
    }
    writeln!(out, "\nBy operator, without those that it calls")?;
    for part in host.operators.iter().take(MOST_LINES) {
        writeln!(out, "{:>10}  {}, {}", time(part.ns), part.name, counted(part.count, "call", "calls"))?;
    }
    Ok(())
}

fn print_python(python: &PythonTime, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    if let Some(host) = &python.host {
        print_host(host, out)?;
    }
    if let Some(call) = &python.call {
        let took = interval(call.median_ns, call.low_ns, call.high_ns);
        writeln!(out, "\nA call takes {took}, in {}", counted(call.calls, "call", "calls"))?;
        writeln!(out, "  {}", call.basis)?;
    }
    if !python.lines.is_empty() {
        writeln!(out, "\nThe time of the GPU by line")?;
    }
    for line in python.lines.iter().take(MOST_LINES) {
        let launches = counted(line.launches, "kernel", "kernels");
        let place = format!("{}:{}", line.file, line.line);
        let class = text::class(line, profile).map(|class| format!(" · {class}")).unwrap_or_default();
        writeln!(
            out,
            "  {:>10}  {:>5}  {place}  {launches}{class}",
            time(line.kernel_ns),
            percent(line.share)
        )?;
        print_estimate(line, python, out)?;
    }
    if python.kernel_ns > 0 {
        print_attributed(python, out)?;
    }
    Ok(())
}

/// What the class of a line rests on: the operator that took most of it. Or why there is none.
fn print_estimate(line: &LineSum, python: &PythonTime, out: &mut impl Write) -> io::Result<()> {
    let Some(roofline) = &line.roofline else { return Ok(()) };
    if let Some(why) = &roofline.unknown {
        return writeln!(out, "      no roofline class: {why}");
    }
    let told = line.estimates.iter().find(|operator| operator.bound == Some(roofline.bound));
    let words = told.zip(python.peaks.as_ref());
    match words.and_then(|(operator, peaks)| Some((operator, operator.words(peaks)?))) {
        Some((operator, words)) => writeln!(out, "      by its shapes: {}, {words}", operator.label()),
        None => Ok(()),
    }
}

/// How much of the time the lines account for, and what they do not.
fn print_attributed(python: &PythonTime, out: &mut impl Write) -> io::Result<()> {
    let all = system::model::share(python.attributed_ns, python.kernel_ns);
    let left_out = python.lines.len().saturating_sub(MOST_LINES);
    let shown: u64 = python.lines.iter().take(MOST_LINES).map(|line| line.kernel_ns).sum();
    let shown = match left_out {
        0 => String::new(),
        more => {
            let share = exact_percent(system::model::share(shown, python.kernel_ns));
            format!(", those above for {share}; {more} more with `--format json`")
        }
    };
    writeln!(out, "  lines account for {} of the GPU time{shown}", exact_percent(all))?;
    for part in python.unattributed.iter().take(MOST_UNATTRIBUTED) {
        let launches = counted(part.count, "launch", "launches");
        let name = stitch_profiles::kernel::kernel_name(&part.name).base;
        let of = percent(system::model::share(part.ns, python.kernel_ns));
        writeln!(out, "  {:>10}  {of:>5}  of no line: {name}, {launches}", time(part.ns))?;
    }
    let more = python.unattributed.len().saturating_sub(MOST_UNATTRIBUTED);
    if more > 0 {
        writeln!(out, "  and {more} more of no line")?;
    }
    Ok(())
}

/// A percentage of which the last tenth counts. All is only what is all.
fn exact_percent(share: f64) -> String {
    let share = if share < 1.0 { (share * 1e3).floor() / 10.0 } else { 100.0 };
    format!("{share:.1}%")
}

fn print_system(system: &System, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nThe program: {} from its first event to its last", time(system.span_ns))?;
    for (device, spent) in system.devices.iter().filter_map(|device| Some((device, device.time.as_ref()?))) {
        let name = device.name.as_deref().unwrap_or("the device");
        writeln!(
            out,
            "  device {} ({name}): busy {} of {}, idle {} of it",
            device.id,
            time(spent.busy_ns),
            time(spent.base_ns()),
            percent(spent.idle_share())
        )?;
    }
    for kernel in system.kernels.iter().flatten().take(MOST_KERNELS) {
        writeln!(out, "  {}", kernel_row(kernel))?;
    }
    let more = system.kernels.as_ref().map_or(0, |kernels| kernels.len().saturating_sub(MOST_KERNELS));
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    for copy in system.copies.iter().flatten() {
        writeln!(out, "  {}", copy_row(copy))?;
    }
    let waiting = system.calls.iter().flatten().filter(|call| call.class.waits());
    for call in waiting.take(MOST_CALLS) {
        let waits = counted(call.count, "wait", "waits");
        writeln!(out, "  {:>10}  {waits} in {}", time(call.total_ns), call.name)?;
    }
    Ok(())
}

fn kernel_row(kernel: &KernelSum) -> String {
    let launches = counted(kernel.count, "launch", "launches");
    let ceiling =
        kernel.ceiling.map(|ceiling| format!(", {ceiling:.2}x at most without it")).unwrap_or_default();
    format!(
        "{:>10}  {:>5}  {}  {launches}, median {}{ceiling}",
        time(kernel.total_ns),
        percent(kernel.share),
        stitch_profiles::kernel::kernel_name(&kernel.name).base,
        time(kernel.median_ns),
    )
}

fn copy_row(copy: &CopySum) -> String {
    let rate = copy.rate.map(|bytes| format!(", {}", rate(bytes))).unwrap_or_default();
    let pageable = if copy.route.is_pageable() { " (pageable)" } else { "" };
    format!(
        "{:>10}  {} {}{pageable}, {}{rate}",
        time(copy.total_ns),
        counted(copy.count, "copy", "copies"),
        copy.route.direction.label(),
        size(copy.bytes)
    )
}

fn print_shape(launch: &KernelLaunch, explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{}", launch.kernel.signature)?;
    let shape = [("grid", launch.shape.grid), ("block", launch.shape.block)];
    let mut about: Vec<String> = shape
        .into_iter()
        .filter_map(|(name, size)| Some(format!("{name} {}", size?.map(|size| size.to_string()).join(" x "))))
        .collect();
    about.extend(
        launch
            .get(Metric::Duration)
            .map(|seconds| format!("{} under the profiler", time((seconds * 1e9) as u64))),
    );
    about.extend(launch.get(Metric::Registers).map(|count| format!("{count:.0} registers a thread")));
    writeln!(out, "  {}", about.join(", "))?;
    writeln!(out, "  {}", explanation.class.label())
}

fn print_insights(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    for insight in explanation.insights.iter().take(MOST_INSIGHTS) {
        let place = insight
            .place
            .as_ref()
            .map(|place| format!("{}:{}: ", place.file, place.line))
            .unwrap_or_default();
        writeln!(out, "  {place}{} [{}]", insight.limits, insight.code.as_str())?;
        if let Some(gain) = &insight.gain {
            writeln!(out, "      gain: {}", gain.label())?;
        }
        writeln!(out, "      {}", insight.advice)?;
    }
    let more = explanation.insights.len().saturating_sub(MOST_INSIGHTS);
    if more > 0 {
        writeln!(out, "  and {more} more, with `--format json`")?;
    }
    Ok(())
}
