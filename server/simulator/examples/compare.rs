//! Compares the counters of source lines with those that Nsight Compute counted: `compare REPORT.json NCU.csv`.
//!
//! The report is one of `simulate --report`; the other file is what `ncu --page source --csv` printed of the same launches, built with
//! `-lineinfo`. Where a share of the blocks was simulated, counters are scaled to all of them. Compared are the theoretical sectors of
//! global memory, the ideal, the wavefronts of shared memory and the ideal of these, for every line where one side has any.

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use serde_json::Value;

/// What is compared of a line: ncu's column, and the counter of a report.
const COLUMNS: [(&str, &str); 4] = [
    ("L2 Theoretical Sectors Global", "sectors"),
    ("L2 Theoretical Sectors Global Ideal", "ideal_sectors"),
    ("L1 Wavefronts Shared", "wavefronts"),
    ("L1 Wavefronts Shared Ideal", "ideal_wavefronts"),
];

/// Counters by kernel and source line.
type Lines = BTreeMap<(String, u64), [f64; 4]>;

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [report, counted] = &files[..] else { return Err("usage: compare REPORT.json NCU.csv".into()) };
    let counted = counted_by_ncu(&std::fs::read_to_string(counted)?);
    let kernels: Vec<&String> = counted.keys().map(|(kernel, _)| kernel).collect();
    let simulated = simulated(&serde_json::from_str(&std::fs::read_to_string(report)?)?, &kernels);
    let mut keys: Vec<_> = counted.keys().chain(simulated.keys()).collect();
    keys.sort();
    keys.dedup();
    let (mut lines, mut equal, mut farthest) = (0, 0, 0.0_f64);
    let mut columns = [(0, 0); 4];
    for key in keys {
        let (ours, theirs) = (simulated.get(key).unwrap_or(&[0.0; 4]), counted.get(key).unwrap_or(&[0.0; 4]));
        if ours.iter().chain(theirs).all(|count| *count == 0.0) {
            continue;
        }
        lines += 1;
        let off = |(ours, theirs): (&f64, &f64)| (ours - theirs).abs() / theirs.max(1.0);
        let error = ours.iter().zip(theirs).map(off).fold(0.0, f64::max);
        farthest = farthest.max(error);
        for (one, pair) in columns.iter_mut().zip(ours.iter().zip(theirs)) {
            one.0 += usize::from((*pair.0 > 0.0 || *pair.1 > 0.0) && off(pair) < 1e-9);
            one.1 += usize::from(*pair.0 > 0.0 || *pair.1 > 0.0);
        }
        if error < 1e-9 {
            equal += 1;
        } else {
            println!(
                "{} {}: simulated {ours:?}, counted {theirs:?}, off by {:.3}%",
                key.0,
                key.1,
                error * 100.0
            );
        }
    }
    for ((name, _), (equal, lines)) in COLUMNS.iter().zip(columns) {
        println!("{name}: {equal} of {lines} lines equal");
    }
    println!("{equal} of {lines} lines equal; the farthest is off by {:.3}%", farthest * 100.0);
    Ok(())
}

/// The lines of a source page. Rows of instructions have no line number.
fn counted_by_ncu(text: &str) -> Lines {
    let mut lines = Lines::new();
    let (mut kernel, mut columns): (String, HashMap<String, usize>) = Default::default();
    for row in text.lines().map(fields) {
        match row.first().map(String::as_str) {
            Some("Function Name") => {
                let name = row.get(1).map_or("", String::as_str);
                kernel = name.split(['(', '<']).next().unwrap_or(name).trim_start_matches("void ").to_owned();
            }
            Some("Line No") => columns = row.into_iter().enumerate().map(|(at, name)| (name, at)).collect(),
            Some(number) => {
                let Ok(number) = number.parse() else { continue };
                let sum = lines.entry((kernel.clone(), number)).or_default();
                for (sum, (column, _)) in sum.iter_mut().zip(COLUMNS) {
                    let field = columns.get(column).and_then(|&at| row.get(at));
                    *sum += field.and_then(|count| count.parse::<f64>().ok()).unwrap_or(0.0);
                }
            }
            None => {}
        }
    }
    lines
}

/// The fields of a row of CSV, all of them quoted.
fn fields(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('"').trim_end_matches('"');
    inner.split("\",\"").map(|field| field.replace("\"\"", "\"")).collect()
}

/// The lines of a report, scaled to all blocks.
fn simulated(report: &Value, kernels: &[&String]) -> Lines {
    let mut lines = Lines::new();
    for kernel in report["kernels"].as_array().into_iter().flatten() {
        let mangled = kernel["name"].as_str().unwrap_or("");
        let named = |name: &&&String| mangled.contains(&format!("{}{name}", name.len()));
        let Some(name) = kernels.iter().find(named) else { continue };
        let counters = &kernel["counters"];
        let blocks = [&counters["grid_blocks"], &counters["blocks"]].map(|n| n.as_f64().unwrap_or(0.0));
        for one in counters["instructions"].as_array().into_iter().flatten() {
            let Some(line) = one["place"][1].as_u64() else { continue };
            let local = one["opcode"].as_str().is_some_and(|opcode| opcode.contains(".local"));
            let sum = lines.entry(((**name).clone(), line)).or_default();
            for (sum, (_, counter)) in sum.iter_mut().zip(COLUMNS) {
                if !local {
                    *sum += one["count"][counter].as_f64().unwrap_or(0.0) * blocks[0] / blocks[1].max(1.0);
                }
            }
        }
    }
    lines
}
