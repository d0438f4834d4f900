//! `stitchcuda optimize model.py::Name` with a scripted model, on CPU tensors under a real torch.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "says why a test was left out")]

use std::process::Command;

use serde_json::{Value, json};
use stitch_tests::cli::{Finished, Folder, finish};
use stitch_tests::endpoint::{Answer, Endpoint};

/// A module whose loop over columns a matrix product does at once.
const MODEL: &str = r#""""Scores."""
import torch
from torch import nn


class Score(nn.Module):
    """A weighted sum of each row."""

    # stitchcuda: init(48)
    # stitchcuda: inputs(randn(64, 48))
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))
        self.register_buffer("offset", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
        for column in range(x.shape[1]):
            total = total + x[:, column] * self.weight[column]
        return total + self.offset


def unrelated():
    return Score(3)
"#;

/// What the edited file must still be, as a program that prints the name of each thing that holds.
const CHECK: &str = r#"
import inspect, sys
import torch
sys.path.insert(0, sys.argv[1])
import model, original
torch.manual_seed(3)
new, old = model.Score(48), original.Score(48)
old.load_state_dict(new.state_dict(), strict=True)
print("keys", list(new.state_dict()) == list(old.state_dict()))
print("signature", inspect.signature(model.Score.forward) == inspect.signature(original.Score.forward))
print("init", inspect.signature(model.Score.__init__) == inspect.signature(original.Score.__init__))
with torch.no_grad():
    for shape in ((64, 48), (5, 48), (64, 48)):
        x = torch.randn(shape)
        print(shape, torch.allclose(new(x), old(x), atol=1e-5))
x = torch.randn(64, 48, requires_grad=True)
new(x).sum().backward()
print("gradient", torch.allclose(x.grad, old.weight.expand(64, 48), atol=1e-5))
print("other", isinstance(model.unrelated(), model.Score))
used = []
torch.watched = lambda: used.append(1)
x = torch.randn(64, 48)
for module in new.train(), new.eval():
    with torch.no_grad():
        new(x)
    new(x)
print("both modes, where no gradients are needed", len(used) == 2)
"#;

/// A Python with torch, as the product finds it; `None` where the test command said that there is none.
fn python() -> Option<String> {
    if std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some() {
        eprintln!("left out: there is no PyTorch here");
        return None;
    }
    let has_torch = |python: &&str| {
        Command::new(python).args(["-c", "import torch"]).output().is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_torch);
    Some(found.expect("a Python with torch; without one set STITCHCUDA_TESTS_WITHOUT_TORCH").to_owned())
}

/// An answer that puts `lines` in the place of the loop.
fn edit(lines: &str) -> Answer {
    let search = "        total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)\n        for column in range(x.shape[1]):\n            \
                  total = total + x[:, column] * self.weight[column]\n        return total + self.offset\n";
    Answer::text(&format!("<<<<<<< SEARCH\n{search}=======\n{lines}>>>>>>> REPLACE\n"))
}

fn plan(titles: &[&str]) -> Answer {
    let tasks: Vec<Value> = titles.iter().map(|title| json!({"title": title, "scope": ["Score"]})).collect();
    Answer::text(
        &json!({"summary": "A loop in Python does what one product can.", "tasks": tasks}).to_string(),
    )
}

/// Optimises a target of a file with a scripted model, and applies what comes of it. The file as it was stands beside it as `original.py`.
fn optimised(endpoint: &Endpoint, name: &str, text: &str, target: &str) -> (Folder, Finished) {
    let folder = Folder::with(&[(name, text), ("original.py", text)]).unwrap();
    let arguments = ["optimize", target, "--engine", "llm", "--device", "cpu", "--apply", "--format", "json"];
    let mut command = folder.command(&arguments).unwrap();
    command.env("STITCHCUDA_MODEL_ENDPOINT", endpoint.base()).env("STITCHCUDA_MODEL_NAME", "scripted");
    let run = finish(&mut command).unwrap();
    assert_eq!(run.status, Some(0), "{}\n{}", run.err, run.out);
    (folder, run)
}

#[test]
fn a_module_is_made_faster_and_keeps_its_name_its_keys_and_its_original() {
    let Some(python) = python() else { return };
    let endpoint = Endpoint::with(vec![
        plan(&["One product"]),
        edit("        return x @ self.weight\n"),
        edit("        return x @ self.wieght + self.offset\n"),
        edit("        getattr(torch, \"watched\", int)()\n        return x @ self.weight + self.offset\n"),
        plan(&[]),
    ])
    .unwrap();
    let (folder, run) = optimised(&endpoint, "model.py", MODEL, "model.py::Score");
    let planned = endpoint.questions()[0].text();
    assert!(planned.contains("by torch.profiler on the CPU"), "{planned}");
    let line = 1 + MODEL.lines().position(|line| line.contains("total = total +")).unwrap();
    assert!(planned.contains(&format!("- model.py:{line}: ")) && planned.contains("aten::mul"), "{planned}");
    let events: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let attempts: Vec<(&str, bool)> = events
        .iter()
        .filter(|event| event["entry"] == "attempt")
        .map(|event| (event["outcome"].as_str().unwrap(), !event["composedOf"].is_null()))
        .collect();
    // The first forgets the buffer, which is zero only as it is constructed.
    assert_eq!(
        attempts,
        [("wrong", false), ("wrong", false), ("kept", false), ("kept", true)],
        "{}",
        run.out
    );
    let told = endpoint.questions()[2].text();
    assert!(told.contains("other parameters"), "what differs is told: {told}");
    let last = events.last().unwrap();
    assert!(last["conclusion"]["gain"].as_f64().unwrap() > 1.5, "{last}");
    assert!(
        run.out.contains("The new code runs in both modes, where no gradients are needed"),
        "{}",
        run.out
    );

    let text = std::fs::read_to_string(folder.path().unwrap().join("model.py")).unwrap();
    assert!(text.contains("for column in range(x.shape[1]):") && text.contains("x @ self.weight"), "{text}");
    std::fs::write(folder.path().unwrap().join("check.py"), CHECK).unwrap();
    let checked = Command::new(python)
        .arg(folder.path().unwrap().join("check.py"))
        .arg(folder.path().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(said.lines().count(), 9, "{said}");
    assert!(said.lines().all(|line| line.ends_with("True")), "{said}");
}

/// A module with tied weights, a buffer that is not in its state dictionary, and dropout.
const TIED: &str = r#"import torch
from torch import nn


class Tied(nn.Module):
    # stitchcuda: init(30, 8)
    # stitchcuda: inputs(randint(0, 30, (16, 12)))
    def __init__(self, size, width):
        super().__init__()
        self.emb = nn.Embedding(size, width)
        self.out = nn.Linear(width, size, bias=False)
        self.out.weight = self.emb.weight
        self.drop = nn.Dropout(0.5)
        self.register_buffer("scale", torch.full((1,), 2.0), persistent=False)

    def forward(self, ids):
        rows = []
        for row in range(ids.shape[0]):
            rows.append(torch.stack([self.out(self.drop(self.emb(one))) for one in ids[row]]))
        return torch.stack(rows) * self.scale
"#;

/// What the edited file must still be, as a program that prints the name of each thing that holds.
const CHECK_TIED: &str = r#"
import sys
import torch
sys.path.insert(0, sys.argv[1])
import tied, original
new, old = tied.Tied(30, 8).eval(), original.Tied(30, 8).eval()
old.load_state_dict(new.state_dict(), strict=True)
used = []
torch.watched = lambda: used.append(1)
ids = torch.randint(0, 30, (16, 12))
with torch.no_grad():
    print("evaluation", torch.allclose(new(ids), old(ids), atol=1e-5) and len(used) == 1)
    new.train()(ids)
    print("training draws by the original", len(used) == 1)
    new.eval().out.weight = torch.nn.Parameter(torch.rand(30, 8))
    old.out.weight = new.out.weight
    print("weights that are two", torch.allclose(new(ids), old(ids), atol=1e-5) and len(used) == 1)
"#;

#[test]
fn a_module_with_tied_weights_and_dropout_is_made_faster_in_evaluation_mode() {
    let Some(python) = python() else { return };
    let lines: Vec<&str> = TIED.lines().skip_while(|line| !line.contains("rows = []")).collect();
    // Dropout draws in another order here.
    let new = "        getattr(torch, \"watched\", int)()\n        return self.out(self.drop(self.emb(ids.t()))).transpose(0, 1) * self.scale\n";
    let plan = |tasks: Value| Answer::text(&json!({"summary": "A loop.", "tasks": tasks}).to_string());
    let endpoint = Endpoint::with(vec![
        plan(json!([{"title": "All at once", "scope": ["Tied"]}])),
        Answer::text(&format!("<<<<<<< SEARCH\n{}\n=======\n{new}>>>>>>> REPLACE\n", lines.join("\n"))),
        plan(json!([])),
    ])
    .unwrap();
    let (folder, run) = optimised(&endpoint, "tied.py", TIED, "tied.py::Tied");
    assert!(run.out.contains("in training mode the original runs"), "{}", run.out);
    std::fs::write(folder.path().unwrap().join("check.py"), CHECK_TIED).unwrap();
    let checked = Command::new(python)
        .arg(folder.path().unwrap().join("check.py"))
        .arg(folder.path().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(said.lines().filter(|line| line.ends_with("True")).count(), 3, "{said}");
}

/// A function of which some lines are slow.
const STEPS: &str = r#"import torch


def report(x, w):
    """Says what it did."""
    count = x.shape[0]
    # stitchcuda: inputs(randn(512, 200), randn(200))
    total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
    for column in range(x.shape[1]):
        total = total + x[:, column] * w[column]
    return "%d rows" % count, total
"#;

/// What the edited function must still be.
const CHECK_STEPS: &str = r#"
import inspect, sys
import torch
sys.path.insert(0, sys.argv[1])
import steps, original
print("signature", inspect.signature(steps.report) == inspect.signature(original.report))
for shape in ((512, 200), (5, 200), (512, 200)):
    x, w = torch.randn(shape), torch.randn(200)
    got, expected = steps.report(x, w), original.report(x, w)
    print(shape, got[0] == expected[0] and torch.allclose(got[1], expected[1], atol=1e-3))
used = []
torch.watched = lambda: used.append(1)
x = torch.randn(512, 200)
steps.report(x, torch.randn(200)), steps.report(x[:9], torch.randn(200))
print("what was verified ran once", len(used) == 1)
x = torch.randn(512, 200, requires_grad=True)
w = torch.randn(200)
steps.report(x, w)[1].sum().backward()
print("gradient", torch.allclose(x.grad, w.expand(512, 200), atol=1e-5) and len(used) == 1)
"#;

#[test]
fn selected_statements_are_made_faster_and_the_rest_stays() {
    let Some(python) = python() else { return };
    let search = "    total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)\n    for column in range(x.shape[1]):\n        \
                  total = total + x[:, column] * w[column]\n";
    let edit =
        |lines: &str| Answer::text(&format!("<<<<<<< SEARCH\n{search}=======\n{lines}>>>>>>> REPLACE\n"));
    let helper = "<<<<<<< SEARCH\nimport torch\n=======\nimport torch\n\n\ndef product(a, b):\n    getattr(torch, \"watched\", int)()\n    return sum(a[:, i:i + 10] @ b[i:i + 10] for i in range(0, a.shape[1], 10))\n>>>>>>> REPLACE\n";
    let good =
        format!("{helper}<<<<<<< SEARCH\n{search}=======\n    total = product(x, w)\n>>>>>>> REPLACE\n");
    let endpoint = Endpoint::with(vec![
        plan(&["One product"]),
        edit("    total = x @ w + 1\n"),
        edit("    total = (x * w).sum(1) + count\n"),
        Answer::text(&good),
        plan(&[]),
    ])
    .unwrap();
    let (folder, run) = optimised(&endpoint, "steps.py", STEPS, "steps.py::8-10");
    let events: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<&str> = events
        .iter()
        .filter(|event| event["entry"] == "attempt")
        .map(|event| event["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["wrong", "wrong", "kept", "kept"], "{}", run.out);
    assert!(endpoint.questions()[3].text().contains("read `count`"), "what it reads is told");

    let text = std::fs::read_to_string(folder.path().unwrap().join("steps.py")).unwrap();
    assert!(
        text.contains("    else:\n        total = torch.zeros") && text.contains("return sum(a[:, i:i + 10]"),
        "{text}"
    );
    std::fs::write(folder.path().unwrap().join("check.py"), CHECK_STEPS).unwrap();
    let checked = Command::new(python)
        .arg(folder.path().unwrap().join("check.py"))
        .arg(folder.path().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{}\n{text}", String::from_utf8_lossy(&checked.stderr));
    assert!(said.lines().count() == 6 && said.lines().all(|line| line.ends_with("True")), "{said}\n{text}");
}
