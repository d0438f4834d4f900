//! `stitchcuda verify` on candidates that build an extension: it is built outside of the candidate's process, kept, found again, and out of reach.

#![cfg(target_os = "linux")]

use std::path::Path;

use serde_json::Value;
use stitch_tests::cli::{Folder, finish};

const REFERENCE: &str = "import torch\nfrom torch import nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n\ndef get_inputs():\n    return [torch.randn(64)]\n\ndef get_init_inputs():\n    return []\n";

/// A candidate whose function is C++ without torch's headers, which not every installation has; `BEFORE` runs first.
const CANDIDATE: &str = r#"
import ctypes, os, tempfile
import torch
from torch import nn
from torch.utils import cpp_extension

BEFORE

path = os.path.join(tempfile.mkdtemp(), "add.cpp")
with open(path, "w") as file:
    file.write('extern "C" void add(const float* x, float* y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] + ADDED; }')
cpp_extension.load(name="add", sources=[path], is_python_module=False)
library = ctypes.CDLL(os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "add", "add.so"))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        library.add(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
        return y
"#;

/// A candidate's attempt on what is kept. What it makes there lies in a temporary folder of its own.
const ATTEMPT: &str = r#"
for root in ("CACHE/results", "CACHE/torch/builds"):
    if os.path.exists(root):
        raise SystemError("the cache can be seen: " + root)
    for attempt in (lambda: os.makedirs(os.path.join(root, "v1")), lambda: open(os.path.join(root, "mine"), "w").close()):
        try:
            attempt()
        except OSError:
            pass
"#;

fn verify(folder: &Folder, cache: &Path, candidate: &str) -> Value {
    let python = std::env::var("STITCHCUDA_TEST_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let mut command = folder
        .bare(&[
            "verify", "--format", "json", "--device", "cpu", "--python", &python, "--calls", "0", "ref.py",
            candidate,
        ])
        .unwrap();
    let finished = finish(command.env("STITCHCUDA_CACHE_DIR", cache)).unwrap();
    finished.json().unwrap_or_else(|error| panic!("{error:#}\n{}", finished.err))
}

fn build_seconds(verdict: &Value) -> f64 {
    let stages = verdict["stages"].as_array().unwrap();
    stages
        .iter()
        .find(|stage| stage["stage"] == "build")
        .and_then(|stage| stage["seconds"].as_f64())
        .unwrap_or(0.0)
}

/// Files below a folder, with their bytes.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_extension_is_kept_found_and_out_of_a_candidates_reach() {
    if std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let folder = Folder::new().unwrap();
    let write = |name: &str, before: &str, added: &str| {
        folder.write(name, CANDIDATE.replace("BEFORE", before).replace("ADDED", added)).unwrap();
    };
    folder.write("ref.py", REFERENCE).unwrap();
    write("good.py", "", "1");
    write("wrong.py", "", "2");
    write("reaches.py", &ATTEMPT.replace("CACHE", &cache.path().display().to_string()), "1");
    let first = verify(&folder, cache.path(), "good.py");
    assert_eq!(first["answer"], "correct", "{first}");
    let notes = first["notes"].to_string();
    assert!(!notes.contains("with all of torch's headers"), "{notes}");
    let kept = |bytes: &[u8]| bytes.windows(4).any(|part| part == b"\x7fELF");
    let libraries = || {
        files(&cache.path().join("results")).into_iter().filter(|(_, bytes)| kept(bytes)).collect::<Vec<_>>()
    };
    assert_eq!(libraries().len(), 1);
    // Another text is another library, whatever it is called.
    assert_eq!(verify(&folder, cache.path(), "wrong.py")["answer"], "wrong");
    let before = libraries();
    assert_eq!(before.len(), 2);
    let reached = verify(&folder, cache.path(), "reaches.py");
    assert_eq!(reached["answer"], "correct", "{reached}");
    assert_eq!(libraries(), before);
    assert!(files(cache.path()).iter().all(|(path, _)| !path.ends_with("mine")));
    assert!(build_seconds(&reached) < 0.5, "{reached}");
}
