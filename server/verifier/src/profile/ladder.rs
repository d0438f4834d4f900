//! The ladder of ways to profile a program on a GPU: the best that works here is taken, and each that is not says why.

use std::fmt;

use serde::Serialize;
use stitch_toolchain::discovery::{COUNTERS_REMEDY, Counters, Profilers};

/// A way to profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// Nsight Systems for the program, Nsight Compute for its kernels and lines.
    NcuAndNsys,
    /// Nsight Compute alone: kernels and lines, nothing of the program around them.
    Ncu,
    /// Nsight Systems alone: the times of kernels, copies and calls.
    Nsys,
    /// CUPTI through torch.profiler: the times of kernels, by line of Python.
    TorchProfiler,
    /// Our own clock, around calls of kernels in harnesses or around whole processes: times, and nothing of why.
    Clock,
    /// Our simulator: what lines move, on no device.
    Simulator,
    /// What the compiler and the static rules say of code that does not run here.
    Static,
}

/// The profilers' ways for a program on a GPU, best first. Where none works, it is timed by our own clock, counted by the simulator, or else looked at without
/// being run.
pub const LADDER: [Rung; 3] = [Rung::NcuAndNsys, Rung::Ncu, Rung::Nsys];

impl Rung {
    /// As a person writes it after `--by`.
    pub fn word(self) -> &'static str {
        match self {
            Self::NcuAndNsys => "ncu+nsys",
            Self::Ncu => "ncu",
            Self::Nsys => "nsys",
            Self::TorchProfiler => "torch",
            Self::Clock => "clock",
            Self::Simulator => "simulator",
            Self::Static => "static",
        }
    }

    /// The rung of the ladder with that word.
    pub fn named(word: &str) -> Option<Self> {
        LADDER.into_iter().find(|rung| rung.word() == word)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NcuAndNsys => "Nsight Compute and Nsight Systems",
            Self::Ncu => "Nsight Compute",
            Self::Nsys => "Nsight Systems",
            Self::TorchProfiler => "torch.profiler (CUPTI)",
            Self::Clock => "our own clock, around calls of its kernels",
            Self::Simulator => "the simulator",
            Self::Static => "the compiler and the static rules, without running it",
        })
    }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Which.
    pub rung: Rung,
    /// Why, in a sentence that says what to do where something can be done.
    pub why: String,
}

/// The rungs that can be tried, and why better ones can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// To be tried in this order.
    pub rungs: Vec<Rung>,
    /// Those that are better than the first of these and can't be tried; all, where none can.
    pub skipped: Vec<Skipped>,
}

/// Decides which rungs to try.
pub fn plan(here: &Here) -> Plan {
    let mut plan = Plan { rungs: Vec::new(), skipped: Vec::new() };
    for rung in LADDER {
        match missing(rung, here) {
            None => plan.rungs.push(rung),
            Some(why) if plan.rungs.is_empty() => plan.skipped.push(Skipped { rung, why }),
            Some(_) => {}
        }
    }
    plan
}

/// Why a rung can't be tried.
fn missing(rung: Rung, here: &Here) -> Option<String> {
    if let Some((_, why)) = here.refused.iter().find(|(refused, _)| *refused == rung) {
        return Some(why.clone());
    }
    let ncu = || {
        if here.profilers.ncu.is_none() {
            let why = "ncu was not found. Install NVIDIA Nsight Compute, or put its folder on PATH.";
            return Some(why.to_owned());
        }
        (here.counters == Counters::Refused)
            .then(|| format!("Only an administrator may read the GPU's counters here. {COUNTERS_REMEDY}"))
    };
    let nsys = || {
        let why = "nsys was not found. Install NVIDIA Nsight Systems, or put its folder on PATH.";
        here.profilers.nsys.is_none().then(|| why.to_owned())
    };
    match rung {
        Rung::NcuAndNsys => ncu().or_else(nsys),
        Rung::Ncu => ncu(),
        Rung::Nsys => nsys(),
        Rung::TorchProfiler | Rung::Clock | Rung::Simulator | Rung::Static => None,
    }
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
        use Rung::{NcuAndNsys, Nsys};
        let all = plan(&here(true, true, Counters::Allowed));
        assert_eq!((&*all.rungs, all.skipped.len()), (&[NcuAndNsys, Rung::Ncu, Nsys][..], 0));
        let refused = plan(&here(true, true, Counters::Refused));
        assert_eq!((&*refused.rungs, refused.skipped.len()), (&[Nsys][..], 2));
        assert!(refused.skipped[0].why.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{refused:?}");
        let alone = plan(&here(true, false, Counters::Unknown));
        assert_eq!((&*alone.rungs, alone.skipped.len()), (&[Rung::Ncu][..], 1));
        assert!(alone.skipped[0].why.starts_with("nsys was not found."), "{alone:?}");
        let bare = plan(&here(false, false, Counters::Unknown));
        assert_eq!((bare.rungs.len(), bare.skipped.len()), (0, 3));
    }

    #[test]
    fn what_was_refused_here_before_is_not_tried_again() {
        let mut here = here(true, true, Counters::Unknown);
        here.refused =
            vec![(Rung::NcuAndNsys, "It was refused.".into()), (Rung::Ncu, "It was refused.".into())];
        let found = plan(&here);
        assert_eq!(found.rungs, [Rung::Nsys]);
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
