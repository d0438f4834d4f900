//! What `stitchcuda check` could not do is in its report, in every format, and in its status: silence must mean something.

#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use stitch_tests::cli::{Folder, findings, finish};

const CLEAN: &str = "__global__ void k(float* a) { a[0] = 1; }\n";

/// A toolkit whose nvcc does this.
fn pretended(folder: &Folder, does: &str) -> String {
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit 0;; esac\n{does}\n"
    );
    let nvcc = folder.write("toolkit/bin/nvcc", script).unwrap();
    std::fs::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.write("toolkit/include/cuda_runtime.h", "").unwrap();
    folder.write("toolkit/include/cuda.h", "#define CUDA_VERSION 13000\n").unwrap();
    folder.write("toolkit/include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n").unwrap();
    nvcc.display().to_string()
}

fn reasons(report: &Value) -> Vec<String> {
    let files = report["files"].as_array().into_iter().flatten();
    let all = files.flat_map(|file| file["notCompiled"].as_array().into_iter().flatten());
    all.map(|not| format!("{}: {}", not["lack"].as_str().unwrap(), not["reason"].as_str().unwrap())).collect()
}

/// Checks `k.cu` in all formats: they tell the same.
fn not_compiled(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)], status: i32, says: &str) {
    for format in ["json", "sarif", "human"] {
        let mut command =
            folder.command(&[&["check", "--format", format], arguments, &["k.cu"]].concat()).unwrap();
        let finished = finish(command.envs(variables.iter().copied())).unwrap();
        assert_eq!(finished.status, Some(status), "{says} as {format}: {} {}", finished.out, finished.err);
        match format {
            "json" => {
                let report = finished.json().unwrap();
                let found = reasons(&report);
                assert!(found.len() == 1 && found[0].contains(says), "{says}: {found:?}");
                assert_eq!(report["exitStatus"], json!(status));
                assert!(!report["notes"].to_string().contains("Compiled with"), "{report}");
            }
            "sarif" => {
                let invocation = finished.json().unwrap()["runs"][0]["invocations"][0].clone();
                assert_eq!(invocation["executionSuccessful"], json!(false));
                assert_eq!(invocation["exitCode"], json!(status));
                let told = &invocation["toolExecutionNotifications"][0];
                assert_eq!(told["level"], "error");
                assert!(told["message"]["text"].as_str().unwrap().contains(says), "{told}");
                assert_eq!(told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "k.cu");
            }
            _ => {
                let line =
                    finished.out.lines().find(|line| line.starts_with("not compiled: k.cu: ")).unwrap();
                assert!(line.contains(says), "{line}");
                assert!(
                    finished.out.contains("1 file checked, 1 not wholly compiled: nothing else found."),
                    "{}",
                    finished.out
                );
            }
        }
    }
}

#[test]
fn a_compiler_that_does_not_do_its_work_is_missing() {
    for (does, says) in [
        ("kill -SEGV $$", "it said nothing"),
        ("echo what is this; exit 0", "`what is this`"),
        ("echo what is this; exit 7", "what is this"),
        ("exec yes 'what is this'", "it printed more than"),
    ] {
        let folder = Folder::with(&[("k.cu", CLEAN)]).unwrap();
        let nvcc = pretended(&folder, does);
        not_compiled(&folder, &["--nvcc", &nvcc], &[], 3, says);
    }
    let folder = Folder::with(&[("k.cu", CLEAN)]).unwrap();
    let nvcc = pretended(&folder, "sleep 100");
    let limit = [("STITCHCUDA_COMPILE_TIME_LIMIT_SECONDS", "1")];
    not_compiled(&folder, &["--nvcc", &nvcc], &limit, 3, "given up after 1 s");
    not_compiled(&folder, &["--nvcc", "/nonexistent"], &[], 3, "can't be used");
    let nowhere = folder.path().unwrap().join("toolkit/include").display().to_string();
    not_compiled(&folder, &[], &[("PATH", nowhere.as_str())], 3, "host compiler");
}

#[test]
fn input_that_a_compile_can_not_use_is_wrong() {
    let folder = Folder::with(&[("k.cu", CLEAN), ("compile_commands.json", "[{")]).unwrap();
    not_compiled(&folder, &[], &[], 2, "compile_commands.json");
    let entry =
        json!([{ "directory": folder.path().unwrap(), "command": "nvcc @gone.rsp -c k.cu", "file": "k.cu" }]);
    folder.write("compile_commands.json", entry.to_string()).unwrap();
    not_compiled(&folder, &[], &[], 2, "gone.rsp");
    std::fs::remove_file(folder.path().unwrap().join("compile_commands.json")).unwrap();
    not_compiled(&folder, &[], &[("STITCHCUDA_NVCC_EXTRA_FLAGS", r#"["-bogus-flag"]"#)], 2, "-bogus-flag");
}

#[test]
fn headers_of_a_library_are_missing_from_the_toolkit_not_from_the_code() {
    let text = format!("#include <cublas_v2.h>\n{CLEAN}");
    let folder = Folder::with(&[("k.cu", text.as_str()), ("good.cu", CLEAN)]).unwrap();
    not_compiled(&folder, &[], &[], 3, "`stitchcuda toolchain install --with cublas`");
    let (finished, report) = folder.check(&["good.cu", "k.cu"]).unwrap();
    assert_eq!((finished.status, findings(&report, false).len()), (Some(3), 0), "{report}");
    assert!(report["notes"].to_string().contains("Compiled with"), "one was: {report}");
    // An error in another file is told too; the worse status counts.
    folder.write("bad.cu", "__global__ void k(float* a) { a[0] = nope; }\n").unwrap();
    let (finished, report) = folder.check(&["bad.cu", "k.cu"]).unwrap();
    assert_eq!(finished.status, Some(3));
    assert_eq!(findings(&report, false), ["bad.cu:1:38 error nvcc/error"]);
}

#[test]
fn what_no_one_could_compile_is_said_and_is_no_failure() {
    let folder = Folder::with(&[("lone.cuh", CLEAN)]).unwrap();
    let (finished, report) = folder.check(&["lone.cuh"]).unwrap();
    assert_eq!(finished.status, Some(0));
    assert!(reasons(&report)[0].starts_with("nothing: no CUDA source"), "{report}");
    let finished = folder.run(&["check", "--format", "sarif", "lone.cuh"]).unwrap();
    let invocation = &finished.json().unwrap()["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "note");
}

#[test]
fn input_that_is_missing_and_settings_that_are_wrong_are_in_every_report() {
    let folder =
        Folder::with(&[("k.cu", CLEAN), ("stitchcuda.toml", "[nvcc]\narchitectur = \"sm_90\"\n")]).unwrap();
    let finished = folder.run(&["check", "--no-compile", "--format", "json", "gone.cu", "k.cu"]).unwrap();
    let report = finished.json().unwrap();
    assert_eq!((finished.status, &report["exitStatus"]), (Some(2), &json!(2)));
    assert_eq!(report["problems"], json!([{ "path": "gone.cu", "message": "no such file" }]));
    assert!(report["warnings"][0].as_str().unwrap().contains("architectur"), "{report}");
    let finished = folder.run(&["check", "--no-compile", "--format", "sarif", "gone.cu", "k.cu"]).unwrap();
    let invocation = &finished.json().unwrap()["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert!(invocation["toolExecutionNotifications"][0]["message"]["text"] == "gone.cu: no such file");
    assert_eq!(invocation["toolConfigurationNotifications"][0]["level"], "warning");
}

#[test]
fn odd_names_break_no_report() {
    let folder = Folder::with(&[("names/k.cu", CLEAN)]).unwrap();
    let bad = CLEAN.replace("a[0]", "b[0]");
    for name in [&b"a\xff.cu"[..], b"new\nline.cu", b"UP.CU", b"-x.cu", b"two words.cu"] {
        let path = folder.path().unwrap().join("names").join(OsStr::from_bytes(name));
        std::fs::write(path, &bad).unwrap();
    }
    for (arguments, errors) in [
        (&["check", "--no-compile", "--format", "json", "names"][..], 0),
        (&["check", "--format", "json", "names"], 5),
    ] {
        let finished = folder.run(arguments).unwrap();
        let report = finished.json().unwrap();
        let files = report["files"].as_array().unwrap();
        assert_eq!((finished.status, files.len()), (Some(i32::from(errors > 0)), 6), "{report}");
        assert_eq!(findings(&report, false).len(), errors, "{report}");
        assert!(files.iter().any(|file| file["path"] == "names/a\u{fffd}.cu"), "{report}");
    }
    let finished = folder.run(&["check", "--no-compile", "--format", "sarif", "names"]).unwrap();
    finished.json().unwrap();
}

#[test]
fn what_a_compiler_leaves_behind_is_not_left_among_the_sources() {
    let folder = Folder::with(&[("src/k.cu", CLEAN)]).unwrap();
    let nvcc = pretended(
        &folder,
        "echo litter > litter.txt; while [ $# -gt 0 ]; do [ \"$1\" = -o ] && echo code > \"$2\"; shift; done; exit 0",
    );
    let finished = folder.run(&["check", "--nvcc", &nvcc, "src/k.cu"]).unwrap();
    assert_eq!(finished.status, Some(0), "{} {}", finished.out, finished.err);
    for place in ["litter.txt", "src/litter.txt"] {
        assert!(!folder.path().unwrap().join(place).exists(), "{place}");
    }
}

#[test]
fn a_source_that_a_python_file_does_not_hold_is_told_in_every_format() {
    let text = "import cupy\nfrom kernels import SRC\ncupy.RawKernel(SRC, 'k')\n";
    let folder = Folder::with(&[("m.py", text)]).unwrap();
    let says = "the source at line 3 is not known from this file (`SRC` is imported from `kernels`)";
    for format in ["json", "sarif", "human"] {
        let finished = folder.run(&["check", "--format", format, "m.py"]).unwrap();
        assert_eq!(finished.status, Some(0), "{format}: {} {}", finished.out, finished.err);
        assert!(finished.out.contains(says), "{format}: {}", finished.out);
    }
}
