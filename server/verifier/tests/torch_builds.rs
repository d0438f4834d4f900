//! Extensions that are built here instead of by torch: the same functions and errors, built once, never half.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "torch/common.rs"]
#[allow(dead_code)]
mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Place, data, floats, module, python, read, setting};
use stitch_session::cache::Cache;
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Scratch;
use stitch_verifier::torch::builds::{Answer, Asked, Builds};
use stitch_verifier::torch::host::{Calling, Child, ChildError, Load, Python, Role, Wrap, bare, find_python};
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(900);
/// Names the folder in which another process of these tests builds, to be killed.
const VICTIM: &str = "STITCHCUDA_TESTS_BUILD_IN";

/// Names an interpreter.
const PYTHON: &str = "STITCHCUDA_TESTS_PYTHON";

/// What builds, with everything in one folder, and counts how often compilers ran.
fn builds(folder: &Path, readable: Vec<PathBuf>) -> (Builds, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, inner) = (Arc::clone(&count), bare());
    let wrap: Wrap = Arc::new(move |needs, scratch, end| {
        counted.fetch_add(1, Ordering::SeqCst);
        inner(needs, scratch, end)
    });
    let variables = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
    let cache = Cache::open(Some(&folder.join("cache")), 64 << 20);
    (Builds::new(wrap, variables, readable, folder.join("builds"), cache, CancellationToken::new()), count)
}

/// What torch writes for one plain C++ source.
fn asked(folder: &str, text: &str, flags: &str) -> Asked {
    let ninja = format!(
        "ninja_required_version = 1.3\ncxx = c++\n\ncflags = {flags} -fPIC -std=c++17\npost_cflags = \nldflags = -shared\n\nrule compile\n  command = $cxx -MMD -MF $out.d $cflags -c $in -o $out $post_cflags\n  depfile = $out.d\n  deps = gcc\n\nrule link\n  command = $cxx $in $ldflags -o $out\n\nbuild main.o: compile {folder}/main.cpp\n\nbuild plain.so: link main.o\n\ndefault plain.so\n"
    );
    let environment = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
    Asked {
        folder: folder.to_owned(),
        ninja,
        sources: [(format!("{folder}/main.cpp"), text.to_owned())].into(),
        environment,
    }
}

fn bytes(answer: Answer) -> Vec<u8> {
    match answer {
        Answer::Built { bytes, name } => {
            assert_eq!(name, "plain.so");
            bytes.to_vec()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_build_once_and_a_third_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let (one, first) = builds(folder.path(), vec![]);
    let (two, second) = builds(folder.path(), vec![]);
    let text = "extern \"C\" int answer() { return 42; }\n";
    let (a, b) = tokio::join!(one.build(asked("/a/x", text, "-O1")), two.build(asked("/b/x", text, "-O1")));
    let (a, b) = (bytes(a), bytes(b));
    assert!(a == b && a.starts_with(b"\x7fELF"));
    let ran = || first.load(Ordering::SeqCst) + second.load(Ordering::SeqCst);
    assert_eq!(ran(), 1);
    assert_eq!(bytes(one.build(asked("/c/x", text, "-O1")).await), a);
    assert_eq!(ran(), 1);
    assert_eq!(one.seen().found + two.seen().found, 2);
    // Other flags and another text are others.
    bytes(one.build(asked("/c/x", text, "-O2")).await);
    bytes(one.build(asked("/c/x", "int x;\n", "-O1")).await);
    assert_eq!(ran(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_changes_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let include = folder.path().join("include");
    std::fs::create_dir(&include).unwrap();
    let (builds, count) = builds(folder.path(), vec![include.clone()]);
    let text = "#include <mine.h>\nextern \"C\" const char* word() { return WORD; }\n";
    let flags = format!("-I{}", include.display());
    let write =
        |word: &str| std::fs::write(include.join("mine.h"), format!("#define WORD \"{word}\"\n")).unwrap();
    let has = |library: &[u8], word: &[u8]| library.windows(word.len()).any(|part| part == word);
    write("the first word");
    let first = bytes(builds.build(asked("/a/x", text, &flags)).await);
    assert!(has(&first, b"the first word"));
    bytes(builds.build(asked("/a/x", text, &flags)).await);
    assert_eq!(count.load(Ordering::SeqCst), 1);
    write("another word");
    assert!(has(&bytes(builds.build(asked("/a/x", text, &flags)).await), b"another word"));
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_could_turn_against_others_is_left_to_torch() {
    let folder = tempfile::tempdir().unwrap();
    let (builds, count) = builds(folder.path(), vec![]);
    let text = "int x;\n";
    let mut changed = asked("/a/x", text, "");
    changed.environment.insert("CPATH".to_owned(), "/tmp".to_owned());
    for (asked, why) in [
        (changed, "CPATH"),
        (asked("/a/x", text, "-fplugin=/tmp/x.so"), "-fplugin"),
        (asked("/a/x", text, "-B/tmp"), "-B/tmp"),
        (asked("/a/x", "const char* t = __TIME__;\n", ""), "depends on more"),
        (asked("relative", text, ""), "absolute"),
        (asked("/a/../x", text, ""), "plain"),
    ] {
        let Answer::Ordinary(reason) = builds.build(asked).await else { panic!("{why}") };
        assert!(reason.contains(why), "{reason}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert_eq!(builds.seen().ordinary.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compilers_words_are_those_of_torchs_build() {
    let folder = tempfile::tempdir().unwrap();
    let (builds, _) = builds(folder.path(), vec![]);
    let Answer::Wrong(text) = builds.build(asked("/a/x", "int x = y;\n", "")).await else { panic!() };
    assert!(text.contains("/a/x/main.cpp:1:9: error:") && text.contains("FAILED: main.o"), "{text}");
    assert!(text.starts_with("[1/2] c++ -MMD -MF main.o.d"), "{text}");
    assert!(!text.contains("scratch"), "{text}");
}

#[tokio::test]
#[ignore = "is run by a test that kills it"]
async fn builds_until_it_is_killed() {
    let Some(folder) = std::env::var_os(VICTIM) else { return };
    let (builds, _) = builds(Path::new(&folder), vec![]);
    builds.build(asked("/a/x", &slow(), "-O2")).await;
}

/// A text that takes a compiler a while.
fn slow() -> String {
    let functions = (0..400).map(|n| format!("std::map<int, std::string> f{n}(std::map<int, std::string> m) {{ m[{n}] = std::to_string(m.size()); return m; }}\n"));
    "#include <map>\n#include <string>\n".to_owned() + &functions.collect::<String>()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_build_that_was_killed_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "builds_until_it_is_killed", "--ignored"])
        .env(VICTIM, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // It has the lock once it builds.
    let locks = folder.path().join("builds/locks");
    let began = Instant::now();
    while std::fs::read_dir(&locks).map_or(0, Iterator::count) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    // SIGKILL.
    victim.kill().unwrap();
    victim.wait().unwrap();
    let (builds, count) = builds(folder.path(), vec![]);
    let library = bytes(builds.build(asked("/a/x", &slow(), "-O2")).await);
    assert!(library.starts_with(b"\x7fELF"));
    assert_eq!((count.load(Ordering::SeqCst), builds.seen().found), (1, 0));
}

/// An interpreter whose torch has its headers, which distributions leave out; named by a variable, if it is another one than usual.
fn with_headers() -> Option<Python> {
    let search = Search::new(Environment::of_this_process());
    let python = match std::env::var_os(PYTHON) {
        Some(path) => find_python(Some(Path::new(&path)), &search, None).unwrap(),
        None => python()?,
    };
    let found = std::process::Command::new(&python.path)
        .args(["-c", "import os, torch; print(os.path.exists(os.path.join(os.path.dirname(torch.__file__), 'include/torch/extension.h')))"])
        .output()
        .unwrap();
    let has = String::from_utf8_lossy(&found.stdout).trim() == "True";
    if !has {
        eprintln!(
            "The torch of {} has no headers; name another with {PYTHON}. Nothing is built against them.",
            python.path.display()
        );
    }
    has.then_some(python)
}

/// A child with builds that are kept in a folder.
async fn loaded(place: &mut Place, file: &str, builds: Option<Arc<Builds>>) -> Result<Child, ChildError> {
    let mut child = place.zygote.child().await.unwrap();
    if let Some(builds) = builds {
        child.build_with(builds);
    }
    let build = place.scratch.path().join(format!("build/{}", uuid()));
    let load = Load { build: Some(build), ..Load::new(module(&data(file), "Model"), 1) };
    child.load(&load).await.map(|_| child)
}

fn uuid() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_errors_are_the_same_both_ways() {
    let Some(python) = with_headers() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let kept = tempfile::tempdir().unwrap();
    let scratch = Scratch::new("torch-test").unwrap();
    let cache = Cache::open(Some(&kept.path().join("cache")), 64 << 20);
    let made = Arc::new(setting(&python, &scratch).builds(cache, &CancellationToken::new()));
    let mut answers = Vec::new();
    for builds in [None, Some(Arc::clone(&made)), Some(Arc::clone(&made))] {
        let mut child = loaded(&mut place, "inline.py", builds).await.unwrap();
        let called = child.call(&floats(&[&[1.0, 2.0]]), &Calling::default()).await.unwrap();
        assert_eq!(read(&called.outputs, 0), [4.0, 5.0]);
        answers.push(format!("{:?}", called.outputs.values.tree));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    assert!(
        answers[0].contains("TypeError: add(): incompatible") && answers[0].contains("x has 2 dimensions"),
        "{}",
        answers[0]
    );
    let seen = made.seen();
    assert_eq!((seen.extensions, seen.found, seen.ordinary.as_slice()), (2, 1, &[][..]));
    let mut errors = Vec::new();
    for builds in [None, Some(made)] {
        let Err(ChildError::Python { kind, message, .. }) =
            loaded(&mut place, "inline_error.py", builds).await
        else {
            panic!()
        };
        // The folder's number differs, and how far ninja was.
        let lines: Vec<_> = message
            .lines()
            .filter(|line| line.contains("error: ") || line.contains("Error"))
            .map(|line| line.rsplit('/').next().unwrap_or_default().to_owned())
            .collect();
        errors.push((kind, lines));
    }
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].1.iter().any(|line| line.contains("no_such_function")), "{errors:?}");
    place.zygote.end().await;
}
