//! Rules about how a kernel is launched: grid, waves, occupancy, balance, and units that lie idle.

use stitch_findings::Code;

use super::{At, Condition, Format, Rule};
use crate::kernel::Formula;
use crate::kernel::Metric;
use crate::kernel::expression::Formula::{Any, Busiest, Ceil, K, Less, M, Max, Min, Over};
use crate::kernel::roofline::Bound;

const OCCUPANCY: &str =
    "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#occupancy-calculator";
const EXECUTION: &str = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#execution-configuration-optimizations";

const IDLE: Formula = Less(&K(1.0), &Over(&Busiest, &K(100.0)));
/// How much of the device's waves has no block.
const TAIL: Formula = Less(&K(1.0), &Over(&M(Metric::Waves), &Ceil(&M(Metric::Waves))));
const BLOCKS_PER_SM: Formula = Over(&M(Metric::GridSize), &M(Metric::Multiprocessors));
const UNUSED: Formula = Less(&K(1.0), &Min(&[Any(&[BLOCKS_PER_SM, M(Metric::Waves)]), K(1.0)]));
const IMBALANCE: Formula = Less(&K(1.0), &Over(&M(Metric::SmCyclesActive), &M(Metric::SmCyclesActiveMax)));
const OCCUPANCY_GAIN: Option<(Formula, &str)> = Some((
    Min(&[Less(&K(1.0), &Over(&M(Metric::TheoreticalOccupancy), &K(100.0))), IDLE]),
    "min(1 - theoretical occupancy / 100, 1 - max(compute, memory) / 100)",
));
const OCCUPANCY_SHOWS: &[(&str, Formula, Format)] = &[
    ("theoretical", M(Metric::TheoreticalOccupancy), Format::Percent),
    ("achieved", M(Metric::AchievedOccupancy), Format::Percent),
    ("registers", M(Metric::Registers), Format::Count),
    ("threads", M(Metric::BlockSize), Format::Count),
    ("static", M(Metric::SharedMemoryStatic), Format::Bytes),
    ("dynamic", M(Metric::SharedMemoryDynamic), Format::Bytes),
    ("blocks", Min(&LIMITS), Format::Count),
];
const LIMITS: [Formula; 5] = [
    M(Metric::LimitRegisters),
    M(Metric::LimitSharedMemory),
    M(Metric::LimitWarps),
    M(Metric::LimitBlocks),
    M(Metric::LimitBarriers),
];
const LOW: Condition = Condition::Below(M(Metric::TheoreticalOccupancy), K(80.0));
const FULL_GRID: Condition = Condition::AtLeast(M(Metric::Waves), K(1.0));
const OCCUPANCY_SOURCE: &str =
    "NVIDIA's rule TheoreticalOccupancy: below 80 percent; the limiter is the least of the block limits";

macro_rules! limited {
    ($id:literal, $limit:ident, $limits:literal, $advice:literal) => {
        Rule {
            id: $id,
            code: Code::NCU_LOW_OCCUPANCY,
            when: &[LOW, FULL_GRID, Condition::AtLeast(Min(&LIMITS), M(Metric::$limit))],
            at: At::Kernel,
            limits: $limits,
            shows: OCCUPANCY_SHOWS,
            gain: OCCUPANCY_GAIN,
            advice: $advice,
            source: OCCUPANCY_SOURCE,
            link: OCCUPANCY,
            unless: &[],
        }
    };
}

/// The rows.
pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "grid-too-small",
        code: Code::NCU_GRID_TOO_SMALL,
        when: &[Condition::Is(Bound::Latency), Condition::Below(M(Metric::Waves), K(1.0))],
        at: At::Kernel,
        limits: "The grid of {kernel} is too small for the device: {waves} waves[, {grid} blocks on {multiprocessors} multiprocessors].",
        shows: &[
            ("grid", M(Metric::GridSize), Format::Count),
            ("multiprocessors", M(Metric::Multiprocessors), Format::Count),
            ("waves", M(Metric::Waves), Format::Small),
        ],
        gain: Some((UNUSED, "1 - min(1, blocks / multiprocessors)")),
        advice: "Launch more blocks: less work for each thread, or the long dimension split over blocks (split-K); occupancy is not the trouble.",
        source: "NVIDIA's rules SOLBottleneck and LaunchConfiguration: less than one wave",
        link: EXECUTION,
        unless: &[],
    },
    Rule {
        id: "tail",
        code: Code::NCU_TAIL,
        when: &[FULL_GRID, Condition::Below(M(Metric::Waves), K(5.0)), Condition::AtLeast(TAIL, K(0.1))],
        at: At::Kernel,
        limits: "The last wave of {kernel} is not full: {waves} waves, so that {tail} of the device's time goes by without blocks.",
        shows: &[("waves", M(Metric::Waves), Format::Small), ("tail", TAIL, Format::Share)],
        gain: Some((TAIL, "1 - waves / ceil(waves)")),
        advice: "Launch a grid that fills whole waves, or as many blocks as are resident at a time, each looping over the work.",
        source: "NVIDIA's rule CPIStall/LaunchStats about tails: fewer than 5 waves; a tenth is ours",
        link: EXECUTION,
        unless: &[],
    },
    limited!(
        "occupancy-registers",
        LimitRegisters,
        "Registers limit the occupancy of {kernel} to {theoretical}[: {registers} a thread, so that the blocks of {threads} threads on a multiprocessor are {blocks}].",
        "Use fewer registers a thread: __launch_bounds__ with a smaller block or more blocks, fewer values alive at a time."
    ),
    limited!(
        "occupancy-shared-memory",
        LimitSharedMemory,
        "Shared memory limits the occupancy of {kernel} to {theoretical}[: {static} static and {dynamic} dynamic a block, so that the blocks on a multiprocessor are {blocks}].",
        "Use a smaller tile or a narrower type in shared memory, or ask for a larger carve-out (cudaFuncAttributePreferredSharedMemoryCarveout)."
    ),
    limited!(
        "occupancy-warps",
        LimitWarps,
        "The block size limits the occupancy of {kernel} to {theoretical}[: the blocks of {threads} threads on a multiprocessor are {blocks}].",
        "Choose a block size that divides the multiprocessor's threads: 128 or 256."
    ),
    limited!(
        "occupancy-blocks",
        LimitBlocks,
        "The number of blocks limits the occupancy of {kernel} to {theoretical}[: a multiprocessor holds {blocks}, of {threads} threads each].",
        "Give each block more warps: 128 threads or more."
    ),
    limited!(
        "occupancy-barriers",
        LimitBarriers,
        "Barriers limit the occupancy of {kernel} to {theoretical}[: the blocks on a multiprocessor are {blocks}].",
        "Use fewer named barriers a block."
    ),
    Rule {
        id: "achieved-occupancy",
        code: Code::NCU_ACHIEVED_OCCUPANCY,
        when: &[
            FULL_GRID,
            Condition::Is(Bound::Latency),
            Condition::AtLeast(
                Less(&M(Metric::TheoreticalOccupancy), &M(Metric::AchievedOccupancy)),
                K(10.0),
            ),
        ],
        at: At::Kernel,
        limits: "{kernel} keeps {achieved} of the warps resident where {theoretical} could be: blocks end early, or too few are there at the end.",
        shows: OCCUPANCY_SHOWS,
        gain: Some((
            Min(&[
                Less(&K(1.0), &Over(&M(Metric::AchievedOccupancy), &M(Metric::TheoreticalOccupancy))),
                IDLE,
            ]),
            "min(1 - achieved / theoretical, 1 - max(compute, memory) / 100)",
        )),
        advice: "Give all blocks the same work, and each enough of it that starting one costs little beside running it.",
        source: "NVIDIA's rule AchievedOccupancy: more than 10 points below",
        link: OCCUPANCY,
        unless: &["tail", "imbalance"],
    },
    Rule {
        id: "imbalance",
        code: Code::NCU_IMBALANCE,
        when: &[FULL_GRID, Condition::AtLeast(IMBALANCE, K(0.2))],
        at: At::Kernel,
        limits: "Multiprocessors wait for each other in {kernel}: the mean one is idle {idle} of the time that the busiest one works.",
        shows: &[("idle", IMBALANCE, Format::Share)],
        gain: Some((IMBALANCE, "1 - mean active cycles / most active cycles")),
        advice: "Give all blocks the same work: smaller pieces, or blocks that take the next piece from a counter when they are done.",
        source: "a fifth of the busiest multiprocessor's cycles: ours",
        link: EXECUTION,
        unless: &["tail"],
    },
    Rule {
        id: "tensor-idle",
        code: Code::NCU_TENSOR_IDLE,
        when: &[
            Condition::Below(Max(&[M(Metric::PipeTensor)]), K(5.0)),
            Condition::Named(&["gemm", "matmul", "conv", "attention", "attn", "bmm"]),
        ],
        at: At::MostInstructions,
        limits: "The tensor cores are idle in {kernel}, whose name tells of a matrix product: {tensor} of their peak.",
        shows: &[("tensor", M(Metric::PipeTensor), Format::Percent)],
        gain: None,
        advice: "Use them where the precision allows: WMMA or mma.sync, wgmma on Hopper, or cuBLASLt; TF32, BF16 and FP16 round their inputs.",
        source: "below 5 percent: ours; the compiler moves constants through this pipe, which counts up to 3 percent",
        link: "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warp-matrix-functions",
        unless: &[],
    },
];
