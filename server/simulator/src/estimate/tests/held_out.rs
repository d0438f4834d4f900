//! Which times the constants were taken from, which were at hand when they were chosen, and which were measured afterwards.

use super::*;

/// Kernels whose times a constant was taken from, by program. The comments of the constants say which.
const FITTED: [(&str, &str, &str); 15] = [
    ("`lines small`", "scale_strided", "LAUNCH"),
    ("`lines small`", "scale_coalesced", "LAUNCH"),
    ("`lines small`", "transpose_conflict", "LAUNCH"),
    ("`lines small`", "transpose_padded", "LAUNCH"),
    ("`lines small`", "axpb_double", "LAUNCH"),
    ("`lines small`", "fma_chain", "LAUNCH"),
    ("`lines small`", "sum_divergent", "LAUNCH"),
    ("`lines small`", "sum_sequential", "LAUNCH"),
    ("`lines`", "scale_coalesced", "BLOCK"),
    ("`lines`", "count_contended", "UPDATE"),
    ("`lines`", "small_grid", "DRAM_LATENCY"),
    ("`kernels`", "copy_strided", "REACHABLE"),
    ("`kernels`", "transpose_naive", "FLIT"),
    ("`kernels`", "spill", "FLIT"),
    ("`kernels`", "histogram_atomic", "UPDATE"),
];

const TIMES: &str = include_str!("../../../tests/h200/times.txt");
/// Counters of the same launches, written by the example `record`.
const PROGRAMS: [(&str, &str, &str); 1] = [("demo", "`demo`", include_str!("../../../tests/h200/demo.txt"))];

/// Measured and estimated, of the programs that were measured afterwards.
pub(super) fn pairs() -> Vec<(&'static str, Vec<(Row, Row)>)> {
    let of = |(name, title, text): (&'static str, &'static str, &'static str)| {
        let ours = simulated(text);
        let lines = TIMES.lines().filter(|line| line.split(' ').next() == Some(name));
        let both = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let kernel = words[1].to_owned();
            let nanoseconds = words[2].parse::<f64>().unwrap() * 1e3;
            let own = named(&ours, &kernel);
            (Row { kernel, launches: 1, nanoseconds, ..Row::default() }, own)
        };
        (title, lines.map(both).collect())
    };
    PROGRAMS.into_iter().map(of).collect()
}

/// The table that keeps apart what was fitted and what was not.
pub(super) fn apart(seen: &[(&str, Vec<(Row, Row)>)], held_out: &[(&str, Vec<(Row, Row)>)]) -> String {
    let (mut fitted, mut others) = (Vec::new(), Vec::new());
    for (program, rows) in seen {
        for row in rows {
            let is = FITTED.iter().any(|(of, kernel, _)| of == program && *kernel == row.0.kernel);
            if is { fitted.push(row.clone()) } else { others.push(row.clone()) }
        }
    }
    assert_eq!(fitted.len(), FITTED.len());
    let mut text = HEAD.to_owned();
    line(&mut text, "a constant was taken from them", &fitted);
    line(&mut text, "at hand when the model was made, but no constant was taken from them", &others);
    let mut all = Vec::new();
    for (program, rows) in held_out {
        line(&mut text, &format!("held out: {program}"), rows);
        all.extend(rows.iter().cloned());
    }
    line(&mut text, "all that were held out", &all);
    text
}

#[test]
fn half_of_what_was_held_out_is_off_by_less_than_1_5() {
    let factors: Vec<f64> = pairs().iter().flat_map(|(_, rows)| rows).map(factor).collect();
    assert!(median(factors.clone()) < 1.5, "{factors:?}");
}

/// A constant that is taken from other kernels has to be said so here.
#[test]
fn every_constant_from_a_time_names_its_kernels() {
    let text = include_str!("../../estimate.rs");
    for (_, kernel, constant) in FITTED {
        let end = text.find(&format!("const {constant}:")).unwrap();
        let comment = &text[text[..end].rfind(";\n").map_or(0, |at| at)..end];
        let all = constant == "LAUNCH" && comment.contains("those that touch their");
        assert!(all || comment.contains(&format!("`{kernel}`")), "{constant}: {comment}");
    }
}
