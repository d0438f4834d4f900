//! Every rule, and what it says.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;
use stitch_findings::Code;
use stitch_profiles::kernel::{Explanation, KernelLaunch, Metric, explain, rules};

use crate::{read, session, told};

fn rows(launches: &[KernelLaunch]) -> String {
    let mut rows = String::new();
    for launch in launches {
        let explanation = explain(launch);
        let rules: Vec<String> = explanation
            .insights
            .iter()
            .map(|insight| match &insight.gain {
                Some(gain) => format!("{} {:.0}%", insight.rule, gain.share * 100.0),
                None => insight.rule.clone(),
            })
            .collect();
        writeln!(rows, "{}: {}; {}", launch.kernel.base, explanation.class.label(), rules.join(", "))
            .unwrap();
    }
    rows
}

#[test]
fn other_kernels_are_explained_by_all_three_pages() {
    let mut report = read("h200/kernels.ncu-raw.csv.gz");
    report.merge(read("h200/kernels.ncu-source-cuda-sass.csv.gz"));
    report.merge(read("h200/kernels.ncu-details.csv.gz"));
    assert_eq!(report.launches.len(), 18);
    assert!(report.launches.iter().all(|launch| launch.origin.pages == ["raw", "source", "details"] && launch.tool_rules.len() >= 5));
    assert_eq!(report.launches[1].kernel, report.launches[2].kernel);
    assert_ne!(
        report.launches[1].lines, report.launches[2].lines,
        "the second launch of a kernel has its own lines"
    );
    expect_file!["../data/h200/kernels.explained.txt"].assert_eq(&rows(&report.launches));
}

#[test]
fn a_launch_goes_through_json_and_back() {
    let report = session("small");
    for launch in &report.launches {
        let text = serde_json::to_string(launch).unwrap();
        let mut back: KernelLaunch = serde_json::from_str(&text).unwrap();
        // The last digit of a fraction may differ.
        for (metric, value) in &mut back.metrics {
            assert!((*value - launch.metrics[metric]).abs() <= value.abs() * 1e-12);
            *value = launch.metrics[metric];
        }
        for (line, given) in back.lines.iter_mut().zip(&launch.lines) {
            line.share = given.share;
        }
        assert!(back == *launch, "{} differs", launch.kernel.base);
        let explanation = explain(launch);
        let back: Explanation = serde_json::from_str(&serde_json::to_string(&explanation).unwrap()).unwrap();
        assert_eq!(back.insights.len(), explanation.insights.len());
        assert_eq!(back.class.bound, explanation.class.bound);
    }
    let schema = serde_json::to_string(&schemars::schema_for!(KernelLaunch)).unwrap();
    assert!(schema.contains("sectorsIdeal"));
}

/// A launch of which only these metrics were measured.
fn synthetic(name: &str, metrics: &[(Metric, f64)]) -> KernelLaunch {
    KernelLaunch {
        kernel: stitch_profiles::kernel::kernel_name(name),
        metrics: metrics.iter().copied().collect(),
        ..KernelLaunch::default()
    }
}

/// A kernel that waits: 40 and 30 percent of the peaks, in three and a half waves.
const WAITING: [(Metric, f64); 5] = [
    (Metric::SmThroughput, 40.0),
    (Metric::MemoryThroughput, 30.0),
    (Metric::Waves, 8.0),
    (Metric::IssueActive, 0.4),
    (Metric::CyclesPerInstruction, 20.0),
];

/// Launches for the rules that no measured kernel here breaks, with what must be told.
fn made_up() -> Vec<(&'static str, KernelLaunch)> {
    use Metric as M;
    let waiting = |more: &[(Metric, f64)]| synthetic("k(float *)", &[&WAITING[..], more].concat());
    let limits = |which: Metric| {
        let all = [M::LimitRegisters, M::LimitSharedMemory, M::LimitWarps, M::LimitBlocks, M::LimitBarriers];
        let mut metrics: Vec<(Metric, f64)> =
            all.map(|limit| (limit, if limit == which { 2.0 } else { 16.0 })).to_vec();
        metrics.push((M::TheoreticalOccupancy, 25.0));
        waiting(&metrics)
    };
    let stalls = [
        ("stall-short-scoreboard", M::StallShortScoreboard),
        ("stall-mio-throttle", M::StallMioThrottle),
        ("stall-lg-throttle", M::StallLgThrottle),
        ("stall-math-pipe", M::StallMathPipe),
        ("stall-wait", M::StallWait),
        ("stall-no-instruction", M::StallNoInstruction),
        ("stall-branch-resolving", M::StallBranchResolving),
        ("stall-imc-miss", M::StallImcMiss),
        ("stall-tex-throttle", M::StallTexThrottle),
        ("stall-membar", M::StallMembar),
        ("stall-sleeping", M::StallSleeping),
        ("stall-dispatch", M::StallDispatch),
        ("stall-gmma", M::StallGmma),
        ("stall-not-selected", M::StallNotSelected),
    ];
    let mut all: Vec<(&'static str, KernelLaunch)> =
        stalls.into_iter().map(|(rule, metric)| (rule, waiting(&[(metric, 8.0)]))).collect();
    all.extend([
        ("stall-barrier", synthetic("k()", &[&WAITING[..4], &[(M::PartBarrier, 45.0)][..]].concat())),
        (
            "stall-drain",
            synthetic(
                "k()",
                &[&WAITING[..4], &[(M::SampledDrain, 450.0), (M::Samples, 1000.0)][..]].concat(),
            ),
        ),
        ("occupancy-shared-memory", limits(M::LimitSharedMemory)),
        ("occupancy-warps", limits(M::LimitWarps)),
        ("occupancy-blocks", limits(M::LimitBlocks)),
        ("occupancy-barriers", limits(M::LimitBarriers)),
        ("tail", synthetic("k()", &[(M::Waves, 1.2)])),
        (
            "imbalance",
            synthetic("k()", &[(M::Waves, 9.0), (M::SmCyclesActive, 500.0), (M::SmCyclesActiveMax, 1000.0)]),
        ),
        (
            "compute-bound",
            synthetic("k()", &[(M::SmThroughput, 75.0), (M::MemoryThroughput, 20.0), (M::PipeFma, 70.0)]),
        ),
        (
            "l2-reuse",
            synthetic(
                "void conv2d<float>(T1 *)",
                &[
                    (M::SmThroughput, 20.0),
                    (M::MemoryThroughput, 90.0),
                    (M::DramThroughput, 90.0),
                    (M::L2HitRate, 12.0),
                ],
            ),
        ),
        (
            "misaligned-store",
            synthetic(
                "k()",
                &[(M::GlobalSectors, 125.0), (M::GlobalSectorsIdeal, 100.0), (M::StoreBytesPerSector, 25.6)],
            ),
        ),
        (
            "uncoalesced-access",
            synthetic("k()", &[(M::GlobalSectors, 4800.0), (M::GlobalSectorsIdeal, 800.0)]),
        ),
    ]);
    all
}

/// The rule, times and sectors too many of each insight about coalescing, and the gain in percent.
fn coalescing(launch: &KernelLaunch) -> Vec<(String, f64, Option<f64>, f64)> {
    told(&explain(launch), Code::NCU_UNCOALESCED_ACCESS)
        .into_iter()
        .map(|insight| {
            let gain = insight.gain.as_ref().map_or(0.0, |gain| (gain.share * 100.0).round());
            (insight.rule.clone(), insight.evidence["times"], insight.evidence.get("excess").copied(), gain)
        })
        .collect()
}

#[test]
fn without_lines_loads_and_stores_have_each_their_own_excess() {
    use Metric as M;
    let row = |rule: &str, times, excess, gain| (rule.to_owned(), times, excess, gain);
    let full = read("h200/lines.full.ncu-raw.csv.gz");
    let of = |name: &str| coalescing(full.launches.iter().find(|launch| launch.kernel.base == name).unwrap());
    // Of 18,874,368 sectors, of which the tool counts 14,680,064 as too many.
    let strided = of("scale_strided");
    assert_eq!((strided[0].1, strided[0].2, strided.len()), (8.0, Some(14_680_064.0), 1), "{strided:?}");
    let transposed = of("transpose_naive");
    assert_eq!((transposed[0].0.as_str(), transposed[0].1, transposed.len()), ("uncoalesced-store", 8.0, 1));
    assert!(of("sum_divergent").is_empty(), "one lane stores four bytes, and needs a sector for them");
    // 3,200 sectors loaded with 4 bytes of use in each, 1,600 stored with 8.
    let sides = [
        (M::GlobalLoads, 100.0),
        (M::LoadSectors, 3200.0),
        (M::LoadBytesPerSector, 4.0),
        (M::GlobalStores, 100.0),
        (M::StoreSectors, 1600.0),
        (M::StoreBytesPerSector, 8.0),
        (M::MemoryThroughput, 60.0),
    ];
    let sum = [(M::GlobalSectors, 4800.0), (M::GlobalSectorsIdeal, 800.0)];
    let apart =
        [row("uncoalesced-load", 8.0, Some(2800.0), 35.0), row("uncoalesced-store", 4.0, Some(1200.0), 15.0)];
    assert_eq!(coalescing(&synthetic("k()", &[&sides[..], &sum[..]].concat())), apart);
    assert_eq!(coalescing(&synthetic("k()", &sides)), apart);
    // Both together once, where the sides are not known, or claim more than there is.
    let together = |ideal: f64| {
        [row(
            "uncoalesced-access",
            4800.0 / ideal,
            Some(4800.0 - ideal),
            ((1.0 - ideal / 4800.0) * 60.0_f64).round(),
        )]
    };
    let only_sum = [&sides[6..], &sum[..]].concat();
    assert_eq!(coalescing(&synthetic("k()", &only_sum)), together(800.0));
    let less = [&sides[..], &[sum[0], (M::GlobalSectorsIdeal, 2000.0)]].concat();
    assert_eq!(coalescing(&synthetic("k()", &less)), together(2000.0));
}

#[test]
fn every_rule_is_told_of_some_kernel_and_says_what_to_do() {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for (rule, launch) in made_up() {
        let explanation = explain(&launch);
        let insight = explanation.insights.iter().find(|insight| insight.rule == rule);
        let insight = insight.unwrap_or_else(|| panic!("{rule} is not among {:#?}", explanation.insights));
        told.insert(insight.rule.clone());
    }
    let mut measured = read("h200/kernels.ncu-raw.csv.gz");
    measured.merge(read("h200/kernels.ncu-source-cuda-sass.csv.gz"));
    for launch in session("full").launches.iter().chain(&measured.launches) {
        for insight in explain(launch).insights {
            assert!(
                insight.limits.ends_with('.')
                    && insight.advice.ends_with('.')
                    && insight.link.starts_with("https://")
            );
            assert!(insight.limits.contains(&format!("`{}`", launch.kernel.base)), "{}", insight.limits);
            assert!(insight.place.is_some(), "{} has no line", insight.rule);
            assert!(
                insight.severity >= stitch_findings::Severity::Information,
                "performance is never a warning"
            );
            told.insert(insight.rule);
        }
    }
    let all: BTreeSet<String> = rules().map(|rule| rule.id.to_owned()).collect();
    assert_eq!(all.difference(&told).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(all.len(), rules().count(), "no two rules have the same name");
    for rule in rules() {
        assert!(rule.unless.iter().all(|better| all.contains(*better)), "{}", rule.id);
    }
}

#[test]
fn what_limits_is_said_with_its_numbers() {
    let text: String = made_up()
        .iter()
        .map(|(rule, launch)| {
            let insight = explain(launch).insights.into_iter().find(|insight| insight.rule == *rule).unwrap();
            format!("{}\n", insight.limits)
        })
        .collect();
    expect_file!["../data/made-up.explained.txt"].assert_eq(&text);
}
