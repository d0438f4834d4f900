//! A model of a GPU's caches, for hit rates and for the bytes that its memory moves.
//!
//! What is modelled, from NVIDIA's documents where they say it, else from what Nsight Compute counted on an H200
//! (`docs/estimates.md` has both beside each other):
//!
//! - Lines of 128 bytes in four sectors of 32; a miss fetches sectors, not lines. Least recently used goes first.
//! - **L1**, one a multiprocessor: what shared memory leaves of the unified memory. Stores write through; stores to global
//!   memory make no room for themselves, stores to local memory do. Loads with `.cg`, `.cv`, `.volatile`, `.relaxed` and `.acquire`
//!   pass it by, and so do atomics. It starts empty in each launch.
//! - **L2**, one for all: keeps what is stored and writes it back when its place is taken. A store always finds room, so it
//!   counts as a hit, as Nsight Compute counts it. A read that misses fetches two neighbouring sectors (64 bytes, the
//!   default of `cudaLimitMaxL2FetchGranularity`). A sector of which only a part was stored is read before it is written
//!   back, since memory that corrects errors takes whole sectors. It starts empty in each launch: so does Nsight Compute
//!   (`--cache-control all`).
//! - Blocks go to multiprocessors in turn, by number. Here they run one after the other; on a device those that a multiprocessor holds at
//!   once share its L1, so a block gets the share of one of them.
//!
//! Not modelled: time (two requests for one sector are one after the other), the copies between the two halves of the L2, write-combining, compression,
//! evictions by priority, instructions and constants, which have caches of their own.

mod cache;
mod request;
#[cfg(test)]
mod tests;

use cache::{Cache, Evicted};
use request::Request;

use crate::code::Code;
use crate::counters::{Counts, Direction};
use crate::device::{CARVEOUTS, Device, WARP};
use crate::machine::access::{Addresses, Kind, WINDOW};
use crate::machine::lanes::{FULL, lanes};

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Sectors of a line.
const SECTORS: u64 = 4;
/// Where local memory lies for the caches: above the region.
const LOCAL: u64 = 1 << 50;
/// Bytes of one word of local memory of all lanes.
const LOCAL_ROW: u64 = 128;
/// Bytes of a piece of a bulk copy.
const BULK: u64 = 1024;
/// Counters of lines that atomics update. Lines that share one are counted together.
const HOT: usize = 1 << 12;

/// Which caches an access may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Both.
    All,
    /// The L2 alone.
    Global,
}

/// The caches of a device during one launch.
#[derive(Debug, Clone)]
pub(crate) struct Caches {
    first: Vec<Cache>,
    second: Cache,
    /// By op.
    policies: Vec<Policy>,
    /// Bytes of local memory of a block.
    local: u64,
    /// Blocks that a multiprocessor holds at once.
    resident: u64,
    /// The multiprocessor of the block that runs, and where its local memory begins.
    at: usize,
    base: u64,
    /// Updates by atomics, by line.
    hot: Vec<u64>,
    request: Request,
}

/// What a kernel takes of a multiprocessor, as the caches need to know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Blocks of the grid.
    pub blocks: u64,
}

impl Caches {
    /// Empty ones.
    pub fn new(device: &Device, code: &Code, taken: Taken) -> Self {
        let multiprocessors = u64::from(device.multiprocessors);
        let resident = device.resident(taken.registers, taken.threads, u64::from(taken.shared)).max(1);
        let at_once = taken.blocks.div_ceil(multiprocessors).clamp(1, u64::from(resident));
        let needed = (taken.shared + device.limits.shared_reserved) * resident;
        let fits = CARVEOUTS.iter().map(|kib| kib * 1024).find(|&bytes| bytes >= needed);
        let first = device.limits.unified - fits.unwrap_or(device.limits.shared).min(device.limits.shared);
        let share = u64::from(first) / at_once;
        let words: u32 = code.functions.iter().map(|shape| shape.local_rows).sum();
        let used = taken.blocks.min(multiprocessors);
        Self {
            first: vec![Cache::new(share); usize::try_from(used).unwrap_or(1).max(1)],
            second: Cache::new(u64::from(device.l2) / u64::from(device.l2_parts)),
            policies: code.sources.iter().map(|source| policy(code, source.opcode)).collect(),
            local: u64::from(words) * u64::from(taken.threads.div_ceil(WARP)) * LOCAL_ROW,
            resident: at_once,
            at: 0,
            base: LOCAL,
            hot: vec![0; HOT],
            request: Request::default(),
        }
    }

    /// A block begins.
    pub fn begin(&mut self, block: u64) {
        let multiprocessors = self.first.len() as u64;
        self.at = usize::try_from(block % multiprocessors).unwrap_or(0);
        let slot = block / multiprocessors % self.resident;
        self.base = LOCAL + (slot * multiprocessors + self.at as u64) * self.local;
    }

    /// The most updates by atomics of one line.
    pub fn hottest(&self) -> u64 {
        self.hot.iter().copied().max().unwrap_or(0)
    }

    /// Reads the sectors of the request, as the instruction says.
    fn load(&mut self, pc: usize, counts: &mut Counts) {
        self.read(pc, counts, self.policies.get(pc) == Some(&Policy::Global));
    }

    /// Reads the sectors of the request; `through` where the L1 is passed by.
    fn read(&mut self, pc: usize, counts: &mut Counts, through: bool) {
        let first = &mut self.first[self.at];
        let (mut hits, mut asked, mut found) = (0, 0, 0);
        let number = first.next_request();
        let below = self.second.next_request();
        for &(sector, _) in self.request.sectors() {
            if !through && first.load(sector, number) {
                hits += 1;
                continue;
            }
            asked += 1;
            if self.second.load(sector, below) {
                found += 1;
            } else {
                // Its neighbour comes along.
                for fetched in [sector, sector ^ 1] {
                    let evicted = self.second.fill(fetched, below);
                    if let Some((fresh, evicted)) = evicted {
                        counts.ops[pc].cached.dram_read += u64::from(fresh);
                        write_back(evicted, counts);
                    }
                }
            }
            if !through {
                first.fill(sector, number);
            }
        }
        let lines = self.request.lines();
        let count = &mut counts.ops[pc];
        count.cached.l1_lines += lines;
        count.cached.l1_sectors += self.request.sectors().len() as u64;
        count.cached.l1_hits += hits;
        count.cached.l2_sectors += asked;
        count.cached.l2_hits += found;
    }

    /// Writes the sectors of the request; `local` where they are of local memory.
    fn store(&mut self, pc: usize, counts: &mut Counts, local: bool) {
        let first = &mut self.first[self.at];
        let mut hits = 0;
        let number = first.next_request();
        for &(sector, bytes) in self.request.sectors() {
            if first.load(sector, number) {
                hits += 1;
            } else if local {
                first.fill(sector, number);
            }
            write_back(self.second.store(sector, bytes, pc), counts);
        }
        let sectors = self.request.sectors().len() as u64;
        let lines = self.request.lines();
        let count = &mut counts.ops[pc];
        count.cached.l1_lines += lines;
        count.cached.l1_sectors += sectors;
        count.cached.l1_hits += hits;
        count.cached.l2_sectors += sectors;
        count.cached.l2_hits += sectors;
    }

    /// Updates the sectors of the request, of `updates` addresses.
    fn atomic(&mut self, pc: usize, counts: &mut Counts, updates: u64) {
        let below = self.second.next_request();
        let sectors = self.request.sectors().len() as u64;
        for &(sector, bytes) in self.request.sectors() {
            if !self.second.load(sector, below)
                && let Some((fresh, evicted)) = self.second.fill(sector, below)
            {
                counts.ops[pc].cached.dram_read += u64::from(fresh);
                write_back(evicted, counts);
            }
            write_back(self.second.store(sector, bytes, pc), counts);
            // Of each sector its share.
            self.hot[(sector / SECTORS) as usize % HOT] += updates.div_ceil(sectors);
        }
        let lines = self.request.lines();
        let count = &mut counts.ops[pc];
        count.cached.l1_lines += lines;
        // Nsight Compute counts a sector for about each address.
        count.cached.l1_sectors += updates;
        count.cached.l2_sectors += updates;
        count.cached.l2_hits += updates;
    }
}

/// What is written back counts for the instruction that stored it.
fn write_back(evicted: Evicted, counts: &mut Counts) {
    if let Some(count) = counts.ops.get_mut(evicted.writer as usize) {
        count.cached.dram_written += u64::from(evicted.written);
        count.cached.dram_read += u64::from(evicted.read);
    }
}

/// By the modifiers of an opcode.
fn policy(code: &Code, opcode: u32) -> Policy {
    let opcode = code.opcodes.get(opcode as usize).map_or("", String::as_str);
    let passes = |word: &str| {
        matches!(word, "cg" | "cv" | "volatile" | "relaxed" | "acquire" | "mmio") || word == "L1::no_allocate"
    };
    if opcode.split('.').any(passes) { Policy::Global } else { Policy::All }
}

impl crate::machine::Exec<'_> {
    /// Has the caches serve an access of `size` bytes a lane.
    #[inline(never)]
    pub(crate) fn cache_access(&mut self, kind: Kind, a: &Addresses, mask: u32, size: u64, way: Direction) {
        let pc = self.group.pc as usize;
        let words = self.warp.local.len() as u64;
        let (Some(caches), Some(counts)) = (&mut self.caches, &mut self.counts) else { return };
        let request = &mut caches.request;
        request.clear();
        match kind {
            Kind::Global if mask == FULL && a.is_consecutive(size) => request.add(a.first, a.end - a.first),
            Kind::Global => lanes(mask).for_each(|lane| request.add(a.by_lane[lane], size)),
            Kind::Local => {
                let base = caches.base + u64::from(self.warp.index) * words * LOCAL_ROW;
                for lane in lanes(mask) {
                    let offset = a.by_lane[lane] % WINDOW;
                    for word in offset / 4..(offset + size).div_ceil(4) {
                        request.add(base + word * LOCAL_ROW + lane as u64 * 4, 4);
                    }
                }
            }
            Kind::Shared | Kind::Other => return,
        }
        match way {
            Direction::Load => caches.load(pc, counts),
            Direction::Store => caches.store(pc, counts, kind == Kind::Local),
            Direction::Atomic => {
                let mut addresses = a.by_lane;
                addresses.sort_unstable();
                let updates = 1 + addresses.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
                caches.atomic(pc, counts, updates);
            }
        }
    }

    /// Has the caches serve a copy of `size` bytes at `address`, which passes the L1 by.
    #[inline(never)]
    pub(crate) fn cache_bulk(&mut self, address: u64, size: u64, store: bool) {
        let pc = self.group.pc as usize;
        let (Some(caches), Some(counts)) = (&mut self.caches, &mut self.counts) else { return };
        for start in (address..address + size).step_by(BULK as usize) {
            caches.request.clear();
            caches.request.add(start, BULK.min(address + size - start));
            if store {
                caches.store(pc, counts, false);
            } else {
                caches.read(pc, counts, true);
            }
        }
    }
}
