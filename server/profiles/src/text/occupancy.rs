//! The table of a launch's occupancy.

use std::fmt::Write;

use crate::kernel::{KernelLaunch, Metric};
use crate::units;

/// What the launch's own metrics can't say about its occupancy, for they know no device: to be said by who has the table of devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Occupancy {
    /// What is resident at most, over what a multiprocessor holds, from 0 to 1; used where the profiler did not say it.
    pub theoretical: Option<f64>,
    /// What limits it; used where the profiler did not say it.
    pub limited_by: Option<String>,
    /// What more would take: `at most 56 registers a thread (now 64): 5 blocks, 62%`.
    pub step: Option<String>,
}

/// Block limits, and what a person calls each.
const LIMITS: &[(Metric, &str)] = &[
    (Metric::LimitRegisters, "registers"),
    (Metric::LimitSharedMemory, "shared memory"),
    (Metric::LimitWarps, "warps"),
    (Metric::LimitBlocks, "blocks"),
    (Metric::LimitBarriers, "barriers"),
];

/// From so much on, in percent, nothing limits.
const FULL: f64 = 99.5;

/// The table; empty where nothing of it is known.
pub(super) fn table(launch: &KernelLaunch, known: &Occupancy) -> String {
    let count = |metric| launch.get(metric).map(|value| units::count(value.round() as u64));
    let bytes = |metric| launch.get(metric).map(|value| units::size(value as u64));
    let percent = |value: f64| units::percent(value / 100.0);
    let theoretical =
        launch.get(Metric::TheoreticalOccupancy).or_else(|| known.theoretical.map(|share| share * 100.0));
    let achieved = launch.get(Metric::AchievedOccupancy);
    let shared = match (bytes(Metric::SharedMemoryStatic), bytes(Metric::SharedMemoryDynamic)) {
        (None, None) => None,
        (fixed, dynamic) => {
            let or_unknown = |known: Option<String>| known.unwrap_or_else(|| "not measured".to_owned());
            Some(format!("{} static, {} dynamic", or_unknown(fixed), or_unknown(dynamic)))
        }
    };
    let rows = [
        ("registers a thread", count(Metric::Registers)),
        ("shared memory a block", shared),
        ("threads a block", count(Metric::BlockSize)),
        ("theoretical occupancy", theoretical.map(percent)),
        ("achieved occupancy", achieved.map(percent)),
        ("limited by", limiter(launch, theoretical).or_else(|| known.limited_by.clone())),
        ("waves over the device", launch.get(Metric::Waves).map(|waves| format!("{waves:.1}"))),
        ("one step up", known.step.clone().filter(|_| theoretical.is_none_or(|percent| percent < FULL))),
    ];
    // Of a launch of which nothing is known there is nothing to miss.
    if rows.iter().all(|(_, value)| value.is_none()) {
        return String::new();
    }
    let mut text = String::from("| occupancy | |\n|---|---|\n");
    for (name, value) in rows {
        let always = ["theoretical occupancy", "achieved occupancy"].contains(&name);
        if value.is_some() || always {
            let value = value.unwrap_or_else(|| "not measured".to_owned());
            let _ = writeln!(text, "| {name} | {} |", value.replace('|', "\\|"));
        }
    }
    text
}

/// `registers: 4 blocks a multiprocessor`: the least of the block limits, where it limits.
fn limiter(launch: &KernelLaunch, theoretical: Option<f64>) -> Option<String> {
    if theoretical.is_some_and(|percent| percent >= FULL) {
        return Some("nothing".to_owned());
    }
    let limits = LIMITS.iter().filter_map(|(metric, name)| Some((*name, launch.get(*metric)?)));
    let limits: Vec<(&str, f64)> = limits.collect();
    let least = limits.iter().map(|(_, blocks)| *blocks).reduce(f64::min)?;
    let names: Vec<&str> =
        limits.iter().filter(|(_, blocks)| *blocks <= least).map(|(name, _)| *name).collect();
    let blocks = units::counted(least.round() as u64, "block", "blocks");
    Some(format!("{}: {blocks} a multiprocessor", names.join(" and ")))
}
