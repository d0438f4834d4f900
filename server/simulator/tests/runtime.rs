//! Programs in C against the stub: what the runtime answers, without a kernel. `programs/NAME.c` prints; `programs/NAME.txt`
//! is what it must print. Only a C compiler is needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bench::{Bench, programs};
use stitch_simulator::memory::Memory;
use stitch_simulator::runtime::engine::{Engine, Linked};
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::serve;

/// These programs have no device code.
struct NoDeviceCode;

impl Engine for NoDeviceCode {
    fn link(&self, texts: &[String], _: &Memory) -> Result<Box<dyn Linked>, String> {
        panic!("the program has device code: {texts:?}")
    }
}

fn bench() -> Bench {
    Bench::new(|| Box::new(NoDeviceCode))
}

/// Runs a program against both versions, and compares with what it must print.
fn prints_what_it_should(name: &str) {
    let bench = bench();
    for version in [12, 13] {
        let outcome = bench.run(name, version);
        assert_eq!(outcome.report.ending, Ending::Exited(0), "{} {}", outcome.out, outcome.err);
        assert_eq!(outcome.report.runtime, Some(version));
        let out = outcome.out.replace(&format!("runtime: {version}"), "runtime: 12 or 13");
        expect_test::expect_file![programs().join(format!("{name}.txt"))].assert_eq(&out);
    }
}

#[test]
fn memory() {
    prints_what_it_should("memory");
}

#[test]
fn streams_events_and_graphs() {
    prints_what_it_should("streams");
}

#[test]
fn devices_and_errors() {
    prints_what_it_should("device");
}

#[test]
fn many_threads() {
    prints_what_it_should("threads");
}

#[test]
fn copies_are_counted() {
    let report = bench().run("streams", 13).report;
    assert_eq!((report.host_to_device.count, report.host_to_device.bytes), (2, 64 + 6));
    assert_eq!((report.device_to_host.count, report.device_to_host.bytes), (2, 128));
    assert!(report.memory_peak >= 1 << 20, "{}", report.memory_peak);
}

#[test]
fn a_child_has_the_device_only_if_its_parent_has_not() {
    let bench = bench();
    let outcome = bench.run("forks", 12);
    assert_eq!(outcome.report.ending, Ending::Exited(3), "{}", outcome.err);
    assert_eq!(outcome.report.processes, 2);
    let codes: Vec<&str> = outcome.out.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(codes, ["0", "0", "3", "0"], "{}", outcome.out);
}

#[test]
fn a_second_process_is_refused_while_the_first_is_there() {
    let outcome = bench().run("second", 13);
    assert_eq!(outcome.out, "first: 0\nsecond: 999\nfirst again: 0\n", "{}", outcome.err);
    assert!(outcome.err.contains("serves one process at a time"), "{}", outcome.err);
    assert!(
        outcome.report.notes.iter().any(|note| note.contains("second process")),
        "{:?}",
        outcome.report.notes
    );
}

#[test]
fn a_missing_function_is_named() {
    let outcome = bench().run("missing", 13);
    assert!(outcome.err.contains("STITCHCUDA: the simulator has no cudaMallocArray"), "{}", outcome.err);
    assert!(outcome.report.lacks());
    assert_eq!(outcome.report.missing.iter().collect::<Vec<_>>(), ["cudaMallocArray"]);
}

#[test]
fn a_program_that_never_calls_is_told_why() {
    let outcome = bench().run("nothing", 12);
    assert_eq!(outcome.report.processes, 0);
    assert!(
        outcome.report.notes.iter().any(|note| note.contains("-cudart shared")),
        "{:?}",
        outcome.report.notes
    );
}

#[test]
fn nothing_is_left_of_a_program_that_never_ends() {
    let bench = bench();
    let program = bench.build("forever", 13).into_os_string();
    let mut config = bench.config(vec![program]);
    config.time_limit = Some(Duration::from_millis(700));
    let begun = Instant::now();
    let outcome = bench.serve(config, &AtomicBool::new(false));
    assert_eq!(outcome.report.ending, Ending::TimeLimit);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let child = outcome.out.trim();
    let state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z"), "the child is still there: {state}");
    let left: Vec<_> =
        fs::read_dir(std::env::temp_dir()).unwrap().flatten().map(|entry| entry.path()).collect();
    let ours =
        |path: &&PathBuf| path.join("socket").exists() && path.to_string_lossy().contains("stitchcuda-sim-");
    assert!(left.iter().filter(ours).all(|path| fs::metadata(path).unwrap().is_dir()), "{left:?}");
}

#[test]
fn a_run_ends_when_the_caller_gives_up() {
    let bench = bench();
    let program = bench.build("forever", 13).into_os_string();
    let cancel = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        bench.serve(bench.config(vec![program]), &cancel)
    });
    assert_eq!(outcome.report.ending, Ending::Cancelled);
}

#[test]
fn the_host_may_not_touch_device_memory() {
    let outcome = bench().run("touch", 13);
    assert_eq!(outcome.report.ending, Ending::Signalled(11));
    assert_eq!(outcome.out, "before\n");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let bench = bench();
    let error = serve(bench.config(vec!["/no/such/program".into()]), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().starts_with("can't start /no/such/program"), "{error}");
    let error = serve(bench.config(Vec::new()), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.to_string(), "no program to run was named");
}
