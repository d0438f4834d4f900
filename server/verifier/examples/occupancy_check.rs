//! Compares what the CUDA runtime of a real GPU says of occupancy with what we reckon.
//!
//! Reads what `tests/device/occupancy.cu` printed: `cargo run -p stitch-verifier --example occupancy_check -- FILE`. Exit
//! status 0 if every line agrees, 1 if one does not or there is none.

use std::process::ExitCode;

use stitch_verifier::architecture::Architecture;
use stitch_verifier::occupancy::{Usage, limits, theoretical_occupancy};

/// One line: an architecture, registers, static and dynamic shared memory, barriers, the block, and the resident blocks.
fn check(line: &str) -> Option<Result<(), String>> {
    let numbers: Vec<u32> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [architecture, registers, fixed, dynamic, barriers, block, blocks] = numbers[..] else { return None };
    let architecture: Architecture = architecture.to_string().parse().ok()?;
    let limits = limits(architecture)?;
    let usage = Usage { registers, shared: u64::from(fixed) + u64::from(dynamic), barriers, block };
    let ours = theoretical_occupancy(limits, &usage);
    let same = ours.active_blocks == blocks;
    Some(if same {
        Ok(())
    } else {
        Err(format!("{line}: we say {} blocks, {}", ours.active_blocks, ours.reason()))
    })
}

#[allow(clippy::print_stdout, reason = "printing is what it is for")]
fn main() -> ExitCode {
    let text =
        std::env::args_os().nth(1).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let (mut agree, mut differ, mut unread) = (0usize, 0usize, 0usize);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match check(line) {
            Some(Ok(())) => agree += 1,
            Some(Err(difference)) => {
                differ += 1;
                println!("{difference}");
            }
            None => unread += 1,
        }
    }
    println!("{agree} agree, {differ} differ, {unread} could not be read");
    if agree > 0 && differ == 0 && unread == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
