//! Profiles of another machine in an editor: what they say is told at the lines of the files that they speak of.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use stitch_tests::optimizing::{Editor, TEXT, plugin};
use stitch_tests::recorded::{data, lines, unpacked};

/// Imports a file, and waits for the end: what the person is told.
fn import(editor: &mut Editor, file: &Path) -> String {
    let begun = editor.execute("stitchcuda.importProfile", &json!(format!("file://{}", file.display())));
    assert!(begun["result"]["job"].is_u64(), "{begun}");
    let said = editor.next(|message| message["method"] == "window/showMessage");
    said["params"]["message"].as_str().unwrap().to_owned()
}

/// Writes a file beside the program and opens it: its URI.
fn open(editor: &mut Editor, name: &str, text: &str) -> String {
    let path = editor.folder.write(name, text).unwrap();
    let uri = format!("file://{}", path.display());
    editor.server.open(&uri, text).unwrap();
    uri
}

/// The numbers of a document, of one quantity: lines from one, values and heat.
fn heat(editor: &mut Editor, uri: &str, quantity: &str) -> Vec<(u64, f64, f64)> {
    let heat = editor.ask("stitchcuda/heat", json!({"textDocument": {"uri": uri}}));
    let of_it = heat["lines"].as_array().unwrap().iter().filter(|number| number["quantity"] == quantity);
    let number = |number: &Value| {
        let heat = number["heat"].as_f64().unwrap();
        (number["line"].as_u64().unwrap() + 1, number["value"].as_f64().unwrap(), heat)
    };
    of_it.map(number).collect()
}

#[test]
fn a_file_that_is_opened_later_is_told_what_was_imported_of_it() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let pages = ["h200/lines.full.ncu-raw.csv.gz", "h200/lines.full.ncu-source.csv.gz"];
    let file = unpacked(&editor.folder, &pages, "lines.csv");
    let said = import(&mut editor, &file);
    assert_eq!(
        said,
        "lines.csv, a file of Nsight Compute, speaks of lines.cu, device_atomic_functions.hpp: open one to see it at its lines."
    );
    let uri = open(&mut editor, "lines.cu", &fs::read_to_string(lines()).unwrap());
    let conflict =
        |found: &Value| found["code"] == "ncu/bank-conflict" && found["range"]["start"]["line"] == 39;
    let told = |message: &Value| {
        let findings = message["params"]["diagnostics"].as_array();
        message["params"]["uri"] == *uri && findings.is_some_and(|findings| findings.iter().any(conflict))
    };
    editor.next(told);
    let kernel = json!({"textDocument": {"uri": uri}, "position": {"line": 9, "character": 18}});
    let hover = editor.ask("textDocument/hover", kernel);
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(said.contains("memory-bound") && said.contains("92%"), "{said}");
    let shares = heat(&mut editor, &uri, "sample_share");
    let hottest = shares.iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    assert!(hottest.2 == 1.0 && shares.len() > 20 && shares.iter().any(|line| line.2 < 0.1), "{shares:?}");
}

#[test]
fn a_hover_says_nothing_that_the_finding_beside_it_says() {
    let pages = ["h200/lines.full.ncu-raw.csv.gz", "h200/lines.full.ncu-source.csv.gz"];
    let hover = |beside: bool| {
        let mut client = plugin();
        client["experimental"]["stitchcuda"]["diagnosticsInHover"] = beside.into();
        let mut editor = Editor::new(TEXT, client, Value::Null);
        let uri = open(&mut editor, "lines.cu", &fs::read_to_string(lines()).unwrap());
        let file = unpacked(&editor.folder, &pages, "lines.csv");
        import(&mut editor, &file);
        let at = json!({"textDocument": {"uri": uri}, "position": {"line": 39, "character": 8}});
        let hover = editor.ask("textDocument/hover", at);
        hover["contents"]["value"].as_str().unwrap().to_owned()
    };
    let (alone, beside) = (hover(false), hover(true));
    for said in ["wavefronts of shared memory  16", "have a 32.0-way bank conflict"] {
        assert!(alone.contains(said) && !beside.contains(said), "{said}:\n{alone}\n----\n{beside}");
    }
    assert!(beside.contains("warps were in") && beside.contains("ncu/bank-conflict"), "{beside}");
}

#[test]
fn an_open_file_is_told_at_once_and_a_second_profiler_takes_nothing_of_the_first_away() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let text = fs::read_to_string(data("h200/bad.cu")).unwrap();
    let uri = open(&mut editor, "bad.cu", &text);
    let said = import(&mut editor, &data("h200/bad.compute-sanitizer.txt"));
    assert!(
        said.contains("a file of compute-sanitizer: ")
            && said.contains(" in bad.cu (which was changed since)."),
        "{said}"
    );
    // The program that is open is none of theirs.
    assert!(!said.contains("e.cu"), "{said}");
    let train = open(&mut editor, "train.py", &"step = 1\n".repeat(40));
    let said = import(&mut editor, &data("trace/train_step.json"));
    assert!(!said.contains("e.cu"), "{said}");
    assert!(said.contains("PyTorch's profiler: ") && said.contains(" in train.py"), "{said}");
    let times = heat(&mut editor, &train, "gpu_time");
    assert!(times.iter().any(|(_, seconds, heat)| *seconds > 0.0 && *heat == 1.0), "{times:?}");
    // The other file keeps what compute-sanitizer found in it, one line further down.
    let start = json!({"line": 0, "character": 0});
    let edit = json!({
        "textDocument": {"uri": uri, "version": 2},
        "contentChanges": [{"range": {"start": start, "end": start}, "text": "// new\n"}],
    });
    editor.server.notify("textDocument/didChange", &edit).unwrap();
    let is_sanitizers =
        |found: &Value| found["code"].as_str().is_some_and(|code| code.starts_with("sanitizer/"));
    editor.next(|message| {
        let findings = message["params"]["diagnostics"].as_array();
        let told = findings.is_some_and(|findings| findings.iter().any(is_sanitizers));
        message["params"]["uri"] == *uri && message["params"]["version"] == 2 && told
    });
}

#[test]
fn what_is_no_profile_is_said() {
    let mut editor = Editor::new(TEXT, plugin(), Value::Null);
    let file = editor.folder.write("notes.txt", "nothing of a profiler\n").unwrap();
    let said = import(&mut editor, &file);
    assert!(said.contains("notes.txt is nothing that a profiler wrote"), "{said}");
    let gone = import(&mut editor, &file.with_file_name("gone.ncu-rep"));
    assert!(gone.contains("gone.ncu-rep can't be read"), "{gone}");
    let refused = editor.execute("stitchcuda.importProfile", &json!("untitled:one"));
    assert!(refused["error"]["message"].as_str().unwrap().contains("takes the URI of a file"), "{refused}");
}
