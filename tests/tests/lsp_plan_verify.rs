//! `stitchcuda.plan` and `stitchcuda.verify` against the binary: a plan that is shown and kept and changes nothing; a verdict about another
//! file, the text that was saved, and the text that was committed.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value, json};
use stitch_tests::optimizing::{Editor, TEXT, kernel, modern, plugin};

const CUBE: &str = "powf(x[i], 3.0f)";

fn is_over(job: &Value, kind: &str) -> bool {
    job["kind"] == kind && ["done", "failed", "cancelled"].iter().any(|state| job["state"] == *state)
}

/// Edits the document: its whole text is another.
fn edit(editor: &mut Editor, version: u32, text: &str) {
    let change = json!({
        "textDocument": {"uri": editor.uri, "version": version}, "contentChanges": [{"text": text}],
    });
    editor.server.notify("textDocument/didChange", &change).unwrap();
}

/// Verifies the kernel against something: the job, once it is over.
fn verify(editor: &mut Editor, against: (&str, &str)) -> Value {
    let mut argument = json!({"uri": editor.uri, "range": kernel()});
    argument[against.0] = json!(against.1);
    let answer = editor.execute("stitchcuda.verify", &argument);
    let id = answer["result"]["job"].as_u64().unwrap_or_else(|| panic!("{answer}"));
    editor.job(|job| job["id"] == id && is_over(job, "verify"))
}

#[test]
fn a_plan_is_shown_and_kept_and_nothing_is_tried() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let argument = json!({"uri": editor.uri, "range": kernel()});
    let begun = editor.execute("stitchcuda.plan", &argument);
    assert!(begun["result"]["job"].is_u64(), "{begun}");
    let done = editor.job(|job| is_over(job, "plan"));
    assert_eq!((&done["state"], &done["title"]), (&json!("done"), &json!("Plan energy")), "{done}");
    let said = done["said"].as_str().unwrap();
    assert!(said.contains("nothing was attempted: 1. ") && done["attempt"].is_null(), "{done}");
    let report = editor.ask("stitchcuda/run", json!({"run": done["run"]}));
    let entries: Vec<_> = report["history"].as_array().unwrap().iter().map(|entry| &entry["entry"]).collect();
    assert_eq!(entries, ["baseline", "plan", "conclusion"]);
    assert_eq!((&report["history"][2]["why"], &report["patch"]), (&json!("planned"), &Value::Null));
    assert!(report["history"][1]["plan"]["tasks"][0]["rewrite"].is_string(), "{report}");
    let listed = editor.ask("stitchcuda/runs", json!({}))["runs"][0].take();
    assert_eq!((&listed["onlyPlan"], &listed["attempts"]), (&json!(true), &json!(0)), "{listed}");
    assert!(listed["file"].as_str().unwrap().ends_with("/e.cu"), "{listed}");

    // What was planned can be tried later, by the usual budget, and without a second plan.
    let id = done["run"].as_str().unwrap().to_owned();
    let resumed = editor.folder.run(&["runs", "resume", &id, "--device", "sim:h200"]).unwrap();
    assert_eq!(resumed.status, Some(0), "{}{}", resumed.out, resumed.err);
    assert!(resumed.out.contains("+  if (i < n) y[i] = x[i] * x[i] * x[i]"), "{}", resumed.out);
    assert!(!resumed.out.contains("The plan\n"), "{}", resumed.out);
}

#[test]
fn a_plan_is_said_to_an_editor_that_shows_no_jobs() {
    let mut editor = Editor::new(TEXT, modern(), Value::Null);
    let argument = json!({"uri": editor.uri, "range": kernel()});
    editor.execute("stitchcuda.plan", &argument);
    let shown = editor.next(|message| {
        assert_ne!(message["method"], "workspace/applyEdit", "{message}");
        message["method"] == "window/showMessage"
    });
    let said = shown["params"]["message"].as_str().unwrap();
    assert!(said.contains("The plan has ") && said.contains("`stitchcuda runs show "), "{said}");
    let refused = editor.execute("stitchcuda.plan", &json!({"uri": editor.uri}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("`range`"), "{refused}");
}

#[test]
fn the_command_line_plans_and_tries_nothing() {
    let folder = stitch_tests::cli::Folder::with(&[("e.cu", TEXT)]).unwrap();
    let planned = folder.run(&["optimize", "e.cu", "--device", "sim:h200", "--plan-only"]).unwrap();
    assert_eq!(planned.status, Some(0), "{}{}", planned.out, planned.err);
    assert!(planned.out.contains("nothing was attempted: 1. "), "{}", planned.out);
    assert!(
        planned.out.contains("stitchcuda runs resume ") && !planned.out.contains("Attempt 1"),
        "{}",
        planned.out
    );
    let listed = folder.run(&["runs", "list"]).unwrap();
    assert!(listed.out.contains(": a plan\n"), "{}", listed.out);
    let wrong = folder.run(&["optimize", "e.cu", "--plan-only", "--apply"]).unwrap();
    assert_eq!(wrong.status, Some(2), "{}{}", wrong.out, wrong.err);
}

#[test]
fn another_file_is_verified_against_the_document() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let folder = editor.folder.path().unwrap().to_owned();
    let uri = |name: &str| format!("file://{}", folder.join(name).display());
    std::fs::write(folder.join("right.cu"), TEXT.replace(CUBE, "x[i] * x[i] * x[i]")).unwrap();
    std::fs::write(folder.join("wrong.cu"), TEXT.replace(CUBE, "x[i] * x[i]")).unwrap();
    let done = verify(&mut editor, ("candidate", &uri("right.cu")));
    assert_eq!((&done["state"], &done["answer"]), (&json!("done"), &json!("correct")), "{done}");
    assert!(
        done["said"].as_str().unwrap().starts_with("right.cu does what e.cu does. On sim:h200"),
        "{done}"
    );
    let verdict = editor.ask("stitchcuda/verdict", json!({"job": done["id"]}));
    assert_eq!(
        (&verdict["schema"], &verdict["answer"], &verdict["candidate"]),
        (&json!("stitchcuda.verdict/1"), &json!("correct"), &json!("right.cu"))
    );
    assert!(!verdict["compared"].as_array().unwrap().is_empty(), "{verdict}");

    let done = verify(&mut editor, ("candidate", &uri("wrong.cu")));
    assert_eq!((&done["state"], &done["answer"]), (&json!("done"), &json!("wrong")), "{done}");
    assert!(done["said"].as_str().unwrap().starts_with("wrong.cu does not do what e.cu does: "), "{done}");
    // Where the versions lay for the verification is no business of the person's.
    let verdict = editor.ask("stitchcuda/verdict", json!({"job": done["id"]})).to_string();
    assert!(!verdict.contains("/candidate/") && !verdict.contains("/reference/"), "{verdict}");
    editor.no_process_is_left();
}

#[test]
fn the_text_of_now_is_verified_against_what_was_saved_and_what_was_committed() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let folder = editor.folder.path().unwrap().to_owned();
    let saved = json!({"uri": editor.uri, "reference": "saved"});
    let refused = editor.execute("stitchcuda.verify", &saved);
    assert!(refused["error"]["message"].as_str().unwrap().contains("nothing was changed"), "{refused}");
    let done = verify(&mut editor, ("reference", "committed"));
    assert_eq!(done["state"], "failed", "{done}");
    assert!(done["message"].as_str().unwrap().contains("with git"), "{done}");

    edit(&mut editor, 2, &TEXT.replace(CUBE, "x[i] * x[i] * x[i]"));
    let done = verify(&mut editor, ("reference", "saved"));
    assert_eq!(done["answer"], "correct", "{done}");
    assert!(
        done["said"].as_str().unwrap().starts_with("e.cu as it is now does what e.cu as it was saved does."),
        "{done}"
    );
    assert_eq!(std::fs::read_to_string(folder.join("e.cu")).unwrap(), TEXT, "nothing is written");

    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let status =
            Command::new("git").args(identity).args(arguments).current_dir(&folder).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "e.cu"]);
    git(&["commit", "--quiet", "--message", "The program."]);
    edit(&mut editor, 3, &TEXT.replace(CUBE, "x[i] * x[i]"));
    let done = verify(&mut editor, ("reference", "committed"));
    assert_eq!((&done["state"], &done["answer"]), (&json!("done"), &json!("wrong")), "{done}");
    assert!(
        done["said"]
            .as_str()
            .unwrap()
            .starts_with("e.cu as it is now does not do what e.cu as it was committed does: "),
        "{done}"
    );
}

#[test]
fn what_cannot_be_verified_is_refused_in_words() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let uri = editor.uri.clone();
    for (argument, said) in [
        (json!({"uri": "file:///nowhere.cu", "reference": "saved"}), "an open document"),
        (json!({"uri": uri}), "`candidate`"),
        (json!({"uri": uri, "reference": "yesterday"}), "`committed`"),
        (json!({"uri": uri, "candidate": "file:///nowhere.cu"}), "/nowhere.cu could not be read"),
        (json!({"uri": uri, "candidate": uri}), "the same text"),
    ] {
        let answer = editor.execute("stitchcuda.verify", &argument);
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(message.contains(said), "{message}");
    }
    let refused = editor.refused("stitchcuda/verdict", json!({"job": 99}));
    assert!(refused.contains("came to a verdict"), "{refused}");
    let mut restricted = Editor::new(TEXT, plugin(), json!({"workspaceTrusted": false}));
    for (command, argument) in [
        ("stitchcuda.verify", json!({"uri": restricted.uri, "reference": "saved"})),
        ("stitchcuda.plan", json!({"uri": restricted.uri, "range": kernel()})),
    ] {
        let refused = restricted.execute(command, &argument);
        assert!(refused["error"]["message"].as_str().unwrap().contains("not trusted"), "{refused}");
    }
}
