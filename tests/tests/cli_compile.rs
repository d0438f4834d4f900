//! `stitchcuda check` with a real nvcc: what it says stands where it belongs.

#![cfg(unix)]

use std::path::Path;

use serde_json::json;
use stitch_tests::cli::{Folder, findings, finish, kernel};

const ERROR_AND_WARNING: &str = "\
// Andr\u{e9}
__global__ void scale(float* data, int count) {
  int unused;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = missing * data[i];
}
";

const CLEAN: &str = "\
__global__ void scale(float* data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = 2.0f * data[i];
}
";

#[test]
fn errors_and_warnings_stand_at_their_tokens_and_set_the_status() {
    let warning = ERROR_AND_WARNING.replace("missing", "2.0f");
    for (text, status, expected) in [
        (ERROR_AND_WARNING, 1, vec!["k.cu:3:7 warning nvcc/warning", "k.cu:5:28 error nvcc/error"]),
        (&warning, 0, vec!["k.cu:3:7 warning nvcc/warning"]),
        (CLEAN, 0, vec![]),
    ] {
        let folder = Folder::with(&[("k.cu", text)]).unwrap();
        let (finished, report) = folder.check(&["k.cu"]).unwrap();
        assert_eq!(findings(&report, false), expected, "{}", finished.err);
        assert_eq!(finished.status, Some(status), "{report}");
        let sum = (&report["summary"]["errors"], &report["summary"]["warnings"]);
        assert_eq!(
            sum,
            (&json!(usize::from(status == 1)), &json!(expected.len() - usize::from(status == 1)))
        );
    }
}

#[test]
fn bytes_that_are_no_utf8_move_nothing() {
    // Latin-1 before the error, in its own line and in lines before, and once as a character that code is made of.
    let mut text = ERROR_AND_WARNING.replace("= missing", "= /* \u{e9}\u{e9} */ missing").into_bytes();
    text = String::from_utf8(text).unwrap().chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    assert!(std::str::from_utf8(&text).is_err());
    let folder = Folder::with(&[
        ("k.cu", text.as_slice()),
        ("k.cuh", text.as_slice()),
        ("h.cu", b"#include \"k.cuh\"\n"),
    ])
    .unwrap();
    for file in ["k.cu", "h.cu"] {
        let (finished, report) = folder.check(&[file]).unwrap();
        let name = if file == "k.cu" { "k.cu" } else { "k.cuh" };
        let expected = [format!("{name}:3:7 warning nvcc/warning"), format!("{name}:5:37 error nvcc/error")];
        assert_eq!(findings(&report, false), expected, "{}", finished.err);
        let files = report["files"].as_array().unwrap();
        let mut errors = files.iter().flat_map(|file| file["findings"].as_array().unwrap());
        let bytes = &errors.rfind(|finding| finding["code"] == "nvcc/error").unwrap()["range"]["bytes"];
        let [start, end] = ["start", "end"].map(|key| usize::try_from(bytes[key].as_u64().unwrap()).unwrap());
        assert_eq!(&text[start..end], b"missing");
    }
}

#[test]
fn an_error_in_a_header_is_reported_in_the_header() {
    let folder = Folder::with(&[
        ("src/k.cu", "#include \"part.cuh\"\n__global__ void k(float* p) { p[0] = half_of(p[1]); }\n"),
        ("src/part.cuh", "#pragma once\n__device__ float half_of(float x) {\n  return x / two;\n}\n"),
    ])
    .unwrap();
    for file in ["src/k.cu", "src/part.cuh"] {
        let (finished, report) = folder.check(&[file]).unwrap();
        assert_eq!(findings(&report, false), ["part.cuh:3:14 error nvcc/error"], "{}", finished.err);
        assert_eq!(finished.status, Some(1));
    }
    // The header is shown as it is seen from the folder, once for both.
    let (_, report) = folder.check(&["src", "src/k.cu"]).unwrap();
    let paths: Vec<_> = report["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["src/k.cu", "src/part.cuh"]);
    assert_eq!(findings(&report, false).len(), 1);
}

const KERNELS: &str = "\
template <int N>
__global__ void __launch_bounds__(256) sum(float* out, const float* in) {
  __shared__ float tile[N];
  tile[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = tile[N - 1];
}
__global__ void __launch_bounds__(1024, 2) crowded(float* p, int n) {
  float kept[64];
  for (int i = 0; i < 64; ++i) kept[i] = p[threadIdx.x + i * n];
  for (int round = 0; round < n; ++round)
    for (int i = 0; i < 64; ++i) kept[i] = kept[i] * kept[(i + 7) % 64] + 1.0f;
  for (int i = 0; i < 64; ++i) p[threadIdx.x + i * n] = kept[i];
}
void go(float* out, const float* in) {
  sum<256><<<10, 256>>>(out, in);
  sum<12288><<<10, 128>>>(out, in);
}
";

#[test]
fn kernels_have_their_registers_spills_and_occupancy() {
    let folder = Folder::with(&[("k.cu", KERNELS)]).unwrap();
    let (finished, report) = folder.check(&["--arch", "sm_90", "k.cu"]).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let small = kernel(&report, "sum<256>");
    assert_eq!(
        (&small["sharedBytes"], &small["blockSize"], &small["architecture"]),
        (&json!(1024), &json!(256), &json!("sm_90")),
        "{report}"
    );
    assert_eq!(small["range"]["startLine"], 2);
    assert!((1..=255).contains(&small["registers"].as_u64().unwrap()));
    assert_eq!(small["occupancy"]["ratio"], 1.0);
    // 228 KiB of shared memory hold four blocks of 48 KiB and what the system keeps of each: 16 of 64 warps.
    let large = kernel(&report, "sum<12288>");
    assert_eq!(large["sharedBytes"], 49152);
    assert_eq!(
        (&large["occupancy"]["activeBlocks"], &large["occupancy"]["ratio"]),
        (&json!(4), &json!(0.25))
    );
    assert_eq!(large["occupancy"]["limiters"], json!(["shared-memory"]));
    // Two blocks of 1024 threads leave 32 registers a thread, and the kernel keeps 64 numbers.
    let crowded = kernel(&report, "crowded");
    assert_eq!(crowded["registers"], 32);
    assert!(crowded["spillStoreBytes"].as_u64().unwrap() > 0);
    assert!(
        findings(&report, false)
            .iter()
            .any(|line| line.starts_with("k.cu:8:") && line.ends_with("ptxas/spill"))
    );

    let human = folder.run(&["check", "--arch", "sm_90", "k.cu"]).unwrap();
    let row = human.out.lines().find(|line| line.trim_start().starts_with("sum<12288>")).unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!((words[2], words[3], words[6]), ("49152", "B", "25%"), "{row}");
}

const EXTENSION: &str = r#"
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
__global__ void twice(float* data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = 2.0f * dat[i];
}
torch::Tensor run(torch::Tensor x) {
  twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
  return x;
}
"""
module = load_inline(name="twice", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=["run"])
"#;

#[test]
fn an_error_in_a_string_is_reported_in_the_python_file() {
    let folder = Folder::with(&[("m.py", EXTENSION)]).unwrap();
    let (finished, report) = folder.check(&["m.py"]).unwrap();
    assert_eq!(findings(&report, false), ["m.py:9:35 error nvcc/error"], "{}", finished.err);
    assert_eq!(finished.status, Some(1));
    folder.write("m.py", EXTENSION.replace("dat[", "data[")).unwrap();
    let (finished, report) = folder.check(&["m.py"]).unwrap();
    assert_eq!((finished.status, findings(&report, false).len()), (Some(0), 0), "{report}");
    assert_eq!(kernel(&report, "twice")["range"]["startLine"], 7);
    assert_eq!(kernel(&report, "twice")["blockSizeFrom"], "launch at line 12");
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn options_files_of_a_compile_database_are_read() {
    let folder = Folder::new().unwrap();
    folder.copy(&fixture("options_file")).unwrap();
    let (finished, report) = folder.check(&["src/k.cu"]).unwrap();
    assert_eq!((finished.status, findings(&report, false).len()), (Some(0), 0), "{report}");
    assert_eq!(kernel(&report, "k")["architecture"], "sm_80");

    let options = "build/CMakeFiles/app.dir/includes_CUDA.rsp";
    std::fs::remove_file(folder.path().unwrap().join(options)).unwrap();
    let strided = "__global__ void k(float* p) { p[threadIdx.x * 32] = 1.0f; }\n";
    folder.write("src/k.cu", strided).unwrap();
    let (_, report) = folder.check(&["src/k.cu"]).unwrap();
    assert!(report["files"][0]["notCompiled"].to_string().contains(options), "{report}");
    assert_eq!(findings(&report, true), ["k.cu:1:31 information static/uncoalesced-access"]);
}

#[test]
fn a_signature_that_the_preprocessor_splits_is_no_error() {
    let folder = Folder::with(&[("split.cu", include_str!("fixtures/split_signature.cu"))]).unwrap();
    let (finished, report) = folder.check(&["split.cu"]).unwrap();
    assert_eq!(finished.status, Some(0), "{report}");
    let found = findings(&report, true);
    let lines: Vec<_> =
        found.iter().filter(|line| line.ends_with("uncoalesced-access")).map(|line| &line[..11]).collect();
    assert_eq!(lines, ["split.cu:18", "split.cu:22"], "{found:?}");
    let rows =
        report["files"][0]["kernels"].as_array().unwrap().iter().filter(|row| row["name"] == "scale_rows");
    assert_eq!(rows.count(), 1);
    assert_eq!(kernel(&report, "after")["range"]["startLine"], 21);
}

#[test]
fn flags_and_architectures_that_nvcc_refuses_are_wrong_usage_and_no_finding() {
    let folder = Folder::with(&[("k.cu", CLEAN)]).unwrap();
    let finished = folder.run(&["check", "--arch", "hopper", "k.cu"]).unwrap();
    assert_eq!((finished.status, finished.out.as_str()), (Some(2), ""));
    assert!(finished.err.contains("like `sm_90`"), "{}", finished.err);
    let (finished, report) = folder.check(&["--arch", "sm_10", "k.cu"]).unwrap();
    assert_eq!((finished.status, findings(&report, false).len()), (Some(2), 0), "{report}");
    assert!(report["files"][0]["notCompiled"].to_string().contains("architecture"), "{report}");
    let mut command = folder.command(&["check", "k.cu"]).unwrap();
    let finished = finish(command.env("STITCHCUDA_NVCC_EXTRA_FLAGS", r#"["--no-such-flag"]"#)).unwrap();
    assert_eq!(finished.status, Some(2), "{}", finished.err);
    assert!(finished.out.contains("no-such-flag"), "{}", finished.out);
}

#[test]
fn configured_flags_come_after_those_of_the_database_and_of_strings() {
    let folder = Folder::new().unwrap();
    folder.copy(&fixture("options_file")).unwrap();
    folder.write("m.py", EXTENSION.replace("dat[", "LATE[")).unwrap();
    folder
        .write("stitchcuda.toml", "[nvcc]\nextraFlags = [\"-DLATE=data\", \"-UTHREE\", \"-DTHREE=late\"]\n")
        .unwrap();
    let (finished, report) = folder.check(&["m.py"]).unwrap();
    assert_eq!((finished.status, findings(&report, false).len()), (Some(0), 0), "{report}");
    folder.write("src/k.cu", "__global__ void k(float* p) { p[0] = THREE; }\n").unwrap();
    let (_, report) = folder.check(&["src/k.cu"]).unwrap();
    assert_eq!(findings(&report, false), ["k.cu:1:1 error nvcc/error"], "a macro has no column: {report}");
}

#[test]
fn an_unchanged_file_is_not_compiled_again_and_a_changed_header_is() {
    let folder = Folder::with(&[
        ("k.cu", "#include \"k.cuh\"\n__global__ void k(float* p) { p[0] = N; }\n"),
        ("k.cuh", "#define N 1\n"),
    ])
    .unwrap();
    let (_, first) = folder.check(&["k.cu"]).unwrap();
    let begin = std::time::Instant::now();
    let (_, second) = folder.check(&["k.cu"]).unwrap();
    assert!(begin.elapsed() < std::time::Duration::from_secs(5));
    assert_eq!(first, second);
    folder.write("k.cuh", "#define N nothing\n").unwrap();
    let (finished, report) = folder.check(&["k.cu"]).unwrap();
    assert_eq!(finished.status, Some(1), "{report}");
}

#[test]
fn places_in_other_files_are_named_like_the_main_file() {
    let folder = Folder::with(&[
        ("src/k.cu", "#include \"part.cuh\"\n__global__ void k(float* p) {\n  p[0] = half_of(p[1]);\n}\n"),
        (
            "src/part.cuh",
            "#pragma once\ntemplate <class T> __device__ T half_of(T x) {\n  return x.missing;\n}\n",
        ),
    ])
    .unwrap();
    let whole = folder.path().unwrap().join("src/k.cu").display().to_string();
    for (asked, shown) in [("src/k.cu", "src/k.cu"), (&whole, &whole)] {
        let (_, report) = folder.check(&[asked]).unwrap();
        let files = report["files"].as_array().unwrap();
        let header = files.iter().find(|file| file["path"] == "src/part.cuh").unwrap();
        let related = &header["findings"][0]["related"][0];
        let place = (&related["path"], &related["line"], &related["column"]);
        assert_eq!(place, (&json!(shown), &json!(3), &json!(3)), "{report}");
    }
}

#[test]
fn the_stack_that_ptxas_can_not_tell_is_said_of_the_kernel_by_its_name() {
    let source = "__device__ int deep(int n) { return n < 2 ? 1 : deep(n - 1) * n + deep(n - 2); }\n\
                  template <int N> __global__ void spin(int* out) { out[threadIdx.x] = deep(out[N]); }\n\
                  template __global__ void spin<3>(int*);\n";
    let folder = Folder::with(&[("k.cu", source)]).unwrap();
    let (finished, report) = folder.check(&["k.cu"]).unwrap();
    let notes: Vec<_> = report["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    let note = notes.iter().find(|note| note.contains("cannot be statically determined"));
    let note = note.unwrap_or_else(|| panic!("{notes:?} {}", finished.err));
    assert!(note.contains("'spin<3>(int*)'") && !note.contains("_Z"), "{note}");
}

#[test]
fn a_name_that_a_shell_would_run_is_not_given_to_nvcc() {
    let name = "e$(touch ${HOME}..ran).cu";
    let folder = Folder::with(&[(name, "__global__ void k() {}\n")]).unwrap();
    let (finished, report) = folder.check(&[name]).unwrap();
    assert_eq!(finished.status, Some(2), "{report}");
    assert!(report.to_string().contains("rename the file"), "{report}");
    let parent = folder.path().unwrap().parent().unwrap().to_owned();
    let left = std::fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("ran")), "nothing was run");
}
