//! `stitchcuda verify` of programs whose data come from the clock, on the simulator: all runs of one verification have the same.

#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use serde_json::Value;
use stitch_tests::cli::{Finished, Folder};

/// Scales numbers that it draws; `SEED` says from what, `KERNEL` what a candidate changes, `WAIT` what it does before.
const PROGRAM: &str = r#"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>
#include <unistd.h>
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  KERNEL
}
int main() {
  const int n = 1024;
  WAIT
  SEED
  std::vector<float> x(n), y(n);
  for (float& v : x) v = 0.25f + draw() % 1000 * 0.001f;
  float *dx, *dy;
  cudaMalloc(&dx, n * sizeof(float)); cudaMalloc(&dy, n * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<(n + 255) / 256, 256>>>(dx, dy, n);
  cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : y) sum += v;
  printf("x[0] %.6f, sum %.3f\n", x[0], sum);
  return cudaGetLastError() != cudaSuccess;
}
"#;

/// Ways to seed by the clock or the system.
const SEEDS: [&str; 4] = [
    "srand(time(NULL)); auto draw = [] { return rand(); };",
    "srand((unsigned)clock()); auto draw = [] { return rand(); };",
    "std::mt19937 draw(std::chrono::system_clock::now().time_since_epoch().count());",
    "std::random_device device; std::mt19937 draw(device());",
];
const RIGHT: &str = "if (i < n) y[i] = 3.0f * x[i];";
const RIGHT_TOO: &str = "if (i < n) { float v = x[i]; y[i] = v + v + v; }";
const WRONG: &str = "if (i < n) y[i] = i == 77 ? 3.01f * x[i] : 3.0f * x[i];";

fn program(kernel: &str, seed: &str, wait: &str) -> String {
    PROGRAM.replace("KERNEL", kernel).replace("SEED", seed).replace("WAIT", wait)
}

fn verify(folder: &Folder, candidate: &str) -> (Finished, Value) {
    let arguments = ["verify", "--format", "json", "--device", "sim:h200", "ref.cu", candidate];
    let finished = folder.run(&arguments).unwrap();
    let verdict = finished.json().unwrap_or_else(|error| panic!("{error:#}"));
    (finished, verdict)
}

#[test]
fn data_that_come_from_the_clock_are_the_same_for_both_versions() {
    // The start takes another time in each run, as on a machine with other work.
    const LATE: &str = "usleep(getpid() % 7 * 100000);";
    for seed in SEEDS {
        let folder = Folder::with(&[
            ("ref.cu", program(RIGHT, seed, LATE)),
            ("right.cu", program(RIGHT_TOO, seed, LATE)),
            ("wrong.cu", program(WRONG, seed, LATE)),
        ])
        .unwrap();
        let (finished, verdict) = verify(&folder, "right.cu");
        assert_eq!(
            (finished.status, &verdict["answer"]),
            (Some(0), &"correct".into()),
            "{seed}: {verdict:#}"
        );
        // Nothing was excluded since it differed by itself.
        assert!(verdict["leftOut"].as_array().unwrap().is_empty(), "{seed}: {verdict:#}");
        assert!(verdict["notes"].to_string().contains("told the same date"), "{seed}: {verdict:#}");
        // However it is seeded, wrong is wrong.
        if seed == SEEDS[0] {
            let (finished, verdict) = verify(&folder, "wrong.cu");
            assert_eq!((finished.status, &verdict["answer"]), (Some(1), &"wrong".into()), "{verdict:#}");
        }
    }
}

#[test]
fn a_program_that_waits_for_the_clock_ends() {
    let wait = "time_t begun = time(NULL); while (time(NULL) == begun) {}\n  auto until = std::chrono::system_clock::now() + \
        std::chrono::milliseconds(200); while (std::chrono::system_clock::now() < until) {}";
    let seed = "srand(7); auto draw = [] { return rand(); };";
    let folder =
        Folder::with(&[("ref.cu", program(RIGHT, seed, wait)), ("cand.cu", program(RIGHT_TOO, seed, wait))])
            .unwrap();
    let began = Instant::now();
    let (finished, verdict) = verify(&folder, "cand.cu");
    assert_eq!((finished.status, &verdict["answer"]), (Some(0), &"correct".into()), "{verdict:#}");
    assert!(began.elapsed() < Duration::from_secs(180));
}
