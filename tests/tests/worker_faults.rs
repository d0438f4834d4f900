//! What goes wrong with another machine, and that each is told so that one knows what to do: no way there, another version, a connection that is
//! lost, a worker that is stuck, a disk that is full, a toolkit that is missing.

#![cfg(target_os = "linux")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stitch_tests::cli::{Finished, Folder, finish};
use stitch_tests::worker::{Machine, Process, ends, left, ordering, pair, runs, started_by};

const VERIFY: [&str; 7] = ["verify", "--format", "json", "--device", "sim:h200", "ref.cu", "good.cu"];

fn verify(folder: &Folder, command: &[String]) -> Finished {
    finish(&mut ordering(folder, command, &VERIFY).unwrap()).unwrap()
}

/// The same, while something is done to it. The sides are patient for so many seconds.
fn begin(folder: &Folder, command: &[String], patience: u32) -> Child {
    let mut ordering = ordering(folder, command, &VERIFY).unwrap();
    ordering.env("STITCHCUDA_WORKER_PATIENCE_SECONDS", patience.to_string());
    ordering.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Finished {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Finished { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn shell(script: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()]
}

#[test]
fn no_way_to_a_worker_is_said_with_what_stood_in_it() {
    let (folder, _) = pair(0).unwrap();
    for (command, expected) in [
        (
            words("no-such-ssh gpu01 stitchcuda worker"),
            &["`no-such-ssh` could not be started", "worker.command"][..],
        ),
        (
            shell("echo 'me@gpu01: Permission denied (publickey).' >&2; exit 255"),
            &["ended with exit status 255 before a worker answered", "Permission denied (publickey)"],
        ),
        (
            shell("echo 'bash: line 1: stitchcuda: command not found' >&2; exit 127"),
            &[
                "exit status 127",
                "stitchcuda: command not found",
                "must be installed there, or be named by its path",
            ],
        ),
        (
            shell("echo \"error: unrecognized subcommand 'worker'\" >&2; exit 2"),
            &["ended with exit status 2", "of a version that has no worker yet: update it"],
        ),
        (shell("kill -9 $$"), &["was ended by signal 9"]),
        (shell("yes Welcome"), &["leads to no worker", "more than 200 lines", "\"Welcome\""]),
        (shell("echo Welcome; exit 0"), &["leads to no worker", "a line", "\"Welcome\""]),
        (shell("head -c 1000000 /dev/zero"), &["leads to no worker", "a line of over 65536 bytes"]),
    ] {
        let finished = verify(&folder, &command);
        assert_eq!(finished.status, Some(3), "{command:?}: {}", finished.err);
        for expected in expected {
            assert!(finished.err.contains(expected), "{command:?}: {expected}: {}", finished.err);
        }
    }
}

#[test]
fn keys_of_this_side_are_not_given_to_the_command() {
    let (folder, _) = pair(0).unwrap();
    let told = folder.path().unwrap().join("environment");
    let command = shell(&format!("env > '{}'; exit 9", told.display()));
    let mut ordering = ordering(&folder, &command, &VERIFY).unwrap();
    ordering.env("STITCHCUDA_API_KEY", "open sesame").env("SSH_AUTH_SOCK", "/run/agent");
    assert_eq!(finish(&mut ordering).unwrap().status, Some(3));
    let told = std::fs::read_to_string(told).unwrap();
    assert!(!told.contains("sesame") && told.contains("SSH_AUTH_SOCK=/run/agent"), "{told}");
}

#[test]
fn a_command_that_never_answers_is_given_up() {
    let (folder, _) = pair(0).unwrap();
    let began = Instant::now();
    let place = folder.path().unwrap().join("queued");
    // What it started is ended with it.
    let script = format!(
        "echo 'srun: job 7 queued and waiting' >&2; sleep 600 & echo $! > '{}'; wait",
        place.display()
    );
    let finished = end(begin(&folder, &shell(&script), 1));
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    assert!(
        finished.err.contains("did not answer within 20 s") && finished.err.contains("job 7 queued"),
        "{}",
        finished.err
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    let queued = std::fs::read_to_string(place).unwrap().trim().parse().unwrap();
    assert_eq!(Process::read(queued), None, "it still waits in its queue");
}

#[test]
fn a_greeting_of_the_machine_is_passed_over() {
    let (machine, (folder, _)) = (Machine::new().unwrap(), pair(0).unwrap());
    let command = machine.shell("echo Welcome to gpu01; echo '{\"quota\": 3}'; echo; exec WORKER").unwrap();
    let finished = verify(&folder, &command);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
}

#[test]
fn sides_of_two_versions_say_which_one_to_update() {
    let (folder, _) = pair(0).unwrap();
    // What a worker of another version says; there is none to start yet.
    let of = |protocol: u32, version: &str| {
        shell(&format!(
            "read hello; echo '{{\"type\":\"hello\",\"protocol\":{protocol},\"version\":\"{version}\",\"machine\":\"gpu01\"}}'; exec cat > /dev/null"
        ))
    };
    for (command, older) in [(of(99, "9.0.0"), "on this machine"), (of(1, "0.0.1"), "on gpu01")] {
        let finished = verify(&folder, &command);
        assert_eq!(finished.status, Some(3), "{}", finished.err);
        assert!(finished.err.contains(&format!("update StitchCUDA {older}.")), "{}", finished.err);
    }
    // And a worker says it to another side.
    let machine = Machine::bare().unwrap();
    for (hello, words) in [
        (
            "{\"type\":\"hello\",\"protocol\":99,\"version\":\"9.0.0\",\"patience\":1000}",
            "update StitchCUDA on ",
        ),
        ("GET / HTTP/1.1", "is started by another StitchCUDA"),
    ] {
        let script = machine.shell(&format!("printf '%s\\n' '{hello}' | WORKER")).unwrap();
        let output = Command::new(&script[0]).args(&script[1..]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let last = said.lines().last().unwrap();
        assert!(last.contains("\"refused\"") && last.contains(words), "{said}");
        assert!(!output.status.success());
    }
}

#[test]
fn a_worker_that_is_killed_is_replaced_once() {
    let (machine, (folder, _)) = (Machine::new().unwrap(), pair(1000).unwrap());
    let command = machine.command().unwrap();
    let child = begin(&folder, &command, 30);
    let killed = machine.doer(None).unwrap();
    let started = started_by(killed).unwrap();
    kill(killed, Signal::SIGKILL).unwrap();
    assert_eq!(left(&started, Duration::from_secs(10)), [], "what a worker started outlives it");
    let finished = end(child);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(finished.json().unwrap()["answer"], "correct");

    let child = begin(&folder, &command, 30);
    let first = machine.doer(None).unwrap();
    kill(first, Signal::SIGKILL).unwrap();
    kill(machine.doer(Some(first)).unwrap(), Signal::SIGKILL).unwrap();
    let finished = end(child);
    assert_eq!(finished.status, Some(1), "{}", finished.err);
    for expected in ["was lost", "was ended by signal 9", "It was made once more, and lost again"] {
        assert!(finished.err.contains(expected), "{expected}: {}", finished.err);
    }
}

#[test]
fn a_worker_that_is_stuck_is_given_up_and_replaced_once() {
    let (machine, (folder, _)) = (Machine::new().unwrap(), pair(1500).unwrap());
    let command = machine.command().unwrap();
    let child = begin(&folder, &command, 2);
    let stuck = machine.doer(None).unwrap();
    kill(stuck, Signal::SIGSTOP).unwrap();
    let finished = end(child);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert!(ends(stuck, Duration::from_secs(5)), "the one that was stuck is still there");

    let child = begin(&folder, &command, 2);
    let first = machine.doer(None).unwrap();
    kill(first, Signal::SIGSTOP).unwrap();
    kill(machine.doer(Some(first)).unwrap(), Signal::SIGSTOP).unwrap();
    let finished = end(child);
    assert_eq!(finished.status, Some(1), "{}", finished.err);
    let stalled = "nothing was heard of the worker for 2 s";
    assert_eq!(finished.err.matches(stalled).count(), 2, "{}", finished.err);
}

/// A connection that can be cut without either side ending: it carries bytes both ways, and writes down its process. Of several the later ones wait.
const RELAY: &str = r#"
import os, subprocess, sys, threading, time
place, delay, worker = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
if os.path.exists(place): time.sleep(delay)
child = subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
open(place, "w").write(str(os.getpid()))
def pump(one, other):
    while data := os.read(one, 65536): os.write(other, data)
    os.close(other)
threading.Thread(target=pump, args=(0, child.stdin.fileno()), daemon=True).start()
pump(child.stdout.fileno(), 1)
"#;

#[test]
fn nothing_is_done_twice_when_a_connection_is_cut() {
    for (milliseconds, delay) in [(1500, "0"), (100, "10")] {
        let (machine, (folder, log)) = (Machine::new().unwrap(), pair(milliseconds).unwrap());
        let script = folder.write("relay.py", RELAY).unwrap().display().to_string();
        let place = machine.home().join("relay");
        let relay = ["python3", &script, &place.display().to_string(), delay].map(str::to_owned);
        let command = [relay.to_vec(), machine.command().unwrap()].concat();
        let undisturbed = verify(&folder, &machine.command().unwrap());
        assert_eq!(undisturbed.status, Some(0), "{}", undisturbed.err);
        let expected = runs(&log);
        assert!(expected >= 4);

        let child = begin(&folder, &command, 30);
        let doer = machine.doer(None).unwrap();
        let pid: i32 = std::fs::read_to_string(&place).unwrap().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        let finished = end(child);
        assert_eq!(finished.status, Some(0), "{}", finished.err);
        assert_eq!(finished.json().unwrap()["answer"], "correct");
        assert_eq!(runs(&log), 2 * expected, "programs were run again");
        // Who did it was still there when the other one came, or had left its answer.
        assert!(ends(doer, Duration::from_secs(10)));
    }
}

#[test]
fn a_stream_that_is_cut_off_or_garbled_is_said() {
    let (machine, (folder, _)) = (Machine::new().unwrap(), pair(0).unwrap());
    for (script, expected) in [
        ("WORKER | dd bs=1 count=300 status=none", "ended with exit status 0"),
        ("WORKER | sed -u 's/progress/pro gress/'", "what came through it is no message"),
    ] {
        let finished = verify(&folder, &machine.shell(script).unwrap());
        assert_eq!(finished.status, Some(1), "{script}: {}", finished.err);
        assert!(
            finished.err.contains(expected) && finished.err.contains("lost again"),
            "{script}: {}",
            finished.err
        );
    }
}

/// A command that gives the worker a cache on a disk of so many kilobytes; `None` where this machine gives no such disk.
fn on_small_disk(machine: &Machine, kilobytes: u32) -> Option<Vec<String>> {
    let tried = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("left out: this machine gives no namespace to mount a small disk in");
        return None;
    }
    let cache = machine.home().join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    let mount = format!("mount -t tmpfs -o size={kilobytes}k none '{}' && exec WORKER", cache.display());
    Some([vec!["unshare".to_owned(), "-rm".to_owned()], machine.shell(&mount).unwrap()].concat())
}

#[test]
fn a_full_disk_there_is_said_with_what_to_do() {
    let machine = Machine::new().unwrap();
    let (folder, _) = pair(0).unwrap();
    let text = std::fs::read_to_string(folder.path().unwrap().join("ref.cu")).unwrap();
    folder.write("big.cu", format!("{text}// fopen(\"big.bin\")\n")).unwrap();
    folder.write("big.bin", vec![7; 2 << 20]).unwrap();
    // In the middle of a file on its way, and in the middle of a build.
    for (kilobytes, reference) in [(1024, "big.cu"), (200, "ref.cu")] {
        let Some(command) = on_small_disk(&machine, kilobytes) else { return };
        let mut arguments = VERIFY.to_vec();
        arguments[5] = reference;
        let finished = finish(&mut ordering(&folder, &command, &arguments).unwrap()).unwrap();
        assert_eq!(finished.status, Some(3), "{reference}: {}", finished.err);
        let said = finished.err.contains("The disk of ") && finished.err.contains("STITCHCUDA_CACHE_DIR");
        assert!(said, "{reference}: {}", finished.err);
    }
}

#[test]
fn a_large_file_is_not_sent_to_its_end_to_a_disk_that_is_full() {
    const SIZE: u64 = 96 << 20;
    let (machine, (folder, _)) = (Machine::new().unwrap(), pair(0).unwrap());
    let text = std::fs::read_to_string(folder.path().unwrap().join("ref.cu")).unwrap();
    folder.write("ref.cu", format!("{text}// fopen(\"big.bin\")\n")).unwrap();
    std::fs::File::create(folder.path().unwrap().join("big.bin")).unwrap().set_len(SIZE).unwrap();
    let Some(command) = on_small_disk(&machine, 2048) else { return };
    let log = machine.home().join("traffic");
    let words: Vec<String> =
        command.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let finished = verify(&folder, &shell(&format!("tee '{}' | {}", log.display(), words.join(" "))));
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    assert!(finished.err.contains("The disk of "), "{}", finished.err);
    let sent = log.metadata().unwrap().len();
    assert!(sent < SIZE / 2, "{sent} bytes went there");
}

#[test]
fn a_cache_there_that_can_not_be_written_is_said() {
    let (machine, (folder, _)) =
        (Machine::new().unwrap().with("STITCHCUDA_CACHE_DIR", "/dev/null/cache"), pair(0).unwrap());
    let finished = verify(&folder, &machine.command().unwrap());
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    let said = finished.err.contains("/dev/null/cache/worker could not be written on ");
    assert!(said && !finished.err.contains("lost"), "{}", finished.err);
}

#[test]
fn a_toolkit_that_is_missing_there_and_a_device_are_said_with_the_machine() {
    let (folder, _) = pair(0).unwrap();
    let machine = Machine::bare().unwrap();
    let finished = verify(&folder, &machine.command().unwrap());
    let jobs = std::fs::read_dir(machine.kept().join("jobs")).unwrap().count();
    assert_eq!(jobs, 0, "what was heard is kept");
    let here = finish(&mut folder.bare(&VERIFY).unwrap()).unwrap();
    assert_eq!((finished.status, here.status), (Some(3), Some(3)), "{}", finished.err);
    let same = here.err.trim_start_matches("error: ").trim();
    assert!(
        finished.err.starts_with("error: On ") && finished.err.contains(same),
        "{}\n{same}",
        finished.err
    );
    let machine = Machine::new().unwrap();
    let arguments = ["verify", "--device", "cuda:7", "ref.cu", "good.cu"];
    let finished = finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
    assert_eq!(finished.status, Some(3));
    assert!(finished.err.contains("error: On ") && finished.err.contains("cuda:7"), "{}", finished.err);
    // What is missing here is said before anything goes there.
    let finished =
        finish(&mut ordering(&folder, &shell("exit 9"), &["verify", "no.cu", "good.cu"]).unwrap()).unwrap();
    assert_eq!(finished.status, Some(2), "{}", finished.err);
}
