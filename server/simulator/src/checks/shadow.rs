//! What is remembered of each word of a block's shared memory: who wrote it last, who read it last, and which of its bytes
//! were ever written.
//!
//! Only the last reader of a word is kept. A write that races with an earlier reader alone goes unseen then, in that run and at that word;
//! nothing that is ordered is ever taken for a race.

use std::ops::Range;

use crate::checks::clocks::{Clock, Clocks};

/// The access is an atomic operation, or a load or store of an order that C++ atomics have.
pub(crate) const ATOMIC: u32 = 1;
/// The access is volatile.
pub(crate) const VOLATILE: u32 = 2;

/// In the place of a lane: several.
pub(crate) const SEVERAL: u32 = 63;

/// An access, packed: its step (32 bits), its warp (5), its lane (6), [`ATOMIC`] or [`VOLATILE`] (2), its bytes of the word (4).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Stamp(u64);

impl Stamp {
    #[inline(always)]
    fn new(who: &Who, lane: u32, bytes: u32) -> Self {
        Self(u64::from(who.step) << 32 | u64::from(who.warp << 16 | lane << 8 | who.flags << 4 | bytes))
    }

    fn step(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn warp(self) -> u32 {
        (self.0 >> 16) as u32 & 31
    }

    fn lane(self) -> u32 {
        (self.0 >> 8) as u32 & 63
    }

    fn flags(self) -> u32 {
        (self.0 >> 4) as u32 & 3
    }

    fn bytes(self) -> u32 {
        self.0 as u32 & 15
    }

    /// Is it after what comes before everything that the warp does?
    #[inline(always)]
    fn is_recent(self, who: &Who) -> bool {
        self.step() > who.floor
    }

    /// Is it of the same warp and step?
    #[inline(always)]
    fn is_of(self, who: &Who) -> bool {
        self.step() == who.step && self.warp() == who.warp
    }

    /// Does an access of `lane` race with this one?
    fn races(self, who: &Who, lane: u32, bytes: u32, known: &Clock) -> bool {
        if self.bytes() & bytes == 0 || known[self.warp() as usize] >= self.step() && self.warp() != who.warp
        {
            return false;
        }
        let both = self.flags() != 0 && who.flags != 0;
        if self.warp() != who.warp {
            return !both;
        }
        // Volatile accesses order nothing among the lanes of a warp since Volta.
        let exempt = both && (self.flags() | who.flags) & ATOMIC != 0;
        self.step() >= who.step && self.lane() != lane && !exempt
    }
}

#[derive(Clone, Copy, Default)]
struct Word {
    write: Stamp,
    read: Stamp,
    write_pc: u32,
    read_pc: u32,
}

/// Who accesses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub warp: u32,
    /// The warp's step, and its floor: see [`Clocks::floor`].
    pub step: u32,
    pub floor: u32,
    pub pc: u32,
    /// [`ATOMIC`], [`VOLATILE`].
    pub flags: u32,
}

/// The access that another races with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub pc: u32,
    pub warp: u32,
    /// [`SEVERAL`] for more than one.
    pub lane: u32,
    pub wrote: bool,
    pub atomic: bool,
}

/// What is remembered of a block's shared memory.
pub(crate) struct Shadow {
    words: Vec<Word>,
    /// A bit for each byte of a word that was written.
    set: Vec<u8>,
    pub clocks: Clocks,
    /// Bytes that the system keeps for itself.
    reserved: Range<u64>,
}

/// Bits of the bytes of word `word` that `offset..end` covers.
#[inline(always)]
fn bytes_of(word: u64, offset: u64, end: u64) -> u32 {
    if offset <= word * 4 && word * 4 + 4 <= end {
        return 15;
    }
    let low = offset.saturating_sub(word * 4).min(4) as u32;
    let high = (end - word * 4).min(4) as u32;
    (15 << low & 15) & (15 >> (4 - high))
}

impl Shadow {
    /// Nothing is written yet. `reserved`: bytes that the system keeps for itself; with `races`, who accessed is remembered too.
    pub fn new(bytes: u32, warps: usize, reserved: Range<u64>, races: bool) -> Self {
        let words = bytes.div_ceil(4) as usize;
        Self {
            words: if races { vec![Word::default(); words] } else { Vec::new() },
            set: vec![0; words],
            clocks: Clocks::new(warps),
            reserved,
        }
    }

    /// Begins another block.
    pub fn restart(&mut self) {
        self.set.fill(0);
        let latest = self.clocks.latest();
        if latest > u32::MAX / 2 {
            self.words.fill(Word::default());
            self.clocks.restart(0);
        } else {
            self.clocks.restart(latest);
        }
    }

    fn span(&self, offset: u64, size: u64) -> Option<Range<u64>> {
        let end = offset + size;
        let inside = size > 0 && end.div_ceil(4) <= self.set.len() as u64;
        (inside && !self.reserved.contains(&offset)).then(|| offset / 4..end.div_ceil(4))
    }

    /// A lane reads; [`SEVERAL`] read the same. What it races with, and whether nothing of what it reads was ever written.
    #[inline(always)]
    pub fn read(&mut self, who: &Who, lane: u32, offset: u64, size: u64) -> (Option<Conflict>, bool) {
        let Some(span) = self.span(offset, size) else { return (None, false) };
        let (mut conflict, mut written) = (None, 0);
        for at in span {
            let bytes = bytes_of(at, offset, offset + size);
            written |= u32::from(self.set[at as usize]) & bytes;
            let Some(word) = self.words.get_mut(at as usize) else { continue };
            if word.write.is_recent(who) && word.write.races(who, lane, bytes, self.clocks.of(who.warp)) {
                conflict = Some(word.writer());
            }
            // Of several lanes that read the same at one step, none is forgotten.
            let same = word.read.is_of(who) && word.read.bytes() == bytes && word.read.lane() != lane;
            word.read = Stamp::new(who, if same { SEVERAL } else { lane }, bytes);
            word.read_pc = who.pc;
        }
        (conflict, written == 0)
    }

    /// A lane writes, or updates. What it races with.
    #[inline(always)]
    pub fn write(&mut self, who: &Who, lane: u32, offset: u64, size: u64) -> Option<Conflict> {
        let span = self.span(offset, size)?;
        let mut conflict = None;
        for at in span {
            let bytes = bytes_of(at, offset, offset + size);
            self.set[at as usize] |= bytes as u8;
            let Some(word) = self.words.get_mut(at as usize) else { continue };
            let known = self.clocks.of(who.warp);
            if word.read.is_recent(who) && word.read.races(who, lane, bytes, known) {
                conflict = Some(word.reader());
            } else if word.write.is_recent(who) && word.write.races(who, lane, bytes, known) {
                conflict = Some(word.writer());
            }
            word.write = Stamp::new(who, lane, bytes);
            word.write_pc = who.pc;
        }
        conflict
    }

    /// Whether any byte of a range was written.
    pub fn is_written(&self, offset: u64, size: u64) -> bool {
        self.span(offset, size).is_none_or(|mut span| {
            span.any(|at| u32::from(self.set[at as usize]) & bytes_of(at, offset, offset + size) != 0)
        })
    }

    /// Who an access of a warp is by.
    pub fn who(&self, warp: u32, pc: u32, flags: u32) -> Who {
        Who { warp, step: self.clocks.of(warp)[warp as usize], floor: self.clocks.floor(warp), pc, flags }
    }

    /// Bytes are written by what is no access: `mbarrier.init`.
    pub fn set(&mut self, offset: u64, size: u64) {
        if let Some(span) = self.span(offset, size) {
            for at in span {
                self.set[at as usize] |= bytes_of(at, offset, offset + size) as u8;
            }
        }
    }
}

impl Word {
    #[cold]
    fn writer(&self) -> Conflict {
        let stamp = self.write;
        Conflict {
            pc: self.write_pc,
            warp: stamp.warp(),
            lane: stamp.lane(),
            wrote: true,
            atomic: stamp.flags() & ATOMIC != 0,
        }
    }

    #[cold]
    fn reader(&self) -> Conflict {
        let stamp = self.read;
        Conflict { pc: self.read_pc, warp: stamp.warp(), lane: stamp.lane(), wrote: false, atomic: false }
    }
}
