//! What an editor shows of a profile, against the binary: hovers, hints with their tooltips, findings with their places and links, and what can be done
//! about them.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use stitch_tests::optimizing::{Editor, plugin};

/// A transpose whose reads of the tile conflict, in line 6, and a strided read, in line 10.
const TEXT: &str = r#"#include <cstdio>
__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * n + x]; __syncthreads();
  // The columns lie in one bank.
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void strided(float* out, const float* in, int n) {
  int i = threadIdx.x;
  out[i] = in[(i * 32) % n];
}
int main() {
  float *x, *y, host[1024];
  for (int i = 0; i < 1024; ++i) host[i] = i * 0.25f;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  transpose<<<1, dim3(32, 32)>>>(y, x, 32);
  strided<<<1, 256>>>(y, x, 1024);
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\n", host[100]);
}
"#;

/// An editor in which the program was profiled, with what was published of it. What the static rules say of the same is turned off.
fn profiled() -> (Editor, Value) {
    let mut able = plugin();
    able["textDocument"]["hover"] = json!({"contentFormat": ["markdown"]});
    able["textDocument"]["publishDiagnostics"] =
        json!({"relatedInformation": true, "codeDescriptionSupport": true, "dataSupport": true});
    able["textDocument"]["codeAction"] =
        json!({"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}});
    able["textDocument"]["inlayHint"] = json!({"resolveSupport": {"properties": ["tooltip"]}});
    let off = json!({"static/shared-bank-conflict": "off", "static/uncoalesced-access": "off"});
    let mut editor = Editor::new(TEXT, able, json!({"settings": {"diagnostics": {"severity": off}}}));
    let profile = json!({"command": "stitchcuda.profile", "arguments": [editor.uri]});
    editor.server.request("workspace/executeCommand", &profile).unwrap();
    let has = |message: &Value| {
        let found = message["diagnostics"].as_array();
        found.is_some_and(|all| all.iter().any(|found| found["code"] == "ncu/bank-conflict"))
    };
    let told = editor.server.published(has).unwrap();
    (editor, told["diagnostics"].clone())
}

fn finding<'f>(found: &'f Value, code: &str) -> &'f Value {
    let all = found.as_array().unwrap();
    all.iter().find(|found| found["code"] == code).unwrap_or_else(|| panic!("{code}: {found:?}"))
}

fn hover(editor: &mut Editor, line: u32, character: u32) -> String {
    let at = json!({"textDocument": {"uri": editor.uri}, "position": {"line": line, "character": character}});
    let shown = editor.ask("textDocument/hover", at);
    shown["contents"]["value"].as_str().unwrap_or_default().to_owned()
}

fn actions(editor: &mut Editor, found: &Value) -> Vec<Value> {
    let context = json!({"diagnostics": [found], "only": ["quickfix"], "triggerKind": 1});
    let params = json!({"textDocument": {"uri": editor.uri}, "range": found["range"], "context": context});
    editor.ask("textDocument/codeAction", params).as_array().cloned().unwrap_or_default()
}

fn edit(editor: &mut Editor, version: u32, line: u32, text: &str) {
    let at = json!({"line": line, "character": 2});
    let change = json!({
        "textDocument": {"uri": editor.uri, "version": version},
        "contentChanges": [{"range": {"start": at, "end": at}, "text": text}],
    });
    editor.server.notify("textDocument/didChange", &change).unwrap();
}

#[test]
fn hovers_tell_what_was_measured_of_kernels_and_lines_until_they_change() {
    let (mut editor, _) = profiled();
    for at in [(1, 17), (18, 4)] {
        let kernel = hover(&mut editor, at.0, at.1);
        for part in [
            "**latency-bound, by estimate (",
            "the simulator",
            "| threads a block | 1,024 |",
            "| achieved occupancy | not measured |",
            "| wavefronts of shared memory | 1,056 | 64 | 16.50 times |",
            "line 7: ",
            "32.0-way bank conflict",
            "launched in `main`, line 19",
        ] {
            assert!(kernel.contains(part), "{part}: {kernel}");
        }
    }
    let line = hover(&mut editor, 6, 20);
    assert!(line.contains("**Line 7** of `transpose`, its worst access"), "{line}");
    assert!(line.contains("| wavefronts of shared memory | 1,024 | 32 | 32.00 times |"), "{line}");
    assert!(line.contains("# ncu/bank-conflict"), "the page: {line}");
    edit(&mut editor, 2, 3, "int z; ");
    let stale = hover(&mut editor, 1, 17);
    assert!(stale.contains("Measured before your last edit"), "{stale}");
    let other = hover(&mut editor, 8, 17);
    assert!(
        other.contains("sectors of global memory") && !other.contains("before your last edit"),
        "{other}"
    );
}

#[test]
fn one_hint_a_line_has_its_table_when_it_is_asked_for() {
    let (mut editor, _) = profiled();
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 100, "character": 0}});
    let all = json!({"textDocument": {"uri": editor.uri}, "range": range});
    let hints = editor.ask("textDocument/inlayHint", all.clone());
    let labels: Vec<(u64, &str)> = hints
        .as_array()
        .unwrap()
        .iter()
        .map(|hint| (hint["position"]["line"].as_u64().unwrap(), hint["label"].as_str().unwrap()))
        .collect();
    assert_eq!(labels, [(6, "32-way bank conflict"), (10, "4.5 times the sectors")]);
    assert_eq!(hints[0].get("tooltip"), None, "it comes later");
    let resolved = editor.ask("inlayHint/resolve", hints[0].clone());
    let table = resolved["tooltip"]["value"].as_str().unwrap();
    assert!(table.contains("| on this line | asked for | at best | |"), "{table}");
    edit(&mut editor, 2, 3, "int z; ");
    let left = editor.ask("textDocument/inlayHint", all);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn findings_have_places_a_link_and_what_can_be_done() {
    let (mut editor, found) = profiled();
    let conflict = finding(&found, "ncu/bank-conflict").clone();
    assert_eq!((&conflict["range"]["start"]["line"], &conflict["severity"]), (&json!(6), &json!(3)));
    assert!(conflict["codeDescription"]["href"].as_str().unwrap().starts_with("https://"), "{conflict}");
    let related = conflict["relatedInformation"].as_array().unwrap();
    let places: Vec<(u64, &str)> = related
        .iter()
        .map(|place| {
            let line = place["location"]["range"]["start"]["line"].as_u64().unwrap();
            (line, place["message"].as_str().unwrap())
        })
        .collect();
    assert!(places.contains(&(18, "`transpose` is launched here, by `main`")), "{places:?}");
    assert!(places.contains(&(16, "`y` is allocated here")), "{places:?}");
    // A rewrite answers it, where the array is declared.
    let fixes = actions(&mut editor, &conflict);
    let pad = &fixes[0];
    assert!(pad["title"].as_str().unwrap().ends_with("(not verified)"), "{fixes:?}");
    assert_eq!(pad["diagnostics"][0]["code"], "ncu/bank-conflict");
    let edits = &pad["edit"]["documentChanges"][0]["edits"];
    assert_eq!(edits[0]["range"]["start"]["line"], 2, "{pad}");
    // No rewrite answers the stride: a job can take it as its aim.
    let strided = finding(&found, "ncu/uncoalesced-access").clone();
    let fixes = actions(&mut editor, &strided);
    assert_eq!(fixes[0]["title"], "Optimize strided for ncu/uncoalesced-access");
    let argument = &fixes[0]["command"]["arguments"][0];
    assert_eq!(
        (&argument["range"], &fixes[0]["command"]["command"]),
        (&strided["range"], &json!("stitchcuda.optimize"))
    );
}
