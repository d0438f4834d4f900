//! From a message to a finding: in which file, at which bytes, with what explains it.
//!
//! What the compiler found in a header that is not the user's is shown where the user's code led there: at the
//! instantiation, else at the `#include`.

use stitch_findings::{Code, Finding, Place, Span};

use super::kernels::Kernels;
use super::workings::{ASKED, Files, Workings};
use crate::compiler_text::{Level, Message, Origin, SourcePlace};
use crate::locate::{Lines, place_span};
use crate::{demangle, paths, units};

/// Where a finding is put.
pub(super) struct At {
    pub file: usize,
    pub span: Span,
    /// Where the message itself points, if that is elsewhere.
    pub elsewhere: Option<SourcePlace>,
    /// The kernel or function that the message names.
    pub subject: Option<String>,
}

/// Where `message` belongs. `None` for one about no place of the user's: a note of the report.
pub(super) fn place(
    workings: &Workings,
    files: &mut Files<'_>,
    kernels: &mut Kernels,
    message: &Message,
) -> Option<At> {
    let Some(place) = &message.place else { return by_function(files, kernels, message) };
    if let Some(file) = files.by_name(&place.file) {
        let span = span_in(files, file, place, message.origin)?;
        return Some(At { file, span, elsewhere: None, subject: None });
    }
    // Warnings about other people's headers are of no use to the user.
    if message.level != Level::Error {
        return None;
    }
    let path = paths::resolve(&place.file, &workings.directory);
    if !files.is_system(&path) {
        return None;
    }
    let elsewhere = Some(place.clone());
    for note in message.notes.iter().filter_map(|note| note.place.as_ref()) {
        if let Some(file) = files.by_name(&note.file)
            && let Some(span) = span_in(files, file, note, Origin::Host)
        {
            return Some(At { file, span, elsewhere, subject: None });
        }
    }
    let unit = files.by_name(&workings.unit.display().to_string()).unwrap_or(ASKED);
    let span = include_of(&files.get(unit).text, &place.file)?;
    Some(At { file: unit, span, elsewhere, subject: None })
}

fn span_in(files: &Files<'_>, file: usize, place: &SourcePlace, origin: Origin) -> Option<Span> {
    place_span(&Lines::new(&files.get(file).text), place, origin)
}

/// The `#include` that leads to a header: the one that names it, else the last, after which errors in headers show.
fn include_of(text: &str, header: &str) -> Option<Span> {
    let lines = Lines::new(text);
    let includes = text.lines().enumerate().filter_map(|(line, code)| Some((line, units::included(code)?)));
    let ends_in = |name: &str| header.ends_with(name);
    let line = includes
        .clone()
        .find(|(_, name)| ends_in(name))
        .or_else(|| includes.last())
        .map_or(0, |(line, _)| line);
    lines.trimmed(line)
}

/// For a message of the assembler or the linker, which name functions: the function's definition, else its first mention.
fn by_function(files: &mut Files<'_>, kernels: &mut Kernels, message: &Message) -> Option<At> {
    if !matches!(message.origin, Origin::Ptxas | Origin::Nvlink) || message.level != Level::Error {
        return None;
    }
    let mangled = message.text.split('\'').nth(1)?;
    let name = demangle::name(mangled);
    let subject = Some(name.display());
    if let Some((file, span)) = kernels.definition(mangled) {
        return Some(At { file, span, elsewhere: None, subject });
    }
    let text = &files.get(ASKED).text;
    let base = name.base();
    let is_word = |at: usize| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(word) && !text[at + base.len()..].starts_with(word)
    };
    let at = text.match_indices(base).map(|(at, _)| at).find(|at| !base.is_empty() && is_word(*at))?;
    Some(At { file: ASKED, span: Span::new(at, at + base.len()), elsewhere: None, subject })
}

/// The finding for a message that has its place.
pub(super) fn finding(files: &mut Files<'_>, message: &Message, at: &At) -> Finding {
    let code = if message.level == Level::Error { Code::NVCC_ERROR } else { Code::NVCC_WARNING };
    let mut text = readable(message);
    if let Some(number) = &message.number {
        text.push_str(&format!(" [{number}]"));
    }
    let mut finding = Finding::new(code, at.span, text);
    finding.subject.clone_from(&at.subject);
    if let Some(place) = &at.elsewhere
        && let Some(place) = related_place(files, at.file, place)
    {
        finding = finding.relate(place, "the error is in this header");
    }
    for note in &message.notes {
        if let Some(place) = note.place.as_ref().and_then(|place| related_place(files, at.file, place)) {
            finding = finding.relate(place, note.text.clone());
        }
    }
    finding
}

/// The message with the names that the assembler mangles as a person writes them.
pub(super) fn readable(message: &Message) -> String {
    if !matches!(message.origin, Origin::Ptxas | Origin::Nvlink) {
        return message.text.clone();
    }
    let parts = message.text.split('\'').enumerate().map(|(index, part)| {
        if index % 2 == 1 && part.starts_with("_Z") {
            demangle::name(part).signature()
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("'")
}

/// A place as a finding in `file` names it: by bytes in the same file, by line and column elsewhere.
fn related_place(files: &mut Files<'_>, file: usize, place: &SourcePlace) -> Option<Place> {
    let line = place.line.saturating_sub(1);
    if let Some(index) = files.by_name(&place.file) {
        let lines = Lines::new(&files.get(index).text);
        let origin = if place.echo.is_some() { Origin::FrontEnd } else { Origin::Host };
        let span = place_span(&lines, place, origin)?;
        if index == file {
            return Some(Place::Here(span));
        }
        let (line, column) = lines.line_of(span.start);
        let path = files.get(index).path.clone();
        return Some(Place::File {
            path,
            line: u32::try_from(line).ok()?,
            column: u32::try_from(column).ok()?,
        });
    }
    let path = files.resolve(&place.file);
    path.is_absolute().then_some(Place::File { path, line, column: 0 })
}
