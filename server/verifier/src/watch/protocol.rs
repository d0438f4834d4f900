//! What the library in front of the driver says to the watcher. The header that it is compiled with is written from here.

use std::fmt::Write as _;
use std::io::{self, Read};

/// The name under which the library in front finds the real one, beside it.
pub(super) const REAL_NAME: &str = "libcuda.real.so";

/// What a message is, by its number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first of a process, with the secret of this run as its ticket.
    Hello,
    /// So many bytes are about to be copied to the device; they follow once they are wanted.
    Input,
    /// So many bytes are about to be copied to the host.
    OutputBegins,
    /// They have come, and follow.
    Output,
    /// A copy that can't be seen, with its reason.
    Unseen,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Hello, "HELLO"),
    (Kind::Input, "INPUT"),
    (Kind::OutputBegins, "OUTPUT_BEGINS"),
    (Kind::Output, "OUTPUT"),
    (Kind::Unseen, "UNSEEN"),
];

/// Answers to [`Kind::Input`]: no further copy is an input; the bytes are wanted. Then: they are left; the changed ones follow.
pub(super) const OVER: u64 = 0;
pub(super) const WANTED: u64 = 1;
pub(super) const LEFT: u64 = 2;
pub(super) const CHANGED: u64 = 3;
/// This one is not wanted, a later one may be.
pub(super) const NOT_THIS: u64 = 4;
const ANSWERS: [(u64, &str); 5] =
    [(OVER, "OVER"), (WANTED, "WANTED"), (LEFT, "LEFT"), (CHANGED, "CHANGED"), (NOT_THIS, "NOT_THIS")];

/// Answer to [`Kind::OutputBegins`] where the bytes are not wanted.
pub(super) const NO_TICKET: u64 = u64::MAX;

/// Why a copy is not seen: its name in the library, and what is said of such copies after their number.
pub(super) const UNSEEN: [(&str, &str); 3] = [
    ("UNSEEN_GRAPH", "put into CUDA graphs, whose copies are neither perturbed nor compared"),
    ("UNSEEN_BATCH", "asked for in batches or with attributes, which are neither perturbed nor compared"),
    ("UNSEEN_MEMORY", "not perturbed for want of memory"),
];

/// A message without the bytes that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub kind: Kind,
    /// The process, or an index into [`UNSEEN`].
    pub detail: u32,
    /// Which copy to the host; of the first message the secret.
    pub ticket: u64,
    /// Bytes of the copy.
    pub size: u64,
}

impl Message {
    /// Reads one, or `None` where the other side has gone.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; 24];
        match from.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let (first, ticket, size) = (word(0), word(8), word(16));
        let [number, detail] =
            [first & 0xffff_ffff, first >> 32].map(|half| u32::try_from(half).unwrap_or(u32::MAX));
        let known = KINDS.get((number as usize).wrapping_sub(1));
        let Some(&(kind, _)) = known else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("no message: {number}")));
        };
        Ok(Some(Self { kind, detail, ticket, size }))
    }
}

/// `protocol.h`: the tables as C.
pub(super) fn header() -> String {
    let mut text = String::from("/* Written from protocol.rs. */\n#include <stdint.h>\n");
    let _ = writeln!(text, "#define REAL_NAME \"{REAL_NAME}\"");
    for (index, (_, name)) in KINDS.iter().enumerate() {
        let _ = writeln!(text, "#define {name} {}", index + 1);
    }
    for (number, name) in ANSWERS {
        let _ = writeln!(text, "#define {name} {number}");
    }
    for (index, (name, _)) in UNSEEN.iter().enumerate() {
        let _ = writeln!(text, "#define {name} {index}");
    }
    text.push_str("struct message { uint32_t kind, detail; uint64_t ticket, size; };\n");
    text
}
