//! The ladder of ways to profile: the best that works here is taken, and each that is not says why.

use std::fmt;

use serde::Serialize;
use stitch_toolchain::discovery::{COUNTERS_REMEDY, Counters, Profilers};

/// A way to profile, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// Nsight Systems for the program, Nsight Compute for its kernels and lines.
    NcuAndNsys,
    /// CUPTI through torch.profiler for the lines of Python, Nsight Compute for the kernels.
    NcuAndTorch,
    /// Nsight Compute alone: kernels and lines, nothing of the program around them.
    Ncu,
    /// Nsight Systems alone: the times of kernels, copies and calls.
    Nsys,
    /// CUPTI through torch.profiler: the times of kernels, by line of Python.
    TorchProfiler,
    /// Our own clock around calls: one time, and nothing of why.
    Events,
    /// Our simulator: what lines move, on no device.
    Simulator,
    /// What the compiler says: registers, spills, occupancy.
    Static,
}

/// All of them, best first.
pub const LADDER: [Rung; 8] = [
    Rung::NcuAndNsys,
    Rung::NcuAndTorch,
    Rung::Ncu,
    Rung::Nsys,
    Rung::TorchProfiler,
    Rung::Events,
    Rung::Simulator,
    Rung::Static,
];

impl Rung {
    /// As a person writes it after `--with`.
    pub fn word(self) -> &'static str {
        match self {
            Self::NcuAndNsys => "ncu+nsys",
            Self::NcuAndTorch => "ncu+torch",
            Self::Ncu => "ncu",
            Self::Nsys => "nsys",
            Self::TorchProfiler => "torch",
            Self::Events => "clock",
            Self::Simulator => "simulator",
            Self::Static => "static",
        }
    }

    /// The rung of that word.
    pub fn named(word: &str) -> Option<Self> {
        LADDER.into_iter().find(|rung| rung.word() == word)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NcuAndNsys => "Nsight Compute and Nsight Systems",
            Self::NcuAndTorch => "Nsight Compute and torch.profiler (CUPTI)",
            Self::Ncu => "Nsight Compute",
            Self::Nsys => "Nsight Systems",
            Self::TorchProfiler => "torch.profiler (CUPTI)",
            Self::Events => "a clock around calls",
            Self::Simulator => "the simulator",
            Self::Static => "the compiler",
        })
    }
}

/// What kind of target is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole CUDA program.
    Program,
    /// A kernel, in its harness.
    Kernel,
    /// A module or a function of PyTorch.
    Module,
}

/// Where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// On a GPU of this machine.
    Gpu,
    /// On the simulator.
    Simulator,
    /// On the processor, for PyTorch.
    Processor,
}

/// What is known of this machine.
#[derive(Clone, Debug)]
pub struct Here {
    /// The profilers that were found.
    pub profilers: Profilers,
    /// Whether counters may be read.
    pub counters: Counters,
    /// What has been tried here before and was refused, in a sentence each.
    pub refused: Vec<(Rung, String)>,
}

/// A rung that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which.
    pub rung: Rung,
    /// Why, in a sentence that says what to do where something can be done.
    pub why: String,
}

/// The rungs that can be tried, best first, and why better ones can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// To be tried in this order. The last always works.
    pub rungs: Vec<Rung>,
    /// Those that are better and can't be tried.
    pub skipped: Vec<Skipped>,
}

/// Decides which rungs to try.
pub fn plan(kind: Kind, place: Where, here: &Here) -> Plan {
    let mut plan = Plan { rungs: Vec::new(), skipped: Vec::new() };
    for rung in LADDER {
        match obstacle(rung, kind, place, here) {
            None => plan.rungs.push(rung),
            Some(Obstacle::Foreign) => {}
            Some(Obstacle::Missing(why)) => plan.skipped.push(Skipped { rung, why }),
        }
    }
    let first = plan.rungs.first().copied().unwrap_or(Rung::Static);
    plan.skipped.retain(|skipped| skipped.rung < first);
    plan
}

/// Why a rung can't be tried.
enum Obstacle {
    /// It has nothing to do with such a target or place.
    Foreign,
    /// Something is missing.
    Missing(String),
}

fn obstacle(rung: Rung, kind: Kind, place: Where, here: &Here) -> Option<Obstacle> {
    let fits = match rung {
        // Nsight Systems knows nothing of lines of Python without sampling; torch.profiler sees the same kernels and does.
        Rung::NcuAndNsys | Rung::Ncu | Rung::Nsys => place == Where::Gpu && kind != Kind::Module,
        Rung::NcuAndTorch => place == Where::Gpu && kind == Kind::Module,
        Rung::TorchProfiler => kind == Kind::Module,
        Rung::Events => place == Where::Gpu && kind == Kind::Kernel,
        Rung::Simulator => place == Where::Simulator && kind != Kind::Module,
        Rung::Static => kind != Kind::Module,
    };
    if !fits {
        return Some(Obstacle::Foreign);
    }
    if let Some((_, why)) = here.refused.iter().find(|(refused, _)| *refused == rung) {
        return Some(Obstacle::Missing(why.clone()));
    }
    let ncu = || {
        if here.profilers.ncu.is_none() {
            return Some(
                "ncu was not found. Install NVIDIA Nsight Compute, or put its folder on PATH.".to_owned(),
            );
        }
        (here.counters == Counters::Refused)
            .then(|| format!("Only an administrator may read the GPU's counters here. {COUNTERS_REMEDY}"))
    };
    let nsys = || {
        let missing = "nsys was not found. Install NVIDIA Nsight Systems, or put its folder on PATH.";
        here.profilers.nsys.is_none().then(|| missing.to_owned())
    };
    let missing = match rung {
        Rung::NcuAndNsys => ncu().or_else(nsys),
        Rung::Ncu | Rung::NcuAndTorch => ncu(),
        Rung::Nsys => nsys(),
        _ => None,
    };
    missing.map(Obstacle::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(ncu: bool, nsys: bool, counters: Counters) -> Here {
        let profilers =
            Profilers { ncu: ncu.then(|| "/opt/ncu".into()), nsys: nsys.then(|| "/opt/nsys".into()) };
        Here { profilers, counters, refused: Vec::new() }
    }

    #[test]
    fn the_best_that_works_is_taken_and_what_is_better_says_why_not() {
        use Rung::{Events, NcuAndNsys, Nsys, Simulator, Static, TorchProfiler};
        let all = here(true, true, Counters::Allowed);
        assert_eq!(plan(Kind::Program, Where::Gpu, &all).rungs, [NcuAndNsys, Rung::Ncu, Nsys, Static]);
        assert_eq!(plan(Kind::Program, Where::Gpu, &all).skipped, []);
        let refused = here(true, true, Counters::Refused);
        let found = plan(Kind::Kernel, Where::Gpu, &refused);
        assert_eq!(found.rungs, [Nsys, Events, Static]);
        assert_eq!(found.skipped.len(), 2);
        assert!(found.skipped[0].why.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{found:?}");
        let bare = here(false, false, Counters::Unknown);
        let found = plan(Kind::Program, Where::Simulator, &bare);
        assert_eq!((&*found.rungs, found.skipped.len()), (&[Simulator, Static][..], 0));
        assert_eq!(plan(Kind::Module, Where::Processor, &bare).rungs, [TorchProfiler]);
        let found = plan(Kind::Module, Where::Gpu, &bare);
        assert_eq!((found.rungs[0], found.skipped[0].rung), (TorchProfiler, Rung::NcuAndTorch));
        assert!(found.skipped[0].why.starts_with("ncu was not found."), "{found:?}");
    }

    #[test]
    fn what_was_refused_here_before_is_not_tried_again() {
        let mut here = here(true, true, Counters::Unknown);
        here.refused =
            vec![(Rung::NcuAndNsys, "It was refused.".into()), (Rung::Ncu, "It was refused.".into())];
        let found = plan(Kind::Program, Where::Gpu, &here);
        assert_eq!(found.rungs[0], Rung::Nsys);
        assert!(found.skipped.iter().all(|skipped| skipped.why == "It was refused."), "{found:?}");
    }

    #[test]
    fn words_name_one_rung_each() {
        for rung in LADDER {
            assert_eq!(Rung::named(rung.word()), Some(rung));
        }
        assert_eq!(Rung::named("gprof"), None);
    }
}
