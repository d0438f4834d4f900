//! A table of allocations that no longer changes.

use super::Allocation;

/// Allocations as they were at one moment, sorted by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocations {
    sorted: Vec<Allocation>,
}

impl Allocations {
    /// From allocations that do not overlap.
    #[must_use]
    pub fn new(mut allocations: Vec<Allocation>) -> Self {
        allocations.sort_unstable_by_key(|allocation| allocation.start);
        Self { sorted: allocations }
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
