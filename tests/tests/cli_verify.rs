//! `stitchcuda verify` and `profile` with a real nvcc, on the simulator: right candidates pass, and every kind of wrong one does not.

#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use stitch_tests::cli::{Finished, Folder};

/// A program that scales its input; `KERNEL` is what a candidate changes.
const PROGRAM: &str = r#"
#include <cstdio>
#include <vector>
KERNEL
int main() {
  const int n = 4096;
  std::vector<float> x(n), y(n);
  unsigned r = 1;
  for (float& v : x) { r = r * 1664525u + 1013904223u; v = (r >> 8) * (1.f / 16777216.f) + 0.25f; }
  float *dx, *dy;
  cudaMalloc(&dx, n * sizeof(float)); cudaMalloc(&dy, n * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  tiny<<<(n + 255) / 256, 256>>>(dx, dy, n);
  cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  return 0;
}
"#;

/// A kernel `tiny` with this body; `i` is the thread's index.
fn program(body: &str) -> String {
    let kernel = format!(
        "__global__ void tiny(const float* x, float* y, int n) {{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}"
    );
    PROGRAM.replace("KERNEL", &kernel)
}

const RIGHT: &str = "if (i < n) y[i] = 1e-6f * x[i] * x[i];";

fn verify(folder: &Folder, arguments: &[&str]) -> (Finished, Value) {
    let all = [&["verify", "--format", "json", "--device", "sim:h200"], arguments].concat();
    let finished = folder.run(&all).unwrap();
    let verdict = finished.json().unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(verdict["schema"], "stitchcuda.verdict/1");
    (finished, verdict)
}

fn codes(verdict: &Value) -> Vec<&str> {
    let mut codes: Vec<_> = verdict["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    codes.dedup();
    codes
}

#[test]
fn wrong_answers_are_found_however_small_and_right_ones_pass() {
    for (body, answer, message) in [
        ("if (i < n) y[i] = x[i] * (1e-6f * x[i]);", "correct", ""),
        // Far below any absolute tolerance.
        ("if (i < n) y[i] = 0.0f;", "wrong", "relative error up to 100.000 %"),
        ("if (i < n && i != 4095) y[i] = 1e-6f * x[i] * x[i];", "wrong", "element 4095"),
        ("if (i < n) y[n - 1 - i] = 1e-6f * x[i] * x[i];", "wrong", "differ"),
        ("if (i < n) y[i] = sqrtf(-x[i]);", "wrong", "NaN"),
        ("if (i < n) y[i] = missing;", "build-failed", "\"missing\" is undefined"),
        ("y[i << 20] = x[i];", "crashed", "tiny"),
        ("if (i == 0) asm volatile(\"trap;\");", "crashed", "tiny"),
    ] {
        let folder = Folder::with(&[("ref.cu", program(RIGHT)), ("cand.cu", program(body))]).unwrap();
        let (finished, verdict) = verify(&folder, &["ref.cu", "cand.cu"]);
        assert_eq!(verdict["answer"], answer, "{body}: {verdict:#}");
        assert_eq!(finished.status, Some(i32::from(answer != "correct")), "{body}");
        let findings = verdict["findings"].to_string();
        assert!(findings.contains(&message.replace('"', "\\\"")), "{body}: {message}: {verdict:#}");
        assert!(!verdict["notChecked"].as_array().unwrap().is_empty() || answer == "build-failed");
    }
}

#[test]
fn an_answer_learned_by_heart_does_not_survive_other_inputs() {
    // The sum is a whole number of the program's own inputs: right once, and never again.
    let with_sum = |body: &str| {
        format!(
            "#include <cstdio>\n__global__ void sum(const float* x, float* s) {{ {body} }}\n\
             int main() {{ float h[64], r, *x, *s; for (int i = 0; i < 64; ++i) h[i] = i + 1;\n\
             cudaMalloc(&x, 256); cudaMalloc(&s, 4); cudaMemcpy(x, h, 256, cudaMemcpyHostToDevice);\n\
             sum<<<1, 1>>>(x, s); cudaMemcpy(&r, s, 4, cudaMemcpyDeviceToHost); printf(\"%.3f\\n\", r); }}\n"
        )
    };
    let files = [
        ("ref.cu", with_sum("float t = 0; for (int i = 0; i < 64; ++i) t += x[i]; *s = t;")),
        ("good.cu", with_sum("float t = 0; for (int i = 63; i >= 0; --i) t += x[i]; *s = t;")),
        ("heart.cu", with_sum("*s = 2080.0f;")),
    ];
    let folder = Folder::with(&files).unwrap();
    let (_, verdict) = verify(&folder, &["ref.cu", "good.cu"]);
    assert_eq!(
        (&verdict["answer"], &verdict["inputs"]),
        (&json!("correct"), &json!("perturbed")),
        "{verdict:#}"
    );
    let (_, verdict) = verify(&folder, &["ref.cu", "heart.cu"]);
    assert_eq!(verdict["answer"], "wrong");
    let compared = verdict["compared"].as_array().unwrap();
    let wrong: Vec<_> =
        compared.iter().filter(|one| one["different"] != 0).map(|one| &one["inputs"]).collect();
    assert_eq!(wrong, ["perturbed", "perturbed"], "{verdict:#}");
}

#[test]
fn comparing_nothing_is_a_failure_and_fixed_inputs_are_said() {
    let quiet = "#include <cstdio>\n__global__ void k(int* p) { *p = VALUE; }\n\
                 int main() { int* p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); cudaDeviceSynchronize(); printf(\"done\\n\"); }\n";
    let telling = quiet
        .replace("printf(\"done", "int h; cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost); printf(\"done %d");
    let telling = telling.replace("\\n\")", "\\n\", h)");
    let folder = Folder::with(&[
        ("a.cu", quiet.replace("VALUE", "1")),
        ("b.cu", quiet.replace("VALUE", "2")),
        ("c.cu", telling.replace("VALUE", "1")),
    ])
    .unwrap();
    let (finished, verdict) = verify(&folder, &["a.cu", "b.cu"]);
    assert_eq!((finished.status, codes(&verdict)), (Some(1), vec!["verify/nothing-compared"]), "{verdict:#}");
    let (finished, verdict) = verify(&folder, &["c.cu", "c.cu"]);
    assert_eq!((finished.status, codes(&verdict)), (Some(0), vec!["verify/inputs-fixed"]), "{verdict:#}");
}

#[test]
fn a_candidate_that_does_not_end_is_ended() {
    let endless = program("while (n) { } if (i < n) y[i] = x[i];").replace("int n)", "volatile int n)");
    let folder = Folder::with(&[("ref.cu", program(RIGHT)), ("cand.cu", endless)]).unwrap();
    let (finished, verdict) = verify(&folder, &["--time-limit", "5", "ref.cu", "cand.cu"]);
    assert_eq!((finished.status, codes(&verdict)), (Some(1), vec!["verify/timeout"]), "{verdict:#}");
}

const SCALE: &str = "template <typename T> __global__ void scale(T* y, const T* x, const int* index, T by, int n) {\n\
                     int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = by * x[index[i]]; }\n";

#[test]
fn a_kernel_gets_a_harness_or_a_question() {
    let wrong = SCALE.replace("by * x", "x");
    let other = SCALE.replace("scale", "scale_two").replace("by * x[index[i]]", "x[index[i]] * by");
    let folder = Folder::with(&[("ref.cu", SCALE), ("wrong.cu", &wrong), ("other.cu", &other)]).unwrap();
    let asked = folder.run(&["verify", "--device", "sim:h200", "ref.cu::scale", "wrong.cu"]).unwrap();
    assert_eq!(asked.status, Some(2), "{}", asked.err);
    let flags = "--template float --shape y=1024 --shape x=1024 --shape index=1024 --scalar by=1024 --scalar n=1024 --grid 128 --block 256";
    assert!(asked.err.contains(flags), "{}", asked.err);
    let answers = [
        "--template",
        "double",
        "--shape",
        "y=1000",
        "--shape",
        "x=1000",
        "--shape",
        "index=1000",
        "--scalar",
        "by=0.5",
        "--scalar",
        "n=1000",
        "--grid",
        "4",
        "--block",
        "256",
    ];
    for (candidate, answer) in
        [("other.cu::scale_two", "correct"), ("other.cu", "correct"), ("wrong.cu", "wrong")]
    {
        let (_, verdict) = verify(&folder, &[&["ref.cu::scale", candidate], &answers[..]].concat());
        assert_eq!(
            (&verdict["answer"], &verdict["inputs"]),
            (&json!(answer), &json!("drawn")),
            "{verdict:#}"
        );
        let read_as = verdict["compared"][0]["readAs"].as_str().unwrap();
        assert!(read_as.starts_with("f64"), "{read_as}");
    }
    let kept = folder
        .run(&[&["verify", "ref.cu::scale", "--write-harness", "kept.cu"], &answers[..]].concat())
        .unwrap();
    assert_eq!(kept.status, Some(0), "{}", kept.err);
    let (_, verdict) = verify(&folder, &["kept.cu", "kept.cu"]);
    assert_eq!(verdict["answer"], "correct", "{verdict:#}");
    let again = folder
        .run(&[&["verify", "ref.cu::scale", "--write-harness", "kept.cu"], &answers[..]].concat())
        .unwrap();
    assert_eq!(again.status, Some(2), "an edited harness was overwritten");
}

#[test]
fn programs_of_several_files_and_builds_of_ones_own() {
    let main = "#include <cstdio>\n#include <cstdlib>\n__device__ float twice(float);\n__global__ void k(float* p, int n) { p[threadIdx.x] = twice(n + threadIdx.x); }\n\
                int main(int c, char** v) { float h[32], *d; cudaMalloc(&d, 128); k<<<1, 32>>>(d, c > 1 ? atoi(v[1]) : 0);\n\
                cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); printf(\"%.1f %.1f\\n\", h[0], h[31]); }\n";
    let part = "__device__ float twice(float x) { return 2 * x; }\n";
    let folder = Folder::with(&[
        ("main.cu", main),
        ("part.cu", part),
        ("new/part.cu", "__device__ float twice(float x) { return x + x; }\n"),
        ("bad/part.cu", "__device__ float twice(float x) { return x > 8 ? 2 * x : 0; }\n"),
        (
            "stitchcuda.toml",
            "[target.own]\nfiles = ['part.cu', 'main.cu']\nbuild = '\"$NVCC\" -rdc=true -o made main.cu part.cu'\nrun = './made'\nargs = ['7']\n\
             [target.listed]\nfiles = ['main.cu', 'part.cu']\nargs = ['7']\ndevice = 'sim:h200'\n",
        ),
    ])
    .unwrap();
    for (arguments, answer) in [
        (vec!["main.cu", "main.cu", "--with", "part.cu"], "correct"),
        (vec!["listed", "new/part.cu"], "correct"),
        (vec!["listed", "bad/part.cu"], "wrong"),
        (vec!["own", "new/part.cu"], "correct"),
        (vec!["own", "bad/part.cu"], "wrong"),
    ] {
        let (_, verdict) = verify(&folder, &arguments);
        assert_eq!(verdict["answer"], answer, "{arguments:?}: {verdict:#}");
    }
    assert!(!folder.path().unwrap().join("made").exists(), "a build left something in the workspace");
    let unknown = folder.run(&["verify", "owm", "new/part.cu"]).unwrap();
    assert_eq!(unknown.status, Some(2));
    assert!(
        unknown.err.contains("there are listed, own") || unknown.err.contains("there are own, listed"),
        "{}",
        unknown.err
    );
}

#[test]
fn what_can_not_be_verified_says_why() {
    let fails = "#include <cstdio>\nint main() { printf(\"no data\\n\"); return 7; }\n";
    let no_main = "__global__ void k(float* p) { *p = 1; }\n";
    let folder =
        Folder::with(&[("fails.cu", fails), ("k.cu", no_main), ("p.cu", &program(RIGHT)), ("x.txt", "")])
            .unwrap();
    for (arguments, status, message) in [
        (vec!["p.cu", "gone.cu"], 2, "neither a file nor"),
        (vec!["x.txt", "p.cu"], 2, "no CUDA source"),
        (vec!["fails.cu", "fails.cu"], 2, "ended with exit status 7"),
        (vec!["k.cu", "k.cu"], 2, "FILE.cu::KERNEL"),
        (vec!["p.cu", "p.cu", "--device", "sim:gtx480"], 3, "can't be simulated"),
        (vec!["p.cu", "p.cu", "--device", "cuda:77"], 3, "no GPU cuda:77"),
        (vec!["p.cu", "p.cu", "--device", "tpu"], 2, "device"),
        (vec!["p.cu", "p.cu", "--tolerance", "2"], 2, "from 0 to 1"),
        (vec!["p.cu::none", "p.cu"], 2, "it defines tiny"),
        (vec!["p.cu::tiny", "p.cu", "--shape", "z=4"], 2, "no array `z`; it has x, y"),
    ] {
        let device = if arguments.contains(&"--device") { vec![] } else { vec!["--device", "sim:h200"] };
        let finished = folder.run(&[&["verify"], &device[..], &arguments[..]].concat()).unwrap();
        assert_eq!(finished.status, Some(status), "{arguments:?}: {}", finished.err);
        assert!(finished.err.contains(message), "{arguments:?}: {}", finished.err);
    }
    let bare = folder.bare(&["verify", "--device", "sim:h200", "p.cu", "p.cu"]).unwrap().output().unwrap();
    assert_eq!(bare.status.code(), Some(3), "without a toolkit");
}

#[test]
fn a_profile_counts_what_memory_would_do() {
    let strided = program("if (i < n) y[i] = x[(i * 32) % n];");
    let folder = Folder::with(&[("p.cu", strided)]).unwrap();
    let finished = folder.run(&["profile", "--format", "json", "--device", "sim:h200", "p.cu"]).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert!(finished.err.contains("no error"), "what the program prints is no result: {}", finished.err);
    let report = finished.json().unwrap();
    assert_eq!((&report["schema"], &report["device"]), (&json!("stitchcuda.profile/1"), &json!("sim:h200")));
    let kernel = &report["run"]["kernels"][0];
    assert_eq!((&kernel["grid"], &kernel["launches"]), (&json!([16, 1, 1]), &json!(1)));
    let lines = kernel["counters"]["lines"].as_array().unwrap();
    // 128 warps load 32 sectors each, and store 4.
    let sectors: u64 = lines.iter().map(|line| line["count"]["sectors"].as_u64().unwrap()).sum();
    assert_eq!(sectors, 128 * (32 + 4), "{kernel:#}");
    // The same rules as for a profiler's counters, of what the simulator can know.
    let insight = &report["explanations"][0]["insights"][0];
    assert_eq!(
        (&insight["code"], &insight["rule"]),
        (&json!("ncu/uncoalesced-access"), &json!("uncoalesced-load"))
    );
    assert_eq!(report["launches"][0]["metrics"]["loadSectorsPerRequest"], 32.0);
    let human = folder.run(&["profile", "--device", "sim:h200", "p.cu"]).unwrap();
    assert!(human.out.contains("p.cu:") && human.out.contains("sectors"), "{}", human.out);
}

#[test]
fn an_interrupt_ends_a_simulation_and_leaves_nothing() {
    let endless = program("while (n) { } if (i < n) y[i] = x[i];").replace("int n)", "volatile int n)");
    let folder = Folder::with(&[("p.cu", endless)]).unwrap();
    let mut child = folder.command(&["profile", "--device", "sim:h200", "p.cu"]).unwrap().spawn().unwrap();
    let scratch = folder.path().unwrap().parent().unwrap().join("home/cache/scratch");
    let scratch = scratch.display().to_string();
    let begin = Instant::now();
    // The program is started from its own folder in the scratch folder.
    while running_with(&scratch).iter().all(|line| !line.contains("/program ") && !line.ends_with("/program"))
    {
        assert!(begin.elapsed() < Duration::from_secs(120), "no program started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let begin = Instant::now();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(running_with(&scratch), Vec::<String>::new());
}

fn running_with(word: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
    });
    lines.filter(|line| line.contains(word)).collect()
}
