//! Edited files under a real torch: verified calls run the candidate, all others the original, and nothing else changes.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test, which says why it was left out")]

use std::path::{Path, PathBuf};
use std::process::Command;

use stitch_analysis::target::compose::{Argument, Verified, VerifiedCall, compose, settings_script};
use stitch_analysis::target::denote::Denoted;
use stitch_analysis::target::{statements, targets};

/// A Python that has torch: `STITCHCUDA_TEST_PYTHON`, or one of the usual ones.
fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("STITCHCUDA_TEST_PYTHON") {
        return Some(python.into());
    }
    ["python3", "/usr/bin/python3"].into_iter().map(PathBuf::from).find(|python| {
        let output = Command::new(python).args(["-c", "import torch"]).output();
        output.is_ok_and(|output| output.status.success())
    })
}

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/composed");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn tensor(shape: &[u64]) -> Argument {
    Argument::Tensor {
        device: "cpu".to_owned(),
        dtype: "float32".to_owned(),
        shape: shape.to_vec(),
        strides: None,
    }
}

/// What is verified of one call; the state is that of `Scaled(4)`.
fn verified(arguments: Vec<Argument>, settings: &str) -> Verified {
    let state = [("shift", vec![4]), ("fc.weight", vec![4, 4]), ("fc.bias", vec![4])];
    let state = state.iter().map(|(name, shape)| ((*name).to_owned(), tensor(shape))).collect();
    let call = VerifiedCall { arguments, keywords: Vec::new(), state };
    Verified {
        calls: vec![call],
        gradients: false,
        training: vec![true],
        settings: vec![settings.to_owned()],
    }
}

/// What the verifier's own process says of a module of `original.py` in a folder: the digest of its settings, and a line of each entry of its state
/// dictionary with its type and sizes.
fn told_of(python: &Path, folder: &Path, module: &str) -> String {
    let script = format!(
        "{}\nimport sys\nsys.path.insert(0, {folder:?})\nfrom original import *\nmodule = {module}\nprint(settings_of(module))\n\
         for name, tensor in module.state_dict().items():\n    print(name, str(tensor.dtype)[6:], *tensor.shape)\n",
        settings_script(),
    );
    let output = Command::new(python).args(["-c", &script]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().next().map(str::len), Some(64), "{}", String::from_utf8_lossy(&output.stderr));
    told
}

#[test]
fn edited_files_run_what_was_verified_and_else_the_original() {
    let Some(python) = python() else {
        eprintln!("no Python with torch is here; set STITCHCUDA_TEST_PYTHON");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let text = fixture("scaled.py");
    let original = write("original.py", &text);
    let told = told_of(&python, folder.path(), "Scaled(4)");
    let settings = told.lines().next().unwrap_or_default();

    let put = |text: &str, name: &str, candidate: &str, arguments: Vec<Argument>| {
        let of = Denoted::Target(targets::named(text, name).unwrap());
        compose(text, &of, &fixture(candidate), &verified(arguments, settings)).unwrap().text
    };
    // One after the other into the same file, which then has the guard once.
    let broken = write("broken.py", &put(&text, "softplus", "broken_new.py", vec![tensor(&[2, 4])]));
    let edited = put(&text, "Scaled", "scaled_new.py", vec![tensor(&[2, 4])]);
    let edited = put(&edited, "softplus", "softplus_new.py", vec![tensor(&[2, 4])]);
    let line = edited.lines().position(|line| line.trim() == "y = x @ w").unwrap() as u32 + 1;
    let found = statements::on_lines(&edited, line, line + 2).unwrap();
    assert_eq!(
        (found.reads.join(" "), found.sets.join(" ")),
        ("x w i total".to_owned(), "y total".to_owned())
    );
    let mut known = verified(Vec::new(), settings);
    let int = |v: u32| Argument::Int { v: v.to_string() };
    known.calls = vec![
        VerifiedCall {
            arguments: vec![tensor(&[2, 4]), tensor(&[4, 4]), int(0), int(0)],
            ..VerifiedCall::default()
        },
        VerifiedCall {
            arguments: vec![tensor(&[2, 4]), tensor(&[4, 4]), int(1), tensor(&[2, 4])],
            ..VerifiedCall::default()
        },
    ];
    let edited =
        compose(&edited, &Denoted::Statements(found), &fixture("steps_new.py"), &known).unwrap().text;
    assert_eq!(edited.matches("class _Verified:").count(), 1);
    let edited = write("edited.py", &edited);

    let check = write("check.py", &fixture("check.py"));
    let output = Command::new(&python).args([&check, &original, &edited, &broken]).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.trim() == "good", "{out}\n{error}");
}

#[test]
fn parts_of_the_candidates_own_classes_run_on_the_files_parts() {
    let Some(python) = python() else {
        eprintln!("no Python with torch is here; set STITCHCUDA_TEST_PYTHON");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let text = fixture("parts.py");
    let original = write("original.py", &text);
    let script = format!(
        "{}\nimport sys\nsys.path.insert(0, {:?})\nfrom original import Stack\nprint(settings_of(Stack(4)))\n",
        settings_script(),
        folder.path()
    );
    let output = Command::new(&python).args(["-c", &script]).output().unwrap();
    let settings = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let block = |name: &str| {
        let part = |part: &str, shape: &[u64]| (format!("{name}.{part}"), tensor(shape));
        [part("fc.weight", &[4, 4]), part("fc.bias", &[4]), part("gate.weight", &[4])]
    };
    let mut state: Vec<(String, Argument)> =
        ["first", "rest.0", "rest.1"].iter().flat_map(|name| block(name)).collect();
    state.push(("last.weight".to_owned(), tensor(&[4])));
    let mut known = verified(vec![tensor(&[2, 4])], &settings);
    known.calls[0].state = state;
    let of = Denoted::Target(targets::named(&text, "Stack").unwrap());
    let edited = compose(&text, &of, &fixture("parts_new.py"), &known).unwrap().text;
    let edited = write("edited.py", &edited);
    let check = write("check.py", &fixture("parts_check.py"));
    let output = Command::new(&python).args([&check, &original, &edited]).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.trim() == "good", "{out}\n{error}");

    // What does not fit is refused with its reason.
    let refused = |old: &str, new: &str| {
        let candidate = fixture("parts_new.py").replace(old, new);
        compose(&text, &of, &candidate, &known).unwrap_err()
    };
    let one = refused("self.last = Gate(size)", "self.last = FastBlock(size)");
    assert!(one.contains("`FastBlock` stands for several classes"), "{one}");
    let two = refused("self.first = FastBlock(size)", "self.first = nn.Sequential(FastBlock(size))");
    assert!(two.contains("`self.first` is made of classes of the candidate's own"), "{two}");
    let three = refused("self.gate.scaled", "self.other.scaled");
    assert!(three.contains("reads `self.other`"), "{three}");
}

#[test]
fn modules_with_tied_weights_and_buffers_beside_the_state_dictionary_are_told_apart() {
    let Some(python) = python() else {
        eprintln!("no Python with torch is here; set STITCHCUDA_TEST_PYTHON");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let text = fixture("held.py");
    let original = write("original.py", &text);
    let told = told_of(&python, folder.path(), "Tied(8)");
    let mut lines = told.lines();
    let settings = lines.next().unwrap_or_default();
    let described = |dtype: &str, shape: Vec<u64>| Argument::Tensor {
        device: "cpu".to_owned(),
        dtype: dtype.to_owned(),
        shape,
        strides: None,
    };
    let mut known = verified(vec![described("int64", vec![5])], settings);
    known.calls[0].state = lines
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let shape = words[2..].iter().map(|size| size.parse().unwrap()).collect();
            (words[0].to_owned(), described(words[1], shape))
        })
        .collect();
    assert_eq!(known.calls[0].state.len(), 7, "{told}");
    let of = Denoted::Target(targets::named(&text, "Tied").unwrap());
    let edited = write("edited.py", &compose(&text, &of, &fixture("held_new.py"), &known).unwrap().text);
    let check = write("check.py", &fixture("held_check.py"));
    let output = Command::new(&python).args([&check, &original, &edited]).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.trim() == "good", "{out}\n{error}");
}
