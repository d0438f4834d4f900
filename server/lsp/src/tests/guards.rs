//! The four guards, against each failure that was measured on tower-lsp's own loop.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{TestServer, URI, at};

const QUIET: &[&str] = &["textDocument/publishDiagnostics"];

/// Eight edits that each append a digit.
async fn type_digits(server: &mut TestServer, from: i32, count: i32) {
    for n in 0..count {
        let column = n;
        let digit = (n % 10).to_string();
        server.change(URI, from + n, &[json!([[0, column], [0, column], digit])]).await;
    }
}

fn digits(count: i32) -> String {
    (0..count).map(|n| (n % 10).to_string()).collect()
}

#[tokio::test]
async fn edits_are_applied_in_the_order_they_came() {
    let mut server = TestServer::plain().await;
    server.open(URI, "cuda-cpp", 1, "").await;
    type_digits(&mut server, 2, 80).await;
    assert_eq!(server.text_of(URI).await, digits(80));
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_request_sees_the_version_it_was_sent_for() {
    let mut server = TestServer::plain().await;
    server.open(URI, "cuda-cpp", 1, "one").await;
    let id = server.ask("test/pinned", at(URI, 0, 0)).await;
    for version in 2..7 {
        server.change(URI, version, &[json!(format!("text {version}"))]).await;
    }
    assert_eq!(server.answer(id).await.unwrap(), json!(["one", "text 6"]));
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn stuck_handlers_stop_neither_reading_nor_edits() {
    for stuck in [4, 70] {
        let mut server = TestServer::plain().await;
        server.open(URI, "cuda-cpp", 1, "").await;
        for _ in 0..stuck {
            server.ask("test/stuck", Value::Null).await;
            server.notify("test/stuckNotified", Value::Null).await;
        }
        type_digits(&mut server, 2, 400).await;
        // A change that was read last shows that all before it were.
        assert_eq!(server.diagnostics(401).await["version"], 401);
        if stuck < 64 {
            assert_eq!(server.text_of(URI).await, digits(400));
        }
    }
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_server_with_a_stuck_handler() {
    let mut server = TestServer::plain().await;
    server.ask("test/stuck", Value::Null).await;
    server.notify("test/stuckNotified", Value::Null).await;
    let start = Instant::now();
    server.close_input();
    assert_eq!(server.status().await, 1, "without shutdown");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn the_end_of_the_input_after_shutdown_is_an_end_in_order() {
    let mut server = TestServer::plain().await;
    server.request("shutdown", Value::Null).await.unwrap();
    server.close_input();
    assert_eq!(server.status().await, 0);
}

#[tokio::test]
async fn exit_ends_the_server_with_a_stuck_handler() {
    for (shut_down, status) in [(true, 0), (false, 1)] {
        let mut server = TestServer::plain().await;
        server.ask("test/stuck", Value::Null).await;
        if shut_down {
            server.request("shutdown", Value::Null).await.unwrap();
        }
        let start = Instant::now();
        server.send(&json!({"jsonrpc": "2.0", "method": "exit"})).await;
        assert_eq!(server.status().await, status);
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_is_an_answer() {
    let mut server = TestServer::plain().await;
    for method in ["test/panic", "test/panicLater"] {
        let error = server.request(method, Value::Null).await.unwrap_err();
        assert_eq!(error["code"], -32603);
        assert!(error["message"].as_str().unwrap().contains("on purpose"), "{error}");
    }
    server.notify("test/panicNotified", Value::Null).await;
    server.open(URI, "cuda-cpp", 1, "alive").await;
    assert_eq!(server.text_of(URI).await, "alive");
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_request_can_be_cancelled_by_its_client() {
    let mut server = TestServer::plain().await;
    let id = server.ask("test/stuck", Value::Null).await;
    server.notify("$/cancelRequest", json!({"id": "another"})).await;
    server.notify("$/cancelRequest", json!({"id": id})).await;
    assert_eq!(server.answer(id).await.unwrap_err()["code"], -32800);
    server.notify("$/cancelRequest", json!({"id": id})).await;
    server.notify("$/cancelRequest", json!(null)).await;
    server.finish().await;
}

#[tokio::test]
async fn ten_thousand_requests_are_answered_to_a_client_that_reads_late() {
    let mut server = TestServer::plain().await;
    let line = "__global__ void k(float* a) { a[threadIdx.x * 32] = 1.0f; }\n";
    server.open(URI, "cuda-cpp", 1, &line.repeat(10)).await;
    let mut last = 0;
    for n in 0..10_000u32 {
        let method =
            ["textDocument/hover", "textDocument/documentSymbol", "textDocument/inlayHint"][n as usize % 3];
        let mut params = at(URI, n % 60, n % 70);
        params["range"] = json!({"start": {"line": 0, "character": 0}, "end": {"line": 60, "character": 0}});
        last = server.ask(method, params).await;
    }
    let mut answered = vec![false; usize::try_from(last).unwrap() + 1];
    for _ in 0..10_000 {
        let message = server.find(|message| message.get("id").is_some()).await;
        assert!(message.get("error").is_none(), "{message}");
        let id = usize::try_from(message["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut answered[id], true), "{id} is answered once");
    }
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_ends_the_server() {
    let mut server = TestServer::plain().await;
    server.stop_reading();
    server.ask("textDocument/hover", at(URI, 0, 0)).await;
    let start = Instant::now();
    assert_eq!(server.status().await, 1);
    assert!(start.elapsed() < Duration::from_secs(2));
}
