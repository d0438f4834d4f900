//! What the memory system of a GPU would have done for each instruction.
//!
//! A *request* is one execution of an access by a warp. Global and local memory move in *sectors* of 32 bytes: a request
//! touches some number of them, and could have touched fewer had its lanes lain side by side. Shared memory answers in
//! *wavefronts*: in each, every one of 32 banks gives one word of 4 bytes.
//!
//! Definitions are chosen so that the numbers equal those of Nsight Compute's source page: [`Count::sectors`] is `L2
//! Theoretical Sectors Global`, [`Count::wavefronts`] is `L1 Wavefronts Shared`, with their ideals.

mod access;
mod class;
mod report;

pub use access::Direction;
pub use class::InstructionClass;
pub use report::{ClassCounters, InstructionCounters, LaunchCounters, LineCounters};

/// Counters of one instruction. Sums over the warps that executed it, but for the maxima.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Times that a warp (or a group of its lanes) executed it.
    pub warps: u64,
    /// Lanes that were active, summed.
    pub active: u64,
    /// Lanes that were active and whose guard held, summed.
    pub guarded: u64,
    /// Branches: times that lanes of one group went both ways.
    pub divergent: u64,
    /// Global and local accesses: times that at least one lane's guard held.
    pub requests: u64,
    /// Shared accesses: the same.
    pub shared_requests: u64,
    /// Accesses: bytes that lanes asked for.
    pub bytes: u64,
    /// Global and local accesses: distinct sectors of 32 bytes.
    pub sectors: u64,
    /// Global and local accesses: sectors, had the lanes lain side by side.
    pub ideal_sectors: u64,
    /// Shared accesses: wavefronts.
    pub wavefronts: u64,
    /// Shared accesses: wavefronts without bank conflicts.
    pub ideal_wavefronts: u64,
    /// Shared accesses: the most wavefronts of one request.
    pub worst_wavefronts: u32,
    /// Atomics: the most lanes of one request that update one address.
    pub worst_contention: u32,
    /// Atomics: updates that wait for another lane of their request at the same address, summed.
    pub serialised: u64,
    /// Where caches are modelled: what became of global and local accesses.
    pub cached: Cached,
}

/// What caches and memory did for an instruction, by the model in [`crate::caches`]. Zeros where they were not modelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cached {
    /// Distinct lines of 128 bytes, summed over requests: each takes the L1 a cycle.
    pub l1_lines: u64,
    /// Sectors that were looked up in the L1.
    pub l1_sectors: u64,
    /// Of these, those that were there.
    pub l1_hits: u64,
    /// Sectors that were read from, stored to or updated in the L2.
    pub l2_sectors: u64,
    /// Of these, those that were there, and all that were stored or updated.
    pub l2_hits: u64,
    /// Sectors that memory was read for.
    pub dram_read: u64,
    /// Sectors that were written back to memory before the kernel ended.
    pub dram_written: u64,
}

impl Cached {
    /// Adds another instruction's.
    pub fn add(&mut self, other: &Self) {
        self.l1_lines += other.l1_lines;
        self.l1_sectors += other.l1_sectors;
        self.l1_hits += other.l1_hits;
        self.l2_sectors += other.l2_sectors;
        self.l2_hits += other.l2_hits;
        self.dram_read += other.dram_read;
        self.dram_written += other.dram_written;
    }

    /// The share of sectors that the L1 had, 0 to 1; none where it was not asked.
    #[must_use]
    pub fn l1_hit_rate(&self) -> Option<f64> {
        (self.l1_sectors > 0).then(|| self.l1_hits as f64 / self.l1_sectors as f64)
    }

    /// The share of sectors that the L2 had, 0 to 1; none where it was not asked.
    #[must_use]
    pub fn l2_hit_rate(&self) -> Option<f64> {
        (self.l2_sectors > 0).then(|| self.l2_hits as f64 / self.l2_sectors as f64)
    }
}

impl Count {
    /// Lanes that were active when a warp executed it, on average, of 32; 0 for what never ran.
    #[must_use]
    pub fn active_lanes(&self) -> f64 {
        if self.warps == 0 { 0.0 } else { self.active as f64 / self.warps as f64 }
    }

    /// Adds another worker's, or another instruction's.
    pub fn add(&mut self, other: &Count) {
        self.warps += other.warps;
        self.active += other.active;
        self.guarded += other.guarded;
        self.divergent += other.divergent;
        self.requests += other.requests;
        self.shared_requests += other.shared_requests;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
        self.wavefronts += other.wavefronts;
        self.ideal_wavefronts += other.ideal_wavefronts;
        self.worst_wavefronts = self.worst_wavefronts.max(other.worst_wavefronts);
        self.worst_contention = self.worst_contention.max(other.worst_contention);
        self.serialised += other.serialised;
        self.cached.add(&other.cached);
    }
}

/// A worker's counters.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// By op of the kernel's code.
    pub ops: Vec<Count>,
}

impl Counts {
    /// Zeros for `ops` ops.
    #[must_use]
    pub fn new(ops: usize) -> Self {
        Self { ops: vec![Count::default(); ops] }
    }

    /// Adds another worker's.
    pub fn add(&mut self, other: &Counts) {
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.add(theirs);
        }
    }
}
