//! Programs in C against the stub: what the runtime answers, without a kernel. `programs/NAME.c` prints; `programs/NAME.txt`
//! is what it must print. Only a C compiler is needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bench::{Bench, Outcome, programs};
use stitch_simulator::device::Device;
use stitch_simulator::memory::Memory;
use stitch_simulator::runtime::engine::{Engine, Linked};
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::{Executor, cancelled_by_signals, serve};

/// These programs have no device code.
struct NoDeviceCode;

impl Engine for NoDeviceCode {
    fn link(&self, texts: &[String], _: &Memory) -> Result<Arc<dyn Linked>, String> {
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
fn tensors_are_described_by_the_driver() {
    prints_what_it_should("tensors");
}

#[test]
fn memory() {
    prints_what_it_should("memory");
}

/// What is expected is what an H200 answered.
#[test]
fn advice_on_managed_memory() {
    let outcome = bench().run("advice", 13);
    assert_eq!(outcome.out, include_str!("programs/advice.txt"), "{}", outcome.err);
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
    // On an H200, the runtime of CUDA 13 still tells a child what the device is.
    for (version, expected) in
        [(12, ["0", "0", "3", "3", "101", "0"]), (13, ["0", "0", "3", "0", "101", "0"])]
    {
        let outcome = bench.run("forks", version);
        assert_eq!(outcome.report.ending, Ending::Exited(3), "{}", outcome.err);
        assert_eq!(outcome.report.processes, 2);
        let codes: Vec<&str> = outcome.out.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(codes, expected, "{}", outcome.out);
    }
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
    // It was killed; on a busy machine it takes a while to die.
    let mut state = String::new();
    for _ in 0..500 {
        state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(state.is_empty() || state.contains(") Z"), "the child is still there: {state}");
    // The socket lies in no folder; its name is gone with it.
    let name = format!("@stitchcuda-sim-{}-", std::process::id());
    assert!(!fs::read_to_string("/proc/net/unix").unwrap().contains(&name));
    // No memory file is held but by a run that goes on.
    let mapped = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!mapped.contains("memfd:"), "{mapped}");
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

/// Runs hand-made device code on the real engine.
fn image(which: &str, limit: Duration) -> Outcome {
    let bench = Bench::new(|| Box::new(Executor::new(Device::named("h200").unwrap(), true, None)));
    let program = bench.build("images", 13).into_os_string();
    let mut config = bench.config(vec![program, which.into()]);
    config.time_limit = Some(limit);
    bench.serve(config, &AtomicBool::new(false))
}

const LONG: Duration = Duration::from_secs(60);

/// What the launch returned, of an image that can't be used, and what is said of it.
fn refused(which: &str) -> (String, String) {
    let outcome = image(which, LONG);
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{which}: {} {}", outcome.out, outcome.err);
    let launch = outcome.out.lines().find(|line| line.starts_with("cudaLaunchKernel")).unwrap();
    (launch.rsplit(' ').next().unwrap().to_owned(), outcome.report.notes.join("\n"))
}

#[test]
fn device_code_that_is_none_is_refused_and_named() {
    for (which, code, said) in [
        ("garbage", "200", "line 1 of its PTX"),
        ("binary", "209", "not text"),
        ("half", "200", "of its PTX"),
        ("truncated", "209", "1048576 bytes"),
        ("short", "209", "20 are left"),
        ("empty", "209", "image"),
    ] {
        let (error, notes) = refused(which);
        assert_eq!(error, code, "{which}: {notes}");
        assert!(notes.contains(said), "{which}: {notes}");
    }
}

#[test]
fn an_unknown_instruction_is_named_with_its_line() {
    let outcome = image("unknown", LONG);
    assert!(outcome.report.lacks());
    let stopped = &outcome.report.faults[0].stopped;
    assert!(stopped.message.contains("frobnicate"), "{stopped:?}");
    assert_eq!(stopped.ptx_line, 7);
}

#[test]
fn threads_of_a_warp_may_spin_on_a_lock() {
    let outcome = image("lock", LONG);
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{}", outcome.err);
    assert!(outcome.out.ends_with("\n256\n"), "{}", outcome.out);
}

#[test]
fn a_lock_that_is_never_free_ends_at_the_time_limit() {
    let begun = Instant::now();
    let outcome = image("stuck", Duration::from_secs(2));
    assert_eq!(outcome.report.ending, Ending::TimeLimit);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(outcome.report.faults[0].stopped.kernel, "kernel");
}

#[test]
fn too_much_memory_is_refused_and_the_program_goes_on() {
    let outcome = bench().run("greedy", 13);
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{}", outcome.err);
    expect_test::expect_file![programs().join("greedy.txt")].assert_eq(&outcome.out);
    let asked = (200_u64 << 30).to_string();
    assert!(outcome.report.notes.iter().any(|note| note.contains(&asked)), "{:?}", outcome.report.notes);
    assert!(outcome.report.memory_peak < 2 << 20, "{}", outcome.report.memory_peak);
}

/// The part of the next two tests that is a process of its own: it serves a program whose kernel never ends.
#[test]
fn serves_until_it_is_ended() {
    let Some(folder) = std::env::var_os("STITCHCUDA_TEST_SERVES") else { return };
    let bench = Bench::new(|| Box::new(Executor::new(Device::named("h200").unwrap(), false, None)));
    let program = bench.build("images", 13).into_os_string();
    let mut config = bench.config(vec![program, "stuck".into()]);
    config.stdout = Stdio::from(fs::File::create(PathBuf::from(&folder).join("out")).unwrap());
    let report = serve(config, cancelled_by_signals()).unwrap();
    fs::write(PathBuf::from(folder).join("ending"), format!("{:?}", report.ending)).unwrap();
}

/// Starts the process above, sends it a signal in the middle of the kernel, and returns its folder once it has ended.
fn ended_by(signal: i32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serves_until_it_is_ended"])
        .env("STITCHCUDA_TEST_SERVES", folder.path())
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let launched =
        || fs::read_to_string(folder.path().join("out")).is_ok_and(|out| out.contains("HostToDevice"));
    while !launched() {
        assert!(begun.elapsed() < LONG, "the program did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    let number = i32::try_from(process.id()).unwrap();
    // SAFETY: the process is our child and has not been reaped.
    assert_eq!(unsafe { libc::kill(number, signal) }, 0);
    process.wait().unwrap();
    folder
}

/// Processes whose command line names the program of a folder.
fn running(folder: &Path) -> Vec<String> {
    let name = folder.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&name)).collect()
}

#[test]
fn nothing_is_left_when_the_simulator_is_asked_to_end_in_the_middle_of_a_kernel() {
    let folder = ended_by(libc::SIGTERM);
    assert_eq!(fs::read_to_string(folder.path().join("ending")).unwrap(), "Cancelled");
    assert_eq!(running(folder.path()), Vec::<String>::new());
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name == "out" || name == "ending"), "{left:?}");
}

#[test]
fn the_program_does_not_outlive_a_simulator_that_is_killed() {
    let folder = ended_by(libc::SIGKILL);
    let begun = Instant::now();
    while !running(folder.path()).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", running(folder.path()));
        std::thread::sleep(Duration::from_millis(20));
    }
}
