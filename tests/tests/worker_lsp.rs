//! The editor's jobs on another machine: their stages travel, and what was found there is told at the lines of the file here.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use stitch_tests::optimizing::{Editor, TEXT, kernel, plugin};
use stitch_tests::worker::Machine;

const CUBE: &str = "powf(x[i], 3.0f)";

fn is_over(job: &Value, kind: &str) -> bool {
    job["kind"] == kind && ["done", "failed", "cancelled"].iter().any(|state| job["state"] == *state)
}

/// The device of a job, which is another machine's.
fn is_elsewhere(job: &Value) -> bool {
    job["device"].as_str().is_some_and(|device| device.starts_with("sim:h200 on "))
}

#[test]
fn a_verdict_from_elsewhere_comes_back_with_its_stages() {
    let machine = Machine::new().unwrap();
    let mut editor = Editor::elsewhere(TEXT, &machine.command().unwrap(), plugin());
    let folder = editor.folder.path().unwrap();
    std::fs::write(folder.join("wrong.cu"), TEXT.replace(CUBE, "x[i] * x[i]")).unwrap();
    std::fs::write(folder.join("right.cu"), TEXT.replace(CUBE, "x[i] * x[i] * x[i]")).unwrap();
    for (name, answer) in [("right.cu", "correct"), ("wrong.cu", "wrong")] {
        let candidate = format!("file://{}", folder.join(name).display());
        let argument = json!({"uri": editor.uri, "range": kernel(), "candidate": candidate});
        let begun = editor.execute("stitchcuda.verify", &argument);
        let id = begun["result"]["job"].as_u64().unwrap_or_else(|| panic!("{begun}"));
        if name == "right.cu" {
            let builds = |job: &Value| job["stage"].as_str().is_some_and(|stage| stage.contains("building"));
            let stage = editor.job(|job| job["id"] == id && builds(job));
            assert!(is_elsewhere(&stage), "{stage}");
        }
        let done = editor.job(|job| job["id"] == id && is_over(job, "verify"));
        assert_eq!((&done["state"], &done["answer"]), (&json!("done"), &json!(answer)), "{done}");
        assert!(is_elsewhere(&done), "{done}");
        let verdict = editor.ask("stitchcuda/verdict", json!({"job": id}));
        let text = verdict.to_string();
        assert!(
            !text.contains(&*machine.kept().to_string_lossy()) && !text.contains("/candidate/"),
            "{verdict:#}"
        );
    }
}

#[test]
fn a_profile_from_elsewhere_heats_the_lines_here() {
    let machine = Machine::new().unwrap();
    let mut editor = Editor::elsewhere(TEXT, &machine.command().unwrap(), plugin());
    let begun = editor.execute("stitchcuda.profile", &json!(editor.uri));
    let id = begun["result"]["job"].as_u64().unwrap_or_else(|| panic!("{begun}"));
    let done = editor.job(|job| job["id"] == id && is_over(job, "profile"));
    assert_eq!(done["state"], "done", "{done}");
    assert!(is_elsewhere(&done), "{done}");
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 20, "character": 0}});
    let hints =
        editor.ask("textDocument/inlayHint", json!({"textDocument": {"uri": editor.uri}, "range": range}));
    let heat = editor.ask("stitchcuda/heat", json!({"textDocument": {"uri": editor.uri}, "uri": editor.uri}));
    let lines = heat.to_string();
    assert!(lines.contains("\"line\":3"), "{heat:#}\n{hints:#}");
    // Both say which machine that is.
    let status = editor.ask("stitchcuda/status", json!({}));
    assert!(status["device"].as_str().unwrap().starts_with("sim:h200 on "), "{status}");
    let doctor = editor.ask("stitchcuda/doctor", json!({}));
    let toolkit = |items: &Value| {
        items
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["name"] == "CUDA toolkit")
            .map(|item| item["status"].clone())
    };
    assert_eq!(toolkit(&doctor["elsewhere"]["items"]), Some(json!("ok")), "{doctor:#}");
    assert!(doctor["text"].as_str().unwrap().contains("\nOn "), "{doctor:#}");
}

#[test]
fn a_kernel_is_optimised_elsewhere_and_edited_here() {
    let machine = Machine::new().unwrap();
    let mut editor = Editor::elsewhere(TEXT, &machine.command().unwrap(), plugin());
    editor.start();
    let done = editor.job(|job| is_over(job, "optimize"));
    assert_eq!(done["state"], "done", "{done}");
    assert!(is_elsewhere(&done), "{done}");
    assert!(done["speedup"].as_f64().is_some_and(|speedup| speedup > 1.0), "{done}");
}

#[test]
fn what_two_jobs_want_at_once_travels_once() {
    let machine = Machine::new().unwrap();
    let log = machine.home().join("traffic");
    // What is on its way when the second one is ordered takes its time.
    let slow = format!(
        "tee -a '{}' | {{ dd bs=1 count=300000 status=none; sleep 3; cat; }} | WORKER",
        log.display()
    );
    let command = machine.shell(&slow).unwrap();
    let text = format!("#include \"large.cuh\"\n{TEXT}");
    let mut editor = Editor::elsewhere(&text, &command, plugin());
    let large = "// a line that nobody reads\n".repeat(100_000);
    editor.folder.write("large.cuh", &large).unwrap();
    let other = format!("file://{}", editor.folder.write("other.cu", format!("{text}\n")).unwrap().display());
    editor.server.open(&other, &format!("{text}\n")).unwrap();
    for uri in [editor.uri.clone(), other] {
        let begun = editor.execute("stitchcuda.profile", &json!(uri));
        assert!(begun["result"]["job"].is_u64(), "{begun}");
    }
    for _ in 0..2 {
        let over = editor.job(|job| is_over(job, "profile"));
        assert_eq!(over["state"], "done", "{over}");
    }
    let traffic = std::fs::read_to_string(&log).unwrap();
    let lines = traffic.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut contents: Vec<Value> = lines
        .filter(|line| line["type"] == "put" && line["at"] == 0)
        .map(|mut line| line["content"].take())
        .collect();
    // Each of the two, and what both include.
    assert_eq!(contents.len(), 3, "{contents:?}");
    contents.dedup();
    assert_eq!(contents.len(), 3, "{contents:?}");
}

#[test]
fn a_machine_that_can_not_be_reached_is_said_in_the_editor() {
    let command = ["sh", "-c", "echo 'Permission denied (publickey).' >&2; exit 255"].map(str::to_owned);
    let mut editor = Editor::elsewhere(TEXT, &command, plugin());
    let begun = editor.execute("stitchcuda.profile", &json!(editor.uri));
    assert!(begun["result"]["job"].is_u64(), "{begun}");
    let done = editor.job(|job| is_over(job, "profile"));
    assert_eq!(done["state"], "failed", "{done}");
    assert!(done["message"].as_str().unwrap().contains("Permission denied (publickey)"), "{done}");
}
