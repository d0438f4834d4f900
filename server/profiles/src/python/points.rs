//! The moments whose line is asked for: calls that caused work or waited, and forward operators whose backward pass did.

use std::ops::Range;

use crate::system::calls;
use crate::trace::{Gathered, Moment, Ran};

/// Moments in order, and what came of them.
#[derive(Debug, Default)]
pub struct Points {
    /// The moments, by thread and time, each once.
    pub moments: Vec<Moment>,
    /// What came of them.
    pub effects: Vec<Effect>,
    /// Kernels and copies whose call is not in the trace.
    pub orphans: Vec<Ran>,
}

/// What came of a moment.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// The moment: an index of [`Points::moments`].
    pub point: u32,
    work: u32,
    /// How long.
    pub ns: u64,
}

/// Stands for a wait. An `Option` would take half as much again, of something of which there are millions.
const WAIT: u32 = u32::MAX;

impl Effect {
    /// What ran: an index of [`Gathered::works`]; `None` for a wait.
    pub fn work(&self) -> Option<u32> {
        (self.work != WAIT).then_some(self.work)
    }
}

impl Points {
    /// The moments of a trace.
    pub fn of(gathered: &Gathered) -> Self {
        let mut causes: Vec<(u32, u32)> = Vec::new();
        let mut points = Self::default();
        for (at, called) in gathered.called.iter().enumerate() {
            let class = calls::class(gathered.names.get(called.name));
            let moment = Moment { thread: called.thread, at: called.start };
            if class.causes_work() && called.correlation != 0 {
                causes.push((called.correlation, at as u32));
            }
            if class.waits() {
                points.moments.push(moment);
            }
        }
        causes.sort_unstable();
        let waits = points.moments.len();
        let call_of = |ran: &Ran| {
            let at = causes.partition_point(|(correlation, _)| *correlation < ran.correlation);
            let (correlation, call) = causes.get(at)?;
            let found = ran.correlation != 0 && *correlation == ran.correlation;
            found.then(|| gathered.called.get(*call as usize)).flatten()
        };
        let moment_of =
            |ran: &Ran| call_of(ran).map(|called| Moment { thread: called.thread, at: called.start });
        points.moments.reserve_exact(gathered.ran.len() + gathered.numbered.len() + gathered.flows.len());
        points.moments.extend(gathered.ran.iter().filter_map(moment_of));
        let forward = gathered.flows.iter().filter(|end| !end.backward).map(|end| end.moment);
        points.moments.extend(forward);
        points.moments.extend(gathered.numbered.iter().map(|numbered| numbered.moment()));
        points.settle();
        points.effects.reserve_exact(gathered.ran.len() + waits);
        for ran in &gathered.ran {
            match moment_of(ran).and_then(|moment| points.find(moment)) {
                Some(point) => points.effects.push(Effect { point, work: ran.work, ns: ran.ns }),
                None => points.orphans.push(*ran),
            }
        }
        for called in &gathered.called {
            if calls::class(gathered.names.get(called.name)).waits()
                && let Some(point) = points.find(Moment { thread: called.thread, at: called.start })
            {
                points.effects.push(Effect { point, work: WAIT, ns: called.ns });
            }
        }
        points
    }

    /// Gives orphans the moments of their operators, by the number that they have in common.
    pub fn adopt(&mut self, operators: &[(u32, Moment)]) {
        let orphans = std::mem::take(&mut self.orphans);
        let moment_of = |ran: &Ran| {
            let at = operators.partition_point(|(external, _)| *external < ran.external);
            operators.get(at).filter(|(external, _)| *external == ran.external).map(|(_, moment)| *moment)
        };
        let old = std::mem::take(&mut self.moments);
        self.moments = old.iter().copied().chain(orphans.iter().filter_map(moment_of)).collect();
        self.settle();
        for at in 0..self.effects.len() {
            let moment = old.get(self.effects[at].point as usize).copied();
            if let Some(point) = moment.and_then(|moment| self.find(moment)) {
                self.effects[at].point = point;
            }
        }
        for ran in orphans {
            match moment_of(&ran).and_then(|moment| self.find(moment)) {
                Some(point) => self.effects.push(Effect { point, work: ran.work, ns: ran.ns }),
                None => self.orphans.push(ran),
            }
        }
    }

    fn settle(&mut self) {
        self.moments.sort_unstable();
        self.moments.dedup();
        self.moments.shrink_to_fit();
    }

    /// The index of a moment.
    pub fn find(&self, moment: Moment) -> Option<u32> {
        self.moments.binary_search(&moment).ok().map(|at| at as u32)
    }

    /// The moments of a thread from `start` to `end`, both included.
    pub fn within(&self, thread: u32, start: i64, end: i64) -> Range<usize> {
        let from = self.moments.partition_point(|moment| *moment < Moment { thread, at: start });
        let to = self.moments.partition_point(|moment| *moment <= Moment { thread, at: end });
        from..to.max(from)
    }
}
