//! Cuts CUDA C++ into tokens, a byte at a time, without a grammar.
//!
//! Everything that must be right whatever state the text is in stands on this: where items begin and end, what is
//! masked, which kernels and launches there are. So it is total: any bytes give tokens, a broken literal ends with its
//! line, and a comment without an end is a comment of one line (as while it is being typed).

use memchr::memmem;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword; bytes above 127 count as letters.
    Word,
    /// A number.
    Number,
    /// A string or character literal, prefix included.
    Literal,
    /// A literal that its line ends before its quote does.
    BrokenLiteral,
    /// A preprocessor line, with its continuations, without its line end.
    Directive,
    /// Any other byte.
    Byte(u8),
}

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

impl Token {
    /// Whether it is the byte `byte`.
    pub fn is(&self, byte: u8) -> bool {
        self.kind == Kind::Byte(byte)
    }

    /// Its text.
    pub fn text<'t>(&self, bytes: &'t [u8]) -> &'t [u8] {
        bytes.get(self.start..self.end).unwrap_or_default()
    }
}

/// Reads tokens from a text. Cheap to clone, to look ahead.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    bytes: &'t [u8],
    position: usize,
    /// Whether a `#` here would start a directive.
    at_line_start: bool,
    /// Whether directives are recognised; they are not inside a macro's body.
    directives: bool,
    /// Where the search for the end of a comment or raw string came to the end of the text without finding one.
    unended: Option<usize>,
    searches_left: u8,
}

/// How many raw strings without an end are looked for: each search reads the rest of the text, and a text of nothing
/// but such beginnings must not take for ever.
const SEARCHES: u8 = 8;

/// Stands at the very start of some texts; anywhere else it is a letter.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The column of `at`, in bytes, if nothing but blanks stands before it on its line.
pub fn column(bytes: &[u8], at: usize) -> Option<usize> {
    let before = &bytes[..at];
    let blanks = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let before = &before[..at - blanks];
    let starts = matches!(before.last(), None | Some(b'\n' | b'\r')) || before == BYTE_ORDER_MARK;
    starts.then_some(blanks)
}

/// What a byte can be part of.
const WORD: u8 = 1;
const DIGIT: u8 = 2;
const SPACE: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphabetic() || b == b'_' || b == b'$' || b >= 128 {
            table[byte] |= WORD;
        }
        if b.is_ascii_digit() {
            table[byte] |= WORD | DIGIT;
        }
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 | b'\\') {
            table[byte] |= SPACE;
        }
        byte += 1;
    }
    table
};

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// What a lexer hands on from one token to the next. With the rest of the text it decides all tokens that follow, so
/// that reading may begin anew where two texts agree in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    at_line_start: bool,
    searches_left: u8,
    depends_on_the_rest: bool,
}

impl Default for Carry {
    /// At the start of a text.
    fn default() -> Self {
        Self { at_line_start: true, searches_left: SEARCHES, depends_on_the_rest: false }
    }
}

impl<'t> Lexer<'t> {
    /// Reads from `position`, where a line begins.
    pub fn at(text: &'t str, position: usize) -> Self {
        Self::resume(text, position, Carry::default())
    }

    /// Reads from `position`, which must lie between tokens, as the lexer does that handed on `carry` there.
    pub fn resume(text: &'t str, position: usize, carry: Carry) -> Self {
        let bytes = text.as_bytes();
        Self {
            bytes,
            position: position.min(bytes.len()),
            at_line_start: carry.at_line_start,
            directives: true,
            // Where the search began is lost, and costs one more search.
            unended: carry.depends_on_the_rest.then_some(bytes.len()),
            searches_left: carry.searches_left,
        }
    }

    /// Goes to the next token, and tells what was handed on to it.
    pub fn carry(&mut self) -> Carry {
        self.skip_space();
        Carry {
            at_line_start: self.at_line_start,
            searches_left: self.searches_left,
            depends_on_the_rest: self.unended.is_some(),
        }
    }

    /// Reads a macro's body, in which a `#` is an operator: `span` of `text`.
    pub fn within(text: &'t str, start: usize, end: usize) -> Self {
        let bytes = &text.as_bytes()[..end.min(text.len())];
        Self {
            bytes,
            position: start.min(bytes.len()),
            at_line_start: false,
            directives: false,
            unended: None,
            searches_left: SEARCHES,
        }
    }

    /// Where it is.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether what it read so far depends on all the rest of the text.
    pub fn depends_on_the_rest(&self) -> bool {
        self.unended.is_some()
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.position + ahead).copied().unwrap_or(0)
    }

    /// Goes over white space and comments.
    fn skip_space(&mut self) {
        while let Some(&byte) = self.bytes.get(self.position) {
            if is(byte, SPACE) {
                if byte == b'\n' || byte == b'\r' {
                    self.at_line_start = true;
                }
                self.position += 1;
            } else if byte == b'/' && self.byte(1) == b'/' {
                self.position = line_end(self.bytes, self.position);
            } else if byte == b'/' && self.byte(1) == b'*' {
                self.position = self.comment_end();
            } else if self.position == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) {
                self.position = BYTE_ORDER_MARK.len();
            } else {
                break;
            }
        }
    }

    /// The end of the block comment that starts here.
    fn comment_end(&mut self) -> usize {
        let inside = self.position + 2;
        let known_to_be_unended = self.unended.is_some_and(|at| at <= self.position);
        if !known_to_be_unended {
            if let Some(found) = memmem::find(&self.bytes[inside.min(self.bytes.len())..], b"*/") {
                return inside + found + 2;
            }
            self.unended = Some(self.position);
        }
        line_end(self.bytes, self.position)
    }

    /// The end of the literal whose quote is at `quote`, and whether it is whole.
    fn literal_end(&self, quote: usize) -> (usize, bool) {
        let mark = self.bytes[quote];
        let mut at = quote + 1;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' if self.bytes.get(at + 1) == Some(&b'\r') && self.bytes.get(at + 2) == Some(&b'\n') => {
                    at += 3
                }
                b'\\' => at += 2,
                b'\n' | b'\r' => return (at, false),
                _ if byte == mark => return (at + 1, true),
                _ => at += 1,
            }
        }
        (self.bytes.len(), false)
    }

    /// The end of the raw string whose quote is at `quote`, if it is one and has an end.
    fn raw_string_end(&mut self, quote: usize) -> Option<usize> {
        let open = quote + 1 + self.bytes.get(quote + 1..)?.iter().take(17).position(|b| *b == b'(')?;
        let delimiter = &self.bytes[quote + 1..open];
        if delimiter.iter().any(|b| is(*b, SPACE) || matches!(b, b')' | b'"')) {
            return None;
        }
        if self.searches_left == 0 {
            return None;
        }
        let mut close = Vec::with_capacity(delimiter.len() + 2);
        close.push(b')');
        close.extend_from_slice(delimiter);
        close.push(b'"');
        let found = memmem::find(&self.bytes[open..], &close);
        if found.is_none() {
            self.searches_left -= 1;
            self.unended.get_or_insert(quote.max(self.bytes.len()));
        }
        found.map(|at| open + at + close.len())
    }

    /// The end of the directive that starts here.
    fn directive_end(&mut self) -> usize {
        let mut at = self.position;
        while let Some(found) =
            self.bytes[at..].iter().position(|b| matches!(b, b'\n' | b'\r' | b'/' | b'"' | b'\''))
        {
            at += found;
            match self.bytes[at] {
                b'/' if self.bytes.get(at + 1) == Some(&b'*') => {
                    let here = std::mem::replace(&mut self.position, at);
                    let end = self.comment_end();
                    self.position = here;
                    at = end.max(at + 2).min(self.bytes.len());
                }
                b'/' if self.bytes.get(at + 1) == Some(&b'/') => at = line_end(self.bytes, at),
                b'/' => at += 1,
                b'"' | b'\'' => {
                    let (end, whole) = self.literal_end(at);
                    // `#error don't` is no literal.
                    at = if whole { end } else { at + 1 };
                }
                _ if continues(self.bytes, at) => at = after_line_end(self.bytes, at),
                _ => return at,
            }
        }
        self.bytes.len()
    }

    fn number_end(&self) -> usize {
        let mut at = self.position + 1;
        while let Some(&byte) = self.bytes.get(at) {
            let previous = self.bytes[at - 1];
            let exponent_sign = matches!(byte, b'+' | b'-') && matches!(previous, b'e' | b'E' | b'p' | b'P');
            let hexadecimal = self.bytes.get(self.position + 1).is_some_and(|b| matches!(b, b'x' | b'X'));
            let sign_is_part = exponent_sign && !(hexadecimal && matches!(previous, b'e' | b'E'));
            let separator = byte == b'\'' && self.bytes.get(at + 1).is_some_and(|b| is(*b, WORD));
            if is(byte, WORD) || byte == b'.' || sign_is_part || separator {
                at += 1;
            } else {
                break;
            }
        }
        at
    }

    fn word_or_prefixed_literal(&mut self) -> (Kind, usize) {
        let mut end = self.position + 1;
        while self.bytes.get(end).is_some_and(|b| is(*b, WORD)) {
            end += 1;
        }
        let quote = self.bytes.get(end).copied().unwrap_or(0);
        if !matches!(quote, b'"' | b'\'') || end - self.position > 3 {
            return (Kind::Word, end);
        }
        let word = &self.bytes[self.position..end];
        let raw = word.ends_with(b"R");
        let encoding = if raw { &word[..word.len() - 1] } else { word };
        if !matches!(encoding, b"" | b"L" | b"u" | b"U" | b"u8") {
            return (Kind::Word, end);
        }
        if raw && quote == b'"' {
            if let Some(end) = self.raw_string_end(end) {
                return (Kind::Literal, end);
            }
        } else if raw {
            return (Kind::Word, end);
        }
        self.literal(end)
    }

    fn literal(&self, quote: usize) -> (Kind, usize) {
        let (end, whole) = self.literal_end(quote);
        (if whole { Kind::Literal } else { Kind::BrokenLiteral }, end.min(self.bytes.len()))
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_space();
        let start = self.position;
        let byte = *self.bytes.get(start)?;
        let at_line_start = std::mem::replace(&mut self.at_line_start, false);
        let (kind, end) = if is(byte, DIGIT) || (byte == b'.' && is(self.byte(1), DIGIT)) {
            (Kind::Number, self.number_end())
        } else if is(byte, WORD) {
            self.word_or_prefixed_literal()
        } else if matches!(byte, b'"' | b'\'') {
            self.literal(start)
        } else if byte == b'#' && at_line_start && self.directives {
            (Kind::Directive, self.directive_end())
        } else {
            (Kind::Byte(byte), start + 1)
        };
        self.position = end;
        Some(Token { kind, start, end })
    }
}

/// The end of the line at `at`, before its line end; a backslash before the line end goes on with the next line.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &bytes[at.min(bytes.len())..]) {
        at += found;
        if !continues(bytes, at) {
            return at;
        }
        at = after_line_end(bytes, at);
    }
    bytes.len()
}

/// Whether the line end at `at` has a backslash before it.
fn continues(bytes: &[u8], at: usize) -> bool {
    at > 0 && bytes[at - 1] == b'\\'
}

fn after_line_end(bytes: &[u8], at: usize) -> usize {
    if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') { at + 2 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        Lexer::at(text, 0).map(|t| String::from_utf8_lossy(t.text(text.as_bytes())).into_owned()).collect()
    }

    #[test]
    fn tokens_of_ordinary_and_of_broken_text() {
        for (text, expected) in [
            ("a /* x */ b // c\nd", &["a", "b", "d"] as &[_]),
            ("1'000 0x1e+3 1e+3f .5f", &["1'000", "0x1e", "+", "3", "1e+3f", ".5f"]),
            ("\"a\\\"b\" 'c' L'\\'' u8\"d\"", &["\"a\\\"b\"", "'c'", "L'\\''", "u8\"d\""]),
            ("R\"x(a)\" b)x\" c", &["R\"x(a)\" b)x\"", "c"]),
            ("\"broken\nnext", &["\"broken", "next"]),
            ("R\"(never\nnext", &["R\"(never", "next"]),
            ("a /* never\nnext /* never\nlast", &["a", "next", "last"]),
            ("  #define A 1 \\\n 2 // x\nb # c", &["#define A 1 \\\n 2 // x", "b", "#", "c"]),
            ("#if a /* b\n c */ d\ne", &["#if a /* b\n c */ d", "e"]),
            ("#error don't\nx", &["#error don't", "x"]),
            ("// a \\\n b\nc", &["c"]),
            ("a\r#define B\rc", &["a", "#define B", "c"]),
            ("\u{feff}#define A\nb", &["#define A", "b"]),
            ("a\0b", &["a", "b"]),
            ("f(\"%s\", \"x", &["f", "(", "\"%s\"", ",", "\"x"]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_of_nothing_but_beginnings_takes_no_time() {
        for beginning in ["/*", "R\"(", "R\"a(\n", "\"\\", "'", "#/*\n"] {
            let text = beginning.repeat(200_000);
            let started = std::time::Instant::now();
            assert!(Lexer::at(&text, 0).count() > 0);
            assert!(started.elapsed().as_secs() < 5, "{beginning:?}");
        }
    }
}
