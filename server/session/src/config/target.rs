//! A person's own build, as `[target.NAME]` in `stitchcuda.toml`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::Device;

/// How a program of the workspace is built and run, where that takes more than one file and nvcc.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Target {
    /// The source files that may be changed. A candidate takes the place of the one of its name, or of the first. Without a
    /// build command they are what is compiled, and linked to one program.
    #[schemars(extend("x-restricted" = true))]
    pub files: Vec<PathBuf>,
    /// The command that builds it, for a shell, in a copy of its folder. `NVCC` names the compiler, and on the simulator
    /// `NVCC_APPEND_FLAGS` has what that needs. Without one: nvcc, with the files.
    #[schemars(extend("x-restricted" = true))]
    pub build: Option<String>,
    /// The command that runs it, for a shell, in the same copy. Without one: what was built from the files.
    #[schemars(extend("x-restricted" = true))]
    pub run: Option<String>,
    /// Arguments for the program.
    #[schemars(extend("x-restricted" = true))]
    pub args: Vec<String>,
    /// Where it is built and run: a copy of this folder. When unset, the folder of the `stitchcuda.toml`.
    #[schemars(extend("x-path" = "path", "x-restricted" = true))]
    pub cwd: Option<PathBuf>,
    /// Files that it reads, where they lie outside of its folder: they are copied beside what is run.
    pub inputs: Vec<PathBuf>,
    /// How far a number may be off, relative to the larger one.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered.
    pub precision: Option<Precision>,
    /// The device to run on.
    pub device: Option<Device>,
}

/// A target, with where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTarget {
    /// Its name.
    pub name: String,
    /// What it says; `cwd` is absolute, other paths start at `folder`.
    pub target: Target,
    /// The folder of the `stitchcuda.toml` that it is in.
    pub folder: PathBuf,
}

/// A floating-point format of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Eight bytes.
    Fp64,
    /// Four bytes.
    Fp32,
    /// Four bytes, of which tensor cores read 19 bits.
    Tf32,
    /// Two bytes, with the exponent of `fp32`.
    Bf16,
    /// Two bytes.
    Fp16,
    /// One byte.
    Fp8,
}
