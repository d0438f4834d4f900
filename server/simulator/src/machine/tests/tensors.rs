//! Instructions of tensor cores beside the results of an H200, bit by bit.
//!
//! `tests/h200/tensors` is the program that ran there; `tests/h200/tensors.txt` has, for each of its lines and kinds of inputs, hashes
//! of what the H200 gave. The kernels here do what those of the program do, without the compiler of CUDA.

mod kernels;
mod numbers;

use super::*;
use kernels::Kernel;
use numbers::{KINDS, Kind, Random, format, hash};

const RESULTS: &str = include_str!("../../../tests/h200/tensors.txt");

/// Tiles that are looked at here, of up to 256.
const TILES: usize = 8;

/// A line of the results: the instruction, the kind of its inputs, the hash of the first tiles.
struct Line {
    name: &'static str,
    kind: Kind,
    first: u32,
}

fn lines() -> Vec<Line> {
    let rows = RESULTS.lines().filter(|row| !row.starts_with('#'));
    rows.map(|row| {
        let words: Vec<&str> = row.split(' ').collect();
        let [name, kind, _, first] = words[..] else { panic!("{row}") };
        let kind = KINDS.iter().find(|(name, _)| *name == kind).unwrap().1;
        Line { name, kind, first: u32::from_str_radix(first, 16).unwrap() }
    })
    .collect()
}

/// The inputs of the first tiles.
fn input(line: &Line, kernel: &Kernel, number: usize) -> Vec<u8> {
    let input = &kernel.inputs[number];
    let tile = |tile| {
        let mut random = Random::of(line.name, line.kind, number, tile);
        match input.format {
            "metadata" => random.metadata(input.bytes, false),
            "metadata32" => random.metadata(input.bytes, true),
            _ if input.sum && tile % 4 == 1 => vec![0; input.bytes],
            name => random.fill(input.bytes, format(name).unwrap(), line.kind, input.sum),
        }
    };
    (0..TILES).flat_map(tile).collect()
}

/// The hash of the first tiles' results.
fn simulated(line: &Line, kernel: &Kernel) -> u32 {
    let mut bench = Bench::new(&[&kernel.text]);
    bench.options.checks = Checks::None;
    bench.options.counters = false;
    let inputs = (0..4).map(|number| {
        let bytes = if number < kernel.inputs.len() { input(line, kernel, number) } else { vec![0] };
        Parameter::Pointer(bench.array(&bytes))
    });
    let mut parameters: Vec<Parameter> = inputs.collect();
    let out = bench.array(&vec![0u8; kernel.result * TILES]);
    parameters.push(Parameter::Pointer(out));
    let launched = bench.launch("product", TILES as u32, kernel.threads, &parameters);
    launched.unwrap_or_else(|fault| panic!("{}: {fault}\n{}", line.name, kernel.text));
    let results = bench.read::<u8>(out, kernel.result * TILES);
    let folded = results.chunks(kernel.result).flat_map(|tile| fold(hash(tile)).to_le_bytes());
    fold(hash(&folded.collect::<Vec<u8>>()))
}

fn fold(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

/// Runs the lines that begin so, every kind of inputs, and says which differ.
fn are_equal(prefix: &str, lines_of_it: usize) {
    let (mut count, mut differ) = (0, Vec::new());
    for line in lines().iter().filter(|line| line.name.starts_with(prefix)) {
        let Some(kernel) = Kernel::new(line.name) else { continue };
        count += 1;
        if simulated(line, &kernel) != line.first {
            differ.push(format!("{} {:?}", line.name, line.kind));
        }
    }
    assert!(differ.is_empty(), "{} of {count}: {differ:#?}", differ.len());
    assert_eq!(count, lines_of_it, "{prefix}");
}

#[test]
fn mma_of_8_rows_gives_what_an_h200_gives() {
    are_equal("m8n8", 76);
}

#[test]
fn mma_of_16_rows_gives_what_an_h200_gives() {
    are_equal("m16n8", 166);
}

#[test]
fn sparse_mma_gives_what_an_h200_gives() {
    are_equal("sp.", 140);
}

#[test]
fn wmma_gives_what_an_h200_gives() {
    are_equal("wmma.", 200);
}

#[test]
fn wgmma_gives_what_an_h200_gives() {
    are_equal("wgmma.m64n8k", 158);
}

/// No line has these; the machine code says how they are made of others.
#[test]
fn f16_sums_of_8_bit_numbers_are_those_of_widened_ones() {
    for name in ["m16n8k32.row.col.f16.e4m3.e4m3.f16", "m16n8k32.row.col.f16.e5m2.e5m2.f16"] {
        for (_, kind) in KINDS {
            let line = Line { name, kind, first: 0 };
            let (whole, widened) = (Kernel::new(name).unwrap(), Kernel::widened(name));
            assert_eq!(simulated(&line, &whole), simulated(&line, &widened), "{name} {kind:?}");
        }
    }
}
