//! Which call made an allocation: what may free it, and how the program sees it.

use std::collections::HashMap;

use super::protocol::Action;
use crate::memory::Memory;

/// How an allocation came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `cudaMalloc`, `cudaMallocPitch`.
    Device,
    /// From a pool.
    Pool(u64),
    /// `cudaMallocManaged`.
    Managed,
    /// `cudaHostAlloc` with its flags.
    Host(u32),
    /// A memory node of a graph.
    Graph,
}

/// Memory of the program that it registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registered {
    /// As the program named it.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Whole pages around it.
    pub pages: u64,
    pub length: u64,
    /// The allocation that lies under these pages now.
    pub backing: u64,
    pub flags: u32,
}

/// Everything that the program allocated, by its start.
#[derive(Debug, Default)]
pub(super) struct Ownership {
    pub made: HashMap<u64, (Origin, u64)>,
    pub registered: HashMap<u64, Registered>,
    /// Address and size of the managed variables that the program has.
    pub managed_variables: Vec<(u64, u64)>,
}

impl Ownership {
    /// The registration that covers an address.
    pub(super) fn registration(&self, address: u64) -> Option<&Registered> {
        self.registered.values().find(|one| (one.start..one.start + one.size).contains(&address))
    }

    /// Whether another registration lies on the same pages.
    pub(super) fn shares_pages(&self, one: &Registered) -> bool {
        self.registered.values().any(|other| other.start != one.start && other.backing == one.backing)
    }

    /// Whether an address is pinned by a call: allocated so, or within what was registered, not merely on its pages.
    pub(super) fn pinned(&self, address: u64) -> bool {
        let on_pages = |one: &Registered| (one.pages..one.pages + one.length).contains(&address);
        self.registration(address).is_some() || !self.registered.values().any(on_pages)
    }

    /// Whether an address is that of a managed variable.
    pub(super) fn is_managed_variable(&self, address: u64) -> bool {
        self.managed_variables.iter().any(|&(start, size)| (start..start + size).contains(&address))
    }

    /// Frees everything. The stub is told what it may no longer touch.
    pub(super) fn free_all(&mut self, memory: &Memory) -> Vec<Action> {
        let mut actions = Vec::new();
        for (_, one) in self.registered.drain() {
            // The pages stay under the program's memory: it goes on using it.
            let _ = memory.release(one.pages);
        }
        for (start, (origin, size)) in self.made.drain() {
            if matches!(origin, Origin::Managed | Origin::Host(_)) {
                let size = size.max(1).next_multiple_of(crate::memory::PAGE);
                actions.push(Action::Protect { start, size, open: false });
            }
            let _ = memory.free(start);
        }
        actions
    }
}
