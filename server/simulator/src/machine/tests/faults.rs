//! Kernels that fail: each names what, who and where.

use super::Parameter::{Int, Pointer};
use super::*;
use crate::machine::FaultKind;

const MACHINE: &str = include_str!("ptx/machine.ptx");
const SOURCE: &str = include_str!("ptx/machine.cu");

/// The line of the source that holds a text.
fn line_of(text: &str) -> u32 {
    SOURCE.lines().position(|line| line.contains(text)).unwrap() as u32 + 1
}

fn place(fault: &Fault) -> u32 {
    let place = fault.place.as_ref().unwrap();
    place.inlined_at.as_ref().map_or(place.line, |at| at.1)
}

#[test]
fn out_of_bounds() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32; 100]);
    let fault = bench.launch("out_of_bounds", 4, 32, &[Pointer(out), Int(100)]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    assert_eq!((fault.block, fault.thread), ([3, 0, 0], [4, 0, 0]));
    assert_eq!(fault.address, Some(out + 400));
    assert_eq!(place(&fault), line_of("out[i] = i;"));
    assert!(
        fault.message.contains("0 bytes past the end of an allocation of 400 bytes"),
        "{}",
        fault.message
    );
}

#[test]
fn a_null_pointer() {
    let bench = Bench::new(&[MACHINE]);
    let fault = bench.launch("out_of_bounds", 1, 32, &[Pointer(0), Int(8)]).unwrap_err();
    assert_eq!((fault.kind, fault.address), (FaultKind::IllegalAddress, Some(0)));
}

#[test]
fn misaligned() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32; 64]);
    let fault = bench.launch("misaligned", 1, 32, &[Pointer(out)]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Misaligned);
    assert_eq!((fault.thread, fault.address), ([5, 0, 0], Some(out + 21)));
    assert_eq!(place(&fault), line_of("threadIdx.x == 5"));
}

#[test]
fn shared_memory_out_of_bounds() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32; 32]);
    let fault = bench.launch("shared_out_of_bounds", 1, 32, &[Pointer(out), Int(3)]).unwrap_err();
    assert_eq!((fault.kind, fault.thread), (FaultKind::IllegalAddress, [29, 0, 0]));
    assert!(fault.message.contains("128 bytes of shared memory"), "{}", fault.message);
}

#[test]
fn barriers_that_can_not_complete() {
    let bench = Bench::new(&[MACHINE]);
    let fault = bench.launch("divergent_barrier", 1, 64, &[]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BarrierDeadlock);
    for line in [line_of("bar.sync 1"), line_of("bar.sync 2")] {
        assert!(
            fault.message.contains(&format!("32 threads wait at machine.cu:{line}")),
            "{}",
            fault.message
        );
    }
}

#[test]
fn failed_assertions() {
    let bench = Bench::new(&[MACHINE]);
    let fault = bench.launch("asserts", 2, 64, &[Int(40)]).unwrap_err();
    assert_eq!((fault.kind, fault.block, fault.thread), (FaultKind::Assert, [0; 3], [40, 0, 0]));
    assert!(fault.message.contains("`(int)threadIdx.x < n`"), "{}", fault.message);
}

#[test]
fn traps() {
    let bench = Bench::new(&[MACHINE]);
    let fault = bench.launch("traps", 1, 32, &[]).unwrap_err();
    assert_eq!((fault.kind, fault.thread), (FaultKind::Trap, [7, 0, 0]));
}

#[test]
fn endless_kernels_can_be_cancelled() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32]);
    let fault = std::thread::scope(|scope| {
        let running = scope.spawn(|| bench.launch("endless", 2, 64, &[Pointer(out)]).unwrap_err());
        std::thread::sleep(std::time::Duration::from_millis(50));
        bench.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        running.join().unwrap()
    });
    assert_eq!(fault.kind, FaultKind::Cancelled);
}

#[test]
fn endless_recursion() {
    let bench = Bench::new(&[MACHINE]);
    let out = bench.array(&[0i32]);
    let fault = bench.launch("recursion", 1, 32, &[Pointer(out)]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::StackOverflow, "{fault}");
}

#[test]
fn launches_that_can_not_be() {
    let bench = Bench::new(&[MACHINE]);
    let launches: &[(&str, u32, &[Parameter])] =
        &[("traps", 1025, &[]), ("traps", 0, &[]), ("endless", 32, &[]), ("asserts", 32, &[])];
    for (kernel, block, parameters) in launches {
        let fault = bench.launch(kernel, 1, *block, parameters).unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidLaunch, "{fault}");
    }
}

#[test]
fn unknown_instructions_refuse_only_the_kernels_that_reach_them() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry good() { ret; }\n\
        .visible .entry bad() {\n  .reg .b32 %r<2>;\n  frobnicate.b32 %r1, %r1;\n  ret; }\n\
        .visible .entry modified() {\n  .reg .b32 %r<2>;\n  add.sideways.s32 %r1, %r1, %r1;\n  ret; }\n";
    let bench = Bench::new(&[text]);
    assert!(bench.launch("good", 1, 32, &[]).is_ok());
    let fault = bench.launch("bad", 1, 32, &[]).unwrap_err();
    assert_eq!((fault.kind, fault.ptx_line), (FaultKind::Unsupported, 7));
    assert!(fault.message.contains("frobnicate.b32"), "{fault}");
    let fault = bench.launch("modified", 1, 32, &[]).unwrap_err();
    assert!(fault.message.contains(".sideways"), "{fault}");
}
