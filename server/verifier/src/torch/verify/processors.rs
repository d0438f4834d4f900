//! From which processor a round's calls are made.
//!
//! Of a module of small kernels the time of a call is that of launching them, on a processor. Where a machine is busy, one processor is slower than another
//! by half (its core is shared with another thread, or its time with another process), and a process stays where it is for seconds: two
//! processes of the same code then differ for a whole contest, and the rounds of it agree on that. So both sides of a round make their calls from the same
//! processor, and each round has another one.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::torch::host::Place;

/// The processors that calls may be made from.
#[derive(Clone, Debug, Default)]
pub(super) struct Processors {
    all: Vec<usize>,
    /// That of the current round; any where it is `None`.
    pub chosen: Option<usize>,
}

impl Processors {
    /// Those of this process. None are named where the processor does the work itself: it takes as many as it likes.
    pub fn of(place: Place) -> Self {
        let set = match place {
            Place::Cpu => None,
            Place::Cuda(_) => sched_getaffinity(Pid::from_raw(0)).ok(),
        };
        let all =
            set.map(|set| (0..CpuSet::count()).filter(|one| set.is_set(*one).unwrap_or(false)).collect());
        Self { all: all.unwrap_or_default(), chosen: None }
    }

    /// Chooses one by a number that was drawn.
    pub fn choose(&mut self, drawn: u64) {
        let count = self.all.len() as u64;
        self.chosen =
            drawn.checked_rem(count).and_then(|place| self.all.get(usize::try_from(place).ok()?).copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_on_a_gpu_are_made_from_a_processor_of_ours_and_others_from_any() {
        let mut processors = Processors::of(Place::Cuda(0));
        let mut seen = std::collections::BTreeSet::new();
        for drawn in 0..64 {
            processors.choose(drawn);
            seen.insert(processors.chosen.unwrap());
        }
        let count = std::thread::available_parallelism().unwrap().get().min(64);
        assert!(seen.len() >= count && seen.iter().all(|one| processors.all.contains(one)), "{seen:?}");
        let mut none = Processors::of(Place::Cpu);
        none.choose(5);
        assert_eq!(none.chosen, None);
    }
}
