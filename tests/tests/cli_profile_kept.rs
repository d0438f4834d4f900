//! `stitchcuda profile` a second time, and where the best ways do not work: what is kept, and what is still known.

#![cfg(target_os = "linux")]

use serde_json::Value;
use stitch_tests::cli::{Finished, Folder};

/// A program whose loads are as far apart as a header says.
const STRIDED: &str = r#"#include <cstdio>
#include "stride.cuh"
__global__ void gather(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[(i * STRIDE) % n];
}
int main() {
  float *x, *y, host[1024] = {};
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  gather<<<4, 256>>>(y, x, 1024);
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\n", host[100]);
}
"#;

fn profile(folder: &Folder, more: &[&str]) -> (Finished, Value) {
    on("sim:h200", folder, more)
}

fn on(device: &str, folder: &Folder, more: &[&str]) -> (Finished, Value) {
    let arguments = [&["profile", "s.cu", "--device", device, "--format", "json"], more].concat();
    let finished = folder.run(&arguments).unwrap();
    let profile = finished.json().unwrap();
    (finished, profile)
}

fn is_kept(profile: &Value) -> bool {
    profile["way"]["kept"] == true
}

#[test]
fn what_was_measured_is_kept_until_something_that_it_rests_on_changes() {
    let folder = Folder::with(&[("s.cu", STRIDED), ("stride.cuh", "#define STRIDE 32\n")]).unwrap();
    let (first, measured) = profile(&folder, &[]);
    assert_eq!((first.status, is_kept(&measured)), (Some(0), false), "{}", first.err);
    let when = measured["way"]["measured"].as_str().unwrap();
    assert!(when.ends_with('Z') && when.len() == 20, "{when}");
    let (second, kept) = profile(&folder, &[]);
    assert_eq!((second.status, is_kept(&kept)), (Some(0), true), "{}", second.err);
    assert_eq!(kept["way"]["measured"], measured["way"]["measured"]);
    assert_eq!(
        (&kept["launches"], &kept["run"]["kernels"]),
        (&measured["launches"], &measured["run"]["kernels"])
    );
    let told = folder.run(&["profile", "s.cu", "--device", "sim:h200"]).unwrap();
    assert!(told.out.contains(&format!("measured {when} and kept")), "{}", told.out);
    assert!(told.out.contains("`--fresh` measures again"), "{}", told.out);
    // Another device, other checks, other arguments and an own wish are not what was measured.
    assert!(!is_kept(&on("sim:a100", &folder, &[]).1));
    assert!(!is_kept(&profile(&folder, &["--", "7"]).1));
    assert!(!is_kept(&profile(&folder, &["--fresh"]).1));
    assert!(is_kept(&profile(&folder, &[]).1));
    // A header counts as the source does; as it was before, what was measured of it holds again.
    folder.write("stride.cuh", "#define STRIDE 1\n").unwrap();
    let (_, changed) = profile(&folder, &[]);
    assert!(!is_kept(&changed) && changed["launches"] != measured["launches"]);
    folder.write("s.cu", STRIDED.replace("256>>>", "128>>>")).unwrap();
    assert!(!is_kept(&profile(&folder, &[]).1));
}

#[test]
fn a_program_that_fails_is_not_kept() {
    let text = STRIDED.replace("  printf", "  return 3;\n  printf");
    let folder = Folder::with(&[("s.cu", text), ("stride.cuh", "#define STRIDE 1\n".to_owned())]).unwrap();
    for _ in 0..2 {
        let (finished, profile) = profile(&folder, &[]);
        assert_eq!((finished.status, is_kept(&profile)), (Some(1), false), "{}", finished.err);
    }
}

#[test]
fn where_a_program_does_not_run_the_compiler_tells_what_it_knows_and_why_no_more() {
    let text = STRIDED
        .replace("  printf", "  cudaIpcMemHandle_t handle;\n  cudaIpcGetMemHandle(&handle, x);\n  printf");
    let folder = Folder::with(&[("s.cu", text), ("stride.cuh", "#define STRIDE 32\n".to_owned())]).unwrap();
    let (finished, profile) = profile(&folder, &[]);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(profile["way"]["by"], "the compiler and the static rules, without running it");
    let not_taken: Vec<(&str, &str)> = profile["way"]["notTaken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|not| (not["by"].as_str().unwrap(), not["why"].as_str().unwrap()))
        .collect();
    assert_eq!(not_taken.len(), 2, "{not_taken:?}");
    assert!(not_taken[0].1.contains("sim:h200 is none"), "{not_taken:?}");
    assert!(
        not_taken[1].0 == "the simulator" && not_taken[1].1.contains("cudaIpcGetMemHandle"),
        "{not_taken:?}"
    );
    let launch = &profile["launches"][0];
    assert_eq!(launch["kernel"]["base"], "gather");
    assert!(launch["metrics"]["registers"].as_f64().unwrap() >= 1.0, "{launch}");
    assert_eq!(launch["metrics"]["theoreticalOccupancy"], 100.0, "{launch}");
}
