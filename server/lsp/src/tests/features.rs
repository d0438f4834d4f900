//! What a person sees: findings, hovers, hints, lenses, symbols, actions.

use serde_json::{Value, json};

use super::client::{TestServer, URI, at};

const QUIET: &[&str] = &["textDocument/publishDiagnostics"];

const SOURCE: &str = "\
__global__ void strided(float* a, int n) {
  int t = threadIdx.x;
  if (t < n) a[t * 32] = 1.0f;
}
void run(float* a, int n) {
  strided<<<9, 256>>>(a, n);
}
";

/// A client that can do everything.
fn able() -> Value {
    json!({
        "textDocument": {
            "publishDiagnostics": {"relatedInformation": true, "dataSupport": true},
            "hover": {"contentFormat": ["markdown"]},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}},
            "inlayHint": {"resolveSupport": {"properties": ["tooltip"]}},
        },
    })
}

fn whole() -> Value {
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1000, "character": 0}});
    json!({"textDocument": {"uri": URI}, "range": range})
}

#[tokio::test]
async fn findings_come_with_their_version_and_follow_the_text() {
    let mut server = TestServer::start(able()).await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    let published = server.diagnostics(1).await;
    let found = published["diagnostics"].as_array().unwrap();
    let strided =
        found.iter().find(|found| found["code"] == "static/uncoalesced-access").expect("the finding");
    assert_eq!(strided["range"]["start"]["line"], 2);
    assert_eq!(strided["source"], "stitchcuda");
    assert_eq!(strided["data"]["code"], "static/uncoalesced-access");
    assert!(strided["severity"].as_u64() >= Some(3), "performance is information or a hint");
    server.change(URI, 2, &[json!([[0, 0], [0, 0], "// moved\n"])]).await;
    let published = server.diagnostics(2).await;
    let found = published["diagnostics"].as_array().unwrap();
    assert!(found.iter().any(|found| found["range"]["start"]["line"] == 3), "{published}");
    server.change(URI, 3, &[json!("")]).await;
    assert_eq!(server.diagnostics(3).await["diagnostics"], json!([]));
    server.finish().await;
}

#[tokio::test]
async fn what_the_client_can_not_show_is_left_out() {
    let mut server = TestServer::plain().await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    for found in server.diagnostics(1).await["diagnostics"].as_array().unwrap() {
        assert_eq!((found.get("data"), found.get("relatedInformation")), (None, None));
    }
    let symbols =
        server.request("textDocument/documentSymbol", json!({"textDocument": {"uri": URI}})).await.unwrap();
    assert!(symbols[0].get("location").is_some(), "a flat list");
    let hover = server.request("textDocument/hover", at(URI, 0, 18)).await.unwrap();
    assert_eq!(hover["contents"]["kind"], "plaintext");
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("strided kernel\n") && !text.contains(['*', '`']), "{text}");
    let mut params = whole();
    params["context"] = json!({"diagnostics": []});
    let actions = server.request("textDocument/codeAction", params).await.unwrap();
    assert_eq!(actions[0]["command"], "stitchcuda.explain", "a bare command: {actions}");
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_hover_tells_of_the_kernel_and_of_the_finding() {
    let mut server = TestServer::start(able()).await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    let text = |hover: &Value| hover["contents"]["value"].as_str().unwrap_or_default().to_owned();
    let before = text(&server.request("textDocument/hover", at(URI, 0, 18)).await.unwrap());
    assert!(before.contains("Save the file"), "{before}");
    server.request("test/measure", at(URI, 0, 0)).await.unwrap();
    for place in [at(URI, 0, 18), at(URI, 5, 4)] {
        let hover = server.request("textDocument/hover", place).await.unwrap();
        let page = text(&hover);
        for part in ["`strided`", "| 64 |", "4 KiB", "50%", "registers", "ptxas 13.0 for sm_90", "line 6"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let found = server.request("textDocument/hover", at(URI, 2, 17)).await.unwrap();
    assert!(text(&found).contains("# static/uncoalesced-access"), "{found}");
    assert_eq!(found["range"]["start"]["line"], 2);
    for nowhere in [at(URI, 3, 1), at(URI, 99, 99)] {
        assert_eq!(server.request("textDocument/hover", nowhere).await, Ok(Value::Null));
    }
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn hints_stand_at_the_lines_end_and_go_when_the_kernel_changes() {
    let mut server = TestServer::start(able()).await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    assert_eq!(server.request("textDocument/inlayHint", whole()).await, Ok(json!([])));
    server.request("test/measure", at(URI, 0, 0)).await.unwrap();
    let hints = server.request("textDocument/inlayHint", whole()).await.unwrap();
    assert_eq!(hints.as_array().unwrap().len(), 1, "one a line");
    let hint = &hints[0];
    assert_eq!(hint["label"], "64 registers · 4 KiB shared · 50% occupancy");
    assert_eq!(hint["position"], json!({"line": 0, "character": 42}));
    assert_eq!(hint["paddingLeft"], true);
    let resolved = server.request("inlayHint/resolve", hint.clone()).await.unwrap();
    assert!(resolved["tooltip"]["value"].as_str().unwrap().contains("ptxas"), "{resolved}");
    // Elsewhere: moved. Inside: gone. Undone: back.
    server.change(URI, 2, &[json!([[0, 0], [0, 0], "\n\n"])]).await;
    let moved = server.request("textDocument/inlayHint", whole()).await.unwrap();
    assert_eq!(moved[0]["position"], json!({"line": 2, "character": 42}));
    let unresolved = server.request("inlayHint/resolve", hint.clone()).await.unwrap();
    assert_eq!(unresolved.get("tooltip"), None, "of another version");
    server.change(URI, 3, &[json!([[4, 2], [4, 2], "x"])]).await;
    assert_eq!(server.request("textDocument/inlayHint", whole()).await, Ok(json!([])));
    server.change(URI, 4, &[json!(SOURCE)]).await;
    assert_eq!(server.request("textDocument/inlayHint", whole()).await.unwrap()[0]["label"], hint["label"]);
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn no_position_is_past_its_line() {
    let mut server = TestServer::start(able()).await;
    let lines = "__global__ void k(float* a) {\n  int t = threadIdx.x;\n  a[t] = a[t * 32] * 2.0f; // keep\n  a[t] += 1.0f;\n}\n";
    server.open(URI, "cuda-cpp", 1, lines).await;
    server.request("test/measure", at(URI, 0, 0)).await.unwrap();
    let edits = [json!([[2, 9], [2, 36], ";"]), json!([[2, 0], [3, 0], ""]), json!([[0, 16], [0, 40], ""])];
    for (version, edit) in (2..).zip(edits) {
        server.change(URI, version, &[edit]).await;
        let text = server.text_of(URI).await;
        let length =
            |line: &Value| text.lines().nth(line.as_u64().unwrap() as usize).unwrap_or("").len() as u64;
        for hint in server.request("textDocument/inlayHint", whole()).await.unwrap().as_array().unwrap() {
            assert!(hint["position"]["character"].as_u64().unwrap() <= length(&hint["position"]["line"]));
        }
        for found in server.diagnostics(version).await["diagnostics"].as_array().unwrap() {
            let end = &found["range"]["end"];
            assert!(end["character"].as_u64().unwrap() <= length(&end["line"]), "{found}");
        }
    }
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn lenses_and_symbols_name_kernels_and_launches() {
    let mut server = TestServer::start(able()).await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    let lenses =
        server.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}})).await.unwrap();
    assert_eq!(lenses[0]["command"]["command"], "stitchcuda.showKernel");
    assert_eq!(lenses[0]["command"]["title"], "1 launch");
    server.request("test/measure", at(URI, 0, 0)).await.unwrap();
    let lenses =
        server.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}})).await.unwrap();
    assert!(lenses[0]["command"]["title"].as_str().unwrap().starts_with("64 registers"), "{lenses}");
    let symbols =
        server.request("textDocument/documentSymbol", json!({"textDocument": {"uri": URI}})).await.unwrap();
    assert_eq!(symbols[0]["name"], "strided");
    assert_eq!(symbols[0]["detail"], "kernel");
    let arguments = lenses[0]["command"]["arguments"].clone();
    let shown = json!({"command": "stitchcuda.showKernel", "arguments": arguments});
    let shown = server.request("workspace/executeCommand", shown).await.unwrap();
    assert!(shown["markdown"].as_str().unwrap().contains("| 64 |"), "{shown}");
    let said = server.find(|message| message["method"] == "window/showMessage").await;
    assert!(said["params"]["message"].as_str().unwrap().starts_with("strided: 64 registers"), "{said}");
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn an_action_explains_the_finding_it_is_asked_at() {
    let mut server = TestServer::start(able()).await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    let found = server.diagnostics(1).await["diagnostics"].clone();
    let strided =
        found.as_array().unwrap().iter().find(|found| found["code"] == "static/uncoalesced-access").unwrap();
    let foreign = json!({"range": strided["range"], "message": "x", "source": "clangd", "code": strided["code"], "data": 7});
    let mut params = json!({"textDocument": {"uri": URI}, "range": strided["range"]});
    params["context"] = json!({"diagnostics": [strided, foreign]});
    let actions = server.request("textDocument/codeAction", params.clone()).await.unwrap();
    let explain = actions
        .as_array()
        .unwrap()
        .iter()
        .find(|action| action["title"] == "Explain static/uncoalesced-access");
    let explain = explain.expect("the action");
    assert_eq!(explain["diagnostics"].as_array().unwrap().len(), 1, "the other server's is not ours");
    let page = server.request("workspace/executeCommand", explain["command"].clone()).await.unwrap();
    assert!(page["markdown"].as_str().unwrap().starts_with("# static/uncoalesced-access"));
    params["context"] = json!({"diagnostics": [], "only": ["source"]});
    let actions = server.request("textDocument/codeAction", params.clone()).await.unwrap();
    assert_eq!(actions[0]["command"]["command"], "stitchcuda.recompile", "{actions}");
    params["context"] = json!({"diagnostics": [], "only": ["refactor.extract"]});
    assert_eq!(server.request("textDocument/codeAction", params).await, Ok(json!([])));
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn commands_refuse_what_they_can_not_read() {
    let mut server = TestServer::plain().await;
    let rows = [
        ("stitchcuda.explain", json!([])),
        ("stitchcuda.explain", json!(["static/no-such"])),
        ("stitchcuda.explain", json!([7])),
        ("stitchcuda.showKernel", json!([{"uri": URI, "kernel": "k"}])),
        ("stitchcuda.recompile", json!([URI])),
        ("stitchcuda.recompile", json!([null])),
        ("stitchcuda.cancel", json!(["x"])),
    ];
    for (command, arguments) in rows {
        let params = json!({"command": command, "arguments": arguments});
        assert_eq!(server.refusal("workspace/executeCommand", params).await, -32602, "{command} {arguments}");
    }
    server.finish().await;
}

#[tokio::test]
async fn a_panic_in_the_analysis_leaves_the_document_alive() {
    let mut server = TestServer::plain().await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    server.diagnostics(1).await;
    server.request("test/failAnalysis", Value::Null).await.unwrap();
    server.change(URI, 2, &[json!([[0, 0], [0, 0], "\n"])]).await;
    assert_eq!(server.diagnostics(2).await["version"], 2);
    server.change(URI, 3, &[json!([[0, 0], [0, 0], "\n"])]).await;
    assert_ne!(server.diagnostics(3).await["diagnostics"], json!([]));
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_long_file_has_a_whole_outline_and_its_most_severe_findings() {
    let mut server = TestServer::start(able()).await;
    let one = |index: usize| {
        format!(
            "__global__ void k{index}(float* a) {{ a[threadIdx.x * 32] = 1.0f; }}\nvoid h{index}(float* a) {{ k{index}<<<9, 64>>>(a); }}\n"
        )
    };
    let mut text: String = (0..1500).map(one).collect();
    text.push_str(
        "__global__ void last(float* a) { a[0] = 1.0f; }\nvoid bad(float* a) { last<<<1, 2048>>>(a); }\n",
    );
    server.open(URI, "cuda-cpp", 1, &text).await;
    let symbols =
        server.request("textDocument/documentSymbol", json!({"textDocument": {"uri": URI}})).await.unwrap();
    assert_eq!(symbols.as_array().unwrap().len(), 3002);
    assert_eq!(symbols[2999]["children"][0]["name"], "k1499");
    let published = server.diagnostics(1).await;
    let found = published["diagnostics"].as_array().unwrap();
    assert_eq!(found.len(), 1001);
    let note = &found[1000];
    assert_eq!(note.get("code"), None);
    let message = note["message"].as_str().unwrap();
    assert!(message.contains(" more findings are not shown"), "{message}");
    let line = |of: &Value| of["range"]["start"]["line"].as_u64().unwrap();
    assert!(found[..1000].is_sorted_by_key(line));
    let warning = |of: &&Value| of["severity"] == 2;
    assert_eq!(found.iter().filter(warning).map(line).collect::<Vec<_>>(), [3001], "the last line's is kept");
    server.finish().await;
}
