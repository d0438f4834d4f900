//! PyTorch code on another machine, with its imports and its input files.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::json;
use stitch_tests::cli::{Folder, finish};
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
    let folder = Folder::with(&[
        ("ref.py", REFERENCE.to_owned()),
        ("good.py", candidate),
        ("wrong.py", wrong),
        ("parts/__init__.py", String::new()),
        ("parts/scaling.py", "def scale(x, factor):\n    return x * factor\n".to_owned()),
        ("parts/unused.py", "raise ImportError\n".to_owned()),
    ])
    .unwrap();
    let python = python();
    for (candidate, status, answer) in [("good.py", 0, "correct"), ("wrong.py", 1, "wrong")] {
        let arguments = [
            "verify",
            "--format",
            "json",
            "--device",
            "cpu",
            "--python",
            &python,
            "--calls",
            "0",
            "--no-compile-baseline",
            "ref.py",
            candidate,
        ];
        let finished =
            finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
        let verdict = finished.json().unwrap();
        assert_eq!((finished.status, &verdict["answer"]), (Some(status), &json!(answer)), "{verdict:#}");
        assert!(verdict["device"].as_str().unwrap().starts_with("cpu on "), "{verdict:#}");
        assert!(!finished.out.contains(&*machine.home().to_string_lossy()), "{}", finished.out);
    }
    // Two modules that were named, the reference, the package and what is imported of it.
    assert_eq!(machine.contents(), 5);
}

#[test]
fn an_input_file_travels_once() {
    if std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some() {
        return;
    }
    let machine = Machine::bare().unwrap();
    let text = "import torch\n\n\n# stitchcuda: inputs(load(\"x.pt\"))\ndef double(x):\n    return x * 2\n";
    let folder = Folder::with(&[("ref.py", text), ("cand.py", &text.replace("x * 2", "x + x"))]).unwrap();
    let python = python();
    let made = Command::new(&python)
        .args(["-c", "import torch; torch.save((torch.randn(300, 300),), 'x.pt')"])
        .current_dir(folder.path().unwrap())
        .status()
        .unwrap();
    assert!(made.success());
    let arguments = [
        "verify",
        "--format",
        "json",
        "--device",
        "cpu",
        "--python",
        &python,
        "--calls",
        "0",
        "--no-compile-baseline",
        "ref.py::double",
        "cand.py::double",
    ];
    let finished = finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
    let here = finish(&mut folder.bare(&arguments).unwrap()).unwrap();
    assert_eq!(finished.status, here.status, "{}\n{}", finished.err, here.err);
    assert!(machine.contents() >= 2, "{}", finished.err);
}
