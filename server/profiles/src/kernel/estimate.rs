//! What a launch costs by a model, where nobody timed it.
//!
//! A functional simulator knows how much work there is of each kind, and the rate at which its device does each kind alone. So the cost is a sum of parts,
//! and what has the largest part is what the launch is bound by, as far as such a model can say. It is an estimate, and always called one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stitch_findings::Code;

use super::roofline::{BALANCED, Bound, Level};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Work {
    /// Sectors of global and local memory.
    Sectors,
    /// Wavefronts of shared memory.
    Wavefronts,
    /// Instructions of warps.
    Instructions,
    /// What double precision costs more.
    Doubles,
    /// Atomic updates that wait for another lane.
    Atomics,
    /// Launching.
    Launches,
}

impl Work {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Sectors => "sectors of memory",
            Self::Wavefronts => "wavefronts of shared memory",
            Self::Instructions => "instructions",
            Self::Doubles => "double precision",
            Self::Atomics => "atomic updates that wait",
            Self::Launches => "launching",
        }
    }

    /// What does it: memory at a level, computing, or the host.
    fn bound(self) -> (Bound, Option<Level>) {
        match self {
            Self::Sectors => (Bound::Memory, Some(Level::Dram)),
            Self::Wavefronts => (Bound::Memory, Some(Level::L1)),
            Self::Instructions | Self::Doubles => (Bound::Compute, None),
            Self::Atomics | Self::Launches => (Bound::Latency, None),
        }
    }
}

/// What a launch costs by a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// All of it, in cycles of the device; launches of one shape together.
    pub cycles: f64,
    /// The kinds of work, from 0 to 1 of the cycles, the largest first.
    pub parts: Vec<(Work, f64)>,
}

impl Estimate {
    /// From the cycles that each kind of work takes.
    pub fn of(cycles: impl IntoIterator<Item = (Work, f64)>) -> Self {
        let mut parts: Vec<(Work, f64)> = cycles.into_iter().filter(|(_, cycles)| *cycles > 0.0).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let all: f64 = parts.iter().map(|(_, cycles)| cycles).sum();
        parts.iter_mut().for_each(|(_, cycles)| *cycles /= all);
        Self { cycles: all, parts }
    }

    /// The part of a kind of work, from 0 to 1.
    pub fn part(&self, work: Work) -> f64 {
        self.parts.iter().find(|(known, _)| *known == work).map_or(0.0, |(_, part)| *part)
    }

    /// What the largest part is bound by, and where it is memory the level: both alike where memory and computing are within ten points.
    pub(super) fn bound(&self) -> (Bound, Option<Level>) {
        let of = |bound: Bound| -> f64 {
            self.parts.iter().filter(|(work, _)| work.bound().0 == bound).map(|(_, part)| part).sum()
        };
        let (memory, compute, waiting) = (of(Bound::Memory), of(Bound::Compute), of(Bound::Latency));
        if self.parts.is_empty() {
            (Bound::Unknown, None)
        } else if waiting >= memory.max(compute) {
            (Bound::Latency, None)
        } else if (memory - compute).abs() * 100.0 <= BALANCED {
            (Bound::Balanced, None)
        } else if memory > compute {
            let level = self.parts.iter().find_map(|(work, _)| work.bound().1);
            (Bound::Memory, level)
        } else {
            (Bound::Compute, None)
        }
    }

    /// In words: `62% sectors of memory, 30% instructions, 8% launching`.
    pub fn words(&self) -> String {
        let parts = self.parts.iter().filter(|(_, part)| *part >= 0.005);
        let words = parts.map(|(work, part)| format!("{} {}", crate::units::percent(*part), work.label()));
        words.collect::<Vec<_>>().join(", ")
    }

    /// The part of the cycles that would be saved if a limit of this code were gone, which has the share `excess` of its kind of work. `None` where
    /// the model does not know that kind.
    pub fn gain(&self, code: Code, excess: f64) -> Option<f64> {
        let work = match code {
            Code::NCU_UNCOALESCED_ACCESS | Code::NCU_MISALIGNED_ACCESS | Code::NCU_LOCAL_MEMORY => {
                Work::Sectors
            }
            Code::NCU_BANK_CONFLICT => Work::Wavefronts,
            Code::NCU_DIVERGENCE => Work::Instructions,
            Code::NCU_DOUBLE_PRECISION => Work::Doubles,
            Code::NCU_ATOMIC_CONTENTION => Work::Atomics,
            _ => return None,
        };
        Some(self.part(work) * excess.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_part_bounds_and_is_called_an_estimate() {
        let estimate =
            Estimate::of([(Work::Instructions, 30.0), (Work::Sectors, 60.0), (Work::Launches, 10.0)]);
        assert_eq!((estimate.cycles, estimate.bound()), (100.0, (Bound::Memory, Some(Level::Dram))));
        assert_eq!(estimate.words(), "60% sectors of memory, 30% instructions, 10% launching");
        assert_eq!(estimate.gain(Code::NCU_UNCOALESCED_ACCESS, 0.5), Some(0.3));
        assert_eq!(estimate.gain(Code::NCU_TAIL, 0.5), None);
        let bound = |parts: &[(Work, f64)]| Estimate::of(parts.iter().copied()).bound().0;
        assert_eq!(bound(&[(Work::Instructions, 48.0), (Work::Sectors, 52.0)]), Bound::Balanced);
        assert_eq!(bound(&[(Work::Instructions, 20.0), (Work::Launches, 80.0)]), Bound::Latency);
        assert_eq!(
            bound(&[(Work::Doubles, 40.0), (Work::Instructions, 20.0), (Work::Sectors, 30.0)]),
            Bound::Compute
        );
        assert_eq!(bound(&[]), Bound::Unknown);
    }
}
