//! Reads what PyTorch's profiler writes: traces in Chrome's format, plain or compressed by gzip.
//!
//! A trace is walked through twice, for what ran on a device stands after the functions that caused it, and there may be millions of those.
//! The first walk keeps devices' work and calls; the second keeps, of operators and functions of Python, only what lies around a call.

mod copies;
mod document;
mod event;
mod gather;
mod json;
mod stream;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::note::{Note, NoteKind};
use crate::read_error::ReadError;
use crate::system::finish::About;
use crate::system::{Source, System};
use crate::utf16::decoded;
pub(crate) use document::Visit;
use document::Walk;
pub use event::{Args, Kind, TraceEvent};
pub use gather::{Called, FlowEnd, Gathered, Moment, Ran};
pub(crate) use json::{Value, array};
use stream::Stream;

/// Opens the trace from its start; called once a walk.
pub type Open<'o> = dyn FnMut() -> io::Result<Box<dyn Read>> + 'o;

/// What was expected.
const EXPECTED: &str = "a trace of PyTorch's profiler";

/// How to get one.
const ADVICE: &str = "Make one with `torch.profiler.profile(...)` and `export_chrome_trace(PATH)`";

/// Reads the run of a program from a trace.
///
/// # Errors
/// Where it can't be read, is empty, or holds no events.
pub fn read(path: &Path) -> Result<System, ReadError> {
    let name = path.display().to_string();
    read_from(&name, &mut || Ok(Box::new(File::open(path)?)))
}

/// The same from anything that can be opened; `name` is what errors call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(name: &str, open: &mut Open<'_>) -> Result<System, ReadError> {
    let (mut gathered, about) = gather(name, open)?;
    Ok(gathered.system(about))
}

/// The first walk.
pub(crate) fn gather(name: &str, open: &mut Open<'_>) -> Result<(Gathered, About), ReadError> {
    let mut gathered = Gathered::default();
    let walk = walk(name, open, &mut gathered)?;
    if !walk.has_events {
        let found = "it has no list of events".to_owned();
        return Err(ReadError::NotThis { file: name.to_owned(), expected: EXPECTED, found, advice: ADVICE });
    }
    gathered.sort();
    let about = about(&gathered, &walk);
    Ok((gathered, about))
}

/// Walks through the trace once.
pub(crate) fn walk(name: &str, open: &mut Open<'_>, visit: &mut dyn Visit) -> Result<Walk, ReadError> {
    let io = |source| ReadError::Io { file: name.to_owned(), source };
    let mut source = BufReader::new(open().map_err(io)?);
    let start = io::BufRead::fill_buf(&mut source).map_err(io)?;
    if start.is_empty() {
        return Err(ReadError::Empty { file: name.to_owned() });
    }
    let stream = match start {
        [0x1F, 0x8B, ..] => Stream::new(Box::new(MultiGzDecoder::new(source))),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Stream::new(Box::new(decoded(source).map_err(io)?)),
        _ => Stream::new(Box::new(source)),
    };
    Ok(document::walk(stream, visit))
}

fn about(gathered: &Gathered, walk: &Walk) -> About {
    let mut notes = Vec::new();
    if gathered.ran.iter().all(|ran| !gathered.is_kernel(ran)) {
        notes.push(Note::new(
            NoteKind::NotCaptured,
            "No kernel was recorded, so nothing is known about the time of the device. Profile with `ProfilerActivity.CUDA` among the \
             activities, on a machine with a GPU.",
        ));
    }
    if gathered.called.is_empty() {
        notes.push(Note::new(NoteKind::NotCaptured, "No calls of the CUDA API were recorded."));
    }
    let broken = walk.broken + gathered.unusable;
    if broken > 0 {
        let line = walk.first_broken_line.map_or(String::new(), |line| format!(", the first on line {line}"));
        let events = if broken == 1 { "1 event".to_owned() } else { format!("{broken} events") };
        notes.push(Note::new(
            NoteKind::Unreadable,
            format!("{events} could not be read{line}; the others were."),
        ));
    }
    let why = walk.trouble.as_ref().map(|trouble| format!(" ({trouble})"));
    if walk.cut || why.is_some() {
        notes.push(Note::new(
            NoteKind::Unreadable,
            format!(
                "The file is damaged: the trace ends in the middle, on line {}{}. What follows is missing from all sums. Profile again, and \
                 let the program come to its end.",
                walk.last_line,
                why.unwrap_or_default()
            ),
        ));
    }
    let source = Source { tool: "PyTorch profiler".into(), version: None, schema: gathered.schema.clone() };
    About {
        source,
        devices: gathered.devices.clone(),
        copies_recorded: !gathered.ran.is_empty(),
        calls_recorded: !gathered.called.is_empty(),
        ranges_recorded: !gathered.ranges.is_empty(),
        notes,
    }
}
