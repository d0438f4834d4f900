//! The type check between keystrokes, with a real clang and a real toolkit's headers. Skipped, and said so, where no clang that
//! is new enough is installed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use stitch_tests::cli::{Folder, toolkit};
use stitch_tests::lsp_client::{Server, command};

/// The oldest clang that is known to read the headers of the toolkit that the tests install.
const OLDEST: u32 = 22;
/// The newest that is looked for by name.
const NEWEST: u32 = 30;

const SOURCE: &str = "\
#include <cuda_runtime.h>
__global__ void scale(float* data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = 2.0f * data[i];
}
";

/// A clang of this machine, by its name with its version or by asking it.
fn clang() -> Option<PathBuf> {
    let found = |name: &str| {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    if let Some(path) = (OLDEST..=NEWEST).rev().find_map(|major| found(&format!("clang-{major}"))) {
        return Some(path);
    }
    let path = found("clang")?;
    let said = Command::new(&path).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let major: u32 = said.split("clang version ").nth(1)?.split('.').next()?.parse().ok()?;
    (major >= OLDEST).then_some(path)
}

/// The lines, from zero, and messages of what clang found.
fn errors(params: &Value) -> Vec<(u64, String)> {
    let found = params["diagnostics"].as_array().into_iter().flatten();
    let of_clang = found.filter(|found| found["code"] == "clang/error");
    of_clang
        .map(|found| {
            let line = found["range"]["start"]["line"].as_u64().unwrap();
            (line, found["message"].as_str().unwrap().to_owned())
        })
        .collect()
}

fn change(server: &mut Server, uri: &str, version: u64, text: &str) {
    let document = json!({"uri": uri, "version": version});
    let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
    server.notify("textDocument/didChange", &params).unwrap();
}

#[test]
fn a_type_error_shows_without_a_save_and_goes_when_it_is_mended() {
    let Some(clang) = clang() else {
        return stitch_tests::skip(&format!("no clang {OLDEST} or newer is installed"));
    };
    // The small header is enough for the first; the second makes clang read CUDA's own, and be asked twice.
    for include in ["", "#include <cuda_fp16.h>\n"] {
        let text = format!("{include}{SOURCE}");
        let line = u64::try_from(text.lines().position(|line| line.contains("2.0f")).unwrap()).unwrap();
        let folder = Folder::with(&[("k.cu", &text)]).unwrap();
        let uri = format!("file://{}", folder.path().unwrap().join("k.cu").display());
        let mut command = command().unwrap();
        command
            .env("CUDA_HOME", toolkit().unwrap())
            .env("STITCHCUDA_COMPILE_ON_SAVE", "false")
            .env("STITCHCUDA_CLANG_ENABLE", "on")
            .env("STITCHCUDA_CLANG_PATH", &clang);
        let mut server = Server::of(command).unwrap();
        server.initialize(&json!({"capabilities": {}})).unwrap();
        server.open(&uri, &text).unwrap();
        server.published(|params| params["version"] == 1).unwrap();
        // A type error: no static rule, and no parser, can know it.
        change(&mut server, &uri, 2, &text.replace("2.0f", "\"two\""));
        let params = server
            .published(|params| params["version"] == 2 && !errors(params).is_empty())
            .unwrap_or_else(|error| panic!("clang found nothing ({include:?}): {error:#}"));
        let found = errors(&params);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, line);
        assert!(found[0].1.contains("invalid operands"), "{found:?}");
        change(&mut server, &uri, 3, &text.replace("2.0f", "3.0f"));
        server.published(|params| params["version"] == 3 && errors(params).is_empty()).unwrap();
        server.request("shutdown", &Value::Null).unwrap();
        server.notify("exit", &Value::Null).unwrap();
        assert_eq!(server.ended().unwrap().0, 0);
    }
}
