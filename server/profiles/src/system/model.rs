//! What is known about the run of a program: sums over its timeline. Everything is in nanoseconds and bytes.
//!
//! What the profiler did not record is `None`, never zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::CallClass;
use super::drawing::Drawing;
use super::event::{Launch, Route};
use crate::note::Note;

/// The run of a program as a profiler recorded it. Part of the schema `stitchcuda.profile/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct System {
    /// Who recorded it.
    pub source: Source,
    /// From the first event to the last, in nanoseconds.
    pub span_ns: u64,
    /// Each device on which something ran, or of which something is known, by its number.
    pub devices: Vec<Device>,
    /// Kernels by name, the one with the most time first; `None` where no kernel was recorded.
    pub kernels: Option<Vec<KernelSum>>,
    /// Copies by their way; `None` where the profiler recorded none.
    pub copies: Option<Vec<CopySum>>,
    /// Memory set to a value; `None` where the profiler recorded none.
    pub sets: Option<SetSum>,
    /// Calls of the CUDA API by name, the one with the most time first; `None` where the profiler recorded none.
    pub calls: Option<Vec<CallSum>>,
    /// Ranges that the program marked, by text, in the order they came; `None` where the profiler recorded none.
    pub ranges: Option<Vec<RangeSum>>,
    /// Streams on which something ran.
    pub streams: Vec<StreamSum>,
    /// The timeline, small enough to draw.
    pub drawing: Drawing,
    /// What a reader has to know about the profile.
    pub notes: Vec<Note>,
}

/// Who recorded a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `Nsight Systems`, `PyTorch profiler`.
    pub tool: String,
    /// Its version, where it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// The version of the file's format, where it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schema: Option<String>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its number, as CUDA counts.
    pub id: u32,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub multiprocessors: Option<u32>,
    /// What its memory can move at most, in bytes a second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bandwidth: Option<u64>,
    /// Its memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// Compute capability: `9.0`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compute_capability: Option<String>,
    /// What it did; `None` where nothing was recorded on it.
    pub time: Option<DeviceTime>,
}

/// How a device spent its time. Times of what ran at once are not added twice.
///
/// The window is from the first to the last thing that ran on it, and is the sum of `busy_ns` and all of `idle`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceTime {
    /// From the first to the last thing that ran.
    pub window_ns: u64,
    /// While at least one thing ran.
    pub busy_ns: u64,
    /// While at least one kernel (or graph) ran.
    pub kernel_ns: u64,
    /// While at least one copy between host and device ran.
    pub bus_copy_ns: u64,
    /// While at least one copy between host and device ran, and no kernel.
    pub bus_copy_alone_ns: u64,
    /// While nothing ran, by the cause.
    pub idle: Idle,
}

impl DeviceTime {
    /// The time that shares are of: the window without the idle time of what is done only once, and without pauses, unless there are so many
    /// that they belong to the steps of the program. In nanoseconds.
    pub fn base_ns(&self) -> u64 {
        let once = if self.idle.pauses_repeat() { 0 } else { self.idle.pause.ns };
        self.window_ns.saturating_sub(self.idle.setup.ns).saturating_sub(once)
    }

    /// The share of [`base_ns`](Self::base_ns) in which nothing ran, from 0 to 1.
    pub fn idle_share(&self) -> f64 {
        share(self.base_ns().saturating_sub(self.busy_ns), self.base_ns())
    }
}

/// `part / whole`, and 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Times between two things that ran on a device, by cause. A gap with several causes is split: as long as the host was in calls of setup and
/// of allocation, it is theirs; then as long as the host had waited for the device, it is synchronization's, for so much earlier could it
/// have gone on; the rest is `launch` or `host` by its length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// The host waited for the device when that ran out of work, and could have prepared more meanwhile.
    pub synchronization: Gaps,
    /// The host loaded a module, made a stream, instantiated a graph, or launched a kernel for the first time: what is done once.
    pub setup: Gaps,
    /// The host allocated or freed memory.
    pub allocation: Gaps,
    /// Short, without another cause: the host was launching, but not fast enough.
    pub launch: Gaps,
    /// Those among `launch` that came after a tiny kernel. They are counted in `launch` too.
    pub launch_after_tiny: Gaps,
    /// Longer, without another cause: the host did something else than launching.
    pub host: Gaps,
    /// Longer than 10 ms, without another cause.
    pub pause: Gaps,
    /// The profiler recorded no calls, so that the cause is not known.
    pub unknown: Gaps,
}

impl Idle {
    /// All of it, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        let once = [&self.synchronization, &self.setup, &self.allocation, &self.launch];
        let all = once.into_iter().chain([&self.host, &self.pause, &self.unknown]);
        all.fold(0, |sum: u64, gaps| sum.saturating_add(gaps.ns))
    }

    /// Whether pauses belong to the steps of the program: there are at least five.
    pub fn pauses_repeat(&self) -> bool {
        self.pause.count >= 5
    }

    /// Time in which the host did something else than launching, waiting, setting up and allocating: `host`, and pauses that repeat.
    pub fn host_at_work(&self) -> Gaps {
        let mut gaps = self.host;
        if self.pauses_repeat() {
            gaps.count += self.pause.count;
            gaps.ns = gaps.ns.saturating_add(self.pause.ns);
            gaps.longest_ns = gaps.longest_ns.max(self.pause.longest_ns);
        }
        gaps
    }
}

/// Gaps of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

impl Gaps {
    /// Adds one.
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }
}

/// All launches of the kernels of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelSum {
    /// The name, demangled where the profiler did so.
    pub name: String,
    /// Launches.
    pub count: u64,
    /// The sum of their durations.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The median: exact for up to 256 launches, else off by less than 1/64.
    pub median_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Of the durations of all kernels, from 0 to 1.
    pub share: f64,
    /// While nothing else ran on the device.
    pub alone_ns: u64,
    /// How many times faster the program would be if these launches took no time (Amdahl): `base / (base - alone)`, where `base` is
    /// [`DeviceTime::base_ns`] of the device with the most of it. `None` where that would be all of the time.
    pub ceiling: Option<f64>,
    /// How the longest launch was launched.
    pub launch: Launch,
    /// Launches that were nodes of a CUDA graph.
    pub in_graphs: u64,
    /// Launches that took less than 5 µs.
    pub tiny: u64,
    /// Whether it stands for a whole CUDA graph, whose kernels were not recorded.
    pub whole_graph: bool,
}

/// All copies of one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopySum {
    /// From what to what.
    pub route: Route,
    /// How many.
    pub count: u64,
    /// How much in all, of those whose size was recorded.
    pub bytes: u64,
    /// The sum of their durations.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Bytes a second, over those that have a size and took time; `None` where none has.
    pub rate: Option<f64>,
}

/// Memory that was set to a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetSum {
    /// How many times.
    pub count: u64,
    /// How much in all, of those whose size was recorded.
    pub bytes: u64,
    /// The sum of their durations.
    pub total_ns: u64,
}

/// All calls of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallSum {
    /// The name, without the suffix of its version.
    pub name: String,
    /// What it does.
    pub class: CallClass,
    /// How many.
    pub count: u64,
    /// The sum of their durations, over all threads.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// All ranges of one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RangeSum {
    /// The text.
    pub name: String,
    /// How many.
    pub count: u64,
    /// The sum of their durations on the host.
    pub total_ns: u64,
    /// Kernels launched from within, on the same thread.
    pub launches: u64,
    /// The sum of those kernels' durations.
    pub kernel_ns: u64,
    /// Of those launches, the ones for which this was the innermost range.
    pub own_launches: u64,
    /// The sum of their kernels' durations.
    pub own_kernel_ns: u64,
}

/// A stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamSum {
    /// The device.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream, as the profiler numbers it.
    pub stream: u32,
    /// What ran on it.
    pub count: u64,
    /// The sum of the durations.
    pub total_ns: u64,
}

impl System {
    /// The device that was busy longest.
    pub fn busiest(&self) -> Option<(&Device, &DeviceTime)> {
        self.devices
            .iter()
            .filter_map(|device| device.time.as_ref().map(|time| (device, time)))
            .max_by_key(|(_, time)| time.busy_ns)
    }

    /// Calls of one class, summed: how many, and for how long on all threads in nanoseconds. `None` where no calls were recorded.
    pub fn calls_of(&self, class: CallClass) -> Option<(u64, u64)> {
        let calls = self.calls.as_ref()?;
        let of_class = calls.iter().filter(|call| call.class == class);
        Some(of_class.fold((0, 0), |(count, ns), call| (count + call.count, ns + call.total_ns)))
    }
}
