//! The sectors that one access of a warp touches.

use super::{SECTOR, SECTORS};

/// Sectors, each with a mask of its bytes. In the order of lanes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    sectors: Vec<(u64, u32)>,
}

impl Request {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sectors.clear();
    }

    /// What was added, each sector once.
    pub fn sectors(&self) -> &[(u64, u32)] {
        &self.sectors
    }

    /// Distinct lines.
    pub fn lines(&self) -> u64 {
        let mut lines = [u64::MAX; 32];
        let (mut count, mut last) = (0, u64::MAX);
        for (sector, _) in &self.sectors {
            let line = sector / SECTORS;
            if line != last && !lines[..count].contains(&line) {
                lines[count.min(31)] = line;
                count = (count + 1).min(32);
            }
            last = line;
        }
        count as u64
    }

    /// Adds `size` bytes at `address`.
    #[inline]
    pub fn add(&mut self, address: u64, size: u64) {
        let (mut at, end) = (address, address + size);
        while at < end {
            let sector = at / SECTOR;
            let here = (end - at).min(SECTOR - at % SECTOR);
            let mask = ((1u64 << here) - 1) << (at % SECTOR);
            self.touch(sector, mask as u32);
            at += here;
        }
    }

    #[inline]
    fn touch(&mut self, sector: u64, bytes: u32) {
        match self.sectors.iter_mut().rev().find(|one| one.0 == sector) {
            Some(one) => one.1 |= bytes,
            None => self.sectors.push((sector, bytes)),
        }
    }
}
