//! Times real processes over the real socket, with a device that is the host: times mean nothing there, all else does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::MeasureError;
use super::stopwatch::{Failure, Stopwatch, Timing};
use crate::architecture::Architecture;
use crate::program::{Built, Program, RunDevice, Running};
use crate::simulation::Options;

/// A compiled harness, which does as its first argument says.
#[derive(Clone)]
struct Stage {
    folder: Arc<tempfile::TempDir>,
    harness: PathBuf,
    cancel: CancellationToken,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("harness.cpp");
        std::fs::write(&source, include_str!("tests/harness.cpp")).unwrap();
        std::fs::write(folder.path().join("timed.cuh"), include_str!("../harness/timed.cuh")).unwrap();
        std::fs::write(folder.path().join("room"), "").unwrap();
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        let harness = folder.path().join("harness");
        let mut compiler = std::process::Command::new("c++");
        compiler.args(["-std=c++17", "-O1", "-w"]).arg(&source).arg("-o").arg(&harness);
        let output = compiler.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { folder: Arc::new(folder), harness, cancel: CancellationToken::new() }
    }

    fn built(&self, what: &str) -> Built {
        let scratch = Scratch::new_in(&self.folder.path().join("scratch"), "harness").unwrap();
        let arguments = vec![what.to_owned(), self.folder.path().join("room").display().to_string()];
        let program = Program { arguments, folder: self.folder.path().join("empty"), ..Program::default() };
        Built::of_executable(scratch, program, self.harness.clone())
    }

    /// Times versions that do so.
    async fn time(&self, versions: &[&Built], limit: Duration) -> Result<Timing, Failure> {
        let device = RunDevice::Cuda { index: 0, name: "host".into(), architecture: Architecture::new(9, 0) };
        let running =
            Running { device, arguments: Vec::new(), time_limit: limit, simulation: Options::default() };
        let stopwatch =
            Stopwatch { running, tolerance: None, patience: 0.1, progress: &|_| {}, cancel: &self.cancel };
        stopwatch.harnesses(versions).await
    }

    async fn compare(&self, what: [&str; 2]) -> Result<Timing, Failure> {
        let [first, second] = what.map(|what| self.built(what));
        let timing = self.time(&[&first, &second], Duration::from_secs(60)).await;
        assert!(is_gone(&first) && is_gone(&second), "{what:?} is still there");
        timing
    }
}

fn process(built: &Built) -> Option<i32> {
    std::fs::read_to_string(built.folder().join("process")).ok()?.parse().ok()
}

/// Whether nothing is left of the version's last process.
fn is_gone(built: &Built) -> bool {
    process(built).is_none_or(|process| !Path::new("/proc").join(process.to_string()).exists())
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn right_versions_are_timed_in_as_many_rounds_as_are_enough() {
    let stage = Stage::new();
    let timing = stage.compare(["copy", "copy"]).await.unwrap();
    assert!(timing.is_side_by_side && timing.rounds.len() >= 6, "{}", timing.rounds.len());
    assert!(timing.rounds.iter().all(|round| round.len() == 2), "{:?}", timing.rounds);
    let alone = stage.built("copy");
    let timing = stage.time(&[&alone], Duration::from_secs(60)).await.unwrap();
    assert!(timing.rounds.iter().all(|round| round.len() == 1) && is_gone(&alone));
}

#[tokio::test]
async fn what_timed_calls_leave_is_compared() {
    let stage = Stage::new();
    for (first, second, expected) in [
        ("copy", "wrong", "1000 of 1000 elements of `y` differ"),
        ("copy", "lazy", "1000 of 1000 elements of `y` differ"),
        ("grow", "copy", "1000 of 1000 elements of `y` differ"),
    ] {
        let failure = stage.compare([first, second]).await.err();
        let Some(Failure::Differs(how)) = failure else { panic!("{second}: {failure:?}") };
        assert!(how.contains(expected), "{second}: {how}");
    }
    // After thousands of calls all is infinite in one way or another.
    stage.compare(["grow", "grow otherwise"]).await.unwrap();
}

#[tokio::test]
async fn versions_that_have_no_room_side_by_side_take_turns() {
    let stage = Stage::new();
    let timing = stage.compare(["large", "large"]).await.unwrap();
    assert!(!timing.is_side_by_side && timing.rounds.len() >= 6, "{}", timing.rounds.len());
}

#[tokio::test]
async fn whoever_does_not_obey_is_named_and_nothing_is_left_of_it() {
    let stage = Stage::new();
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
    for (what, limit, expected) in [
        ("early", long, "ended with exit status 3 (no device)"),
        ("deaf", short, "was not ready to be timed after 1 s"),
        ("hang", short, "took longer than 1 s"),
        ("crash", long, "was ended by signal 6"),
        ("leave", long, "ended with exit status 0 before its last call"),
        ("print", long, "harness was ended: it printed more than 134 MB"),
        ("close", long, "closed the connection on which it is timed, and went on"),
        ("talk", long, "said something else over the connection on which it is timed"),
        ("stay", long, "does not end after its last call"),
    ] {
        let (good, bad) = (stage.built("copy"), stage.built(what));
        // On a busy machine a good one may take a second, too.
        let versions = if limit == short { vec![&bad] } else { vec![&good, &bad] };
        let failure = stage.time(&versions, limit).await.err();
        let Some(Failure::Fails(version, how)) = failure else { panic!("{what}: {failure:?}") };
        assert!(version == versions.len() - 1 && how.contains(expected), "{what}: version {version} {how}");
        assert!(is_gone(&good) && is_gone(&bad), "{what}");
    }
}

#[tokio::test]
async fn a_cancelled_job_ends_in_every_phase() {
    let stage = Stage::new();
    let limit = Duration::from_secs(600);
    for what in ["deaf", "hang", "copy", "stay"] {
        let stage = Stage { cancel: CancellationToken::new(), ..stage.clone() };
        let built = stage.built(what);
        let versions = [&built];
        let timed = stage.time(&versions, limit);
        let cancelled = async {
            until(what, || process(&built).is_some()).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            stage.cancel.cancel();
        };
        let (failure, ()) = tokio::join!(timed, cancelled);
        assert!(matches!(failure, Err(Failure::Error(MeasureError::Cancelled))), "{what}: {failure:?}");
        assert!(is_gone(&built), "{what}");
    }
}

#[tokio::test]
async fn a_measurement_that_is_dropped_leaves_nothing() {
    let stage = Stage::new();
    let (good, bad) = (stage.built("copy"), stage.built("hang"));
    let versions = [&good, &bad];
    let timed = stage.time(&versions, Duration::from_secs(600));
    let started = until("both have started", || process(&bad).is_some());
    tokio::select! {
        timing = timed => panic!("it hangs: {timing:?}"),
        () = started => {}
    }
    until("both have gone", || is_gone(&good) && is_gone(&bad)).await;
}
