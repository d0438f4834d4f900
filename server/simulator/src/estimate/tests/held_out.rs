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

/// A program that was measured afterwards.
struct Program {
    name: &'static str,
    /// What it is and how it was timed.
    about: &'static str,
    /// Counters of the same launches, written by the example `record`.
    recorded: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "demo",
        about: "the kernels of `stitchcuda demo` and what its rewrites made of two of them (`server/simulator/tests/h200/held_out/demo.cu`), timed by its
harnesses: calls in a row on the same data. So what fits in the L2 (the 20 to 40 MB of all but the transposes) is found there, while the estimate begins with
empty caches.",
        recorded: include_str!("../../../tests/h200/demo.txt"),
    },
    Program {
        name: "held_out",
        about: "kernels of many kinds, written for this and simulated before they were measured (`server/simulator/tests/h200/held_out/main.cu`), the
durations of Nsight Compute, clocks free and caches flushed before each kernel.",
        recorded: include_str!("../../../tests/h200/held_out.txt"),
    },
];

/// Measured and estimated, of the programs of which there are times.
pub(super) fn pairs() -> Vec<(&'static str, Vec<(Row, Row)>)> {
    let of = |program: &Program| {
        let ours = simulated(program.recorded);
        let lines = TIMES.lines().filter(|line| line.split(' ').next() == Some(program.name));
        let both = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let kernel = words[1].to_owned();
            let nanoseconds = words[2].parse::<f64>().unwrap() * 1e3;
            let own = named(&ours, &kernel);
            (Row { kernel, launches: 1, nanoseconds, ..Row::default() }, own)
        };
        (program.name, lines.map(both).collect::<Vec<_>>())
    };
    PROGRAMS.iter().map(of).filter(|(_, rows)| !rows.is_empty()).collect()
}

/// Each program, what it is, and its times.
pub(super) fn tables(held_out: &[(&'static str, Vec<(Row, Row)>)]) -> String {
    let mut text = String::new();
    for pair in held_out {
        let about =
            PROGRAMS.iter().find(|program| program.name == pair.0).map_or("", |program| program.about);
        let _ = writeln!(text, "`{}`: {about}", pair.0);
        let rows = times(std::slice::from_ref(pair));
        // Its own heading says the name.
        text += rows.split_once(":\n").map_or("", |(_, table)| table);
        text.push('\n');
    }
    text
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
        line(&mut text, &format!("held out: `{program}`"), rows);
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
