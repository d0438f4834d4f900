//! What is remembered of the bytes of an allocation: which were ever written, and which block of the running launch touched
//! them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Allocation, Kind};

/// Zeros, of which the system gives pages only where they are touched.
fn zeros(count: usize) -> Box<[AtomicU64]> {
    let plain = Box::into_raw(vec![0u64; count].into_boxed_slice());
    // SAFETY: an `AtomicU64` has the size and the alignment of a `u64`, and nobody else has the pointer.
    unsafe { Box::from_raw(plain as *mut [AtomicU64]) }
}

/// Bytes of allocations over which no blocks are remembered: it would take twice as much.
const LONGEST_STAMPED: u64 = 2 << 30;

/// An allocation's memory of its bytes.
#[derive(Debug)]
pub struct Track {
    allocation: Allocation,
    /// How many were allocated before it, and it.
    number: u64,
    /// Its variable's name.
    label: Option<String>,
    /// All bytes are written.
    all: AtomicBool,
    /// A bit a byte; empty where all were written from the start.
    written: Box<[AtomicU64]>,
    stamps: Mutex<Option<Arc<Stamps>>>,
}

impl Track {
    pub(super) fn new(allocation: Allocation, number: u64) -> Self {
        // What the host may write, and what a module brings along, counts as written.
        let blank = matches!(allocation.kind, Kind::Device | Kind::Heap);
        let words = if blank { allocation.size.div_ceil(64) as usize } else { 0 };
        Self {
            allocation,
            number,
            label: None,
            all: AtomicBool::new(!blank),
            written: zeros(words),
            stamps: Mutex::new(None),
        }
    }

    pub(super) fn labelled(&self, label: String) -> Self {
        Self { label: Some(label), ..Self::new(self.allocation, self.number) }
    }

    /// Whether it holds this address.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.allocation.start) < self.allocation.size
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        let Allocation { start, size, kind } = self.allocation;
        match (&self.label, kind) {
            (Some(label), _) => format!("the variable `{label}` of {size} bytes"),
            (_, Kind::Heap) => format!("the {size} bytes at {start:#x} from malloc in a kernel"),
            (_, Kind::Managed) => format!("managed allocation {} of {size} bytes at {start:#x}", self.number),
            (_, Kind::Pinned) => format!("pinned allocation {} of {size} bytes at {start:#x}", self.number),
            _ => format!("allocation {} of {size} bytes at {start:#x}", self.number),
        }
    }

    /// First address.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.allocation.start
    }

    /// The words and bits of `size` bytes from `address`, cut to the allocation.
    #[inline(always)]
    fn bits(&self, address: u64, size: u64) -> impl Iterator<Item = (usize, u64)> {
        let from = address.saturating_sub(self.allocation.start).min(self.allocation.size);
        let end = (from + size).min(self.allocation.size);
        (from / 64..end.div_ceil(64)).map(move |word| {
            let low = from.saturating_sub(word * 64).min(63);
            let high = (end - word * 64).min(64);
            (word as usize, u64::MAX << low & u64::MAX >> (64 - high))
        })
    }

    /// Whether nothing has to be marked any more.
    #[inline(always)]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.all.load(Relaxed)
    }

    /// Bytes are written.
    #[inline(always)]
    pub fn mark(&self, address: u64, size: u64) {
        if self.is_complete() {
            return;
        }
        if address <= self.allocation.start && address + size >= self.allocation.end() {
            self.all.store(true, Relaxed);
            return;
        }
        for (word, bits) in self.bits(address, size) {
            if self.written[word].load(Relaxed) & bits != bits {
                self.written[word].fetch_or(bits, Relaxed);
            }
        }
    }

    /// Whether any of these bytes was written.
    #[inline(always)]
    #[must_use]
    pub fn is_any_written(&self, address: u64, size: u64) -> bool {
        self.is_complete()
            || self.bits(address, size).any(|(word, bits)| self.written[word].load(Relaxed) & bits != 0)
    }

    /// Whether all of these bytes were written.
    #[inline(always)]
    #[must_use]
    pub fn is_written(&self, address: u64, size: u64) -> bool {
        self.is_complete()
            || self.bits(address, size).all(|(word, bits)| self.written[word].load(Relaxed) & bits == bits)
    }

    /// The stamps of blocks for a launch; none for what is too long.
    pub(crate) fn stamps(&self, launch: u64) -> Option<Arc<Stamps>> {
        if self.allocation.size > LONGEST_STAMPED {
            return None;
        }
        let era = launch / Stamps::LAUNCHES;
        let mut kept = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(stamps) if stamps.era == era => Some(Arc::clone(stamps)),
            _ => {
                let words = zeros(self.allocation.size.div_ceil(4) as usize);
                let fresh = Arc::new(Stamps { start: self.allocation.start, era, words });
                *kept = Some(Arc::clone(&fresh));
                Some(fresh)
            }
        }
    }
}

/// For each word of an allocation, the block that wrote it last and the one that read it last, with the launch that they are
/// of.
#[derive(Debug)]
pub struct Stamps {
    start: u64,
    /// Launches go by [`LAUNCHES`](Self::LAUNCHES) to an era, then all begins anew.
    era: u64,
    /// Writer above, reader below; each is the launch in its era from 1 (8 bits), and the block from 1 (24 bits).
    words: Box<[AtomicU64]>,
}

/// In the place of a block: several.
const SEVERAL: u32 = (1 << 24) - 1;

/// A block, in a stamp. Blocks that are 2^24 apart look the same, so that a race between them goes unseen.
fn tag(launch: u64, block: u64) -> u32 {
    let launch = (launch % Stamps::LAUNCHES) as u32 + 1;
    launch << 24 | ((block % u64::from(SEVERAL - 1)) as u32 + 1)
}

impl Stamps {
    const LAUNCHES: u64 = 255;

    /// A block reads or writes a word. The other block that it races with: whether that wrote, and its number where it is one.
    #[inline(always)]
    pub(crate) fn touch(
        &self,
        launch: u64,
        block: u64,
        address: u64,
        writes: bool,
    ) -> Option<(bool, Option<u64>)> {
        let own = tag(launch, block);
        let cell = self.words.get((address.wrapping_sub(self.start) / 4) as usize)?;
        let old = cell.load(Relaxed);
        let (writer, reader) = ((old >> 32) as u32, old as u32);
        let other = |stamp: u32| stamp != own && stamp >> 24 == own >> 24;
        let number = |stamp: u32| {
            let block = stamp & SEVERAL;
            (block != SEVERAL).then(|| u64::from(block) - 1)
        };
        let new = if writes {
            u64::from(own) << 32 | u64::from(reader)
        } else {
            let reader = if other(reader) { own | SEVERAL } else { own };
            u64::from(writer) << 32 | u64::from(reader)
        };
        if new != old {
            cell.store(new, Relaxed);
        }
        if other(writer) {
            Some((true, number(writer)))
        } else if writes && other(reader) {
            Some((false, number(reader)))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(size: u64) -> Track {
        Track::new(Allocation { start: 0x1000, size, kind: Kind::Device }, 1)
    }

    #[test]
    fn bytes_are_marked_one_by_one() {
        let track = track(1000);
        assert!(!track.is_any_written(0x1000, 1000));
        track.mark(0x1000 + 63, 2);
        assert!(track.is_written(0x1000 + 63, 2) && !track.is_any_written(0x1000 + 65, 8));
        assert!(track.is_any_written(0x1000 + 60, 4) && !track.is_written(0x1000 + 60, 4));
        // The last bytes, and past them.
        track.mark(0x1000 + 996, 8);
        assert!(track.is_written(0x1000 + 996, 4));
        track.mark(0x1000, 1000);
        assert!(track.is_complete());
    }

    #[test]
    fn what_the_host_may_write_counts_as_written() {
        let managed = Track::new(Allocation { start: 0x1000, size: 8, kind: Kind::Managed }, 1);
        assert!(managed.is_written(0x1000, 8));
    }

    #[test]
    fn blocks_of_one_launch_race_where_one_writes() {
        let track = track(64);
        let stamps = track.stamps(7).unwrap();
        assert_eq!(stamps.touch(7, 0, 0x1004, false), None);
        assert_eq!(stamps.touch(7, 1, 0x1004, false), None);
        assert_eq!(stamps.touch(7, 1, 0x1004, true), Some((false, None)));
        assert_eq!(stamps.touch(7, 2, 0x1004, false), Some((true, Some(1))));
        // Another launch is after this one.
        assert_eq!(stamps.touch(8, 5, 0x1004, true), None);
        assert_eq!(track.stamps(300).unwrap().touch(300, 0, 0x1004, true), None);
    }
}
