//! The roofline class of a launch: what it is bound by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KernelLaunch, Metric};

/// Below this share of its peak, in percent, a unit does not bound a kernel.
///
/// Source: NVIDIA's rule `SOLBottleneck`, which calls both units below 60 a latency problem.
pub const BUSY: f64 = 60.0;

/// From this share of its peak on, in percent, only less work helps. Source: the same rule.
pub const SATURATED: f64 = 80.0;

/// Two units within this many points are balanced. Source: the same rule.
pub const BALANCED: f64 = 10.0;

/// What bounds a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Bound {
    /// Memory, at the level that [`Class::level`] names.
    Memory,
    /// Computing, in the pipe that [`Class::pipe`] names.
    Compute,
    /// Both alike.
    Balanced,
    /// Neither is busy: time goes by waiting.
    Latency,
    /// Kernels are shorter than their launches, and the device waits for these. Of lines of Python; a kernel by itself never is.
    Launch,
    /// What it takes to say was not measured.
    Unknown,
}

impl Bound {
    /// In a word: `memory-bound`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Memory => "memory-bound",
            Self::Compute => "compute-bound",
            Self::Balanced => "balanced",
            Self::Latency => "latency-bound",
            Self::Launch => "launch-bound",
            Self::Unknown => "not classified",
        }
    }
}

/// A level of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Level {
    /// Device memory.
    #[serde(rename = "DRAM")]
    Dram,
    /// The cache that multiprocessors share.
    L2,
    /// The cache and the shared memory of a multiprocessor.
    L1,
}

impl Level {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dram => "device memory",
            Self::L2 => "the L2 cache",
            Self::L1 => "L1 and shared memory",
        }
    }
}

/// Pipes of a multiprocessor, with what a person calls each.
pub(super) const PIPES: &[(Metric, &str)] = &[
    (Metric::PipeFma, "FMA"),
    (Metric::PipeAlu, "ALU"),
    (Metric::PipeFp64, "FP64"),
    (Metric::PipeFp16, "FP16"),
    (Metric::PipeXu, "XU"),
    (Metric::PipeLsu, "LSU"),
    (Metric::PipeTensor, "tensor"),
];

/// The roofline class of a launch, with the numbers that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Class {
    /// What bounds it.
    pub bound: Bound,
    /// The level of memory that is busiest, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The pipe that is busiest, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipe: Option<String>,
    /// Compute throughput in percent of the peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<f64>,
    /// Memory throughput in percent of the peak of its busiest part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// Of what no throughput was measured: the parts of an estimate that this rests on, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<String>,
}

impl Class {
    /// The class of a launch. Without a number for both computing and memory it is what an estimate says; without one unknown.
    pub fn of(launch: &KernelLaunch) -> Self {
        let compute = launch.get(Metric::SmThroughput);
        let memory = launch
            .get(Metric::MemoryThroughput)
            .or_else(|| levels(launch).map(|(_, value)| value).reduce(f64::max));
        let pipe = pipe(launch).map(|(name, _)| name.to_owned());
        let (bound, level, estimated) = match (compute, memory, &launch.estimate) {
            (Some(compute), Some(memory), _) => (bound(compute, memory), level(launch), None),
            (None, None, Some(estimate)) => {
                let (bound, level) = estimate.bound();
                (bound, level, Some(estimate.words()))
            }
            _ => (Bound::Unknown, level(launch), None),
        };
        Self { bound, level, pipe, compute, memory, estimated }
    }

    /// In words: `memory-bound by device memory`; `…, by estimate (62% sectors of memory, 38% instructions)` of what was not timed.
    pub fn label(&self) -> String {
        let estimated = self.estimated.as_ref();
        let estimated = estimated.map(|parts| format!(", by estimate ({parts})")).unwrap_or_default();
        format!("{}{estimated}", self.words())
    }

    fn words(&self) -> String {
        let behind = |what: &str, by: Option<&str>| match by {
            Some(by) => format!("{what} by {by}"),
            None => what.to_owned(),
        };
        match self.bound {
            Bound::Memory => behind("memory-bound", self.level.map(Level::label)),
            Bound::Compute => {
                behind("compute-bound", self.pipe.as_ref().map(|pipe| format!("the {pipe} pipe")).as_deref())
            }
            Bound::Balanced => "balanced between computing and memory".to_owned(),
            Bound::Latency | Bound::Launch => self.bound.label().to_owned(),
            Bound::Unknown => "not classified".to_owned(),
        }
    }
}

fn bound(compute: f64, memory: f64) -> Bound {
    if compute < BUSY && memory < BUSY {
        Bound::Latency
    } else if (compute - memory).abs() <= BALANCED && compute.min(memory) >= BUSY {
        Bound::Balanced
    } else if memory > compute {
        Bound::Memory
    } else {
        Bound::Compute
    }
}

fn levels(launch: &KernelLaunch) -> impl Iterator<Item = (Level, f64)> + '_ {
    // The details page has L1's figure for the cycles in which it was active only, which is a little higher.
    let l1 = launch.get(Metric::L1Throughput).or_else(|| launch.get(Metric::L1ThroughputActive));
    let all = [
        (Level::Dram, launch.get(Metric::DramThroughput)),
        (Level::L2, launch.get(Metric::L2Throughput)),
        (Level::L1, l1),
    ];
    all.into_iter().filter_map(|(level, value)| Some((level, value?)))
}

/// What a launch reached of each roof, in percent of that roof's peak: the levels of memory, computing, and the busiest pipe. What was not
/// measured has no row.
pub fn roofline_rows(launch: &KernelLaunch) -> Vec<(String, f64)> {
    let mut rows: Vec<(String, f64)> =
        levels(launch).map(|(level, percent)| (level.label().to_owned(), percent)).collect();
    rows.extend(launch.get(Metric::SmThroughput).map(|percent| ("computing".to_owned(), percent)));
    rows.extend(pipe(launch).map(|(name, percent)| (format!("busiest pipe, {name}"), percent)));
    rows
}

/// The level whose throughput is the memory throughput. That figure is the largest among parts of all levels, of which each level's own
/// figure may hold more; so the nearest one from either side is taken.
fn level(launch: &KernelLaunch) -> Option<Level> {
    let Some(memory) = launch.get(Metric::MemoryThroughput) else {
        return levels(launch).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(level, _)| level);
    };
    levels(launch)
        .min_by(|a, b| (a.1 - memory).abs().total_cmp(&(b.1 - memory).abs()))
        .map(|(level, _)| level)
}

/// The busiest pipe and its share of the peak in percent.
pub(super) fn pipe(launch: &KernelLaunch) -> Option<(&'static str, f64)> {
    PIPES
        .iter()
        .filter_map(|(metric, name)| Some((*name, launch.get(*metric)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(metrics: &[(Metric, f64)]) -> KernelLaunch {
        KernelLaunch { metrics: metrics.iter().copied().collect(), ..KernelLaunch::default() }
    }

    #[test]
    fn the_class_follows_the_two_throughputs() {
        for (compute, memory, expected) in [
            (17.1, 92.4, Bound::Memory),
            (97.5, 0.5, Bound::Compute),
            (72.0, 78.9, Bound::Balanced),
            (39.8, 47.1, Bound::Latency),
            (55.0, 61.0, Bound::Memory),
        ] {
            let launch = launch(&[(Metric::SmThroughput, compute), (Metric::MemoryThroughput, memory)]);
            assert_eq!(Class::of(&launch).bound, expected, "{compute} {memory}");
        }
        assert_eq!(Class::of(&launch(&[(Metric::SmThroughput, 90.0)])).bound, Bound::Unknown);
    }

    #[test]
    fn the_level_is_the_one_whose_figure_is_the_memorys() {
        let launch = launch(&[
            (Metric::SmThroughput, 17.0),
            (Metric::MemoryThroughput, 92.4),
            (Metric::DramThroughput, 92.4),
            (Metric::L2Throughput, 93.2),
            (Metric::L1Throughput, 15.7),
        ]);
        assert_eq!(Class::of(&launch).label(), "memory-bound by device memory");
    }
}
