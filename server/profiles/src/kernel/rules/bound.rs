//! Rules about the roofline class, one of which holds for every launch whose two throughputs were measured.

use stitch_findings::Code;

use super::{At, Condition, Format, Rule};
use crate::kernel::Metric;
use crate::kernel::expression::Formula::{Busiest, BusiestPipe, Compute, K, Less, M, MeanPipe, Memory};
use crate::kernel::roofline::{Bound, Level};

const SOL: &str = "NVIDIA's rule SOLBottleneck: 60 and 80 percent of the peak, balanced within 10 points";
const GUIDE: &str = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#roofline-charts";
const MEMORY: &str = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#memory-chart";

const SHOWS: &[(&str, crate::kernel::Formula, Format)] = &[
    ("memory", Memory, Format::Percent),
    ("compute", Compute, Format::Percent),
    ("pipe", BusiestPipe, Format::Percent),
    ("read", M(Metric::DramRead), Format::Bytes),
    ("written", M(Metric::DramWritten), Format::Bytes),
];

/// The rows.
pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "memory-bound-dram",
        code: Code::NCU_MEMORY_BOUND,
        when: &[Condition::Is(Bound::Memory), Condition::Level(Level::Dram)],
        at: At::MostSectors,
        limits: "{kernel} is memory-bound by device memory: {memory} of its peak, computing {compute}[; {read} read, {written} written].",
        shows: SHOWS,
        gain: None,
        advice: "Move fewer bytes: fuse it with its neighbours, keep what is used again in shared memory or registers, use a narrower type.",
        source: SOL,
        link: MEMORY,
        unless: &[],
    },
    Rule {
        id: "memory-bound-l2",
        code: Code::NCU_MEMORY_BOUND,
        when: &[Condition::Is(Bound::Memory), Condition::Level(Level::L2)],
        at: At::MostSectors,
        limits: "{kernel} is memory-bound by the L2 cache: {memory} of its peak, computing {compute}.",
        shows: SHOWS,
        gain: None,
        advice: "Ask L2 for fewer sectors: coalesce the accesses, and keep what is used again in shared memory or registers.",
        source: SOL,
        link: MEMORY,
        unless: &[],
    },
    Rule {
        id: "memory-bound-l1",
        code: Code::NCU_MEMORY_BOUND,
        when: &[Condition::Is(Bound::Memory), Condition::Level(Level::L1)],
        at: At::MostWavefronts,
        limits: "{kernel} is memory-bound by L1 and shared memory: {memory} of its peak, computing {compute}.",
        shows: SHOWS,
        gain: None,
        advice: "Make each access to L1 and shared memory do more: keep a small tile in registers, load 16 bytes at once, avoid bank conflicts.",
        source: SOL,
        link: MEMORY,
        unless: &[],
    },
    Rule {
        id: "slow-pipe",
        code: Code::NCU_COMPUTE_BOUND,
        when: &[
            Condition::AtLeast(M(Metric::SmThroughput), K(80.0)),
            Condition::Below(MeanPipe, K(20.0)),
            Condition::AtLeast(Less(&BusiestPipe, &MeanPipe), K(25.0)),
        ],
        at: At::MostInstructions,
        limits: "{kernel} is compute-bound by one pipe, {pipe-name}: {pipe} of its peak, while the others are hardly used.",
        shows: SHOWS,
        gain: None,
        advice: "Do some of its work on other pipes: float in place of double, FMA in place of special functions, tensor cores for matrix products.",
        source: "NVIDIA's rule HighPipeUtilization: mean of pipes below 20 percent, the busiest 25 points above it",
        link: "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#pipelines",
        unless: &[],
    },
    Rule {
        id: "compute-bound",
        code: Code::NCU_COMPUTE_BOUND,
        when: &[Condition::Is(Bound::Compute)],
        at: At::MostInstructions,
        limits: "{kernel} is compute-bound[ by the {pipe-name} pipe, which is at {pipe} of its peak]: multiprocessors {compute}, memory {memory}.",
        shows: SHOWS,
        gain: None,
        advice: "Do less arithmetic: a cheaper algorithm, FMA and cheaper functions, narrower types, tensor cores for matrix products.",
        source: SOL,
        link: GUIDE,
        unless: &["slow-pipe"],
    },
    Rule {
        id: "balanced",
        code: Code::NCU_BALANCED,
        when: &[Condition::Is(Bound::Balanced)],
        at: At::MostInstructions,
        limits: "{kernel} is balanced: computing {compute} of its peak, memory {memory}[, most of it by {level}].",
        shows: SHOWS,
        gain: None,
        advice: "Cut both at once: fewer instructions for each byte gain nothing alone; fusing kernels, or more work a thread, cuts both.",
        source: SOL,
        link: GUIDE,
        unless: &[],
    },
    Rule {
        id: "latency-bound",
        code: Code::NCU_LATENCY_BOUND,
        when: &[Condition::Is(Bound::Latency)],
        at: At::Kernel,
        limits: "{kernel} is latency-bound: computing {compute} of its peak, memory {memory}, so that most of the time goes by waiting.",
        shows: SHOWS,
        gain: Some((
            Less(&K(1.0), &crate::kernel::Formula::Over(&Busiest, &K(100.0))),
            "1 - max(compute, memory) / 100",
        )),
        advice: "Give the schedulers more to do at a time: more warps, more independent work a thread, shorter waits; the stalls say which.",
        source: SOL,
        link: GUIDE,
        unless: &["grid-too-small"],
    },
];
