//! What compute-sanitizer reported, as text or as XML (`--xml`), and before it cuda-memcheck.
//!
//! The text is mixed with what the checked program printed: what the tool says stands behind nine equals signs, on a line of its own unless the program left one open. Reports that are the same but
//! for the thread become one [`Defect`] with a count and the range of threads.

mod location;
mod model;
mod text;
mod words;
mod xml;

use std::io::{self, BufRead, Read};

pub use location::{Frame, Location};
pub use model::{Allocation, Defect, DefectKind, Indices, SanitizerReport, Side};
pub(crate) use text::behind_mark;

use crate::utf16::decoded;

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum SanitizerError {
    /// The stream itself failed.
    #[error("reading compute-sanitizer's output failed: {0}")]
    Io(#[from] io::Error),
    /// No line is the tool's.
    #[error(
        "this is no output of compute-sanitizer: no line begins with `=========`, and it is no XML with the root ComputeSanitizerOutput. \
         Save one with `compute-sanitizer --log-file FILE program`."
    )]
    NotSanitizer,
}

/// Reads a report to its end, text or XML.
///
/// # Errors
///
/// When the stream fails, or when nothing in it is the tool's. What can't be read of it becomes notes.
pub fn read(reader: impl Read) -> Result<SanitizerReport, SanitizerError> {
    let mut reader = decoded(reader)?;
    let start = reader.fill_buf()?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf));
    if first == Some(&b'<') { xml::read(reader) } else { text::read(reader) }
}
