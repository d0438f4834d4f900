//! `stitchcuda verify` on PyTorch code with a real torch, on the CPU: right candidates pass, and every kind of wrong one does not.
//!
//! Each folder of `data/torch` is a reference and candidates for it. A candidate's first lines say what is expected: `# expect: ANSWER [CODE] | WORDS`,
//! where `usage` stands for exit status 2, and `# flags: …`.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use stitch_tests::cli::{Finished, Folder, finish};

/// The interpreter that has torch. Where there is none, these tests can't run, and say so by failing.
fn python() -> String {
    std::env::var("STITCHCUDA_TEST_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned())
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/torch")
}

/// `verify` of two files with these flags.
fn verify(folder: &Folder, arguments: &[&str]) -> Finished {
    let python = python();
    let all = [&["verify", "--format", "json", "--device", "cpu", "--python", &python], arguments].concat();
    let mut command = folder.bare(&all).unwrap();
    // What asking the interpreter came to is kept between tests.
    let cache = std::env::temp_dir().join(format!("stitchcuda-torch-tests-{}", nix::unistd::Uid::current()));
    finish(command.env("STITCHCUDA_CACHE_DIR", cache)).unwrap()
}

/// The rest of the line `# key: …` among a file's first lines.
fn header<'a>(text: &'a str, key: &str) -> &'a str {
    let mut lines = text.lines().take_while(|line| line.starts_with('#'));
    lines.find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": ")).unwrap_or_default()
}

struct Expected<'a> {
    answer: &'a str,
    code: Option<&'a str>,
    words: &'a str,
}

fn expected(text: &str) -> Expected<'_> {
    let (left, words) = header(text, "expect")
        .split_once(" | ")
        .unwrap_or((header(text, "expect").trim_end_matches(" |"), ""));
    let mut left = left.split_whitespace();
    Expected { answer: left.next().unwrap(), code: left.next(), words: words.trim() }
}

/// Whether the test command said that there is no PyTorch on this machine.
fn is_left_out() -> bool {
    std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some()
}

/// Verifies every candidate of a folder, and gives what is not as expected.
fn folder(name: &str) {
    if is_left_out() {
        return;
    }
    let folder = Folder::new().unwrap();
    let source = data().join(name);
    let mut candidates = Vec::new();
    for entry in std::fs::read_dir(&source).unwrap().flatten() {
        let (file, text) =
            (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap());
        folder.write(&file, &text).unwrap();
        if file != "ref.py" {
            candidates.push((file, text));
        }
    }
    candidates.sort();
    assert!(!candidates.is_empty());
    let reference = std::fs::read_to_string(source.join("ref.py")).unwrap();
    let named = header(&reference, "name");
    let pointed = if named.is_empty() { "ref.py".to_owned() } else { format!("ref.py::{named}") };
    let mut wrong = Vec::new();
    for (file, text) in &candidates {
        let own: Vec<&str> = header(text, "flags").split_whitespace().collect();
        let shared: Vec<&str> = header(&reference, "flags").split_whitespace().collect();
        // A candidate says all flags that change what is asked of both, but inputs come from the reference.
        let shared = if named.is_empty() { Vec::new() } else { shared };
        let untimed = if own.contains(&"--calls") { vec![] } else { vec!["--calls", "0"] };
        let arguments = [shared, own, untimed, vec![pointed.as_str(), file.as_str()]].concat();
        let began = Instant::now();
        let finished = verify(&folder, &arguments);
        println!("{name}/{file}: {:.1} s, status {:?}", began.elapsed().as_secs_f64(), finished.status);
        if let Err(reason) = check(&expected(text), &finished) {
            wrong.push(format!("{name}/{file}: {reason}\n{}\n{}", finished.out, finished.err));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn check(expected: &Expected<'_>, finished: &Finished) -> Result<(), String> {
    let says = |text: &str| {
        if text.contains(expected.words) { Ok(()) } else { Err(format!("nothing says `{}`", expected.words)) }
    };
    if expected.answer == "usage" {
        return if finished.status == Some(2) {
            says(&finished.err)
        } else {
            Err(format!("status {:?}", finished.status))
        };
    }
    let verdict = finished.json().map_err(|error| format!("{error:#}"))?;
    let status = i32::from(expected.answer != "correct");
    if verdict["answer"] != expected.answer || finished.status != Some(status) {
        return Err(format!(
            "{} and status {:?} instead of {}",
            verdict["answer"], finished.status, expected.answer
        ));
    }
    let findings = verdict["findings"].as_array().unwrap();
    if let Some(code) = expected.code
        && !findings.iter().any(|finding| finding["code"] == code)
    {
        return Err(format!("no finding is {code}"));
    }
    // A failure says in its first finding what failed and where.
    if status == 1 {
        return says(findings[0]["message"].as_str().unwrap());
    }
    says(&serde_json::to_string(&verdict).unwrap().replace("\\\"", "\""))
}

macro_rules! folders {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                folder(stringify!($name));
            }
        )*

        #[test]
        fn every_folder_is_tried() {
            let mut there: Vec<_> =
                std::fs::read_dir(data()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
            there.sort();
            assert_eq!(there, [$(stringify!($name)),*]);
        }
    };
}

folders! {
    affine batch_norm dropout empty fails function gelu hostile in_place made_with nested own_buffer pair plain scalar softmax square steep zeros
}

#[test]
fn what_is_missing_or_wrongly_asked_is_said() {
    let folder = Folder::new().unwrap();
    folder.copy(&data().join("plain")).unwrap();
    let status = |arguments: &[&str]| {
        let finished = verify(&folder, arguments);
        (finished.status.unwrap(), finished.err)
    };
    let (code, said) = status(&["--python", "/bin/false", "ref.py", "good.py"]);
    assert!(code == 2 && said.contains("--python"), "{code}: {said}");
    let mut command =
        folder.bare(&["verify", "--device", "cpu", "--python", "/bin/false", "ref.py", "good.py"]).unwrap();
    let finished = finish(&mut command).unwrap();
    assert!(
        finished.status == Some(3) && finished.err.contains("torch"),
        "{:?}: {}",
        finished.status,
        finished.err
    );
    let (code, said) = status(&["ref.py", "nowhere.py"]);
    assert!(code == 2 && said.contains("nowhere.py can't be read"), "{code}: {said}");
    let (code, said) = status(&["ref.py::Modle", "good.py"]);
    assert!(code == 2 && said.contains("the file has"), "{code}: {said}");
    let (code, said) = status(&["good.py", "ref.py"]);
    assert!(code == 2 && said.contains("Model"), "{code}: {said}");
    let (code, said) = status(&["--dtype", "fp12", "ref.py", "good.py"]);
    assert!(code == 2 && said.contains("fp64"), "{code}: {said}");
}

#[test]
fn a_verdict_fits_its_schema_and_a_person_can_read_it() {
    if is_left_out() {
        return;
    }
    let folder = Folder::new().unwrap();
    folder.copy(&data().join("affine")).unwrap();
    let schema =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/verdict.schema.json"))
            .unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for file in ["good.py", "weight_is_one.py"] {
        let finished = verify(&folder, &["--calls", "50", "ref.py", file]);
        let verdict = finished.json().unwrap();
        let mut errors = Vec::new();
        fit(&verdict, &schema, &schema, "verdict", &mut errors);
        assert!(errors.is_empty(), "{}\n{verdict:#}", errors.join("\n"));
        println!("{file}: {} bytes of JSON", finished.out.len());
        assert!(!finished.out.contains("\"seed\":"), "{}", finished.out);
    }
    let python = python();
    let mut command = folder
        .bare(&["verify", "--device", "cpu", "--python", &python, "--calls", "50", "ref.py", "good.py"])
        .unwrap();
    let finished = finish(&mut command).unwrap();
    for words in [
        "correct: good.py against ref.py on cpu",
        "times as fast as reference",
        "Time of a call",
        "secret seeds",
        "Parameters and buffers: 2",
    ] {
        assert!(finished.out.contains(words), "{words}: {}", finished.out);
    }
    let mut command = folder
        .bare(&["verify", "--device", "cpu", "--python", &python, "ref.py", "weight_is_one.py"])
        .unwrap();
    let finished = finish(&mut command).unwrap();
    assert!(finished.out.contains("--> weight_is_one.py:4:7: class ModelNew"), "{}", finished.out);
}

/// Whether a value fits the part of JSON schema that ours is written in.
fn fit(value: &Value, schema: &Value, root: &Value, at: &str, errors: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        fit(value, &root["definitions"][name], root, at, errors);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        fit(value, part, root, at, errors);
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(options) = schema[word].as_array() {
            let fits = |option: &Value| {
                let mut inner = Vec::new();
                fit(value, option, root, at, &mut inner);
                inner.is_empty()
            };
            if !options.iter().any(fits) {
                errors.push(format!("{at}: {value} fits none of {word}"));
            }
        }
    }
    if schema.get("const").is_some_and(|only| only != value) {
        errors.push(format!("{at}: {value} is not {}", schema["const"]));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        errors.push(format!("{at}: {value} is none of {allowed:?}"));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = types.is_empty() || types.contains(&kind) || kind == "integer" && types.contains(&"number");
    if !fits {
        errors.push(format!("{at}: {value} is no {types:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            errors.push(format!("{at}: `{name}` is missing"));
        }
    }
    if let (Some(object), Some(properties)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, part) in object {
            if let Some(inner) = properties.get(name) {
                fit(part, inner, root, &format!("{at}.{name}"), errors);
            }
        }
    }
    if let (Some(items), Some(inner)) = (value.as_array(), schema.get("items")) {
        for (index, item) in items.iter().enumerate() {
            fit(item, inner, root, &format!("{at}[{index}]"), errors);
        }
    }
}

#[test]
fn an_interrupted_verification_leaves_nothing_running() {
    if is_left_out() {
        return;
    }
    let folder = Folder::new().unwrap();
    folder.copy(&data().join("plain")).unwrap();
    let marker = folder.path().unwrap().display().to_string();
    let python = python();
    let mut child = folder
        .bare(&["verify", "--device", "cpu", "--python", &python, "ref.py", "loops.py"])
        .unwrap()
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(6));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    let began = Instant::now();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(processes_with(&marker).is_empty(), "{:?}", processes_with(&marker));
}

/// Processes whose command line or folder has this in it.
fn processes_with(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let text = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace('\0', " ");
        let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if text.contains(marker) || folder.to_string_lossy().contains(marker) {
            found.push(text);
        }
    }
    found
}
