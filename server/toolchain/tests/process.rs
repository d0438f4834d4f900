//! Programs that misbehave. Each test starts real shell or Python programs and checks that nothing of them is left.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::{Finished, Program, ProgramError, Scratch};
use tokio_util::sync::CancellationToken;

/// How long anything of a job may outlive it (the promise is about two seconds; the rest is for a busy machine).
const PROMISE: Duration = Duration::from_secs(5);

fn shell(script: &str) -> Program {
    Program::new("/bin/sh").args(["-c", script]).time_limit(Duration::from_secs(60))
}

async fn run(program: Program) -> Result<Finished, ProgramError> {
    program.run(&CancellationToken::new()).await
}

/// A program that has a mark in its arguments, by which it and what it forks is found in /proc.
struct Marked(String);

impl Marked {
    fn new() -> Self {
        let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        Self(format!("mark-{}-{unique}", std::process::id()))
    }

    fn alive(&self) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&self.0).then_some(line)
        });
        lines.collect()
    }

    fn wait_until_alive(&self, count: usize) {
        let began = Instant::now();
        while self.alive().len() < count {
            assert!(began.elapsed() < Duration::from_secs(20), "never started: {:?}", self.alive());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn assert_gone(&self, within: Duration) {
        let began = Instant::now();
        while !self.alive().is_empty() {
            assert!(began.elapsed() < within, "still alive: {:?}", self.alive());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Python that sleeps in a child that left the process group by the double fork of a daemon, ignoring every signal.
const DAEMON: &str = "
import os, signal, sys, time
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid() if os.getsid(0) == os.getpid() else None
        time.sleep(300)
    os._exit(0)
";

#[tokio::test]
async fn output_status_and_input_pass_through() {
    let finished = run(shell("cat; echo err >&2; exit 7").stdin("hello")).await.unwrap();
    assert_eq!((finished.stdout_text(), finished.stderr_text()), ("hello".into(), "err\n".into()));
    assert_eq!(finished.status.code(), Some(7));
    assert!(!finished.truncated);
    let killed = run(shell("kill -SEGV $$")).await.unwrap();
    assert_eq!(killed.status.signal(), Some(11));
    let empty_input = run(shell("cat")).await.unwrap();
    assert!(empty_input.stdout.is_empty());
    let unread = run(shell("exit 0").stdin(vec![b'x'; 1 << 20])).await.unwrap();
    assert!(unread.status.success());
    assert!(run(Program::new("true")).await.unwrap().status.success());
}

#[tokio::test]
async fn secrets_are_not_inherited_and_the_environment_is_the_callers() {
    let environment =
        Environment::of_this_process().with("MY_API_KEY", "key").without_secrets().with("SEEN", "yes");
    let finished = run(shell("echo $MY_API_KEY-$SEEN").environment(environment)).await.unwrap();
    assert_eq!(finished.stdout_text(), "-yes\n");
    let finished = run(shell("echo $A-$B").env("A", "1").envs([("B", "2")]).env_remove("A")).await.unwrap();
    assert_eq!(finished.stdout_text(), "-2\n");
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let cases: [(PathBuf, &str); 7] = [
        ("no-such-program-anywhere".into(), "was not found"),
        (folder.path().join("vanished"), "was not found"),
        (file("plain", "#!/bin/sh\n", 0o644), "chmod +x"),
        (
            file("interpreter", "#!/no/such/interpreter -x\n", 0o755),
            "interpreter /no/such/interpreter is not there",
        ),
        (file("garbage", "\u{1}\u{2}\u{3}", 0o755), "neither a script nor a program"),
        (file("empty", "", 0o755), "it is empty"),
        (folder.path().to_path_buf(), "it is a folder"),
    ];
    for (program, expected) in cases {
        let message = run(Program::new(&program)).await.unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains(&*program.to_string_lossy()), "{message}");
    }
    let bare = file("bare", "echo $1\n", 0o755);
    assert_eq!(
        run(Program::new(bare).arg("as a shell does")).await.unwrap().stdout_text(),
        "as a shell does\n"
    );
    let message = run(shell("true").current_dir(folder.path().join("gone"))).await.unwrap_err().to_string();
    assert!(message.contains("gone") && message.contains("folder exists"), "{message}");
    let message = run(shell("true").arg("x".repeat(4 << 20))).await.unwrap_err().to_string();
    assert!(message.contains("response file"), "{message}");
}

#[tokio::test]
async fn sigterm_ignored_means_sigkill_after_the_grace() {
    let mark = Marked::new();
    let script = format!("trap '' TERM INT HUP; echo begun; while :; do sleep 0.2; done; : {}", mark.0);
    let began = Instant::now();
    let error = run(shell(&script).time_limit(Duration::from_millis(300))).await.unwrap_err();
    let ProgramError::TimedOut { output, .. } = error else { panic!("{error}") };
    assert_eq!(output.stdout, b"begun\n");
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    mark.assert_gone(Duration::ZERO);
}

#[tokio::test]
async fn a_program_that_obeys_sigterm_ends_at_once_when_cancelled() {
    let mark = Marked::new();
    let cancel = CancellationToken::new();
    let job = tokio::spawn({
        let (cancel, script) = (cancel.clone(), format!("sleep 300 & sleep 300 & wait; : {}", mark.0));
        async move { shell(&script).run(&cancel).await }
    });
    tokio::task::spawn_blocking({
        let mark = Marked(mark.0.clone());
        move || mark.wait_until_alive(1)
    })
    .await
    .unwrap();
    let began = Instant::now();
    cancel.cancel();
    assert!(matches!(job.await.unwrap(), Err(ProgramError::Cancelled { .. })));
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    mark.assert_gone(Duration::ZERO);
    let before = shell("true").run(&cancel).await;
    assert!(matches!(before, Err(ProgramError::Cancelled { .. })));
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_is_not_waited_for() {
    let mark = Marked::new();
    let began = Instant::now();
    let finished = run(shell(&format!("sh -c 'sleep 300; : {}' & echo done", mark.0))).await.unwrap();
    assert_eq!(finished.stdout_text(), "done\n");
    assert!(began.elapsed() < PROMISE, "{:?}", began.elapsed());
    mark.assert_gone(Duration::ZERO);
}

#[tokio::test]
async fn a_daemon_that_left_the_group_is_found() {
    let mark = Marked::new();
    let began = Instant::now();
    let finished = run(Program::new("python3").args(["-c", DAEMON, &mark.0])).await.unwrap();
    assert!(finished.status.success(), "{}", finished.stderr_text());
    assert!(began.elapsed() < PROMISE, "{:?}", began.elapsed());
    mark.assert_gone(Duration::ZERO);
}

#[tokio::test]
async fn a_tree_of_forks_is_killed_to_the_last() {
    let mark = Marked::new();
    // Two hundred processes that fork on while they are killed, each in a session of its own.
    let python = "
import os, time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        until = time.time() + 60
        while time.time() < until:
            if os.fork() != 0: os._exit(0)
            time.sleep(0.05)
        os._exit(0)
time.sleep(60)
";
    let limit = Duration::from_secs(2);
    let error =
        run(Program::new("python3").args(["-c", python, &mark.0]).time_limit(limit)).await.unwrap_err();
    assert!(matches!(error, ProgramError::TimedOut { .. }), "{error}");
    mark.assert_gone(Duration::from_secs(1));
}

#[tokio::test]
async fn closing_stdout_is_not_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = "exec >&- 2>&-; sleep 0.5; : > finished; exit 3";
    let finished = run(shell(script).current_dir(folder.path())).await.unwrap();
    assert_eq!(finished.status.code(), Some(3));
    assert!(folder.path().join("finished").exists());
}

#[tokio::test]
async fn printing_for_ever_is_bounded_and_ended() {
    let error = run(Program::new("yes").output_limit(10_000)).await.unwrap_err();
    let ProgramError::Flooded { output, limit, .. } = error else { panic!("{error}") };
    assert_eq!(limit, 1 << 20);
    assert!(output.stdout.len() < 11_000 && output.stdout.starts_with(b"y\ny\n"));
    // A long log is no flood: it is read to the end.
    let finished = run(shell("seq 1 100000; echo end").output_limit(10_000)).await.unwrap();
    let text = finished.stdout_text();
    assert!(
        finished.truncated && text.starts_with("1\n2\n") && text.ends_with("100000\nend\n"),
        "{}",
        text.len()
    );
    let slow = shell("while :; do echo x; sleep 0.01; done").time_limit(Duration::from_millis(300));
    assert!(matches!(run(slow).await, Err(ProgramError::TimedOut { .. })));
}

#[tokio::test]
async fn filling_the_scratch_folder_ends_the_program() {
    let base = tempfile::tempdir().unwrap();
    let scripts = [
        "while :; do head -c 100000 /dev/zero > file-$((i=i+1)); done",
        "head -c 100000000 /dev/zero > one-file; echo went on; sleep 60",
        "exec head -c 100000000 /dev/zero > one-file",
        "while :; do mkdir d && cd d || sleep 60; done",
        "while :; do : > empty-$((i=i+1)); done",
    ];
    for script in scripts {
        let scratch = Scratch::new_in(base.path(), "fill").unwrap().limit(2_000_000);
        let began = Instant::now();
        let result = run(shell(script).scratch(&scratch)).await;
        // A shell survives the signal for too large a file that its child got; the kernel stopped the file all the same.
        match result {
            Err(ProgramError::ScratchFull { limit, .. }) => assert_eq!(limit, 2_000_000),
            other => panic!("{script}: {other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{script}: {:?}", began.elapsed());
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists(), "{script}");
    }
}

#[tokio::test]
async fn a_program_runs_in_its_scratch_folder_with_its_temporary_files() {
    let base = tempfile::tempdir().unwrap();
    let scratch = Scratch::new_in(base.path(), "cwd").unwrap();
    let finished = run(shell("pwd; echo $TMPDIR").scratch(&scratch)).await.unwrap();
    let path = scratch.path().canonicalize().unwrap();
    assert_eq!(finished.stdout_text(), format!("{}\n{}\n", path.display(), scratch.path().display()));
}

#[tokio::test]
async fn dropping_the_future_kills_the_job() {
    let mark = Marked::new();
    let script = format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 300; : {}' & sleep 300; : {}",
        mark.0, mark.0
    );
    let timeout = tokio::time::timeout(Duration::from_millis(700), run(shell(&script))).await;
    assert!(timeout.is_err());
    mark.assert_gone(PROMISE);
}

#[tokio::test]
async fn a_program_that_kills_its_supervisor_goes_down_with_it() {
    let mark = Marked::new();
    let script = format!(
        "(setsid sh -c 'sleep 300; : {}' &) ; sleep 0.3; kill -KILL $PPID; sleep 300; : {}",
        mark.0, mark.0
    );
    let began = Instant::now();
    let error = run(shell(&script)).await.unwrap_err();
    assert!(matches!(error, ProgramError::Lost { .. }), "{error}");
    assert!(began.elapsed() < PROMISE, "{:?}", began.elapsed());
    mark.assert_gone(Duration::from_secs(1));
}

#[test]
fn blocking_works_without_and_within_a_runtime() {
    assert_eq!(shell("echo hi").run_blocking().unwrap().stdout_text(), "hi\n");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { assert_eq!(shell("echo hi").run_blocking().unwrap().stdout_text(), "hi\n") });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_at_once_do_not_hold_each_other_up() {
    let began = Instant::now();
    let jobs: Vec<_> = (0..50).map(|i| tokio::spawn(run(shell(&format!("sleep 0.5; echo {i}"))))).collect();
    for (index, job) in jobs.into_iter().enumerate() {
        assert_eq!(job.await.unwrap().unwrap().stdout_text(), format!("{index}\n"));
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// Not a test of its own: the process that the next test kills. It runs a job with a daemon and a scratch folder.
#[tokio::test]
#[ignore = "run by when_we_are_killed_nothing_of_the_job_is_left"]
async fn owner_to_be_killed() {
    let (Some(mark), Some(base)) = (std::env::var_os("TEST_MARK"), std::env::var_os("TEST_BASE")) else {
        return;
    };
    let scratch = Scratch::new_in(Path::new(&base), "owned").unwrap();
    let python = format!("{DAEMON}\ntime.sleep(300)");
    let _ = run(Program::new("python3").args(["-c", &python]).arg(mark).scratch(&scratch)).await;
}

#[test]
fn when_we_are_killed_nothing_of_the_job_is_left() {
    let mark = Marked::new();
    let base = tempfile::tempdir().unwrap();
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_to_be_killed", "--ignored"])
        .env("TEST_MARK", &mark.0)
        .env("TEST_BASE", base.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The supervisor, the program, and its daemon.
    mark.wait_until_alive(3);
    owner.kill().unwrap();
    owner.wait().unwrap();
    mark.assert_gone(PROMISE);
    // Its scratch folder is found by the next process.
    let left = || std::fs::read_dir(base.path()).unwrap().count();
    assert_eq!(left(), 1);
    assert_eq!(stitch_toolchain::process::sweep(base.path()), 1);
    assert_eq!(left(), 0);
}
