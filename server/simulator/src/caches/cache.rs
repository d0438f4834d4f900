//! One cache: sets of lines, four sectors each.

use super::SECTORS;

/// Lines of a set. NVIDIA does not say how many; with so many and a hashed choice of the set, few conflicts are left, as measured.
const WAYS: usize = 16;
/// Marks a line that holds nothing.
const EMPTY: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
struct Line {
    tag: u64,
    used: u64,
    /// The request that fetched something last.
    request: u64,
    /// Sectors that hold what memory holds, or newer.
    valid: u8,
    /// Sectors that were fetched by `request`.
    fetched: u8,
    /// Sectors that were stored to.
    dirty: u8,
    /// Bytes of each sector that were stored.
    bytes: [u32; SECTORS as usize],
    /// The op that stored last.
    writer: u32,
}

const NOTHING: Line =
    Line { tag: EMPTY, used: 0, request: 0, valid: 0, fetched: 0, dirty: 0, bytes: [0; 4], writer: u32::MAX };

/// What a line that lost its place costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Evicted {
    /// Sectors that are written to memory.
    pub written: u32,
    /// Sectors that are read before, since only a part of them was stored.
    pub read: u32,
    /// The op that stored them.
    pub writer: u32,
}

/// A cache.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    lines: Vec<Line>,
    sets: u64,
    clock: u64,
    requests: u64,
}

impl Cache {
    /// An empty one of so many bytes.
    pub fn new(bytes: u64) -> Self {
        let sets = (bytes / (SECTORS * 32) / WAYS as u64).max(1);
        Self { lines: vec![NOTHING; sets as usize * WAYS], sets, clock: 0, requests: 0 }
    }

    /// The number of the next request: its sectors are looked up at once.
    pub fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// Where a line is, or its set.
    #[inline]
    fn set(&self, tag: u64) -> usize {
        // Upper bits are folded in, so that power-of-two strides spread.
        let hashed = (tag ^ tag >> 11 ^ tag >> 23).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(hashed) * u128::from(self.sets)) >> 64) as usize * WAYS
    }

    /// Whether a sector is there; used lines stay longer. What the same request fetched was not there when it asked.
    #[inline]
    pub fn load(&mut self, sector: u64, request: u64) -> bool {
        let (tag, bit) = (sector / SECTORS, 1 << (sector % SECTORS));
        let set = self.set(tag);
        self.clock += 1;
        for line in &mut self.lines[set..set + WAYS] {
            if line.tag == tag {
                line.used = self.clock;
                return line.valid & bit != 0 && !(line.request == request && line.fetched & bit != 0);
            }
        }
        false
    }

    /// Makes room for a sector and fetches it. Whether it was not there before, and what had to go.
    #[inline]
    pub fn fill(&mut self, sector: u64, request: u64) -> Option<(bool, Evicted)> {
        let bit = 1u8 << (sector % SECTORS);
        let (at, evicted) = self.place(sector / SECTORS);
        let line = &mut self.lines[at];
        if line.request != request {
            line.request = request;
            line.fetched = 0;
        }
        let fresh = line.valid & bit == 0;
        if fresh {
            line.valid |= bit;
            line.fetched |= bit;
        }
        (fresh || evicted.written > 0).then_some((fresh, evicted))
    }

    /// Stores these bytes of a sector.
    #[inline]
    pub fn store(&mut self, sector: u64, bytes: u32, writer: usize) -> Evicted {
        let index = (sector % SECTORS) as usize;
        let (at, evicted) = self.place(sector / SECTORS);
        let line = &mut self.lines[at];
        line.dirty |= 1 << index;
        line.bytes[index] |= bytes;
        if line.bytes[index] == u32::MAX {
            line.valid |= 1 << index;
        }
        line.writer = u32::try_from(writer).unwrap_or(u32::MAX);
        evicted
    }

    /// The place of a line: where it is, or that of the line of its set that was not used for longest.
    #[inline]
    fn place(&mut self, tag: u64) -> (usize, Evicted) {
        let set = self.set(tag);
        self.clock += 1;
        let (mut oldest, mut age) = (set, u64::MAX);
        for (at, line) in self.lines[set..set + WAYS].iter_mut().enumerate() {
            if line.tag == tag {
                line.used = self.clock;
                return (set + at, Evicted::default());
            }
            if line.used < age {
                (oldest, age) = (set + at, line.used);
            }
        }
        let old = std::mem::replace(&mut self.lines[oldest], Line { tag, used: self.clock, ..NOTHING });
        if old.dirty == 0 {
            return (oldest, Evicted::default());
        }
        (
            oldest,
            Evicted {
                written: old.dirty.count_ones(),
                read: (old.dirty & !old.valid).count_ones(),
                writer: old.writer,
            },
        )
    }
}
