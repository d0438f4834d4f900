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
                "{}, {} at best, {:.1} a request",
                counted(self.sectors, "sector", "sectors"),
                self.ideal_sectors,
                ratio(self.sectors, self.requests)
            ));
        }
        if self.wavefronts > 0 {
            let mut text = counted(self.wavefronts, "shared wavefront", "shared wavefronts");
            text += &format!(", {} at best", self.ideal_wavefronts);
            // One way is what a request without conflicts takes.
            if self.worst_wavefronts > 1 {
                text += &format!(", {} ways at worst", self.worst_wavefronts);
            }
            parts.push(text);
        }
        if self.serialised > 0 {
            parts.push(format!(
                "{}, {} lanes at one address at worst",
                counted(self.serialised, "atomic update waits", "atomic updates wait"),
                self.worst_contention
            ));
        }
        if self.divergent > 0 {
            parts.push(counted(self.divergent, "divergent branch", "divergent branches"));
        }
        parts.extend(self.cached());
        parts.join("; ")
    }

    /// What the modelled caches did for loads: hit rates of those that were asked, and what came from memory or went there.
    fn cached(&self) -> Option<String> {
        // Stores always hit in L2; alone they say nothing.
        if self.l1_sectors == 0 {
            return None;
        }
        let mut text = format!("hits in modelled caches: L1 {:.0}%", percent(self.l1_hits, self.l1_sectors));
        if self.l2_sectors > 0 {
            text += &format!(", L2 {:.0}%", percent(self.l2_hits, self.l2_sectors));
        }
        let bytes = (self.dram_read_sectors + self.dram_written_sectors) * SECTOR;
        if bytes > 0 {
            text += &format!(", {bytes} bytes of memory");
        }
        Some(text)
    }
}

impl Kernel {
    /// The shape of its launches, in words.
    pub fn shape(&self) -> String {
        let sizes = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
        let launches =
            if self.launches == 1 { "one launch".to_owned() } else { format!("{} launches", self.launches) };
        let shared = match self.dynamic_shared {
            0 => String::new(),
            bytes => format!(", {bytes} bytes of dynamic shared memory"),
        };
        format!("grid {}, block {}{shared}, {launches}", sizes(self.grid), sizes(self.block))
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

/// A number with its noun: `1 sector`, `64 sectors`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * ratio(part, whole)
}

#[allow(clippy::cast_precision_loss)] // Counters stay far below 2^53.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_said_and_nothing_of_what_was_not() {
        let one = Count {
            sectors: 1,
            ideal_sectors: 1,
            requests: 1,
            wavefronts: 2,
            ideal_wavefronts: 2,
            worst_wavefronts: 1,
            divergent: 1,
            l1_sectors: 1,
            l2_sectors: 1,
            l2_hits: 1,
            ..Count::default()
        };
        assert_eq!(
            one.words(),
            "1 sector, 1 at best, 1.0 a request; 2 shared wavefronts, 2 at best; 1 divergent branch; \
             hits in modelled caches: L1 0%, L2 100%"
        );
        let many = Count {
            wavefronts: 64,
            ideal_wavefronts: 2,
            worst_wavefronts: 32,
            serialised: 31,
            worst_contention: 32,
            l1_sectors: 4,
            l1_hits: 1,
            dram_read_sectors: 3,
            ..Count::default()
        };
        assert_eq!(
            many.words(),
            "64 shared wavefronts, 2 at best, 32 ways at worst; \
             31 atomic updates wait, 32 lanes at one address at worst; \
             hits in modelled caches: L1 25%, 96 bytes of memory"
        );
        // A store hits in L2 whatever it does.
        let store = Count {
            sectors: 4,
            ideal_sectors: 4,
            requests: 1,
            l2_sectors: 4,
            l2_hits: 4,
            ..Count::default()
        };
        assert_eq!(store.words(), "4 sectors, 4 at best, 4.0 a request");
    }

    #[test]
    fn a_launch_without_dynamic_shared_memory_has_none_in_its_shape() {
        let mut kernel = Kernel { grid: [2, 1, 1], block: [64, 1, 1], launches: 1, ..Kernel::default() };
        assert_eq!(kernel.shape(), "grid 2 x 1 x 1, block 64 x 1 x 1, one launch");
        kernel.dynamic_shared = 48;
        assert_eq!(
            kernel.shape(),
            "grid 2 x 1 x 1, block 64 x 1 x 1, 48 bytes of dynamic shared memory, one launch"
        );
    }
}
