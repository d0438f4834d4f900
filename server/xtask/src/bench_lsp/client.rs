//! A client that says when each message came.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::source;

/// A message, and when it was read.
pub struct Arrived {
    /// When.
    pub at: Instant,
    /// What.
    pub message: Value,
}

/// A running server.
pub struct Client {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Arrived>,
    next_id: u64,
}

impl Client {
    /// Starts a server.
    pub fn start(command: &[&OsStr], folder: &Path) -> Result<Self> {
        let [program, arguments @ ..] = command else { bail!("no program to start") };
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            bail!("the server has no standard streams")
        };
        let (sender, messages) = channel();
        std::thread::spawn(move || read(output, &sender));
        Ok(Self { child, input, messages, next_id: 0 })
    }

    /// `initialize` and `initialized`.
    pub fn initialize(&mut self, folder: &Path) -> Result<()> {
        let root = source::folder_uri(folder);
        let params = json!({
            "processId": std::process::id(),
            "rootUri": root,
            "workspaceFolders": [{"uri": root, "name": "bench"}],
            "capabilities": {"textDocument": {
                "publishDiagnostics": {"versionSupport": true, "relatedInformation": true},
                "hover": {"contentFormat": ["markdown"]},
            }},
            // A compile beside the typing would measure the compiler.
            "initializationOptions": {"settings": {"compile": {"onSave": false}}},
        });
        let id = self.request("initialize", &params)?;
        self.wait(Duration::from_secs(60), |message| message["id"] == id)?;
        self.notify("initialized", &json!({}))
    }

    /// Sends a request; its id.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}))?;
        Ok(self.next_id)
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn send(&mut self, body: &Value) -> Result<()> {
        let body = body.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.input.flush().context("writing to the server")
    }

    /// The next message, if one comes before `until`. Requests of the server are answered on the way.
    pub fn next(&mut self, until: Instant) -> Result<Option<Arrived>> {
        match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(arrived) => {
                if arrived.message.get("method").is_some() && arrived.message.get("id").is_some() {
                    let id = &arrived.message["id"];
                    self.send(&json!({"jsonrpc": "2.0", "id": id, "result": null}))?;
                }
                Ok(Some(arrived))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the server ended"),
        }
    }

    fn wait(&mut self, patience: Duration, fits: impl Fn(&Value) -> bool) -> Result<Arrived> {
        let until = Instant::now() + patience;
        while let Some(arrived) = self.next(until)? {
            if fits(&arrived.message) {
                return Ok(arrived);
            }
        }
        bail!("no answer in {} s", patience.as_secs())
    }

    /// Waits for the findings of a version.
    pub fn diagnostics(&mut self, version: u64, patience: Duration) -> Result<()> {
        let fits = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["version"] == version
        };
        self.wait(patience, fits).map(drop)
    }

    /// What the process holds in memory, in megabytes. `None` where the system does not tell.
    pub fn memory(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes / 1000.0 * 1.024)
    }

    /// Ends the server in order; what does not end is killed.
    pub fn end(mut self) {
        let _ = self.request("shutdown", &Value::Null);
        let _ = self.notify("exit", &Value::Null);
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(output: ChildStdout, sender: &Sender<Arrived>) {
    let mut output = BufReader::new(output);
    while let Some(body) = frame(&mut output) {
        let at = Instant::now();
        let Ok(message) = serde_json::from_slice(&body) else { return };
        if sender.send(Arrived { at, message }).is_err() {
            return;
        }
    }
}

fn frame(output: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().ok();
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    Some(body)
}
