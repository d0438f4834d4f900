//! Ctrl-C, SIGTERM or SIGHUP while a compiler runs: the command ends soon, and so does everything it started.

#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stitch_tests::cli::Folder;
use stitch_tests::endless;

const SOURCE: &str = "__global__ void k(float* p) { p[threadIdx.x] = 1.0f; }\n";
const PROMISED: Duration = Duration::from_secs(3);

/// The processes that run, and not only lie there until someone asks for their status, with `word` in their command line.
fn running_with(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    found
}

#[test]
fn an_interrupt_ends_the_compilers_and_leaves_nothing() {
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        ends_with_all_it_started(signal, status);
    }
}

fn ends_with_all_it_started(signal: Signal, expected: i32) {
    let folder = Folder::with(&[("a.cu", SOURCE), ("b.cu", SOURCE)]).unwrap();
    let root = folder.path().unwrap().join("toolkit");
    endless::toolkit(&root).unwrap();
    let mut command = folder.bare(&["check", "a.cu", "b.cu"]).unwrap();
    let mut child = command.env("CUDA_HOME", &root).spawn().unwrap();
    let begin = Instant::now();
    let started = loop {
        let text = fs::read_to_string(root.join("started")).unwrap_or_default();
        if text.ends_with('\n') {
            break text;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no compile started");
        std::thread::sleep(Duration::from_millis(10));
    };
    let begin = Instant::now();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    let status = child.wait().unwrap();
    assert!(begin.elapsed() < PROMISED, "{:?}", begin.elapsed());
    assert_eq!(status.code(), Some(expected), "{signal}");
    let begin = Instant::now();
    let ids: Vec<i32> = started.split_whitespace().map(|id| id.parse().unwrap()).collect();
    while ids.iter().any(|id| endless::is_alive(*id)) || !running_with(&root.display().to_string()).is_empty()
    {
        assert!(
            begin.elapsed() < PROMISED,
            "left: {started:?} {:?}",
            running_with(&root.display().to_string())
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let scratch = folder.path().unwrap().parent().unwrap().join("home/cache/scratch");
    let owners = fs::read_dir(&scratch).unwrap().flatten();
    let left = owners.flat_map(|owner| fs::read_dir(owner.path()).unwrap().flatten());
    let left: Vec<_> = left.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    assert!(left.is_empty(), "{left:?}");
}
