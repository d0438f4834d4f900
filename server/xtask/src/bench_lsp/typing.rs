//! Typing: characters at several places, with hovers and hints asked for in between, and what came of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::client::{Arrived, Client};

/// How long the last answers are waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is typed at each place. Braces and quotes stay open for a while, as they do for a person.
const SNIPPETS: [&str; 4] = [
    "float total = 0.0f;\nfor (int i = threadIdx.x; i < 1024; i += blockDim.x) {\n  total += sqrtf(static_cast<float>(i)) * 2.0;\n  if (i % 3 == 0) {\n    total -= 1.0f;\n  }\n}\n",
    "const char* name = \"quoted { text } \\\" with an escape\";\nchar letter = '{';\n// a comment with ( and <<< and \"\n/* and another\n   one */ int used = name[0] + letter;\n",
    "__shared__ float tile[32][32];\ntile[threadIdx.x][threadIdx.y] = pow(2.0f, 2);\n__syncthreads();\nfloat read = tile[threadIdx.x][0];\nif (read > 0.5) { atomicAdd(&tile[0][0], read); }\n",
    "auto inner = [=](int x) { return x * (x + 1) / 2; };\nint kept = inner(threadIdx.x * 32) + inner(blockIdx.x);\nswitch (kept) {\n  case 1: { kept = 2; break; }\n  default: break;\n}\n",
];

/// What typing came to.
pub struct Typed {
    /// From a keystroke to the findings that know of it, for each.
    pub findings: Vec<Duration>,
    /// The same with what was typed.
    pub keystrokes: Vec<Keystroke>,
    /// Keystrokes whose findings never came.
    pub missing: usize,
    /// From a hover's request to its answer.
    pub hovers: Vec<Duration>,
    /// From a request for hints to its answer.
    pub hints: Vec<Duration>,
    /// Requests that were answered with an error: withdrawn since the text changed, or cancelled.
    pub withdrawn: usize,
    /// Requests that were never answered.
    pub unanswered: usize,
}

/// One keystroke.
#[derive(Clone)]
pub struct Keystroke {
    /// From it to the findings that know of it.
    pub took: Duration,
    /// The line, from zero.
    pub line: usize,
    /// The line as typed so far, the keystroke included.
    pub typed: String,
}

/// What was sent and not yet answered.
#[derive(Default)]
struct Waiting {
    versions: BTreeMap<u64, (Instant, Keystroke)>,
    hovers: BTreeMap<u64, Instant>,
    hints: BTreeMap<u64, Instant>,
}

/// How many characters are typed.
pub fn characters() -> usize {
    SNIPPETS.iter().map(|snippet| snippet.chars().count()).sum()
}

/// Lines inside functions, spread over the file, behind which something can be typed.
pub fn places(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let statement = |line: &&str| line.starts_with("  ") && line.trim_end().ends_with(';');
    let from = |at: usize| lines.iter().skip(at).position(statement).map(|found| at + found);
    (0..SNIPPETS.len()).filter_map(|n| from(lines.len() * (2 * n + 1) / (2 * SNIPPETS.len()))).collect()
}

impl Typed {
    /// Types all snippets, a character each `pause`.
    pub fn type_into(client: &mut Client, uri: &str, text: &str, pause: Duration) -> Result<Self> {
        let mut typed = Self {
            findings: Vec::new(),
            keystrokes: Vec::new(),
            missing: 0,
            hovers: Vec::new(),
            hints: Vec::new(),
            withdrawn: 0,
            unanswered: 0,
        };
        let mut waiting = Waiting::default();
        let mut version = 1;
        let mut keystroke = Instant::now();
        // From the last place to the first, so that the lines of those above stay.
        for (snippet, place) in SNIPPETS.iter().zip(places(text)).rev() {
            let (mut line, mut column) = (place + 1, 0);
            let mut begun = String::new();
            for (count, character) in snippet.chars().enumerate() {
                version += 1;
                begun.push(character);
                let stroke = Keystroke { took: Duration::ZERO, line, typed: begun.clone() };
                if character == '\n' {
                    begun.clear();
                }
                waiting.versions.insert(version, (Instant::now(), stroke));
                client.notify("textDocument/didChange", &change(uri, version, line, column, character))?;
                (line, column) = if character == '\n' { (line + 1, 0) } else { (line, column + 1) };
                if count % 4 == 3 {
                    let position = json!({"line": place, "character": 8});
                    let params = json!({"textDocument": {"uri": uri}, "position": position});
                    waiting.hovers.insert(client.request("textDocument/hover", &params)?, Instant::now());
                }
                if count % 8 == 7 {
                    let range = json!({"start": {"line": place.saturating_sub(30), "character": 0}, "end": {"line": place + 30, "character": 0}});
                    let params = json!({"textDocument": {"uri": uri}, "range": range});
                    waiting.hints.insert(client.request("textDocument/inlayHint", &params)?, Instant::now());
                }
                keystroke += pause;
                while let Some(arrived) = client.next(keystroke)? {
                    typed.take(&mut waiting, &arrived);
                }
            }
        }
        let until = Instant::now() + PATIENCE;
        while !waiting.is_empty()
            && let Some(arrived) = client.next(until)?
        {
            typed.take(&mut waiting, &arrived);
        }
        typed.missing = waiting.versions.len();
        typed.unanswered = waiting.hovers.len() + waiting.hints.len();
        Ok(typed)
    }

    fn take(&mut self, waiting: &mut Waiting, arrived: &Arrived) {
        let message = &arrived.message;
        if message["method"] == "textDocument/publishDiagnostics" {
            let Some(version) = message["params"]["version"].as_u64() else { return };
            // Findings of a version know of all keystrokes before it.
            let later = waiting.versions.split_off(&(version + 1));
            let known = std::mem::replace(&mut waiting.versions, later);
            for (sent, keystroke) in known.into_values() {
                self.findings.push(arrived.at - sent);
                self.keystrokes.push(Keystroke { took: arrived.at - sent, ..keystroke });
            }
        } else if let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_none()) {
            let (sent, latencies) = match (waiting.hovers.remove(&id), waiting.hints.remove(&id)) {
                (Some(sent), _) => (sent, &mut self.hovers),
                (_, Some(sent)) => (sent, &mut self.hints),
                _ => return,
            };
            if message.get("error").is_some() {
                self.withdrawn += 1;
            } else {
                latencies.push(arrived.at - sent);
            }
        }
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.hovers.is_empty() && self.hints.is_empty()
    }
}

fn change(uri: &str, version: u64, line: usize, column: usize, character: char) -> Value {
    let position = json!({"line": line, "character": column});
    json!({
        "textDocument": {"uri": uri, "version": version},
        "contentChanges": [{"range": {"start": position, "end": position}, "text": character.to_string()}],
    })
}
