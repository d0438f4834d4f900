//! One launch of a kernel, or several, in words: class and roofline, occupancy, what warps wait for, what accesses ask for, what could be gained.

use std::fmt::Write;

use super::{Occupancy, bars, code, occupancy, short};
use crate::kernel::{
    Bound, Class, Explanation, Insight, Intensity, KernelLaunch, Metric, explain, intensity, roofline_rows,
    stall_shares,
};
use crate::units;

/// Reasons to wait that are shown, and the least part of a warp's time that is.
const MOST_STALLS: usize = 5;
const LEAST_STALL: f64 = 0.02;

/// Limits that are told.
const MOST_INSIGHTS: usize = 3;

/// Other launches of the same kernel that are listed.
const MOST_LAUNCHES: usize = 4;

/// All launches of one kernel: the one that took longest closely, the others in a row each. `None` for none.
pub fn launches(launches: &[&KernelLaunch], known: impl Fn(&KernelLaunch) -> Occupancy) -> Option<String> {
    let took = |launch: &KernelLaunch| launch.get(Metric::Duration).unwrap_or(0.0);
    let mut order: Vec<&&KernelLaunch> = launches.iter().collect();
    order.sort_by(|a, b| took(b).total_cmp(&took(a)));
    let (first, others) = order.split_first()?;
    let mut text = launch(first, &known(first));
    if !others.is_empty() {
        let _ = writeln!(text, "\nOther launches that were looked at:\n");
        for other in others.iter().take(MOST_LAUNCHES) {
            let time = duration(other).map(|time| format!("{time}, ")).unwrap_or_default();
            let _ = writeln!(text, "- {}: {time}{}", shape(other), Class::of(other).label());
        }
        if others.len() > MOST_LAUNCHES {
            let _ = writeln!(text, "- and {} more", others.len() - MOST_LAUNCHES);
        }
    }
    Some(text)
}

/// One launch.
pub fn launch(launch: &KernelLaunch, known: &Occupancy) -> String {
    let explanation = explain(launch);
    let mut parts = vec![head(launch, &explanation.class), roofline(launch, &explanation.class)];
    parts.push(occupancy::table(launch, known));
    parts.push(accesses(launch));
    parts.push(stalls(launch));
    parts.push(limits(&explanation));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// `**Memory-bound by device memory** · 135 µs under the profiler · 131,072 blocks of 256 threads · Nsight Compute`.
fn head(launch: &KernelLaunch, class: &Class) -> String {
    let mut words = vec![format!("**{}**", class.label())];
    words.extend(duration(launch).map(|time| format!("{time} under the profiler")));
    words.push(shape(launch));
    words.push(launch.origin.tool.clone());
    words.extend(launch.shape.device_name.clone());
    words.retain(|word| !word.is_empty());
    let mut text = words.join(" · ") + "\n";
    if class.bound == Bound::Unknown {
        text.push_str(
            "\nThe roofline class takes the throughput of computing and of memory, which were not measured.\n",
        );
    }
    text
}

fn duration(launch: &KernelLaunch) -> Option<String> {
    launch.get(Metric::Duration).map(|seconds| units::time((seconds * 1e9).round() as u64))
}

fn shape(launch: &KernelLaunch) -> String {
    let volume = |sizes: [u32; 3]| sizes.iter().fold(1_u64, |all, one| all.saturating_mul(u64::from(*one)));
    let blocks = launch.shape.grid.map(|grid| units::counted(volume(grid), "block", "blocks"));
    let threads = launch.shape.block.map(|block| units::counted(volume(block), "thread", "threads"));
    match (blocks, threads) {
        (Some(blocks), Some(threads)) => format!("{blocks} of {threads}"),
        (blocks, threads) => blocks.or(threads).unwrap_or_default(),
    }
}

/// What was reached of each roof, and where the kernel stands on the roofline.
fn roofline(launch: &KernelLaunch, class: &Class) -> String {
    let rows: Vec<_> = roofline_rows(launch)
        .into_iter()
        .map(|(label, percent)| {
            let mut remark = units::percent(percent / 100.0);
            if label == "device memory"
                && let Some(rate) = launch.get(Metric::DramRate)
            {
                let _ = write!(remark, ", {}", units::rate(rate));
            }
            (label, percent / 100.0, remark)
        })
        .collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text.push_str("Roofline, each of its own peak:\n\n");
        text.push_str(&bars(&rows));
    }
    if let Some(found) = intensity(launch) {
        text.push('\n');
        text.push_str(&position(&found, launch, class));
    }
    text
}

/// `0.12 FP32 operations a byte of device memory; the ridge is at 13.8. …`.
fn position(found: &Intensity, launch: &KernelLaunch, class: &Class) -> String {
    let (value, ridge) = (found.value(), found.ridge());
    let side = match value < ridge {
        true => "Left of it, bandwidth is the lower roof",
        false => "Right of it, computing is the lower roof",
    };
    let mut text = format!(
        "{} {} operations a byte of device memory; the ridge is at {} ({} over {}). {side}",
        digits(value),
        found.precision.label(),
        digits(ridge),
        operations(found.peak_operations),
        units::rate(found.peak_bytes),
    );
    if let Some(seconds) = launch.get(Metric::Duration).filter(|seconds| *seconds > 0.0) {
        let rate = found.operations / seconds;
        let _ = write!(text, ": {} of {} are reached", operations(rate), operations(found.roof()));
        if class.bound == Bound::Latency {
            text.push_str(", so neither bounds it");
        }
    }
    text + ".\n"
}

/// Three digits, whatever the size.
fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => units::count(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value if value >= 0.001 => format!("{value:.3}"),
        value => format!("{value:.1e}"),
    }
}

/// Operations a second: `66.5 TFLOP/s`.
fn operations(rate: f64) -> String {
    let (value, prefix) = match rate {
        rate if rate >= 1e12 => (rate / 1e12, "T"),
        rate if rate >= 1e9 => (rate / 1e9, "G"),
        rate => (rate / 1e6, "M"),
    };
    format!("{} {prefix}FLOP/s", digits(value))
}

/// What accesses ask for beside what they need, as far as that was counted.
fn accesses(launch: &KernelLaunch) -> String {
    let count = |value: f64| units::count(value.round() as u64);
    let against = |asked: Metric, ideal: Metric| {
        let (asked, ideal) = (launch.get(asked)?, launch.get(ideal).filter(|ideal| *ideal > 0.0)?);
        Some(format!("| {} | {} | {:.2} times |", count(asked), count(ideal), asked / ideal))
    };
    let mut rows = Vec::new();
    rows.extend(
        against(Metric::GlobalSectors, Metric::GlobalSectorsIdeal)
            .map(|row| format!("| sectors of global memory {row}")),
    );
    rows.extend(
        against(Metric::SharedWavefronts, Metric::SharedWavefrontsIdeal)
            .map(|row| format!("| wavefronts of shared memory {row}")),
    );
    rows.extend(
        launch
            .get(Metric::ThreadsPerInstruction)
            .map(|lanes| format!("| lanes at work in an instruction | {lanes:.1} | 32 | |")),
    );
    match rows.is_empty() {
        true => String::new(),
        false => format!("| accesses | asked for | at best | |\n|---|---:|---:|---:|\n{}\n", rows.join("\n")),
    }
}

/// What warps wait for.
fn stalls(launch: &KernelLaunch) -> String {
    let shares = stall_shares(launch);
    let shown = shares.iter().filter(|(_, share)| *share >= LEAST_STALL).take(MOST_STALLS);
    let rows: Vec<_> =
        shown.map(|(stall, share)| (stall.label().to_owned(), *share, units::percent(*share))).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("Where warps spend their time:\n\n{}", bars(&rows)),
    }
}

/// What limits, with the estimates that are largest. The class is said above.
fn limits(explanation: &Explanation) -> String {
    let told: Vec<&Insight> = explanation.insights.iter().filter(|insight| !insight.is_class()).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut text = String::from("What limits it:\n\n");
    for insight in told.iter().take(MOST_INSIGHTS) {
        let line = insight.place.as_ref().map(|place| format!("line {}: ", place.line)).unwrap_or_default();
        let gain = match &insight.gain {
            Some(gain) => format!(" **Gain: {}.**", gain.label()),
            None => String::new(),
        };
        let _ = writeln!(text, "- {line}{}{gain} {}", short(&insight.limits, 300), insight.advice);
    }
    if told.len() > MOST_INSIGHTS {
        let rest: Vec<String> =
            told.iter().skip(MOST_INSIGHTS).map(|insight| code(insight.code.as_str())).collect();
        let _ = writeln!(text, "- and {}", rest.join(", "));
    }
    text
}
