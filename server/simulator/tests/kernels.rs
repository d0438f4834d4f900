//! Programs with kernels, built by nvcc and run on the simulator. `programs/NAME.cu` prints; `programs/NAME.txt` is what it must
//! print. `cargo xtask test` installs the toolkit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod toolkit;

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bench::{Bench, Outcome, programs};
use stitch_simulator::device::Device;
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::{Executor, stub};

fn bench() -> Bench {
    Bench::new(|| Box::new(Executor::new(Device::named("h200").unwrap(), true, None)))
}

fn build(bench: &Bench, files: &[&str], flags: &[&str]) -> OsString {
    let toolkit = toolkit::newest();
    let library = stub::build(&Bench::cache(), "cc").unwrap();
    let program = bench.folder().join("program");
    let built = Command::new(toolkit.join("bin/nvcc"))
        .args(["-cudart", "shared", "-std=c++17"])
        .args(flags)
        .arg("-L")
        .arg(stub::link_folder(&library, toolkit::version(&toolkit)))
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
fn tensor_maps_come_from_the_driver() {
    let outcome = run(&["tensor_maps.cu"], &["-arch=sm_90a"]);
    assert_eq!(outcome.out, "found 0, encoded 0 0, cudaSuccess, 0 wrong\n", "{:?}", outcome.report.faults);
    assert!(outcome.report.defects.is_empty(), "{:?}", outcome.report.defects);
}

#[test]
fn pixels_of_images_come_and_go_in_the_order_of_the_filter() {
    let outcome = run(&["images.cu"], &["-arch=sm_90a"]);
    let expected =
        "found 0, 0 errors, 0 wrong of 36480\nwritten: cudaSuccess, 0\nadded: cudaSuccess, 0\n1 1 1 1 1 \n";
    assert_eq!(outcome.out, expected, "{:?}", outcome.report.faults);
    assert!(outcome.report.defects.is_empty(), "{:?}", outcome.report.defects);
}

#[test]
fn sparse_rows_of_warpgroups_are_spread() {
    let outcome = run(&["sparse_groups.cu"], &["-gencode", "arch=compute_90a,code=compute_90a"]);
    let right: String = (0..4).map(|kind| format!("{kind}: cudaSuccess, 0 wrong\n")).collect();
    assert_eq!(outcome.out, right, "{:?}", outcome.report.faults);
    assert!(outcome.report.defects.is_empty(), "{:?}", outcome.report.defects);
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

/// What a program printed of each case: `case -> codes`, and the lines that follow.
fn cases(text: &str) -> Vec<(&str, String)> {
    let mut cases: Vec<(&str, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.split_once(" ->"), cases.last_mut()) {
            (Some((name, codes)), _) => cases.push((name, codes.to_owned())),
            (None, Some((_, codes))) => {
                codes.push('\n');
                codes.push_str(line);
            }
            (None, None) => panic!("no case before {line}"),
        }
    }
    cases
}

/// Compares a program's cases with what a device printed. `different` lists those that differ, what is printed here, and why.
fn agrees_with_the_device(program: &str, measured: &str, different: &[(&str, &str, &str)]) {
    let outcome = run(&[program], HOPPER);
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{}", outcome.err);
    assert!(!outcome.report.lacks(), "{:?}", outcome.report.missing);
    let (ours, measured) = (cases(&outcome.out), cases(measured));
    // A function of the host may come before or after the rest of a case: it runs on a thread of its own.
    let inside = |codes: &str| codes.replace(" inside 800", "");
    let names =
        |cases: &[(&str, String)]| cases.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&measured));
    let differing: Vec<(&str, &str)> = ours
        .iter()
        .zip(&measured)
        .filter(|(ours, measured)| inside(&ours.1) != inside(&measured.1))
        .map(|(ours, _)| (ours.0, ours.1.as_str()))
        .collect();
    let listed: Vec<(&str, &str)> = different.iter().map(|&(name, ours, _)| (name, ours)).collect();
    assert_eq!(differing, listed);
}

/// The codes of the runtime, case by case.
#[test]
fn errors_of_the_runtime() {
    let crashes = "the real runtime follows a dangling handle and crashes";
    agrees_with_the_device(
        "device_errors.cu",
        include_str!("programs/device_errors.txt"),
        &[
            ("memcpy async bad stream after destroy", " 400", crashes),
            ("stream after destroy", " 0 400", crashes),
        ],
    );
}

/// The second part of the codes.
#[test]
fn more_errors_of_the_runtime() {
    agrees_with_the_device(
        "device_errors2.cu",
        include_str!("programs/device_errors2.txt"),
        &[
            ("graph child of itself", " 0", "the real runtime crashes"),
            (
                "launch more",
                " 1 1 1 1 1 1 1 1 0",
                "the real runtime follows a null configuration and crashes",
            ),
            (
                "assert many",
                " 96 lines, first 'device_errors2.cu:39: void fails(int): block: [0,0,0], thread: [0,0,0] Assertion \
                 `threadIdx.x + n == 1000` failed.'",
                "warps fail in another order",
            ),
        ],
    );
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

/// Kernels that wait for the host, for host functions and for other streams. `CUDA_LAUNCH_BLOCKING` is not set.
#[test]
fn launches_return_before_their_kernels_end() {
    let outcome = run(&["asynchronous.cu"], HOPPER);
    assert_eq!(outcome.report.ending, Ending::Exited(0), "{}", outcome.err);
    expect_test::expect_file![programs().join("asynchronous.txt")].assert_eq(&outcome.out);
}

/// With the variable as without it, a launch does what it does on a device.
#[test]
fn launches_block_where_the_environment_says_so() {
    let bench = bench();
    let program = build(&bench, &["blocking.cu"], HOPPER);
    for (value, printed) in [
        ("1", "busy: 0\ndone: 0\nlaunch: 700\nthen: 700\n"),
        ("0", "busy: 600\ndone: 0\nlaunch: 0\nthen: 700\n"),
    ] {
        let mut config = bench.config(vec![program.clone()]);
        config.environment.push(("CUDA_LAUNCH_BLOCKING".into(), value.into()));
        let outcome = bench.serve(config, &AtomicBool::new(false));
        assert_eq!(outcome.out, printed, "{value}: {}", outcome.err);
    }
}

/// Runs one way in which `ends.cu` ends while work is under way, and returns what is known of it. `ends` is built once.
fn ends(bench: &Bench, program: &OsString, how: &str, cancel: &AtomicBool) -> Outcome {
    let mut config = bench.config(vec![program.clone(), how.into()]);
    config.time_limit = (how == "limit").then_some(Duration::from_secs(3));
    let begun = Instant::now();
    let outcome = bench.serve(config, cancel);
    assert!(begun.elapsed() < Duration::from_secs(30), "{how}: {:?}", begun.elapsed());
    outcome
}

#[test]
fn work_that_a_program_leaves_behind_is_finished_or_counted_as_far_as_it_went() {
    let bench = bench();
    let program = build(&bench, &["ends.cu"], HOPPER);
    let never = AtomicBool::new(false);
    // A kernel that ends by itself, unawaited: all of it is known, and nothing was printed for nobody.
    let outcome = ends(&bench, &program, "short", &never);
    assert_eq!((outcome.report.ending, outcome.out.as_str()), (Ending::Exited(7), "launched\n"));
    let adds = &outcome.report.kernels[0];
    assert_eq!(
        (adds.launches, adds.stopped, adds.counters.blocks),
        (2, 0, 128),
        "{:?}",
        outcome.report.notes
    );
    // Kernels that never end: as if the device had abandoned them, whichever way the program goes.
    for (how, ending) in [
        ("exit", Ending::Exited(7)),
        ("abort", Ending::Signalled(6)),
        ("callback", Ending::Exited(7)),
        ("limit", Ending::TimeLimit),
    ] {
        let outcome = ends(&bench, &program, how, &never);
        assert_eq!(outcome.report.ending, ending, "{how}: {}", outcome.err);
        assert_left_unfinished(how, &outcome);
    }
    // Somebody gives up.
    let cancel = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(2));
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        ends(&bench, &program, "cancel", &cancel)
    });
    assert_eq!(outcome.report.ending, Ending::Cancelled);
    assert_left_unfinished("cancel", &outcome);
}

/// Of a grid of four blocks, the first two ended and two go on for ever; a launch behind it never began.
fn assert_left_unfinished(how: &str, outcome: &Outcome) {
    let report = &outcome.report;
    assert_eq!(outcome.out, "launched\n", "{how}");
    let spins = report.kernels.iter().find(|kernel| kernel.name.contains("spins")).expect(how);
    assert_eq!((spins.launches, spins.stopped), (1, 1), "{how}");
    assert_eq!((spins.counters.blocks, spins.counters.grid_blocks), (2, 4), "{how}: {:?}", report.notes);
    // Each block stores once before it spins; the others read the flag again and again.
    let total = spins.counters.total();
    assert!(total.warps > 1000 && total.sectors > 4, "{how}: {total:?}");
    assert!(
        report.notes.iter().any(|note| note.contains("stopped after 2 of 4 blocks")),
        "{:?}",
        report.notes
    );
    assert!(
        report.notes.iter().any(|note| note.contains("pieces of work were abandoned")),
        "{:?}",
        report.notes
    );
    assert!(!report.kernels.iter().any(|kernel| kernel.name.contains("adds")), "{how}");
}
