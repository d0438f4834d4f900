//! Cuts a Python file into pieces: top-level statements, the members of classes, and the statements of long functions.
//!
//! Everything read from a piece depends on the piece's own text, so what is known of an unchanged piece is kept by its
//! text alone, and a key typed in one method of a long class costs that method. A bracket or quote left open while
//! typing is closed by the next line that can only be a statement, so half a call does not swallow the rest of the file. A
//! long string that has no end in the whole file ends with its first line.
//!
//! The splitter keeps its state: it can be stopped between any two lines and goes on from there.

mod lines;
#[cfg(test)]
mod tests;

use stitch_findings::Span;

use self::lines::{Head, PLAIN, head, indentation, line_end};
use crate::CutOff;

/// Deeper classes are left inside the piece of their parent.
const CLASS_DEPTH: usize = 16;
/// Lines between two questions whether to go on.
const LINES_PER_QUESTION: u32 = 256;

/// So many long strings without an end are taken to end with their line; each costs reading the rest of the file again.
const PATIENCE: u8 = 4;

/// A function of at least this length, in bytes, is cut into its head and its statements.
const LONG: usize = 4 << 10;

/// A top-level statement, the head of a class or a long function, or a member of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Whole lines, from the first one's indentation to the last one's text; comments and blanks around are left out.
    pub(super) span: Span,
    /// The piece that is the head of the class or function around.
    pub(super) outer: Option<usize>,
    /// Whether this is the head of a class or function whose members are the pieces that name it.
    pub(super) is_head: bool,
}

/// A string that is not closed yet.
#[derive(Clone, Copy, Debug)]
struct OpenString {
    quote: u8,
    triple: bool,
    /// Where it begins.
    start: usize,
}

#[derive(Debug)]
struct OpenClass {
    piece: usize,
    indent: usize,
    /// The indentation of its members, once the first was seen.
    body: Option<usize>,
}

/// The statements of a function.
#[derive(Debug, Default)]
struct Body {
    indent: Option<usize>,
    /// Only decorators of the last statement were seen.
    decorated: bool,
    /// Where the text before each statement ends, and where the statement's first line starts.
    statements: Vec<(usize, usize)>,
}

/// Cuts one text.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    at: usize,
    depth: usize,
    string: Option<OpenString>,
    /// The last line ended with a backslash.
    joined: bool,
    classes: Vec<OpenClass>,
    /// The indentation of the piece that is being read.
    indent: usize,
    /// Only decorators of the piece that is being read were seen.
    decorated: bool,
    /// The function that is being read, if the piece is one.
    function: Option<Body>,
    pieces: Vec<Piece>,
    /// How many strings had no end.
    endless: u8,
}

impl Splitter {
    /// Goes on until the end of `source`, which must be the same text in every call.
    ///
    /// # Errors
    /// [`CutOff`] when `keep_going` said no.
    pub(super) fn run(&mut self, source: &str, keep_going: &dyn Fn() -> bool) -> Result<(), CutOff> {
        let mut lines = 0;
        while self.at < source.len() {
            self.line(source.as_bytes());
            lines += 1;
            if lines % LINES_PER_QUESTION == 0 && !keep_going() {
                return Err(CutOff);
            }
        }
        self.close();
        Ok(())
    }

    /// The pieces in the order of the text.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Reads one line.
    fn line(&mut self, source: &[u8]) {
        let start = self.at;
        if self.string.is_none() {
            let (indent, text) = indentation(source, start);
            let blank = matches!(source.get(text), None | Some(b'\n' | b'\r' | b'#'));
            if !blank {
                self.begin(source, start, text, indent);
            }
        }
        self.joined = false;
        let end = self.scan(source);
        if let (Some(piece), true) = (self.pieces.last_mut(), end > start) {
            piece.span.end = piece.span.end.max(end);
        }
        if self.at >= source.len() {
            self.rescue(source);
        }
    }

    /// At the end of the text, goes back behind the first line of a string that is still open. Nothing but the end of the last
    /// piece changed since: inside a string no line is looked at.
    fn rescue(&mut self, source: &[u8]) {
        let Some(string) = self.string.filter(|string| string.triple && self.endless < PATIENCE) else {
            return;
        };
        self.endless += 1;
        self.string = None;
        let rest = &source[string.start..];
        let end = memchr::memchr2(b'\n', b'\r', rest).map_or(source.len(), |length| string.start + length);
        self.at = end + line_end(source, end);
        if let Some(piece) = self.pieces.last_mut() {
            piece.span.end = string.start + source[string.start..end].trim_ascii_end().len();
        }
    }

    /// Decides what the line at `start` is, whose text begins at `text`.
    fn begin(&mut self, source: &[u8], start: usize, text: usize, indent: usize) {
        let head = head(&source[text..]);
        if self.depth > 0 && matches!(head, Head::Class | Head::Function | Head::Statement) {
            self.depth = 0;
        } else if self.depth > 0 || self.joined {
            return;
        }
        let goes_on = !self.pieces.is_empty()
            && (indent > self.indent || indent == self.indent && (self.decorated || head == Head::Continues));
        if goes_on && !self.opens_body(indent) {
            if indent == self.indent && self.decorated {
                self.decorated = head == Head::Decorator;
                self.open(head, indent);
            } else {
                self.statement(head, start, indent);
            }
            return;
        }
        self.close();
        while self.classes.last().is_some_and(|class| indent <= class.indent) {
            self.classes.pop();
        }
        if let Some(class) = self.classes.last_mut() {
            class.body.get_or_insert(indent);
        }
        let outer = self.classes.last().map(|class| class.piece);
        self.pieces.push(Piece { span: Span::new(start, start), outer, is_head: false });
        self.indent = indent;
        self.decorated = head == Head::Decorator;
        self.open(head, indent);
    }

    /// Notes a line of a function as one of its statements, if it is the first line of one.
    fn statement(&mut self, head: Head, start: usize, indent: usize) {
        let (Some(body), Some(piece)) = (&mut self.function, self.pieces.last()) else { return };
        if *body.indent.get_or_insert(indent) != indent {
            return;
        }
        if !body.decorated && head != Head::Continues {
            body.statements.push((piece.span.end, start));
        }
        body.decorated = head == Head::Decorator;
    }

    /// Ends the last piece; a long function becomes a head and its statements.
    fn close(&mut self) {
        let index = self.pieces.len().saturating_sub(1);
        let (Some(body), Some(piece)) = (self.function.take(), self.pieces.last_mut()) else { return };
        let end = piece.span.end;
        if piece.span.len() < LONG || body.statements.len() < 2 {
            return;
        }
        piece.span.end = body.statements[0].0;
        piece.is_head = true;
        let ends = body.statements[1..].iter().map(|(before, _)| *before).chain([end]);
        let members = body.statements.iter().zip(ends).map(|((_, start), end)| Span::new(*start, end));
        self.pieces.extend(members.map(|span| Piece { span, outer: Some(index), is_head: false }));
    }

    /// Whether a line with this indentation is the first of the class whose head was just read.
    fn opens_body(&self, indent: usize) -> bool {
        self.classes.last().is_some_and(|class| class.body.is_none() && indent > class.indent)
    }

    fn open(&mut self, head: Head, indent: usize) {
        if head == Head::Function {
            self.function = Some(Body::default());
        }
        if head == Head::Class && self.classes.len() < CLASS_DEPTH {
            let piece = self.pieces.len() - 1;
            self.pieces[piece].is_head = true;
            self.classes.push(OpenClass { piece, indent, body: None });
        }
    }

    /// Moves over the rest of the line and its end, and returns where its code ends: before a comment and the blanks
    /// at the end.
    fn scan(&mut self, source: &[u8]) -> usize {
        let mut end = self.at;
        while let Some(&byte) = source.get(self.at) {
            if self.string.is_none() && PLAIN[usize::from(byte)] {
                self.at += 1;
                end = self.at;
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                if self.string.is_some_and(|string| !string.triple) {
                    self.string = None;
                }
                self.at += line_end(source, self.at);
                break;
            }
            if let Some(string) = self.string {
                self.in_string(source, string);
                end = self.at;
                continue;
            }
            match byte {
                b'#' => {
                    self.at = memchr::memchr2(b'\n', b'\r', &source[self.at..])
                        .map_or(source.len(), |length| self.at + length);
                    continue;
                }
                b'\\' if line_end(source, self.at + 1) > 0 => {
                    self.joined = true;
                    self.at += 1 + line_end(source, self.at + 1);
                    return self.at;
                }
                b'"' | b'\'' => {
                    let triple = source[self.at..].starts_with(&[byte; 3]);
                    self.string = Some(OpenString { quote: byte, triple, start: self.at });
                    self.at += if triple { 2 } else { 0 };
                }
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if !byte.is_ascii_whitespace() {
                end = self.at;
            }
        }
        end
    }

    /// Moves over a stretch of an open string, or over what closes it.
    fn in_string(&mut self, source: &[u8], string: OpenString) {
        let rest = &source[self.at..];
        let plain = memchr::memchr3(b'\\', b'\n', string.quote, rest).unwrap_or(rest.len());
        let plain = memchr::memchr(b'\r', &rest[..plain]).unwrap_or(plain);
        if plain > 0 {
            self.at += plain;
            return;
        }
        let byte = source[self.at];
        if byte == b'\\' {
            // Also in a raw string a backslash keeps the quote behind it from closing.
            self.at += 1;
            let newline = line_end(source, self.at);
            self.at = (self.at + newline.max(1)).min(source.len());
        } else if byte == string.quote && (!string.triple || source[self.at..].starts_with(&[byte; 3])) {
            self.at += if string.triple { 3 } else { 1 };
            self.string = None;
        } else {
            self.at += 1;
        }
    }
}
