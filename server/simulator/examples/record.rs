//! Writes down what estimates are made of: `record REPORT.json > tests/h200/NAME.txt`, from a report of `simulate --caches --report`.
//!
//! A kernel is a line of its name and shape, and then lines of its instructions, of which neighbours that do the same and touch no memory
//! are one. The tests make the tables of `docs/estimates.md` from these files.

#![allow(clippy::print_stdout)]

use std::error::Error;

use serde_json::Value;

const COUNTS: [&str; 11] = [
    "warps",
    "requests",
    "shared_requests",
    "wavefronts",
    "l1_lines",
    "l1_sectors",
    "l1_hits",
    "l2_sectors",
    "l2_hits",
    "dram_read_sectors",
    "dram_written_sectors",
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: record REPORT.json")?;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    for kernel in report["kernels"].as_array().into_iter().flatten() {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let product = |value: &Value| value.as_array().into_iter().flatten().map(number).product::<u64>();
        let counters = &kernel["counters"];
        println!(
            "kernel {} launches {} blocks {} threads {} registers {} shared {} warp_instructions {} hottest_line {}",
            kernel["name"].as_str().unwrap_or_default(),
            number(&kernel["launches"]),
            product(&kernel["grid"]),
            product(&kernel["block"]),
            number(&kernel["registers"]),
            number(&kernel["shared"]),
            number(&counters["warp_instructions"]),
            number(&counters["hottest_line"]),
        );
        let mut last: Option<(String, [u64; 11])> = None;
        for one in counters["instructions"].as_array().into_iter().flatten() {
            let opcode = one["opcode"].as_str().unwrap_or_default().to_owned();
            let counts = COUNTS.map(|name| number(&one["count"][name]));
            if counts[0] == 0 {
                continue;
            }
            match &mut last {
                Some((same, sum)) if *same == opcode && sum[1] + sum[2] + counts[1] + counts[2] == 0 => {
                    sum[0] += counts[0];
                }
                _ => {
                    print(last.take());
                    last = Some((opcode, counts));
                }
            }
        }
        print(last);
    }
    Ok(())
}

fn print(row: Option<(String, [u64; 11])>) {
    let Some((opcode, counts)) = row else { return };
    // Zeros at the end say nothing.
    let length = counts.iter().rposition(|count| *count > 0).map_or(0, |at| at + 1);
    let words: Vec<String> = counts[..length].iter().map(u64::to_string).collect();
    println!("{opcode} {}", words.join(" "));
}
