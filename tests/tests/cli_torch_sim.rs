//! `stitchcuda verify` on PyTorch code without a GPU: the CUDA texts of candidates run on the simulator, with a real nvcc and a real torch.
//!
//! `data/torch_sim` has a reference and candidates for it; a candidate's first line says what is expected: `# expect: ANSWER [CODE] | WORDS`.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use stitch_tests::cli::{Finished, Folder, finish};

fn python() -> String {
    std::env::var("STITCHCUDA_TEST_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned())
}

/// Whether the test command said that there is no PyTorch on this machine.
fn is_left_out() -> bool {
    std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some()
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/torch_sim")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(data().join(name)).unwrap()
}

fn verify(folder: &Folder, candidate: &str, more: &[&str]) -> Finished {
    let python = python();
    let usual =
        ["verify", "--format", "json", "--device", "sim:h200", "--python", &python, "ref.py", candidate];
    finish(&mut folder.command(&[&usual[..], more].concat()).unwrap()).unwrap()
}

/// What speaks against a verdict being the one that its candidate's first line expects.
fn not_as_expected(text: &str, finished: &Finished) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("# expect: ")?;
    let (expected, words) = line.split_once(" | ")?;
    let (answer, code) = expected.split_once(' ').unwrap_or((expected, ""));
    let verdict = match finished.json() {
        Ok(verdict) => verdict,
        Err(error) => return Some(format!("{error:#}")),
    };
    let said = verdict.to_string().replace("\\\"", "\"");
    let status = i32::from(answer != "correct");
    let is_told = code.is_empty() || verdict["findings"][0]["code"] == code;
    let is_named = said.contains("The wrapper was not verified") && said.contains("run outside of it");
    // Nothing that ran on the simulator has a time.
    let is_untimed = verdict.get("speedups").is_none_or(|list| list.as_array().is_none_or(Vec::is_empty));
    let good =
        verdict["answer"] == answer && finished.status == Some(status) && is_told && is_named && is_untimed;
    (!good || !said.contains(words) || verdict["device"] != "sim:h200")
        .then(|| format!("instead of {line}: {said}"))
}

/// Verifies the candidates of some names.
fn candidates(names: &[&str]) {
    if is_left_out() {
        return;
    }
    let folder = Folder::new().unwrap();
    folder.write("ref.py", text("ref.py")).unwrap();
    let mut wrong = Vec::new();
    for name in names {
        let file = format!("{name}.py");
        folder.write(&file, text(&file)).unwrap();
        let finished = verify(&folder, &file, &[]);
        wrong.extend(
            not_as_expected(&text(&file), &finished).map(|why| format!("{name} {why}\n{}", finished.err)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn kernels_that_are_right_are_right_and_the_wrapper_is_named() {
    candidates(&["kernel", "two"]);
}

#[test]
fn kernels_that_are_wrong_are_told_on_their_lines() {
    candidates(&["short", "wild", "broken"]);
}

#[test]
fn nothing_is_called_right_that_no_kernel_computed() {
    candidates(&["around", "sometimes", "plain", "beyond", "caught"]);
}

#[test]
fn what_torch_refuses_is_refused() {
    candidates(&["on_the_cpu", "types"]);
}

#[test]
fn every_candidate_is_in_a_test() {
    let this = include_str!("cli_torch_sim.rs");
    for entry in std::fs::read_dir(data()).unwrap().flatten() {
        let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(this.contains(&format!("\"{name}\"")) || name == "ref", "{name}");
    }
}

#[test]
fn too_much_for_the_simulator_is_said_and_optimising_needs_a_clock() {
    if is_left_out() {
        return;
    }
    let folder = Folder::new().unwrap();
    folder.write("ref.py", text("ref.py")).unwrap();
    // A kernel that never ends.
    let endless =
        text("kernel.py").replace("if (i < count) {", "while (y[0] != 0.0f) {}\n  if (i < count) {");
    folder.write("endless.py", endless).unwrap();
    let finished = verify(&folder, "endless.py", &["--time-limit", "30"]);
    let verdict: Value = finished.json().unwrap();
    let said = verdict.to_string();
    assert_ne!(verdict["answer"], "correct", "{said}");
    assert!(said.contains("on the simulator") || said.contains("did not end"), "{said}");
    let python = python();
    let mut command =
        folder.command(&["optimize", "ref.py::Model", "--device", "sim:h200", "--python", &python]).unwrap();
    let refused = finish(&mut command).unwrap();
    assert_eq!(refused.status, Some(2), "{}{}", refused.out, refused.err);
    assert!(
        refused.err.contains("measures no time") && refused.err.contains("--device cpu"),
        "{}",
        refused.err
    );
}
