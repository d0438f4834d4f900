//! What one launch of a kernel did.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, Metric};

/// Metrics in the base units that [`Metric::info`] names. What is absent was not measured.
pub type Metrics = BTreeMap<Metric, f64>;

/// One launch of a kernel, as part of the JSON schema `stitchcuda.profile/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelLaunch {
    /// The number that the profiler gave it, in the order of launching.
    pub id: u64,
    /// Its kernel.
    pub kernel: KernelName,
    /// How it was launched.
    pub shape: LaunchShape,
    /// Metrics by our names.
    pub metrics: Metrics,
    /// What it costs by a model, where nobody timed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Counters of source lines, by file and line. Empty where they were not collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SourceLine>,
    /// Machine code with its counters, by address. Rules follow values through it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    /// What the profiler's own rules said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_rules: Vec<ToolRule>,
    /// Where all this came from.
    pub origin: Origin,
}

impl KernelLaunch {
    /// The value of a metric, in its base unit, if it was measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.metrics.get(&metric).copied()
    }
}

/// A kernel's name, as the profiler wrote it and without what differs between profilers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelName {
    /// The demangled signature: `void reduce<float, (int)256>(const T1 *, T1 *, int)`.
    pub signature: String,
    /// The function's name alone, without namespaces, template arguments and parameters: `reduce`.
    pub base: String,
}

/// How a kernel was launched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<[u32; 3]>,
    /// Threads of a block along x, y and z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// The device's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// The device's name: `NVIDIA H200`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// Its compute capability: `9.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// The stream's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u64>,
}

/// Where a launch's numbers came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The tool, and its version where it is known: `Nsight Compute`.
    pub tool: String,
    /// What was read of it: `raw`, `details`, `source`.
    pub pages: Vec<String>,
    /// How many times the kernel was run to collect it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
}

/// Why a warp did not issue, as samples tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Stall {
    /// Waits for global, local, surface or texture memory.
    LongScoreboard,
    /// Waits for shared memory, a special function or a conversion.
    ShortScoreboard,
    /// Waits for the queue to shared memory and special functions.
    MioThrottle,
    /// Waits for the queue to global and local memory.
    LgThrottle,
    /// Waits at a barrier.
    Barrier,
    /// Waits for a math pipe.
    MathPipe,
    /// Waits a fixed latency.
    Wait,
    /// Waits for the next instruction.
    NoInstruction,
    /// Has ended, and waits for its stores.
    Drain,
    /// Waits for a branch target.
    BranchResolving,
    /// Waits for constants.
    ImcMiss,
    /// Waits for the texture queue.
    TexThrottle,
    /// Waits for a memory fence.
    Membar,
    /// Sleeps.
    Sleeping,
    /// Is held at dispatch.
    Dispatch,
    /// Could issue, but another warp did.
    NotSelected,
    /// Issues.
    Selected,
    /// Waits for warpgroup matrix instructions.
    Gmma,
    /// Anything else.
    Misc,
}

/// Counters of a source line or an instruction. What is absent was not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Instructions of warps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Instructions of threads, those that were predicated off included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_instructions: Option<u64>,
    /// Instructions of threads that were not predicated off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_on: Option<u64>,
    /// Branches whose threads went different ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergent_branches: Option<u64>,
    /// Sectors of 32 bytes that global accesses ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u64>,
    /// Sectors that the same accesses need at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors_ideal: Option<u64>,
    /// Sectors that accesses to local memory ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_sectors: Option<u64>,
    /// Wavefronts of shared accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavefronts: Option<u64>,
    /// Wavefronts that the same accesses need at least. The ratio is the N of an N-way bank conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavefronts_ideal: Option<u64>,
    /// Lanes that do a global atomic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_lanes: Option<u64>,
    /// Different addresses that the lanes of a warp meet at, summed over warps. The simulator alone counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_addresses: Option<u64>,
    /// Samples of warps that were here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The same by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stalls: BTreeMap<Stall, u64>,
}

impl Counters {
    /// Sectors beyond what the accesses need.
    pub fn excess_sectors(&self) -> Option<u64> {
        Some(self.sectors?.saturating_sub(self.sectors_ideal?))
    }

    /// Wavefronts beyond what the shared accesses need.
    pub fn excess_wavefronts(&self) -> Option<u64> {
        Some(self.wavefronts?.saturating_sub(self.wavefronts_ideal?))
    }

    /// The N of an N-way bank conflict, mean over the accesses.
    pub fn conflict_ways(&self) -> Option<f64> {
        let ideal = self.wavefronts_ideal.filter(|ideal| *ideal > 0)?;
        Some(self.wavefronts? as f64 / ideal as f64)
    }

    /// Adds what the other one counted.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut Option<u64>, b: Option<u64>| {
            if let Some(b) = b {
                *a = Some(a.unwrap_or(0).saturating_add(b));
            }
        };
        sum(&mut self.instructions, other.instructions);
        sum(&mut self.thread_instructions, other.thread_instructions);
        sum(&mut self.threads_on, other.threads_on);
        sum(&mut self.divergent_branches, other.divergent_branches);
        sum(&mut self.sectors, other.sectors);
        sum(&mut self.sectors_ideal, other.sectors_ideal);
        sum(&mut self.local_sectors, other.local_sectors);
        sum(&mut self.wavefronts, other.wavefronts);
        sum(&mut self.wavefronts_ideal, other.wavefronts_ideal);
        sum(&mut self.atomic_lanes, other.atomic_lanes);
        sum(&mut self.atomic_addresses, other.atomic_addresses);
        sum(&mut self.samples, other.samples);
        for (stall, samples) in &other.stalls {
            *self.stalls.entry(*stall).or_insert(0) += samples;
        }
    }
}

/// What a memory instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Reads global memory.
    GlobalLoad,
    /// Writes global memory.
    GlobalStore,
    /// Reads shared memory.
    SharedLoad,
    /// Writes shared memory.
    SharedStore,
    /// Reads local memory.
    LocalLoad,
    /// Writes local memory.
    LocalStore,
    /// An atomic, or a reduction, on global memory.
    GlobalAtomic,
    /// An atomic on shared memory.
    SharedAtomic,
}

/// One source line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceLine {
    /// The file, as the compiler knew it.
    pub file: String,
    /// Line, from one as people count.
    pub line: u32,
    /// Its text at that time, without indentation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What was counted.
    pub counters: Counters,
    /// What its instructions do to memory, as far as the profiler told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<Access>,
    /// Its part of all samples of the launch, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// One machine instruction. Its line is the one in the kernel's own file that it was inlined into, where that can be told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instruction {
    /// Where it stood.
    pub address: u64,
    /// Its text: `@P0 LDS R6, [R7]`.
    pub text: String,
    /// The file of its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Bits that a thread accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_bits: Option<u32>,
    /// What was counted.
    pub counters: Counters,
}

/// What one of the profiler's own rules said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRule {
    /// The section it stood in.
    pub section: String,
    /// The rule's name: `CPIStall`.
    pub name: String,
    /// `OPT`, `WRN`, `INF`.
    pub kind: String,
    /// What it said.
    pub text: String,
    /// The speedup it estimates, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_percent: Option<f64>,
}
