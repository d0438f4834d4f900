//! What `verify`, `profile` and `check` say where something small is wrong, and what they leave behind.

#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use stitch_tests::cli::Folder;

/// The owner folders that commands left among the scratch folders.
fn left(folder: &Folder) -> Vec<std::path::PathBuf> {
    let scratch = folder.path().unwrap().parent().unwrap().join("home/cache/scratch");
    std::fs::read_dir(scratch)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default()
}

#[test]
fn a_file_without_main_is_wrong_input_for_profile_as_for_verify() {
    let folder = Folder::with(&[("k.cu", "__global__ void k(float* x) { x[0] = 1; }\n")]).unwrap();
    for arguments in [&["profile", "k.cu"][..], &["verify", "k.cu", "k.cu"]] {
        let run = folder.run(&[arguments, &["--device", "sim:h200"]].concat()).unwrap();
        assert_eq!(run.status, Some(2), "{}", run.err);
        assert!(
            run.err.contains("The file has no `main`. Name the kernel") && !run.err.contains("/ld:"),
            "{}",
            run.err
        );
    }
    assert_eq!(left(&folder), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_difference_that_no_tolerance_allows_is_not_helped_by_one() {
    let program = |word: &str, value: &str| {
        format!(
            "#include <cstdio>\n__global__ void k(int* y) {{ y[threadIdx.x] = {value}; }}\nint main() {{ int* d; int y[32]; cudaMalloc(&d, 128);\n\
             k<<<1, 32>>>(d); cudaMemcpy(y, d, 128, cudaMemcpyDeviceToHost); printf(\"it is {word}\\n\"); return y[0] < 0; }}\n"
        )
    };
    let folder = Folder::with(&[
        ("ref.cu", program("well", "7")),
        ("words.cu", program("ill", "7")),
        ("numbers.cu", program("well", "threadIdx.x == 3 ? 8 : 7")),
    ])
    .unwrap();
    for (candidate, said) in [("words.cu", "1 place differs"), ("numbers.cu", "1 of 32 differ")] {
        let run = folder.run(&["verify", "ref.cu", candidate, "--device", "sim:h200"]).unwrap();
        assert_eq!(run.status, Some(1), "{}{}", run.out, run.err);
        assert!(run.out.contains(said) && !run.out.contains("of 0 differ"), "{}", run.out);
        assert!(!run.out.contains("--tolerance"), "{}", run.out);
    }
    assert_eq!(left(&folder), Vec::<std::path::PathBuf>::new());
}

#[test]
fn files_that_include_themselves_without_an_end_are_told_so() {
    let twice =
        "#include \"loop.cu\"\n#include \"loop.cu\"\n__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n";
    let folder = Folder::with(&[("loop.cu", twice)]).unwrap();
    let run = folder.run(&["check", "loop.cu"]).unwrap();
    assert!(run.status != Some(0), "{}{}", run.out, run.err);
    let said = format!("{}{}", run.out, run.err);
    assert!(said.contains("include one another without an end") && said.contains("#pragma once"), "{said}");
    assert!(!said.contains("could not run nvcc"), "{said}");
}

#[test]
fn a_build_of_the_targets_own_keeps_to_the_time_limit() {
    let settings = "[target.slow]\nfiles = [\"p.cu\"]\nbuild = \"sleep 600\"\nrun = \"./p\"\n";
    let folder = Folder::with(&[("stitchcuda.toml", settings), ("p.cu", "int main() {}\n")]).unwrap();
    let began = Instant::now();
    let run = folder.run(&["profile", "slow", "--device", "sim:h200", "--time-limit", "2"]).unwrap();
    assert!(run.status.is_some_and(|status| status != 0), "{}", run.out);
    assert!(
        run.err.contains("was ended after 2 s, its time limit") && run.err.contains("sleep 600"),
        "{}",
        run.err
    );
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
}

#[test]
fn halves_are_perturbed_like_other_numbers() {
    let program = |kernel: &str| {
        format!(
            "#include <cuda_fp16.h>\n#include <cstdio>\n#include <vector>\n__global__ void twice(const __half* x, __half* y, int n) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {kernel} }}\nint main() {{ const int n = 512; std::vector<__half> x(n);\n\
             unsigned r = 1; for (auto& v : x) {{ r = r * 1664525u + 1013904223u; v = __float2half((r >> 8) * (2.f / 16777216.f) - 1.f); }}\n\
             __half *dx, *dy; cudaMalloc(&dx, n * 2); cudaMalloc(&dy, n * 2); cudaMemcpy(dx, x.data(), n * 2, cudaMemcpyHostToDevice);\n\
             twice<<<2, 256>>>(dx, dy, n); cudaMemcpy(x.data(), dy, n * 2, cudaMemcpyDeviceToHost);\n\
             printf(\"%.3f\\n\", __half2float(x[9])); return 0; }}\n"
        )
    };
    let folder = Folder::with(&[
        ("ref.cu", program("y[i] = __hadd(x[i], x[i]);")),
        ("cand.cu", program("y[i] = __hmul(x[i], __float2half(2.f));")),
    ])
    .unwrap();
    let run =
        folder.run(&["verify", "ref.cu", "cand.cu", "--device", "sim:h200", "--format", "json"]).unwrap();
    assert_eq!(run.status, Some(0), "{}{}", run.out, run.err);
    let verdict = run.json().unwrap();
    assert_eq!(verdict["buffers"], 1, "{verdict:#}");
}
