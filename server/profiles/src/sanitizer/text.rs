//! The text report.
//!
//! A record begins with a line that says what happened and ends with an empty one; what stands between is told by its first words, since
//! indentation differs between versions. Lines of other programs have no equals signs in front.

use std::io::BufRead;

use super::location::{frame, location};
use super::model::{Allocation, Defect, DefectKind, Indices, SanitizerReport, Side};
use super::{Location, SanitizerError};
use crate::note::{Note, NoteKind};

const MARK: &str = "=========";

/// The longest line that is looked at.
const LONGEST: u64 = 1 << 20;

/// Heads of records, by what they contain.
///
/// Source: reports of cuda-memcheck 10 and of compute-sanitizer 2020.3 to 2025.3, and the Compute Sanitizer documentation.
const HEADS: &[(&str, DefectKind)] = &[
    ("Invalid __", DefectKind::OutOfBounds),
    ("Invalid read", DefectKind::OutOfBounds),
    ("Invalid write", DefectKind::OutOfBounds),
    ("Invalid asynchronous", DefectKind::OutOfBounds),
    ("Invalid multimem", DefectKind::OutOfBounds),
    ("Out-of-range", DefectKind::OutOfBounds),
    ("Uninitialized ", DefectKind::UninitializedRead),
    ("Host API uninitialized memory access", DefectKind::UninitializedRead),
    ("Host API memory access error", DefectKind::UninitializedRead),
    ("UVM GPU fault", DefectKind::OutOfBounds),
    ("UVM CPU fault", DefectKind::Exception),
    ("Race reported", DefectKind::Race),
    ("hazard detected", DefectKind::Race),
    ("Barrier error detected", DefectKind::Barrier),
    ("Warpgroup MMA sequence error", DefectKind::Barrier),
    ("Leaked ", DefectKind::Leak),
    ("Unused memory", DefectKind::UnusedMemory),
    ("Malloc/Free error", DefectKind::InvalidFree),
    ("Program hit ", DefectKind::ApiError),
    ("Warp Illegal", DefectKind::Exception),
    ("Illegal Instruction", DefectKind::Exception),
    ("Stack Overflow", DefectKind::Exception),
    ("Exception", DefectKind::Exception),
];

/// What stands inside a record.
const INSIDE: &[&str] = &[
    "at ",
    "by thread",
    "Address ",
    "Access ",
    "and is ",
    "and Read",
    "and Write",
    "and Atomic",
    "Device Frame",
    "Host Frame",
    "Saved host",
    "Write Thread",
    "Read Thread",
    "Current Value",
    "Not written",
    "in ",
    "by ",
    "Barrier is located",
    "Uninitialized access at",
    "during ",
    "[",
];

/// What kind of defect a record's head tells of.
pub(super) fn kind_of(head: &str) -> Option<DefectKind> {
    HEADS.iter().find(|(words, _)| head.contains(words)).map(|(_, kind)| *kind)
}

/// What the tool says on a line. A program that does not end its last line has the tool's mark behind it; there it is told from other rows of equals
/// signs by its nine and the blank.
pub fn behind_mark(line: &str) -> Option<&str> {
    let line = line.trim_end();
    line.strip_prefix(MARK).or_else(|| {
        let (before, after) = line.split_once(MARK)?;
        (!before.ends_with('=')).then(|| after.strip_prefix(' ')).flatten()
    })
}

pub(super) fn read(mut reader: impl BufRead) -> Result<SanitizerReport, SanitizerError> {
    let mut report = SanitizerReport::default();
    let mut open: Option<Defect> = None;
    let mut seen = false;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if std::io::Read::take(&mut reader, LONGEST).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        let Some(content) = behind_mark(&line) else { continue };
        seen = true;
        step(content.trim_start_matches('=').trim(), &mut open, &mut report);
    }
    if !seen {
        return Err(SanitizerError::NotSanitizer);
    }
    close(&mut open, &mut report);
    if report.errors.is_none() {
        report.notes.push(Note::new(
            NoteKind::Unreadable,
            "The report has no summary: the tool or the program was stopped, or the file was cut, and there may be more errors than are shown.",
        ));
    }
    if report.not_printed > 0 {
        report.notes.push(Note::new(
            NoteKind::NotCaptured,
            format!("{} errors were counted and not printed; --print-limit 0 prints all", report.not_printed),
        ));
    }
    Ok(report)
}

fn close(open: &mut Option<Defect>, report: &mut SanitizerReport) {
    if let Some(defect) = open.take() {
        report.push(defect);
    }
}

fn step(content: &str, open: &mut Option<Defect>, report: &mut SanitizerReport) {
    if content.is_empty() || summary(content, report) {
        close(open, report);
    } else if INSIDE.iter().any(|words| content.starts_with(words))
        || content.contains("of allocation were unused")
    {
        if let Some(defect) = open {
            inside(content, defect);
        }
    } else if let Some(kind) = kind_of(content) {
        close(open, report);
        *open = Some(head(kind, content));
    } else if let Some(text) = about_the_tool(content) {
        close(open, report);
        let note = Note::new(NoteKind::Remark, format!("compute-sanitizer said: {text}"));
        if !report.notes.contains(&note) {
            report.notes.push(note);
        }
    } else if open.is_none()
        && !content.starts_with("COMPUTE-SANITIZER")
        && !content.starts_with("CUDA-MEMCHECK")
    {
        *open = Some(Defect::new(DefectKind::Other, content));
    }
}

/// Lines that are about the tool or the program and not about a defect.
fn about_the_tool(content: &str) -> Option<&str> {
    let known = [
        "Internal Sanitizer Error",
        "Tracking kernels",
        "Default timeout",
        "Target application",
        "Error: process",
        "Error: No attachable",
        "Warning:",
        "Error:",
        "No CUDA-MEMCHECK",
    ];
    known.iter().any(|words| content.starts_with(words)).then_some(content)
}

/// `ERROR SUMMARY: 27 errors`, `22 errors were not printed`, `RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)`, `LEAK SUMMARY`.
fn summary(content: &str, report: &mut SanitizerReport) -> bool {
    let Some((name, rest)) = content.split_once(" SUMMARY: ") else { return false };
    let first = number(rest).unwrap_or(0);
    if rest.contains("not printed") {
        report.not_printed += first;
    } else if name.ends_with("ERROR") || name.ends_with("RACECHECK") {
        *report.errors.get_or_insert(0) += first;
    }
    true
}

/// The first line of a record.
pub(super) fn head(kind: DefectKind, content: &str) -> Defect {
    let text = content
        .trim_start_matches("Error: ")
        .trim_start_matches("Warning: ")
        .trim_start_matches("WARN:")
        .trim_start_matches("ERROR:");
    let mut defect = Defect::new(kind, text.trim());
    defect.space = ["global", "shared", "local", "constant", "generic"]
        .iter()
        .find(|space| text.contains(&format!("__{space}__")))
        .map(|space| (*space).to_owned());
    defect.size = text.split_once("of size ").and_then(|(_, rest)| number(rest));
    match kind {
        DefectKind::Leak => {
            defect.size = text.split_once("Leaked ").and_then(|(_, rest)| number(rest));
            defect.address = hex(text);
        }
        DefectKind::ApiError => {
            defect.api =
                text.split_once("API call to ").map(|(_, api)| api.trim_end_matches('.').trim().to_owned());
            defect.error = text
                .split_once("(error ")
                .and_then(|(_, rest)| number(rest))
                .and_then(|error| i64::try_from(error).ok());
        }
        DefectKind::Race => race(text, &mut defect),
        _ => {}
    }
    defect
}

/// `Race reported between Write access at f()+0x90 in a.cu:41`, at times with ` and Read access at …` on the same line.
fn race(text: &str, defect: &mut Defect) {
    let text = match text.split_once(" between ") {
        Some((_, text)) => text,
        None => {
            defect.blocks = text.split_once("in block ").and_then(|(_, rest)| index(rest)).map(Indices::one);
            defect.address = hex(text);
            return;
        }
    };
    let (first, second) = match text.find(" and ").filter(|at| text[*at..].contains(" access at ")) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    if let Some((access, at)) = first.split_once(" access at ") {
        defect.access = Some(access.trim().to_owned());
        defect.at = location(at);
    }
    if let Some(second) = second {
        other(second, defect);
    }
}

/// `and Read access at f()+0x100 in a.cu:51 [508 hazards]`.
fn other(content: &str, defect: &mut Defect) {
    let content = content.trim_start_matches("and ");
    let (content, hazards) = match content.rsplit_once(" [") {
        Some((content, rest)) if rest.contains("hazard") => (content, number(rest)),
        _ => (content, None),
    };
    defect.hazards = defect.hazards.or(hazards);
    if let Some((access, at)) = content.split_once(" access at ") {
        defect.others.push((access.trim().to_owned(), location(at)));
    }
}

fn inside(content: &str, defect: &mut Defect) {
    if let Some(at) = content.strip_prefix("at ") {
        if defect.at == Location::default() {
            defect.at = location(at);
        }
    } else if content.starts_with("by thread") {
        defect.threads = content.split_once("thread").and_then(|(_, rest)| index(rest)).map(Indices::one);
        defect.blocks = content.split_once("block").and_then(|(_, rest)| index(rest)).map(Indices::one);
    } else if content.starts_with("Address ") || content.starts_with("Access ") {
        defect.address = hex(content);
        if content.contains("misaligned") {
            defect.kind = DefectKind::Misaligned;
        }
    } else if content.starts_with("and is ") {
        defect.allocation = allocation(content);
    } else if content.starts_with("and ") {
        other(content, defect);
    } else if content.starts_with("during ") {
        defect.address = hex(content);
        defect.text = format!("{}, {content}", defect.text);
    } else if let Some(device) = content.strip_prefix("Device Frame:") {
        defect.device_stack.push(device_frame(device));
    } else if let Some(host) = content.strip_prefix("Host Frame:") {
        defect.host_stack.push(frame(host));
    } else if let Some((access, rest)) = content.split_once(" Thread ") {
        hazard(access, rest, defect);
    }
}

/// `Write Thread (35,0,0) at sumKernel(int *)+0x90 in warp_error.cu:44`: the first is where it is told.
fn hazard(access: &str, rest: &str, defect: &mut Defect) {
    let at = rest.split_once(" at ").map(|(_, at)| location(at)).unwrap_or_default();
    if defect.access.is_none() {
        defect.access = Some(access.to_owned());
        defect.threads = index(rest).map(Indices::one);
        defect.at = at;
    } else {
        defect.others.push((access.to_owned(), at));
    }
}

/// `k()+0x130 in scan.cuh:88`, `/home/a/sync.cu:20:k(int*) (k(int*) : 0x8f0)`, `NVIDIA Internal [0x520]`, `k at line 462`.
fn device_frame(text: &str) -> Location {
    let text = text.trim();
    let text = match text.rsplit_once(" (") {
        Some((head, tail)) if tail.contains(" : 0x") => head,
        _ => text,
    };
    if text.contains("+0x") || text.starts_with("0x") {
        location(text)
    } else {
        location(&format!("0x0 in {text}"))
    }
}

/// `and is 1 bytes after the nearest allocation at 0x7fbc of size 4,000 bytes`, `and is inside the nearest allocation at …`.
fn allocation(content: &str) -> Option<Allocation> {
    let side = if content.contains(" before ") {
        Side::Before
    } else if content.contains(" inside ") {
        Side::Inside
    } else {
        Side::After
    };
    let distance =
        content.strip_prefix("and is ").filter(|_| side != Side::Inside).and_then(number).unwrap_or(0);
    let size = content.split_once("of size ").and_then(|(_, rest)| number(rest));
    Some(Allocation { address: hex(content)?, size, distance, side })
}

/// The number at the begin: `4,000 bytes`.
fn number(text: &str) -> Option<u64> {
    let digits: String = text
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The first address in a text.
fn hex(text: &str) -> Option<u64> {
    let at = text.find("0x")?;
    let digits: String = text[at + 2..].chars().take_while(char::is_ascii_hexdigit).collect();
    u64::from_str_radix(&digits, 16).ok()
}

/// The first index in brackets: `(3,0,0)`, `(0, 0, 0)`.
fn index(text: &str) -> Option<[u32; 3]> {
    let inner = text.split_once('(')?.1.split_once(')')?.0;
    let mut parts = inner.split(',').map(|part| part.trim().parse::<u32>().ok());
    let x = parts.next()??;
    Some([x, parts.next().flatten().unwrap_or(0), parts.next().flatten().unwrap_or(0)])
}
