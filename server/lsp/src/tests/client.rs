//! A client for tests. What the server sends must be read: a message left over fails the test.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::io::SyncIoBridge;

use stitch_session::config::Surroundings;
use stitch_toolchain::environment::Environment;

use crate::frames::{FrameReader, encode};
use crate::{Options, serve};

/// Long enough for a slow machine, short enough to fail.
const PATIENCE: Duration = Duration::from_secs(20);

/// What most tests open.
pub const URI: &str = "file:///w/k.cu";

pub struct TestServer {
    input: Option<DuplexStream>,
    output: Option<DuplexStream>,
    frames: FrameReader,
    unread: VecDeque<Value>,
    next_id: i64,
    serving: JoinHandle<u8>,
}

impl TestServer {
    /// A server that nothing was said to.
    pub fn bare() -> Self {
        Self::with(isolated())
    }

    pub fn with(options: Options) -> Self {
        let (input, to_read) = tokio::io::duplex(64 << 10);
        let (output, to_write) = tokio::io::duplex(64 << 10);
        let serving =
            tokio::spawn(async move { serve(to_read, SyncIoBridge::new(to_write), options).await.unwrap() });
        Self {
            input: Some(input),
            output: Some(output),
            frames: FrameReader::default(),
            unread: VecDeque::new(),
            next_id: 0,
            serving,
        }
    }

    /// A server that is initialized for a client that can do nothing special.
    pub async fn plain() -> Self {
        Self::start(json!({})).await
    }

    /// A server that is initialized for a client with these capabilities.
    pub async fn start(capabilities: Value) -> Self {
        let mut server = Self::bare();
        server.request("initialize", json!({"capabilities": capabilities})).await.unwrap();
        server.notify("initialized", json!({})).await;
        server
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("not closed").write_all(bytes).await.unwrap();
    }

    pub async fn send(&mut self, body: &Value) {
        self.write(&encode(&body.to_string())).await;
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends a request; the id to wait for.
    pub async fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        let mut body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if params.is_null() {
            body.as_object_mut().unwrap().remove("params");
        }
        self.send(&body).await;
        id
    }

    /// The result of a request, or its error.
    pub async fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let mut message = self.find(|message| message["id"] == id && message.get("method").is_none()).await;
        match message.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(message["result"].take()),
        }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// The code of the error that a request is answered with.
    pub async fn refusal(&mut self, method: &str, params: Value) -> i64 {
        self.request(method, params).await.expect_err("an error")["code"].as_i64().unwrap()
    }

    pub async fn open(&mut self, uri: &str, language: &str, version: i32, text: &str) {
        let document = json!({"uri": uri, "languageId": language, "version": version, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document})).await;
    }

    /// `changes` are `[[line, column], [line, column], text]`, or a text alone for all of it.
    pub async fn change(&mut self, uri: &str, version: i32, changes: &[Value]) {
        let changes: Vec<Value> = changes
            .iter()
            .map(|change| match change {
                Value::String(text) => json!({"text": text}),
                other => {
                    json!({"range": {"start": point(&other[0]), "end": point(&other[1])}, "text": other[2]})
                }
            })
            .collect();
        let document = json!({"uri": uri, "version": version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}))
            .await;
    }

    pub async fn close(&mut self, uri: &str) {
        self.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    }

    /// The next diagnostics, of any document.
    pub async fn published(&mut self) -> Value {
        self.find(|message| message["method"] == "textDocument/publishDiagnostics").await["params"].take()
    }

    /// The diagnostics of a version; older ones before it are read over.
    pub async fn diagnostics(&mut self, version: i32) -> Value {
        loop {
            let published = self.published().await;
            if published["version"] == version {
                return published;
            }
        }
    }

    /// The next log line.
    pub async fn logged(&mut self) -> String {
        let message = self.find(|message| message["method"] == "window/logMessage").await;
        message["params"]["message"].as_str().unwrap().to_owned()
    }

    /// The next message that fits; others wait.
    pub async fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&fits) {
            return self.unread.remove(at).unwrap();
        }
        loop {
            let message = self.read().await.expect("a message before the end");
            if fits(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    /// The next message from the wire; `None` at its end.
    pub async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.frames.next_frame() {
                return Some(serde_json::from_slice(&frame.unwrap()).unwrap());
            }
            let mut bytes = [0; 16 << 10];
            let output = self.output.as_mut().expect("still reading");
            let count =
                tokio::time::timeout(PATIENCE, output.read(&mut bytes)).await.expect("an answer in time");
            match count.unwrap() {
                0 => return None,
                count => self.frames.push(&bytes[..count]),
            }
        }
    }

    /// The result of the hook that tells which text a request sees.
    pub async fn text_of(&mut self, uri: &str) -> String {
        let answer = self.request("test/pinned", at(uri, 0, 0)).await.unwrap();
        answer[0].as_str().expect("an open document").to_owned()
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn stop_reading(&mut self) {
        self.output = None;
    }

    /// Waits for the end without saying anything.
    pub async fn status(self) -> u8 {
        tokio::time::timeout(PATIENCE, self.serving).await.expect("an end in time").unwrap()
    }

    /// Ends the server as a client should. Nothing may be left unread but what `ignored` names.
    pub async fn finish_ignoring(mut self, ignored: &[&str]) {
        self.request("shutdown", Value::Null).await.unwrap();
        self.send(&json!({"jsonrpc": "2.0", "method": "exit"})).await;
        while let Some(message) = self.read().await {
            self.unread.push_back(message);
        }
        self.unread
            .retain(|message| message["method"].as_str().is_none_or(|method| !ignored.contains(&method)));
        assert!(self.unread.is_empty(), "left unread: {:?}", self.unread);
        assert_eq!(self.status().await, 0);
    }

    pub async fn finish(self) {
        self.finish_ignoring(&[]).await;
    }
}

/// A server that sees nothing of the machine it runs on: no toolkit, no settings, no cache.
pub fn isolated() -> Options {
    let nowhere = std::env::temp_dir().join("stitchcuda-tests-nowhere");
    Options {
        owns_process: false,
        // Without a toolkit a compile would only say so.
        surroundings: Surroundings {
            flags: vec![("compile.onSave".into(), "false".into())],
            ..Surroundings::default()
        },
        environment: Environment::from_variables::<&str, &str>([]).with_root(nowhere),
    }
}

fn point(pair: &Value) -> Value {
    json!({"line": pair[0], "character": pair[1]})
}

/// Parameters of a request at a position.
pub fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}
