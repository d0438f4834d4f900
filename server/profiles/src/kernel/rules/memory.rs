//! Rules about memory accesses.

use stitch_findings::Code;

use super::{At, Condition, Format, Rule};
use crate::kernel::Formula;
use crate::kernel::Metric;
use crate::kernel::expression::Formula::{
    Any, Busiest, K, Less, LineExcess, LineRatio, LineShare, M, Max, Memory, Over, Sum, Times,
};
use crate::kernel::lines::Measure;
use crate::kernel::roofline::{Bound, Level};

const BEST: &str = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html";
const COALESCE: &str =
    "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory";
const SHARED: &str =
    "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#shared-memory-and-memory-banks";
const LOCAL: &str = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#local-memory";

/// Sectors asked for, over the least that would do.
const SECTORS: Formula = Over(&M(Metric::GlobalSectors), &M(Metric::GlobalSectorsIdeal));
const LOAD_WASTE: Formula = Over(&K(32.0), &M(Metric::LoadBytesPerSector));
const STORE_WASTE: Formula = Over(&K(32.0), &M(Metric::StoreBytesPerSector));
const GLOBALS: Formula = Sum(&[M(Metric::GlobalLoads), M(Metric::GlobalStores)]);
const LOCALS: Formula = Sum(&[M(Metric::LocalLoads), M(Metric::LocalStores)]);
/// How busy memory is, from 0 to 1. Without it no gain is told: the simulator counts sectors and knows no time.
const BUSY: Formula = Over(&Memory, &K(100.0));
const IDLE: Formula = Less(&K(1.0), &Over(&Busiest, &K(100.0)));

/// Sectors too many, of loads and stores together.
const EXCESS: Formula = Less(&M(Metric::GlobalSectors), &M(Metric::GlobalSectorsIdeal));
/// Sectors too many, of one side: what of them carries nothing that was asked for.
const LOAD_EXCESS: Formula =
    Times(&M(Metric::LoadSectors), &Less(&K(1.0), &Over(&M(Metric::LoadBytesPerSector), &K(32.0))));
const STORE_EXCESS: Formula =
    Times(&M(Metric::StoreSectors), &Less(&K(1.0), &Over(&M(Metric::StoreBytesPerSector), &K(32.0))));
const ASKED: Formula =
    Any(&[M(Metric::GlobalSectors), Sum(&[M(Metric::LoadSectors), M(Metric::StoreSectors)])]);
const LOAD_SHARE: Formula = Over(&LOAD_EXCESS, &ASKED);
const STORE_SHARE: Formula = Over(&STORE_EXCESS, &ASKED);
/// Of the excess that was counted, how many times what loads and stores account for. Below one they claim more than there is, since a warp of
/// which one lane stores fills no sector and yet takes none too many; then only the sum is known, and so it is where neither side is.
const APART: Formula = Any(&[
    Over(&EXCESS, &Sum(&[Any(&[LOAD_EXCESS, K(0.0)]), Any(&[STORE_EXCESS, K(0.0)])])),
    Times(&EXCESS, &K(0.0)),
    K(1.0),
]);

const GAINED: &str = "excess sectors / all sectors * memory throughput / 100";
const LOAD_GAIN: (Formula, &str) = (Times(&Any(&[LineShare, LOAD_SHARE]), &BUSY), GAINED);
const STORE_GAIN: (Formula, &str) = (Times(&Any(&[LineShare, STORE_SHARE]), &BUSY), GAINED);
const LOAD_SHOWS: &[(&str, Formula, Format)] = &[
    ("times", Any(&[LineRatio, LOAD_WASTE]), Format::Ratio),
    ("excess", Any(&[LineExcess, LOAD_EXCESS]), Format::Count),
    ("share", Any(&[LineShare, LOAD_SHARE]), Format::Share),
];
const STORE_SHOWS: &[(&str, Formula, Format)] = &[
    ("times", Any(&[LineRatio, STORE_WASTE]), Format::Ratio),
    ("excess", Any(&[LineExcess, STORE_EXCESS]), Format::Count),
    ("share", Any(&[LineShare, STORE_SHARE]), Format::Share),
];
const COALESCING: &str = "a sector has 32 bytes, so that 32 lanes of 4 bytes need 4 (CUDA C++ Best Practices Guide, Coalesced Access); \
     1.5 times and a twentieth of the kernel's sectors are ours: a misaligned warp takes 1.25 times";

/// The rows.
pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "uncoalesced-load",
        code: Code::NCU_UNCOALESCED_ACCESS,
        when: &[
            Condition::AtLeast(LOAD_WASTE, K(2.0)),
            Condition::AtLeast(Any(&[SECTORS, K(2.0)]), K(1.5)),
            Condition::AtLeast(Over(&M(Metric::GlobalLoads), &GLOBALS), K(0.25)),
            Condition::AtLeast(APART, K(0.9)),
            Condition::AtLeast(Any(&[LOAD_SHARE, K(1.0)]), K(0.05)),
        ],
        at: At::Lines { measure: Measure::Loads, ratio: 1.5, below: f64::INFINITY, share: 0.05 },
        limits: "The loads of {kernel} here take {times} times the sectors they need[: {excess} too many, {share} of all global sectors].",
        shows: LOAD_SHOWS,
        gain: Some(LOAD_GAIN),
        advice: "Let neighbouring threads load neighbouring addresses: make threadIdx.x the fastest index, use arrays of fields rather than of \
                 structures, or load a tile row by row into shared memory.",
        source: COALESCING,
        link: COALESCE,
        unless: &[],
    },
    Rule {
        id: "uncoalesced-store",
        code: Code::NCU_UNCOALESCED_ACCESS,
        when: &[
            Condition::AtLeast(STORE_WASTE, K(2.0)),
            Condition::AtLeast(Any(&[SECTORS, K(2.0)]), K(1.5)),
            Condition::AtLeast(Over(&M(Metric::GlobalStores), &GLOBALS), K(0.25)),
            Condition::AtLeast(APART, K(0.9)),
            Condition::AtLeast(Any(&[STORE_SHARE, K(1.0)]), K(0.05)),
        ],
        at: At::Lines { measure: Measure::Stores, ratio: 1.5, below: f64::INFINITY, share: 0.05 },
        limits: "The stores of {kernel} here take {times} times the sectors they need[: {excess} too many, {share} of all global sectors].",
        shows: STORE_SHOWS,
        gain: Some(STORE_GAIN),
        advice: "Let neighbouring threads store to neighbouring addresses: swap the indices, or turn the tile in shared memory and store its rows.",
        source: COALESCING,
        link: COALESCE,
        unless: &[],
    },
    Rule {
        id: "uncoalesced-access",
        code: Code::NCU_UNCOALESCED_ACCESS,
        when: &[Condition::AtLeast(SECTORS, K(1.5))],
        at: At::Uncounted(Measure::Loads),
        limits: "Loads and stores of {kernel} together take {times} times the sectors they need: {excess} too many, {share} of all global sectors.",
        shows: &[
            ("times", SECTORS, Format::Ratio),
            ("excess", EXCESS, Format::Count),
            ("share", Over(&EXCESS, &M(Metric::GlobalSectors)), Format::Share),
        ],
        gain: Some((Times(&Over(&EXCESS, &M(Metric::GlobalSectors)), &BUSY), GAINED)),
        advice: "Let neighbouring threads access neighbouring addresses; which accesses do not is known from the source page (`ncu --page source`).",
        source: COALESCING,
        link: COALESCE,
        unless: &["uncoalesced-load", "uncoalesced-store"],
    },
    Rule {
        id: "misaligned-load",
        code: Code::NCU_MISALIGNED_ACCESS,
        when: &[
            Condition::AtLeast(LOAD_WASTE, K(1.2)),
            Condition::AtLeast(SECTORS, K(1.1)),
            Condition::Below(SECTORS, K(1.5)),
        ],
        at: At::Lines { measure: Measure::Loads, ratio: 1.1, below: 1.5, share: 0.05 },
        limits: "The loads of {kernel} here take {times} times the sectors they need, as warps do that begin between two sectors.",
        shows: LOAD_SHOWS,
        gain: Some(LOAD_GAIN),
        advice: "Begin each warp's part at a multiple of 32 bytes: shift the index, pad rows, or load the border apart.",
        source: COALESCING,
        link: COALESCE,
        unless: &[],
    },
    Rule {
        id: "misaligned-store",
        code: Code::NCU_MISALIGNED_ACCESS,
        when: &[
            Condition::AtLeast(STORE_WASTE, K(1.2)),
            Condition::AtLeast(SECTORS, K(1.1)),
            Condition::Below(SECTORS, K(1.5)),
        ],
        at: At::Lines { measure: Measure::Stores, ratio: 1.1, below: 1.5, share: 0.05 },
        limits: "The stores of {kernel} here take {times} times the sectors they need, as warps do that begin between two sectors.",
        shows: STORE_SHOWS,
        gain: Some(STORE_GAIN),
        advice: "Begin each warp's part at a multiple of 32 bytes: shift the index, or pad rows.",
        source: COALESCING,
        link: COALESCE,
        unless: &["misaligned-load"],
    },
    Rule {
        id: "bank-conflict",
        code: Code::NCU_BANK_CONFLICT,
        when: &[Condition::AtLeast(
            Any(&[
                Less(&K(1.0), &Over(&M(Metric::SharedWavefrontsIdeal), &M(Metric::SharedWavefronts))),
                Max(&[
                    Over(&M(Metric::SharedLoadConflicts), &M(Metric::SharedLoadWavefronts)),
                    Over(&M(Metric::SharedStoreConflicts), &M(Metric::SharedStoreWavefronts)),
                ]),
            ]),
            K(0.1),
        )],
        at: At::Lines { measure: Measure::Conflicts, ratio: 1.5, below: f64::INFINITY, share: 0.1 },
        limits: "Shared accesses of {kernel} here have a[ {ways}-way] bank conflict: {share} of all wavefronts are repeats.",
        shows: &[
            (
                "ways",
                Any(&[
                    LineRatio,
                    Over(&M(Metric::SharedWavefronts), &M(Metric::SharedWavefrontsIdeal)),
                    Over(
                        &M(Metric::SharedLoadWavefronts),
                        &Less(&M(Metric::SharedLoadWavefronts), &M(Metric::SharedLoadConflicts)),
                    ),
                ]),
                Format::Ratio,
            ),
            (
                "share",
                Any(&[
                    LineShare,
                    Less(&K(1.0), &Over(&M(Metric::SharedWavefrontsIdeal), &M(Metric::SharedWavefronts))),
                    Over(&M(Metric::SharedLoadConflicts), &M(Metric::SharedLoadWavefronts)),
                ]),
                Format::Share,
            ),
        ],
        gain: Some((
            Times(
                &Any(&[LineShare, Over(&M(Metric::SharedLoadConflicts), &M(Metric::SharedLoadWavefronts))]),
                &Over(&Any(&[M(Metric::L1Throughput), Memory]), &K(100.0)),
            ),
            "excess wavefronts / all wavefronts * L1 throughput / 100",
        )),
        advice: "Pad each row of the shared array by one element, or swizzle its column index, so that the lanes of a warp meet 32 banks.",
        source: "NVIDIA's rule SharedMemoryConflicts: conflicts from 10 percent of the wavefronts on; 1.5-way is ours",
        link: SHARED,
        unless: &[],
    },
    Rule {
        id: "spill",
        code: Code::NCU_SPILL,
        when: &[Condition::AtLeast(Over(&M(Metric::SpillRequests), &M(Metric::Instructions)), K(0.01))],
        at: At::Worst(Measure::Local),
        limits: "{kernel} spills registers[, most of them here]: {spills} requests to local memory, {share} of its instructions[, with {registers} registers a thread].",
        shows: &[
            ("spills", M(Metric::SpillRequests), Format::Count),
            ("share", Over(&M(Metric::SpillRequests), &M(Metric::Instructions)), Format::Share),
            ("registers", M(Metric::Registers), Format::Count),
        ],
        gain: Some((
            Over(&M(Metric::SpillRequests), &M(Metric::Instructions)),
            "spill requests / instructions",
        )),
        advice: "Allow more registers (a smaller block in __launch_bounds__, a higher -maxrregcount), or keep fewer values alive at a time.",
        source: "the counter is of Nsight Compute 2025.1; one instruction in a hundred is ours",
        link: LOCAL,
        unless: &[],
    },
    Rule {
        id: "local-memory",
        code: Code::NCU_LOCAL_MEMORY,
        when: &[
            Condition::AtLeast(Over(&LOCALS, &Sum(&[LOCALS, GLOBALS])), K(0.1)),
            Condition::BelowOrUnknown(M(Metric::SpillRequests), K(1.0)),
        ],
        at: At::Lines { measure: Measure::Local, ratio: 0.0, below: f64::INFINITY, share: 0.1 },
        limits: "{kernel} uses local memory here: {share} of its sectors, by an array that is indexed at run time or by spilled registers.",
        shows: &[("share", Any(&[LineShare, Over(&LOCALS, &Sum(&[LOCALS, GLOBALS]))]), Format::Share)],
        gain: Some((
            Times(&Any(&[LineShare, Over(&LOCALS, &Sum(&[LOCALS, GLOBALS]))]), &BUSY),
            "local sectors / all sectors * memory throughput / 100",
        )),
        advice: "Index the array with constants (unroll the loop), or keep it in shared memory; a thread's registers can't be indexed.",
        source: "a tenth of the accesses: NVIDIA's threshold for local instructions, taken of accesses here",
        link: LOCAL,
        unless: &["spill"],
    },
    Rule {
        id: "divergence",
        code: Code::NCU_DIVERGENCE,
        when: &[Condition::Below(M(Metric::ThreadsPerInstruction), K(24.0))],
        at: At::Lines { measure: Measure::Divergence, ratio: 0.0, below: 32.0, share: 0.05 },
        limits: "Warps of {kernel} diverge here: {lanes} of 32 lanes work on average, which wastes {share} of its instructions.",
        shows: &[
            ("lanes", Any(&[LineRatio, M(Metric::ThreadsPerInstruction)]), Format::Ratio),
            (
                "share",
                Any(&[LineShare, Less(&K(1.0), &Over(&M(Metric::ThreadsPerInstruction), &K(32.0)))]),
                Format::Share,
            ),
        ],
        gain: Some((
            Any(&[LineShare, Less(&K(1.0), &Over(&M(Metric::ThreadsPerInstruction), &K(32.0)))]),
            "idle lanes / 32 * their instructions / all instructions",
        )),
        advice: "Let a condition depend on the warp rather than on the lane: give neighbouring threads the same path, or compact the work first.",
        source: "NVIDIA's rule ThreadDivergence: below 24 threads; behind a predicate 16 lanes of the warps that have any, which is ours",
        link: "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#branching-and-divergence",
        unless: &[],
    },
    Rule {
        id: "atomics-same-address",
        code: Code::NCU_ATOMIC_CONTENTION,
        when: &[Condition::AtLeast(LineRatio, K(1.5))],
        at: At::Lines { measure: Measure::SameAddress, ratio: 1.5, below: f64::INFINITY, share: 0.1 },
        limits: "Atomics of {kernel} meet at the same addresses here: at least {times} lanes of a warp at each.",
        shows: &[("times", LineRatio, Format::Ratio)],
        gain: Some((
            Times(&Less(&K(1.0), &Over(&K(1.0), &LineRatio)), &IDLE),
            "(1 - 1 / lanes at an address) * (1 - max(compute, memory) / 100)",
        )),
        advice: "Add up within the warp, or in a histogram in shared memory, and do one atomic for the block.",
        source: "a sector of 32 bytes has 8 words, so that more lanes at it share one; 1.5 is ours",
        link: BEST,
        unless: &[],
    },
    Rule {
        id: "atomics-one-slice",
        code: Code::NCU_ATOMIC_CONTENTION,
        when: &[
            Condition::AtLeast(M(Metric::AtomicsBusyMax), K(50.0)),
            Condition::AtLeast(Over(&M(Metric::AtomicsBusyMax), &M(Metric::AtomicsBusy)), K(4.0)),
        ],
        at: At::Atomics,
        limits: "Atomics of {kernel} crowd a part of L2: its busiest slice does atomics {slice} of the time, the mean one {mean}.",
        shows: &[
            ("slice", M(Metric::AtomicsBusyMax), Format::Percent),
            ("mean", M(Metric::AtomicsBusy), Format::Percent),
        ],
        gain: Some((
            Times(&Less(&K(1.0), &Over(&M(Metric::AtomicsBusy), &M(Metric::AtomicsBusyMax))), &IDLE),
            "(1 - mean slice / busiest slice) * (1 - max(compute, memory) / 100)",
        )),
        advice: "Spread the atomics: add up within the block first, or give each block its own copy of the few addresses.",
        source: "the busiest slice half its time and four times the mean: ours",
        link: BEST,
        unless: &["atomics-same-address"],
    },
    Rule {
        id: "double-precision",
        code: Code::NCU_DOUBLE_PRECISION,
        when: &[Condition::AtLeast(LineShare, K(0.005))],
        at: At::Lines { measure: Measure::Doubles, ratio: 0.0, below: f64::INFINITY, share: 0.005 },
        limits: "{kernel} computes in double precision on float data here: {share} of its instructions, conversions included.",
        shows: &[("share", LineShare, Format::Share)],
        gain: None,
        advice: "Write the constants as floats (1.7f) and use the float functions, unless the digits are needed.",
        source: "conversions between float and double beside double arithmetic; one instruction in 200 is ours",
        link: "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#single-vs-double-precision",
        unless: &[],
    },
    Rule {
        id: "l2-reuse",
        code: Code::NCU_L2_REUSE,
        when: &[
            Condition::Is(Bound::Memory),
            Condition::Level(Level::Dram),
            Condition::Below(M(Metric::L2HitRate), K(40.0)),
            Condition::Named(&["gemm", "matmul", "conv", "attention", "attn", "stencil"]),
        ],
        at: At::MostSectors,
        limits: "{kernel} finds {hit} of its sectors in L2, although its blocks use the same data.",
        shows: &[("hit", M(Metric::L2HitRate), Format::Percent)],
        gain: None,
        advice: "Let blocks that run at the same time share rows and columns: order them in groups of tiles (block swizzling).",
        source: "a hit rate below 40 percent where reuse is expected: ours",
        link: "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#memory-tables-l2",
        unless: &[],
    },
];
