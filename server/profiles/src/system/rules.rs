//! The rules about the run of a program, as a table.
//!
//! Shares are of [`DeviceTime::base_ns`](super::DeviceTime::base_ns) of the busiest device: from the first to the last thing that ran on it,
//! without idle time in which something was set up that is set up only once, and without a few pauses of more than 10 ms. All gains are estimates of ours, and at most: what comes next
//! may be as slow.

use stitch_findings::Code;

use super::look::{self, Look, View};

/// One row of the table.
#[derive(Debug)]
pub struct Rule {
    /// Its name in results.
    pub id: &'static str,
    /// The finding's code, whose page explains it.
    pub code: Code,
    /// The least share, from 0 to 1, that is told as information.
    pub threshold: f64,
    /// What the share is a share of.
    pub share_of: &'static str,
    /// Where the threshold comes from.
    pub threshold_source: &'static str,
    /// Told as a hint below the threshold too, where there are at least five, and at least one for fifty launches: then each step of the
    /// program has one, and the window holds much that is no step.
    pub if_repeated: bool,
    /// Told as a hint at least, whatever its gain.
    pub always: bool,
    /// What was found, in a sentence with `{names}` of [`Look::values`].
    pub limits: &'static str,
    /// What to do, in a sentence.
    pub advice: &'static str,
    /// How the gain is computed.
    pub formula: &'static str,
    /// Documentation.
    pub link: &'static str,
    /// Looks for it. `pub(super)`, since what it looks at is ours alone.
    pub(super) look: fn(&View<'_>) -> Vec<Look>,
}

const BEST_PRACTICES: &str = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html";

/// What a share below these would gain is less than what a measurement varies by.
pub const LEAST_GAIN: f64 = 0.01;

/// The table.
pub const RULES: &[Rule] = &[
    Rule {
        id: "gpu-idle",
        code: Code::NSYS_GPU_IDLE,
        threshold: 0.3,
        share_of: "the device's time",
        threshold_source: "ours: with less idle time than this, kernels are the larger part of what can be gained",
        if_repeated: false,
        always: false,
        limits: "{device} was idle for {share} of {base}: {causes}.",
        advice: "Look at the largest cause first; kernels that run faster gain nothing while the device waits.",
        formula: "idle time / time of the device",
        link: "https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html",
        look: look::idle,
    },
    Rule {
        id: "host-bound",
        code: Code::NSYS_HOST_BOUND,
        threshold: 0.2,
        share_of: "the device's time",
        threshold_source: "ours, as for launch gaps",
        if_repeated: false,
        always: false,
        limits: "{device} was idle for {share} of its time in {count} gaps of more than 100 µs, the longest {longest}, in which the host neither launched nor waited.",
        advice: "Find what the host does there (loading data, Python, printing), and do it on another thread or before; load the next batch while this one is computed.",
        formula: "(idle time in gaps over 100 µs without waiting, setup and allocation) / time of the device",
        link: "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        look: look::host,
    },
    Rule {
        id: "launch-gap",
        code: Code::NSYS_LAUNCH_GAP,
        threshold: 0.2,
        share_of: "the device's time",
        threshold_source: "ours: below a fifth, not even launches that cost nothing would make the program 1.25 times faster",
        if_repeated: false,
        always: false,
        limits: "{device} was idle for {share} of its time in {count} gaps of up to 100 µs between launches: the host launches more slowly than the device works.",
        advice: "Record the launches of a step once and replay them as a CUDA graph (`torch.cuda.CUDAGraph`, `torch.compile(mode=\"reduce-overhead\")`), or fuse kernels.",
        formula: "(idle time in gaps up to 100 µs, without waiting, setup and allocation) / time of the device",
        link: "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-graphs",
        look: look::launch,
    },
    Rule {
        id: "tiny-kernels",
        code: Code::NSYS_TINY_KERNELS,
        threshold: 0.5,
        share_of: "all launches",
        threshold_source: "ours: a launch costs the host 2 to 5 µs, so that kernels under 5 µs can't keep the device busy",
        if_repeated: false,
        always: false,
        limits: "{count} of {launches} launches took less than 5 µs, and after them {device} was idle for {gaps}; most often `{kernel}`.",
        advice: "Fuse them into fewer kernels (`torch.compile`, or one kernel with a loop), or give each more work.",
        formula: "(idle time in gaps up to 100 µs after kernels under 5 µs) / time of the device",
        link: BEST_PRACTICES,
        look: look::tiny,
    },
    Rule {
        id: "pageable-copy",
        code: Code::NSYS_PAGEABLE_COPY,
        threshold: 0.05,
        share_of: "the device's time",
        threshold_source: "ours",
        if_repeated: true,
        always: false,
        limits: "{count} copies between pageable memory and the device moved {bytes} in {time} ({share} of its time, {rate}); the driver copies them twice, and the host waits.",
        advice: "Keep the host's side in pinned memory (`cudaMallocHost`; `pin_memory=True` and `.to(device, non_blocking=True)`), and copy while a kernel runs.",
        formula: "time of the copies * (1 - rate / rate of pinned copies in this profile), or half of the time where there are none, / time of the device",
        link: "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#pinned-memory",
        look: look::pageable,
    },
    Rule {
        id: "synchronization",
        code: Code::NSYS_SYNCHRONIZATION,
        threshold: 0.05,
        share_of: "the device's time",
        threshold_source: "ours",
        if_repeated: true,
        always: false,
        limits: "{count} calls waited for {device} ({calls}); when it was done, nothing was queued, and it was idle for {time} ({share} of its time) that the host had waited.",
        advice: "Wait once after the loop, not in it: keep results on the device (no `.item()`, `.cpu()` or `print` of a tensor in each step), and order work by streams and events.",
        formula: "(idle time, as far as the host had waited before it) / time of the device",
        link: "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#asynchronous-and-overlapping-transfers-with-computation",
        look: look::synchronization,
    },
    Rule {
        id: "copy-overlap",
        code: Code::NSYS_COPY_OVERLAP,
        threshold: 0.1,
        share_of: "the device's time",
        threshold_source: "ours: overlap needs streams and pinned memory, which is not worth it for less",
        if_repeated: false,
        always: false,
        limits: "Copies between host and device ran for {time} ({share} of the time of {device}) while no kernel did.",
        advice: "Copy from pinned memory in a second stream, the next part while a kernel works on this one.",
        formula: "min(copies without a kernel, kernels without a copy) / time of the device",
        link: "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#asynchronous-and-overlapping-transfers-with-computation",
        look: look::overlap,
    },
    Rule {
        id: "allocation",
        code: Code::NSYS_ALLOCATION,
        threshold: 0.05,
        share_of: "the device's time",
        threshold_source: "ours",
        if_repeated: false,
        always: false,
        limits: "{device} was idle for {share} of its time while the host allocated or freed memory ({count} calls).",
        advice: "Allocate before the loop and use the memory again, or from a pool (`cudaMallocAsync`).",
        formula: "(idle time while the host was allocating) / time of the device",
        link: "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#stream-ordered-memory-allocator",
        look: look::allocation,
    },
    Rule {
        id: "top-kernel",
        code: Code::NSYS_TOP_KERNEL,
        threshold: 0.1,
        share_of: "the device's time",
        threshold_source: "Amdahl's law; up to five kernels, until 80% of the time of all kernels is told",
        if_repeated: false,
        always: true,
        limits: "`{kernel}` takes {share_of_kernels} of the kernels' time ({count} launches, median {median}); {ceiling}.",
        advice: "Profile it with Nsight Compute to see what limits it.",
        formula: "time in which only this kernel ran / time of the device (Amdahl)",
        link: "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#strong-scaling-and-amdahl-s-law",
        look: look::top,
    },
];
