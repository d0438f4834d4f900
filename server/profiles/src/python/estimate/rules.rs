//! When an estimate makes a roofline class: a table.

use std::fmt;

use crate::kernel::Bound;
use crate::kernel::roofline::{BALANCED, BUSY};

/// A kernel shorter than this takes less time than its launch: 2 to 5 µs on the host, and about as long until it runs. In nanoseconds. The
/// same as for the rule about tiny kernels.
pub const SHORT_NS: u64 = crate::system::TINY_KERNEL_NS;

/// The share of a device's time that gaps between launches must have to dominate. Ours: then they take longer than all that runs.
pub const GAPS: f64 = 0.5;

/// What an estimate says of an operator's kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// What must be moved at least, in the time of the kernels, in percent of the memory's peak.
    pub memory: f64,
    /// What must be computed, likewise, in percent of the peak of the unit that does it; 0 for what only moves.
    pub compute: f64,
    /// How long a kernel takes on average, in nanoseconds.
    pub kernel_ns: u64,
    /// The share of the device's time, from 0 to 1, that gaps of up to 100 µs between launches have; `None` where that is not known.
    pub gaps: Option<f64>,
}

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// The memory reaches this percentage.
    Memory(f64),
    /// Computing reaches this percentage.
    Compute(f64),
    /// Both are no further apart than so many points.
    Within(f64),
    /// The memory's percentage is at least that of computing.
    MoreMemory,
    /// A kernel takes less than so many nanoseconds on average.
    Shorter(u64),
    /// Gaps between launches have this share of the device's time.
    Gaps(f64),
}

impl Condition {
    fn holds(self, reached: &Reached) -> bool {
        match self {
            Self::Memory(least) => reached.memory >= least,
            Self::Compute(least) => reached.compute >= least,
            Self::Within(most) => (reached.memory - reached.compute).abs() <= most,
            Self::MoreMemory => reached.memory >= reached.compute,
            Self::Shorter(most) => reached.kernel_ns < most,
            Self::Gaps(least) => reached.gaps.is_some_and(|gaps| gaps >= least),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(least) => write!(formatter, "memory >= {least}%"),
            Self::Compute(least) => write!(formatter, "computing >= {least}%"),
            Self::Within(most) => write!(formatter, "|memory - computing| <= {most}"),
            Self::MoreMemory => write!(formatter, "memory >= computing"),
            Self::Shorter(most) => write!(formatter, "mean kernel < {} µs", *most / 1_000),
            Self::Gaps(least) => {
                write!(formatter, "gaps between launches >= {}% of the device's time", least * 100.0)
            }
        }
    }
}

/// A row: the first whose conditions all hold gives the class.
#[derive(Clone, Copy, Debug)]
pub struct EstimateRule {
    /// The class.
    pub bound: Bound,
    /// When.
    pub when: &'static [Condition],
    /// Where the thresholds come from.
    pub source: &'static str,
}

/// NVIDIA's thresholds for what was measured, taken for what was estimated too.
const SOL: &str = "NVIDIA's rule SOLBottleneck, as for what Nsight Compute measured";

/// The table.
pub const ESTIMATE_RULES: &[EstimateRule] = &[
    EstimateRule {
        bound: Bound::Balanced,
        when: &[Condition::Memory(BUSY), Condition::Compute(BUSY), Condition::Within(BALANCED)],
        source: SOL,
    },
    EstimateRule {
        bound: Bound::Memory,
        when: &[Condition::Memory(BUSY), Condition::MoreMemory],
        source: SOL,
    },
    EstimateRule { bound: Bound::Compute, when: &[Condition::Compute(BUSY)], source: SOL },
    EstimateRule {
        bound: Bound::Launch,
        when: &[Condition::Shorter(SHORT_NS), Condition::Gaps(GAPS)],
        source: "ours: a launch costs the host 2 to 5 µs, and with half of its time in gaps the device waits for launches more than it works",
    },
    EstimateRule {
        bound: Bound::Latency,
        when: &[],
        source: "neither is near its peak: time goes by waiting, or more is moved and computed than must be",
    },
];

/// The class.
pub fn class(reached: &Reached) -> Bound {
    let rule = ESTIMATE_RULES.iter().find(|rule| rule.when.iter().all(|condition| condition.holds(reached)));
    rule.map_or(Bound::Unknown, |rule| rule.bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_holds_gives_the_class() {
        let of = |memory, compute, kernel_ns, gaps| class(&Reached { memory, compute, kernel_ns, gaps });
        assert_eq!(of(73.0, 0.0, 60_000, Some(0.1)), Bound::Memory);
        assert_eq!(of(20.0, 61.0, 60_000, None), Bound::Compute);
        assert_eq!(of(70.0, 65.0, 60_000, None), Bound::Balanced);
        assert_eq!(of(5.0, 5.0, 2_000, Some(0.7)), Bound::Launch);
        assert_eq!(of(5.0, 5.0, 2_000, Some(0.3)), Bound::Latency, "gaps do not dominate");
        assert_eq!(of(5.0, 5.0, 2_000, None), Bound::Latency, "gaps are not known");
        assert_eq!(of(5.0, 5.0, 90_000, Some(0.7)), Bound::Latency, "the kernels are long");
        // Small tensors that come from the L2 cache may be faster than memory.
        assert_eq!(of(140.0, 0.0, 2_000, Some(0.7)), Bound::Memory);
    }
}
