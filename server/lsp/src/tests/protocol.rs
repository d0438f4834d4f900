//! Messages that are early, late, malformed or unknown are answered as JSON-RPC 2.0 and LSP 3.17 say.

use serde_json::{Value, json};

use super::client::{TestServer, URI, at};
use crate::frames::encode;

#[tokio::test]
async fn before_initialize_requests_are_refused_and_notifications_dropped() {
    let mut server = TestServer::bare();
    for method in ["textDocument/hover", "shutdown", "no/such", "$/no/such", "textDocument/didOpen"] {
        assert_eq!(server.refusal(method, json!({})).await, -32002, "{method}");
    }
    server.open(URI, "cuda-cpp", 1, "early").await;
    // Parameters that can't be read leave the phase as it is.
    assert_eq!(server.refusal("initialize", json!({"capabilities": 3})).await, -32602);
    assert_eq!(server.refusal("initialize", Value::Null).await, -32602);
    let result = server.request("initialize", json!({"capabilities": {}})).await.unwrap();
    assert_eq!(result["serverInfo"]["name"], "stitchcuda");
    assert_eq!(result["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(
        server.request("test/pinned", at(URI, 0, 0)).await,
        Ok(Value::Null),
        "the early text was dropped"
    );
    assert_eq!(server.refusal("initialize", json!({"capabilities": {}})).await, -32600, "only once");
    server.finish().await;
}

#[tokio::test]
async fn messages_right_behind_initialize_are_in_time() {
    let mut server = TestServer::bare();
    let first = server.ask("initialize", json!({"capabilities": {}})).await;
    server.notify("initialized", json!({})).await;
    server.open(URI, "cuda-cpp", 1, "text").await;
    let second = server.ask("test/pinned", at(URI, 0, 0)).await;
    assert_eq!(server.answer(second).await.unwrap(), json!(["text", "text"]));
    server.answer(first).await.unwrap();
    server.finish_ignoring(&["textDocument/publishDiagnostics"]).await;
}

#[tokio::test]
async fn after_shutdown_requests_are_refused_and_notifications_dropped() {
    let mut server = TestServer::plain().await;
    assert_eq!(server.request("shutdown", json!({})).await, Ok(Value::Null));
    for method in ["textDocument/hover", "shutdown", "initialize", "no/such", "$/x"] {
        assert_eq!(server.refusal(method, json!({})).await, -32600, "{method}");
    }
    server.open(URI, "cuda-cpp", 1, "late").await;
    server.send(&json!({"jsonrpc": "2.0", "method": "exit"})).await;
    assert_eq!(server.read().await, None, "nothing is published");
    assert_eq!(server.status().await, 0);
}

#[tokio::test]
async fn exit_before_initialize_is_no_end_in_order() {
    let mut server = TestServer::bare();
    server.send(&json!({"jsonrpc": "2.0", "method": "exit"})).await;
    assert_eq!(server.status().await, 1);
}

#[tokio::test]
async fn what_is_not_known_is_answered_if_it_is_a_request() {
    let mut server = TestServer::plain().await;
    for method in ["no/such", "$/no/such", "", "textDocument/", "textDocument/completion", "exit\u{0}"] {
        assert_eq!(server.refusal(method, json!({})).await, -32601, "{method:?}");
        server.notify(method, json!({})).await;
    }
    server.finish().await;
}

#[tokio::test]
async fn wrong_parameters_are_refused_under_the_requests_id() {
    let mut server = TestServer::plain().await;
    let rows = [
        ("textDocument/hover", json!({})),
        ("textDocument/hover", json!("text")),
        ("textDocument/hover", json!(7)),
        ("textDocument/hover", json!([])),
        ("textDocument/hover", Value::Null),
        ("textDocument/hover", json!({"textDocument": {"uri": 7}, "position": {"line": 0, "character": 0}})),
        (
            "textDocument/hover",
            json!({"textDocument": {"uri": URI}, "position": {"line": -1, "character": 0}}),
        ),
        (
            "textDocument/hover",
            json!({"textDocument": {"uri": URI}, "position": {"line": 0.5, "character": 0}}),
        ),
        ("textDocument/inlayHint", at(URI, 0, 0)),
        ("workspace/executeCommand", json!({"command": 5})),
        ("workspace/executeCommand", json!({"command": "no.such"})),
    ];
    for (method, params) in rows {
        assert_eq!(server.refusal(method, params.clone()).await, -32602, "{method} {params}");
    }
    // The same as notifications are dropped, and what follows is answered.
    server.notify("textDocument/didOpen", json!({"textDocument": 5})).await;
    server.notify("textDocument/didChange", json!([])).await;
    server.notify("textDocument/didClose", Value::Null).await;
    for _ in 0..3 {
        assert!(server.logged().await.contains("can't be read"));
    }
    assert_eq!(server.request("textDocument/hover", at(URI, 0, 0)).await, Ok(Value::Null), "not open");
    server.finish().await;
}

#[tokio::test]
async fn requests_and_notifications_are_told_apart_by_their_id() {
    let mut server = TestServer::plain().await;
    let document = json!({"textDocument": {"uri": URI, "languageId": "cuda", "version": 1, "text": "x"}});
    assert_eq!(server.refusal("textDocument/didOpen", document).await, -32600, "a notification with an id");
    server.notify("textDocument/hover", at(URI, 0, 0)).await;
    assert_eq!(server.request("test/pinned", at(URI, 0, 0)).await, Ok(Value::Null), "it opened nothing");
    server.finish().await;
}

#[tokio::test]
async fn ids_come_back_as_they_went() {
    let mut server = TestServer::plain().await;
    let ids =
        ["1", "1", "\"1\"", "\"\"", "null", "-7", "1.5", "1e300", "98765432109876543210", "\"\\u00e9\\n\""];
    for id in ids {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"textDocument/hover","params":{}}}"#,
            at(URI, 0, 0)
        );
        server.write(&encode(&body)).await;
        let answer = server.find(|message| message.get("method").is_none()).await;
        assert_eq!(answer["id"].to_string(), serde_json::from_str::<Value>(id).unwrap().to_string());
        assert_eq!(answer["result"], Value::Null);
    }
    server.finish().await;
}

#[tokio::test]
async fn two_requests_under_one_id_are_both_answered() {
    let mut server = TestServer::plain().await;
    for _ in 0..2 {
        let body = json!({"jsonrpc": "2.0", "id": "same", "method": "test/panicLater"});
        server.send(&body).await;
    }
    for _ in 0..2 {
        let answer = server.find(|message| message["id"] == "same").await;
        assert_eq!(answer["error"]["code"], -32603);
    }
    server.finish().await;
}

#[tokio::test]
async fn broken_messages_are_answered_once_and_what_follows_is_read() {
    let mut server = TestServer::plain().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_objects = "{\"a\":".repeat(100_000);
    let rows: Vec<(&str, Vec<u8>, i64)> = vec![
        ("bad JSON", encode("{\"jsonrpc\":"), -32700),
        ("empty", encode(""), -32700),
        ("no UTF-8", b"Content-Length: 4\r\n\r\n\xff\xfe{}".to_vec(), -32700),
        ("NUL", encode("\u{0}"), -32700),
        ("length too short", b"Content-Length: 5\r\n\r\n{\"jsonrpc\":\"2.0\"}".to_vec(), -32700),
        ("length too long", b"Content-Length: 60\r\n\r\n{\"jsonrpc\":\"2.0\"}".to_vec(), -32700),
        ("no length", b"Content-Type: x\r\n\r\n{}".to_vec(), -32700),
        ("no header", b"hello\r\n".to_vec(), -32700),
        ("bad length", b"Content-Length: ten\r\n\r\n{}".to_vec(), -32700),
        ("absurd length", b"Content-Length: 999999999999999999999\r\n\r\n{}".to_vec(), -32700),
        ("a batch", encode("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}]"), -32600),
        ("an empty batch", encode("[]"), -32600),
        ("a number", encode("3"), -32600),
        ("no method", encode("{\"jsonrpc\":\"2.0\"}"), -32600),
        ("nested arrays", encode(&deep), -32600),
        ("nested objects, open", encode(&deep_objects), -32700),
    ];
    for (name, bytes, code) in rows {
        server.write(&bytes).await;
        let id = server.ask("textDocument/hover", at(URI, 0, 0)).await;
        let error = server.find(|message| message.get("error").is_some()).await;
        assert_eq!(error["error"]["code"], code, "{name}");
        assert_eq!(error["id"], Value::Null, "{name}");
        assert_eq!(server.answer(id).await, Ok(Value::Null), "{name}");
    }
    let params = format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"textDocument/hover","params":{deep}}}"#);
    server.write(&encode(&params)).await;
    let error = server.find(|message| message["id"] == "deep").await;
    assert_eq!(error["error"]["code"], -32602);
    server.finish().await;
}

#[tokio::test]
async fn a_message_of_fifty_megabytes_is_taken() {
    let mut server = TestServer::plain().await;
    let text = "int \"é\";\n".repeat(5 << 20);
    server.open(URI, "cuda-cpp", 1, &text).await;
    assert_eq!(
        server.request("test/length", at(URI, 0, 0)).await.unwrap(),
        json!([text.len(), "int \"é\";\nin"])
    );
    server.change(URI, 2, &[json!([[0, 0], [0, 3], "long"])]).await;
    assert_eq!(
        server.request("test/length", at(URI, 0, 0)).await.unwrap(),
        json!([text.len() + 1, "long \"é\";\ni"])
    );
    assert!(server.logged().await.contains("more than"), "it is not analysed");
    server.finish_ignoring(&["textDocument/publishDiagnostics"]).await;
}
