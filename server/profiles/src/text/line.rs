//! One line of a kernel in words: its part of the samples, what its accesses ask for, what warps wait for there.

use std::fmt::Write;

use stitch_findings::Code;

use super::{bars, code};
use crate::kernel::{KernelLaunch, LineRow, Stall, line_table};
use crate::units;

/// Reasons to wait that are shown.
const MOST_STALLS: usize = 4;

/// What the launches of any kernel did on a line, from one; `is_file` says whether a profiler's name is the line's file. `None` for nothing. Of
/// several launches of a kernel the one is told in which the line has most samples, or else most instructions. `told` are the codes of
/// findings that are shown beside it: what they say of the line is left out.
pub fn line(
    launches: &[KernelLaunch],
    is_file: &dyn Fn(&str) -> bool,
    number: u32,
    told: &[Code],
) -> Option<String> {
    let (launch, rank, row) = worst(launches, is_file, number)?;
    let mut text = format!("**Line {number}** of {}", code(&launch.kernel.base));
    if let Some(share) = row.share {
        let _ = write!(text, ": {} of its samples", units::percent(share));
    }
    match rank {
        Some(1) => text.push_str(", its worst access"),
        Some(rank) => {
            let _ = write!(text, ", its access number {rank} by what is too much");
        }
        None => {}
    }
    let _ = writeln!(text, " · {}\n", launch.origin.tool);
    text.push_str(&table(&row, told));
    text.push_str(&waits(&row));
    Some(text)
}

/// The launch that is told, the place of the line among the accesses that ask for too much, and the line.
fn worst<'l>(
    launches: &'l [KernelLaunch],
    is_file: &dyn Fn(&str) -> bool,
    number: u32,
) -> Option<(&'l KernelLaunch, Option<usize>, LineRow)> {
    let mut found: Option<(&KernelLaunch, Option<usize>, LineRow)> = None;
    for launch in launches {
        let is_it = |row: &LineRow| row.place.line == number && is_file(&row.place.file);
        let rows = line_table(launch);
        let Some(at) = rows.iter().position(is_it) else { continue };
        let rank = rows[at].asks_too_much().then_some(at + 1);
        let row = rows.into_iter().nth(at)?;
        let cost = |row: &LineRow| (row.counters.samples, row.counters.instructions);
        if found.as_ref().is_none_or(|(_, _, known)| cost(&row) > cost(known)) {
            found = Some((launch, rank, row));
        }
    }
    found
}

/// What was counted, and what would be enough; without what findings of these codes say.
fn table(row: &LineRow, told: &[Code]) -> String {
    let counters = &row.counters;
    let is_told = |codes: &[Code]| codes.iter().any(|code| told.contains(code));
    let mut rows: Vec<String> = Vec::new();
    let mut against = |name: &str, asked: Option<u64>, ideal: Option<u64>, codes: &[Code]| {
        let Some(asked) = asked.filter(|asked| *asked > 0 && !is_told(codes)) else { return };
        let ratio =
            ideal.filter(|ideal| *ideal > 0).map(|ideal| format!("{:.2} times", asked as f64 / ideal as f64));
        let ideal = ideal.map_or("not measured".to_owned(), units::count);
        rows.push(format!("| {name} | {} | {ideal} | {} |", units::count(asked), ratio.unwrap_or_default()));
    };
    let global = [Code::NCU_UNCOALESCED_ACCESS, Code::NCU_MISALIGNED_ACCESS];
    against("sectors of global memory", counters.sectors, counters.sectors_ideal, &global);
    let shared = [Code::NCU_BANK_CONFLICT];
    against("wavefronts of shared memory", counters.wavefronts, counters.wavefronts_ideal, &shared);
    let atomics = [Code::NCU_ATOMIC_CONTENTION];
    against("lanes of atomics", counters.atomic_lanes, counters.atomic_addresses, &atomics);
    let local = [Code::NCU_SPILL, Code::NCU_LOCAL_MEMORY];
    against("sectors of local memory", counters.local_sectors, Some(0), &local);
    let full = counters.instructions.map(|warps| warps.saturating_mul(32));
    if let (Some(on), Some(full), false) = (
        counters.threads_on.or(counters.thread_instructions),
        full.filter(|full| *full > 0),
        is_told(&[Code::NCU_DIVERGENCE]),
    ) {
        rows.push(format!(
            "| lanes at work in an instruction | {:.1} | 32 | |",
            on as f64 / full as f64 * 32.0
        ));
    }
    let branches = counters.divergent_branches.filter(|branches| *branches > 0);
    rows.extend(branches.map(|count| format!("| divergent branches | {} | 0 | |", units::count(count))));
    match rows.is_empty() {
        true => String::new(),
        false => {
            format!("| on this line | asked for | at best | |\n|---|---:|---:|---:|\n{}\n", rows.join("\n"))
        }
    }
}

/// What warps wait for on the line, of its samples.
fn waits(row: &LineRow) -> String {
    let Some(all) = row.counters.samples.filter(|all| *all > 0) else { return String::new() };
    let mut stalls: Vec<(Stall, u64)> = row
        .counters
        .stalls
        .iter()
        .map(|(stall, samples)| (*stall, *samples))
        .filter(|(_, n)| *n > 0)
        .collect();
    stalls.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let rows: Vec<_> = stalls
        .iter()
        .take(MOST_STALLS)
        .map(|(stall, samples)| {
            let share = *samples as f64 / all as f64;
            (stall.label().to_owned(), share, units::percent(share))
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "\nOf {} here, warps were in:\n\n{}",
            units::counted(all, "sample", "samples"),
            bars(&rows)
        ),
    }
}
