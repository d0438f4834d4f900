//! What the simulator catches: defects that a run may survive, or that stop it.
//!
//! A [`Defect`] names its place in the source, the block and thread that it was first seen in, and what it concerns: an
//! allocation, a variable in shared memory. It is reported once a place, however often it happens. The machine finds them
//! while a kernel runs; what is remembered of memory for that (who wrote a word last, and since which barrier; which bytes were
//! ever written) is in [`shadow`] for shared memory and in [`crate::memory::Track`] for global memory.

mod clocks;
mod found;
pub(crate) mod shadow;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::code::SourcePlace;
pub(crate) use found::{Checker, Found};

/// What is checked beside what always is (accesses outside of allocations, misaligned ones, stacks that overflow).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checks {
    /// Nothing.
    None,
    /// Reads of what was never written.
    Memory,
    /// Those, races, barriers and warps whose lanes are not all there.
    #[default]
    All,
}

impl Checks {
    /// Its name, as [`FromStr`] reads it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Memory => "memory",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Checks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::None, Self::Memory, Self::All]
            .into_iter()
            .find(|checks| checks.as_str() == text)
            .ok_or_else(|| format!("`{text}` is none of `none`, `memory` and `all`"))
    }
}

/// The kinds of defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefectKind {
    /// An access beside what was allocated or declared.
    OutOfBounds,
    /// An access at an address that is not a multiple of its size.
    Misaligned,
    /// An access to memory that was freed.
    UseAfterFree,
    /// A second `free`, or one of what was never allocated.
    DoubleFree,
    /// A read of bytes that nothing has written.
    UninitialisedRead,
    /// Threads of a block that reach one place in shared memory with nothing between them that orders them.
    SharedRace,
    /// Blocks of a launch that reach one place in global memory, one of them writing.
    BlockRace,
    /// A barrier that some lanes of a warp pass by.
    DivergentBarrier,
    /// A shuffle, a vote or a barrier of a warp whose mask names lanes that are not there.
    MissingLanes,
    /// Calls or arrays that need more stack than a thread has.
    StackOverflow,
    /// A pointer to the host's memory, used on the device.
    HostPointer,
    /// A launch that no device accepts.
    InvalidLaunch,
}

/// The second access of a race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// `read`, `write`, `atomic operation`.
    pub what: &'static str,
    /// Its thread, as an index in the block; of a race between blocks nothing is known but the block.
    pub thread: Option<[u32; 3]>,
    /// Its block.
    pub block: [u32; 3],
    /// Its place in the source.
    pub place: Option<SourcePlace>,
    /// Its line of the PTX; 0 where it is not known.
    pub ptx_line: u32,
}

/// Something that is wrong, at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// What.
    pub kind: DefectKind,
    /// The kernel's symbol (mangled).
    pub kernel: String,
    /// The first block in which it was seen.
    pub block: [u32; 3],
    /// The first thread.
    pub thread: [u32; 3],
    /// Source line, where the PTX names it.
    pub place: Option<SourcePlace>,
    /// Line of the PTX text, from 1; 0 where no instruction is concerned.
    pub ptx_line: u32,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// What happened, in a sentence.
    pub message: String,
    /// The allocation or variable concerned, in words.
    pub object: Option<String>,
    /// The other access of a race.
    pub other: Option<Other>,
    /// How often it was seen, by lanes.
    pub times: u64,
}

impl Defect {
    /// Whether both are the same defect at the same place.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let line = |place: &Option<SourcePlace>, ptx_line: u32| match place {
            Some(place) => (Some((place.file.clone(), place.line, place.inlined_at.clone())), 0),
            None => (None, ptx_line),
        };
        let own = |one: &Self| {
            let second = one.other.as_ref().map(|other| line(&other.place, other.ptx_line));
            (line(&one.place, one.ptx_line), second)
        };
        self.kind == other.kind && self.kernel == other.kernel && own(self) == own(other)
    }
}

/// A variable's own name: the last part of a mangled one.
///
/// `_ZZ7pair_upPKfPfE4tile` is `tile`. Source: Itanium C++ ABI, "Mangling": a `<source-name>` is its length and its text.
#[must_use]
pub fn short_name(symbol: &str) -> &str {
    if !symbol.starts_with("_Z") {
        return symbol;
    }
    // A second variable of one name has a discriminator: `…E4tile_0`.
    let plain = symbol.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = plain.strip_suffix('_').unwrap_or(symbol);
    for text in [symbol, plain] {
        for (at, _) in text.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
            let rest = &text[at + digits..];
            if text[at..at + digits].parse() == Ok(rest.len()) && !rest.is_empty() {
                return rest;
            }
        }
    }
    symbol
}
