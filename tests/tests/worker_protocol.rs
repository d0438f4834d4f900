//! The lines of a worker, spoken by hand: what `docs/worker.md` says of them.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stitch_tests::worker::Machine;

/// The SHA-256 of `hello`, and of nothing at all.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    fn start(machine: &Machine) -> Self {
        Self::patient(machine, 20_000)
    }

    /// One that is patient for so many milliseconds.
    fn patient(machine: &Machine, patience: u32) -> Self {
        let words = machine.command().unwrap();
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut worker = Self { child, stdin, stdout };
        let version = env!("CARGO_PKG_VERSION");
        worker.say(
            &json!({"type": "hello", "protocol": 1, "version": version, "patience": patience, "new": "field"}),
        );
        let hello = worker.hear();
        assert_eq!(
            (&hello["type"], &hello["protocol"], &hello["version"]),
            (&json!("hello"), &json!(1), &json!(version))
        );
        worker
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// The next message that is neither a beat nor progress.
    fn hear(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the worker ended");
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if message["type"] != "beat" && message["type"] != "progress" {
                return message;
            }
        }
    }

    fn job(&mut self, id: &str, path: &str, content: &str, bytes: u64) {
        let file = json!({"path": path, "content": content, "bytes": bytes});
        self.say(
            &json!({"type": "job", "id": id, "order": {"do": "doctor"}, "roots": ["/w"], "files": [file]}),
        );
    }

    fn put(&mut self, at: u64, data: &str, last: bool) {
        self.say(&json!({"type": "put", "content": HELLO, "at": at, "data": data, "last": last}));
    }

    fn leave(mut self) {
        self.say(&json!({"type": "bye"}));
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn contents_come_in_parts_and_begin_anew() {
    let machine = Machine::bare().unwrap();
    let mut worker = Worker::start(&machine);
    // Two jobs want the same, and one is cancelled when a part of it is there.
    for id in ["job00001", "job00002"] {
        worker.job(id, "/w/a.txt", HELLO, 5);
        let need = worker.hear();
        assert_eq!(need, json!({"type": "need", "id": id, "contents": [HELLO]}));
    }
    worker.put(0, "aGU=", false);
    worker.say(&json!({"type": "cancel", "id": "job00001"}));
    let failed = worker.hear();
    assert_eq!((&failed["id"], &failed["status"]), (&json!("job00001"), &json!("cancelled")));
    worker.put(0, "aGU=", false);
    worker.put(2, "bGxv", true);
    let result = worker.hear();
    assert_eq!((&result["type"], &result["id"]), (&json!("result"), &json!("job00002")), "{result}");
    assert_eq!(result["result"]["done"], "doctor");
    // It is there now, and so is that answer: until it is said that it came, whoever asks gets it.
    worker.job("job00003", "/w/b.txt", HELLO, 5);
    assert_eq!(worker.hear()["type"], "result");
    worker.leave();
    let mut other = Worker::start(&machine);
    other.job("job00002", "/w/a.txt", NOTHING, 0);
    assert_eq!(other.hear(), result, "an answer that was not received is given again");
    other.say(&json!({"type": "done", "id": "job00002"}));
    other.job("job00002", "/w/a.txt", NOTHING, 0);
    assert_eq!(other.hear()["type"], "need", "one that was received is forgotten");
    other.leave();
}

#[test]
fn what_is_not_as_it_should_be_is_refused_and_the_rest_goes_on() {
    let machine = Machine::bare().unwrap();
    let mut worker = Worker::start(&machine);
    for (id, path, content) in [
        ("job00001", "/w/../../etc/cron.d/x", HELLO),
        ("job00001", "w/a.txt", HELLO),
        ("job00001", "/w/a.txt", "../../../../tmp/x"),
        ("../../../x", "/w/a.txt", HELLO),
    ] {
        worker.job(id, path, content, 5);
        let failed = worker.hear();
        assert_eq!((&failed["type"], &failed["status"]), (&json!("failed"), &json!("usage")), "{failed}");
    }
    for (at, data, words) in
        [(0, "d29ybGQ=", "other bytes"), (0, "?", "no base64"), (3, "bG8=", "without a part")]
    {
        worker.job("job00002", "/w/a.txt", HELLO, 5);
        assert_eq!(worker.hear()["type"], "need");
        worker.put(at, data, true);
        let failed = worker.hear();
        assert_eq!((&failed["type"], &failed["status"]), (&json!("failed"), &json!("bad")), "{failed}");
        assert!(failed["message"].as_str().unwrap().contains(words), "{failed}");
    }
    assert_eq!(machine.contents(), 0);
    worker.say(&json!({"type": "something-newer"}));
    worker.say(&json!([1, 2]));
    worker.say(
        &json!({"type": "job", "id": "job00003", "order": {"do": "unheard-of"}, "roots": [], "files": []}),
    );
    let failed = worker.hear();
    assert!(failed["message"].as_str().unwrap().contains("unheard-of"), "{failed}");
    worker.leave();
}

#[test]
fn a_side_that_is_slow_is_not_one_that_is_silent() {
    let machine = Machine::bare().unwrap();
    let mut worker = Worker::patient(&machine, 1000);
    worker.job("job00001", "/w/a.txt", HELLO, 5);
    assert_eq!(worker.hear()["type"], "need");
    // A line that takes longer than the patience, a few bytes at a time.
    let put = json!({"type": "put", "content": HELLO, "at": 0, "data": "aGVsbG8=", "last": true});
    let mut silent = Instant::now();
    for part in format!("{put}\n").as_bytes().chunks(20) {
        silent = Instant::now();
        worker.stdin.write_all(part).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    let result = worker.hear();
    assert_eq!((&result["type"], &result["id"]), (&json!("result"), &json!("job00001")), "{result}");
    // Nothing more, and the worker ends by itself.
    assert!(worker.child.wait().unwrap().success());
    assert!((1..20).contains(&silent.elapsed().as_secs()), "{:?}", silent.elapsed());
}

#[test]
fn a_side_that_reads_nothing_keeps_no_worker() {
    let machine = Machine::bare().unwrap();
    let mut worker = Worker::patient(&machine, 1000);
    // More answers than a pipe holds.
    for _ in 0..2000 {
        worker.job("job00001", "no/absolute/path", HELLO, 5);
    }
    let silent = Instant::now();
    while worker.child.try_wait().unwrap().is_none() {
        assert!(silent.elapsed() < Duration::from_secs(30), "the worker is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}
