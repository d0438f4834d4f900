//! Compiling on save, with a compiler that says what its source tells it to.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stitch_session::config::Surroundings;
use stitch_toolchain::environment::Environment;
use tempfile::TempDir;

use super::client::{TestServer, at};
use crate::Options;

/// Says each line behind `//SAY ` of the source, `@` being its path, and fails if there is any.
const NVCC: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac
for a in "$@"; do case "$a" in *.cu) file="$a";; esac; done
if grep -q '//SAY ' "$file"; then
  sed -n 's|.*//SAY ||p' "$file" | sed "s|@|$file|" >&2
  exit 2
fi
while [ $# -gt 0 ]; do case "$1" in -o) echo code > "$2";; esac; shift; done
exit 0
"#;

struct Project {
    folder: TempDir,
}

impl Project {
    fn new(nvcc: &str) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        project.write("toolkit/bin/nvcc", nvcc);
        project.write("toolkit/include/cuda_runtime.h", "#pragma once\n");
        project.write("toolkit/include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n");
        project.write("toolkit/include/cuda.h", "#define CUDA_VERSION 13000\n");
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn options(&self) -> Options {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = |of: &Path| of.display().to_string();
        let environment = Environment::from_variables([
            ("PATH", path),
            ("CUDA_HOME", home(&self.path("toolkit"))),
            ("HOME", home(&self.path(""))),
        ]);
        let flags =
            vec![("cache.sizeLimitMegabytes".into(), "0".into()), ("clang.enable".into(), "off".into())];
        Options {
            owns_process: false,
            surroundings: Surroundings { flags, ..Surroundings::default() },
            environment,
        }
    }
}

fn codes(published: &Value) -> Vec<&str> {
    let found = published["diagnostics"].as_array().unwrap().iter();
    let mut codes: Vec<_> = found.map(|found| found["code"].as_str().unwrap()).collect();
    codes.retain(|code| code.starts_with("nvcc"));
    codes
}

/// The next diagnostics with as many of the compiler's as asked for.
async fn compiled(server: &mut TestServer, count: usize) -> Value {
    loop {
        let published = server.published().await;
        if codes(&published).len() == count {
            return published;
        }
    }
}

async fn start(project: &Project, capabilities: Value) -> TestServer {
    let mut server = TestServer::with(project.options());
    let params = json!({"capabilities": capabilities, "rootUri": project.uri("")});
    server.request("initialize", params).await.unwrap();
    server.notify("initialized", json!({})).await;
    server
}

async fn save(server: &mut TestServer, uri: &str) {
    server.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}})).await;
}

const LATE: &[&str] = &[
    "textDocument/publishDiagnostics",
    "stitchcuda/status",
    "window/logMessage",
    "window/showMessage",
    "$/progress",
];

#[tokio::test]
async fn errors_come_on_open_go_stale_with_an_edit_and_go_on_save() {
    let project = Project::new(NVCC);
    let bad =
        "__global__ void k(float* a) {\n  a[0] = x;\n}\n//SAY @(2): error: identifier \"x\" is undefined\n";
    project.write("k.cu", bad);
    let uri = project.uri("k.cu");
    let mut server = start(&project, json!({})).await;
    server.open(&uri, "cuda-cpp", 1, bad).await;
    let published = compiled(&mut server, 1).await;
    let error = &published["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["code"] == "nvcc/error")
        .unwrap();
    assert_eq!((&error["range"]["start"]["line"], &error["severity"]), (&json!(1), &json!(1)), "{error}");
    // The function changed: what was said of it is old.
    server.change(&uri, 2, &[json!([[1, 2], [1, 2], "/**/"])]).await;
    let published = server.diagnostics(2).await;
    let error =
        published["diagnostics"].as_array().unwrap().iter().find(|found| found["code"] == "nvcc/error");
    if let Some(error) = error {
        assert_eq!(error["severity"], 4, "{error}");
        assert!(error["message"].as_str().unwrap().contains("before your last edit"), "{error}");
    }
    let good = "__global__ void k(float* a) {\n  a[0] = 1;\n}\n";
    server.change(&uri, 3, &[json!(good)]).await;
    project.write("k.cu", good);
    save(&mut server, &uri).await;
    let published = compiled(&mut server, 0).await;
    assert_eq!(codes(&published), [""; 0]);
    server.finish_ignoring(LATE).await;
}

/// Says of one kernel what it needs.
const MEASURES: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac
cat >&2 <<'SAID'
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'
ptxas info    : Function properties for _Z1kPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
SAID
while [ $# -gt 0 ]; do case "$1" in -o) echo code > "$2";; esac; shift; done
"#;

#[tokio::test]
async fn numbers_are_shown_only_of_code_that_is_what_it_was() {
    let project = Project::new(MEASURES);
    let text = "__global__ void k(float* a) {\n  a[0] = 1;\n}\nvoid go(float* a) {\n  k<<<1, 256>>>(a);\n}\n";
    project.write("k.cu", text);
    let uri = project.uri("k.cu");
    let markdown = json!({"textDocument": {"hover": {"contentFormat": ["markdown"]}}});
    let mut capabilities = markdown;
    capabilities["experimental"] = json!({"stitchcuda": {"status": true}});
    let mut server = start(&project, capabilities).await;
    server.open(&uri, "cuda-cpp", 1, text).await;
    server.find(|message| message["params"]["busy"] == true).await;
    let is_over = |message: &Value| message["params"]["busy"] == false;
    server.find(|message| is_over(message) && message["params"]["toolkit"].is_string()).await;
    let mut row = 0;
    for (version, change, has, has_not) in [
        (1, None, vec!["| `k` | 10 |", "| 100% |", "block of 256 (launch at line 5)"], "changed"),
        // The launch is in another line now, as the list below the table says.
        (2, Some(json!([[0, 0], [0, 0], "\n"])), vec!["| 100% |", "(from a launch)", "line 6"], "line 5"),
        (3, Some(json!([[5, 9], [5, 12], "64"])), vec!["| `k` | 10 |", "block `64`"], "%"),
        (4, Some(json!([[2, 2], [2, 2], "/**/"])), vec!["has changed since"], "| `k`"),
    ] {
        if let Some(change) = change {
            server.change(&uri, version, &[change]).await;
            server.diagnostics(version).await;
            row = 1;
        }
        let hover = server.request("textDocument/hover", at(&uri, row, 16)).await.unwrap();
        let page = hover["contents"]["value"].as_str().unwrap();
        assert!(has.iter().all(|part| page.contains(part)), "{version}: {page}");
        assert!(!page.contains(has_not), "{version}: {page}");
    }
    server.finish_ignoring(LATE).await;
}

/// Wants flags of a compile database and of settings.
const WANTS_FLAGS: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac
for a in "$@"; do case "$a" in *.cu) file="$a";; esac; done
case "$*" in
  *-DFROM_DATABASE*-DFROM_SETTINGS*) echo "$file(1): warning #1-D: both" >&2;;
  *) echo "$file(1): error: only $*" >&2; exit 2;;
esac
while [ $# -gt 0 ]; do case "$1" in -o) echo code > "$2";; esac; shift; done
"#;

#[tokio::test]
async fn a_folder_within_a_repository_is_compiled_as_the_repository_is() {
    let project = Project::new(WANTS_FLAGS);
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project.write("stitchcuda.toml", "[nvcc]\nextraFlags = [\"-DFROM_SETTINGS\"]\n");
    project.write("src/app/k.cu", "int x;\n");
    let entry = json!([{
        "directory": project.path(""), "command": "nvcc -DFROM_DATABASE -c src/app/k.cu", "file": "src/app/k.cu"
    }]);
    project.write("compile_commands.json", &entry.to_string());
    let uri = project.uri("src/app/k.cu");
    let mut server = TestServer::with(project.options());
    let params = json!({"capabilities": {}, "rootUri": project.uri("src/app")});
    server.request("initialize", params).await.unwrap();
    server.notify("initialized", json!({})).await;
    server.open(&uri, "cuda-cpp", 1, "int x;\n").await;
    let published = compiled(&mut server, 1).await;
    assert_eq!(codes(&published), ["nvcc/warning"], "{published}");
    server.finish_ignoring(LATE).await;
}

#[tokio::test]
async fn an_error_in_a_header_is_shown_there_and_goes_with_its_cause() {
    let project = Project::new(NVCC);
    let header = project.path("h.cuh");
    let bad =
        format!("#include \"h.cuh\"\n//SAY {}(1): error: identifier \"y\" is undefined\n", header.display());
    project.write("h.cuh", "__device__ int f() { return y; }\n");
    project.write("k.cu", &bad);
    let uri = project.uri("k.cu");
    let mut server = start(&project, json!({})).await;
    server.open(&uri, "cuda-cpp", 1, &bad).await;
    let published = compiled(&mut server, 1).await;
    assert_eq!(published["uri"], project.uri("h.cuh"), "of a file that is not open");
    let good = "#include \"h.cuh\"\n";
    server.change(&uri, 2, &[json!(good)]).await;
    project.write("k.cu", good);
    save(&mut server, &uri).await;
    loop {
        let published = server.published().await;
        if published["uri"] == project.uri("h.cuh") {
            assert_eq!(published["diagnostics"], json!([]));
            break;
        }
    }
    server.finish_ignoring(LATE).await;
}

#[tokio::test]
async fn trouble_with_the_tools_is_a_status_said_once() {
    let project = Project::new(NVCC);
    fs::remove_dir_all(project.path("toolkit")).unwrap();
    project.write("k.cu", "int x;\n");
    let uri = project.uri("k.cu");
    let mut server = start(&project, json!({"experimental": {"stitchcuda": {"status": true}}})).await;
    server.open(&uri, "cuda-cpp", 1, "int x;\n").await;
    let status = server.find(|message| message["params"]["health"] == "warning").await;
    assert_eq!(status["method"], "stitchcuda/status");
    assert!(status["params"]["message"].as_str().unwrap().contains("CUDA"), "{status}");
    let said = server.find(|message| message["method"] == "window/showMessage").await;
    assert_eq!(said["params"]["type"], 2);
    save(&mut server, &uri).await;
    server.find(|message| message["params"]["busy"] == true).await;
    server.find(|message| message["params"]["busy"] == false).await;
    assert_eq!(server.diagnostics(1).await["diagnostics"], json!([]), "never a squiggle");
    // Said a second time, the message would be left unread.
    server
        .finish_ignoring(&["stitchcuda/status", "window/logMessage", "textDocument/publishDiagnostics"])
        .await;
}

#[tokio::test]
async fn a_file_that_is_not_on_disk_is_no_trouble_and_compiled_once_it_is_saved() {
    let project = Project::new(NVCC);
    let text = "int x;\n//SAY @(1): error: identifier \"y\" is undefined\n";
    let uri = project.uri("new.cu");
    let mut server = start(&project, json!({})).await;
    server.open(&uri, "cuda-cpp", 1, text).await;
    assert_eq!(server.diagnostics(1).await["diagnostics"], json!([]));
    // Saved elsewhere, or deleted again.
    save(&mut server, &uri).await;
    server.open("untitled:Untitled-1", "cuda-cpp", 1, text).await;
    assert_eq!(server.diagnostics(1).await["uri"], "untitled:Untitled-1");
    project.write("new.cu", text);
    save(&mut server, &uri).await;
    compiled(&mut server, 1).await;
    server
        .finish_ignoring(&["textDocument/publishDiagnostics", "stitchcuda/status", "window/logMessage"])
        .await;
}

#[tokio::test]
async fn a_compile_is_shown_as_progress_and_can_be_cancelled() {
    let endless = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac\nsleep 600\n";
    let project = Project::new(endless);
    project.write("k.cu", "int x;\n");
    let uri = project.uri("k.cu");
    let mut server = start(&project, json!({"window": {"workDoneProgress": true}})).await;
    server.open(&uri, "cuda-cpp", 1, "int x;\n").await;
    let create = server.find(|message| message["method"] == "window/workDoneProgress/create").await;
    server.send(&json!({"jsonrpc": "2.0", "id": create["id"], "result": null})).await;
    let token = &create["params"]["token"];
    let begin = server.find(|message| message["params"]["value"]["kind"] == "begin").await;
    assert_eq!(begin["params"]["token"], *token);
    assert_eq!(begin["params"]["value"]["title"], "Compile k.cu");
    assert_eq!(begin["params"]["value"]["cancellable"], true);
    // Nothing waits for it.
    assert_eq!(server.request("textDocument/hover", at(&uri, 0, 0)).await, Ok(Value::Null));
    let jobs =
        server.request("workspace/executeCommand", json!({"command": "stitchcuda.jobs"})).await.unwrap();
    assert_eq!(jobs[0]["title"], "Compile k.cu");
    server.notify("window/workDoneProgress/cancel", json!({"token": "another's"})).await;
    server.notify("window/workDoneProgress/cancel", json!({"token": token})).await;
    let end = server.find(|message| message["params"]["value"]["kind"] == "end").await;
    assert_eq!(end["params"]["value"]["message"], "cancelled");
    server.finish_ignoring(LATE).await;
}

#[tokio::test]
async fn nothing_is_run_in_a_workspace_that_is_not_trusted() {
    let project = Project::new("#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n");
    project.write("k.cu", "int x;\n");
    let uri = project.uri("k.cu");
    let mut server = TestServer::with(project.options());
    let options = json!({"workspaceTrusted": false});
    let params = json!({"capabilities": {}, "rootUri": project.uri(""), "initializationOptions": options});
    server.request("initialize", params).await.unwrap();
    server.notify("initialized", json!({})).await;
    server.open(&uri, "cuda-cpp", 1, "int x;\n").await;
    save(&mut server, &uri).await;
    let recompile = json!({"command": "stitchcuda.recompile", "arguments": [uri]});
    assert_eq!(server.refusal("workspace/executeCommand", recompile).await, -32602);
    server.diagnostics(1).await;
    assert!(!project.path("toolkit/bin/ran").exists());
    server.finish().await;
}

/// Says what a header beside the source tells it to say about the source.
const NVCC_OF_HEADER: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac
for a in "$@"; do case "$a" in *.cu) file="$a";; esac; done
header="$(dirname "$file")/part.cuh"
if grep -q 'part.cuh' "$file" && grep -q '//SAY ' "$header"; then
  sed -n 's|.*//SAY ||p' "$header" | sed "s|@|$file|; s|%|$header|" >&2
  exit 2
fi
while [ $# -gt 0 ]; do case "$1" in -o) echo code > "$2";; esac; shift; done
exit 0
"#;

#[tokio::test]
async fn saving_a_header_compiles_the_open_sources_that_include_it() {
    let project = Project::new(NVCC_OF_HEADER);
    let source = "#include \"part.cuh\"\nfloat f() { return half_of(1); }\n";
    let good = "float half_of(float);\n";
    let names = ["a.cu", "b.cu"];
    names.iter().for_each(|name| project.write(name, source));
    project.write("part.cuh", good);
    let header = project.uri("part.cuh");
    let mut server = start(&project, json!({})).await;
    for name in names {
        server.open(&project.uri(name), "cuda-cpp", 1, source).await;
    }
    server.open(&header, "cuda-cpp", 1, good).await;
    let bad = "//SAY @(2): error: identifier \"half_of\" is undefined\n";
    for (text, count) in [(bad, 1), (good, 0)] {
        project.write("part.cuh", text);
        save(&mut server, &header).await;
        // Both, though a compile of the header itself needs only one of them.
        let mut waiting: Vec<String> = names.iter().map(|name| project.uri(name)).collect();
        while !waiting.is_empty() {
            let published = compiled(&mut server, count).await;
            waiting.retain(|uri| published["uri"] != *uri);
        }
    }
    server.finish_ignoring(LATE).await;
}

#[tokio::test]
async fn columns_of_places_in_other_files_are_counted_as_the_client_counts() {
    let header = "/* \u{1F600}\u{e9} */ float half_of(float);\n                  //SAY @(2): error: no instance of \"half_of\"\n                  //SAY %:1:16: note: declared here\n";
    // In a line with other signs than ASCII, the column is one of characters.
    for (encodings, character) in
        [(json!({"general": {"positionEncodings": ["utf-8"]}}), 19), (json!({}), 16)]
    {
        let project = Project::new(NVCC_OF_HEADER);
        let source = "#include \"part.cuh\"\nfloat f() { return half_of(1, 2); }\n";
        project.write("k.cu", source);
        project.write("part.cuh", header);
        let uri = project.uri("k.cu");
        let mut capabilities = encodings;
        capabilities["textDocument"] = json!({"publishDiagnostics": {"relatedInformation": true}});
        let mut server = start(&project, capabilities).await;
        server.open(&uri, "cuda-cpp", 1, source).await;
        let published = compiled(&mut server, 1).await;
        let found = published["diagnostics"].as_array().unwrap();
        let found = found.iter().find(|found| found["code"] == "nvcc/error").unwrap();
        let place = &found["relatedInformation"][0]["location"];
        assert_eq!(place["uri"], project.uri("part.cuh"), "{found}");
        assert_eq!(place["range"]["start"], json!({"line": 0, "character": character}));
        server.finish_ignoring(LATE).await;
    }
}
