//! What was measured as a text, for prompts, reports and terminals.

use std::fmt::Write;
use std::path::Path;

use super::sample::Interval;
use super::{Cost, Measured, Time, Timed};
use crate::demangle;

/// Lines of a kernel that are shown.
const MOST_LINES: usize = 12;

/// A table of what was measured by kernel, and of what was counted by kernel and line. Lines of `file` are by number alone, others with the
/// name of their file.
pub fn table(measured: &Measured, file: &Path) -> String {
    let mut text = match &measured.cost.time {
        Some(time) => timed(&measured.cost, time),
        None => format!(
            "Counted on {}; an estimate of {:.0} cycles in all, no measured time.\n",
            measured.cost.device, measured.cost.cycles
        ),
    };
    if measured.cost.time.is_some() && !measured.report.kernels.is_empty() {
        text.push_str("Counted by the simulator, for the same inputs:\n");
    }
    for kernel in &measured.report.kernels {
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "{}: {}\n  {}",
            demangle::name(&kernel.name).display(),
            kernel.shape(),
            kernel.totals()
        );
        for line in kernel.heaviest(MOST_LINES) {
            let _ = writeln!(text, "  {}: {}", place(&line.file, line.line, file), line.count.words());
        }
    }
    text
}

/// Measured times.
fn timed(cost: &Cost, time: &Time) -> String {
    let what = match time.of {
        Timed::Kernels => "a call of each kernel",
        Timed::Process => "the whole process",
        Timed::Call => "one call",
    };
    let mut text = format!("Measured on {}: {what} takes {}.\n", cost.device, interval(&time.microseconds));
    for kernel in &cost.kernels {
        let Some(time) = &kernel.microseconds else { continue };
        let moved =
            kernel.traffic.map(|traffic| format!("; {}", traffic.words(time.median))).unwrap_or_default();
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}: {}{moved}", kernel.name, interval(time));
    }
    for note in &time.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// Microseconds with their interval, in a readable unit: `12.31 µs (12.25 to 12.40, 12 rounds)`.
pub fn interval(time: &Interval) -> String {
    let (unit, factor) = if time.median >= 1e4 { ("ms", 1e-3) } else { ("µs", 1.0) };
    let [median, low, high] = [time.median, time.low, time.high].map(|value| value * factor);
    format!("{median:.2} {unit} ({low:.2} to {high:.2}, {} rounds)", time.samples)
}

fn place(file: &str, line: u32, of: &Path) -> String {
    let name = Path::new(file).file_name();
    match name {
        Some(name) if name != of.file_name().unwrap_or_default() => {
            format!("{}:{line}", name.to_string_lossy())
        }
        _ => format!("line {line}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{KernelCost, Traffic};
    use super::*;
    use crate::simulation::Report;

    #[test]
    fn measured_times_say_where_they_come_from() {
        let time = Interval { median: 125.0, low: 124.0, high: 127.0, samples: 12 };
        let traffic = Traffic { bytes: 400_000_000, arrays: 400_000_000, peak: 4_000_000_000_000, l2: 1 };
        let kernel = KernelCost {
            name: "copy".into(),
            microseconds: Some(time),
            traffic: Some(traffic),
            ..KernelCost::default()
        };
        let cost = Cost::measured("cuda:0 (NVIDIA H200)".into(), vec![kernel], vec!["A note.".into()]);
        let text = table(&Measured { cost, report: Arc::new(Report::default()) }, Path::new("/w/k.cu"));
        assert_eq!(
            text,
            "Measured on cuda:0 (NVIDIA H200): a call of each kernel takes 125.00 µs (124.00 to 127.00, 12 rounds).\n\
             copy: 125.00 µs (124.00 to 127.00, 12 rounds); at least 400 MB, 3.20 TB/s, 80% of the memory's 4.00 TB/s\nA note.\n"
        );
        assert_eq!(interval(&time.times(1e3)), "125.00 ms (124.00 to 127.00, 12 rounds)");
    }
}
