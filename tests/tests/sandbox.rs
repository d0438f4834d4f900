//! The sandbox as a candidate meets it: the real binary runs real programs in every way that this machine has, and says which.
//!
//! `STITCHCUDA_TEST_ISOLATION` picks one way. As another user and with namespaces denied it is tried too: in a sandbox of its own.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use stitch_tests::cli;

/// Every way to make a sandbox.
const WAYS: [&str; 6] = ["bubblewrap", "user", "root", "user-without-mounts", "root-without-mounts", "none"];

/// A command in the sandbox, made in a way.
fn inside(way: &str, options: &[&str], command: &[&str]) -> Command {
    let mut process = Command::new(cli::binary().unwrap());
    process.args(["sandbox-exec", "--isolation", way]).args(options).arg("--").args(command);
    process.env("SECRET_OF_THE_TEST", "x").stdin(Stdio::null());
    process
}

fn run(way: &str, options: &[&str], command: &[&str]) -> (Option<i32>, String, String) {
    said(&inside(way, options, command).output().unwrap())
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The ways that this machine has, found by trying; printed, so that a run of the tests says what it saw.
fn ways() -> &'static [&'static str] {
    static WORKING: OnceLock<Vec<&str>> = OnceLock::new();
    WORKING.get_or_init(|| {
        let asked = std::env::var("STITCHCUDA_TEST_ISOLATION").ok();
        let asked_for = |way: &&str| asked.as_deref().is_none_or(|asked| asked == *way);
        let works = |way: &&str| {
            let (status, _, err) = run(way, &["--report"], &["/bin/true"]);
            eprintln!("{way}: {}", err.trim());
            status == Some(0)
        };
        let found: Vec<_> = WAYS.into_iter().filter(asked_for).filter(works).collect();
        assert!(!found.is_empty(), "none of the ways works, not even the one without namespaces");
        found
    })
}

/// Ways with mounts of their own.
fn has_mounts(way: &str) -> bool {
    !way.contains("without") && way != "none"
}

fn python() -> String {
    let found =
        ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|path| Path::new(path).exists());
    found.expect("these tests need a python3 of the system").to_owned()
}

/// Whether a process with this in its arguments is there, other than this one.
fn is_running(mark: &str) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    })
}

fn gone_within(mark: &str, limit: Duration) -> bool {
    let began = Instant::now();
    while is_running(mark) {
        if began.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn it_gets_no_variable_and_no_right_that_it_was_not_given() {
    for way in ways() {
        let (status, out, err) = run(way, &["--env", "GIVEN=1"], &["/usr/bin/env"]);
        assert_eq!(status, Some(0), "{way}: {err}");
        let mut names: Vec<_> = out.lines().filter_map(|line| line.split('=').next()).collect();
        // Where no namespace holds its processes, they are found by a mark.
        names.retain(|name| *way != "none" || *name != "STITCHCUDA_JOB");
        names.sort_unstable();
        assert_eq!(names, ["GIVEN", "HOME", "PATH", "TEMP", "TMP", "TMPDIR"], "{way}");
        let (_, status, _) = run(way, &[], &["/bin/cat", "/proc/self/status"]);
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        for name in ["CapEff:", "CapPrm:", "CapBnd:", "CapAmb:"] {
            let ours = fs::read_to_string("/proc/self/status").unwrap();
            // A user without rights can't empty the set of what it could never have anyway.
            let powerless =
                ours.lines().any(|line| line.replace(char::is_whitespace, "") == "CapEff:0000000000000000");
            if name != "CapBnd:" || !powerless || *way != "none" {
                assert_eq!(field(name), Some("0000000000000000"), "{way}: {name}");
            }
        }
        assert_eq!(field("NoNewPrivs:"), Some("1"), "{way}");
        assert_eq!(field("Seccomp:"), Some("2"), "{way}");
    }
}

#[test]
fn the_network_is_refused() {
    let script = "import socket\n\
                  for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):\n  \
                  try: socket.socket(family, socket.SOCK_DGRAM); print('open', family)\n  \
                  except OSError as error: print(error.errno)\n\
                  socket.socketpair()";
    for way in ways() {
        let (status, out, err) = run(way, &[], &[&python(), "-c", script]);
        // EAFNOSUPPORT, and no end of the program.
        assert_eq!((status, out.as_str()), (Some(0), "97\n97\n97\n97\n"), "{way}: {err}");
    }
}

#[test]
fn the_home_folder_and_other_places_are_not_there() {
    let home = tempfile::tempdir().unwrap();
    // As in a home folder that others may look into.
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (key, shown) = (home.path().join("key"), home.path().join("shown"));
    fs::write(&key, "secret").unwrap();
    fs::create_dir(&shown).unwrap();
    fs::write(shown.join("file"), "hello").unwrap();
    let (key, file) = (key.to_str().unwrap(), shown.join("file"));
    for way in ways() {
        let mut command =
            inside(way, &["--read", shown.to_str().unwrap()], &["/bin/cat", file.to_str().unwrap(), key]);
        let (status, out, err) = said(&command.env("HOME", home.path()).output().unwrap());
        assert_eq!((status, out.as_str()), (Some(1), "hello"), "{way}: {err}");
        assert!(!err.contains("secret"), "{way}: {err}");
        let list = format!(
            "ls /root /home {} | grep -v -e '^/' -e '^$' -e shown; cat /etc/shadow",
            home.path().display()
        );
        let (_, out, _) =
            said(&inside(way, &[], &["/bin/sh", "-c", &list]).env("HOME", home.path()).output().unwrap());
        assert_eq!(out.trim(), "", "{way}");
        let mut command = inside(way, &["--read", home.path().to_str().unwrap()], &["/bin/true"]);
        let (status, _, err) = said(&command.env("HOME", home.path()).output().unwrap());
        assert_eq!(status, Some(2), "{way}");
        assert!(err.contains("would show the home folder"), "{way}: {err}");
    }
}

#[test]
fn it_writes_its_scratch_folder_and_nothing_else() {
    let shown = tempfile::tempdir().unwrap();
    fs::set_permissions(shown.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let places = format!(
        "/usr/x /etc/x /x /var/tmp/x /root/x /sys/x /proc/sys/kernel/hostname {}/x /dev/x",
        shown.path().display()
    );
    let script = format!(
        "for f in {places}; do (echo a > $f) 2>/dev/null && echo wrote $f; done; \
         echo a > $TMPDIR/x && mkdir $HOME/d && mv $TMPDIR/x $HOME/d && cat $TMPDIR/d/x; echo a > /dev/null"
    );
    for way in ways() {
        let options = ["--read", shown.path().to_str().unwrap()];
        let (status, out, err) = run(way, &options, &["/bin/sh", "-c", &script]);
        assert_eq!((status, out.as_str()), (Some(0), "a\n"), "{way}: {err}");
        let (_, out, err) =
            run(way, &[], &["/bin/sh", "-c", "echo a > /dev/shm/x && echo a > /tmp/x && echo both"]);
        assert_eq!(out == "both\n", has_mounts(way), "{way}: {out} {err}");
        assert!(!Path::new("/dev/shm/x").exists() && !shown.path().join("x").exists(), "{way}");
    }
}

#[test]
fn too_much_of_anything_ends_it_with_a_clear_error() {
    let python = python();
    let memory = "x = bytearray(3_000_000_000)\nimport time\ntime.sleep(60)";
    let shared = "import os, time\nfor i in range(7):\n  if os.fork() == 0: break\nx = bytearray(200_000_000)\ntime.sleep(60)";
    // Bombs with an end: where nothing stops them in time, they must not take this machine along.
    let forks = "import os, time\nfor i in range(1000):\n  try:\n    if os.fork() == 0: time.sleep(60)\n  except OSError: pass\ntime.sleep(60)";
    let doubling = "import os, time\nfor i in range(9):\n  try: os.setsid()\n  except OSError: pass\n  try: os.fork()\n  except OSError: pass\ntime.sleep(60)";
    let files = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > $TMPDIR/f$i; done";
    let rows: [(&[&str], [&str; 3], &str); 8] = [
        (&["--memory", "300000000"], [&python, "-c", memory], "it used more than 300 MB of memory"),
        (&["--memory", "1000000000"], [&python, "-c", shared], "it used more than 1000 MB of memory"),
        (&["--tasks", "50", "--time", "5"], [&python, "-c", forks], "processes and threads, and may have 50"),
        (
            &["--tasks", "50", "--time", "5"],
            [&python, "-c", doubling],
            "processes and threads, and may have 50",
        ),
        (
            &["--cpu", "1"],
            ["/bin/sh", "-c", "while :; do :; done"],
            "it took more than 1 s of processor time",
        ),
        (
            &["--time", "1"],
            ["/bin/sh", "-c", "trap '' TERM; while :; do :; done"],
            "ended after 1 s, its time limit",
        ),
        (
            &["--scratch-limit", "5000000"],
            ["/bin/sh", "-c", files],
            "it wrote more than 5 MB into its scratch folder",
        ),
        (
            &["--scratch-limit", "5000000"],
            ["/bin/sh", "-c", "exec head -c 9000000 /dev/zero > $TMPDIR/f"],
            "it wrote more than 5 MB",
        ),
    ];
    for way in ways() {
        for (options, command, expected) in &rows {
            let began = Instant::now();
            let (status, out, err) = run(way, options, command);
            let took = began.elapsed();
            // A user is refused more processes by the kernel already, which the program may outlive.
            let refused = expected.contains("processes") && err.contains("ended after");
            assert!(
                status == Some(1) && (err.contains(expected) || refused),
                "{way}: {options:?}: {status:?} {out} {err}"
            );
            assert!(took < Duration::from_secs(20), "{way}: {options:?} took {took:?}");
        }
    }
}

#[test]
fn it_may_not_trace_mount_or_make_namespaces() {
    let script = "import ctypes, os, time\n\
                  c = ctypes.CDLL(None, use_errno=True)\n\
                  child = os.fork()\n\
                  if child == 0: time.sleep(60)\n\
                  def refused(name, *arguments):\n  \
                  result = c[name](*arguments); print(name, result, ctypes.get_errno())\n\
                  refused('ptrace', 16, child, 0, 0)\n\
                  refused('process_vm_readv', child, 0, 0, 0, 0, 0)\n\
                  refused('unshare', 0x10000000)\n\
                  refused('mount', b'x', b'/tmp', b'tmpfs', 0, 0)\n\
                  os.kill(child, 9)";
    for way in ways() {
        let (status, out, err) = run(way, &[], &[&python(), "-c", script]);
        let expected = "ptrace -1 1\nprocess_vm_readv -1 1\nunshare -1 1\nmount -1 1\n";
        assert_eq!((status, out.as_str()), (Some(0), expected), "{way}: {err}");
        let parent = std::process::id();
        let read = format!("cat /proc/{parent}/environ /proc/$PPID/environ; kill -0 {parent} && echo alive");
        let (_, out, _) = run(way, &[], &["/bin/sh", "-c", &read]);
        assert!(!out.contains("SECRET_OF_THE_TEST") && !out.contains("alive"), "{way}: {out}");
    }
}

#[test]
fn nothing_is_left_of_it() {
    for (index, way) in ways().iter().enumerate() {
        let (first, second) = (format!("4{index}71.5"), format!("4{index}72.5"));
        let daemon =
            format!("(setsid sh -c 'sleep {first} & exec sleep {first}' >/dev/null 2>&1 &); sleep 0.2");
        let (status, _, err) = run(way, &[], &["/bin/sh", "-c", &daemon]);
        assert_eq!(status, Some(0), "{way}: {err}");
        assert!(gone_within(&format!("sleep\0{first}"), Duration::ZERO), "{way}: a daemon is left");
        // Killed as hard as can be, whoever waits for it.
        let script = format!("(setsid sleep {second} &); exec sleep {second}");
        let mut parent = inside(way, &[], &["/bin/sh", "-c", &script]).process_group(0).spawn().unwrap();
        let mark = format!("sleep\0{second}");
        let began = Instant::now();
        while !is_running(&mark) && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(is_running(&mark), "{way}: it never ran");
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(gone_within(&mark, Duration::from_secs(5)), "{way}: something is left");
    }
}

/// The other end of the socket: passes a file in memory, and shows what is in it after.
const OUTSIDE: &str = "import os, socket, sys\n\
                       s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n\
                       m = os.memfd_create('input'); os.ftruncate(m, 4096); os.pwrite(m, b'hello', 0)\n\
                       c, _ = s.accept()\n\
                       socket.send_fds(c, [b'x'], [m]); c.recv(4)\n\
                       print(os.pread(m, 10, 0).decode())";

#[test]
fn a_socket_in_its_scratch_folder_brings_memory_from_outside() {
    let script = "import mmap, os, socket, time\n\
                  path = os.environ['TMPDIR'] + '/socket'\n\
                  while not os.path.exists(path): time.sleep(0.01)\n\
                  s = socket.socket(socket.AF_UNIX); s.connect(path)\n\
                  data, fds, flags, address = socket.recv_fds(s, 16, 1)\n\
                  with mmap.mmap(fds[0], 4096) as m:\n  \
                  print(m[:5].decode()); m[5:10] = b'again'\n\
                  s.sendall(b'done')";
    for way in ways() {
        let base = tempfile::tempdir().unwrap();
        let options = ["--scratch", base.path().to_str().unwrap()];
        let mut command = inside(way, &options, &[&python(), "-c", script]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let scratch = scratch_in(base.path());
        let outside =
            Command::new(python()).args(["-c", OUTSIDE]).arg(scratch.join("socket")).output().unwrap();
        let (status, out, err) = said(&child.wait_with_output().unwrap());
        assert_eq!((status, out.as_str()), (Some(0), "hello\n"), "{way}: {err}");
        assert_eq!(said(&outside).1, "helloagain\n", "{way}: {}", said(&outside).2);
    }
}

/// The scratch folder that a job gets in `base`, once it is there.
fn scratch_in(base: &Path) -> PathBuf {
    let began = Instant::now();
    loop {
        let owners = fs::read_dir(base).unwrap().flatten();
        let folders = owners.filter_map(|owner| fs::read_dir(owner.path()).ok()).flatten().flatten();
        let mut folders = folders.map(|folder| folder.path()).filter(|path| path.is_dir());
        if let Some(found) = folders.next() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "no scratch folder came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_compiled_program_runs_and_its_end_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("a.c"), "#include <stdlib.h>\n#include <stdio.h>\nint main(int n, char **a) { puts(a[1]); if (n > 2) abort(); return 7; }\n").unwrap();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a b"));
    let built = Command::new("cc").arg(&source).arg("-o").arg(&program).status().unwrap();
    assert!(built.success());
    let program = program.to_str().unwrap();
    for way in ways() {
        assert_eq!(run(way, &[], &[program, "x y"]), (Some(7), "x y\n".into(), String::new()), "{way}");
        // SIGABRT, as a shell shows it.
        assert_eq!(run(way, &[], &[program, "x", "y"]).0, Some(128 + 6), "{way}");
        let (status, _, err) = run(way, &[], &["/no/such/program"]);
        assert!(status == Some(2) && err.contains("/no/such/program"), "{way}: {err}");
        let (status, _, err) = run(way, &[], &[source.to_str().unwrap()]);
        assert!(status == Some(1) && err.contains("can't be executed in the sandbox"), "{way}: {err}");
    }
}

#[test]
fn where_namespaces_are_denied_the_rest_still_holds() {
    let binary = cli::binary().unwrap();
    let binary = binary.to_str().unwrap();
    let script = "cat /etc/shadow; python3 -c 'import socket; socket.socket()'; ls /proc/1/root; echo end";
    let inner = [binary, "sandbox-exec", "--report", "--", "/bin/sh", "-c", script];
    // Inside a sandbox every namespace is refused, as in a container.
    let (status, out, err) = run(ways()[0], &["--read", binary], &inner);
    assert_eq!((status, out.as_str()), (Some(0), "end\n"), "{err}");
    let report =
        err.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok()).unwrap_or_default();
    let layers = report["layers"].to_string();
    assert!(layers.contains("seccomp") && !layers.contains("Namespace"), "{err}");
    let missing = report["missing"].to_string();
    assert!(missing.contains("namespaces for files, processes, network"), "{err}");
    assert!(missing.contains("a filter on system calls is active here"), "{err}");
}

#[test]
fn another_user_has_a_sandbox_too() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not root: these tests run as another user already");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let binary = home.path().join("stitchcuda");
    fs::copy(cli::binary().unwrap(), &binary).unwrap();
    let mut command = Command::new(&binary);
    command.args(["sandbox-exec", "--report", "--", "/bin/sh", "-c", "id -u; ls /home; echo a > $TMPDIR/a"]);
    command.env("HOME", home.path()).current_dir("/").uid(65534).gid(65534);
    let (status, out, err) = said(&command.output().unwrap());
    eprintln!("{err}");
    assert_eq!((status, out.as_str()), (Some(0), "65534\n"), "{err}");
    let report: Value = serde_json::from_str(err.lines().last().unwrap()).unwrap();
    assert!(report["layers"].to_string().contains("seccomp"), "{err}");
}
