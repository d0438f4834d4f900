//! A share of the blocks tells of all of them.

use super::Parameter::{Int, Pointer};
use super::programs::{LINES, numbers};
use std::time::{Duration, Instant};

use super::*;
use crate::counters::Count;
use crate::machine::grid::Chosen;

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

#[test]
fn when_time_is_up_a_launch_goes_on_with_a_sample_of_its_blocks() {
    let mut bench = Bench::new(&[LINES]);
    let n = 4096 * 256;
    let input = bench.array(&numbers(n));
    let output = bench.array(&vec![0f32; n]);
    let parameters = [Pointer(input), Pointer(output), Int(n as i32)];
    let launch = |bench: &Bench| {
        bench.launch_with("scale_coalesced", [4096, 1, 1], [256, 1, 1], &parameters, |_| {}).unwrap()
    };
    let full = launch(&bench);
    // With time to spare, all blocks run.
    bench.options.until = Some(Instant::now() + Duration::from_secs(600));
    assert_eq!(launch(&bench).instructions, full.instructions);
    // Without any, some do, of the whole grid: of this kernel, each as all others.
    bench.options.until = Some(Instant::now());
    let part = launch(&bench);
    assert!((1..4096).contains(&part.blocks), "{} blocks", part.blocks);
    assert_eq!(part.grid_blocks, 4096);
    assert_eq!(part.warp_instructions * 4096, full.warp_instructions * part.blocks);
    assert_eq!(part.total().sectors * 4096, full.total().sectors * part.blocks);
}

#[test]
fn each_beginning_of_a_sample_is_spread_over_all_blocks() {
    for count in [1u64, 2, 7, 64, 1000] {
        let numbers: Vec<u64> = (100..100 + count).collect();
        let chosen = Chosen::new(100 + count, None).rest(100);
        let spread: Vec<u64> = (0..count + 5).map_while(|at| chosen.get(at)).collect();
        let mut sorted = spread.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, numbers);
        // Each quarter of the grid has about a quarter of a beginning.
        for taken in [16, 64, 256].into_iter().filter(|taken| *taken <= count as usize) {
            let quarter = |number: &u64| (number - 100) * 4 / count;
            for which in 0..4 {
                let has = spread[..taken].iter().filter(|number| quarter(number) == which).count();
                assert!(has * 8 >= taken && has * 2 <= taken + 8, "{count} {taken} {which}: {has}");
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
