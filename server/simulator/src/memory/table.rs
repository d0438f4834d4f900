//! Which places are taken. Numbers only: nothing here touches memory.

use std::collections::{BTreeMap, VecDeque};

use super::{Allocation, Kind, MIN_ALIGN, NotAllocated, OutOfMemory, PAGE};

/// How many freed places wait before they may be given out again.
const QUARANTINE: usize = 256;

/// The longest guard gap in bytes. The shortest is [`MIN_ALIGN`].
const MAX_GAP: u64 = 1 << 20;

/// An allocation and the place that it occupies with its guard gap.
#[derive(Debug, Clone, Copy)]
struct Taken {
    allocation: Allocation,
    /// Bytes that count.
    charged: u64,
    /// First address after the gap.
    end: u64,
}

/// Allocations, free places, and places that wait.
#[derive(Debug)]
pub(super) struct Table {
    taken: BTreeMap<u64, Taken>,
    /// Memory of the program's own that it registered; outside of the region.
    adopted: BTreeMap<u64, Allocation>,
    /// Start to end; neighbours are joined.
    free: BTreeMap<u64, u64>,
    waiting: VecDeque<(u64, u64)>,
    /// What lay there.
    freed: VecDeque<Allocation>,
    limit: u64,
    used: u64,
    peak: u64,
    /// Bytes that kernels may allocate, and have.
    heap_limit: u64,
    heap: u64,
}

impl Table {
    pub(super) fn new(base: u64, length: u64, limit: u64) -> Self {
        // The first page stays free: nothing starts at the base, so that an index of -1 is seen too.
        let free = BTreeMap::from([(base + PAGE, base + length)]);
        Self {
            taken: BTreeMap::new(),
            adopted: BTreeMap::new(),
            free,
            waiting: VecDeque::new(),
            freed: VecDeque::new(),
            limit,
            used: 0,
            peak: 0,
            heap_limit: u64::MAX,
            heap: 0,
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn limit_heap(&mut self, limit: u64) {
        self.heap_limit = limit;
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    pub(super) fn allocate(&mut self, size: u64, align: u64, kind: Kind) -> Result<u64, OutOfMemory> {
        let none = OutOfMemory { asked: size, used: self.used, limit: self.limit };
        let unit = if kind.seen_by_host() { PAGE } else { MIN_ALIGN };
        let align = align.max(unit);
        let charged = size.max(1).checked_next_multiple_of(unit).ok_or(none)?;
        let heap = kind == Kind::Heap;
        if heap && charged > self.heap_limit.saturating_sub(self.heap) {
            return Err(OutOfMemory { asked: size, used: self.heap, limit: self.heap_limit });
        }
        if charged > self.limit.saturating_sub(self.used) || !align.is_power_of_two() {
            return Err(none);
        }
        let length = charged + charged.clamp(MIN_ALIGN, MAX_GAP).next_multiple_of(unit);
        let start = match self.place(length, align) {
            Some(start) => start,
            None => {
                self.end_waiting(0);
                self.place(length, align).ok_or(none)?
            }
        };
        let allocation = Allocation { start, size, kind };
        self.taken.insert(start, Taken { allocation, charged, end: start + length });
        if heap {
            self.heap += charged;
        }
        self.used += charged;
        self.peak = self.peak.max(self.used);
        Ok(start)
    }

    pub(super) fn free(&mut self, start: u64) -> Result<Allocation, NotAllocated> {
        let taken = self.taken.remove(&start).ok_or(NotAllocated { address: start })?;
        self.used -= taken.charged;
        if taken.allocation.kind == Kind::Heap {
            self.heap -= taken.charged;
        }
        self.waiting.push_back((start, taken.end));
        self.freed.push_back(taken.allocation);
        self.end_waiting(QUARANTINE);
        Ok(taken.allocation)
    }

    pub(super) fn find(&self, address: u64) -> Option<Allocation> {
        let taken = self.taken.range(..=address).next_back().map(|(_, taken)| taken.allocation);
        let adopted = || self.adopted.range(..=address).next_back().map(|(_, allocation)| *allocation);
        let inside = |allocation: &Allocation| allocation.contains(address, 1);
        taken.filter(inside).or_else(|| adopted().filter(inside))
    }

    pub(super) fn all(&self) -> Vec<Allocation> {
        self.taken.values().map(|taken| taken.allocation).chain(self.adopted.values().copied()).collect()
    }

    /// What was freed and is not given out again yet.
    pub(super) fn freed(&self) -> Vec<Allocation> {
        self.freed.iter().copied().collect()
    }

    pub(super) fn adopt(&mut self, allocation: Allocation) {
        self.adopted.insert(allocation.start, allocation);
    }

    pub(super) fn release(&mut self, address: u64) -> Result<Allocation, NotAllocated> {
        self.adopted.remove(&address).ok_or(NotAllocated { address })
    }

    /// Takes the lowest free place of `length` bytes at a multiple of `align`.
    fn place(&mut self, length: u64, align: u64) -> Option<u64> {
        let fits = |(&from, &to): (&u64, &u64)| {
            let start = from.next_multiple_of(align);
            start.checked_add(length).is_some_and(|end| end <= to).then_some((from, to, start))
        };
        let (from, to, start) = self.free.iter().find_map(fits)?;
        self.free.remove(&from);
        if from < start {
            self.free.insert(from, start);
        }
        if start + length < to {
            self.free.insert(start + length, to);
        }
        Some(start)
    }

    /// Lets all but the newest `kept` waiting places be given out again.
    fn end_waiting(&mut self, kept: usize) {
        while self.waiting.len() > kept {
            let Some((mut from, mut to)) = self.waiting.pop_front() else { return };
            self.freed.pop_front();
            if let Some((&before, &end)) = self.free.range(..from).next_back()
                && end == from
            {
                self.free.remove(&before);
                from = before;
            }
            if let Some(end) = self.free.remove(&to) {
                to = end;
            }
            self.free.insert(from, to);
        }
    }
}
