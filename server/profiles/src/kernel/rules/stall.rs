//! Rules about what warps wait for, one for each reason.
//!
//! A reason matters when warps spend a good part of their time on it while the schedulers issue too little, and no unit is saturated: in a
//! kernel at 90 percent of the memory's bandwidth warps wait for memory, and nothing follows from that.

use stitch_findings::Code;

use super::{At, Condition, Format, Rule};
use crate::kernel::Metric;
use crate::kernel::expression::Formula::{Any, Busiest, K, Less, M, Min, Over};
use crate::kernel::model::Stall;

const SOURCE: &str = "NVIDIA's rule CPIStall: more than 0.3 of a warp's cycles, while fewer than 0.8 instructions are issued each cycle";
const LINK: &str = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#warp-scheduler-states";

/// A reason's part of a warp's time: of its cycles, as a percentage that some sessions ask for, or of samples.
macro_rules! share {
    ($metric:ident, $part:ident, $sampled:ident) => {
        Any(&[
            Over(&M(Metric::$metric), &M(Metric::CyclesPerInstruction)),
            Over(&M(Metric::$part), &K(100.0)),
            Over(&M(Metric::$sampled), &M(Metric::Samples)),
        ])
    };
}

macro_rules! stall {
    ($id:literal, $metric:ident, $part:ident, $sampled:ident, $stall:ident, $what:literal, $advice:literal) => {
        Rule {
            id: $id,
            code: Code::NCU_STALL,
            when: &[
                Condition::AtLeast(share!($metric, $part, $sampled), K(0.3)),
                Condition::Below(M(Metric::IssueActive), K(0.8)),
                Condition::Below(Busiest, K(80.0)),
            ],
            at: At::Stalled(Stall::$stall),
            limits: concat!(
                "Warps of {kernel} spend {share} of their time ",
                $what,
                "[: {cycles} of {all} cycles between two instructions]."
            ),
            shows: &[
                ("share", share!($metric, $part, $sampled), Format::Share),
                ("cycles", M(Metric::$metric), Format::Ratio),
                ("all", M(Metric::CyclesPerInstruction), Format::Ratio),
            ],
            gain: Some((
                Min(&[share!($metric, $part, $sampled), Less(&K(1.0), &Over(&Busiest, &K(100.0)))]),
                "min(share of the stall, 1 - max(compute, memory) / 100)",
            )),
            advice: $advice,
            source: SOURCE,
            link: LINK,
            unless: &["grid-too-small"],
        }
    };
}

/// The rows.
pub(super) static RULES: &[Rule] = &[
    stall!(
        "stall-long-scoreboard",
        StallLongScoreboard,
        PartLongScoreboard,
        SampledLongScoreboard,
        LongScoreboard,
        "waiting for global or local memory (long scoreboard)",
        "Have more bytes under way: load several values before the first is used, 16 bytes at once, or ahead of time (cp.async, TMA)."
    ),
    stall!(
        "stall-short-scoreboard",
        StallShortScoreboard,
        PartShortScoreboard,
        SampledShortScoreboard,
        ShortScoreboard,
        "waiting for shared memory or special functions (short scoreboard)",
        "Look for bank conflicts first; then keep values in registers, and use fewer special functions and conversions."
    ),
    stall!(
        "stall-mio-throttle",
        StallMioThrottle,
        PartMioThrottle,
        SampledMioThrottle,
        MioThrottle,
        "waiting for the queue to shared memory and special functions (MIO throttle)",
        "Use fewer and wider accesses to shared memory (16 bytes at once), and look for bank conflicts."
    ),
    stall!(
        "stall-lg-throttle",
        StallLgThrottle,
        PartLgThrottle,
        SampledLgThrottle,
        LgThrottle,
        "waiting for the queue to global and local memory (LG throttle)",
        "Use fewer and wider accesses to global memory, and keep arrays out of local memory."
    ),
    stall!(
        "stall-barrier",
        StallBarrier,
        PartBarrier,
        SampledBarrier,
        Barrier,
        "waiting at a barrier",
        "Give the warps of a block the same work between barriers, use smaller blocks, or fewer barriers (double buffering, shuffles)."
    ),
    stall!(
        "stall-math-pipe",
        StallMathPipe,
        PartMathPipe,
        SampledMathPipe,
        MathPipe,
        "waiting for a math pipe (math pipe throttle)",
        "Mix instructions of several pipes, and use cheaper ones; more warps make this worse."
    ),
    stall!(
        "stall-wait",
        StallWait,
        PartWait,
        SampledWait,
        Wait,
        "waiting a fixed latency of the instruction before",
        "Give each thread more independent work: unroll, or compute several results at a time."
    ),
    stall!(
        "stall-no-instruction",
        StallNoInstruction,
        PartNoInstruction,
        SampledNoInstruction,
        NoInstruction,
        "waiting for the next instruction",
        "Make the code smaller: unroll less, so that the loop fits the instruction cache."
    ),
    stall!(
        "stall-drain",
        StallDrain,
        PartDrain,
        SampledDrain,
        Drain,
        "ended and waiting for their stores (drain)",
        "Coalesce the stores at the end, and store earlier."
    ),
    stall!(
        "stall-branch-resolving",
        StallBranchResolving,
        PartBranchResolving,
        SampledBranchResolving,
        BranchResolving,
        "waiting for branch targets (branch resolving)",
        "Use fewer jumps in the inner loop: unroll it, or select in place of branching."
    ),
    stall!(
        "stall-imc-miss",
        StallImcMiss,
        PartImcMiss,
        SampledImcMiss,
        ImcMiss,
        "waiting for constants (IMC miss)",
        "Let all lanes of a warp read the same constant, or keep the table in shared memory."
    ),
    stall!(
        "stall-tex-throttle",
        StallTexThrottle,
        PartTexThrottle,
        SampledTexThrottle,
        TexThrottle,
        "waiting for the texture queue (TEX throttle)",
        "Use fewer texture reads at a time, or ordinary loads for a part of them."
    ),
    stall!(
        "stall-membar",
        StallMembar,
        PartMembar,
        SampledMembar,
        Membar,
        "waiting for memory fences (membar)",
        "Use fewer fences, of the narrowest scope that is right."
    ),
    stall!(
        "stall-sleeping",
        StallSleeping,
        PartSleeping,
        SampledSleeping,
        Sleeping,
        "asleep",
        "Sleep for a shorter time, or wait at a barrier in place of polling."
    ),
    stall!(
        "stall-dispatch",
        StallDispatch,
        PartDispatch,
        SampledDispatch,
        Dispatch,
        "held at dispatch",
        "Nothing in the source points to this; compare with a run without other work on the device."
    ),
    stall!(
        "stall-gmma",
        StallGmma,
        PartGmma,
        SampledGmma,
        Gmma,
        "waiting for warpgroup matrix instructions (GMMA)",
        "Have more of them under way before the wait, and let another warpgroup do the rest (warp specialisation)."
    ),
    stall!(
        "stall-not-selected",
        StallNotSelected,
        PartNotSelected,
        SampledNotSelected,
        NotSelected,
        "ready while another warp issues (not selected)",
        "There are warps to spare: fewer of them with more registers each may do more."
    ),
];
