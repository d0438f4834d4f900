//! Counters in words, for terminals, editors and prompts.

use super::{Count, Kernel, Line};

/// Bytes of a sector.
const SECTOR: u64 = 32;

impl Count {
    /// How much a place has to do with memory and divergence; 0 where it has not.
    pub fn weight(&self) -> u64 {
        self.sectors + self.wavefronts + self.divergent + self.serialised
    }

    /// What was counted, in words: `64 sectors, 16 at best, 16.0 a request`.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if self.sectors > 0 {
            parts.push(format!(
                "{} sectors, {} at best, {:.1} a request",
                self.sectors,
                self.ideal_sectors,
                ratio(self.sectors, self.requests)
            ));
        }
        if self.wavefronts > 0 {
            parts.push(format!(
                "{} shared wavefronts, {} at best, {} ways at worst",
                self.wavefronts, self.ideal_wavefronts, self.worst_wavefronts
            ));
        }
        if self.serialised > 0 {
            parts.push(format!(
                "{} atomic updates wait, {} lanes at one address at worst",
                self.serialised, self.worst_contention
            ));
        }
        if self.divergent > 0 {
            parts.push(format!("{} divergent branches", self.divergent));
        }
        if self.l1_sectors > 0 {
            parts.push(format!(
                "caches, modelled: L1 {:.0}%, L2 {:.0}%, {} bytes of memory",
                100.0 * ratio(self.l1_hits, self.l1_sectors),
                100.0 * ratio(self.l2_hits, self.l2_sectors),
                (self.dram_read_sectors + self.dram_written_sectors) * SECTOR
            ));
        }
        parts.join("; ")
    }
}

impl Kernel {
    /// The shape of its launches, in words.
    pub fn shape(&self) -> String {
        let sizes = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
        let launches =
            if self.launches == 1 { "one launch".to_owned() } else { format!("{} launches", self.launches) };
        format!(
            "grid {}, block {}, {} bytes of dynamic shared memory, {launches}",
            sizes(self.grid),
            sizes(self.block),
            self.dynamic_shared
        )
    }

    /// Its totals, in words.
    pub fn totals(&self) -> String {
        let counters = &self.counters;
        format!(
            "{} PTX instructions of warps; {:.1} of 32 lanes active; {} bytes of global and local memory moved",
            counters.warp_instructions,
            ratio(counters.total.active, counters.total.warps),
            counters.total.sectors * SECTOR
        )
    }

    /// The lines that move most, at most `count`.
    pub fn heaviest(&self, count: usize) -> Vec<&Line> {
        let mut lines: Vec<&Line> =
            self.counters.lines.iter().filter(|line| line.count.weight() > 0).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.count.weight()));
        lines.truncate(count);
        lines
    }
}

#[allow(clippy::cast_precision_loss)] // Counters stay far below 2^53.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
