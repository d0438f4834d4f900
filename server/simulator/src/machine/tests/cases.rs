//! Programs of `cases/`: each prints what is expected of it, in the text beside it.
//!
//! `NAME.cu` is built to `NAME.ptx` by `nvcc -ptx -arch=sm_90 -std=c++17 -lineinfo`. What is expected was derived by hand (the
//! sources say how), or printed by the host's part of the same program, which computes it in another way.

use super::Parameter::{Int, Pointer};
use super::*;
use crate::machine::{FaultKind, Limits};

/// Runs kernels one after the other; gives what they printed.
fn printed(text: &str, launches: &[(&str, u32, u32)]) -> String {
    let bench = Bench::new(&[text]);
    for (kernel, grid, block) in launches {
        let result = bench.launch(kernel, *grid, *block, &[]);
        assert!(result.is_ok(), "{kernel}: {:?}", result.err());
    }
    bench.printed()
}

#[test]
fn integers_carry_and_pack() {
    let launches = [("wide", 1, 1), ("carries", 1, 1), ("dots", 1, 1), ("packed", 1, 1), ("video", 1, 1)];
    assert_eq!(
        printed(include_str!("cases/integers.ptx"), &launches),
        include_str!("cases/integers.expected.txt")
    );
}

#[test]
fn video_instructions_on_one_value_are_those_of_a_device() {
    assert_eq!(
        printed(include_str!("cases/video.ptx"), &[("one_value", 1, 1)]),
        include_str!("cases/video.expected.txt")
    );
}

#[test]
fn halves_and_bytes_are_those_of_the_headers() {
    let launches = [("halves", 1, 1), ("bytes", 1, 1)];
    assert_eq!(
        printed(include_str!("cases/floats.ptx"), &launches),
        include_str!("cases/floats.expected.txt")
    );
}

#[test]
fn copies_and_their_barriers_end() {
    let launches = [
        ("fill", 1, 1024),
        ("groups", 1, 128),
        ("zero_filled", 1, 32),
        ("phases", 1, 96),
        ("parity", 1, 64),
        ("states", 1, 1),
        ("bulk", 1, 256),
        ("by_groups", 1, 256),
        ("by_barrier", 1, 256),
        ("by_pipeline", 1, 64),
    ];
    assert_eq!(
        printed(include_str!("cases/asynchronous.ptx"), &launches),
        include_str!("cases/asynchronous.expected.txt")
    );
}

#[test]
fn wrong_barriers_copies_and_arrays_are_faults() {
    let bench = Bench::new(&[include_str!("cases/asynchronous.ptx")]);
    for (how, n, kind, says) in [
        (0, 1000, FaultKind::IllegalAddress, "bytes of shared memory"),
        (1, 0, FaultKind::IllegalAddress, "bulk copy of 32 bytes"),
        (2, 0, FaultKind::Misaligned, "multiples of 16"),
        (3, 1, FaultKind::StackOverflow, "alloca of 1048576 bytes"),
    ] {
        let fault = bench.launch("beyond", 1, 32, &[Int(how), Int(n)]).unwrap_err();
        assert_eq!((fault.kind, fault.thread), (kind, [2, 0, 0]), "{fault}");
        assert!(fault.message.contains(says), "{}", fault.message);
        assert!(fault.place.is_some());
    }
}

const LANES: &str = include_str!("cases/lanes.ptx");

#[test]
fn lanes_and_groups_act_together() {
    let launches = [
        ("matches", 1, 32),
        ("elects", 1, 32),
        ("reductions", 1, 32),
        ("named", 1, 160),
        ("partitions", 1, 32),
        ("large_tiles", 1, 128),
        ("shuffles", 1, 32),
    ];
    assert_eq!(printed(LANES, &launches), include_str!("cases/lanes.expected.txt"));
}

/// Values by hand: see the comments of the source.
#[test]
fn shuffles_after_and_inside_branches() {
    let bench = Bench::new(&[LANES]);
    let out = bench.array(&[0i32; 6]);
    let names = bench.program.kernel_names();
    assert!(names.contains(&"lanes"), "{names:?}");
    bench.launch("lanes", 1, 32, &[Int(1234), Pointer(out)]).unwrap();
    assert_eq!(bench.read::<i32>(out, 6), [0, 120, 376, 544, 465, 16]);
}

#[test]
fn memory_of_all_kinds() {
    let launches = [
        ("sixteen_bytes", 1, 40),
        ("vectors", 1, 32),
        ("narrow", 1, 32),
        ("operations", 1, 32),
        ("references", 1, 32),
        ("wide_accesses", 1, 32),
        ("heap", 1, 32),
        ("run_time_arrays", 1, 32),
        ("waits", 1, 64),
    ];
    assert_eq!(
        printed(include_str!("cases/memory.ptx"), &launches),
        include_str!("cases/memory.expected.txt")
    );
}

const CALLS: &str = include_str!("cases/calls.ptx");

#[test]
fn calls_find_their_functions() {
    let launches = [("virtuals", 1, 32), ("recursion", 1, 32), ("pointers", 1, 32), ("structures", 1, 32)];
    assert_eq!(printed(CALLS, &launches), include_str!("cases/calls.expected.txt"));
}

#[test]
fn a_trap_stops_the_kernel_and_an_exit_the_thread() {
    let bench = Bench::new(&[CALLS]);
    let fault = bench.launch("stops", 1, 6, &[Int(1)]).unwrap_err();
    assert_eq!((fault.kind, fault.thread), (FaultKind::Trap, [3, 0, 0]));
    bench.launch("stops", 1, 6, &[Int(2)]).unwrap();
    assert_eq!(bench.printed(), "01245");
}

#[test]
fn limits_are_the_devices() {
    let mut bench = Bench::new(&[CALLS]);
    let ask = |launch: &mut Launch<'_>| launch.dynamic_shared = 100 << 10;
    bench.launch_with("structures", [1; 3], [32, 1, 1], &[], ask).unwrap();
    bench.program = bench.program.on(Limits { shared: 96 << 10, multiprocessors: 80, warps: 64 });
    let fault = bench.launch_with("structures", [1; 3], [32, 1, 1], &[], ask).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidLaunch);
    assert!(fault.message.contains("at most 98304"), "{}", fault.message);
}

/// The tile of several warps needs reserved memory, which is not the kernel's own.
#[test]
fn reserved_shared_memory_is_not_the_kernels() {
    let bench = Bench::new(&[LANES]);
    let kernel = bench.program.kernel("large_tiles").unwrap();
    assert_eq!(kernel.resources(&bench.program).shared_bytes, 0);
}

#[test]
fn blocks_of_a_cluster_share() {
    let bench = Bench::new(&[include_str!("cases/clusters.ptx")]);
    for kernel in ["shares", "arrives", "stores"] {
        bench.launch_with(kernel, [8, 1, 1], [32, 1, 1], &[], |launch| launch.cluster = [4, 1, 1]).unwrap();
        bench.launch("report", 1, 1, &[]).unwrap();
    }
    assert_eq!(bench.printed(), include_str!("cases/clusters.expected.txt"));
}

/// `__cluster_dims__` holds where the launch says nothing; another cluster than it is refused.
#[test]
fn a_kernel_can_bring_its_cluster() {
    let bench = Bench::new(&[include_str!("cases/clusters.ptx")]);
    bench.launch("shares", 8, 32, &[]).unwrap();
    bench.launch("report", 1, 1, &[]).unwrap();
    let expected = include_str!("cases/clusters.expected.txt");
    assert_eq!(bench.printed().lines().next(), expected.lines().next());
    for (grid, cluster, says) in [(8, 2, "with clusters of"), (6, 1, "is no multiple of")] {
        let ask = |launch: &mut Launch<'_>| launch.cluster = [cluster, 1, 1];
        let fault = bench.launch_with("shares", [grid, 1, 1], [32, 1, 1], &[], ask).unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidLaunch);
        assert!(fault.message.contains(says), "{}", fault.message);
    }
}

#[test]
fn a_block_alone_passes_the_barrier_of_its_cluster() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry alone() {\n\
                barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n";
    Bench::new(&[text]).launch("alone", 2, 64, &[]).unwrap();
}

#[test]
fn vectors_of_eight_move_whole_sectors() {
    let bench = Bench::new(&[include_str!("ptx/eights.ptx")]);
    let values: Vec<u32> = (0..256).map(|i| i * 3).collect();
    let (from, to) = (bench.array(&values), bench.array(&[0u32; 256]));
    let counters = bench.launch("eights", 1, 32, &[Pointer(from), Pointer(to)]).unwrap();
    let expected: Vec<u32> =
        (0..256).map(|i| values[i / 8 * 8 + 7 - i % 8] + u32::from(i % 8 == 7)).collect();
    assert_eq!(bench.read::<u32>(to, 256), expected);
    let total = counters.total();
    assert_eq!((total.sectors, total.ideal_sectors), (64, 64));
    let fault = bench.launch("eights", 1, 32, &[Pointer(from + 16), Pointer(to)]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Misaligned);
}
