//! Programs with kernels, built by nvcc and run on the simulator. `programs/NAME.cu` prints; `programs/NAME.txt` is what it must
//! print. `cargo xtask test` installs the toolkit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bench::{Bench, Outcome, programs};
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::{Executor, stub};

/// The newest toolkit in the cache of `cargo xtask test`.
fn toolkit() -> PathBuf {
    let cache = std::env::var_os("STITCHCUDA_TEST_CACHE").map_or_else(
        || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("test-cache"),
        PathBuf::from,
    );
    let toolkits = fs::read_dir(cache.join("toolkits")).expect("no toolkit; run `cargo xtask test`");
    let mut found: Vec<PathBuf> = toolkits.flatten().map(|entry| entry.path()).collect();
    found.retain(|folder| folder.join("bin/nvcc").is_file());
    found.sort();
    found.pop().expect("no toolkit; run `cargo xtask test`")
}

/// 12 or 13: which runtime the toolkit's headers are of.
fn version(toolkit: &std::path::Path) -> u32 {
    let header = fs::read_to_string(toolkit.join("include/cuda_runtime_api.h")).unwrap();
    let line = header.lines().find_map(|line| line.trim().strip_prefix("#define CUDART_VERSION")).unwrap();
    line.trim().parse::<u32>().unwrap() / 1000
}

fn bench() -> Bench {
    Bench::new(|| Box::new(Executor::new(true, None)))
}

fn build(bench: &Bench, files: &[&str], flags: &[&str]) -> OsString {
    let toolkit = toolkit();
    let library = stub::build(&Bench::cache(), "cc").unwrap();
    let program = bench.folder().join("program");
    let built = Command::new(toolkit.join("bin/nvcc"))
        .args(["-cudart", "shared", "-std=c++17"])
        .args(flags)
        .arg("-L")
        .arg(stub::link_folder(&library, version(&toolkit)))
        .args(files.iter().map(|file| programs().join(file)))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.into_os_string()
}

fn run(files: &[&str], flags: &[&str]) -> Outcome {
    let bench = bench();
    let program = build(&bench, files, flags);
    bench.serve(bench.config(vec![program]), &AtomicBool::new(false))
}

const HOPPER: &[&str] = &["-arch=sm_90"];

#[test]
fn launches_symbols_managed_variables_printf_and_graphs() {
    let outcome = run(&["kernels.cu"], HOPPER);
    expect_test::expect_file![programs().join("kernels.txt")].assert_eq(&outcome.out);
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{}", outcome.err);
    let add = &outcome.report.kernels[0];
    assert_eq!(
        (add.name.as_str(), add.grid, add.block, add.launches),
        ("_Z3addPKfS0_Pfi", [4, 1, 1], [256, 1, 1], 1)
    );
    // 1000 floats of 4 bytes, twice read and once written, in sectors of 32 bytes.
    assert_eq!(add.counters.total().sectors, 3 * 125);
    let counts: Vec<_> = outcome.report.kernels.iter().filter(|kernel| kernel.name == "_Z5countv").collect();
    assert_eq!(counts.iter().map(|kernel| kernel.launches).collect::<Vec<_>>(), [1, 15]);
}

#[test]
fn separate_compilation_is_linked() {
    let outcome = run(&["separate_a.cu", "separate_b.cu"], &["-arch=sm_90", "-rdc=true"]);
    assert_eq!(outcome.out, "50, error 0\n", "{:?}", outcome.report.notes);
}

#[test]
fn a_program_without_ptx_is_told_what_to_build() {
    let outcome =
        run(&["separate_a.cu", "separate_b.cu"], &["-rdc=true", "-gencode", "arch=compute_80,code=sm_80"]);
    assert_eq!(outcome.out, "0, error 209\n");
    let said =
        |note: &String| note.contains("only machine code for sm_80") && note.contains("code=compute_90");
    assert!(outcome.report.notes.iter().any(said), "{:?}", outcome.report.notes);
}

/// The codes of the runtime, case by case.
#[test]
fn errors_of_the_runtime() {
    let outcome = run(&["device_errors.cu"], HOPPER);
    expect_test::expect_file![programs().join("device_errors.txt")].assert_eq(&outcome.out);
}

#[test]
fn an_endless_kernel_ends_at_the_time_limit() {
    let bench = bench();
    let mut config = bench.config(vec![build(&bench, &["endless.cu"], HOPPER)]);
    config.time_limit = Some(Duration::from_secs(2));
    let begun = Instant::now();
    let outcome = bench.serve(config, &AtomicBool::new(false));
    assert_eq!(outcome.report.ending, Ending::TimeLimit);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(outcome.out, "begins\n");
    assert_eq!(outcome.report.faults[0].stopped.kernel, "_Z7foreverPVi");
}

#[test]
fn a_kernel_stops_when_its_program_is_killed() {
    let bench = bench();
    let program = build(&bench, &["endless.cu"], HOPPER);
    let begun = Instant::now();
    let outcome = bench.serve(bench.config(vec![program, "alarm".into()]), &AtomicBool::new(false));
    assert_eq!(outcome.report.ending, Ending::Signalled(14));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(outcome.report.faults[0].stopped.kernel, "_Z7foreverPVi");
}
