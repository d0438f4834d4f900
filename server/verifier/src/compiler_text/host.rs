//! The forms of gcc and clang: `file:line:column: error: message [-Wkind]`, with what was included or instantiated before,
//! and echoed source after.

use super::{Level, Message, Note, Origin, SourcePlace, leading_number};

/// What was said before a message to explain it.
#[derive(Default)]
pub(super) struct Context {
    notes: Vec<Note>,
}

const LEVELS: [(&str, Level); 7] = [
    (" fatal error: ", Level::Error),
    (" internal compiler error: ", Level::Error),
    (" sorry, unimplemented: ", Level::Error),
    (" error: ", Level::Error),
    (" warning: ", Level::Warning),
    (" note: ", Level::Note),
    (" remark: ", Level::Remark),
];

/// `file`, line, column and the rest of `file:12:3: rest`. The first number between colons ends the file's name, since a
/// drive's colon is followed by none.
fn split_place(line: &str) -> Option<(SourcePlace, &str)> {
    for (at, _) in line.match_indices(':') {
        let Some((number, rest)) = leading_number(&line[at + 1..]) else { continue };
        let Some(mut rest) = rest.strip_prefix([':', ',']) else { continue };
        let mut column = None;
        if let Some((second, after)) = leading_number(rest)
            && let Some(after) = after.strip_prefix([':', ','])
        {
            (column, rest) = (Some(second), after);
        }
        let file = line[..at].trim();
        if file.is_empty() {
            return None;
        }
        return Some((SourcePlace { file: file.to_owned(), line: number, column, echo: None }, rest));
    }
    None
}

fn level_of(rest: &str) -> Option<(Level, &str)> {
    LEVELS.iter().find_map(|(word, level)| Some((*level, rest.strip_prefix(word)?)))
}

/// `text` and `-Wkind` of `text [-Wkind]`.
fn split_kind(text: &str) -> (&str, Option<String>) {
    let kind = text
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once(" ["))
        .filter(|(_, kind)| kind.starts_with("-W"));
    match kind {
        Some((text, kind)) => (text, Some(kind.to_owned())),
        None => (text, None),
    }
}

/// Reads one line and the echo below it. Lines that only explain are remembered for the message that follows.
pub(super) fn read(lines: &[&str], context: &mut Context) -> (Option<Message>, usize) {
    let line = lines[0];
    if let Some(included) = included_from(line) {
        context.notes.push(included);
        return (None, 1);
    }
    let Some((mut place, rest)) = split_place(line) else { return (without_place(line), 1) };
    let Some((level, text)) = level_of(rest) else {
        // `file:10:20:   required from here`
        if rest.trim_start().starts_with("required ") {
            context.notes.push(Note { place: Some(place), text: rest.trim().to_owned() });
        }
        return (None, 1);
    };
    let echo = echo_below(&lines[1..]);
    place.echo = echo.map(|(echo, _)| echo.to_owned());
    let (text, number) = split_kind(text);
    let notes = if level == Level::Note { Vec::new() } else { std::mem::take(&mut context.notes) };
    let message =
        Message { level, origin: Origin::Host, place: Some(place), text: text.to_owned(), number, notes };
    (Some(message), 1 + echo.map_or(0, |(_, used)| used))
}

/// `In file included from a.h:1,` and the lines `                 from b.h:2:` below it.
fn included_from(line: &str) -> Option<Note> {
    let trimmed = line.trim_start();
    let rest = trimmed.strip_prefix("In file included from ").or_else(|| {
        let indented = line.len() > trimmed.len();
        trimmed.strip_prefix("from ").filter(|_| indented)
    })?;
    let rest = rest.trim_end_matches([':', ',']);
    let (place, _) = split_place(&format!("{rest}:"))?;
    Some(Note { place: Some(place), text: "included from here".to_owned() })
}

/// The echoed line of `   12 | code`, and how many lines the echo has.
fn echo_below<'a>(lines: &[&'a str]) -> Option<(&'a str, usize)> {
    let first = *lines.first()?;
    if let Some((number, code)) = first.split_once('|')
        && number.trim().parse::<u32>().is_ok()
    {
        let more = lines[1..].iter().take_while(|line| is_gutter(line)).count();
        return Some((code.strip_prefix(' ').unwrap_or(code), 1 + more));
    }
    let caret = lines.get(1)?.trim();
    let is_caret = caret.starts_with(['^', '~']) && caret.bytes().all(|b| matches!(b, b'^' | b'~' | b' '));
    is_caret.then_some((first, 2))
}

/// `      |   ^~~`, `   13 | more code`, `  +++ |+#include …`.
fn is_gutter(line: &str) -> bool {
    let number = line.split('|').next().unwrap_or("").trim();
    line.contains('|') && (number.is_empty() || number == "+++" || number.parse::<u32>().is_ok())
}

/// `cc1plus: fatal error: …`, `g++: error: …`, `clang: error: …`: the host compiler about itself or its options.
fn without_place(line: &str) -> Option<Message> {
    let (program, rest) = line.split_once(':')?;
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let compilers =
        ["cc1", "g++", "gcc", "c++", "cc", "clang", "ld", "collect2", "as", "<command-line>", "cl"];
    let known = compilers.iter().any(|compiler| name.starts_with(compiler) || name.ends_with(compiler));
    let (level, text) = level_of(rest).filter(|_| known && !name.contains(' '))?;
    let (text, number) = split_kind(text);
    let text = format!("{name}: {text}");
    Some(Message { level, origin: Origin::Host, place: None, text, number, notes: Vec::new() })
}
