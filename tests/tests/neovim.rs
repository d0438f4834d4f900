//! The plugin for Neovim in a real, headless Neovim with the real server, compiler and simulator. Each scenario is a file in
//! `editors/neovim/tests/scenarios`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::fs;
use std::process::Command;

use serde_json::json;
use stitch_tests::cli::Folder;
use stitch_tests::endpoint::{Answer, Endpoint};
use stitch_tests::neovim::{plugin, scenario, scenario_with};
use stitch_tests::recorded::data;

/// A program with a finding, on a line with characters beyond the BMP on both sides of it.
const CUDA: &str = r#"#include <cstdio>
__global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) /* 😀𝒳 */ y[i] = powf(x[i], 3.0f);  // 𝒳 cubed
}
int main() {
  float *x, *y, host[256];
  for (int i = 0; i < 256; ++i) host[i] = i * 0.25f;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  energy<<<1, 256>>>(y, x, 256);
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\n", host[100]);
}
"#;

const PYTHON: &str = r#"import cupy

energy = cupy.RawKernel(r"""
extern "C" __global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) /* 😀𝒳 */ y[i] = powf(x[i], 3.0f);
}
""", "energy")
"#;

/// A module that does row by row what can be done at once.
const MODULE: &str = r#"import torch
import torch.nn as nn


class Scale(nn.Module):  # 😀
    def __init__(self, factor: float = 2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = [row * self.factor for row in x]
        return torch.stack(rows)


def get_inputs():
    return [torch.rand(2048, 256)]


def get_init_inputs():
    return []
"#;

fn folder() -> Folder {
    // The marker keeps the workspace to this folder, whatever lies above it.
    let files = [("e.cu", CUDA), ("m.py", PYTHON), ("scale.py", MODULE), ("stitchcuda.toml", "")];
    Folder::with(&files).unwrap()
}

fn passes(name: &str) -> Folder {
    let folder = folder();
    scenario(&folder, name, &[]).unwrap();
    folder
}

#[test]
fn a_cuda_file_has_findings_hints_lenses_hover_and_fixes() {
    let folder = passes("features");
    assert!(fs::read_to_string(folder.path().unwrap().join("e.cu")).unwrap().contains("x[i] * x[i] * x[i]"));
}

#[test]
fn a_python_file_has_them_in_its_strings() {
    passes("python");
}

#[test]
fn two_servers_give_hints_in_one_buffer() {
    passes("two_servers");
}

#[test]
fn a_kernel_is_optimised_reviewed_accepted_and_saved() {
    let folder = passes("optimize");
    let saved = fs::read_to_string(folder.path().unwrap().join("e.cu")).unwrap();
    let line = "  if (i < n) /* 😀𝒳 */ y[i] = x[i] * x[i] * x[i];  // 𝒳 cubed\n";
    assert_eq!(saved, CUDA.replace(CUDA.lines().nth(3).unwrap(), line.trim_end()));
    let checked = folder.run(&["check", "e.cu"]).unwrap();
    assert_eq!(checked.status, Some(0), "{}{}", checked.out, checked.err);
}

#[test]
fn a_candidate_is_rejected() {
    passes("reject");
}

#[test]
fn a_job_is_cancelled_in_the_middle() {
    passes("cancel");
}

#[test]
fn a_server_that_is_killed_is_started_again() {
    passes("killed");
}

#[test]
fn nothing_of_an_untrusted_workspace_is_run() {
    passes("untrusted");
}

#[test]
fn text_that_is_edited_during_a_job_is_left_alone() {
    passes("edited");
}

#[test]
fn settings_change_while_the_server_runs() {
    passes("settings");
}

#[test]
fn options_reach_the_program_and_a_dying_server_is_left_alone_in_the_end() {
    passes("options");
}

#[test]
fn another_program_or_another_trust_starts_another_server() {
    passes("another");
}

/// As a manager of rocks has it: the modules in Lua's path, and the rest in Neovim's.
#[test]
fn a_rock_holds_all_of_the_plugin() {
    let is_there = Command::new("luarocks").arg("--version").output().is_ok_and(|said| said.status.success());
    if !is_there {
        return stitch_tests::skip("no luarocks is installed");
    }
    let folder = folder();
    let tree = folder.path().unwrap().join("../rocks").display().to_string();
    let made = Command::new("luarocks")
        .args(["--lua-version", "5.1", "--tree", &tree, "make"])
        .current_dir(plugin())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let rock = format!("{tree}/lib/luarocks/rocks-5.1/stitchcuda/scm-1");
    let modules = format!("{tree}/share/lua/5.1");
    let arguments = [
        "--clean".to_owned(),
        "--cmd".to_owned(),
        format!("set runtimepath^={rock}"),
        "--cmd".to_owned(),
        format!("lua package.path = '{modules}/?.lua;{modules}/?/init.lua;' .. package.path"),
    ];
    scenario_with(&folder, "features", &[], &arguments).unwrap();
}

#[test]
fn a_plan_and_verdicts_are_shown_beside_the_text() {
    passes("plan_verify");
}

#[test]
fn a_program_that_cannot_serve_is_said_once() {
    passes("refused");
}

#[test]
fn every_subcommand_does_what_the_help_says() {
    let folder = folder();
    folder.write("trace.json", fs::read(data("trace/train_step.json")).unwrap()).unwrap();
    folder.write("train.py", "step = 1\n".repeat(40)).unwrap();
    scenario(&folder, "commands", &[]).unwrap();
}

/// Optimises lines of a file with a model that answers with a plan of one task and this edit.
fn with_model(file: &str, device: &str, lines: [&str; 2], edit: &str) -> Folder {
    let plan = json!({"summary": "Powers are slow.", "tasks": [{"title": "Multiply instead"}]}).to_string();
    let endpoint =
        Endpoint::with(vec![Answer::text(&plan), Answer::text(edit), Answer::text("{\"tasks\": []}")])
            .unwrap();
    let folder = folder();
    let variables = [
        ("STITCHCUDA_OPTIMIZE_ENGINE", "llm"),
        ("STITCHCUDA_MODEL_ENDPOINT", &*endpoint.base()),
        ("STITCHCUDA_DEVICE", device),
        ("STITCHCUDA_TEST_FILE", file),
        ("STITCHCUDA_TEST_FIRST", lines[0]),
        ("STITCHCUDA_TEST_LAST", lines[1]),
    ];
    scenario(&folder, "model", &variables).unwrap();
    assert!(endpoint.questions().len() >= 2, "{:?}", endpoint.questions());
    folder
}

#[test]
fn a_selection_of_cuda_is_optimised_by_a_model() {
    let edit =
        "<<<<<<< SEARCH\ny[i] = powf(x[i], 3.0f);\n=======\ny[i] = x[i] * x[i] * x[i];\n>>>>>>> REPLACE\n";
    let folder = with_model("e.cu", "sim:h200", ["__global__", "powf"], edit);
    let saved = fs::read_to_string(folder.path().unwrap().join("e.cu")).unwrap();
    assert!(saved.contains("y[i] = x[i] * x[i] * x[i];  // 𝒳 cubed"), "{saved}");
}

/// The rest of the file, the class's name and its signatures stay as they are.
#[test]
fn a_selection_of_python_is_optimised_by_a_model() {
    let edit = "<<<<<<< SEARCH\n        rows = [row * self.factor for row in x]\n        return torch.stack(rows)\n=======\n        return x * self.factor\n>>>>>>> REPLACE\n";
    let folder = with_model("scale.py", "cpu", ["class Scale", "torch.stack"], edit);
    let saved = fs::read_to_string(folder.path().unwrap().join("scale.py")).unwrap();
    for kept in [
        "class Scale(nn.Module):  # 😀\n    def __init__(self, factor: float = 2.0):\n",
        "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n",
        "x * self.factor",
        "def get_inputs():\n    return [torch.rand(2048, 256)]\n",
    ] {
        assert!(saved.contains(kept), "{kept} is not in {saved}");
    }
}
