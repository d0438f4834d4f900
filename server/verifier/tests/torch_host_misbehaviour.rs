//! Code that misbehaves is told apart and named, and the next verification is unharmed.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "torch/common.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{Place, floats, on_cuda, python, read, setting};
use stitch_toolchain::process::Scratch;
use stitch_verifier::torch::host::{
    Called, Calling, Child, ChildError, Filled, HostError, How, Role, Zygote,
};
use stitch_verifier::torch::values::Tree;

const LIMIT: Duration = Duration::from_secs(20);

/// One word and one tensor.
fn inputs(word: &str) -> Filled {
    let mut inputs = floats(&[&[1.0]]);
    let Tree::Tuple { items } = &mut inputs.values.tree else { panic!() };
    items.insert(0, Tree::Str { v: word.to_owned() });
    inputs
}

async fn act(child: &mut Child, word: &str) -> Result<Called, ChildError> {
    child.call(&inputs(word), &Calling { seed: 1, poison: true, ..Calling::default() }).await
}

/// A zygote, and a child of it for each act.
struct Stage(Place);

impl Stage {
    async fn new(limit: Duration) -> Option<Self> {
        Some(Self(Place::new(&python()?, Role::Candidate, limit).await))
    }

    async fn act(&mut self, word: &str) -> Result<Called, ChildError> {
        let mut child = self.0.load("misbehaves.py").await.unwrap();
        let outcome = act(&mut child, word).await;
        if let Err(ChildError::Ended { .. } | ChildError::TimedOut { .. } | ChildError::Malformed { .. }) =
            outcome
        {
            assert!(child.is_gone());
            let again = child.state().await;
            assert!(matches!(again, Err(ChildError::Ended { how: How::Earlier, .. })), "{again:?}");
        }
        outcome
    }

    async fn ended(&mut self, word: &str) -> (How, String) {
        match self.act(word).await {
            Err(ChildError::Ended { how, words }) => (how, words),
            other => panic!("{word}: {other:?}"),
        }
    }

    async fn raised(&mut self, word: &str) -> (String, String) {
        match self.act(word).await {
            Err(ChildError::Python { kind, message, .. }) => (kind, message),
            other => panic!("{word}: {other:?}"),
        }
    }

    /// The next verification is unharmed.
    async fn is_unharmed(&mut self) {
        let mut child = self.0.load("gradients.py").await.unwrap();
        let called = child.call(&floats(&[&[3.0]]), &Calling::default()).await.unwrap();
        assert_eq!(read(&called.outputs, 0), [18.0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_has_its_name() {
    let Some(mut stage) = Stage::new(LIMIT).await else { return };
    assert_eq!(stage.ended("exit").await, (How::Exited(3), String::new()));
    assert_eq!(stage.ended("abort").await.0, How::Signalled(6));
    let (how, words) = stage.ended("segfault").await;
    assert_eq!(how, How::Signalled(11));
    assert!(words.contains("Segmentation fault") && words.contains("misbehaves.py"), "{words}");
    assert_eq!(stage.ended("kill").await.0, How::Signalled(9));
    assert_eq!(stage.ended("warn").await, (How::Exited(4), "a last word\n".to_owned()));
    assert_eq!(stage.ended("linger").await.0, How::Exited(9));
    // Its loop can't go on without its channel.
    assert_eq!(stage.ended("close_and_return").await.0, How::Exited(74));
    assert_eq!(stage.ended("close").await.0, How::ClosedChannel);
    stage.is_unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_raised_is_an_answer() {
    let Some(mut stage) = Stage::new(LIMIT).await else { return };
    assert_eq!(stage.raised("system_exit").await, ("SystemExit".into(), "5".into()));
    assert_eq!(stage.raised("interrupt").await.0, "KeyboardInterrupt");
    assert!(stage.raised("silent").await.1.contains("whose text raises RuntimeError"));
    assert_eq!(stage.raised("ask").await.0, "EOFError");
    assert_eq!(stage.raised("recursion").await.0, "RecursionError");
    for (word, part) in [
        ("deep", "more than 64 levels"),
        ("itself", "more than 64 levels"),
        ("subclass", "Lazy, a tensor of a type of its own"),
        ("sparse", "layout torch.sparse_coo"),
        ("meta", "on the device meta"),
        ("object", "builtins.object, which can't be compared"),
    ] {
        let (kind, message) = stage.raised(word).await;
        assert!(kind == "Refused" && message.contains(part), "{kind}: {message}");
    }
    for word in ["memory", "python_memory"] {
        let outcome = stage.act(word).await;
        assert!(
            matches!(&outcome, Err(ChildError::OutOfMemory { device, .. }) if device == "cpu"),
            "{outcome:?}"
        );
    }
    stage.is_unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_besides_is_seen() {
    let Some(mut stage) = Stage::new(LIMIT).await else { return };
    let mut child = stage.0.load("misbehaves.py").await.unwrap();
    let seen = act(&mut child, "thread").await.unwrap().seen;
    assert_eq!(seen.threads[1], seen.threads[0] + 1);
    let seen = act(&mut child, "process").await.unwrap().seen;
    assert_eq!(seen.processes, [0, 1]);
    let seen = act(&mut child, "dtype").await.unwrap().seen;
    assert_eq!(seen.changed, ["the default dtype is torch.float64, and was torch.float32"]);
    let seen = act(&mut child, "tf32").await.unwrap().seen;
    assert_eq!(seen.changed, ["benchmark of cuDNN is True, and was False"]);
    act(&mut child, "print").await.unwrap();
    assert!(child.printed().starts_with(r#"{"ok": true"#));
    act(&mut child, "print_much").await.unwrap();
    assert!(child.printed().contains("bytes left out"));
    // The copy of the process that comes back here ends without a word.
    let called = act(&mut child, "fork").await.unwrap();
    assert_eq!(read(&called.outputs, 0), [1.0]);
    assert!(child.state().await.is_ok());
    // The runner waits, copies, seeds and answers with what it took before.
    let called = act(&mut child, "patch").await.unwrap();
    assert_eq!(read(&called.outputs, 0), [1.0]);
    for name in ["torch.empty", "torch.matmul", "torch.manual_seed", "os._exit"] {
        assert!(called.seen.changed.contains(&format!("{name} was replaced")), "{:?}", called.seen.changed);
    }
    stage.is_unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_is_not_written_is_poisoned() {
    let Some(mut stage) = Stage::new(LIMIT).await else { return };
    for word in ["unwritten", "unwritten_small"] {
        let called = stage.act(word).await.unwrap();
        let bytes = &called.outputs.bytes;
        let pattern = if on_cuda() { 0xff } else { 0x7f };
        let poisoned = bytes.iter().filter(|byte| **byte == pattern).count();
        assert!(poisoned * 10 > bytes.len() * 9, "{word}: {poisoned} of {}", bytes.len());
    }
}

/// Only with a GPU: there is nothing to see without.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_gpu_ends_its_process_and_no_other() {
    if !on_cuda() {
        return;
    }
    let Some(mut stage) = Stage::new(Duration::from_secs(60)).await else { return };
    let mut child = stage.0.load("misbehaves.py").await.unwrap();
    let outcome = act(&mut child, "assert").await;
    assert!(matches!(&outcome, Err(ChildError::Gpu { stage, .. }) if stage == "calling"), "{outcome:?}");
    assert!(child.is_gone());
    let outcome = stage.act("gpu_memory").await;
    assert!(
        matches!(&outcome, Err(ChildError::OutOfMemory { device, .. }) if device == "cuda:0"),
        "{outcome:?}"
    );
    stage.is_unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_started_is_said() {
    let Some(mut python) = python() else { return };
    let scratch = Scratch::new("torch-test").unwrap();
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut refusing = setting(&python, &scratch);
    refusing.wrap = std::sync::Arc::new(|needs, _, _| {
        assert!(needs.environment.iter().all(|(name, _)| name != "CARGO_MANIFEST_DIR"));
        Err("the sandbox can't be made".to_owned())
    });
    let error = Zygote::start(&refusing, Role::Candidate, &cancel).await.err().unwrap();
    assert!(matches!(&error, HostError::Sandbox(why) if why == "the sandbox can't be made"), "{error}");
    python.path = "/bin/false".into();
    let error = Zygote::start(&setting(&python, &scratch), Role::Candidate, &cancel).await.err().unwrap();
    assert!(error.to_string().contains("exited with status 1"), "{error}");
    python.path = "/no/such/python".into();
    let error = Zygote::start(&setting(&python, &scratch), Role::Candidate, &cancel).await.err().unwrap();
    assert!(error.to_string().contains("was not found"), "{error}");
    cancel.cancel();
    let error = Zygote::start(&setting(&python, &scratch), Role::Candidate, &cancel).await.err().unwrap();
    assert!(matches!(error, HostError::Cancelled), "{error}");
}

/// As from the disk of a cluster that nobody has read torch from today: longer than who has connected may be silent.
#[tokio::test(flavor = "multi_thread")]
async fn torch_that_takes_long_to_import_is_waited_for() {
    use std::os::unix::fs::PermissionsExt;

    let Some(mut python) = python() else { return };
    let scratch = Scratch::new("torch-test").unwrap();
    let slow = "import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == 'torch':
            time.sleep(11)
sys.meta_path.insert(0, Slow())
";
    std::fs::write(scratch.path().join("sitecustomize.py"), slow).unwrap();
    let (program, folder) = (python.path.display(), scratch.path().display());
    let wrapper = scratch.path().join("python");
    std::fs::write(&wrapper, format!("#!/bin/sh\nPYTHONPATH='{folder}' exec '{program}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    python.path = wrapper;
    let cancel = tokio_util::sync::CancellationToken::new();
    let begun = std::time::Instant::now();
    let mut zygote = Zygote::start(&setting(&python, &scratch), Role::Reference, &cancel).await.unwrap();
    assert!(begun.elapsed() > Duration::from_secs(11), "{:?}", begun.elapsed());
    zygote.child().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn children_of_one_zygote_live_beside_each_other() {
    let Some(mut stage) = Stage::new(Duration::from_secs(60)).await else { return };
    let mut other = stage.0.load("misbehaves.py").await.unwrap();
    act(&mut other, "dtype").await.unwrap();
    for word in ["exit", "linger", "patch"] {
        let _ = stage.act(word).await;
        let called = act(&mut other, "print").await.unwrap();
        assert!(called.seen.changed.is_empty(), "{:?}", called.seen.changed);
    }
    drop(other);
    stage.is_unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_is_ended() {
    let Some(mut stage) = Stage::new(Duration::from_secs(3)).await else { return };
    for word in ["hang", "spin"] {
        let began = Instant::now();
        let outcome = stage.act(word).await;
        assert!(
            matches!(&outcome, Err(ChildError::TimedOut { stage, .. }) if stage == "calling"),
            "{outcome:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    stage.0.zygote.end().await;
    let Some(mut stage) = Stage::new(Duration::from_secs(120)).await else { return };
    assert!(matches!(stage.ended("flood").await.0, How::Flooded(_)));
    stage.is_unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_the_zygote_along_is_ended_with_it() {
    for word in ["kill_zygote", "stop_zygote"] {
        let Some(mut stage) = Stage::new(Duration::from_secs(5)).await else { return };
        let began = Instant::now();
        let outcome = stage.act(word).await;
        assert!(
            matches!(outcome, Err(ChildError::Ended { .. } | ChildError::TimedOut { .. })),
            "{word}: {outcome:?}"
        );
        // Nothing is left, and nobody waits for ever.
        let next = stage.0.zygote.child().await;
        assert!(next.is_err());
        stage.0.zygote.end().await;
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_cancelled_at_any_time() {
    let Some(mut stage) = Stage::new(Duration::from_secs(600)).await else { return };
    let mut child = stage.0.load("misbehaves.py").await.unwrap();
    let cancel = stage.0.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let began = Instant::now();
    assert!(matches!(act(&mut child, "hang").await, Err(ChildError::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(20));
    stage.0.zygote.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_what_lingers() {
    let Some(mut stage) = Stage::new(LIMIT).await else { return };
    stage.act("linger").await.unwrap_err();
    let scratch = stage.0.scratch.path().to_owned();
    // It had left its group, its session and its parent. Only it and the zygote run this interpreter in this folder.
    let python = python().unwrap().path.canonicalize().unwrap();
    let still = |folder: &std::path::Path| {
        let is = |entry: &std::fs::DirEntry, name: &str, path: &std::path::Path| {
            std::fs::read_link(entry.path().join(name)).is_ok_and(|found| found == path)
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter(|entry| is(entry, "cwd", folder) && is(entry, "exe", &python)).count()
    };
    assert_eq!(still(&scratch), 1);
    stage.0.zygote.end().await;
    assert_eq!(still(&scratch), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lies_are_found_out() {
    let Some(mut stage) = Stage::new(LIMIT).await else { return };
    for (lie, part) in [
        ("terabytes", "outputs of 1099 GB"),
        ("more", "claims 1048576 bytes"),
        ("overflow", "claims 4 bytes"),
        ("negative", "outputs"),
        ("offset", "ends outside"),
        ("unaligned", "unaligned"),
        ("fewer", "tensor 0 of 0"),
        ("extra", "nowhere in the value"),
        ("dtype", "unknown variant `float7`"),
        ("place", "tensor 99 of 1"),
        ("no_tree", "missing field `tree`"),
        ("no_outputs", "outputs"),
        ("other_id", "not asked"),
        ("no_id", "not asked"),
        ("no_reason", "refusal without a reason"),
        ("words", "expected value"),
        ("bytes", "expected value"),
        ("deep", "recursion limit"),
        ("endless", "a line of more than"),
        ("nothing", "EOF"),
        ("twice", "before it was asked"),
    ] {
        let mut child = stage.0.load("lies.py").await.unwrap();
        match act(&mut child, lie).await {
            Err(ChildError::Malformed { what }) => assert!(what.contains(part), "{lie}: {what}"),
            other => panic!("{lie}: {other:?}"),
        }
        assert!(child.is_gone(), "{lie}");
    }
    stage.is_unharmed().await;
}
