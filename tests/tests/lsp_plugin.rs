//! What `editors/PROTOCOL.md` promises to a plugin, against the binary: jobs, runs, candidates, decisions, status; and that a plain client
//! sees nothing of it.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use stitch_tests::lsp_client::frame;
use stitch_tests::optimizing::{Editor, TEXT, modern, plugin};

fn optimized() -> (Editor, Value) {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    editor.start();
    let offer = editor.next(|message| message["method"] == "stitchcuda/review")["params"].take();
    (editor, offer)
}

/// Accepts a candidate: the answer, and the edit that the server asks for, which may come before it.
fn accept(editor: &mut Editor, params: &Value) -> (Value, Value) {
    let id = "accept";
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "stitchcuda/accept", "params": params});
    editor.server.write(&frame(&request)).unwrap();
    let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
    let is_edit = |message: &Value| message["method"] == "workspace/applyEdit";
    let [mut answer, edit] = editor.each([&is_answer, &is_edit]);
    (answer["result"].take(), edit)
}

#[test]
fn a_job_is_told_from_its_begin_to_the_accepted_edit() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    editor.start();
    let begun = editor.job(|job| job["state"] == "running");
    assert_eq!((&begun["kind"], &begun["title"]), (&json!("optimize"), &json!("Optimize energy")));
    let id = begun["id"].clone();
    let stage = editor.job(|job| job["stage"] == "measuring the reference");
    assert_eq!(
        (&stage["id"], &stage["uri"], &stage["device"]),
        (&id, &json!(editor.uri), &json!("sim:h200"))
    );
    let noted = editor.job(|job| job["note"].as_str().is_some_and(|note| note.contains("kept: ")));
    assert!(noted["speedup"].as_f64().unwrap() > 1.0 && noted["attempt"].is_u64(), "{noted}");
    // The offer and the job's end are told in either order; each notification holds all that is known.
    let is_offered = |message: &Value| {
        let job = &message["params"];
        message["method"] == "stitchcuda/job" && job["decision"] == "open" && job["state"] == "done"
    };
    let is_review = |message: &Value| message["method"] == "stitchcuda/review";
    let [mut offered, mut offer] = editor.each([&is_offered, &is_review]);
    let (offered, offer) = (offered["params"].take(), offer["params"].take());
    assert_eq!(offered["id"], id);
    assert!(offered["said"].as_str().unwrap().contains("times fewer estimated cycles"), "{offered}");
    assert_eq!((&offer["job"], &offer["run"], &offer["isCurrent"]), (&id, &offered["run"], &json!(true)));

    let run = json!({"run": offer["run"], "attempt": offer["attempt"]});
    let candidate = editor.ask("stitchcuda/candidate", run.clone());
    assert_eq!((&candidate["original"], &candidate["version"]), (&json!(TEXT), &json!(1)));
    assert!(candidate["candidate"].as_str().unwrap().contains("x[i] * x[i] * x[i];  // π"), "{candidate}");
    assert_eq!(candidate["uri"], editor.uri);
    let report = editor.ask("stitchcuda/run", json!({"run": offer["run"]}));
    assert_eq!(
        (&report["schema"], &report["manifest"]["device"]),
        (&json!("stitchcuda.run/1"), &json!("sim:h200"))
    );
    let entries: Vec<_> = report["history"].as_array().unwrap().iter().map(|entry| &entry["entry"]).collect();
    assert_eq!((entries[0], entries[entries.len() - 1]), (&json!("baseline"), &json!("conclusion")));
    assert!(report["patch"].as_str().unwrap().contains("+  if (i < n) y[i] = x[i]"), "{report}");
    let runs = editor.ask("stitchcuda/runs", json!({}));
    assert_eq!(runs["runs"][0]["id"], offer["run"]);

    // No answer but the edit itself, of the version that is open.
    let (accepted, request) = accept(&mut editor, &run);
    assert_eq!(accepted["version"], 1);
    let document = &request["params"]["edit"]["documentChanges"][0];
    assert_eq!(document["textDocument"], json!({"uri": editor.uri, "version": 1}));
    assert!(document["edits"][0].get("annotationId").is_none(), "the person was asked already");
    editor.server.answer(&request, &json!({"applied": true})).unwrap();
    let decided = editor.job(|job| job["decision"] == "accepted");
    assert_eq!(decided["id"], id);
    let listed = editor.ask("stitchcuda/jobs", json!({}));
    assert_eq!(listed["jobs"][0]["decision"], "accepted");
    // Accepted once more, as after an undo, it is told once more: a plugin waits for it.
    let (_, request) = accept(&mut editor, &run);
    editor.server.answer(&request, &json!({"applied": true})).unwrap();
    assert_eq!(editor.job(|job| job["decision"] == "accepted")["id"], id);
}

#[test]
fn nothing_is_edited_over_a_text_that_changed() {
    let (mut editor, offer) = optimized();
    let change = |version: u32, text: &str, end: u32| {
        json!({
            "textDocument": {"uri": offer["document"], "version": version},
            "contentChanges": [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": end}}, "text": text}],
        })
    };
    let mut edit = change(2, "/**/", 0);
    edit["textDocument"]["uri"] = json!(editor.uri);
    editor.server.notify("textDocument/didChange", &edit).unwrap();
    let run = json!({"run": offer["run"]});
    let said = editor.refused("stitchcuda/accept", run.clone());
    assert!(said.contains("e.cu has changed") && said.contains("stitchcuda runs diff "), "{said}");
    let candidate = editor.ask("stitchcuda/candidate", run.clone());
    assert_eq!((&candidate["isCurrent"], &candidate["version"]), (&json!(false), &Value::Null));
    // Undone, it is the same text again.
    let mut undo = change(3, "", 4);
    undo["textDocument"]["uri"] = json!(editor.uri);
    editor.server.notify("textDocument/didChange", &undo).unwrap();
    let (accepted, request) = accept(&mut editor, &run);
    assert_eq!(accepted["version"], 3);
    assert_eq!(request["params"]["edit"]["documentChanges"][0]["textDocument"]["version"], 3);
    // An editor that refuses is not taken for one that made the edit.
    editor.server.answer(&request, &json!({"applied": false, "failureReason": "busy"})).unwrap();
    let said = editor.next(|message| message["method"] == "window/showMessage");
    assert!(said["params"]["message"].as_str().unwrap().contains("was not made (busy)"), "{said}");
    editor.ask("stitchcuda/reject", json!({"run": offer["run"]}));
    editor.job(|job| job["decision"] == "rejected");
}

#[test]
fn a_job_is_cancelled_by_its_number() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    editor.start();
    let id = editor.job(|job| job["stage"] == "measuring the reference")["id"].clone();
    assert_eq!(editor.ask("stitchcuda/cancel", json!({"job": id}))["cancelled"], true);
    editor.job(|job| job["state"] == "cancelled");
    assert_eq!(editor.ask("stitchcuda/cancel", json!({"job": id}))["cancelled"], false);
    editor.no_process_is_left();
}

#[test]
fn the_status_names_device_and_engine_and_can_be_paused() {
    let mut editor = Editor::new(TEXT, plugin(), json!({"workspaceTrusted": false}));
    let status = editor
        .next(|message| message["method"] == "stitchcuda/status" && message["params"]["device"].is_string());
    let status = &status["params"];
    assert_eq!((&status["device"], &status["engine"]), (&json!("sim:h200"), &json!("builtin")));
    assert_eq!(
        (&status["restricted"], &status["paused"], &status["busy"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert_eq!(editor.ask("stitchcuda/pause", json!({"paused": true}))["paused"], true);
    editor.next(|message| message["method"] == "stitchcuda/status" && message["params"]["paused"] == true);
    assert_eq!(editor.ask("stitchcuda/status", json!({}))["paused"], true);
    let doctor = editor.ask("stitchcuda/doctor", json!({}));
    assert!(doctor["text"].as_str().unwrap().contains("nvcc") && doctor["items"].is_array(), "{doctor}");
}

#[test]
fn numbers_have_lines_and_are_gone_with_an_edit_of_their_kernel() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let uri = editor.uri.clone();
    let about = json!({"textDocument": {"uri": uri}});
    assert_eq!(editor.ask("stitchcuda/heat", about.clone())["lines"], json!([]));
    let compile = json!({"command": "stitchcuda.recompile", "arguments": [uri]});
    editor.server.request("workspace/executeCommand", &compile).unwrap();
    editor.job(|job| job["kind"] == "compile" && job["state"] == "done");
    let heat = editor.ask("stitchcuda/heat", about.clone());
    let number = |name: &str| {
        let lines = heat["lines"].as_array().unwrap();
        lines
            .iter()
            .find(|number| number["quantity"] == name)
            .unwrap_or_else(|| panic!("{name}: {heat}"))
            .clone()
    };
    let occupancy = number("theoretical_occupancy");
    assert_eq!(
        (&occupancy["line"], &occupancy["subject"], &heat["version"]),
        (&json!(1), &json!("energy"), &json!(1))
    );
    assert!((0.0..=1.0).contains(&occupancy["heat"].as_f64().unwrap()), "{occupancy}");
    assert!(number("registers")["source"].as_str().unwrap().contains("sm_"), "{heat}");
    let edit = json!({
        "textDocument": {"uri": uri, "version": 2},
        "contentChanges": [{"range": {"start": {"line": 2, "character": 2}, "end": {"line": 2, "character": 2}}, "text": "int j; "}],
    });
    editor.server.notify("textDocument/didChange", &edit).unwrap();
    assert_eq!(editor.ask("stitchcuda/heat", about)["lines"], json!([]));
}

#[test]
fn a_profile_heats_lines_until_their_function_changes() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let uri = editor.uri.clone();
    let about = json!({"textDocument": {"uri": uri}});
    let profile = json!({"command": "stitchcuda.profile", "arguments": [uri]});
    editor.server.request("workspace/executeCommand", &profile).unwrap();
    let done = editor.job(|job| job["kind"] == "profile" && job["state"] != "running");
    assert_eq!((&done["state"], &done["device"]), (&json!("done"), &json!("sim:h200")), "{done}");
    let heat = editor.ask("stitchcuda/heat", about.clone());
    let hottest = heat["lines"].as_array().unwrap().iter().find(|number| number["heat"] == 1.0).unwrap();
    assert_eq!((&hottest["line"], &hottest["quantity"]), (&json!(3), &json!("traffic")), "{heat}");
    assert!(hottest["label"].as_str().unwrap().contains("64 sectors"), "{hottest}");
    let insert = |version: u32, line: u32| {
        json!({
            "textDocument": {"uri": uri, "version": version},
            "contentChanges": [{"range": {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}, "text": "// new\n"}],
        })
    };
    editor.server.notify("textDocument/didChange", &insert(2, 0)).unwrap();
    let moved = editor.ask("stitchcuda/heat", about.clone());
    assert_eq!(moved["lines"][0]["line"], 4, "{moved}");
    editor.server.notify("textDocument/didChange", &insert(3, 3)).unwrap();
    assert_eq!(editor.ask("stitchcuda/heat", about)["lines"], json!([]));
    let refused = editor.server.request("workspace/executeCommand", &profile).unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("not saved"), "{refused}");
}

#[test]
fn a_profile_is_told_at_its_lines_and_made_again_when_the_file_is_saved() {
    let strided = TEXT.replace("powf(x[i], 3.0f)", "x[(i * 32) % n]");
    let mut editor = Editor::new(&strided, plugin(), Value::Null);
    let uri = editor.uri.clone();
    let profile = json!({"command": "stitchcuda.profile", "arguments": [uri]});
    let first = editor.server.request("workspace/executeCommand", &profile).unwrap()["result"]["job"].take();
    let is_strided = |found: &Value| found["code"] == "ncu/uncoalesced-access";
    let has =
        |message: &Value| message["diagnostics"].as_array().is_some_and(|all| all.iter().any(is_strided));
    let told = editor.server.published(has).unwrap();
    let found = told["diagnostics"].as_array().unwrap().iter().find(|found| is_strided(found)).unwrap();
    assert_eq!((&found["range"]["start"]["line"], &found["severity"]), (&json!(3), &json!(3)), "{found}");
    assert!(found["message"].as_str().unwrap().contains("1.50 times the sectors they need"), "{found}");
    // Saved with the stride gone, it is profiled by itself, since that took little time before.
    let coalesced = TEXT.replace("powf(x[i], 3.0f)", "x[i]");
    let change = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": coalesced}]});
    editor.server.notify("textDocument/didChange", &change).unwrap();
    editor.folder.write("e.cu", &coalesced).unwrap();
    editor.server.notify("textDocument/didSave", &json!({"textDocument": {"uri": uri}})).unwrap();
    let done = editor.job(|job| job["kind"] == "profile" && job["id"] != first && job["state"] != "running");
    assert_eq!(done["state"], "done", "{done}");
    let heat = editor.ask("stitchcuda/heat", json!({"textDocument": {"uri": uri}}));
    let line = heat["lines"].as_array().unwrap().iter().find(|number| number["line"] == 3).unwrap();
    assert!(line["label"].as_str().unwrap().contains("64 sectors, 64 at best"), "{heat}");
}

#[test]
fn a_file_that_is_opened_again_has_its_profile_at_once() {
    let strided = TEXT.replace("powf(x[i], 3.0f)", "x[(i * 32) % n]");
    let mut editor = Editor::new(&strided, plugin(), Value::Null);
    let uri = editor.uri.clone();
    let profile = json!({"command": "stitchcuda.profile", "arguments": [uri]});
    editor.server.request("workspace/executeCommand", &profile).unwrap();
    editor.job(|job| job["kind"] == "profile" && job["state"] == "done");
    let heat = editor.ask("stitchcuda/heat", json!({"textDocument": {"uri": uri}}));
    assert_ne!(heat["lines"], json!([]));
    let is_strided = |found: &Value| found["code"] == "ncu/uncoalesced-access";
    let has =
        |message: &Value| message["diagnostics"].as_array().is_some_and(|all| all.iter().any(is_strided));
    // The editor is started anew, and nothing is asked for.
    let mut again = editor.again(&strided);
    again.server.published(has).unwrap();
    let told = again.ask("stitchcuda/heat", json!({"textDocument": {"uri": uri}}));
    assert_eq!(told["lines"], heat["lines"]);
    let jobs = again.ask("stitchcuda/jobs", json!({}));
    let profiles = jobs["jobs"].as_array().unwrap().iter().filter(|job| job["kind"] == "profile").count();
    assert_eq!(profiles, 0, "nothing ran: {jobs}");
    // In the same server too, where the file was closed meanwhile. What is told of it is the same, so nothing says when it is there.
    again.server.notify("textDocument/didClose", &json!({"textDocument": {"uri": uri}})).unwrap();
    again.server.open(&uri, &strided).unwrap();
    let begun = std::time::Instant::now();
    while again.ask("stitchcuda/heat", json!({"textDocument": {"uri": uri}}))["lines"] != heat["lines"] {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "no profile after a minute");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn what_is_not_opened_as_it_was_profiled_has_no_profile() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let uri = editor.uri.clone();
    let profile = json!({"command": "stitchcuda.profile", "arguments": [uri]});
    editor.server.request("workspace/executeCommand", &profile).unwrap();
    editor.job(|job| job["kind"] == "profile" && job["state"] == "done");
    let other = TEXT.replace("256>>>", "128>>>");
    editor.folder.write("e.cu", &other).unwrap();
    let mut again = editor.again(&other);
    // What is asked now is answered after what was told of the open file would have been.
    let compile = json!({"command": "stitchcuda.recompile", "arguments": [uri]});
    again.server.request("workspace/executeCommand", &compile).unwrap();
    again.job(|job| job["kind"] == "compile" && job["state"] == "done");
    let heat = again.ask("stitchcuda/heat", json!({"textDocument": {"uri": uri}}));
    let traffic = heat["lines"].as_array().unwrap().iter().filter(|line| line["quantity"] == "traffic");
    assert_eq!(traffic.count(), 0, "{heat}");
}

#[test]
fn a_save_whose_program_takes_long_is_sampled_and_says_so() {
    let long = TEXT
        .replace("powf(x[i], 3.0f)", "x[(i * 32) % n]")
        .replace("  if (i < n)", "  float sum = 0;\n  for (int round = 0; round < 2000; ++round) sum = sum * 0.5f + round;\n  i %= n;\n  if (i < n)")
        .replace("x[(i * 32) % n]", "sum + x[(i * 32) % n]")
        .replace("<<<1, 256>>>", "<<<20000, 256>>>");
    let mut editor = Editor::new(&long, plugin(), json!({"onSave": {"profile": "always"}}));
    let uri = editor.uri.clone();
    let saved = json!({"textDocument": {"uri": uri}});
    // Whether it has a `main` is seen when it was analysed.
    editor.server.published(|message| message["uri"] == uri.as_str()).unwrap();
    editor.server.notify("textDocument/didSave", &saved).unwrap();
    let is_said =
        |job: &Value| job["note"].as_str().is_some_and(|note| note.contains("Not all blocks were simulated"));
    let said = editor.job(is_said);
    assert!(said["note"].as_str().unwrap().contains("of 20,000 blocks of `energy`"), "{said}");
    let about = json!({"textDocument": {"uri": uri}});
    let begun = std::time::Instant::now();
    let line = loop {
        let heat = editor.ask("stitchcuda/heat", about.clone());
        let line =
            heat["lines"].as_array().unwrap().iter().find(|line| line["quantity"] == "traffic").cloned();
        if let Some(line) = line {
            break line;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "no profile after a minute: {heat}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(line["line"], 6, "{line}");
    editor.no_process_is_left();
}

#[test]
fn what_names_nothing_is_refused_in_words() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    for (method, params, said) in [
        ("stitchcuda/run", json!({"run": "../../etc"}), "There is no run"),
        ("stitchcuda/candidate", json!({"run": "20010101-000000-x"}), "runs list"),
        ("stitchcuda/accept", json!({}), "run"),
        ("stitchcuda/cancel", json!({"job": "seven"}), "the number of a job"),
        ("stitchcuda/pause", json!(null), "true or false"),
        ("stitchcuda/heat", json!({"textDocument": {"uri": "file:///nowhere.cu"}}), "an open document"),
        ("stitchcuda/unknown", json!({}), "not known"),
    ] {
        let answer = editor.refused(method, params);
        assert!(answer.contains(said), "{method}: {answer}");
    }
}

#[test]
fn a_plain_client_sees_nothing_of_it() {
    let mut editor = Editor::new(TEXT, modern(), Value::Null);
    editor.start();
    let request = editor.next(|message| {
        let method = message["method"].as_str().unwrap_or_default();
        assert!(!method.starts_with("stitchcuda/"), "{message}");
        method == "workspace/applyEdit"
    });
    assert_eq!(
        request["params"]["edit"]["changeAnnotations"]["stitchcuda.optimize"]["needsConfirmation"],
        true
    );
}
