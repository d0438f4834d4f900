//! Each planted trait is told on its line, and no kernel is told a trait that it has not.

use std::collections::BTreeSet;

use expect_test::expect;
use stitch_findings::Code;
use stitch_profiles::kernel::{Explanation, Insight, Metric, explain, line_table};

use crate::{data, session, told};

/// A trait that a comment of `lines.cu` plants.
#[derive(Debug)]
pub(crate) struct Planted {
    pub kernel: String,
    /// The marked line; `None` for a trait of the whole kernel, whose comment stands alone above it.
    pub line: Option<u32>,
    pub text: String,
    pub code: Code,
}

/// What the comments' words are called here.
const TRAITS: &[(&str, Code)] = &[
    ("uncoalesced load", Code::NCU_UNCOALESCED_ACCESS),
    ("uncoalesced store", Code::NCU_UNCOALESCED_ACCESS),
    ("32-way bank conflict", Code::NCU_BANK_CONFLICT),
    ("divergent branch", Code::NCU_DIVERGENCE),
    ("atomic contention", Code::NCU_ATOMIC_CONTENTION),
    ("double arithmetic on float data", Code::NCU_DOUBLE_PRECISION),
    ("register spills", Code::NCU_SPILL),
    ("per-thread array", Code::NCU_LOCAL_MEMORY),
    ("run-time index", Code::NCU_LOCAL_MEMORY),
    ("compute bound", Code::NCU_COMPUTE_BOUND),
    ("grid too small", Code::NCU_GRID_TOO_SMALL),
];

fn kernel_of(line: &str) -> Option<String> {
    let rest = line.strip_prefix("__global__ void ")?;
    let rest = if rest.starts_with("__launch_bounds__") { rest.split_once(") ")?.1 } else { rest };
    Some(rest.split('(').next()?.to_owned())
}

pub(crate) fn planted() -> Vec<Planted> {
    let source = std::fs::read_to_string(data("../../../simulator/src/machine/tests/ptx/lines.cu")).unwrap();
    let mut kernel = String::new();
    let mut above: Option<String> = None;
    let mut found = Vec::new();
    let mut push = |kernel: &str, line, text: String| {
        let code =
            TRAITS.iter().find(|(words, _)| text.starts_with(words)).unwrap_or_else(|| panic!("{text}")).1;
        found.push(Planted { kernel: kernel.to_owned(), line, text, code });
    };
    for (at, line) in source.lines().enumerate() {
        if let Some(name) = kernel_of(line) {
            kernel = name;
            if let Some(text) = above.take() {
                push(&kernel, None, text);
            }
        }
        if let Some((before, text)) = line.split_once("// trait: ") {
            if before.is_empty() {
                above = Some(text.to_owned());
            } else {
                push(&kernel, Some(at as u32 + 1), text.to_owned());
            }
        }
    }
    found
}

/// The insight that tells a planted trait: on its line, or anywhere in the kernel where the whole kernel has it.
pub(crate) fn proof<'e>(explanation: &'e Explanation, planted: &Planted) -> Option<&'e Insight> {
    told(explanation, planted.code).into_iter().find(|insight| {
        let place = insight.place.as_ref().filter(|place| place.file == "lines.cu");
        place.is_some_and(|place| planted.line.is_none_or(|line| line == place.line))
    })
}

/// At the small size every grid is too small, also that of the kernel that computes.
fn expected_at(size: &str, planted: &Planted) -> bool {
    size == "full" || planted.code != Code::NCU_COMPUTE_BOUND
}

#[test]
fn every_planted_trait_is_told_on_its_line() {
    let planted = planted();
    assert_eq!(planted.len(), 11, "{planted:#?}");
    for size in ["full", "small"] {
        let report = session(size);
        assert_eq!(report.launches.len(), 15);
        assert_eq!(report.notes, []);
        for planted in planted.iter().filter(|planted| expected_at(size, planted)) {
            let launch = report.launches.iter().find(|launch| launch.kernel.base == planted.kernel).unwrap();
            let explanation = explain(launch);
            assert!(
                proof(&explanation, planted).is_some(),
                "{size}: {planted:?} is not among {:#?}",
                explanation.insights
            );
        }
    }
}

#[test]
fn no_kernel_is_told_a_trait_that_it_has_not() {
    let planted = planted();
    let codes: BTreeSet<Code> = TRAITS.iter().map(|(_, code)| *code).collect();
    for size in ["full", "small"] {
        for launch in &session(size).launches {
            let explanation = explain(launch);
            let mut has: BTreeSet<Code> = explanation
                .insights
                .iter()
                .map(|insight| insight.code)
                .filter(|code| codes.contains(code))
                .collect();
            if size == "small" {
                assert!(
                    has.remove(&Code::NCU_GRID_TOO_SMALL),
                    "64 blocks are too few for 132 multiprocessors"
                );
            }
            let ought = planted
                .iter()
                .filter(|planted| planted.kernel == launch.kernel.base && expected_at(size, planted));
            let mut ought: BTreeSet<Code> = ought.map(|planted| planted.code).collect();
            if size == "small" {
                ought.remove(&Code::NCU_GRID_TOO_SMALL);
            }
            assert_eq!(has, ought, "{size}: {}", launch.kernel.base);
        }
    }
}

#[test]
fn the_worst_access_comes_first_among_a_kernels_lines() {
    let report = session("full");
    let first = |kernel: &str| {
        let launch = report.launches.iter().find(|launch| launch.kernel.base == kernel).unwrap();
        let table = line_table(launch);
        let shares: f64 = table.iter().filter_map(|row| row.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{kernel}: {shares}");
        format!("{}: {}", table[0].place.line, table[0].remarks.join(", "))
    };
    expect!["14: 8.0 times the sectors"].assert_eq(&first("scale_strided"));
    expect!["29: 8.0 times the sectors, waits: long scoreboard"].assert_eq(&first("transpose_naive"));
    expect!["40: 32-way bank conflict, waits: barrier"].assert_eq(&first("transpose_conflict"));
    expect!["22: waits: long scoreboard"].assert_eq(&first("scale_coalesced"));
    expect!["123: 134,217,728 sectors of local memory"].assert_eq(&first("local_indexed"));
}

#[test]
fn a_hot_header_line_is_told_where_it_was_inlined() {
    let report = session("full");
    let launch = &report.launches[7];
    assert_eq!(launch.kernel.base, "count_contended");
    let atomic = launch.instructions.iter().find(|instruction| instruction.text.starts_with("REDG")).unwrap();
    assert_eq!((atomic.file.as_deref(), atomic.line), (Some("lines.cu"), Some(88)));
    assert!(
        launch
            .lines
            .iter()
            .any(|line| line.file.ends_with("device_atomic_functions.hpp") && line.line == 107)
    );
}

#[test]
fn lines_and_instructions_are_counted_once() {
    for launch in &session("full").launches {
        // The raw page counts the same instructions in another pass.
        let executed: u64 =
            launch.instructions.iter().filter_map(|instruction| instruction.counters.instructions).sum();
        let whole = launch.metrics[&Metric::Instructions];
        assert!(
            (executed as f64 - whole).abs() <= whole * 1e-6,
            "{}: {executed} and {whole}",
            launch.kernel.base
        );
        let shares: f64 =
            launch.lines.iter().filter(|line| line.file == "lines.cu").filter_map(|line| line.share).sum();
        assert!((0.95..=1.0 + 1e-9).contains(&shares), "{}: {shares}", launch.kernel.base);
        assert!(
            launch.instructions.iter().all(|instruction| instruction.file.as_deref() == Some("lines.cu"))
        );
    }
}
