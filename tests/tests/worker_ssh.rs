//! A worker behind a real `sshd` on loopback: the command that people write, a connection that is cut, and keys that are refused.
//!
//! The daemon is this test's own: its host key, its one authorised key, its port; it runs as whoever runs the test. Where the system has none the
//! tests are left out, unless `STITCHCUDA_TEST_REQUIRE_SSHD` says that they may not be.

#![cfg(target_os = "linux")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, getuid};
use stitch_tests::cli::finish;
use stitch_tests::worker::{Machine, descendants, ends, ordering, pair, runs};

const VERIFY: [&str; 7] = ["verify", "--format", "json", "--device", "sim:h200", "ref.cu", "good.cu"];

/// A daemon, and the words of the command that leads through it.
struct Daemon {
    child: Child,
    folder: tempfile::TempDir,
    ssh: Vec<String>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program_at(places: &[&str]) -> Option<PathBuf> {
    places.iter().map(PathBuf::from).find(|path| path.is_file())
}

fn key(path: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
    assert!(made.unwrap().success());
}

impl Daemon {
    /// Starts one; `None` where the system has none, and that may be.
    fn start() -> Option<Self> {
        let Some(sshd) = program_at(&["/usr/sbin/sshd", "/usr/local/sbin/sshd"]) else {
            let required = std::env::var_os("STITCHCUDA_TEST_REQUIRE_SSHD").is_some();
            assert!(!required, "there is no sshd, and STITCHCUDA_TEST_REQUIRE_SSHD is set");
            eprintln!("left out: there is no sshd; install openssh-server");
            return None;
        };
        if getuid().is_root() {
            // Where a daemon of root's keeps its unprivileged half.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for name in ["host", "mine", "stranger"] {
            key(&folder.path().join(name));
        }
        fs::copy(at("mine.pub"), at("authorized")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n",
            at("host"),
            at("authorized")
        );
        fs::write(at("config"), config).unwrap();
        let child = Command::new(sshd)
            .args(["-D", "-e", "-f", &at("config")])
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        let host = fs::read_to_string(at("host.pub")).unwrap();
        fs::write(at("known"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let user = User::from_uid(getuid()).unwrap().unwrap().name;
        let known = format!("UserKnownHostsFile={}", at("known"));
        let port = port.to_string();
        let words = [
            "ssh",
            "-F",
            "none",
            "-o",
            "BatchMode=yes",
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            &known,
            "-p",
            &port,
            "-l",
            &user,
        ];
        let ssh = words.map(str::to_owned).to_vec();
        Some(Self { child, folder, ssh })
    }

    /// The command that leads to a machine's worker with a key.
    fn command(&self, key: &str, machine: &Machine) -> Vec<String> {
        let key = self.folder.path().join(key).display().to_string();
        let way = ["-i".to_owned(), key, "127.0.0.1".to_owned()];
        // ssh hands its words to a shell there, with blanks between them.
        [self.ssh.clone(), way.to_vec(), machine.command().unwrap()].concat()
    }
}

#[test]
fn a_machine_behind_ssh_is_a_device_and_a_cut_connection_is_mended() {
    let Some(daemon) = Daemon::start() else { return };
    let (machine, (folder, log)) = (Machine::new().unwrap(), pair(1500).unwrap());
    let command = daemon.command("mine", &machine);
    let finished = finish(&mut ordering(&folder, &command, &VERIFY).unwrap()).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let verdict = finished.json().unwrap();
    assert_eq!(verdict["answer"], "correct");
    assert!(verdict["device"].as_str().unwrap().starts_with("sim:h200 on "), "{verdict:#}");
    let expected = runs(&log);

    // The ssh of this side is killed in the middle: its connection is gone, and the worker's streams end.
    let mut cut = ordering(&folder, &command, &VERIFY).unwrap();
    let child = cut.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let doer = machine.doer(None).unwrap();
    let below = descendants(Pid::from_raw(i32::try_from(child.id()).unwrap()));
    let ssh = below.iter().find(|process| process.name == "ssh").unwrap();
    kill(Pid::from_raw(ssh.pid), Signal::SIGKILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(runs(&log), 2 * expected, "programs were run again");
    assert!(ends(doer, Duration::from_secs(10)));
}

#[test]
fn a_refused_key_and_a_host_that_is_not_there_are_said_in_the_words_of_ssh() {
    let Some(daemon) = Daemon::start() else { return };
    let (machine, (folder, _)) = (Machine::bare().unwrap(), pair(0).unwrap());
    let mut unknown = daemon.command("mine", &machine);
    unknown.iter_mut().filter(|word| *word == "127.0.0.1").for_each(|word| *word = "localhost".to_owned());
    let mut elsewhere = daemon.command("mine", &machine);
    let binary = elsewhere.len() - 2;
    elsewhere[binary] = "/no/such/stitchcuda".to_owned();
    for (command, expected) in [
        (daemon.command("stranger", &machine), "Permission denied (publickey)"),
        (unknown, "Host key verification failed"),
        (elsewhere, "No such file or directory"),
    ] {
        let finished = finish(&mut ordering(&folder, &command, &VERIFY).unwrap()).unwrap();
        assert_eq!(finished.status, Some(3), "{}", finished.err);
        let said = finished.err.contains("before a worker answered") && finished.err.contains(expected);
        assert!(said, "{expected}: {}", finished.err);
    }
}
