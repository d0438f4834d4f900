//! The rules that explain a launch: one table, split by what the rules are about, and the code that goes through it.
//!
//! A rule holds when all its conditions hold; a condition over something that was not measured does not hold. A rule about lines holds for
//! each line whose counters prove it, and falls back on the launch's own metrics only where lines were not counted.

mod bound;
mod launch;
mod memory;
mod stall;

use std::fmt;

use stitch_findings::Code;

use super::expression::Formula;
use super::lines::Measure;
use super::model::Stall;
use super::roofline::{Bound, Level};

/// One row of the table.
#[derive(Debug)]
pub struct Rule {
    /// Its name in results.
    pub id: &'static str,
    /// The finding's code, whose page explains it.
    pub code: Code,
    /// What must hold, all of it.
    pub when: &'static [Condition],
    /// Where it is told.
    pub at: At,
    /// What limits, in a sentence with `{names}` of [`Rule::shows`]; what stands in square brackets may be left out.
    pub limits: &'static str,
    /// The numbers in the sentences.
    pub shows: &'static [(&'static str, Formula, Format)],
    /// What could be gained, from 0 to 1 of the time, and how that is estimated. All of them are ours.
    pub gain: Option<(Formula, &'static str)>,
    /// What to do, in a sentence.
    pub advice: &'static str,
    /// Where the thresholds come from.
    pub source: &'static str,
    /// Documentation.
    pub link: &'static str,
    /// Rules that say the same better: when one of them holds, this one is not told.
    pub unless: &'static [&'static str],
}

/// One condition.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// The first is at least the second.
    AtLeast(Formula, Formula),
    /// The first is less than the second.
    Below(Formula, Formula),
    /// The roofline class is this.
    Is(Bound),
    /// The busiest level of memory is this.
    Level(Level),
    /// The first is below the second, or was not measured.
    BelowOrUnknown(Formula, Formula),
    /// The kernel's name has one of these parts, in any case.
    Named(&'static [&'static str]),
}

/// Where a result is told.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// At the kernel.
    Kernel,
    /// At each line that the counters prove it for; `ratio` and `share` are the least that count.
    Lines {
        /// What is looked at.
        measure: Measure,
        /// The least of how many times what would be enough.
        ratio: f64,
        /// What that has to stay below, for a rule that leaves the rest to another one.
        below: f64,
        /// The least share of the excess in all of the kernel's.
        share: f64,
    },
    /// At the kernel, and only where no lines were counted by this measure: they would say it better.
    Uncounted(Measure),
    /// At the worst line of a measure, with the next ones beside it; the launch's metrics decide.
    Worst(Measure),
    /// At the line with most sectors.
    MostSectors,
    /// At the line with most wavefronts of shared memory, or most sectors.
    MostWavefronts,
    /// At the line with most instructions.
    MostInstructions,
    /// At the line with most global atomics.
    Atomics,
    /// At the line that causes a stall.
    Stalled(Stall),
}

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A percentage whose value is from 0 to 100.
    Percent,
    /// A percentage whose value is from 0 to 1.
    Share,
    /// A count with thousands.
    Count,
    /// One digit behind the point, two below 2, thousands from 100 on.
    Ratio,
    /// Two digits behind the point.
    Small,
    /// Bytes with a prefix.
    Bytes,
}

/// Every rule, in the order in which results of equal weight are told.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    bound::RULES.iter().chain(memory::RULES).chain(launch::RULES).chain(stall::RULES)
}

impl Condition {
    /// The formulas in it.
    pub(super) fn formulas(&self) -> Vec<Formula> {
        match self {
            Self::AtLeast(a, b) | Self::Below(a, b) => vec![*a, *b],
            Self::BelowOrUnknown(..) | Self::Named(_) => Vec::new(),
            Self::Is(_) => vec![Formula::Busiest],
            Self::Level(_) => vec![Formula::M(super::Metric::MemoryThroughput)],
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(a, b) => write!(f, "{a} >= {b}"),
            Self::Below(a, b) => write!(f, "{a} < {b}"),
            Self::BelowOrUnknown(a, b) => write!(f, "{a} < {b} or unknown"),
            Self::Is(bound) => write!(f, "class is {bound:?}"),
            Self::Level(level) => write!(f, "level is {level:?}"),
            Self::Named(parts) => write!(f, "the name has {}", parts.join(" or ")),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => write!(f, "the kernel"),
            Self::Lines { measure, ratio, below, share } => {
                write!(f, "lines by {measure:?}")?;
                if *ratio > 0.0 {
                    write!(f, ", ratio >= {ratio}")?;
                }
                if below.is_finite() && *below < 32.0 {
                    write!(f, " and < {below}")?;
                }
                write!(f, ", share >= {share}")
            }
            Self::Uncounted(measure) => write!(f, "the kernel, where no lines were counted by {measure:?}"),
            Self::Worst(measure) => write!(f, "the worst line by {measure:?}"),
            Self::MostSectors => write!(f, "the line with most sectors"),
            Self::MostWavefronts => write!(f, "the line with most wavefronts"),
            Self::MostInstructions => write!(f, "the line with most instructions"),
            Self::Atomics => write!(f, "the line with most atomics"),
            Self::Stalled(stall) => write!(f, "the line that causes {stall:?}"),
        }
    }
}
