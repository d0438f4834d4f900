//! Random kernels (`random/`), built by nvcc with and without optimisation and by the host's C++ compiler: all print the same.
//!
//! `cargo xtask test` installs the toolkit. More of them, and on a GPU: the example `random_kernels`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod random;
mod toolkit;

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use bench::Bench;
use stitch_simulator::device::Device;
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::{Executor, stub};

/// How many kernels, from the first.
const COUNT: u64 = 6;

fn bench() -> Bench {
    Bench::new(|| Box::new(Executor::new(Device::named("h200").unwrap(), false, None)))
}

fn on_the_host(bench: &Bench, text: &str) -> String {
    let (source, program) = (bench.folder().join("kernels.cpp"), bench.folder().join("host"));
    std::fs::write(&source, text).unwrap();
    let built = Command::new("c++")
        .args(["-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-w"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
}

fn on_the_simulator(bench: &Bench, text: &str, flags: &[&str]) -> String {
    let toolkit = toolkit::newest();
    let library = stub::build(&Bench::cache(), "cc").unwrap();
    let (source, program) = (bench.folder().join("kernels.cu"), bench.folder().join("device"));
    std::fs::write(&source, text).unwrap();
    let built = Command::new(toolkit.join("bin/nvcc"))
        .args(["-cudart", "shared", "-fmad=false", "-w"])
        .args(flags)
        .arg("-L")
        .arg(stub::link_folder(&library, toolkit::version(&toolkit)))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let outcome = bench.serve(bench.config(vec![OsString::from(program)]), &AtomicBool::new(false));
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{} {:?}", outcome.err, outcome.report.faults);
    outcome.out
}

#[test]
fn random_kernels_do_the_same_here_and_there() {
    let bench = bench();
    let texts = random::texts(0, COUNT);
    let expected = on_the_host(&bench, &texts.host);
    assert_eq!(expected.lines().count() as u64, COUNT, "{expected}");
    // One architecture whose PTX packs halves, one that does not, and one level that keeps everything in memory.
    for flags in [
        &["-gencode", "arch=compute_90,code=compute_90"][..],
        &["-gencode", "arch=compute_75,code=compute_75"],
        &["-G", "-gencode", "arch=compute_90,code=compute_90"],
    ] {
        assert_eq!(on_the_simulator(&bench, &texts.device, flags), expected, "{flags:?}");
    }
}
