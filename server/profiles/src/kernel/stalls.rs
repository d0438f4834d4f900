//! What the warps of a launch spend their time on, all reasons at once.

use std::collections::BTreeMap;

use super::expression::Facts;
use super::model::{KernelLaunch, Stall};
use super::roofline::Class;
use super::rules::{At, rules};

/// Each reason's part of a warp's time, from 0 to 1, the largest first. Empty where nobody measured it.
///
/// By the formulas of the rules about stalls, so that a chart and a sentence never differ; where a session asked for none of their metrics,
/// by the samples of lines.
pub fn stall_shares(launch: &KernelLaunch) -> Vec<(Stall, f64)> {
    let class = Class::of(launch);
    let facts = Facts { launch, class: &class, line: None };
    let by_rule = rules().filter_map(|rule| {
        let At::Stalled(stall) = rule.at else { return None };
        Some((stall, rule.shows.first()?.1.value(facts)?))
    });
    let mut shares: Vec<(Stall, f64)> = by_rule.collect();
    if shares.is_empty() {
        shares = by_samples(launch);
    }
    shares.retain(|(_, share)| *share > 0.0);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

fn by_samples(launch: &KernelLaunch) -> Vec<(Stall, f64)> {
    let of_code = launch.instructions.iter().map(|instruction| &instruction.counters);
    let of_lines = launch.lines.iter().map(|line| &line.counters).filter(|_| launch.instructions.is_empty());
    let mut sums: BTreeMap<Stall, u64> = BTreeMap::new();
    for (stall, samples) in of_code.chain(of_lines).flat_map(|counters| &counters.stalls) {
        *sums.entry(*stall).or_insert(0) += samples;
    }
    let all: u64 = sums.values().sum();
    sums.into_iter()
        .filter(|(stall, _)| *stall != Stall::Selected)
        .map(|(stall, samples)| (stall, samples as f64 / all.max(1) as f64))
        .collect()
}
