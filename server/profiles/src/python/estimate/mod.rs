//! The roofline class of lines by estimate, where no counter was read: what operators must move and compute at least, by their shapes, in the time that their
//! kernels took, beside what the device can.

mod demand;
mod operators;
mod rules;
mod shapes;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use demand::{Demand, demand};
pub use rules::{Condition, ESTIMATE_RULES, EstimateRule, Reached, class};
pub use shapes::{Arguments, Element, Kind};

use super::model::{LineSum, PythonTime};
use crate::kernel::Bound;
use crate::system::System;
use crate::system::model::share;

/// The part of a line's time that one class must have for the line to have it. Ours.
pub const MOST_OF_IT: f64 = 0.5;

/// What a device can at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Peaks {
    /// The device: `NVIDIA H200`.
    pub device: String,
    /// Bytes that its memory moves in a second.
    pub bandwidth: f64,
    /// Bytes of its L2 cache, from which tensors may come that fit.
    pub l2: u64,
    /// Operations a second, a fused multiply-add being two, of each arithmetic that it has.
    pub flops: BTreeMap<Arithmetic, f64>,
    /// Where these numbers come from.
    pub source: String,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arithmetic {
    /// The units for double precision.
    Fp64,
    /// Tensor cores on double precision.
    Fp64Tensor,
    /// The units for single precision.
    Fp32,
    /// Tensor cores on single precision of which 10 bits of the fraction count.
    Tf32Tensor,
    /// Tensor cores on FP16 and BF16.
    Fp16Tensor,
    /// Tensor cores on FP8 and INT8.
    Fp8Tensor,
}

impl Arithmetic {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Fp64 => "FP64",
            Self::Fp64Tensor => "FP64 tensor cores",
            Self::Fp32 => "FP32",
            Self::Tf32Tensor => "TF32 tensor cores",
            Self::Fp16Tensor => "FP16 tensor cores",
            Self::Fp8Tensor => "FP8 tensor cores",
        }
    }

    /// What multiplies operands of a type; `on_tensor_cores` says whether the kernel's name has it do so on those, which of FP32 is a matter of settings.
    pub fn of(operands: Element, on_tensor_cores: bool) -> Option<Self> {
        let bytes = if operands.kind == Kind::Complex { operands.bytes / 2 } else { operands.bytes };
        match (operands.kind, bytes) {
            (Kind::Float | Kind::Complex, 8) => Some(Self::Fp64Tensor),
            (Kind::Float | Kind::Complex, 4) if on_tensor_cores => Some(Self::Tf32Tensor),
            (Kind::Float | Kind::Complex, 4) => Some(Self::Fp32),
            (Kind::Float | Kind::Complex, 2) => Some(Self::Fp16Tensor),
            (Kind::Float | Kind::Integer, 1) => Some(Self::Fp8Tensor),
            _ => None,
        }
    }
}

/// Parts of names that libraries give kernels which multiply single precision on tensor cores: cuDNN and cuBLAS (`tf32f32`, `tensorop_s1688gemm`), and
/// cuBLASLt since CUDA 12.8, whose `nvjet` kernels have nothing else.
const TENSOR_KERNELS: [&str; 5] = ["tf32", "tensorop_s", "s1688", "nvjet", "_tensor_op_s"];

/// Whether a kernel with this name multiplies on tensor cores, of those that get FP32.
pub fn is_on_tensor_cores(kernel: &str) -> bool {
    TENSOR_KERNELS.iter().any(|part| kernel.contains(part))
}

/// What one operator, called with one set of shapes, cost at a line, and must at least. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorEstimate {
    /// The operator; empty where none launched the kernels.
    pub name: String,
    /// Its tensors, as far as there is room: `float [1024, 512], float [512]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shapes: String,
    /// How often it was called.
    pub calls: u64,
    /// The kernels that these calls launched.
    pub launches: u64,
    /// How long those took.
    pub ns: u64,
    /// Bytes that all calls must move at least: inputs and outputs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Operations that all calls make; `None` for what only moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// What computes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<Arithmetic>,
    /// The bytes a second in percent of the memory's peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// The operations a second in percent of their peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<f64>,
    /// The class that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Why there is no class, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// The class of a line by estimate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineRoofline {
    /// What bounds the operators with most of the line's time; [`Bound::Unknown`] where that can't be said.
    pub bound: Bound,
    /// Their part of the line's time, from 0 to 1.
    pub share: f64,
    /// Why there is no class, in words; without where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// Gives the operators and the lines their classes. `system` is the run as it is without marks at its lines, from which gaps are known; `peaks` what the
/// device can, or why that is not known.
pub fn classify(time: &mut PythonTime, system: Option<&System>, peaks: Result<Peaks, String>) {
    let gaps = system.and_then(gaps);
    for line in time.lines.iter_mut().filter(|line| line.kernel_ns > 0) {
        for operator in &mut line.estimates {
            operator.classify(gaps, peaks.as_ref());
        }
        line.roofline = Some(of_line(line));
    }
    time.peaks = peaks.ok();
}

/// The share of the busiest device's time that gaps between launches have.
fn gaps(system: &System) -> Option<f64> {
    let (_, spent) = system.busiest()?;
    system.calls.is_some().then(|| share(spent.idle.launch.ns, spent.base_ns()))
}

impl OperatorEstimate {
    fn classify(&mut self, gaps: Option<f64>, peaks: Result<&Peaks, &String>) {
        let (Some(bytes), None) = (self.bytes, &self.unknown) else { return };
        let peaks = match peaks {
            Ok(peaks) if peaks.bandwidth > 0.0 && self.ns > 0 && self.launches > 0 => peaks,
            Ok(_) => {
                self.unknown = Some("the profiler recorded no time".to_owned());
                return;
            }
            Err(why) => {
                self.unknown = Some(why.clone());
                return;
            }
        };
        // Double precision is multiplied on tensor cores only where there are such.
        if self.arithmetic == Some(Arithmetic::Fp64Tensor)
            && !peaks.flops.contains_key(&Arithmetic::Fp64Tensor)
        {
            self.arithmetic = Some(Arithmetic::Fp64);
        }
        let seconds = self.ns as f64 * 1e-9;
        let of = |much: u64, peak: f64| much as f64 / seconds / peak * 100.0;
        let compute = match (self.flops, self.arithmetic) {
            (None, _) => None,
            (Some(flops), arithmetic) => {
                match arithmetic.and_then(|unit| Some((unit, *peaks.flops.get(&unit)?))) {
                    Some((_, peak)) => Some(of(flops, peak)),
                    None => {
                        let what = arithmetic.map_or("such numbers", Arithmetic::label);
                        self.unknown =
                            Some(format!("the peak of {} for {what} is not in the table", peaks.device));
                        return;
                    }
                }
            }
        };
        let memory = of(bytes, peaks.bandwidth);
        let reached =
            Reached { memory, compute: compute.unwrap_or(0.0), kernel_ns: self.ns / self.launches, gaps };
        (self.memory, self.compute, self.bound) = (Some(memory), compute, Some(class(&reached)));
    }
}

/// The class that has most of a line's time.
fn of_line(line: &LineSum) -> LineRoofline {
    let mut times: BTreeMap<Bound, u64> = BTreeMap::new();
    for operator in &line.estimates {
        if let Some(bound) = operator.bound {
            *times.entry(bound).or_default() += operator.ns;
        }
    }
    let most =
        times.iter().max_by_key(|(_, ns)| **ns).map(|(bound, ns)| (*bound, share(*ns, line.kernel_ns)));
    match most {
        Some((bound, share)) if share >= MOST_OF_IT => LineRoofline { bound, share, unknown: None },
        most => {
            let unknown = line.estimates.iter().find_map(|operator| operator.unknown.clone());
            let classified: u64 = times.values().sum();
            let why = match unknown {
                Some(why) if share(classified, line.kernel_ns) < MOST_OF_IT => why,
                _ => "no class has half of the line's time".to_owned(),
            };
            let share = most.map_or(0.0, |(_, share)| share);
            LineRoofline { bound: Bound::Unknown, share, unknown: Some(why) }
        }
    }
}
