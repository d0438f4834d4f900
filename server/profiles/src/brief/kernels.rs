//! Kernels that were looked at closely: what bounds each, what limits it by how much, its worst lines, what its warps wait for.

use super::limits::{gain, weights};
use super::{LIMIT, LINE, NUMBER, Piece, ROW};
use crate::kernel::{
    Counters, Format, Insight, KernelLaunch, LineRow, Metric, explain, line_table, stall_shares,
};
use crate::profile::Profile;
use crate::report::{extent, file_name};
use crate::units::{count, percent};

/// Launches that are told, those with most of the time first.
const MOST_LAUNCHES: usize = 6;
/// Limits of one launch that are told.
const MOST_LIMITS: usize = 6;
/// Lines of one launch that are told.
const MOST_LINES: usize = 5;
/// Reasons to wait that are told, from this part of a warp's time on.
const WORTH: f64 = 0.1;
/// Ranks between one launch and the next, so that the first launch's limits outlive the third one's name.
const STEP: u32 = 6;

pub(super) fn pieces(profile: &Profile) -> Vec<Piece> {
    let weights = weights(profile);
    let mut launches: Vec<(&KernelLaunch, f64)> = profile.launches.iter().zip(weights).collect();
    launches.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut pieces = Vec::new();
    for (at, (launch, weight)) in (0..).zip(launches.into_iter().take(MOST_LAUNCHES)) {
        of_launch(launch, weight, at * STEP, &mut pieces);
    }
    pieces
}

fn of_launch(launch: &KernelLaunch, weight: f64, rank: u32, pieces: &mut Vec<Piece>) {
    let explanation = explain(launch);
    let shape = [("grid", launch.shape.grid), ("block", launch.shape.block)];
    let shape: String =
        shape.into_iter().filter_map(|(name, size)| Some(format!(", {name} {}", extent(size?)))).collect();
    let head = format!(
        "Kernel `{}`{shape}: {}. {} of what all kernels here cost.",
        launch.kernel.base,
        explanation.class.label(),
        percent(weight),
    );
    pieces.push(Piece::new(ROW, 1 + rank, head));
    for (at, insight) in (0..).zip(explanation.insights.iter().take(MOST_LIMITS)) {
        pieces.push(Piece::new(LIMIT, 2 + rank + at * 3, limit(launch, insight)));
    }
    let mut lines = line_table(launch);
    // The worst access first, then what moves most.
    lines.sort_by_key(|row| std::cmp::Reverse((!row.remarks.is_empty(), weight_of(&row.counters))));
    let told = lines.iter().filter(|row| weight_of(&row.counters) > 0);
    for (at, row) in (0..).zip(told.take(MOST_LINES)) {
        pieces.push(Piece::new(LINE, 3 + rank + at * 4, line(row)));
    }
    let stalls: Vec<String> = stall_shares(launch)
        .into_iter()
        .filter(|(_, share)| *share >= WORTH)
        .map(|(stall, share)| format!("{} {}", stall.label(), percent(share)))
        .collect();
    if !stalls.is_empty() {
        let text = format!("- warps of `{}` wait for: {}", launch.kernel.base, stalls.join(", "));
        pieces.push(Piece::new(NUMBER, 5 + rank, text));
    }
    pieces.extend(occupancy(launch).map(|text| Piece::new(NUMBER, 6 + rank, text)));
}

fn limit(launch: &KernelLaunch, insight: &Insight) -> String {
    let place = insight.place.as_ref().map(|place| format!("{}:{}: ", file_name(&place.file), place.line));
    let gain = match (&insight.gain, gain(launch, insight)) {
        (Some(gain), _) => format!(" Gain: {}.", gain.label()),
        (None, Some(share)) if share >= 0.005 => format!(
            " Gain: about {} of its estimated cycles: the excess in the part of its kind of work.",
            percent(share)
        ),
        _ => String::new(),
    };
    format!("- {}{}{gain}", place.unwrap_or_default(), insight.limits)
}

/// What a line moves and waits for, together.
fn weight_of(counters: &Counters) -> u64 {
    let parts = [counters.sectors, counters.local_sectors, counters.wavefronts, counters.samples];
    parts.into_iter().flatten().fold(0, u64::saturating_add)
}

/// `- e.cu:4: 64 sectors (64 needed), 8 divergent branches; 32-way bank conflict`
fn line(row: &LineRow) -> String {
    let of = &row.counters;
    let needed = |what: &str, many: Option<u64>, ideal: Option<u64>| {
        let many = many.filter(|many| *many > 0)?;
        let ideal = ideal.map(|ideal| format!(" ({} needed)", count(ideal))).unwrap_or_default();
        Some(format!("{} {what}{ideal}", count(many)))
    };
    let some = |what: &str, many: Option<u64>| {
        many.filter(|many| *many > 0).map(|many| format!("{} {what}", count(many)))
    };
    let parts = [
        needed("sectors", of.sectors, of.sectors_ideal),
        some("sectors of local memory", of.local_sectors),
        needed("wavefronts of shared memory", of.wavefronts, of.wavefronts_ideal),
        some("divergent branches", of.divergent_branches),
        row.share.map(|share| format!("{} of the samples", percent(share))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().chain(row.remarks.iter().cloned()).collect();
    format!("- {}:{}: {}", file_name(&row.place.file), row.place.line, parts.join(", "))
}

/// `- occupancy 48%, at most 50%, limited by registers (64 a thread)`
fn occupancy(launch: &KernelLaunch) -> Option<String> {
    let shown = |metric| Some(Format::Percent.show(launch.get(metric)?));
    let limits = [
        (Metric::LimitRegisters, "registers"),
        (Metric::LimitSharedMemory, "shared memory"),
        (Metric::LimitWarps, "warps"),
        (Metric::LimitBlocks, "block slots"),
        (Metric::LimitBarriers, "barriers"),
    ];
    let least = limits
        .into_iter()
        .filter_map(|(metric, what)| Some((launch.get(metric)?, what)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let parts = [
        shown(Metric::AchievedOccupancy),
        shown(Metric::TheoreticalOccupancy).map(|most| format!("at most {most}")),
        least.map(|(_, what)| format!("limited by {what}")),
        launch.get(Metric::Registers).map(|registers| format!("{registers:.0} registers a thread")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("- occupancy of `{}`: {}", launch.kernel.base, parts.join(", ")))
}
