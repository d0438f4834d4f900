//! Programs in C against the stub: what the runtime answers, without a kernel. `programs/NAME.c` prints; `programs/NAME.txt`
//! is what it must print. Only a C compiler is needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use stitch_simulator::device::Device;
use stitch_simulator::memory::Memory;
use stitch_simulator::runtime::engine::{Engine, Linked};
use stitch_simulator::runtime::report::{Ending, Report};
use stitch_simulator::runtime::{Config, Watch, serve, stub};

/// These programs have no device code.
struct NoDeviceCode;

impl Engine for NoDeviceCode {
    fn link(&self, texts: &[String], _: &Memory) -> Result<Box<dyn Linked>, String> {
        panic!("the program has device code: {texts:?}")
    }
}

struct Bench {
    folder: tempfile::TempDir,
}

/// What a program printed, and what the simulator says of it.
struct Outcome {
    out: String,
    err: String,
    report: Report,
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Shared by all tests: it is built once.
    fn cache() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("stub")
    }

    /// Builds a program against one version of the stub.
    fn build(&self, name: &str, version: u32) -> PathBuf {
        let library = stub::build(&Self::cache(), "cc").unwrap().join(format!("libcudart.so.{version}"));
        let program = self.folder.path().join(format!("{name}-{version}"));
        let built = Command::new("cc")
            .args(["-O1", "-pthread", "-Wall", "-Werror"])
            .arg(programs().join(format!("{name}.c")))
            .arg("-Wl,--no-as-needed")
            .arg(library)
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        program
    }

    fn config(&self, command: Vec<OsString>) -> Config {
        let output = |name: &str| Stdio::from(File::create(self.folder.path().join(name)).unwrap());
        Config {
            command,
            folder: None,
            environment: Vec::new(),
            device: Device::named("h200").unwrap(),
            engine: Box::new(NoDeviceCode),
            cache: Self::cache(),
            compiler: "cc".to_owned(),
            time_limit: Some(Duration::from_secs(60)),
            stdin: Stdio::null(),
            stdout: output("out"),
            stderr: output("err"),
            watch: Watch::default(),
        }
    }

    fn serve(&self, config: Config, cancel: &AtomicBool) -> Outcome {
        let report = serve(config, cancel).unwrap();
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap();
        Outcome { out: read("out"), err: read("err"), report }
    }

    fn run(&self, name: &str, version: u32) -> Outcome {
        let program = self.build(name, version).into_os_string();
        self.serve(self.config(vec![program]), &AtomicBool::new(false))
    }
}

/// Runs a program against both versions, and compares with what it must print.
fn prints_what_it_should(name: &str) {
    let bench = Bench::new();
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
    let report = Bench::new().run("streams", 13).report;
    assert_eq!((report.host_to_device.count, report.host_to_device.bytes), (2, 64 + 6));
    assert_eq!((report.device_to_host.count, report.device_to_host.bytes), (2, 128));
    assert!(report.memory_peak >= 1 << 20, "{}", report.memory_peak);
}

#[test]
fn a_child_has_the_device_only_if_its_parent_has_not() {
    let bench = Bench::new();
    let outcome = bench.run("forks", 12);
    assert_eq!(outcome.report.ending, Ending::Exited(3), "{}", outcome.err);
    assert_eq!(outcome.report.processes, 2);
    let codes: Vec<&str> = outcome.out.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(codes, ["0", "0", "3", "0"], "{}", outcome.out);
}

#[test]
fn a_second_process_is_refused_while_the_first_is_there() {
    let outcome = Bench::new().run("second", 13);
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
    let outcome = Bench::new().run("missing", 13);
    assert!(outcome.err.contains("STITCHCUDA: the simulator has no cudaMallocArray"), "{}", outcome.err);
    assert!(outcome.report.lacks());
    assert_eq!(outcome.report.missing.iter().collect::<Vec<_>>(), ["cudaMallocArray"]);
}

#[test]
fn a_program_that_never_calls_is_told_why() {
    let outcome = Bench::new().run("nothing", 12);
    assert_eq!(outcome.report.processes, 0);
    assert!(
        outcome.report.notes.iter().any(|note| note.contains("-cudart shared")),
        "{:?}",
        outcome.report.notes
    );
}

#[test]
fn nothing_is_left_of_a_program_that_never_ends() {
    let bench = Bench::new();
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
    let bench = Bench::new();
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
    let outcome = Bench::new().run("touch", 13);
    assert_eq!(outcome.report.ending, Ending::Signalled(11));
    assert_eq!(outcome.out, "before\n");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let bench = Bench::new();
    let error = serve(bench.config(vec!["/no/such/program".into()]), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().starts_with("can't start /no/such/program"), "{error}");
    let error = serve(bench.config(Vec::new()), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.to_string(), "no program to run was named");
}
