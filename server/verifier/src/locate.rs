//! From the place that a compiler names to the bytes of the text: the token at its column, else the trimmed line.
//!
//! The column can't be trusted alone. nvcc's front end sees the line after the preprocessor, with comments gone and macros
//! expanded, and counts there; gcc counts a tab up to the next multiple of eight. So the word under the caret is looked for.

use stitch_findings::Span;

use crate::compiler_text::{Origin, SourcePlace};

/// gcc and clang count a tab up to the next multiple of this.
const TAB: usize = 8;

/// Where each line of a text begins; lines end in LF or CRLF, as compilers count them.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Looks through `text` once.
    pub fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The span of a line counted from zero, without its end. `None` past the last line.
    pub fn span(&self, line: usize) -> Option<Span> {
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let trimmed = self.text[start..end].trim_end_matches('\r').len();
        Some(Span::new(start, start + trimmed))
    }

    /// The line, counted from zero, that holds the byte at `offset`, and the byte within the line.
    pub fn line_of(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (line, offset - self.starts[line])
    }

    /// The text of a line, without its end.
    pub fn line(&self, line: usize) -> Option<&'a str> {
        self.span(line).map(|span| &self.text[span.range()])
    }

    /// A line counted from zero without the blanks around it; the nearest line above that has text if it is blank or past the
    /// end. `None` for a text of blanks.
    pub fn trimmed(&self, line: usize) -> Option<Span> {
        let last = line.min(self.starts.len() - 1);
        let above = (0..=last).rev().find_map(|line| trimmed(self.text, self.span(line)?));
        above.or_else(|| (last..self.starts.len()).find_map(|line| trimmed(self.text, self.span(line)?)))
    }
}

fn trimmed(text: &str, span: Span) -> Option<Span> {
    let line = &text[span.range()];
    let start = span.start + (line.len() - line.trim_start().len());
    let end = start + line.trim().len();
    (start < end).then(|| Span::new(start, end))
}

/// The span of what a message is about: the token at its column, else its whole line.
///
/// `None` only for a text of nothing but blanks.
pub fn place_span(lines: &Lines<'_>, place: &SourcePlace, origin: Origin) -> Option<Span> {
    let index = usize::try_from(place.line).ok()?.saturating_sub(1);
    let whole = lines.trimmed(index)?;
    let Some((span, column)) = lines.span(index).zip(place.column) else { return Some(whole) };
    let line = &lines.text[span.range()];
    let column = usize::try_from(column).ok()?.saturating_sub(1);
    let byte = match (&place.echo, origin) {
        (Some(echo), Origin::FrontEnd) => column_of_echo(line, echo, column),
        (_, Origin::FrontEnd) => Some(column),
        (_, _) => byte_of_display(line, column),
    };
    Some(byte.and_then(|byte| token_at(line, byte)).map_or(whole, |token| token.shifted(span.start)))
}

/// The byte of `line` that stands at a column counted from zero in which tabs reach to the next multiple of eight.
fn byte_of_display(line: &str, column: usize) -> Option<usize> {
    let mut at = 0;
    for (byte, character) in line.char_indices() {
        if at >= column {
            return Some(byte);
        }
        at = if character == '\t' { (at / TAB + 1) * TAB } else { at + 1 };
    }
    None
}

/// Where what stands at `column` of `echo` stands in `line`.
fn column_of_echo(line: &str, echo: &str, column: usize) -> Option<usize> {
    let column = (column..=echo.len()).find(|at| echo.is_char_boundary(*at))?;
    let token = &echo[token_at(echo, column)?.range()];
    let stands_at = |byte: usize| line.get(byte..).is_some_and(|rest| rest.starts_with(token));
    if stands_at(column) && token_at(line, column).is_some_and(|span| &line[span.range()] == token) {
        return Some(column);
    }
    if let Some(before) = line.trim_end().strip_suffix(echo[column..].trim_end()) {
        return Some(before.len());
    }
    let count = |text: &str| text.match_indices(token).count();
    let nth = count(&echo[..column]);
    (count(line) == count(echo)).then(|| line.match_indices(token).nth(nth).map(|(at, _)| at))?
}

/// The word, number, literal or sign that stands at a byte of a line. `None` at a blank or past the end.
fn token_at(line: &str, byte: usize) -> Option<Span> {
    let rest = line.get(byte..)?;
    let first = rest.chars().next().filter(|c| !c.is_whitespace())?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let length = if is_word(first) {
        rest.find(|c| !is_word(c)).unwrap_or(rest.len())
    } else if first == '"' || first == '\'' {
        literal(rest, first)
    } else if first == '<' && line[..byte].trim_start().starts_with('#') {
        rest.find('>').map_or(1, |end| end + 1)
    } else if first == '#' {
        // A directive: the word behind the sign belongs to it.
        let blanks = rest[1..].len() - rest[1..].trim_start().len();
        rest[1 + blanks..].find(|c| !is_word(c)).map_or(rest.len(), |length| 1 + blanks + length)
    } else {
        first.len_utf8()
    };
    Some(Span::new(byte, byte + length))
}

/// The length of the literal that `text` starts with, its quotes included.
fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, line: u32, column: Option<u32>, echo: Option<&str>, origin: Origin) -> String {
        let place = SourcePlace { file: String::new(), line, column, echo: echo.map(str::to_owned) };
        place_span(&Lines::new(text), &place, origin)
            .map_or("-".to_owned(), |span| text[span.range()].to_owned())
    }

    #[test]
    fn the_word_under_the_caret_is_found() {
        let text = "\tint i = alpha + n;\r\n\n  /* c */ __device__ int f(T* x) { return *x->bar; }\n\tprintf(\"a \\\" b\", x); é = 1;\n";
        let front = Origin::FrontEnd;
        assert_eq!(at(text, 1, Some(10), Some(" int i = alpha + n;"), front), "alpha");
        let expanded = "__attribute__((device)) int f(T* x) { return *x->bar; }";
        assert_eq!(at(text, 3, Some(47), Some(expanded), front), "x");
        assert_eq!(at(text, 4, Some(9), Some(" printf(\"a \\\" b\", x); é = 1;"), front), "\"a \\\" b\"");
        assert_eq!(at(text, 4, Some(15), None, Origin::Host), "(");
        assert_eq!(at(text, 4, Some(16), None, Origin::Host), "\"a \\\" b\"");
    }

    #[test]
    fn what_can_not_be_found_is_the_whole_line() {
        let text = "  MACRO(x)  \n\n";
        assert_eq!(at(text, 1, Some(4), Some("  a = a + b;"), Origin::FrontEnd), "MACRO(x)");
        assert_eq!(at(text, 1, None, None, Origin::FrontEnd), "MACRO(x)");
        assert_eq!(at(text, 1, Some(400), None, Origin::Host), "MACRO(x)");
        assert_eq!(at(text, 77, Some(4), None, Origin::Host), "MACRO(x)");
        assert_eq!(at(text, 0, Some(0), Some(""), Origin::FrontEnd), "MACRO(x)");
        assert_eq!(at("\n x", 1, None, None, Origin::Host), "x");
        assert_eq!(at(" \n\t", 1, None, None, Origin::Host), "-");
        assert_eq!(at("", 1, Some(3), None, Origin::Host), "-");
        assert_eq!(at("é", 1, Some(2), Some("é"), Origin::FrontEnd), "é");
    }

    #[test]
    fn lines_and_offsets_agree() {
        let text = "ab\r\nc\n";
        let lines = Lines::new(text);
        assert_eq!(
            (lines.span(0), lines.span(1), lines.span(2)),
            (Some(Span::new(0, 2)), Some(Span::new(4, 5)), Some(Span::new(6, 6)))
        );
        assert_eq!(lines.span(3), None);
        assert_eq!((lines.line_of(0), lines.line_of(4), lines.line_of(6)), ((0, 0), (1, 0), (2, 0)));
    }
}
