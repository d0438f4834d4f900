//! A table of allocations that no longer changes.

use std::sync::Arc;

use super::{Allocation, Track};

/// Allocations as they were at one moment, sorted by address.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    sorted: Vec<Allocation>,
    /// What is remembered of their bytes, sorted by address too; empty where nothing is.
    tracks: Vec<Arc<Track>>,
    /// Places that were freed and are not given out again yet, the latest last.
    freed: Vec<Allocation>,
}

impl Allocations {
    /// From allocations that do not overlap.
    #[must_use]
    pub fn new(mut allocations: Vec<Allocation>) -> Self {
        allocations.sort_unstable_by_key(|allocation| allocation.start);
        Self { sorted: allocations, ..Self::default() }
    }

    /// The same, with what is remembered of their bytes (by address) and with what was freed lately.
    #[must_use]
    pub(super) fn with(self, tracks: Vec<Arc<Track>>, freed: Vec<Allocation>) -> Self {
        Self { tracks, freed, ..self }
    }

    /// What is remembered of the allocation that `address` lies in.
    #[must_use]
    pub(crate) fn track(&self, address: u64) -> Option<&Arc<Track>> {
        let after = self.tracks.partition_point(|track| track.start() <= address);
        self.tracks[..after].last().filter(|track| track.holds(address))
    }

    /// What `address` lay in before it was freed.
    #[must_use]
    pub fn freed(&self, address: u64) -> Option<&Allocation> {
        self.freed.iter().rev().find(|allocation| allocation.contains(address, 1))
    }

    /// The allocation that `address` lies in.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&Allocation> {
        let after = self.sorted.partition_point(|allocation| allocation.start <= address);
        let last = self.sorted[..after].last()?;
        (address < last.end()).then_some(last)
    }

    /// The allocations around `address`: the last that starts at or before it, and the first that starts after it. To say
    /// how far outside an access was.
    #[must_use]
    pub fn around(&self, address: u64) -> (Option<&Allocation>, Option<&Allocation>) {
        let after = self.sorted.partition_point(|allocation| allocation.start <= address);
        (self.sorted[..after].last(), self.sorted.get(after))
    }

    /// All of them, by address.
    #[must_use]
    pub fn as_slice(&self) -> &[Allocation] {
        &self.sorted
    }
}
