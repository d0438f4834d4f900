//! Kernels of ordinary programs.

use super::Parameter::{Int, Pointer};
use super::*;

const LINES: &str = include_str!("ptx/lines.ptx");

fn numbers(n: usize) -> Vec<f32> {
    let mut seed = 12345u32;
    let mut next = || {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        (seed >> 8) as f32 * (1.0 / 16777216.0)
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn scales_coalesced() {
    let bench = Bench::new(&[LINES]);
    let n = 1000;
    let data = numbers(n);
    let (a, b) = (bench.array(&data), bench.array(&vec![0f32; n]));
    let parameters = [Pointer(a), Pointer(b), Int(n as i32)];
    let counters = bench.launch("scale_coalesced", 4, 256, &parameters).unwrap();
    let expected: Vec<f32> = data.iter().map(|v| 2.0 * v).collect();
    assert_eq!(bench.read::<f32>(b, n), expected);
    assert_eq!(counters.blocks, 4);
    assert_eq!(counters.total().sectors, 2 * 1000 * 4 / 32);
}

#[test]
fn multiplies_in_tiles() {
    let bench = Bench::new(&[LINES]);
    let n = 64;
    let (a, b) = (numbers(n * n), numbers(n * n + 7)[7..].to_vec());
    let (pa, pb, pc) = (bench.array(&a), bench.array(&b), bench.array(&vec![0f32; n * n]));
    let parameters = [Pointer(pa), Pointer(pb), Pointer(pc), Int(n as i32)];
    bench.launch_with("matmul_tiled", [4, 4, 1], [16, 16, 1], &parameters, |_| {}).unwrap();
    let expected: Vec<f32> = (0..n * n)
        .map(|at| (0..n).fold(0f32, |s, k| a[at / n * n + k].mul_add(b[k * n + at % n], s)))
        .collect();
    assert_eq!(bench.read::<f32>(pc, n * n), expected);
}

#[test]
fn sums_with_divergent_branches() {
    let bench = Bench::new(&[LINES]);
    let n = 2000;
    let data = numbers(n);
    for kernel in ["sum_divergent", "sum_sequential"] {
        let (a, c) = (bench.array(&data), bench.array(&[0f32; 8]));
        bench.launch(kernel, 8, 256, &[Pointer(a), Pointer(c), Int(n as i32)]).unwrap();
        let sum: f64 = bench.read::<f32>(c, 8).into_iter().map(f64::from).sum();
        let expected: f64 = data.iter().copied().map(f64::from).sum();
        assert!((sum - expected).abs() < 1e-3, "{kernel}: {sum} {expected}");
    }
}
