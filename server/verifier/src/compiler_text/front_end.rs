//! The forms of nvcc's C++ front end, and of Microsoft's compiler, which look alike: `file(line): error #20-D: message`.
//!
//! A file's name may hold colons, blanks, brackets and numbers in brackets, so the head is found by what follows the line
//! number, never by what stands before it. Below the head come more lines of the message, the source line indented by two,
//! a caret under the column, and where templates were instantiated.

use super::{Level, Message, Note, Origin, SourcePlace, leading_number};

/// The head of a message: `file(line): level #number: text`.
struct Head<'a> {
    file: &'a str,
    line: u32,
    column: Option<u32>,
    level: Level,
    number: Option<String>,
    text: &'a str,
}

const LEVELS: [(&str, Level); 8] = [
    ("catastrophic error", Level::Error),
    ("internal error", Level::Error),
    ("fatal error", Level::Error),
    ("error", Level::Error),
    ("Error", Level::Error),
    ("warning", Level::Warning),
    ("note", Level::Note),
    ("remark", Level::Remark),
];

/// `error #20-D: text`, `error C2065: text`, `error: text`.
fn level_and_text(text: &str) -> Option<(Level, Option<String>, &str)> {
    let (word, level) = LEVELS.iter().find(|(word, _)| text.starts_with(word))?;
    let rest = &text[word.len()..];
    let (number, text) = rest.split_once(':')?;
    let number = number.trim();
    let plain = number.len() <= 16 && !number.contains(' ');
    let number = number.trim_start_matches('#');
    plain.then(|| (*level, (!number.is_empty()).then(|| number.to_owned()), text.trim()))
}

fn head(line: &str) -> Option<Head<'_>> {
    for (at, _) in line.match_indices('(') {
        let Some((number, rest)) = leading_number(&line[at + 1..]) else { continue };
        let (column, rest) = match rest.strip_prefix(',').and_then(leading_number) {
            Some((column, rest)) => (Some(column), rest),
            None => (None, rest),
        };
        let Some(rest) = rest.strip_prefix(')') else { continue };
        let Some(rest) = rest.trim_start().strip_prefix(':') else { continue };
        if let Some((level, kind, text)) = level_and_text(rest.trim_start()) {
            let file = line[..at].trim();
            return (!file.is_empty()).then_some(Head {
                file,
                line: number,
                column,
                level,
                number: kind,
                text,
            });
        }
    }
    None
}

/// Reads one message with all that belongs to it, and says how many lines that was.
pub(super) fn read(lines: &[&str]) -> Option<(Message, usize)> {
    let head = head(lines[0])?;
    // Microsoft's numbers are `C2065`; its messages have no more lines.
    let microsoft =
        head.number.as_ref().is_some_and(|number| number.starts_with('C')) || head.column.is_some();
    let place = SourcePlace { file: head.file.to_owned(), line: head.line, column: head.column, echo: None };
    let mut message = Message {
        level: head.level,
        origin: if microsoft { Origin::Host } else { Origin::FrontEnd },
        place: Some(place),
        text: head.text.to_owned(),
        number: head.number,
        notes: Vec::new(),
    };
    let used = if microsoft { 1 } else { 1 + body(&lines[1..], &mut message) };
    Some((message, used))
}

/// Whether `line` has a caret and nothing else.
fn is_caret(line: &str) -> bool {
    line.trim() == "^"
}

/// Reads the lines below a head, up to a blank line or something else's head.
fn body(lines: &[&str], message: &mut Message) -> usize {
    let mut used = 0;
    while let Some(line) = lines.get(used) {
        if line.trim().is_empty() {
            return used + 1;
        }
        if lines.get(used + 1).is_some_and(|next| is_caret(next)) {
            echo(line, lines[used + 1], message);
            used += 2;
            continue;
        }
        // `(12): here` closes an instantiation in CUDA 11 and before; other text at the margin is not ours.
        let closing = here(line);
        let indented = line.starts_with("    ") || line.starts_with('\t');
        if closing.is_none() && (!indented || head(line).is_some()) {
            return used;
        }
        match closing {
            Some(place) => close(place, message),
            None => more(line.trim(), message),
        }
        used += 1;
    }
    used
}

/// The source line is indented by two, and so is the caret below it. Tabs are shown as one blank.
fn echo(line: &str, caret: &str, message: &mut Message) {
    if let Some(place) = &mut message.place
        && place.echo.is_none()
    {
        let column = caret.find('^').and_then(|at| u32::try_from(at.saturating_sub(1)).ok());
        place.column = column.filter(|column| *column > 0);
        place.echo = Some(line.get(2..).unwrap_or("").to_owned());
    }
}

/// One more line of the message, or of how the compiler came there.
fn more(line: &str, message: &mut Message) {
    let opens = ["detected ", "instantiation of ", "implicit generation of ", "processing of "];
    if opens.iter().any(|word| line.starts_with(word)) {
        let file = message.place.as_ref().map(|place| place.file.clone()).unwrap_or_default();
        let (text, place) = at_line(line, &file);
        message.notes.push(Note { place, text: text.to_owned() });
    } else if line.starts_with('[') && line.ends_with("not shown ]") {
        message.notes.push(Note { place: None, text: line.trim_matches(['[', ']', ' ']).to_owned() });
    } else if let Some(note) = message.notes.last_mut() {
        note.text.push(' ');
        note.text.push_str(line);
    } else {
        message.text.push('\n');
        message.text.push_str(line);
    }
}

/// `text` and the place of `text at line 6 of a b(c).cu`; without `of` it is the message's own file.
fn at_line<'a>(line: &'a str, own_file: &str) -> (&'a str, Option<SourcePlace>) {
    let found = line.rfind(" at line ").and_then(|at| {
        let (number, rest) = leading_number(&line[at + " at line ".len()..])?;
        let file = match rest.strip_prefix(" of ") {
            Some(file) => file.trim_matches('"'),
            None if rest.is_empty() => own_file,
            None => return None,
        };
        Some((&line[..at], SourcePlace { file: file.to_owned(), line: number, column: None, echo: None }))
    });
    match found {
        Some((text, place)) => (text, Some(place)),
        None => (line, None),
    }
}

/// The place of `(12): here` or `file(12): here`.
fn here(line: &str) -> Option<SourcePlace> {
    let rest = line.strip_suffix("): here")?;
    let at = rest.rfind('(')?;
    let line = rest[at + 1..].parse().ok()?;
    Some(SourcePlace { file: rest[..at].trim().to_owned(), line, column: None, echo: None })
}

fn close(mut place: SourcePlace, message: &mut Message) {
    if place.file.is_empty() {
        place.file = message.place.as_ref().map(|own| own.file.clone()).unwrap_or_default();
    }
    match message.notes.last_mut() {
        Some(note) if note.place.is_none() => note.place = Some(place),
        _ => message.notes.push(Note { place: Some(place), text: "from here".to_owned() }),
    }
}
