//! Kernels of ordinary programs.

use super::Parameter::{Int, Pointer};
use super::*;
use crate::counters::InstructionClass;

pub(super) const LINES: &str = include_str!("ptx/lines.ptx");

pub(super) fn numbers(n: usize) -> Vec<f32> {
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

const MACHINE: &str = include_str!("ptx/machine.ptx");

/// Runs one kernel on an output of `n` integers.
fn output(kernel: &str, grid: u32, block: u32, n: usize) -> Vec<i32> {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&vec![0i32; n]);
    bench.launch(kernel, grid, block, &[Pointer(out)]).unwrap();
    bench.read(out, n)
}

#[test]
fn every_kernel_lowers() {
    for text in [LINES, MACHINE, include_str!("ptx/rich.ptx")] {
        let bench = Bench::new(&[text]);
        for name in bench.program.kernel_names() {
            let refusal = bench.program.kernel(name).unwrap().code(&bench.program).err();
            assert_eq!(refusal, None, "{name}");
        }
    }
}

#[test]
fn a_lock_that_lanes_of_one_warp_spin_on_is_handed_on() {
    let bench = Bench::new(&[MACHINE]);
    let counter = bench.array(&[0i32]);
    bench.launch("spin_lock_in_warp", 3, 64, &[Pointer(counter)]).unwrap();
    assert_eq!(bench.read::<i32>(counter, 1), [192]);
}

#[test]
fn a_block_that_spins_on_a_later_one_ends() {
    assert_eq!(output("wait_for_last_block", 5, 64, 320), vec![1; 320]);
}

#[test]
fn calls_recurse_with_lanes_at_different_depths() {
    let fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
    let expected: Vec<i32> = (0..32).map(|i| fibonacci[i % 12]).collect();
    assert_eq!(output("fibonaccis", 1, 32, 32), expected);
}

#[test]
fn calls_go_through_pointers_that_differ_by_lane() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0f32; 32]);
    bench.launch("through_pointers", 1, 32, &[Pointer(out)]).unwrap();
    let f = |i: usize, c: f32| if i & 1 == 0 { c * 2.0 } else { c + 2.0 };
    let expected: Vec<f32> = (0..32).map(|i| f(i, (i % 8 + 1) as f32)).collect();
    assert_eq!(bench.read::<f32>(out, 32), expected);
}

#[test]
fn structures_are_passed_and_returned() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0u64; 3 * 40]);
    bench.launch("structures", 1, 40, &[Pointer(out)]).unwrap();
    for (i, pair) in bench.read::<[i32; 6]>(out, 40).into_iter().enumerate() {
        let by = i as i32 + 1;
        assert_eq!(i64::from(pair[1]) << 32 | i64::from(pair[0] as u32), ((i as i64) << 33) + i64::from(by));
        assert_eq!(pair[2..5], [by, 2 * by, i as i32 * by]);
    }
}

/// A caller whose frame is three words long calls a function that reads eight bytes.
const ODD_FRAME: &str = "
.version 8.0
.target sm_90
.address_size 64
.func (.param .b64 result) twice(.param .b64 a)
{
    .reg .b64 %rd<3>;
    ld.param.b64 %rd1, [a];
    add.s64 %rd2, %rd1, %rd1;
    st.param.b64 [result], %rd2;
    ret;
}
.visible .entry odd_frame(.param .u64 out)
{
    .local .align 4 .b8 depot[4];
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, 21;
    {
        .param .b64 a;
        .param .b64 r;
        st.param.b64 [a], %rd2;
        call.uni (r), twice, (a);
        ld.param.b64 %rd3, [r];
    }
    st.global.u64 [%rd1], %rd3;
    ret;
}
";

#[test]
fn frames_of_called_functions_are_aligned() {
    let bench = Bench::new(&[ODD_FRAME]);
    let out = bench.array(&[0u64]);
    bench.launch("odd_frame", 1, 1, &[Pointer(out)]).unwrap();
    assert_eq!(bench.read::<u64>(out, 1), [42]);
}

#[test]
fn printf_formats_as_c_does() {
    let bench = Bench::new(&[MACHINE]);
    bench.launch("prints", 1, 32, &[Int(7)]).unwrap();
    let line = |i| format!("{}|10.50|ab  |ff|1099511627776|z%\n", 7 + i);
    assert_eq!(bench.printed(), line(0) + &line(1));
}

#[test]
fn the_heap_gives_each_thread_its_own() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0u64; 32]);
    bench.launch("heap", 1, 32, &[Pointer(out)]).unwrap();
    let pointers = bench.read::<u64>(out, 32);
    for (i, pointer) in pointers.iter().enumerate().step_by(2) {
        assert_eq!(bench.read::<i32>(pointer + i as u64 % 4 * 4, 1), [i as i32]);
    }
    assert!(bench.memory.find(pointers[1]).is_none());
}

#[test]
fn warp_functions_exchange_values() {
    let out = output("warp_functions", 1, 32, 224);
    let square = |i: usize| (i * i) as i32;
    for lane in 0..32 {
        assert_eq!(out[lane], square(if lane < 28 { lane + 4 } else { lane }));
        assert_eq!(out[32 + lane], square(lane ^ 3));
        let ballot = (0..32).filter(|l| square(*l) & 4 != 0).fold(0u32, |m, l| m | 1 << l);
        assert_eq!(out[64 + lane] as u32, ballot);
        let equal = (0..32).filter(|l| l % 5 == lane % 5).fold(0u32, |m, l| m | 1 << l);
        assert_eq!(out[96 + lane] as u32, equal);
        assert_eq!(out[128 + lane], (0..32).map(square).sum::<i32>());
        assert_eq!(out[160 + lane], square(if lane % 2 == 1 { 1 } else { 2 }));
        assert_eq!(out[192 + lane], 1);
    }
}

#[test]
fn tiles_and_coalesced_groups_work() {
    let out = output("tiles", 1, 32, 32);
    let down = |v: &[i32], d: usize| -> Vec<i32> {
        (0..32).map(|i| v[i] + if i % 8 + d < 8 { v[i + d] } else { v[i] }).collect()
    };
    let mut expected: Vec<i32> = (0..32).collect();
    for d in [4, 2, 1] {
        expected = down(&expected, d);
    }
    for (i, v) in expected.iter_mut().enumerate().filter(|(i, _)| i % 3 == 0) {
        *v += 1000 * 11;
        let _ = i;
    }
    assert_eq!(out, expected);
}

#[test]
fn a_cooperative_grid_meets_at_its_barrier() {
    let bench = Bench::new(&[MACHINE]);
    let n = 20 * 64;
    let (data, out) = (bench.array(&vec![0i32; n]), bench.array(&vec![0i32; n]));
    let parameters = [Pointer(data), Pointer(out)];
    bench
        .launch_with("grid_barrier", [20, 1, 1], [64, 1, 1], &parameters, |launch| launch.cooperative = true)
        .unwrap();
    let expected: Vec<i32> = (0..n).map(|i| ((i + 33) % n) as i32).collect();
    assert_eq!(bench.read::<i32>(out, n), expected);
}

#[test]
fn blocks_of_a_cluster_read_each_others_shared_memory() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32; 256]);
    bench
        .launch_with("cluster", [8, 1, 1], [32, 1, 1], &[Pointer(out)], |launch| launch.cluster = [4, 1, 1])
        .unwrap();
    let from = |block: usize| block / 4 * 4 + (block + 1) % 4;
    let expected: Vec<i32> = (0..256).map(|i| (from(i / 32) * 100 + i % 32) as i32).collect();
    assert_eq!(bench.read::<i32>(out, 256), expected);
}

#[test]
fn the_last_block_sums_what_the_others_left() {
    let bench = Bench::new(&[MACHINE]);
    let values: Vec<i32> = (0..640).collect();
    let (data, partial, out) = (bench.array(&values), bench.array(&[0i32; 20]), bench.array(&[0i32]));
    bench.launch("last_block_sums", 20, 32, &[Pointer(data), Pointer(partial), Pointer(out)]).unwrap();
    assert_eq!(bench.read::<i32>(out, 1), [values.iter().sum::<i32>()]);
}

#[test]
fn a_consumer_sees_what_a_later_block_released() {
    let bench = Bench::new(&[MACHINE]);
    let (flag, out) = (bench.array(&[0i32]), bench.array(&[0i32; 2]));
    bench.launch("producer_consumer", 2, 1, &[Pointer(flag), Pointer(out)]).unwrap();
    assert_eq!(bench.read::<i32>(out, 2), [42, 42]);
}

#[test]
fn barriers_reduce() {
    assert_eq!(output("counts", 1, 96, 96), vec![32 * 4 + 1; 96]);
}

#[test]
fn switches_go_each_lane_its_way() {
    let of = |i: i32| match i % 7 {
        0 => 3,
        1 => i * 5,
        2 => i - 9,
        3 => i ^ 77,
        4 => i << 3,
        5 => -i,
        _ => 1000,
    };
    assert_eq!(output("select", 1, 64, 64), (0..64).map(of).collect::<Vec<_>>());
}

#[test]
fn dynamic_shared_memory_begins_after_the_static() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32; 64]);
    bench
        .launch_with("dynamic_shared", [1; 3], [64, 1, 1], &[Pointer(out)], |launch| {
            launch.dynamic_shared = 256
        })
        .unwrap();
    assert_eq!(bench.read::<i32>(out, 64), (0..64).map(|i| (63 - i) * 3).collect::<Vec<_>>());
}

#[test]
fn float_atomics_give_one_result_for_any_number_of_workers() {
    let data = numbers(10_000);
    let sum = |workers| {
        let mut bench = Bench::new(&[MACHINE]);
        bench.options.workers = workers;
        let (sum, input) = (bench.array(&[0f32]), bench.array(&data));
        bench.launch("float_atomics", 40, 256, &[Pointer(sum), Pointer(input), Int(10_000)]).unwrap();
        bench.read::<u32>(sum, 1)[0]
    };
    let one = sum(1);
    assert_eq!([sum(2), sum(8)], [one, one]);
}

#[test]
fn counters_are_one_for_any_number_of_workers() {
    let count = |workers| {
        let mut bench = Bench::new(&[LINES]);
        bench.options.workers = workers;
        let (a, bins) = (bench.array(&numbers(4096)), bench.array(&[0i32; 8]));
        let counters =
            bench.launch("count_contended", 16, 256, &[Pointer(a), Pointer(bins), Int(4096)]).unwrap();
        (counters, bench.read::<i32>(bins, 8))
    };
    assert_eq!(count(1), count(3));
}

/// 8 blocks of 8 warps; `if (tid % (2 * s) == 0)` parts the lanes of a warp while 2 * s is at most 32, for s = 1, 2, 4, 8, 16.
#[test]
fn lines_tell_of_divergence_and_classes_of_instructions() {
    let bench = Bench::new(&[LINES]);
    let n = 2048;
    let (a, c) = (bench.array(&numbers(n)), bench.array(&[0f32; 8]));
    let counters = bench.launch("sum_divergent", 8, 256, &[Pointer(a), Pointer(c), Int(n as i32)]).unwrap();
    let lines = counters.by_line();
    let parted: u64 = lines.iter().map(|line| line.count.divergent).sum();
    let branches: u64 = lines.iter().map(|line| line.branches).sum();
    // Each of 64 warps five times, and the first of each block for `s` of 32 to 128 and at the end.
    assert!(parted >= 64 * 5 && parted < branches, "{parted} of {branches}");
    let at = lines.iter().find(|line| line.line == 64).unwrap();
    assert!(at.count.active_lanes() < 16.0, "{}", at.count.active_lanes());
    let classes = counters.by_class();
    let of = |class| classes.iter().find(|sum| sum.class == class).map_or(0, |sum| sum.count.warps);
    let total: u64 = classes.iter().map(|sum| sum.count.warps).sum();
    assert_eq!(total, counters.total().warps);
    assert_eq!(of(InstructionClass::Global), 64 + 8);
    assert_eq!(of(InstructionClass::F64), 0);
    assert!(of(InstructionClass::F32) > 0 && of(InstructionClass::Synchronization) >= 64 * 9);
}
