//! What the counters of single lines prove, and which line is the one to look at.
//!
//! Where machine code was counted, lines are made of it: an instruction that was inlined from a header counts for the line of the kernel's
//! own file, and loads are told from stores. Otherwise the profiler's own line counters are taken.

mod plain;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{Access, Instruction, KernelLaunch, Stall};
use super::sass::{Flow, Sass};

/// A line of a source file, counted from one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinePlace {
    /// The file, as the compiler knew it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
}

/// What a measure over lines looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Sectors of global loads.
    Loads,
    /// Sectors of global stores.
    Stores,
    /// Wavefronts of shared accesses.
    Conflicts,
    /// Sectors of local accesses.
    Local,
    /// Lanes without work among lanes with work: behind a branch, or switched off by a predicate.
    Divergence,
    /// Lanes of a global atomic that must meet at an address, since more of them ask for a sector than it has words.
    SameAddress,
    /// Double-precision instructions beside conversions from and to float.
    Doubles,
}

/// What was found about one line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LineEvidence {
    pub place: Option<LinePlace>,
    /// Too much of what is measured.
    pub excess: f64,
    /// How many times what would be enough; for divergence the lanes at work of 32.
    pub ratio: f64,
    /// The excess in all of the kernel's, from 0 to 1.
    pub share: f64,
    /// Other lines that belong to it, with what is there.
    pub related: Vec<(LinePlace, &'static str)>,
}

/// The lines that a measure is about, the worst first. `None` where it was not counted.
pub(super) fn evidence(launch: &KernelLaunch, measure: Measure) -> Option<Vec<LineEvidence>> {
    let mut found = match measure {
        Measure::Loads => sectors(launch, Access::GlobalLoad)?,
        Measure::Stores => sectors(launch, Access::GlobalStore)?,
        Measure::Conflicts => conflicts(launch)?,
        Measure::Local => local(launch)?,
        Measure::Divergence if launch.instructions.is_empty() => plain::divergence(launch)?,
        Measure::SameAddress if launch.instructions.is_empty() => plain::same_address(launch)?,
        Measure::Divergence => divergence(launch)?,
        Measure::SameAddress => same_address(launch)?,
        Measure::Doubles => doubles(launch)?,
    };
    found.sort_by(|a, b| b.excess.total_cmp(&a.excess));
    Some(found)
}

/// Where an instruction counts.
fn place(instruction: &Instruction) -> Option<LinePlace> {
    Some(LinePlace { file: instruction.file.clone()?, line: instruction.line? })
}

/// Sums of two counters by line: over instructions of one access where there are instructions, else over lines.
fn sums(
    launch: &KernelLaunch,
    space: fn(Access) -> bool,
    wanted: impl Fn(Access) -> bool,
    of: impl Fn(&super::Counters) -> Option<(u64, u64)>,
) -> Option<BTreeMap<Option<LinePlace>, (f64, f64)>> {
    let mut sums: BTreeMap<Option<LinePlace>, (f64, f64)> = BTreeMap::new();
    let mut counted = false;
    let mut add = |place, pair: (u64, u64)| {
        let sum = sums.entry(place).or_insert((0.0, 0.0));
        *sum = (sum.0 + pair.0 as f64, sum.1 + pair.1 as f64);
    };
    for instruction in &launch.instructions {
        let Some(pair) = of(&instruction.counters) else { continue };
        counted = true;
        if instruction.access().is_some_and(&wanted) {
            add(place(instruction), pair);
        }
    }
    if launch.instructions.is_empty() {
        for line in &launch.lines {
            let Some(pair) = of(&line.counters) else { continue };
            counted = true;
            // A line with several kinds of accesses is not told apart: it counts for the first of the
            // space, and where none is known for loads.
            let first = line.accesses.iter().copied().find(|access| space(*access));
            if first.map_or_else(|| wanted(Access::GlobalLoad) || !space(Access::GlobalLoad), &wanted) {
                add(Some(LinePlace { file: line.file.clone(), line: line.line }), pair);
            }
        }
    }
    counted.then_some(sums)
}

fn global(access: Access) -> bool {
    matches!(access, Access::GlobalLoad | Access::GlobalStore | Access::GlobalAtomic)
}

fn shared(access: Access) -> bool {
    matches!(access, Access::SharedLoad | Access::SharedStore | Access::SharedAtomic)
}

fn in_local(access: Access) -> bool {
    matches!(access, Access::LocalLoad | Access::LocalStore)
}

fn excesses(sums: BTreeMap<Option<LinePlace>, (f64, f64)>, all: f64) -> Vec<LineEvidence> {
    sums.into_iter()
        .filter(|(_, (_, ideal))| *ideal > 0.0)
        .map(|(place, (actual, ideal))| {
            let excess = (actual - ideal).max(0.0);
            LineEvidence {
                place,
                excess,
                ratio: actual / ideal,
                share: part(excess, all),
                related: Vec::new(),
            }
        })
        .collect()
}

fn part(amount: f64, all: f64) -> f64 {
    if all > 0.0 { amount / all } else { 0.0 }
}

fn sectors(launch: &KernelLaunch, access: Access) -> Option<Vec<LineEvidence>> {
    let of = |counters: &super::Counters| Some((counters.sectors?, counters.sectors_ideal?));
    let all: f64 = sums(launch, global, global, of)?.values().map(|(actual, _)| actual).sum();
    Some(excesses(sums(launch, global, |found| found == access, of)?, all))
}

fn conflicts(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let of = |counters: &super::Counters| Some((counters.wavefronts?, counters.wavefronts_ideal?));
    let found = sums(launch, shared, shared, of)?;
    let all: f64 = found.values().map(|(actual, _)| actual).sum();
    Some(excesses(found, all))
}

/// Sectors of local memory: all of them are too many, for registers take none.
fn local(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let found = sums(launch, in_local, in_local, |counters| Some((counters.local_sectors?, 0)))?;
    let global = sums(launch, global, global, |counters| Some((counters.sectors?, 0)));
    let sum = |sums: &BTreeMap<_, (f64, f64)>| sums.values().map(|(actual, _)| actual).sum::<f64>();
    let all = sum(&found) + global.as_ref().map_or(0.0, sum);
    let line = |(place, (sectors, _)): (Option<LinePlace>, (f64, f64))| LineEvidence {
        place,
        excess: sectors,
        ratio: 0.0,
        share: part(sectors, all),
        related: Vec::new(),
    };
    Some(found.into_iter().filter(|(_, (sectors, _))| *sectors > 0.0).map(line).collect())
}

/// The instructions that a launch executed.
fn executed(launch: &KernelLaunch) -> Option<f64> {
    let sum: Option<u64> =
        launch.instructions.iter().map(|instruction| instruction.counters.instructions).sum();
    sum.filter(|sum| *sum > 0).map(|sum| sum as f64)
}

/// Lanes that had nothing to do while others of their warp had.
///
/// Behind a branch, threads per instruction tell. Under a predicate the instruction is issued for all lanes and counted for those that are
/// on, and also where all are off, as in warps that a condition leaves out whole, which is no divergence. How many warps had a lane on is
/// known for accesses of 4 bytes to shared memory without conflicts: each such warp makes one wavefront.
fn divergence(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let all = executed(launch)?;
    let mut predicated: BTreeMap<Option<LinePlace>, Lanes> = BTreeMap::new();
    let mut branched: BTreeMap<Option<LinePlace>, Lanes> = BTreeMap::new();
    let code = &launch.instructions;
    let flow = Flow::new(code);
    for (at, instruction) in launch.instructions.iter().enumerate() {
        let Some(sass) = &flow.parsed[at] else { continue };
        let counters = &instruction.counters;
        let (Some(instructions), Some(threads)) = (counters.instructions, counters.thread_instructions)
        else {
            continue;
        };
        let own = place(instruction);
        if let (Some(_), true, Some(32), Some(on), Some(warps)) = (
            sass.predicate,
            sass.access().is_some_and(shared),
            instruction.access_bits,
            counters.threads_on,
            counters.wavefronts_ideal.filter(|warps| *warps > 0),
        ) {
            let condition =
                flow.predicate_source(at).and_then(|from| place(&code[from])).or_else(|| own.clone());
            predicated.entry(condition).or_default().add(warps, on, own);
        } else if threads < instructions.saturating_mul(32) {
            branched.entry(own.clone()).or_default().add(instructions, threads, own);
        }
    }
    let mut evidence = branches_first(launch, lanes_evidence(branched, BRANCHED_LANES, all));
    for line in lanes_evidence(predicated, PREDICATED_LANES, all) {
        match evidence.iter_mut().find(|known| known.place == line.place) {
            Some(known) if known.excess < line.excess => *known = line,
            Some(_) => {}
            None => evidence.push(line),
        }
    }
    Some(evidence)
}

/// From so many lanes at work on, code behind a branch is not worth a word. Source: NVIDIA's rule ThreadDivergence.
const BRANCHED_LANES: f64 = 24.0;

/// The same behind a predicate, of the warps that have a lane on. Ours: the last steps of any reduction tree have 16, 8, 4, 2 and 1 lanes,
/// so that a tree of 256 whose working threads stay together has 21 on average.
const PREDICATED_LANES: f64 = 16.0;

fn lanes_evidence(found: BTreeMap<Option<LinePlace>, Lanes>, enough: f64, all: f64) -> Vec<LineEvidence> {
    let evidence =
        found.into_iter().filter(|(_, lanes)| lanes.warps > 0.0 && lanes.on < enough * lanes.warps);
    let evidence = evidence.map(|(place, lanes)| {
        let ratio = lanes.on / lanes.warps;
        let excess = lanes.warps * (1.0 - ratio / 32.0);
        let others = lanes.lines.into_iter().filter(|line| place.as_ref() != Some(line)).take(3);
        let related = others.map(|line| (line, "runs with the lanes that are left")).collect();
        LineEvidence { place, excess, ratio, share: part(excess, all), related }
    });
    evidence.collect()
}

/// Lanes at work behind one condition.
#[derive(Default)]
struct Lanes {
    warps: f64,
    on: f64,
    lines: Vec<LinePlace>,
}

impl Lanes {
    fn add(&mut self, warps: u64, on: u64, line: Option<LinePlace>) {
        self.warps += warps as f64;
        self.on += on as f64;
        if let Some(line) = line.filter(|line| !self.lines.contains(line)) {
            self.lines.push(line);
        }
    }
}

/// Code behind a divergent branch is told at the branch, where the profiler counted one.
fn branches_first(launch: &KernelLaunch, mut evidence: Vec<LineEvidence>) -> Vec<LineEvidence> {
    let branch = launch
        .instructions
        .iter()
        .filter(|instruction| Sass::parse(&instruction.text).is_some_and(|sass| sass.is_branch()))
        .max_by_key(|instruction| instruction.counters.divergent_branches.unwrap_or(0))
        .filter(|instruction| instruction.counters.divergent_branches.unwrap_or(0) > 0)
        .and_then(place);
    let Some(branch) = branch else { return evidence };
    for line in &mut evidence {
        if line.place.as_ref() != Some(&branch) && line.related.len() < 3 {
            line.related.push((branch.clone(), "is where most warps diverge"));
        }
    }
    evidence
}

fn same_address(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let mut found: BTreeMap<Option<LinePlace>, (f64, f64)> = BTreeMap::new();
    let mut counted = false;
    for instruction in &launch.instructions {
        let (Some(sectors), Some(lanes)) =
            (instruction.counters.sectors_ideal, instruction.counters.threads_on)
        else {
            continue;
        };
        counted = true;
        if instruction.access() == Some(Access::GlobalAtomic) {
            // A sector has 32 bytes: more lanes than it has words must share one.
            let words = 256 / u64::from(instruction.access_bits.unwrap_or(32).clamp(8, 256));
            let sum = found.entry(place(instruction)).or_insert((0.0, 0.0));
            *sum = (sum.0 + lanes as f64, sum.1 + (sectors * words) as f64);
        }
    }
    let all: f64 = found.values().map(|(lanes, _)| lanes).sum();
    counted.then(|| excesses(found, all))
}

/// Lines that make doubles of floats and floats of the result.
fn doubles(launch: &KernelLaunch) -> Option<Vec<LineEvidence>> {
    let all = executed(launch)?;
    let mut found: BTreeMap<Option<LinePlace>, (f64, bool)> = BTreeMap::new();
    for instruction in &launch.instructions {
        let (Some(sass), Some(count)) = (Sass::parse(&instruction.text), instruction.counters.instructions)
        else {
            continue;
        };
        if count > 0 && (sass.is_double() || sass.converts_double()) {
            let sum = found.entry(place(instruction)).or_default();
            *sum = (sum.0 + count as f64, sum.1 || sass.converts_double());
        }
    }
    let line = |(place, (count, _)): (Option<LinePlace>, (f64, bool))| LineEvidence {
        place,
        excess: count,
        ratio: 0.0,
        share: part(count, all),
        related: Vec::new(),
    };
    Some(found.into_iter().filter(|(_, (_, converts))| *converts).map(line).collect())
}

/// The line where a kernel begins.
pub(super) fn head(launch: &KernelLaunch) -> Option<LinePlace> {
    let of_code = launch.instructions.iter().find_map(place);
    of_code
        .or_else(|| launch.lines.first().map(|line| LinePlace { file: line.file.clone(), line: line.line }))
}

/// The line whose instructions have most of something.
pub(super) fn most(launch: &KernelLaunch, of: impl Fn(&super::Counters) -> Option<u64>) -> Option<LinePlace> {
    let mut sums: BTreeMap<LinePlace, u64> = BTreeMap::new();
    for instruction in &launch.instructions {
        if let (Some(place), Some(count)) = (place(instruction), of(&instruction.counters)) {
            *sums.entry(place).or_insert(0) += count;
        }
    }
    if launch.instructions.is_empty() {
        for line in &launch.lines {
            if let Some(count) = of(&line.counters) {
                sums.insert(LinePlace { file: line.file.clone(), line: line.line }, count);
            }
        }
    }
    sums.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count).map(|(place, _)| place)
}

/// The line with most global atomics.
pub(super) fn atomics(launch: &KernelLaunch) -> Option<LinePlace> {
    let of_code = launch
        .instructions
        .iter()
        .filter(|instruction| instruction.access() == Some(Access::GlobalAtomic))
        .max_by_key(|instruction| instruction.counters.threads_on.unwrap_or(0))
        .and_then(place);
    of_code.or_else(|| {
        let line = launch.lines.iter().find(|line| line.accesses.contains(&Access::GlobalAtomic))?;
        Some(LinePlace { file: line.file.clone(), line: line.line })
    })
}

/// Where warps stall for a reason: the line that causes it, and the line that waits where that is another one.
///
/// A warp that waits for a scoreboard stands at the instruction that needs the value; the line that loaded it is the cause.
pub(super) fn stalled(launch: &KernelLaunch, stall: Stall) -> Option<(LinePlace, Option<LinePlace>)> {
    let samples = |counters: &super::Counters| counters.stalls.get(&stall).copied();
    let waiting = most(launch, samples)?;
    let accept = |sass: &Sass<'_>| match stall {
        Stall::LongScoreboard => {
            matches!(sass.access(), Some(Access::GlobalLoad | Access::GlobalAtomic | Access::LocalLoad))
                || matches!(sass.opcode, "TEX" | "TLD" | "TLD4" | "SULD")
        }
        Stall::ShortScoreboard => {
            matches!(sass.access(), Some(Access::SharedLoad | Access::SharedAtomic))
                || matches!(sass.opcode, "MUFU" | "F2F" | "F2I" | "I2F" | "S2R" | "SHFL" | "LDC")
        }
        _ => false,
    };
    let mut causes: BTreeMap<LinePlace, u64> = BTreeMap::new();
    let code = &launch.instructions;
    let flow = Flow::new(code);
    for (at, instruction) in code.iter().enumerate() {
        let Some(count) = samples(&instruction.counters) else { continue };
        let cause = match stall {
            // The barrier is behind the warp that waits for it.
            Stall::Barrier => flow.last_before(at, "BAR"),
            Stall::Membar => flow.last_before(at, "MEMBAR"),
            _ => flow.source(at, accept),
        };
        if let Some(cause) = cause.and_then(|cause| place(&code[cause])) {
            *causes.entry(cause).or_insert(0) += count;
        }
    }
    match causes.into_iter().max_by_key(|(_, count)| *count) {
        Some((cause, _)) if cause != waiting => Some((cause, Some(waiting))),
        _ => Some((waiting, None)),
    }
}
