//! The language server as a process: how it ends, and what it leaves behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stitch_tests::endless;
use stitch_tests::lsp_client::{Server, command, frame};

const SOURCE: &str =
    "__global__ void strided(float* a, int n) {\n  int t = threadIdx.x;\n  if (t < n) a[t * 32] = 1.0f;\n}\n";
const PROMISED: Duration = Duration::from_secs(2);

fn exit() -> Value {
    json!({"jsonrpc": "2.0", "method": "exit"})
}

#[test]
fn the_exit_status_tells_whether_shutdown_came() {
    for (shut_down, says_exit, expected) in
        [(true, true, 0), (true, false, 0), (false, true, 1), (false, false, 1)]
    {
        let mut server = Server::start().unwrap();
        server.initialize(&json!({"capabilities": {}})).unwrap();
        if shut_down {
            server.request("shutdown", &Value::Null).unwrap();
        }
        if says_exit {
            server.write(&frame(&exit())).unwrap();
        } else {
            server.close_input();
        }
        let (status, took) = server.ended().unwrap();
        assert_eq!(status, expected, "shutdown {shut_down}, exit {says_exit}");
        assert!(took < PROMISED, "{took:?}");
        assert_eq!(server.errors().unwrap(), "", "nothing went wrong");
    }
}

#[test]
fn everything_at_once_through_a_pipe_is_answered() {
    let mut server = Server::start().unwrap();
    let mut bytes =
        frame(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}));
    bytes.extend(frame(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})));
    let document = json!({"uri": "file:///w/k.cu", "languageId": "cuda", "version": 1, "text": SOURCE});
    bytes.extend(frame(
        &json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}),
    ));
    let symbols = json!({"textDocument": {"uri": "file:///w/k.cu"}});
    bytes.extend(frame(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "textDocument/documentSymbol", "params": symbols}),
    ));
    bytes.extend(frame(&json!({"jsonrpc": "2.0", "id": 3, "method": "shutdown"})));
    bytes.extend(frame(&exit()));
    server.write(&bytes).unwrap();
    server.close_input();
    let (status, _) = server.ended().unwrap();
    assert_eq!(status, 0);
    let answers: Vec<Value> =
        server.rest().into_iter().filter(|message| message.get("id").is_some()).collect();
    let answer = |id: i64| {
        answers.iter().find(|message| message["id"] == id).unwrap_or_else(|| panic!("{id}: {answers:?}"))
    };
    assert_eq!(answer(2)["result"][0]["name"], "strided");
    assert_eq!(answer(3)["result"], Value::Null);
}

#[test]
fn a_drive_in_a_uri_comes_back_as_the_client_wrote_it() {
    let messages = include_str!("data/lsp_drive_colon.jsonl");
    let uri = "file:///c%3A/Users/dev/my%20proj/k%2B1.cu";
    let mut server = Server::start().unwrap();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        server.write(&frame(&message)).unwrap();
        let strided = |version: i64| {
            move |params: &Value| {
                assert_eq!(params["uri"], uri);
                let found = params["diagnostics"].as_array().into_iter().flatten();
                params["version"] == version
                    && found.into_iter().any(|found| {
                        found["code"] == "static/uncoalesced-access" && found["range"]["start"]["line"] == 2
                    })
            }
        };
        match message["method"].as_str().unwrap() {
            "textDocument/didOpen" => drop(server.published(strided(1)).unwrap()),
            "textDocument/didChange" => drop(server.published(strided(2)).unwrap()),
            "textDocument/didClose" => {
                let params = server.published(|params| params.get("version").is_none()).unwrap();
                assert_eq!(params, json!({"uri": uri, "diagnostics": []}));
            }
            _ => {}
        }
    }
    assert_eq!(server.ended().unwrap().0, 0);
}

#[test]
#[allow(clippy::zombie_processes, reason = "it is waited for with a limit, and killed")]
fn a_closed_output_ends_the_server() {
    let mut command = command().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = command.stdout(writer).spawn().unwrap();
    // The command holds the writing end too.
    drop(command);
    let input = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(reader);
    let begin = Instant::now();
    let mut status = None;
    while status.is_none() && begin.elapsed() < PROMISED * 2 {
        status = child.try_wait().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = begin.elapsed();
    child.kill().unwrap();
    drop(input);
    assert_eq!(status.and_then(|status| status.code()), Some(1));
    assert!(took < PROMISED, "{took:?}");
}

#[test]
fn the_end_of_the_clients_process_ends_the_server() {
    let mut editor = Command::new("sleep").arg("600").spawn().unwrap();
    let mut server = Server::start().unwrap();
    server.initialize(&json!({"capabilities": {}, "processId": editor.id()})).unwrap();
    editor.kill().unwrap();
    // Not waited for yet: a zombie is gone too.
    let (status, took) = server.ended().unwrap();
    editor.wait().unwrap();
    assert_eq!(status, 1);
    assert!(took < PROMISED, "{took:?}");
}

/// The processes of each compile so far, once there are `count`.
fn compiles(root: &Path, count: usize) -> Vec<Vec<i32>> {
    let begin = Instant::now();
    loop {
        let text = fs::read_to_string(root.join("started")).unwrap_or_default();
        let lines: Vec<Vec<i32>> =
            text.lines().map(|line| line.split(' ').map(|id| id.parse().unwrap()).collect()).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{} of {count} compiles started", lines.len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait_until_gone(processes: &[i32], patience: Duration) {
    let begin = Instant::now();
    let alive = |id: &&i32| endless::is_alive(**id);
    while processes.iter().any(|id| alive(&id)) {
        let left: Vec<_> = processes.iter().filter(alive).collect();
        assert!(begin.elapsed() < patience, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_newer_save_kills_the_older_compile_and_the_end_kills_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let toolkit = folder.path().join("toolkit");
    endless::toolkit(&toolkit).unwrap();
    let file = folder.path().join("k.cu");
    fs::write(&file, SOURCE).unwrap();
    let uri = format!("file://{}", file.display());
    let mut command = command().unwrap();
    command.env("CUDA_HOME", &toolkit);
    let mut server = Server::of(command).unwrap();
    server.initialize(&json!({"capabilities": {}})).unwrap();
    server.open(&uri, SOURCE).unwrap();
    let first = compiles(&toolkit, 1).remove(0);
    // An edit makes a difference, so that nothing can be taken from what is known.
    fs::write(&file, format!("{SOURCE}\n")).unwrap();
    server.notify("textDocument/didSave", &json!({"textDocument": {"uri": uri}})).unwrap();
    wait_until_gone(&first, Duration::from_secs(10));
    let second = compiles(&toolkit, 2).remove(1);
    assert!(
        server
            .request(
                "textDocument/hover",
                &json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}})
            )
            .is_ok()
    );
    server.close_input();
    let (status, took) = server.ended().unwrap();
    assert_eq!(status, 1);
    assert!(took < PROMISED, "{took:?}");
    wait_until_gone(&second, Duration::from_secs(3));
}
