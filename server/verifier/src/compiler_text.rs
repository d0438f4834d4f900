//! Reads what a compile printed: the messages of nvcc's front end, of the host compiler, of ptxas, nvlink and nvcc itself.
//!
//! One text holds all of them, each in a form of its own, in whatever order the stages ran. A line belongs to the form that
//! recognises it; what follows it (echoed source, carets, notes, back traces) belongs to the message before.

mod front_end;
mod host;
mod tool;

use std::collections::HashSet;

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The compile failed because of it.
    Error,
    /// Worth looking at.
    Warning,
    /// Explains the message before.
    Note,
    /// Says nothing about the code.
    Remark,
}

/// Which program said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// nvcc's C++ front end.
    FrontEnd,
    /// gcc, clang or cl, which preprocess and compile the host part.
    Host,
    /// The assembler.
    Ptxas,
    /// The device linker.
    Nvlink,
    /// nvcc as the driver of all others: options, environment.
    Driver,
}

/// A place as the text names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// The file as written, relative to where the compiler ran.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Byte in the line, from one, as the compiler counts; in the echoed line where there is one.
    pub column: Option<u32>,
    /// The line as the compiler shows it. Macros may be expanded in it, so it may differ from the file's line.
    pub echo: Option<String>,
}

/// A place that explains a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Where, if it says so.
    pub place: Option<SourcePlace>,
    /// What.
    pub text: String,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// How bad.
    pub level: Level,
    /// Who said it.
    pub origin: Origin,
    /// Where; `None` for one about no place.
    pub place: Option<SourcePlace>,
    /// What, without the number.
    pub text: String,
    /// The number or switch that names the kind: `177-D`, `C4244`, `-Wunused-variable`.
    pub number: Option<String>,
    /// What explains it.
    pub notes: Vec<Note>,
}

/// Reads the whole text of a compile: standard output and error, in any encoding that has ASCII in it.
///
/// Notes are attached to their message. A message said twice, for the host and for the device or for each architecture, is
/// given once. `ptxas info` and the warning of spills are left to [`crate::ptxas`].
pub fn parse(bytes: &[u8]) -> Vec<Message> {
    let text = clean(bytes);
    let lines: Vec<&str> = text.lines().collect();
    let mut messages: Vec<Message> = Vec::new();
    let mut context = host::Context::default();
    let mut at = 0;
    while at < lines.len() {
        let (message, used) = read(&lines[at..], &mut context);
        at += used.max(1);
        match message {
            Some(note) if note.level == Level::Note => attach(&mut messages, note),
            Some(message) if message.level != Level::Remark => messages.push(message),
            _ => {}
        }
    }
    once(messages)
}

/// One message from the start of `lines`, and how many lines it took.
fn read(lines: &[&str], context: &mut host::Context) -> (Option<Message>, usize) {
    if let Some(message) = tool::read(lines[0]) {
        return (message, 1);
    }
    if let Some((message, used)) = front_end::read(lines) {
        return (Some(message), used);
    }
    host::read(lines, context)
}

fn attach(messages: &mut [Message], note: Message) {
    if let Some(last) = messages.last_mut() {
        last.notes.push(Note { place: note.place, text: note.text });
        last.notes.extend(note.notes);
    }
}

/// Each message once. Notes do not count: the host and the device pass may explain the same message differently.
fn once(messages: Vec<Message>) -> Vec<Message> {
    let mut seen = HashSet::new();
    let mut kept = messages;
    kept.retain(|message| {
        let place = message.place.as_ref().map(|place| (place.file.clone(), place.line, place.column));
        seen.insert((message.level, place, message.text.clone(), message.number.clone()))
    });
    kept
}

/// What a program printed, as text. A source that it echoes reads as [`stitch_analysis::decode`] reads the source itself, so
/// that the two can be compared.
pub(crate) fn printed(bytes: &[u8]) -> String {
    stitch_analysis::decode(bytes)
        .map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), |decoded| decoded.text.into_owned())
}

/// The text without colours and carriage returns.
fn clean(bytes: &[u8]) -> String {
    let text = printed(bytes);
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['\u{1b}', '\r']) {
        cleaned.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = match rest.strip_prefix('\r') {
            Some(after) if after.starts_with('\n') || after.is_empty() => after,
            Some(after) => {
                cleaned.push('\n');
                after
            }
            None => after_escape(&rest[1..]),
        };
    }
    cleaned.push_str(rest);
    cleaned
}

/// What follows a terminal's control sequence: `[31m`, `[K`, or a link `]8;;…\u{7}`.
fn after_escape(text: &str) -> &str {
    let after = |end: Option<usize>| end.map_or("", |at| &text[at + 1..]);
    match text.as_bytes().first() {
        Some(b'[') => after(text.bytes().skip(1).position(|b| (0x40..=0x7e).contains(&b)).map(|at| at + 1)),
        Some(b']') => after(text.find(['\u{7}', '\\'])),
        _ => text,
    }
}

/// The decimal number at the start of `text` and what follows it.
fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests;
