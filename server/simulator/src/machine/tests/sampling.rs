//! A share of the blocks tells of all of them.

use super::Parameter::{Int, Pointer};
use super::programs::{LINES, numbers};
use super::*;
use crate::counters::Count;

/// Kernels of `lines.cu` whose blocks all do the same, with their grids and blocks.
const UNIFORM: &[(&str, [u32; 3], [u32; 3])] = &[
    ("scale_coalesced", [64, 1, 1], [256, 1, 1]),
    ("transpose_naive", [8, 8, 1], [32, 32, 1]),
    ("transpose_conflict", [8, 8, 1], [32, 32, 1]),
    ("transpose_padded", [8, 8, 1], [32, 32, 1]),
    ("sum_divergent", [64, 1, 1], [256, 1, 1]),
    ("sum_sequential", [64, 1, 1], [256, 1, 1]),
];

const SIDE: usize = 256;

fn times(count: &Count, factor: u64) -> Count {
    let mut sum = *count;
    (1..factor).for_each(|_| sum.add(count));
    sum
}

#[test]
fn counters_of_a_sample_of_a_uniform_kernel_scale_to_those_of_all_blocks() {
    let mut bench = Bench::new(&[LINES]);
    let input = bench.array(&numbers(SIDE * SIDE));
    let output = bench.array(&vec![0f32; SIDE * SIDE]);
    for &(kernel, grid, block) in UNIFORM {
        let n = if kernel.starts_with("transpose") { SIDE as i32 } else { 64 * 256 };
        let parameters = [Pointer(input), Pointer(output), Int(n)];
        bench.options.sample = None;
        let full = bench.launch_with(kernel, grid, block, &parameters, |_| {}).unwrap();
        for (share, factor) in [(0.5, 2), (0.25, 4), (1.0 / 64.0, 64)] {
            bench.options.sample = Some(share);
            let part = bench.launch_with(kernel, grid, block, &parameters, |_| {}).unwrap();
            assert_eq!((part.blocks * factor, part.grid_blocks), (64, 64), "{kernel}");
            assert_eq!(part.warp_instructions * factor, full.warp_instructions, "{kernel}");
            for (one, all) in part.instructions.iter().zip(&full.instructions) {
                assert_eq!(times(&one.count, factor), all.count, "{kernel} {} {share}", all.opcode);
            }
        }
    }
}

/// Where blocks differ, a sample is off by what they differ: here the last of eight blocks has half a warp to do.
#[test]
fn counters_of_a_sample_of_an_uneven_kernel_are_near() {
    let mut bench = Bench::new(&[LINES]);
    let input = bench.array(&numbers(2048));
    let output = bench.array(&vec![0f32; 2048]);
    let parameters = [Pointer(input), Pointer(output), Int(7 * 256 + 16)];
    let full = bench.launch_with("scale_coalesced", [8, 1, 1], [256, 1, 1], &parameters, |_| {}).unwrap();
    bench.options.sample = Some(0.5);
    let part = bench.launch_with("scale_coalesced", [8, 1, 1], [256, 1, 1], &parameters, |_| {}).unwrap();
    // Blocks 0, 2, 4 and 6 are full: 2 times 4 times 32 sectors in and out, of 7 times 32 and 2.
    assert_eq!((full.total().sectors, part.total().sectors * 2), (2 * (7 * 32 + 2), 2 * 8 * 32));
}
