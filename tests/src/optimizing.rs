//! An editor that optimises, for tests: a client with one program open, on the simulator.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a helper of a test fails like the test")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::Folder;
use crate::lsp_client::Server;

/// A program with a kernel that the engine without a model makes better.
pub const TEXT: &str = r#"#include <cstdio>
__global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = powf(x[i], 3.0f);  // π
}
int main() {
  float *x, *y, host[256];
  for (int i = 0; i < 256; ++i) host[i] = i * 0.25f;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  energy<<<1, 256>>>(y, x, 256);
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\n", host[100]);
}
"#;

/// The lines of the kernel.
pub fn kernel() -> Value {
    json!({"start": {"line": 1, "character": 0}, "end": {"line": 4, "character": 1}})
}

/// A client with one open document, `e.cu` in a folder of its own.
pub struct Editor {
    /// The folder.
    pub folder: Folder,
    /// The server.
    pub server: Server,
    /// The document.
    pub uri: String,
}

impl Editor {
    /// Opens `text` with a client of these capabilities, which sends these options.
    pub fn new(text: &str, capabilities: Value, options: Value) -> Self {
        Self::begin(Folder::with(&[("e.cu", text)]).unwrap(), text, capabilities, options)
    }

    /// Ends the server and starts another for the same folder, which opens `text`, with a client that is our plugin.
    pub fn again(self, text: &str) -> Self {
        let Self { folder, server, .. } = self;
        drop(server);
        Self::begin(folder, text, plugin(), Value::Null)
    }

    fn begin(folder: Folder, text: &str, capabilities: Value, options: Value) -> Self {
        let command = folder.command(&["lsp"]).unwrap();
        Self::with(folder, command, text, capabilities, options)
    }

    /// The same on a machine that has nothing but the command to another one.
    pub fn elsewhere(text: &str, worker: &[String], capabilities: Value) -> Self {
        let folder = Folder::with(&[("e.cu", text)]).unwrap();
        let command = crate::worker::ordering(&folder, worker, &["lsp"]).unwrap();
        Self::with(folder, command, text, capabilities, Value::Null)
    }

    fn with(folder: Folder, mut command: Command, text: &str, capabilities: Value, options: Value) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("STITCHCUDA_COMPILE_ON_SAVE", "false").env("STITCHCUDA_DEVICE", "sim:h200");
        let mut server = Server::of(command).unwrap();
        let path = folder.path().unwrap();
        let root = format!("file://{}", path.display());
        let initialize = json!({
            "capabilities": capabilities, "initializationOptions": options,
            "workspaceFolders": [{"uri": root, "name": "w"}],
        });
        server.initialize(&initialize).unwrap();
        let uri = format!("{root}/e.cu");
        server.open(&uri, text).unwrap();
        Self { folder, server, uri }
    }

    /// Starts to optimise the kernel.
    pub fn start(&mut self) {
        let argument = json!({"uri": self.uri, "range": kernel()});
        let answer = self.execute("stitchcuda.optimize", &argument);
        assert!(answer["result"]["job"].is_u64(), "{answer}");
    }

    /// Runs a command: its answer.
    pub fn execute(&mut self, command: &str, argument: &Value) -> Value {
        let params = json!({"command": command, "arguments": [argument]});
        self.server.request("workspace/executeCommand", &params).unwrap()
    }

    /// The result of a request.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.server.request(method, &params).unwrap();
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Why a request is refused.
    pub fn refused(&mut self, method: &str, params: Value) -> String {
        let answer = self.server.request(method, &params).unwrap();
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {answer}")).to_owned()
    }

    /// The next `stitchcuda/job` that fits.
    pub fn job(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        self.next(|message| message["method"] == "stitchcuda/job" && fits(&message["params"]))["params"]
            .take()
    }

    /// The next message that fits; tokens for progress are accepted on the way.
    pub fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let is_token = |message: &Value| message["method"] == "window/workDoneProgress/create";
            let message = self.server.find(|message| is_token(message) || fits(message)).unwrap();
            if fits(&message) {
                return message;
            }
            self.server.answer(&message, &Value::Null).unwrap();
        }
    }

    /// The first message that fits each, in whatever order they come.
    pub fn each<const N: usize>(&mut self, fits: [&dyn Fn(&Value) -> bool; N]) -> [Value; N] {
        let mut found = [const { None }; N];
        while found.iter().any(Option::is_none) {
            let awaits = |message: &Value, found: &[Option<Value>; N]| {
                (0..N).find(|index| found[*index].is_none() && fits[*index](message))
            };
            let message = self.next(|message| awaits(message, &found).is_some());
            if let Some(index) = awaits(&message, &found) {
                found[index] = Some(message);
            }
        }
        found.map(|message| message.unwrap_or_default())
    }

    /// The next progress whose message contains `text`.
    pub fn progress(&mut self, text: &str) -> Value {
        self.next(|message| {
            message["method"] == "$/progress"
                && message["params"]["value"]["message"].as_str().is_some_and(|said| said.contains(text))
        })
    }

    /// The rewriting actions for a range.
    pub fn actions(&mut self, range: &Value) -> Vec<Value> {
        let context = json!({"diagnostics": [], "only": ["refactor.rewrite"], "triggerKind": 1});
        let params = json!({"textDocument": {"uri": self.uri}, "range": range, "context": context});
        let answer = self.server.request("textDocument/codeAction", &params).unwrap();
        answer["result"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until the server has no process under it.
    pub fn no_process_is_left(&self) {
        let begun = Instant::now();
        let children = format!("/proc/{0}/task/{0}/children", self.server.child.id());
        loop {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.server.child.id())).unwrap();
            let left: Vec<String> = tasks
                .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok())
                .filter(|children| !children.trim().is_empty())
                .collect();
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{children}: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// What our plugins ask for.
pub fn plugin() -> Value {
    let mut capabilities = modern();
    capabilities["experimental"] = json!({"stitchcuda": {"jobs": true, "review": true, "status": true}});
    capabilities
}

/// What VS Code says.
pub fn modern() -> Value {
    json!({
        "workspace": {"applyEdit": true, "workspaceEdit": {"documentChanges": true, "changeAnnotationSupport": {"groupsOnLabel": true}}},
        "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}, "disabledSupport": true}},
        "window": {"workDoneProgress": true},
    })
}
