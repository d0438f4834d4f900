//! The lines of a launch as a person reads them: what each costs, the worst access first.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines::LinePlace;
use super::model::{Counters, KernelLaunch, Stall};
use crate::units;

/// From so many times what an access needs on, it is remarked. Ours: above what a misaligned warp takes.
const REMARKED: f64 = 1.3;

/// The part of the launch's samples from which on it is said what a line waits for. Ours.
const WORTH: f64 = 0.05;

/// One line with what was counted on it, inlined code included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineRow {
    /// Where.
    pub place: LinePlace,
    /// What was counted.
    pub counters: Counters,
    /// Its part of the launch's samples, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What is remarkable, in a few words each: `8.0 times the sectors`, `32-way bank conflict`, `waits: long scoreboard`.
    pub remarks: Vec<String>,
}

/// The lines of a launch: those whose accesses ask for too much, by how much that is, then the others by samples.
///
/// Made of the machine code where that was counted, so that nothing is counted twice and inlined code counts where it was inlined; else of the
/// profiler's own lines.
pub fn line_table(launch: &KernelLaunch) -> Vec<LineRow> {
    let mut sums: BTreeMap<LinePlace, Counters> = BTreeMap::new();
    for instruction in &launch.instructions {
        if let (Some(file), Some(line)) = (&instruction.file, instruction.line) {
            sums.entry(LinePlace { file: file.clone(), line }).or_default().add(&instruction.counters);
        }
    }
    if sums.is_empty() {
        for line in &launch.lines {
            sums.entry(LinePlace { file: line.file.clone(), line: line.line })
                .or_default()
                .add(&line.counters);
        }
    }
    let all: u64 = sums.values().filter_map(|counters| counters.samples).sum();
    let row = |(place, counters): (LinePlace, Counters)| {
        let share = counters.samples.filter(|_| all > 0).map(|samples| samples as f64 / all as f64);
        let remarks = remarks(&counters, share.unwrap_or(0.0));
        LineRow { place, counters, share, remarks }
    };
    let mut rows: Vec<LineRow> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| excess(b).cmp(&excess(a)).then(b.counters.samples.cmp(&a.counters.samples)));
    rows
}

/// Sectors and wavefronts that a line's accesses ask for beyond what they need, where that is worth a remark.
fn excess(row: &LineRow) -> u64 {
    let counters = &row.counters;
    let sectors =
        counters.excess_sectors().filter(|_| sector_ratio(counters).is_some_and(|ratio| ratio >= REMARKED));
    let wavefronts = counters
        .excess_wavefronts()
        .filter(|_| counters.conflict_ways().is_some_and(|ways| ways >= REMARKED));
    sectors.unwrap_or(0).saturating_add(wavefronts.unwrap_or(0))
}

impl LineRow {
    /// Whether its accesses ask for more than they need, by so much that it is remarked.
    pub fn asks_too_much(&self) -> bool {
        excess(self) > 0
    }

    /// How many times what they need its accesses ask for, the worse of global and shared ones, where that is remarked.
    pub fn excess_ratio(&self) -> Option<f64> {
        let ratios = [sector_ratio(&self.counters), self.counters.conflict_ways()];
        ratios.into_iter().flatten().filter(|ratio| *ratio >= REMARKED).reduce(f64::max)
    }
}

fn sector_ratio(counters: &Counters) -> Option<f64> {
    let ideal = counters.sectors_ideal.filter(|ideal| *ideal > 0)?;
    Some(counters.sectors? as f64 / ideal as f64)
}

fn remarks(counters: &Counters, share: f64) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(ratio) = sector_ratio(counters).filter(|ratio| *ratio >= REMARKED) {
        remarks.push(format!("{ratio:.1} times the sectors"));
    }
    if let Some(ways) = counters.conflict_ways().filter(|ways| *ways >= REMARKED) {
        remarks.push(format!("{ways:.0}-way bank conflict"));
    }
    if let Some(sectors) = counters.local_sectors.filter(|sectors| *sectors > 0) {
        remarks.push(format!("{} sectors of local memory", units::count(sectors)));
    }
    if let Some(branches) = counters.divergent_branches.filter(|branches| *branches > 0) {
        remarks.push(format!("{} divergent branches", units::count(branches)));
    }
    let waits =
        counters.stalls.iter().filter(|(stall, _)| !matches!(stall, Stall::Selected | Stall::NotSelected));
    if let Some((stall, samples)) = waits.max_by_key(|(_, samples)| **samples)
        && share >= WORTH
        && samples.saturating_mul(2) > counters.samples.unwrap_or(u64::MAX)
    {
        remarks.push(format!("waits: {}", stall.label()));
    }
    remarks
}

impl Stall {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::LongScoreboard => "long scoreboard",
            Self::ShortScoreboard => "short scoreboard",
            Self::MioThrottle => "MIO throttle",
            Self::LgThrottle => "LG throttle",
            Self::Barrier => "barrier",
            Self::MathPipe => "math pipe throttle",
            Self::Wait => "fixed latency",
            Self::NoInstruction => "no instruction",
            Self::Drain => "drain",
            Self::BranchResolving => "branch resolving",
            Self::ImcMiss => "IMC miss",
            Self::TexThrottle => "TEX throttle",
            Self::Membar => "memory fence",
            Self::Sleeping => "sleeping",
            Self::Dispatch => "dispatch",
            Self::NotSelected => "not selected",
            Self::Selected => "selected",
            Self::Gmma => "GMMA",
            Self::Misc => "other",
        }
    }
}
