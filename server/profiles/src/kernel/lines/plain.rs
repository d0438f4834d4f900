//! Lines of which no machine code is known: what the simulator counts, and pages of source alone.

use std::collections::BTreeMap;

use super::{Lanes, LineEvidence, LinePlace, PREDICATED_LANES, excesses, lanes_evidence};
use crate::kernel::model::{KernelLaunch, SourceLine};

fn place(line: &SourceLine) -> LinePlace {
    LinePlace { file: line.file.clone(), line: line.line }
}

/// Lanes that had nothing to do while others of their warp had, told at the condition. `None` where no line proves it, for then the launch's
/// own metrics may.
///
/// The code behind a condition stands below it, so the nearest line above, or the line itself, on which branches parted is taken. What a
/// machine switches off by a predicate is a branch in PTX, so that what is enough there is enough here.
pub(super) fn divergence(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let all: u64 = launch.lines.iter().filter_map(|line| line.counters.instructions).sum();
    let mut found: BTreeMap<Option<LinePlace>, Lanes> = BTreeMap::new();
    for line in &launch.lines {
        let counters = &line.counters;
        let (Some(warps), Some(lanes)) = (counters.instructions, counters.thread_instructions) else {
            continue;
        };
        if warps > 0 && (lanes as f64) < PREDICATED_LANES * warps as f64 {
            let own = place(line);
            let condition = condition(launch, line).unwrap_or_else(|| own.clone());
            found.entry(Some(condition)).or_default().add(warps, lanes, Some(own));
        }
    }
    let evidence = lanes_evidence(found, PREDICATED_LANES, all as f64);
    (!evidence.is_empty()).then_some(evidence)
}

/// The line on which a line's warps parted.
fn condition(launch: &KernelLaunch, of: &SourceLine) -> Option<LinePlace> {
    let parted = launch.lines.iter().filter(|line| {
        line.file == of.file && line.line <= of.line && line.counters.divergent_branches.unwrap_or(0) > 0
    });
    parted.max_by_key(|line| line.line).map(place)
}

/// Lanes of global atomics beside the addresses that they meet at.
pub(super) fn same_address(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let mut found = BTreeMap::new();
    let mut all = 0.0;
    for line in &launch.lines {
        let (Some(lanes), Some(addresses)) = (line.counters.atomic_lanes, line.counters.atomic_addresses)
        else {
            continue;
        };
        all += lanes as f64;
        found.insert(Some(place(line)), (lanes as f64, addresses as f64));
    }
    (!found.is_empty()).then(|| excesses(found, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::model::Counters;

    fn line(line: u32, instructions: u64, lanes: u64, parted: u64) -> SourceLine {
        let counters = Counters {
            instructions: Some(instructions),
            thread_instructions: Some(lanes),
            divergent_branches: Some(parted),
            ..Counters::default()
        };
        SourceLine { file: "k.cu".to_owned(), line, counters, ..SourceLine::default() }
    }

    fn told(lines: Vec<SourceLine>) -> Option<Vec<(u32, f64)>> {
        let launch = KernelLaunch { lines, ..KernelLaunch::default() };
        let found = divergence(&launch)?;
        Some(found.iter().filter_map(|one| Some((one.place.as_ref()?.line, one.ratio))).collect())
    }

    #[test]
    fn lanes_that_are_left_are_told_at_their_condition() {
        // What the simulator counted in a reduction whose working threads are scattered, and in one where they stay together.
        let scattered =
            vec![line(61, 960, 30_720, 0), line(63, 13_312, 425_984, 3_008), line(64, 12_032, 65_280, 0)];
        let found = told(scattered).unwrap();
        assert_eq!((found.len(), found[0].0), (1, 63));
        assert!((found[0].1 - 5.43).abs() < 0.01, "{found:?}");
        assert_eq!(told(vec![line(77, 8_192, 262_144, 320), line(78, 3_072, 65_280, 0)]), None);
    }

    #[test]
    fn lanes_that_meet_are_counted_beside_their_addresses() {
        let mut atomic = line(88, 512, 16_384, 0);
        atomic.counters.atomic_lanes = Some(16_384);
        atomic.counters.atomic_addresses = Some(4_047);
        let launch =
            KernelLaunch { lines: vec![atomic, line(89, 512, 16_384, 0)], ..KernelLaunch::default() };
        let found = same_address(&launch).unwrap();
        assert_eq!(found.len(), 1);
        assert!((found[0].ratio - 4.05).abs() < 0.01, "{found:?}");
    }
}
