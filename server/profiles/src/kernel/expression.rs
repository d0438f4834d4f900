//! Formulas over metrics, as data.
//!
//! A rule's condition, the numbers in its message and its estimated gain are formulas of the table, so that the table can be printed and
//! a rule can be known unanswerable when a metric is missing. A formula without one of its metrics has no value; it is never zero.

use std::fmt;

use super::lines::LineEvidence;
use super::roofline::Class;
use super::{KernelLaunch, Metric};

/// A formula.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// A metric.
    M(Metric),
    /// A constant.
    K(f64),
    /// The sum of all.
    Sum(&'static [Formula]),
    /// The difference of two.
    Less(&'static Formula, &'static Formula),
    /// The product of two.
    Times(&'static Formula, &'static Formula),
    /// The quotient of two; without a value where the divisor is zero.
    Over(&'static Formula, &'static Formula),
    /// The largest of those that have a value.
    Max(&'static [Formula]),
    /// The least of those that have a value.
    Min(&'static [Formula]),
    /// The first that has a value.
    Any(&'static [Formula]),
    /// Rounded up.
    Ceil(&'static Formula),
    /// Computing's throughput, in percent.
    Compute,
    /// Memory's throughput, in percent: of the whole, or of its busiest level where that alone was measured.
    Memory,
    /// The larger of computing's and memory's throughput, in percent.
    Busiest,
    /// The busiest pipe, in percent of its peak.
    BusiestPipe,
    /// The mean over pipes, in percent of their peaks.
    MeanPipe,
    /// Of the line at hand: what is too much, in sectors, wavefronts or instructions.
    LineExcess,
    /// Of the line at hand: how many times what would be enough.
    LineRatio,
    /// Of the line at hand: its excess in all of the kernel's.
    LineShare,
}

/// What formulas are evaluated over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'l> {
    pub launch: &'l KernelLaunch,
    pub class: &'l Class,
    pub line: Option<&'l LineEvidence>,
}

impl Formula {
    /// Its value, if everything in it was measured.
    pub(super) fn value(&self, facts: Facts<'_>) -> Option<f64> {
        let each = |all: &'static [Self]| all.iter().filter_map(move |formula| formula.value(facts));
        let value = match self {
            Self::M(metric) => facts.launch.get(*metric)?,
            Self::K(constant) => *constant,
            Self::Sum(all) => {
                let mut sum = 0.0;
                for formula in *all {
                    sum += formula.value(facts)?;
                }
                sum
            }
            Self::Less(a, b) => a.value(facts)? - b.value(facts)?,
            Self::Times(a, b) => a.value(facts)? * b.value(facts)?,
            Self::Over(a, b) => {
                let divisor = b.value(facts).filter(|divisor| *divisor != 0.0)?;
                a.value(facts)? / divisor
            }
            Self::Max(all) => each(all).reduce(f64::max)?,
            Self::Min(all) => each(all).reduce(f64::min)?,
            Self::Any(all) => all.iter().find_map(|formula| formula.value(facts))?,
            Self::Ceil(of) => of.value(facts)?.ceil(),
            Self::Compute => facts.class.compute?,
            Self::Memory => facts.class.memory?,
            Self::Busiest => facts.class.compute.into_iter().chain(facts.class.memory).reduce(f64::max)?,
            Self::BusiestPipe => super::roofline::pipe(facts.launch)?.1,
            Self::MeanPipe => {
                let pipes: Vec<f64> = super::roofline::PIPES
                    .iter()
                    .filter_map(|(metric, _)| facts.launch.get(*metric))
                    .collect();
                if pipes.is_empty() {
                    return None;
                }
                pipes.iter().sum::<f64>() / pipes.len() as f64
            }
            Self::LineExcess => facts.line?.excess,
            Self::LineRatio => facts.line?.ratio,
            Self::LineShare => facts.line?.share,
        };
        value.is_finite().then_some(value)
    }

    /// Adds the metrics that stand in it.
    pub(super) fn metrics(&self, found: &mut Vec<Metric>) {
        match self {
            Self::M(metric) => found.push(*metric),
            Self::Sum(all) | Self::Max(all) | Self::Min(all) | Self::Any(all) => {
                all.iter().for_each(|formula| formula.metrics(found));
            }
            Self::Less(a, b) | Self::Times(a, b) | Self::Over(a, b) => {
                a.metrics(found);
                b.metrics(found);
            }
            Self::Ceil(of) => of.metrics(found),
            Self::Compute => found.push(Metric::SmThroughput),
            Self::Memory => found.push(Metric::MemoryThroughput),
            Self::Busiest => found.extend([Metric::SmThroughput, Metric::MemoryThroughput]),
            Self::BusiestPipe | Self::MeanPipe => {
                found.extend(super::roofline::PIPES.iter().map(|(metric, _)| *metric))
            }
            Self::K(_) | Self::LineExcess | Self::LineRatio | Self::LineShare => {}
        }
    }

    /// Whether a value can be had when only these metrics are measured.
    pub(super) fn answerable(&self, has: &dyn Fn(Metric) -> bool) -> bool {
        match self {
            Self::M(metric) => has(*metric),
            Self::Sum(all) => all.iter().all(|formula| formula.answerable(has)),
            Self::Max(all) | Self::Min(all) | Self::Any(all) => {
                all.iter().any(|formula| formula.answerable(has))
            }
            Self::Less(a, b) | Self::Times(a, b) | Self::Over(a, b) => a.answerable(has) && b.answerable(has),
            Self::Ceil(of) => of.answerable(has),
            Self::Compute => has(Metric::SmThroughput),
            Self::Memory => has(Metric::MemoryThroughput),
            Self::Busiest => has(Metric::SmThroughput) && has(Metric::MemoryThroughput),
            Self::BusiestPipe | Self::MeanPipe => {
                super::roofline::PIPES.iter().any(|(metric, _)| has(*metric))
            }
            Self::K(_) | Self::LineExcess | Self::LineRatio | Self::LineShare => true,
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name: &str, all: &[Self]| {
            let parts: Vec<String> = all.iter().map(Self::to_string).collect();
            write!(f, "{name}({})", parts.join(", "))
        };
        match self {
            Self::M(metric) => write!(f, "{metric:?}"),
            Self::K(constant) => write!(f, "{constant}"),
            Self::Sum(all) => list(f, "sum", all),
            Self::Less(a, b) => write!(f, "({a} - {b})"),
            Self::Times(a, b) => write!(f, "{a} * {b}"),
            Self::Over(a, b) => write!(f, "{a} / {b}"),
            Self::Max(all) => list(f, "max", all),
            Self::Min(all) => list(f, "min", all),
            Self::Any(all) => list(f, "first known of", all),
            Self::Ceil(of) => write!(f, "ceil({of})"),
            Self::Compute => write!(f, "compute"),
            Self::Memory => write!(f, "memory"),
            Self::Busiest => write!(f, "max(compute, memory)"),
            Self::BusiestPipe => write!(f, "busiest pipe"),
            Self::MeanPipe => write!(f, "mean pipe"),
            Self::LineExcess => write!(f, "excess of the line"),
            Self::LineRatio => write!(f, "ratio of the line"),
            Self::LineShare => write!(f, "share of the line"),
        }
    }
}
