//! Settings that come from the client, and files that change behind its back.

use serde_json::{Value, json};

use super::client::{TestServer, URI};

const SOURCE: &str =
    "__global__ void k(float* a, int n) {\n  int t = threadIdx.x;\n  if (t < n) a[t * 32] = 1.0f;\n}\n";

/// Whether the strided access is among the diagnostics.
fn has_strided(published: &Value) -> bool {
    published["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .any(|found| found["code"] == "static/uncoalesced-access")
}

async fn answer_configuration(server: &mut TestServer, settings: &Value) {
    let asked = server.find(|message| message["method"] == "workspace/configuration").await;
    let items = asked["params"]["items"].as_array().unwrap();
    assert_eq!(items[0]["section"], "stitchcuda");
    let answers = vec![settings.clone(); items.len()];
    server.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answers})).await;
}

#[tokio::test]
async fn settings_are_pulled_and_hold_at_once() {
    let mut server = TestServer::start(json!({"workspace": {"configuration": true}})).await;
    answer_configuration(&mut server, &json!({"staticRules": {"enabel": true}})).await;
    let said = server.logged().await;
    assert!(said.contains("enabel"), "{said}");
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    assert!(has_strided(&server.diagnostics(1).await));
    let off = json!({"diagnostics": {"severity": {"static/uncoalesced-access": "off"}}, "staticRules": {"enabel": true}});
    server.notify("workspace/didChangeConfiguration", json!({"settings": null})).await;
    answer_configuration(&mut server, &off).await;
    assert!(!has_strided(&server.diagnostics(1).await), "the same mistake is not said twice");
    let error = json!({"diagnostics": {"severity": {"static/*": "error"}}});
    server.notify("workspace/didChangeConfiguration", json!({"settings": null})).await;
    answer_configuration(&mut server, &error).await;
    let published = server.diagnostics(1).await;
    assert!(has_strided(&published) && published["diagnostics"][0]["severity"] == 1, "{published}");
    server.finish().await;
}

#[tokio::test]
async fn a_client_that_can_not_be_asked_pushes_its_settings() {
    let mut server = TestServer::bare();
    let off = json!({"staticRules": {"enable": false}});
    let params = json!({"capabilities": {}, "initializationOptions": {"stitchcuda": off}});
    server.request("initialize", params).await.unwrap();
    server.notify("initialized", json!({})).await;
    server.open(URI, "cuda-cpp", 1, SOURCE).await;
    assert!(!has_strided(&server.diagnostics(1).await), "from the options of initialize");
    let on = json!({"settings": {"stitchcuda": {"staticRules": {"enable": true}}}});
    server.notify("workspace/didChangeConfiguration", on).await;
    assert!(has_strided(&server.diagnostics(1).await));
    for (settings, said) in
        [(json!(7), "are 7"), (json!("x"), "the text"), (json!({"stitchcuda": [1]}), "a list")]
    {
        server.notify("workspace/didChangeConfiguration", json!({"settings": settings})).await;
        let logged = server.logged().await;
        assert!(logged.contains("must be a table") && logged.contains(said), "{logged}");
    }
    server.notify("workspace/didChangeConfiguration", json!({"settings": []})).await;
    server.notify("workspace/didChangeConfiguration", json!({"settings": 7})).await;
    server.finish_ignoring(&["textDocument/publishDiagnostics"]).await;
}

#[tokio::test]
async fn options_of_initialize_are_settings_with_and_without_their_name() {
    let off = json!({"staticRules": {"enable": false}});
    let bare = json!({"workspaceTrusted": true, "staticRules.enable": false});
    for options in [json!({"stitchcuda": off}), json!({"settings": off}), off.clone(), bare] {
        let mut server = TestServer::bare();
        let params = json!({"capabilities": {}, "initializationOptions": options});
        server.request("initialize", params).await.unwrap();
        server.notify("initialized", json!({})).await;
        server.open(URI, "cuda-cpp", 1, SOURCE).await;
        assert!(!has_strided(&server.diagnostics(1).await), "{options}");
        server.finish().await;
    }
}

#[tokio::test]
async fn a_folders_file_holds_in_the_folder_and_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("file://{}", folder.path().display());
    let file = folder.path().join("stitchcuda.toml");
    std::fs::write(&file, "[staticRules]\nenable = false\n").unwrap();
    let mut server = TestServer::bare();
    let params = json!({"capabilities": {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}}, "rootUri": root});
    server.request("initialize", params).await.unwrap();
    server.notify("initialized", json!({})).await;
    let registered = server.find(|message| message["method"] == "client/registerCapability").await;
    assert_eq!(registered["params"]["registrations"][0]["method"], "workspace/didChangeWatchedFiles");
    server.send(&json!({"jsonrpc": "2.0", "id": registered["id"], "result": null})).await;
    let inside = format!("{root}/k.cu");
    server.open(&inside, "cuda-cpp", 1, SOURCE).await;
    assert!(!has_strided(&server.diagnostics(1).await));
    server.open(URI, "cuda-cpp", 2, SOURCE).await;
    assert!(has_strided(&server.diagnostics(2).await), "outside of the folder");
    std::fs::write(&file, "").unwrap();
    let change = json!({"uri": format!("{root}/stitchcuda.toml"), "type": 2});
    server.notify("workspace/didChangeWatchedFiles", json!({"changes": [change]})).await;
    assert!(has_strided(&server.diagnostics(1).await));
    let event = json!({"added": [], "removed": [{"uri": root, "name": "x"}]});
    server.notify("workspace/didChangeWorkspaceFolders", json!({"event": event})).await;
    server.finish_ignoring(&["textDocument/publishDiagnostics"]).await;
}

#[tokio::test]
async fn what_other_programs_write_is_noticed_where_the_client_watches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // As git does it: a new file takes the place of the old one.
    let write = |name: &str, text: &str| {
        let new = folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, folder.path().join(name)).unwrap();
    };
    std::fs::create_dir_all(folder.path().join("include")).unwrap();
    write("stitchcuda.toml", "");
    write("include/mark.h", "#define KERNEL static\n");
    let root = format!("file://{}", folder.path().display());
    let mut server = TestServer::bare();
    server.request("initialize", json!({"capabilities": {}, "rootUri": root})).await.unwrap();
    server.notify("initialized", json!({})).await;
    let source = format!("#include \"mark.h\"\n{}", SOURCE.replace("__global__", "KERNEL"));
    server.open(&format!("{root}/k.cu"), "cuda-cpp", 1, &source).await;
    assert!(!has_strided(&server.diagnostics(1).await));
    // A header, which makes it a kernel.
    write("include/mark.h", "#define KERNEL __global__\n");
    while !has_strided(&server.diagnostics(1).await) {}
    // Settings.
    write("stitchcuda.toml", "[staticRules]\nenable = false\n");
    while has_strided(&server.diagnostics(1).await) {}
    std::fs::remove_file(folder.path().join("stitchcuda.toml")).unwrap();
    while !has_strided(&server.diagnostics(1).await) {}
    server.finish_ignoring(&["textDocument/publishDiagnostics", "window/logMessage"]).await;
}
