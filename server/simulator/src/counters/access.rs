//! Counting one access of a warp.

use crate::counters::Count;
use crate::machine::Exec;
use crate::machine::access::{Addresses, Kind, Space};
use crate::machine::lanes::{FULL, lanes};

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes at once.
    Atomic,
}

/// Bytes of a sector.
const SECTOR: u64 = 32;

impl Exec<'_> {
    /// Counts an access of `size` bytes a lane, where counters are wanted.
    #[inline(always)]
    pub(crate) fn count_access<S: Space>(&mut self, a: &Addresses, mask: u32, size: u64, way: Direction) {
        let pc = self.group.pc as usize;
        let Some(counts) = &mut self.counts else { return };
        let count = &mut counts.ops[pc];
        let kind = S::kind(a.by_lane[0]);
        count_one(count, kind, a, mask, size, way);
        if self.caches.is_some() {
            self.cache_access(kind, a, mask, size, way);
        }
    }
}

impl Exec<'_> {
    /// Counts a bulk copy by one lane, where counters are wanted.
    pub(crate) fn count_bulk(&mut self, from: u64, to: u64, size: u64) {
        let pc = self.group.pc as usize;
        let Some(counts) = &mut self.counts else { return };
        let count = &mut counts.ops[pc];
        count.bytes += size;
        // One side is global memory, whose addresses lie above those of the windows; or none is.
        let global = from.max(to);
        if global > crate::machine::access::FUNCTION_WINDOW && size > 0 {
            count.requests += 1;
            count.sectors += (global + size).div_ceil(SECTOR) - global / SECTOR;
            count.ideal_sectors += size.div_ceil(SECTOR);
            if self.caches.is_some() {
                self.cache_bulk(global, size, to == global);
            }
        }
    }
}

#[inline(always)]
fn count_one(count: &mut Count, kind: Kind, a: &Addresses, mask: u32, size: u64, way: Direction) {
    let lanes = u64::from(mask.count_ones());
    count.bytes += lanes * size;
    match kind {
        Kind::Global | Kind::Local => {
            let touched = if kind == Kind::Global { sectors(a, size) } else { local_sectors(a, mask, size) };
            count.requests += 1;
            count.sectors += touched;
            // Lanes that share an address need less than side by side.
            count.ideal_sectors += touched.min((lanes * size).div_ceil(SECTOR));
        }
        Kind::Shared => {
            let (waves, ideal) = wavefronts(a, mask, size);
            count.shared_requests += 1;
            count.wavefronts += u64::from(waves);
            count.ideal_wavefronts += u64::from(ideal);
            count.worst_wavefronts = count.worst_wavefronts.max(waves);
        }
        Kind::Other => {}
    }
    if way == Direction::Atomic {
        let (worst, waiting) = contention(a, mask);
        count.worst_contention = count.worst_contention.max(worst);
        count.serialised += u64::from(waiting);
    }
}

/// Distinct sectors. Inactive lanes repeat the first active lane's address, so they add none.
#[inline(always)]
fn sectors(a: &Addresses, size: u64) -> u64 {
    let mut sorted = true;
    let mut changes = 1;
    for pair in a.by_lane.windows(2) {
        sorted &= pair[0] <= pair[1];
        changes += u64::from(pair[0] / SECTOR != pair[1] / SECTOR);
    }
    // An access is aligned to its size, which divides a sector.
    debug_assert!(size <= SECTOR);
    if sorted { changes } else { distinct(a.by_lane.map(|address| address / SECTOR)) }
}

#[inline(never)]
fn distinct(mut values: [u64; 32]) -> u64 {
    values.sort_unstable();
    1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

/// Local memory interleaves the lanes' words: the same word of all 32 lanes fills four sectors.
fn local_sectors(a: &Addresses, mask: u32, size: u64) -> u64 {
    let words = size.div_ceil(4);
    let place = |lane: usize| (a.by_lane[lane] / 4 * 128 + lane as u64 * 4) / SECTOR;
    let mut places = [u64::MAX; 32];
    lanes(mask).for_each(|lane| places[lane] = place(lane));
    let first = places[mask.trailing_zeros() as usize];
    for place in &mut places {
        if *place == u64::MAX {
            *place = first;
        }
    }
    distinct(places) * words
}

/// Wavefronts of a shared access, and how many it would take without conflicts.
///
/// Words of 4 bytes lie in 32 banks; each bank gives one word a wavefront, to any lanes that ask for it. Accesses of 8 bytes a
/// lane go by halves of the warp, of 16 bytes by quarters; two neighbouring parts go as one where lanes pair up, each with
/// the lane next to it or next but one at the same address (or inactive). Measured on an H200: a row of 16 bytes handed to 16
/// lanes takes one wavefront for each half of the warp.
#[inline(always)]
fn wavefronts(a: &Addresses, mask: u32, size: u64) -> (u32, u32) {
    let words = size.div_ceil(4);
    if words == 1 {
        return (part_wavefronts(a, mask, 1), 1);
    }
    let unit = if words == 2 { FULL } else { 0xffff };
    let (mut total, mut ideal) = (0, 0);
    let mut pass = |part: u32| {
        if part != 0 {
            total += part_wavefronts(a, part, words);
            ideal += 1;
        }
    };
    for first in (0..32).step_by(unit.count_ones() as usize) {
        let here = mask & unit << first;
        let low = unit >> (unit.count_ones() / 2) << first;
        if pairs_up(a, here, 1) || pairs_up(a, here, 2) {
            pass(here);
        } else {
            pass(here & low);
            pass(here & !low);
        }
    }
    (total, ideal)
}

/// Is each lane's partner, `distance` away, inactive or at the same address?
fn pairs_up(a: &Addresses, mask: u32, distance: usize) -> bool {
    lanes(mask).all(|lane| {
        let partner = lane ^ distance;
        mask >> partner & 1 == 0 || a.by_lane[partner] == a.by_lane[lane]
    })
}

#[inline(always)]
fn part_wavefronts(a: &Addresses, mask: u32, words: u64) -> u32 {
    // Most accesses have no conflict: each lane another bank, or the same word.
    let mut banks = 0u32;
    let mut clash = false;
    let mut taken = [0u64; 32];
    for lane in lanes(mask) {
        for word in a.by_lane[lane] / 4..a.by_lane[lane] / 4 + words {
            let bank = (word % 32) as usize;
            clash |= banks >> bank & 1 == 1 && taken[bank] != word;
            banks |= 1 << bank;
            taken[bank] = word;
        }
    }
    if clash { conflicts(a, mask, words) } else { 1 }
}

/// The most distinct words of a bank.
#[inline(never)]
fn conflicts(a: &Addresses, mask: u32, words: u64) -> u32 {
    let mut all: Vec<u64> =
        lanes(mask).flat_map(|lane| a.by_lane[lane] / 4..a.by_lane[lane] / 4 + words).collect();
    all.sort_unstable();
    all.dedup();
    let mut ways = [0u32; 32];
    all.iter().for_each(|word| ways[(word % 32) as usize] += 1);
    ways.into_iter().max().unwrap_or(0)
}

/// The most lanes at one address, and how many lanes find another before them at theirs.
fn contention(a: &Addresses, mask: u32) -> (u32, u32) {
    let mut all = [0u64; 32];
    let mut length = 0;
    for lane in lanes(mask) {
        all[length] = a.by_lane[lane];
        length += 1;
    }
    let all = &mut all[..length];
    all.sort_unstable();
    let (mut worst, mut run, mut waiting) = (1, 1, 0);
    for pair in all.windows(2) {
        run = if pair[0] == pair[1] { run + 1 } else { 1 };
        waiting += u32::from(run > 1);
        worst = worst.max(run);
    }
    (worst, waiting)
}
