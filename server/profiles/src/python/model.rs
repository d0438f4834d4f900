//! Time of the device by line of Python and by module.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::{LineRoofline, OperatorEstimate, Peaks};
use crate::note::Note;

/// What lines and modules of a person's Python cost. Part of the schema `stitchcuda.profile/1`. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PythonTime {
    /// The sum of the durations of all kernels.
    pub kernel_ns: u64,
    /// Of that, what could be given to a line.
    pub attributed_ns: u64,
    /// The same as a share of it, from 0 to 1; 0 where no kernel ran.
    #[serde(default)]
    pub attributed_share: f64,
    /// Kernels that could be given to no line, by name, the one with the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unattributed: Vec<Part>,
    /// What the device can, by which classes were estimated, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peaks: Option<Peaks>,
    /// Lines, the one with the most kernel time first. Each kernel counts for one line: the innermost that is a person's own.
    pub lines: Vec<LineSum>,
    /// Modules, in the order of their paths. A kernel counts for a module and for those around it.
    pub modules: Vec<ModuleSum>,
    /// How long a call takes by the caller's clock, where no profiler looked into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallTime>,
    /// What operators cost on the CPU, where no kernel ran on a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostTime>,
    /// What a reader has to know.
    pub notes: Vec<Note>,
}

/// How long a call takes, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallTime {
    /// The median of batches of calls.
    pub median_ns: u64,
    /// The lower end of its 95% interval.
    pub low_ns: u64,
    /// The upper end.
    pub high_ns: u64,
    /// How many calls were made in all batches.
    pub calls: u64,
    /// How it was measured, in a sentence.
    pub basis: String,
}

/// What operators cost on the CPU: each without those that it calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostTime {
    /// The sum over all operators.
    pub operator_ns: u64,
    /// Operators by name, the one with the most time first.
    pub operators: Vec<Part>,
    /// Lines, the one with the most time first. Each operator counts for one line: the innermost that is a person's own.
    pub lines: Vec<HostLine>,
}

/// What the operators of a line cost on the CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostLine {
    /// The file, as the workspace has it.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The sum over its operators.
    pub ns: u64,
    /// Of the time of all operators, from 0 to 1.
    pub share: f64,
    /// The operators, the one with the most time first.
    pub operators: Vec<Part>,
}

/// What a line caused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineSum {
    /// The file, as the workspace has it.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The function.
    pub function: String,
    /// What `line` is the line of.
    pub precision: Precision,
    /// The sum of the durations of the kernels that it launched, and of those of their backward pass.
    pub kernel_ns: u64,
    /// Of the durations of all kernels, from 0 to 1.
    pub share: f64,
    /// Launches of those kernels.
    pub launches: u64,
    /// Of `kernel_ns`, what the backward pass took.
    pub backward_ns: u64,
    /// The kernels by name, the one with the most time first.
    pub kernels: Vec<Part>,
    /// The operators that launched them, by the time of their kernels.
    pub operators: Vec<Part>,
    /// The same by the shapes of their tensors, with what they must at least move and compute, the one with the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimates: Vec<OperatorEstimate>,
    /// The roofline class that follows, an estimate; `None` where no kernel ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<LineRoofline>,
    /// Calls that waited for a device, by the operator that made them.
    pub waits: Vec<Part>,
    /// Copies from the host to a device.
    pub to_device: LineCopies,
    /// Copies from a device to the host.
    pub to_host: LineCopies,
}

/// What the number of a line stands for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Precision {
    /// The line that ran.
    Line,
    /// The first line of the function that ran: the profiler of PyTorch 1.13 and later records no other.
    #[default]
    Function,
}

/// A part of a line's sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Its name; empty where none is known.
    pub name: String,
    /// How many.
    pub count: u64,
    /// How long.
    pub ns: u64,
}

/// Copies that a line caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineCopies {
    /// How many.
    pub count: u64,
    /// Of them, those whose memory on the host is pageable.
    pub pageable: u64,
    /// How much.
    pub bytes: u64,
    /// How long.
    pub ns: u64,
}

/// What a module caused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleSum {
    /// The names of the modules around it and its own, as the profiler numbers them: `Net_0/Block_1/Linear_3`.
    pub path: String,
    /// The sum of the durations of the kernels launched from within, and of those of their backward pass.
    pub kernel_ns: u64,
    /// Of that, what no module within it launched.
    pub own_ns: u64,
    /// Of all kernels' time, from 0 to 1.
    pub share: f64,
    /// Launches of those kernels.
    pub launches: u64,
}
