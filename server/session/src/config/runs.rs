//! How programs are run besides being compiled: on save, on the simulator, to be verified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a verification may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Verify {
    /// How many seconds taking the times of PyTorch code may take, while it has the device alone. It ends before, as soon as the interval of the
    /// speedup is narrower than 1 % on either side, or can't become so.
    #[schemars(range(min = 0.1, max = 600))]
    pub timing_seconds: f64,
}

impl Default for Verify {
    fn default() -> Self {
        Self { timing_seconds: 5.0 }
    }
}

/// Another machine, whose device runs, verifies and profiles what is edited here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Worker {
    /// The command that gives a `stitchcuda worker` on its standard streams, one word an entry: `["ssh", "gpu01", "stitchcuda", "worker"]`. In a
    /// `stitchcuda.toml` also written `device.command`. Empty: this machine. `docs/worker.md` in the source has more.
    #[schemars(extend("x-restricted" = true))]
    pub command: Vec<String>,
    /// How many seconds that machine may be silent before it counts as stalled; while it works it is heard of three times in that time. In a
    /// `stitchcuda.toml` also written `device.patienceSeconds`.
    #[schemars(range(min = 1, max = 3600))]
    pub patience_seconds: u32,
}

impl Default for Worker {
    fn default() -> Self {
        Self { command: Vec::new(), patience_seconds: 30 }
    }
}

/// What else is done when a file is saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct OnSave {
    /// Whether a CUDA program is profiled again when its file is saved. In a workspace that is not trusted nothing is run.
    pub profile: OnSaveProfile,
}

/// Whether a program is profiled when its file is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnSaveProfile {
    /// If it was profiled before, by your wish, in under 10 seconds.
    #[default]
    Auto,
    /// Every file with a `main`. On the simulator, blocks beyond 5 seconds are sampled; a program that still runs after 10 seconds keeps its last profile.
    Always,
    /// Only when you ask.
    Never,
}

/// Runs on the simulator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Simulator {
    /// Which defects the simulator looks for in every run: `all`; only reads of `memory` that nothing has written; or `none`. Accesses out
    /// of bounds, misaligned ones and the like stop a kernel in any case.
    pub checks: Checks,
}

/// Which defects the simulator looks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Checks {
    /// None.
    None,
    /// Reads of memory that nothing has written.
    Memory,
    /// Those, races, and barriers and warps that are not complete.
    #[default]
    All,
}
