//! `stitchcuda profile` of Python: classes of lines by their shapes, what lines account for, SARIF, and what is known where torch's profiler is not.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use stitch_tests::cli::{Finished, Folder, finish};
use stitch_tests::recorded::data;

/// Three lines whose operators are known, and a kernel that no line launched.
const MODEL: &str =
    "import torch\n\ndef step(a, b, c):\n    d = a @ b\n    d = d + c\n    return torch.special.zeta(d)\n";

/// A trace of two calls on an H200, as PyTorch's profiler writes it: `(line, operator, sizes, microseconds, kernel)`.
fn trace(path: &str) -> String {
    let operators = [
        (
            4,
            "aten::mm",
            json!([[4096, 4096], [4096, 4096]]),
            json!(["float", "float"]),
            2_500,
            "ampere_sgemm_128x64_nn",
        ),
        (
            5,
            "aten::add",
            json!([[8192, 8192], [8192, 8192], []]),
            json!(["float", "float", "Scalar"]),
            220,
            "vectorized_elementwise_kernel",
        ),
        (6, "aten::special_zeta", json!([[100]]), json!(["float"]), 40, "zeta_kernel"),
        (0, "", json!([]), json!([]), 20, "stray_kernel"),
    ];
    let mut events = Vec::new();
    let (mut at, mut id) = (1_000, 0);
    for (line, operator, sizes, types, took, kernel) in [&operators[..], &operators[..3]].concat() {
        id += 1;
        if line > 0 {
            let name = format!("stitchcuda.line {path}:{line}");
            events.push(json!({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 20}));
            let args = json!({"Input Dims": sizes, "Input type": types, "Concrete Inputs": ["", "", "1"]});
            events.push(json!({"ph": "X", "cat": "cpu_op", "name": operator, "pid": 1, "tid": 1, "ts": at + 2, "dur": 16, "args": args}));
        }
        let args = json!({"correlation": id});
        events.push(json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 5, "dur": 4, "args": args}));
        let args = json!({"correlation": id, "device": 0, "stream": 7});
        events.push(json!({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 15, "dur": took, "args": args}));
        at += took + 30;
    }
    json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events})
        .to_string()
}

fn folder() -> (Folder, std::path::PathBuf) {
    let folder = Folder::with(&[("model.py", MODEL)]).unwrap();
    let path = folder.path().unwrap();
    let file = folder.write("trace.json", trace("model.py")).unwrap();
    (folder, path.join(file))
}

fn import(folder: &Folder, more: &[&str]) -> Finished {
    let arguments = [&["profile", "--import", "trace.json"], more].concat();
    finish(&mut folder.bare(&arguments).unwrap()).unwrap()
}

#[test]
fn lines_have_classes_by_their_shapes_and_say_what_they_rest_on() {
    let (folder, _) = folder();
    let told = import(&folder, &[]);
    assert_eq!(told.status, Some(0), "{}", told.err);
    for words in [
        // Twice 2 * 4096^3 operations in 5 ms, of 66.9 TFLOP/s.
        "2 kernels · compute-bound",
        "82% of 66.9 TFLOP/s (FP32)",
        // Two tensors read and one written, of 268 MB each, twice in 440 µs.
        "2 kernels · memory-bound",
        "at least 1.61 GB in 440 µs: 3.66 TB/s, 76% of 4.81 TB/s",
        "no roofline class: what `aten::special_zeta` must move is not in the table",
        "lines account for 99.6% of the GPU time",
        "of no line: stray_kernel, 1 launch",
    ] {
        assert!(told.out.contains(words), "{words}\n{}", told.out);
    }
    let profile = import(&folder, &["--format", "json"]).json().unwrap();
    let python = &profile["python"];
    let bounds: Vec<&Value> =
        python["lines"].as_array().unwrap().iter().map(|line| &line["roofline"]["bound"]).collect();
    assert_eq!(bounds, ["compute", "memory", "unknown"]);
    assert!((python["attributedShare"].as_f64().unwrap() - 5520.0 / 5540.0).abs() < 1e-9, "{python}");
    assert_eq!(python["unattributed"], json!([{"name": "stray_kernel", "count": 1, "ns": 20_000}]));
    assert_eq!(python["peaks"]["device"], "NVIDIA H200");
    assert_eq!(python["lines"][1]["estimates"][0]["shapes"], "float [8192, 8192], float [8192, 8192]");
    import(&folder, &["--report", "out.html"]);
    let page = fs::read_to_string(folder.path().unwrap().join("out.html")).unwrap();
    for words in ["memory-bound", "76% of 4.81", "stray_kernel", "an estimate from the shapes of tensors"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn without_the_devices_peaks_there_is_no_class() {
    let (folder, file) = folder();
    let unknown = fs::read_to_string(&file).unwrap().replace("NVIDIA H200", "Some Other GPU");
    fs::write(&file, unknown).unwrap();
    let told = import(&folder, &[]);
    assert!(
        told.out.contains("no roofline class: the peaks of Some Other GPU are not in the table of devices"),
        "{}",
        told.out
    );
    assert!(!told.out.contains("-bound"), "{}", told.out);
}

#[test]
fn what_is_told_at_lines_is_printed_as_sarif_too() {
    let (folder, file) = folder();
    // The same call waits for the device: a line to tell something at.
    let events = fs::read_to_string(&file).unwrap();
    let waits = (0..12).map(|at| {
        let ts = 10_000 + at * 3_000;
        format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"stitchcuda.line model.py:5","pid":1,"tid":1,"ts":{ts},"dur":2000}},
               {{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":1,"tid":1,"ts":{},"dur":1900,"args":{{"correlation":{}}}}},
               {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":500,"args":{{"correlation":9999,"device":0,"stream":7}}}}"#,
            ts + 10, 900 + at, ts + 100
        )
    });
    let waits: Vec<String> = waits.collect();
    fs::write(&file, events.replace("\"traceEvents\":[", &format!("\"traceEvents\":[{},", waits.join(","))))
        .unwrap();
    let finished = import(&folder, &["--format", "sarif"]);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let log = finished.json().unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let wait = results
        .iter()
        .find(|result| result["ruleId"] == "nsys/synchronization")
        .unwrap_or_else(|| panic!("{log}"));
    let place = &wait["locations"][0]["physicalLocation"];
    assert!(place["artifactLocation"]["uri"].as_str().unwrap().ends_with("model.py"), "{place}");
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&json!(5), &json!(5)));
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules[wait["ruleIndex"].as_u64().unwrap() as usize]["id"], wait["ruleId"]);
    assert_eq!(run["invocations"][0]["exitCode"], 0);
    let said = run["invocations"][0]["toolExecutionNotifications"].to_string();
    assert!(said.contains("a file of PyTorch's profiler"), "{said}");
}

#[test]
fn a_program_on_the_simulator_is_told_as_sarif() {
    let text = "__global__ void k(float *x) { x[threadIdx.x * 32] = 1; }\nint main() {\n  float *x;\n  cudaMalloc(&x, 32 * 256 * 4);\n  k<<<1, 256>>>(x);\n  return cudaDeviceSynchronize();\n}\n";
    let folder = Folder::with(&[("k.cu", text)]).unwrap();
    let finished = folder.run(&["profile", "k.cu", "--device", "sim:h200", "--format", "sarif"]).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let log = finished.json().unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let found = results
        .iter()
        .find(|result| result["ruleId"] == "ncu/uncoalesced-access")
        .unwrap_or_else(|| panic!("{log}"));
    assert_eq!(found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "k.cu");
    assert_eq!(found["level"], "note");
}

/// A report is damaged, or the tool that reads it does not work here, or is too old: only the first is a fault of the file.
#[test]
fn a_report_that_a_tool_refuses_ends_as_what_is_missing_and_a_damaged_one_as_wrong_input() {
    // What nsys 2023.4 and ncu 2024.1 say of newer and damaged reports.
    let newer = "Exportation error: Report was created in Nsight Systems version (2025.5.1.121-255136380782v0), newer than your current version (2023.4.4.54-234433681190v0).";
    for (report, content, tool, says, status) in [
        ("r.nsys-rep", &b"NVIDIA Tegra Profiler Report and more of it"[..], "nsys", newer, 3),
        (
            "r.nsys-rep",
            b"NVIDIA Tegra Profiler Report and more of it",
            "nsys",
            "Exportation error: Cannot read from stream.",
            2,
        ),
        (
            "r.nsys-rep",
            b"NVIDIA Tegra Profiler Report and more of it",
            "nsys",
            "nsys: error while loading shared libraries: libdw.so.1: cannot open shared object file: No such file or directory",
            3,
        ),
        (
            "r.ncu-rep",
            b"NVR\0\x08\x00\x00\x00 and more of it",
            "ncu",
            "==ERROR== Failed to load report file 'r.ncu-rep'.",
            2,
        ),
        (
            "r.ncu-rep",
            b"NVR\0\x08\x00\x00\x00 and more of it",
            "ncu",
            "==ERROR== Nsight Compute failed to start.",
            3,
        ),
    ] {
        let folder = Folder::new().unwrap();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *--version*) echo 'NVIDIA Version 2024.1.1.0'; exit 0;; esac\necho \"{says}\"; exit 1\n"
        );
        let fake = folder.write(&format!("bin/{tool}"), script).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        folder.write(report, content).unwrap();
        let path = format!("{}:/usr/bin:/bin", fake.parent().unwrap().display());
        let finished =
            finish(folder.bare(&["profile", "--import", report]).unwrap().env("PATH", &path)).unwrap();
        assert_eq!(finished.status, Some(status), "{says}: {}", finished.err);
        assert_eq!(
            finished.err.contains("It is damaged, or a newer version wrote it."),
            status == 2,
            "{}",
            finished.err
        );
    }
}

/// The interpreter that has torch; `None` where a person has said to do without.
fn python() -> Option<String> {
    let left_out = std::env::var_os("STITCHCUDA_TESTS_WITHOUT_TORCH").is_some();
    (!left_out)
        .then(|| std::env::var("STITCHCUDA_TEST_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned()))
}

/// A module that profiles itself: torch has one profiler a process.
const PROFILES_ITSELF: &str = "import torch\nfrom torch.profiler import profile, ProfilerActivity\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        with profile(activities=[ProfilerActivity.CPU]):\n            return torch.relu(x @ x)\n\ndef get_inputs():\n    return [torch.randn(512, 512)]\n\ndef get_init_inputs():\n    return []\n";

fn profiled(folder: &Folder, more: &[&str]) -> Option<Finished> {
    let python = python()?;
    let arguments = [&["profile", "m.py", "--device", "cpu", "--python", &python], more].concat();
    Some(finish(&mut folder.bare(&arguments).unwrap()).unwrap())
}

#[test]
fn where_torchs_profiler_does_not_run_a_call_is_timed_by_our_own_clock() {
    let folder = Folder::with(&[("m.py", PROFILES_ITSELF)]).unwrap();
    let Some(finished) = profiled(&folder, &["--format", "json"]) else { return };
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let profile = finished.json().unwrap();
    assert_eq!(profile["way"]["by"], "our own clock, around calls");
    let not_taken = profile["way"]["notTaken"].as_array().unwrap();
    let last = not_taken.last().unwrap();
    assert_eq!(last["by"], "torch.profiler on the CPU", "{not_taken:?}");
    assert!(last["why"].as_str().unwrap().starts_with("It failed: "), "{not_taken:?}");
    let call = &profile["python"]["call"];
    let [low, median, high] = ["lowNs", "medianNs", "highNs"].map(|end| call[end].as_u64().unwrap());
    assert!(0 < low && low <= median && median <= high && high < 1_000_000_000, "{call}");
    assert!(call["calls"].as_u64().unwrap() > 1, "{call}");
    let told = profiled(&folder, &["--report", "out.html"]).unwrap();
    assert!(
        told.out.contains("\nA call takes ") && told.out.contains("by our own clock, around calls"),
        "{}",
        told.out
    );
    let page = fs::read_to_string(folder.path().unwrap().join("out.html")).unwrap();
    assert!(page.contains("a call, by our own clock"));
}

#[test]
fn code_that_fails_by_itself_says_so_and_is_not_timed() {
    let text = PROFILES_ITSELF.replace("torch.relu(x @ x)", "torch.relu(x @ x[1:])");
    let folder = Folder::with(&[("m.py", text)]).unwrap();
    let Some(finished) = profiled(&folder, &["--format", "json"]) else { return };
    assert_eq!(finished.status, Some(2), "{}", finished.err);
    assert!(finished.err.contains("itself fails") && finished.out.is_empty(), "{}", finished.err);
}

#[test]
fn a_run_on_the_processor_has_no_class() {
    let folder = Folder::with(&[(
        "m.py",
        PROFILES_ITSELF.replace(
            "        with profile(activities=[ProfilerActivity.CPU]):\n            return",
            "        return",
        ),
    )])
    .unwrap();
    let Some(finished) = profiled(&folder, &[]) else { return };
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert!(finished.out.contains("aten::mm") && !finished.out.contains("-bound"), "{}", finished.out);
    assert!(!finished.out.contains("lines account for"), "{}", finished.out);
}

#[test]
fn a_trace_of_another_profiler_has_its_lines_still() {
    let folder = Folder::new().unwrap();
    let file = data("trace/train_step.json");
    let finished =
        finish(&mut folder.bare(&["profile", "--import", file.to_str().unwrap()]).unwrap()).unwrap();
    assert!(finished.out.contains("lines account for 0.0% of the GPU time"), "{}", finished.out);
    assert!(finished.out.contains("of no line: gemm_backward"), "{}", finished.out);
}
