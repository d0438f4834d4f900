//! Documents by any spelling, version and order of messages.

use serde_json::{Value, json};

use super::client::{TestServer, URI, at};

const QUIET: &[&str] = &["textDocument/publishDiagnostics"];

#[tokio::test]
async fn a_document_is_published_under_the_clients_own_spelling() {
    let uris = [
        "file:///c%3A/Users/dev/my%20proj/k%2B1.cu",
        "file:///tmp/with space/ü.cu",
        "file:///tmp/100%.cu",
        "untitled:Untitled-1",
        "git:/w/k.cu?{\"ref\":\"~\"}",
        "vscode-notebook-cell:/w/n.ipynb#X10sZmlsZQ%3D%3D",
        "vscode-remote://ssh-remote%2Bhost/w/k.cu",
        "file://",
        "file:///w/K.CU",
        "",
        "no scheme",
    ];
    let mut server = TestServer::plain().await;
    for uri in uris {
        server.open(uri, "cuda-cpp", 1, "__global__ void k() {}\n").await;
        let published = server.diagnostics(1).await;
        assert_eq!(published["uri"], uri);
        assert_eq!(server.text_of(uri).await, "__global__ void k() {}\n", "{uri}");
        let flat = server
            .request("textDocument/documentSymbol", json!({"textDocument": {"uri": uri}}))
            .await
            .unwrap();
        assert!(flat.is_array(), "{uri}");
        server.close(uri).await;
        assert_eq!(server.published().await, json!({"uri": uri, "diagnostics": []}));
    }
    server.finish().await;
}

#[tokio::test]
async fn two_spellings_are_one_document_under_the_first() {
    let mut server = TestServer::plain().await;
    let (first, second) = ("file:///c%3A/my%20proj/k%2B1.cu", "file:///C:/my%20proj/k+1.cu");
    server.open(first, "cuda-cpp", 1, "one").await;
    server.diagnostics(1).await;
    server.change(second, 2, &[json!("two")]).await;
    assert_eq!(server.diagnostics(2).await["uri"], first);
    assert_eq!(server.text_of(first).await, "two");
    server.close(second).await;
    assert_eq!(server.published().await, json!({"uri": first, "diagnostics": []}));
    server.finish().await;
}

#[tokio::test]
async fn messages_about_what_is_not_open_are_said_and_ignored() {
    let mut server = TestServer::plain().await;
    server.change(URI, 2, &[json!("text")]).await;
    assert!(server.logged().await.contains("was changed but is not open"));
    server.close(URI).await;
    assert!(server.logged().await.contains("was closed but is not open"));
    for method in ["textDocument/hover", "textDocument/documentSymbol", "textDocument/codeLens"] {
        assert_eq!(server.request(method, at(URI, 0, 0)).await, Ok(Value::Null), "{method}");
    }
    server.notify("textDocument/didSave", json!({"textDocument": {"uri": URI}})).await;
    server.open(URI, "cuda-cpp", 1, "once").await;
    server.open(URI, "cuda-cpp", 1, "twice").await;
    assert!(server.logged().await.contains("opened twice"));
    assert_eq!(server.text_of(URI).await, "twice");
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_version_that_does_not_grow_costs_no_edit() {
    let mut server = TestServer::plain().await;
    server.open(URI, "cuda-cpp", 5, "").await;
    for (version, text) in [(6, "a"), (6, "b"), (3, "c"), (-1, "d")] {
        server.change(URI, version, &[json!([[0, 0], [0, 0], text])]).await;
    }
    assert_eq!(server.text_of(URI).await, "dcba");
    for version in [json!(null), json!("x"), json!(1e300)] {
        let document = json!({"uri": URI, "version": version});
        let changes = json!([{"text": "e", "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}}]);
        server
            .notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}))
            .await;
    }
    assert_eq!(server.text_of(URI).await, "eeedcba");
    server.finish_ignoring(&["textDocument/publishDiagnostics", "window/logMessage"]).await;
}

#[tokio::test]
async fn ranges_are_clamped_and_turned_round() {
    // text, range, in UTF-16, the text with that range cut out
    let rows = [
        ("ab\ncd", json!([[0, 1], [1, 1]]), "ad"),
        ("ab\ncd", json!([[0, 1], [0, 99]]), "a\ncd"),
        ("ab\r\ncd", json!([[0, 1], [0, 99]]), "a\r\ncd"),
        ("ab\ncd", json!([[1, 0], [99, 99]]), "ab\n"),
        ("ab\ncd", json!([[99, 0], [99, 1]]), "ab\ncd"),
        ("ab\ncd", json!([[1, 1], [0, 1]]), "ad"),
        ("a😀b", json!([[0, 2], [0, 3]]), "ab"),
        ("a😀b", json!([[0, 1], [0, 2]]), "a😀b"),
        ("a\u{0}b", json!([[0, 1], [0, 2]]), "ab"),
        ("a\u{c}b\u{2028}c", json!([[0, 4], [0, 5]]), "a\u{c}b\u{2028}"),
        ("ab", json!([[0, 4_294_967_295u32], [4_294_967_295u32, 0]]), "ab"),
        ("ab", json!([[0, 1], [0, 1e20]]), "a"),
        ("ab", json!([[0, -3], [0, 1]]), "b"),
    ];
    let mut server = TestServer::plain().await;
    for (text, range, expected) in rows {
        server.open(URI, "cuda-cpp", 1, text).await;
        server.change(URI, 2, &[json!([range[0], range[1], ""])]).await;
        assert_eq!(server.text_of(URI).await, expected, "{text:?} {range}");
        server.close(URI).await;
    }
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn columns_count_what_was_agreed() {
    for (encoding, column) in [("utf-8", 8), ("utf-16", 5), ("utf-32", 4)] {
        let mut server = TestServer::start(json!({"general": {"positionEncodings": [encoding]}})).await;
        server.open(URI, "cuda-cpp", 1, "aé😀bc").await;
        server.change(URI, 2, &[json!([[0, column], [0, column], "|"])]).await;
        assert_eq!(server.text_of(URI).await, "aé😀b|c", "{encoding}");
        server.finish_ignoring(QUIET).await;
    }
}

#[tokio::test]
async fn several_changes_build_on_each_other() {
    let mut server = TestServer::plain().await;
    server.open(URI, "cuda-cpp", 1, "one two").await;
    server
        .change(
            URI,
            2,
            &[json!([[0, 0], [0, 3], "1"]), json!([[0, 2], [0, 5], "2"]), json!([[0, 3], [0, 3], "!"])],
        )
        .await;
    assert_eq!(server.text_of(URI).await, "1 2!");
    server.change(URI, 3, &[json!("all new"), json!([[0, 0], [0, 3], "quite"])]).await;
    assert_eq!(server.text_of(URI).await, "quite new");
    server.change(URI, 4, &[]).await;
    assert_eq!(server.text_of(URI).await, "quite new");
    server.finish_ignoring(QUIET).await;
}

#[tokio::test]
async fn a_text_with_half_a_character_is_not_lost() {
    let mut server = TestServer::plain().await;
    let body = r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///w/k.cu","languageId":"cuda","version":1,"text":"a\ud83db"}}}"#;
    server.write(&crate::frames::encode(body)).await;
    assert_eq!(server.text_of(URI).await, "a\u{fffd}b");
    server.finish_ignoring(QUIET).await;
}
