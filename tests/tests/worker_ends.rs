//! Who interrupts, leaves or is killed leaves nothing on the other machine.

#![cfg(target_os = "linux")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use stitch_tests::optimizing::{Editor, plugin};
use stitch_tests::worker::{HEADER, Machine, RIGHT, ends, left, ordering, pair, program, started_by};

const VERIFY: [&str; 5] = ["verify", "--device", "sim:h200", "ref.cu", "good.cu"];

#[test]
fn who_interrupts_or_is_killed_leaves_nothing_there() {
    let (machine, (folder, _)) = (Machine::new().unwrap(), pair(60_000).unwrap());
    let command = machine.command().unwrap();
    for (signal, status, within) in [(Signal::SIGINT, Some(130), 10), (Signal::SIGKILL, None, 20)] {
        let mut ordering = ordering(&folder, &command, &VERIFY).unwrap();
        ordering.env("STITCHCUDA_WORKER_PATIENCE_SECONDS", "2");
        let mut child = ordering.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let doer = machine.doer(None).unwrap();
        let started = started_by(doer).unwrap();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let began = Instant::now();
        assert_eq!(child.wait().unwrap().code(), status);
        assert!(ends(doer, Duration::from_secs(within)), "{signal}: the worker is still there");
        assert_eq!(left(&started, Duration::from_secs(5)), [], "{signal}: what it started is still there");
        assert!(began.elapsed() < Duration::from_secs(30));
        let jobs = std::fs::read_dir(machine.kept().join("jobs")).unwrap().count();
        assert_eq!(jobs, 0, "{signal}: the files of the job are still there");
    }
}

/// A program that takes a minute.
fn long() -> String {
    program(RIGHT, std::path::Path::new("/dev/null"), 60_000)
}

fn profiling(editor: &mut Editor) -> u64 {
    let begun = editor.execute("stitchcuda.profile", &json!(editor.uri));
    begun["result"]["job"].as_u64().unwrap_or_else(|| panic!("{begun}"))
}

fn editor(machine: &Machine) -> Editor {
    let editor = Editor::elsewhere(&long(), &machine.command().unwrap(), plugin());
    editor.folder.write("parts/square.cuh", HEADER).unwrap();
    editor
}

#[test]
fn a_job_of_the_editor_ends_there_when_it_is_cancelled_and_holds_up_no_other() {
    let machine = Machine::new().unwrap();
    let mut editor = editor(&machine);
    let id = profiling(&mut editor);
    let worker = machine.doer(None).unwrap();
    let started = started_by(worker).unwrap();
    // Another one meanwhile, on the same connection.
    let other = editor.folder.write("other.cu", stitch_tests::optimizing::TEXT).unwrap();
    let uri = format!("file://{}", other.display());
    editor.server.open(&uri, stitch_tests::optimizing::TEXT).unwrap();
    let begun = editor.execute("stitchcuda.profile", &json!(uri));
    let second = begun["result"]["job"].as_u64().unwrap_or_else(|| panic!("{begun}"));
    let is_over = |job: &Value| ["done", "failed", "cancelled"].iter().any(|state| job["state"] == *state);
    let over = editor.job(|job| is_over(job));
    assert_eq!((&over["id"], &over["state"]), (&json!(second), &json!("done")), "{over}");

    assert_eq!(editor.ask("stitchcuda/cancel", json!({"job": id}))["cancelled"], true);
    let over = editor.job(|job| is_over(job));
    assert_eq!((&over["id"], &over["state"]), (&json!(id), &json!("cancelled")), "{over}");
    assert_eq!(left(&started, Duration::from_secs(10)), [], "what was cancelled still runs there");
    // The worker stays, for what may come next.
    assert!(!ends(worker, Duration::from_millis(200)));
}

#[test]
fn an_editor_that_is_closed_leaves_nothing_there() {
    let machine = Machine::new().unwrap();
    let mut editor = editor(&machine);
    profiling(&mut editor);
    let worker = machine.doer(None).unwrap();
    let started = started_by(worker).unwrap();
    editor.server.request("shutdown", &Value::Null).unwrap();
    editor.server.notify("exit", &Value::Null).unwrap();
    assert!(ends(worker, Duration::from_secs(20)), "the worker is still there");
    assert_eq!(left(&started, Duration::from_secs(5)), []);
}
