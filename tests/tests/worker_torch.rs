//! PyTorch code on another machine, with its imports and its input files.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value, json};
use stitch_tests::cli::{Folder, finish};
use stitch_tests::endpoint::{Answer, Endpoint};
use stitch_tests::worker::{Machine, ordering};

/// The interpreter that has torch, as that machine knows it.
fn python() -> String {
    std::env::var("STITCHCUDA_TEST_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned())
}

const REFERENCE: &str = "import torch\nfrom parts.scaling import scale\n\n\nclass Model(torch.nn.Module):\n    def __init__(self, factor):\n        super().__init__()\n        \
    self.factor = factor\n\n    def forward(self, x):\n        return scale(x, self.factor)\n\n\ndef get_init_inputs():\n    return [3.0]\n\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n";

#[test]
fn modules_and_what_they_import_are_verified_elsewhere() {
    if std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some() {
        return;
    }
    let machine = Machine::bare().unwrap();
    let candidate = REFERENCE
        .replace("class Model(", "class ModelNew(")
        .replace("scale(x, self.factor)", "x * self.factor");
    let wrong = candidate.replace("x * self.factor", "x * 3.1");
    let raises = candidate.replace("return x * self.factor", "raise ValueError(__file__)");
    // What no JSON has a number for.
    let nan = candidate.replace("x * self.factor", "x * float(\"nan\")");
    let folder = Folder::with(&[
        ("ref.py", REFERENCE.to_owned()),
        ("good.py", candidate),
        ("wrong.py", wrong),
        ("nan.py", nan),
        ("raises.py", raises),
        ("parts/__init__.py", String::new()),
        ("parts/scaling.py", "def scale(x, factor):\n    return x * factor\n".to_owned()),
        ("parts/unused.py", "raise ImportError\n".to_owned()),
    ])
    .unwrap();
    let python = python();
    for (candidate, status, answer) in [
        ("good.py", 0, "correct"),
        ("wrong.py", 1, "wrong"),
        ("nan.py", 1, "wrong"),
        ("raises.py", 1, "crashed"),
    ] {
        let arguments = verifying(&python, "ref.py", candidate);
        let finished =
            finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
        let verdict = finished.json().unwrap();
        assert_eq!((finished.status, &verdict["answer"]), (Some(status), &json!(answer)), "{verdict:#}");
        assert!(verdict["device"].as_str().unwrap().starts_with("cpu on "), "{verdict:#}");
        assert!(!finished.out.contains(&*machine.home().to_string_lossy()), "{}", finished.out);
    }
    // Four modules that were named, the reference, the package and what is imported of it.
    assert_eq!(machine.contents(), 7);
}

/// The arguments that have a candidate compared on a processor, and nothing timed.
fn verifying<'a>(python: &'a str, reference: &'a str, candidate: &'a str) -> [&'a str; 12] {
    [
        "verify",
        "--format",
        "json",
        "--device",
        "cpu",
        "--python",
        python,
        "--calls",
        "0",
        "--no-compile-baseline",
        reference,
        candidate,
    ]
}

#[test]
fn an_interpreter_that_is_missing_there_is_said_with_the_machine() {
    let (machine, folder) = (Machine::bare().unwrap(), Folder::with(&[("ref.py", REFERENCE)]).unwrap());
    let arguments = ["verify", "--device", "cpu", "--python", "/no/such/python", "ref.py", "ref.py::Model"];
    let finished = finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    let said = finished.err.starts_with("error: On ") && finished.err.contains("/no/such/python");
    assert!(said, "{}", finished.err);
}

#[test]
fn an_input_file_travels_once() {
    if std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some() {
        return;
    }
    let machine = Machine::bare().unwrap();
    let text = "import torch\n\n\n# stitchcuda: inputs(file=\"x.pt\")\ndef double(x):\n    return x * 2\n";
    let folder = Folder::with(&[("ref.py", text), ("cand.py", &text.replace("x * 2", "x + x"))]).unwrap();
    let python = python();
    let made = Command::new(&python)
        .args(["-c", "import torch; torch.save((torch.randn(600, 600),), 'x.pt')"])
        .current_dir(folder.path().unwrap())
        .status()
        .unwrap();
    assert!(made.success());
    let arguments = verifying(&python, "ref.py::double", "cand.py::double");
    let log = machine.home().join("traffic");
    let command = machine.shell(&format!("tee -a '{}' | WORKER", log.display())).unwrap();
    let sent = || {
        let finished = finish(&mut ordering(&folder, &command, &arguments).unwrap()).unwrap();
        assert_eq!(finished.status, Some(0), "{}\n{}", finished.err, finished.out);
        assert_eq!(finished.json().unwrap()["answer"], "correct");
        let bytes = std::fs::metadata(&log).unwrap().len();
        std::fs::remove_file(&log).unwrap();
        bytes
    };
    // The first time 1.44 MB of numbers in base64, the second time nothing of them.
    assert!(sent() > 1_800_000);
    assert!(sent() < 20_000);
}

/// A module whose loop over columns a matrix product does at once.
const LOOP: &str = r#"import torch
from torch import nn


class Score(nn.Module):
    # stitchcuda: init(48)
    # stitchcuda: inputs(randn(64, 48))
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
        for column in range(x.shape[1]):
            total = total + x[:, column] * self.weight[column]
        return total
"#;

#[test]
fn a_model_here_writes_what_is_judged_elsewhere() {
    if std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some() {
        return;
    }
    let machine = Machine::bare().unwrap();
    let (before, after) = LOOP.split_at(LOOP.find("        total = ").unwrap());
    assert!(!before.is_empty());
    let edit = |line: &str| {
        Answer::text(&format!("<<<<<<< SEARCH\n{after}=======\n        {line}\n>>>>>>> REPLACE\n"))
    };
    let tasks = |tasks: Value| Answer::text(&json!({"summary": "One product.", "tasks": tasks}).to_string());
    let endpoint = Endpoint::with(vec![
        tasks(json!([{"title": "One product", "scope": ["Score"]}])),
        edit("return x @ self.wieght"),
        edit("return x @ self.weight"),
        tasks(json!([])),
    ])
    .unwrap();
    let folder = Folder::with(&[("model.py", LOOP)]).unwrap();
    let python = python();
    let arguments = [
        "optimize",
        "model.py::Score",
        "--engine",
        "llm",
        "--device",
        "cpu",
        "--apply",
        "--format",
        "json",
        "--python",
        &python,
    ];
    let mut command = ordering(&folder, &machine.command().unwrap(), &arguments).unwrap();
    command.env("STITCHCUDA_MODEL_ENDPOINT", endpoint.base()).env("STITCHCUDA_MODEL_NAME", "scripted");
    let run = finish(&mut command).unwrap();
    assert_eq!(run.status, Some(0), "{}\n{}", run.err, run.out);
    let events: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let attempts: Vec<&Value> = events.iter().filter(|event| event["entry"] == "attempt").collect();
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes.last(), Some(&"kept"), "{}", run.out);
    assert!(attempts.last().unwrap().to_string().contains("cpu on "), "{}", run.out);
    assert!(!run.out.contains(&*machine.kept().to_string_lossy()), "{}", run.out);
    let now = std::fs::read_to_string(folder.path().unwrap().join("model.py")).unwrap();
    assert!(now.contains("x @ self.weight") && now.contains("total + x[:, column]"), "{now}");
}
