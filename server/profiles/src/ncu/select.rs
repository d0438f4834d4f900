//! Which metrics to ask Nsight Compute for.
//!
//! Asking for a name that the chip has not fails the whole session in some versions, and each group of counters costs another run of the
//! kernel. So the rules say what they need, the chip's own list says what there is, and the rules that can't be answered are named.

use std::collections::BTreeSet;

use crate::kernel::{At, INTENSITY, KernelLaunch, Metric, Rule, answerable, needed, rules};

/// How much is measured, which is how many times the kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The roofline class, the launch and its occupancy: a few passes.
    Quick,
    /// Also what warps wait for, pipes and hit rates.
    Usual,
    /// Also what instructions of the machine code count, and lines.
    Full,
}

/// What to ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// For `--section`: what needs no names.
    pub sections: Vec<&'static str>,
    /// For `--metrics`, joined by commas.
    pub metrics: Vec<&'static str>,
    /// Rules that can't hold with what will be measured, with what they lack.
    pub unanswered: Vec<Unanswered>,
}

/// A rule that can't be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The rule.
    pub rule: &'static str,
    /// What is missing, in words.
    pub missing: Vec<&'static str>,
}

/// The names in the output of `ncu --query-metrics`, as a table or with `--csv`: a row begins with the metric's name.
pub fn available(query: &str) -> BTreeSet<String> {
    let names = query.lines().filter_map(|line| line.split([' ', '\t', ',']).find(|part| !part.is_empty()));
    names.map(|name| name.trim_matches('"')).filter(|name| name.contains("__")).map(str::to_owned).collect()
}

/// What to ask for on a chip that has these metrics. The list has names with or without their suffixes (`.sum`), as `--query-metrics`
/// gives them.
pub fn select(available: &BTreeSet<String>, depth: Depth) -> Selection {
    let mut selection = Selection { sections: vec!["LaunchStats", "Occupancy"], ..Selection::default() };
    if depth == Depth::Full {
        selection.sections.push("SourceCounters");
    }
    let mut has: BTreeSet<Metric> = BTreeSet::new();
    for spelling in [Spelling::Usual, Spelling::Part, Spelling::Sampled] {
        // Stalls are measured in one way: the next is only for chips that lack the one before.
        if spelling != Spelling::Usual && STALLS.iter().any(|stall| has.contains(stall)) {
            break;
        }
        for metric in wanted(depth).into_iter().filter(|metric| Spelling::of(*metric) == spelling) {
            if from_sections(metric, depth) {
                has.insert(metric);
            } else if let Some(name) = metric.info().names.iter().find(|name| offered(available, name)) {
                has.insert(metric);
                selection.metrics.push(name);
            }
        }
    }
    for rule in rules() {
        let by_lines = matches!(rule.at, At::Lines { .. }) && depth == Depth::Full;
        if !by_lines && !answerable(rule, &|metric| has.contains(&metric)) {
            selection.unanswered.push(Unanswered { rule: rule.id, missing: missing(rule, &has) });
        }
    }
    selection
}

/// How a metric says what warps wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// In cycles between two instructions; also everything that is no stall.
    Usual,
    /// As a percentage of a warp's cycles.
    Part,
    /// In samples.
    Sampled,
}

impl Spelling {
    fn of(metric: Metric) -> Self {
        let name = metric.info().names.first().copied().unwrap_or_default();
        if name.contains("_per_warp_active") {
            Self::Part
        } else if name.starts_with("smsp__pcsamp") {
            Self::Sampled
        } else {
            Self::Usual
        }
    }
}

/// One stall of each spelling but the last, by which a chip's spelling is told.
const STALLS: [Metric; 2] = [Metric::StallLongScoreboard, Metric::PartLongScoreboard];

/// The metrics of the rules in their order, and those that place a kernel on the roofline, that this depth measures.
fn wanted(depth: Depth) -> Vec<Metric> {
    let mut wanted = vec![Metric::Duration];
    for metric in rules().flat_map(needed).chain(INTENSITY.iter().copied()) {
        if cost(metric) <= depth && !wanted.contains(&metric) {
            wanted.push(metric);
        }
    }
    wanted
}

/// The depth from which on a metric is measured. Source: ours; metrics of the machine code (`sass`) are counted by patched code in passes
/// of their own, and stalls and pipes take one pass for a few of them.
fn cost(metric: Metric) -> Depth {
    let name = metric.info().names.first().copied().unwrap_or_default();
    if name.contains("sass") || name.starts_with("memory_") || name.starts_with("derived__") {
        Depth::Full
    } else if name.starts_with("launch__")
        || name.contains("throughput")
        || name.starts_with("gpu__")
        || name.starts_with("sm__cycles")
        || name.starts_with("sm__warps")
        || name.starts_with("sm__maximum")
    {
        Depth::Quick
    } else {
        Depth::Usual
    }
}

/// Whether the sections that are asked for have it.
fn from_sections(metric: Metric, depth: Depth) -> bool {
    let names = metric.info().names;
    names.iter().any(|name| name.starts_with("launch__") || name.starts_with("sm__maximum_warps"))
        || (depth == Depth::Full && names.iter().any(|name| name.starts_with("memory_")))
}

fn offered(available: &BTreeSet<String>, name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name);
    available.contains(name) || available.contains(base)
}

fn missing(rule: &Rule, has: &BTreeSet<Metric>) -> Vec<&'static str> {
    let mut missing: Vec<&'static str> = Vec::new();
    for metric in needed(rule) {
        let title = metric.info().title;
        if !has.contains(&metric) && !missing.contains(&title) {
            missing.push(title);
        }
    }
    if missing.is_empty() {
        missing.push("counters of source lines");
    }
    missing
}

/// The rules that a launch's own metrics can't answer, since they were not measured.
pub fn unanswered(launch: &KernelLaunch) -> Vec<Unanswered> {
    let has: BTreeSet<Metric> = launch.metrics.keys().copied().collect();
    let lines = !launch.instructions.is_empty() || !launch.lines.is_empty();
    let by_lines = |rule: &Rule| lines && matches!(rule.at, At::Lines { .. });
    let open = rules()
        .filter(|rule| !by_lines(rule))
        .filter(|rule| !answerable(rule, &|metric| has.contains(&metric)));
    open.map(|rule| Unanswered { rule: rule.id, missing: missing(rule, &has) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &str = "\
Device NVIDIA H200 (GH100)
---------------------------------------- --------------- ---------------
Metric Name                              Metric Type     Metric Unit     Metric Description
---------------------------------------- --------------- ---------------
dram__bytes_op_read                      Counter         byte            # of bytes read from DRAM
sm__throughput                           Throughput      %               SM throughput
gpu__compute_memory_throughput           Throughput      %               Compute Memory Pipeline
gpu__dram_throughput                     Throughput      %               DRAM throughput
gpu__time_duration                       Counter         nsecond         incremental duration
lts__throughput                          Throughput      %               L2 throughput
";

    #[test]
    fn only_what_the_chip_has_is_asked_for_under_the_name_that_it_has() {
        let available = available(QUERY);
        assert_eq!(available.len(), 6);
        let csv = "\"Metric name\",\"Metric type\"\n\"gpu__time_duration\",\"Counter\",\"ns\"\n";
        assert_eq!(super::available(csv).into_iter().collect::<Vec<_>>(), ["gpu__time_duration"]);
        let selection = select(&available, Depth::Full);
        assert!(selection.metrics.contains(&"dram__bytes_op_read.sum"), "{:?}", selection.metrics);
        assert!(!selection.metrics.contains(&"dram__bytes_read.sum"));
        assert!(selection.metrics.iter().all(|name| offered(&available, name)));
        assert!(
            selection.unanswered.iter().any(|open| open.rule == "stall-barrier"),
            "no stalls are on this chip"
        );
        assert!(!selection.unanswered.iter().any(|open| open.rule == "memory-bound-dram"));
    }

    #[test]
    fn a_quick_look_asks_for_less_and_says_what_it_can_not_answer() {
        let all: BTreeSet<String> = crate::kernel::METRICS
            .iter()
            .flat_map(|info| info.names)
            .map(|name| (*name).to_owned())
            .collect();
        let [quick, usual, full] = [Depth::Quick, Depth::Usual, Depth::Full].map(|depth| select(&all, depth));
        assert!(quick.metrics.len() < usual.metrics.len() && usual.metrics.len() < full.metrics.len());
        assert!(quick.metrics.contains(&"sm__throughput.avg.pct_of_peak_sustained_elapsed"));
        let open =
            |selection: &Selection| selection.unanswered.iter().map(|open| open.rule).collect::<Vec<_>>();
        assert!(!open(&quick).contains(&"latency-bound") && !open(&quick).contains(&"occupancy-registers"));
        assert!(open(&quick).contains(&"stall-wait"));
        assert!(open(&full).is_empty(), "{:?}", full.unanswered);
        assert!(!full.metrics.iter().any(|name| name.contains("pcsamp")), "stalls are asked for once");
        let sampled: BTreeSet<String> = all
            .iter()
            .filter(|name| !name.contains("average_warp") && !name.contains("per_warp"))
            .cloned()
            .collect();
        let selection = select(&sampled, Depth::Usual);
        assert!(selection.metrics.contains(&"smsp__pcsamp_warps_issue_stalled_barrier"));
        assert!(!open(&selection).contains(&"stall-barrier"));
    }
}
