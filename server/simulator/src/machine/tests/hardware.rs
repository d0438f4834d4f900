//! The kernels of `lines.cu` as `lines small` launches them, beside what an H200 printed and what Nsight Compute counted there.

use super::Parameter::{Int, Pointer};
use super::programs::{LINES, numbers};
use super::*;
use crate::counters::{Count, InstructionClass};

const PRINTED: &str = include_str!("h200/lines.small.stdout.txt");
const LOCAL: &str = include_str!("h200/lines.small.local.txt");
const COUNTED: &str = include_str!("h200/lines.small.counters.txt");

/// Lines whose machine code holds other accesses than the PTX, so that the numbers can't be equal.
const OTHER_ACCESSES: &[(&str, u32, &str)] =
    &[("matmul_tiled", 155, "ptxas reads four floats of a row of `ta` at once")];

const SIDE: usize = 128;
const N: usize = SIDE * SIDE;

struct Step {
    kernel: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    parameters: Vec<Parameter>,
    /// What is summed afterwards, and how much of it.
    result: (u64, usize),
}

fn steps(a: u64, b: u64, c: u64, bins: u64) -> Vec<Step> {
    let (n, mm) = (N as i32, 64);
    let (flat, block) = ([(N / 256) as u32, 1, 1], [256, 1, 1]);
    let (tiles, tile, g16, t16) = ([4, 4, 1], [32, 32, 1], [4, 4, 1], [16, 16, 1]);
    let step = |kernel, grid, block, parameters: &[Parameter], result| Step {
        kernel,
        grid,
        block,
        parameters: parameters.to_vec(),
        result,
    };
    let [a, b, c, bins] = [a, b, c, bins].map(Pointer);
    let Pointer(to_b) = b else { unreachable!() };
    let Pointer(to_c) = c else { unreachable!() };
    let side = Int(SIDE as i32);
    vec![
        step("scale_strided", flat, block, &[a, b, Int(n), Int(8)], (to_b, N)),
        step("scale_coalesced", flat, block, &[a, b, Int(n)], (to_b, N)),
        step("transpose_naive", tiles, tile, &[a, b, side], (to_b, N)),
        step("transpose_conflict", tiles, tile, &[a, b, side], (to_b, N)),
        step("transpose_padded", tiles, tile, &[a, b, side], (to_b, N)),
        step("sum_divergent", flat, block, &[a, c, Int(n)], (to_c, N / 256)),
        step("sum_sequential", flat, block, &[a, c, Int(n)], (to_c, N / 256)),
        step("count_contended", flat, block, &[a, bins, Int(n)], (to_c, 0)),
        step("axpb_double", flat, block, &[b, Int(n)], (to_b, N)),
        step("spill_registers", [1; 3], [1024, 1, 1], &[a, c, Int(n), Int(4)], (to_c, 1024)),
        step("local_indexed", flat, block, &[a, c, Int(n)], (to_c, N)),
        step("matmul_naive", g16, t16, &[a, b, c, Int(mm)], (to_c, 64 * 64)),
        step("matmul_tiled", g16, t16, &[a, b, c, Int(mm)], (to_c, 64 * 64)),
        step("fma_chain", flat, block, &[c, Int(n), Int(16)], (to_c, N)),
        step("small_grid", [8, 1, 1], block, &[a, c, Int(n)], (to_c, 8 * 256)),
    ]
}

/// What C's `%.6e` prints.
fn scientific(value: f64) -> String {
    let text = format!("{value:.6e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    format!("{mantissa}e{:+03}", exponent.parse::<i32>().unwrap())
}

#[test]
fn prints_and_counts_what_an_h200_does() {
    let bench = Bench::new(&[LINES]);
    let zeros = vec![0f32; N];
    let (a, b, c) = (bench.array(&numbers(N)), bench.array(&zeros), bench.array(&zeros));
    let bins = bench.array(&[0i32; 8]);
    let (mut printed, mut counted, mut local) = (String::new(), Vec::new(), Vec::new());
    for step in steps(a, b, c, bins) {
        let counters =
            bench.launch_with(step.kernel, step.grid, step.block, &step.parameters, |_| {}).unwrap();
        let values = bench.read::<f32>(step.result.0, step.result.1);
        let weighted = |(i, v): (usize, &f32)| f64::from(*v) * (i % 7 + 1) as f64;
        let sum = values.iter().enumerate().map(weighted).fold(0.0, |sum, v| sum + v);
        printed += &format!("{:<20} {}\n", step.kernel, scientific(sum));
        for line in counters.by_line() {
            let (kernel, at, c) = (step.kernel, line.line, line.count);
            let [sectors, ideal] = [|c: &Count| c.sectors, |c: &Count| c.ideal_sectors];
            // One line that reads global memory and writes shared memory, 32 warps of 16 blocks: each has requests of its own.
            if (kernel, at) == ("transpose_conflict", 36) {
                assert_eq!((c.requests, c.shared_requests), (512, 512));
            }
            let global = [sum_of(&counters, at, false, sectors), sum_of(&counters, at, false, ideal)];
            if global[0] + c.wavefronts > 0 {
                let [sectors, ideal] = global;
                counted.push(format!(
                    "{kernel} {at}: {sectors} {ideal} {} {}",
                    c.wavefronts, c.ideal_wavefronts
                ));
            }
            let sectors = sum_of(&counters, at, true, sectors);
            if sectors > 0 {
                local.push(format!("{kernel} {at}: {sectors}"));
            }
        }
    }
    let h = bench.read::<i32>(bins, 8).iter().map(i32::to_string).collect::<Vec<_>>().join(" ");
    printed += &format!("bins {h}\n");
    assert_eq!(printed, PRINTED);
    assert_eq!(compared(&counted), compared(&COUNTED.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()));
    assert_eq!(compared(&local), compared(&LOCAL.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()));
}

/// Lines sorted, without those that can't be equal: what one side counts and the other does not shows as a difference.
fn compared(lines: &[String]) -> String {
    let other = |line: &String| {
        OTHER_ACCESSES.iter().any(|(kernel, at, _)| line.starts_with(&format!("{kernel} {at}:")))
    };
    let mut lines: Vec<String> = lines.iter().filter(|line| !other(line)).cloned().collect();
    lines.sort();
    lines.join("\n")
}

/// A counter of a line's accesses to local memory, or of all others: both count sectors, which ncu keeps apart.
fn sum_of(counters: &LaunchCounters, line: u32, local: bool, f: fn(&Count) -> u64) -> u64 {
    let here =
        counters.instructions.iter().filter(|i| i.place.as_ref().is_some_and(|place| place.line == line));
    here.filter(|i| (i.class() == InstructionClass::Local) == local).map(|i| f(&i.count)).sum()
}
