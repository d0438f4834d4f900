//! Caches, on kernels whose hit rates an H200 has shown (`tests/h200/measured.txt`, the rows of `small`).

use super::Parameter::{Int, Pointer};
use super::*;
use crate::counters::Cached;
use crate::device::Device;

const LINES: &str = include_str!("ptx/lines.ptx");
const N: usize = 128 * 128;

fn bench() -> Bench {
    let mut bench = Bench::new(&[LINES]);
    bench.options.caches = Device::named("h200");
    bench
}

fn cached(bench: &Bench, kernel: &str, grid: u32, block: u32, parameters: &[Parameter]) -> Cached {
    bench.launch(kernel, grid, block, parameters).unwrap().total().cached
}

#[test]
fn stores_write_through_and_make_no_room() {
    let bench = bench();
    let (a, b) = (bench.array(&[1.0f32; N]), bench.array(&[0.0f32; N]));
    let seen = cached(&bench, "scale_coalesced", 64, 256, &[Pointer(a), Pointer(b), Int(N as i32)]);
    assert_eq!((seen.l1_sectors, seen.l1_hits, seen.l1_lines), (4096, 0, 1024));
    assert_eq!((seen.l2_sectors, seen.l2_hits), (4096, 2048));
    assert_eq!((seen.dram_read, seen.dram_written), (2048, 0));
    // What was read before is there when it is stored.
    let seen = cached(&bench, "axpb_double", 64, 256, &[Pointer(b), Int(N as i32)]);
    assert_eq!((seen.l1_sectors, seen.l1_hits), (4096, 2048));
}

#[test]
fn warps_find_what_others_of_their_block_fetched() {
    let bench = bench();
    let all = [1.0f32; 64 * 64];
    let [a, b, c] = [all; 3].map(|values| bench.array(&values));
    let launched = bench.launch_with(
        "matmul_naive",
        [4, 4, 1],
        [16, 16, 1],
        &[Pointer(a), Pointer(b), Pointer(c), Int(64)],
        |_| {},
    );
    let seen = launched.unwrap().total().cached;
    // An H200: 86.15 % with the stores, of which none is found.
    assert_eq!((seen.l1_sectors, seen.l1_hits), (33_280, 28_672));
    assert_eq!(seen.dram_read, 1024);
}

#[test]
fn local_memory_is_kept_where_it_is_stored() {
    let bench = bench();
    // The numbers of `lines.cu`: they choose which words of its array a thread uses.
    let mut seed = 12345_u32;
    let numbers: Vec<f32> = (0..N)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / 16_777_216.0
        })
        .collect();
    let (a, b) = (bench.array(&numbers), bench.array(&[0.0f32; N]));
    let seen = cached(&bench, "local_indexed", 64, 256, &[Pointer(a), Pointer(b), Int(N as i32)]);
    let rate = seen.l1_hit_rate().unwrap();
    assert!((0.70..0.80).contains(&rate), "an H200 found 75 %: {rate}");
}

#[test]
fn nothing_is_modelled_unless_it_is_asked_for() {
    let bench = Bench::new(&[LINES]);
    let (a, b) = (bench.array(&[1.0f32; N]), bench.array(&[0.0f32; N]));
    let seen = bench.launch("scale_coalesced", 64, 256, &[Pointer(a), Pointer(b), Int(N as i32)]).unwrap();
    assert_eq!((seen.total().cached, seen.hottest_line), (Cached::default(), None));
}
