//! Optimising in an editor, end to end against the binary: to an accepted edit, cancelled in each stage, edited meanwhile, killed
//! and resumed.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use stitch_tests::optimizing::{Editor, TEXT, kernel, modern};

#[test]
fn a_selection_is_optimised_to_an_accepted_edit() {
    let mut editor = Editor::new(TEXT, modern(), Value::Null);
    let action = editor.actions(&kernel()).pop().unwrap();
    assert_eq!(action["kind"], "refactor.rewrite.stitchcuda.optimize");
    assert_eq!(action["title"], "Optimize energy");
    assert_eq!(action["command"]["command"], "stitchcuda.optimize");
    let command = action["command"].clone();
    editor.server.request("workspace/executeCommand", &command).unwrap();
    for stage in ["measuring the reference", "building both: ", "measuring the candidate: "] {
        editor.progress(stage);
    }
    let request = editor.next(|message| message["method"] == "workspace/applyEdit");
    let edit = &request["params"]["edit"];
    let document = &edit["documentChanges"][0];
    assert_eq!(document["textDocument"], json!({"uri": editor.uri, "version": 1}));
    let change = &document["edits"][0];
    assert_eq!(change["range"]["start"], json!({"line": 3, "character": 0}));
    assert!(change["newText"].as_str().unwrap().contains("x[i] * x[i] * x[i];  // π"), "{change}");
    let annotation = &edit["changeAnnotations"][change["annotationId"].as_str().unwrap()];
    assert_eq!(annotation["needsConfirmation"], true);
    assert!(
        annotation["description"].as_str().unwrap().contains("times fewer estimated cycles"),
        "{annotation}"
    );
    editor.server.answer(&request, &json!({"applied": true})).unwrap();
    editor.no_process_is_left();
}

#[test]
fn what_cannot_be_optimised_says_why() {
    let text = "// nothing\n__global__ void k(int* x) { x[0] = 1; }\n";
    let at =
        |line: u32| json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}});
    let mut editor = Editor::new(text, modern(), Value::Null);
    let disabled = editor.actions(&at(0)).pop().unwrap();
    assert!(disabled["disabled"]["reason"].as_str().unwrap().contains("touches no function"), "{disabled}");
    assert!(disabled.get("command").is_none());
    assert!(editor.actions(&at(1)).pop().unwrap().get("disabled").is_none());
    let mut untrusted = Editor::new(text, modern(), json!({"workspaceTrusted": false}));
    let disabled = untrusted.actions(&at(1)).pop().unwrap();
    assert!(disabled["disabled"]["reason"].as_str().unwrap().contains("not trusted"), "{disabled}");
    let arguments = json!([{"uri": untrusted.uri, "range": at(1)}]);
    let refused = untrusted
        .server
        .request(
            "workspace/executeCommand",
            &json!({"command": "stitchcuda.optimize", "arguments": arguments}),
        )
        .unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("not trusted"), "{refused}");
    // A client that knows nothing of reasons is shown nothing.
    let mut old = Editor::new(text, json!({}), Value::Null);
    assert!(old.actions(&at(0)).is_empty());
}

#[test]
fn a_text_that_changed_meanwhile_is_left_alone() {
    let mut editor = Editor::new(TEXT, modern(), Value::Null);
    editor.start();
    editor.progress("measuring the reference");
    let change = json!({
        "textDocument": {"uri": editor.uri, "version": 2},
        "contentChanges": [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "// mine\n"}],
    });
    editor.server.notify("textDocument/didChange", &change).unwrap();
    let message = editor.next(|message| {
        message["method"] == "workspace/applyEdit"
            || message["method"] == "window/showMessage" && message["params"]["type"] == 2
    });
    let said = message["params"]["message"].as_str().unwrap();
    assert!(said.contains("e.cu has changed") && said.contains("stitchcuda runs diff "), "{said}");
    let id = said.rsplit("runs diff ").next().unwrap().split('`').next().unwrap();
    let diff = editor.folder.run(&["runs", "diff", id]).unwrap();
    assert!(diff.out.contains("x[i] * x[i] * x[i]"), "{}", diff.out);
}

#[test]
fn an_editor_without_a_preview_is_asked() {
    let capabilities = json!({"workspace": {"applyEdit": true}, "window": {"workDoneProgress": true}});
    let mut editor = Editor::new(TEXT, capabilities, Value::Null);
    editor.start();
    let question = editor.next(|message| message["method"] == "window/showMessageRequest");
    assert_eq!(question["params"]["actions"], json!([{"title": "Apply"}, {"title": "Discard"}]));
    editor.server.answer(&question, &json!({"title": "Apply"})).unwrap();
    let request = editor.next(|message| message["method"] == "workspace/applyEdit");
    let edits = &request["params"]["edit"]["changes"][&editor.uri];
    assert!(edits[0]["newText"].as_str().unwrap().contains("x[i] * x[i] * x[i]"), "{request}");
}

#[test]
fn a_cancelled_job_leaves_no_process_in_any_stage() {
    for stage in [
        "measuring the reference",
        "building both: ",
        "running the reference: ",
        "running the candidate: ",
        "measuring the candidate: ",
    ] {
        let mut editor = Editor::new(TEXT, modern(), Value::Null);
        editor.start();
        let token = editor.progress(stage)["params"]["token"].clone();
        editor.server.notify("window/workDoneProgress/cancel", &json!({"token": token})).unwrap();
        let end = editor
            .next(|message| message["method"] == "$/progress" && message["params"]["value"]["kind"] == "end");
        assert_eq!(end["params"]["value"]["message"], "cancelled", "{stage}");
        editor.no_process_is_left();
    }
}

#[test]
fn a_run_survives_its_server() {
    let mut editor = Editor::new(TEXT, modern(), Value::Null);
    editor.start();
    editor.progress("running the reference: ");
    editor.server.child.kill().unwrap();
    editor.server.child.wait().unwrap();
    let list = editor.folder.run(&["runs", "list", "--format", "json"]).unwrap().json().unwrap();
    assert_eq!(list["runs"][0]["finished"], false, "{list}");
    let id = list["runs"][0]["id"].as_str().unwrap();
    let resumed = editor.folder.run(&["runs", "resume", id]).unwrap();
    assert_eq!(resumed.status, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("+  if (i < n) y[i] = x[i] * x[i] * x[i];"), "{}", resumed.out);
    assert!(!resumed.out.contains("The reference\n"), "what was measured is not measured again");
}

#[test]
fn a_finding_has_a_fix_that_says_it_was_not_verified() {
    let mut editor = Editor::new(TEXT, modern(), Value::Null);
    let published =
        editor.server.published(|params| !params["diagnostics"].as_array().unwrap().is_empty()).unwrap();
    let diagnostic = &published["diagnostics"][0];
    assert_eq!(diagnostic["code"], "static/pow-small-exponent");
    let context = json!({"diagnostics": [diagnostic], "triggerKind": 2});
    let params =
        json!({"textDocument": {"uri": editor.uri}, "range": diagnostic["range"], "context": context});
    let answer = editor.server.request("textDocument/codeAction", &params).unwrap();
    let fix = &answer["result"][0];
    assert_eq!((&fix["kind"], &fix["diagnostics"][0]["code"]), (&json!("quickfix"), &diagnostic["code"]));
    assert!(fix["title"].as_str().unwrap().ends_with("(not verified)"), "{fix}");
    let document = &fix["edit"]["documentChanges"][0];
    assert_eq!(document["textDocument"]["version"], 1);
    assert!(document["edits"][0]["newText"].as_str().unwrap().contains("x[i] * x[i] * x[i]"), "{document}");
}
