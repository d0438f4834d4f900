//! The language server as an editor runs it: a process of its own, on pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server on pipes.
#[derive(Debug)]
pub struct Server {
    /// The process.
    pub child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: i64,
}

/// The binary, built if it is not: it lies beside the folder of the running test.
///
/// # Errors
/// It can't be built.
pub fn binary() -> Result<PathBuf> {
    static BUILD: Once = Once::new();
    let test = std::env::current_exe().context("finding the test's own program")?;
    let profile = test.ancestors().nth(2).context("the test lies in no target folder")?;
    let target = profile.parent().context("the test lies in no target folder")?;
    BUILD.call_once(|| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "-p", "stitchcuda", "--target-dir"]).arg(target);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        // If it fails, starting the binary says so.
        let _ = cargo.status();
    });
    let binary = profile.join(format!("stitchcuda{}", std::env::consts::EXE_SUFFIX));
    if !binary.exists() {
        bail!("{} is not there; run `cargo build -p stitchcuda`", binary.display());
    }
    Ok(binary)
}

/// `stitchcuda lsp`, with nothing of this machine's settings.
///
/// # Errors
/// The binary can't be built.
pub fn command() -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let nowhere = std::env::temp_dir().join("stitchcuda-tests-nowhere");
    for name in ["STITCHCUDA_CONFIG_DIR", "STITCHCUDA_STATE_DIR", "STITCHCUDA_CACHE_DIR"] {
        command.env(name, &nowhere);
    }
    command.env("STITCHCUDA_CACHE_SIZE_LIMIT_MEGABYTES", "0");
    Ok(command)
}

impl Server {
    /// Starts the server; it compiles nothing.
    ///
    /// # Errors
    /// It does not start.
    pub fn start() -> Result<Self> {
        let mut command = command()?;
        command.env("STITCHCUDA_COMPILE_ON_SAVE", "false");
        Self::of(command)
    }

    /// Starts this command.
    ///
    /// # Errors
    /// It does not start.
    pub fn of(mut command: Command) -> Result<Self> {
        let mut child = command.spawn().context("starting the server")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the server has no output")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, messages, next_id: 0 })
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// The server reads no more.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let input = self.input.as_mut().context("the input is closed")?;
        input.write_all(bytes).and_then(|()| input.flush()).context("writing to the server")
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The server reads no more.
    pub fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        self.write(&frame(&json!({"jsonrpc": "2.0", "method": method, "params": params})))
    }

    /// Sends a request and waits for its answer; the whole message.
    ///
    /// # Errors
    /// No answer came.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&frame(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))?;
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Answers a request of the server's.
    ///
    /// # Errors
    /// The server reads no more.
    pub fn answer(&mut self, request: &Value, result: &Value) -> Result<()> {
        self.write(&frame(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})))
    }

    /// `initialize` with these parameters, and `initialized`.
    ///
    /// # Errors
    /// No answer came.
    pub fn initialize(&mut self, params: &Value) -> Result<()> {
        let answer = self.request("initialize", params)?;
        answer.get("result").with_context(|| format!("initialize was refused: {answer}"))?;
        self.notify("initialized", &json!({}))
    }

    /// Opens a document in its first version.
    ///
    /// # Errors
    /// The server reads no more.
    pub fn open(&mut self, uri: &str, text: &str) -> Result<()> {
        let document = json!({"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}))
    }

    /// The next message that fits; what comes before it is dropped.
    ///
    /// # Errors
    /// None came.
    pub fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).context("waiting for a message")?;
            if fits(&message) {
                return Ok(message);
            }
        }
    }

    /// The next diagnostics that fit.
    ///
    /// # Errors
    /// None came.
    pub fn published(&mut self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let is = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics" && fits(&message["params"])
        };
        Ok(self.find(is)?["params"].take())
    }

    /// Everything that comes until the server ends.
    pub fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.messages.recv_timeout(PATIENCE).ok()).collect()
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the end: the exit status, and how long it took.
    ///
    /// # Errors
    /// It does not end, or by a signal.
    pub fn ended(&mut self) -> Result<(i32, Duration)> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().context("waiting for the server")? {
                let code =
                    status.code().with_context(|| format!("the server ended by a signal: {status}"))?;
                return Ok((code, begin.elapsed()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("the server does not end")
    }

    /// What the server wrote to its standard error.
    ///
    /// # Errors
    /// It can't be read.
    pub fn errors(&mut self) -> Result<String> {
        let mut text = String::new();
        self.child.stderr.take().context("no standard error")?.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed leaves no server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message as bytes.
pub fn frame(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn read_message(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse::<usize>().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
