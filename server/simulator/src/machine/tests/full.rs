//! `lines.cu` and `kernels.cu` as they were launched on an H200, at full size, beside what Nsight Compute counted there. A sample of the
//! blocks is run, and its counters are scaled to all blocks.

use std::collections::BTreeMap;

use super::Parameter::{Int, Pointer};
use super::programs::{LINES, numbers};
use super::*;
use crate::counters::InstructionClass;

const KERNELS: &str = include_str!("ptx/kernels.ptx");
const LINES_COUNTED: &str = include_str!("h200/lines.full.counters.txt");
const KERNELS_COUNTED: &str = include_str!("h200/kernels.counters.txt");

/// Rows and columns of the matrices.
const SIDE: i32 = 4096;
const N: i32 = SIDE * SIDE;
/// Rows and columns of the matrices that are multiplied.
const PRODUCT: i32 = 1024;

/// Lines that can't be equal, and why.
const OTHER: &[(&str, u32, &str)] = &[
    ("matmul_tiled", 155, "of lines.cu: ptxas reads four floats of a row of `ta` at once"),
    ("matmul_tiled", 15, "of kernels.cu: the same"),
    (
        "reduce_shared",
        12,
        "ncu counts the atomic add of a header, line 84, for the line where it is inlined too",
    ),
];

/// Kernels whose blocks differ, and by how much a sample of 1 in 8192 may be off, of 1.
const UNEVEN: &[(&str, f64)] = &[
    // The last thread of all has nothing to do.
    ("copy_offset", 1e-6),
    // Bins are those of random numbers.
    ("histogram_atomic", 0.02),
    // 62 rounds, and for the first blocks 63.
    ("reduce_shuffle", 0.02),
];

struct Step(&'static str, [u32; 3], [u32; 3], Vec<Parameter>);

fn lines(a: Parameter, b: Parameter, c: Parameter, bins: Parameter) -> Vec<Step> {
    let (n, side, product) = (Int(N), Int(SIDE), Int(PRODUCT));
    let (flat, block, tiles, tile) = ([65536, 1, 1], [256, 1, 1], [128, 128, 1], [32, 32, 1]);
    let (products, square) = ([64, 64, 1], [16, 16, 1]);
    vec![
        Step("scale_strided", flat, block, vec![a, b, n, Int(8)]),
        Step("scale_coalesced", flat, block, vec![a, b, n]),
        Step("transpose_naive", tiles, tile, vec![a, b, side]),
        Step("transpose_conflict", tiles, tile, vec![a, b, side]),
        Step("transpose_padded", tiles, tile, vec![a, b, side]),
        Step("sum_divergent", flat, block, vec![a, c, n]),
        Step("sum_sequential", flat, block, vec![a, c, n]),
        Step("count_contended", flat, block, vec![a, bins, n]),
        Step("axpb_double", flat, block, vec![b, n]),
        Step("spill_registers", [256, 1, 1], [1024, 1, 1], vec![a, c, n, Int(4)]),
        Step("local_indexed", flat, block, vec![a, c, n]),
        Step("matmul_naive", products, square, vec![a, b, c, product]),
        Step("matmul_tiled", products, square, vec![a, b, c, product]),
        Step("fma_chain", flat, block, vec![c, n, Int(2048)]),
        Step("small_grid", [8, 1, 1], block, vec![a, c, n]),
    ]
}

fn kernels(a: Parameter, b: Parameter, c: Parameter, bins: Parameter) -> Vec<Step> {
    let (n, product) = (Int(N), Int(PRODUCT));
    let (flat, block, tiles, tile) = ([65536, 1, 1], [256, 1, 1], [128, 128, 1], [32, 32, 1]);
    let (products, square, waves) = ([64, 64, 1], [16, 16, 1], [1056, 1, 1]);
    vec![
        Step("copy_coalesced", flat, block, vec![a, b, n]),
        Step("copy_strided", flat, block, vec![a, b, n, Int(8)]),
        Step("copy_strided", flat, block, vec![a, b, n, Int(33)]),
        Step("copy_offset", flat, block, vec![a, b, n, Int(1)]),
        Step("copy_vec4", [16384, 1, 1], block, vec![a, b, Int(N / 4)]),
        Step("transpose_naive", tiles, tile, vec![a, b]),
        Step("transpose_conflict", tiles, tile, vec![a, b]),
        Step("transpose_padded", tiles, tile, vec![a, b]),
        Step("reduce_shared", flat, block, vec![a, bins, n]),
        Step("reduce_shuffle", waves, block, vec![a, bins, n]),
        Step("matmul_naive", products, square, vec![a, b, c, product]),
        Step("matmul_tiled", products, square, vec![a, b, c, product]),
        Step("divergent", flat, block, vec![b, n]),
        Step("double_literal", flat, block, vec![b, n]),
        Step("histogram_atomic", flat, block, vec![a, bins, n]),
        Step("spill", [1024, 1, 1], block, vec![b, n]),
        Step("compute_bound", waves, block, vec![c, n]),
        Step("row_softmax", [4096, 1, 1], block, vec![a, b, Int(SIDE)]),
    ]
}

type Lines = BTreeMap<(String, u32), [f64; 4]>;

fn counted(text: &str) -> Lines {
    let line = |line: &str| {
        let (key, counts) = line.split_once(": ").unwrap();
        let (kernel, at) = key.split_once(' ').unwrap();
        let counts: Vec<f64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
        ((kernel.to_owned(), at.parse().unwrap()), counts.try_into().unwrap())
    };
    text.lines().skip(1).map(line).collect()
}

fn simulated(text: &str, steps: fn(Parameter, Parameter, Parameter, Parameter) -> Vec<Step>) -> Lines {
    let mut bench = Bench::new(&[text]);
    let zeros = vec![0f32; N as usize];
    let [a, b, c] = [&numbers(N as usize), &zeros, &zeros].map(|values| Pointer(bench.array(values)));
    let bins = Pointer(bench.array(&[0i32; 64]));
    let mut lines = Lines::new();
    for Step(kernel, grid, block, parameters) in steps(a, b, c, bins) {
        let blocks = f64::from(grid.iter().product::<u32>());
        bench.options.sample = Some((1.0_f64 / 8192.0).max(1.0 / blocks).min(0.999));
        let counters = bench.launch_with(kernel, grid, block, &parameters, |_| {}).unwrap();
        let factor = counters.grid_blocks as f64 / counters.blocks as f64;
        let global = counters.instructions.iter().filter(|one| one.class() != InstructionClass::Local);
        for one in global {
            let Some(place) = &one.place else { continue };
            let c = &one.count;
            let counts = [c.sectors, c.ideal_sectors, c.wavefronts, c.ideal_wavefronts];
            let sums = lines.entry((kernel.to_owned(), place.line)).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count as f64 * factor);
        }
    }
    lines.retain(|_, counts| counts.iter().any(|count| *count > 0.0));
    lines
}

fn agree(ours: &Lines, theirs: &Lines) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (key, counts) in theirs {
        if OTHER.iter().any(|(kernel, line, _)| *kernel == key.0 && *line == key.1) {
            assert_ne!(&ours[key], counts, "{key:?} is listed as different and is not");
            continue;
        }
        let allowed = UNEVEN.iter().find(|(kernel, _)| *kernel == key.0).map_or(0.0, |(_, off)| *off);
        for (ours, theirs) in ours[key].iter().zip(counts) {
            assert!((ours - theirs).abs() <= allowed * theirs, "{key:?}: simulated {ours}, counted {theirs}");
        }
    }
}

#[test]
fn counters_of_lines_at_full_size_are_those_of_an_h200() {
    agree(&simulated(LINES, lines), &counted(LINES_COUNTED));
}

#[test]
fn counters_of_kernels_at_full_size_are_those_of_an_h200() {
    agree(&simulated(KERNELS, kernels), &counted(KERNELS_COUNTED));
}
