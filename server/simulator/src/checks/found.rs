//! What a worker has found, once a place.

use std::sync::Arc;

use crate::checks::{Checks, Defect, DefectKind};
use crate::memory::{Allocations, Stamps, Track};

/// Defects by place.
#[derive(Debug, Default)]
pub(crate) struct Found {
    list: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    kind: DefectKind,
    pc: u32,
    /// The op of a race's other access.
    other: u32,
    /// Number of the block in the grid.
    block: u64,
    defect: Defect,
}

impl Found {
    /// Counts a defect at an op; describes it where it is the first there.
    pub fn add(
        &mut self,
        kind: DefectKind,
        pc: u32,
        other: u32,
        block: u64,
        describe: impl FnOnce() -> Defect,
    ) {
        let same = |one: &&mut Entry| one.kind == kind && one.pc == pc && one.other == other;
        match self.list.iter_mut().find(same) {
            Some(one) => one.defect.times += 1,
            None => self.list.push(Entry { kind, pc, other, block, defect: describe() }),
        }
    }

    /// What all workers found: of each place what the lowest block had, in the order of the code. The ops of an unrolled loop are one
    /// place. A read that races with the write that it needs is not reported as one of what was never written too.
    pub fn merge(all: impl IntoIterator<Item = Self>) -> Vec<Defect> {
        let mut entries: Vec<Entry> = all.into_iter().flat_map(|found| found.list).collect();
        entries.sort_by_key(|one| (one.pc, one.kind, one.other, one.block));
        entries.dedup_by(|later, first| {
            let same = (later.kind, later.pc, later.other) == (first.kind, first.pc, first.other);
            if same {
                first.defect.times += later.defect.times;
            }
            same
        });
        let mut defects: Vec<Defect> = Vec::new();
        for one in entries {
            match defects.iter_mut().find(|other| other.is_same(&one.defect)) {
                Some(other) => other.times += one.defect.times,
                None => defects.push(one.defect),
            }
        }
        // What comes first is left to chance: here it was the read.
        let place = |defect: &Defect| defect.place.clone();
        let raced: Vec<_> = defects
            .iter()
            .filter(|one| one.kind == DefectKind::SharedRace)
            .flat_map(|one| [place(one), one.other.as_ref().and_then(|other| other.place.clone())])
            .flatten()
            .collect();
        let early = |one: &Defect| {
            one.kind == DefectKind::UninitialisedRead
                && one.place.as_ref().is_some_and(|place| raced.contains(place))
        };
        defects.retain(|one| !early(one));
        defects
    }
}

/// An allocation that was hit lately, with what is known of its bytes and of its blocks.
type Hit = (Arc<Track>, Option<Arc<Stamps>>);

/// Allocations that are kept at hand.
const KEPT: usize = 8;

/// A worker's checks.
pub(crate) struct Checker {
    /// What is checked.
    pub checks: Checks,
    /// Reads of global memory that nothing has written are reported: not where only a share of the blocks runs.
    pub uninitialised: bool,
    /// Blocks that race are reported: not where they may talk to each other.
    pub blocks: bool,
    /// Number of the launch.
    pub launch: u64,
    /// Number of the running block in the grid.
    pub block: u64,
    pub found: Found,
    hits: Vec<Hit>,
    next: usize,
}

impl Checker {
    pub fn new(checks: Checks, uninitialised: bool, blocks: bool, launch: u64) -> Self {
        Self {
            checks,
            uninitialised,
            blocks,
            launch,
            block: 0,
            found: Found::default(),
            hits: Vec::with_capacity(KEPT),
            next: 0,
        }
    }

    /// Forgets allocations: one was freed.
    pub fn forget(&mut self) {
        self.hits.clear();
        self.next = 0;
    }

    /// What is known of the allocation that holds `address`.
    #[inline(always)]
    pub fn track(&mut self, allocations: &Allocations, address: u64) -> Option<(&Track, Option<&Stamps>)> {
        let at = match self.hits.iter().position(|(track, _)| track.holds(address)) {
            Some(at) => at,
            None => self.look_up(allocations, address)?,
        };
        let (track, stamps) = &self.hits[at];
        Some((track, stamps.as_deref()))
    }

    #[inline(never)]
    fn look_up(&mut self, allocations: &Allocations, address: u64) -> Option<usize> {
        let track = Arc::clone(allocations.track(address)?);
        let stamps = if self.blocks { track.stamps(self.launch) } else { None };
        if self.hits.len() < KEPT {
            self.hits.push((track, stamps));
            return Some(self.hits.len() - 1);
        }
        let at = self.next;
        self.next = (at + 1) % KEPT;
        self.hits[at] = (track, stamps);
        Some(at)
    }
}
