//! Text to tokens. Tokens borrow from the text.
//!
//! Source: PTX ISA, section "Syntax" (source format, comments, identifiers, constants).

use super::ParseError;

/// A token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'t> {
    pub kind: Kind<'t>,
    /// Bytes of the text, from and to.
    pub start: usize,
    pub end: usize,
    /// Line, from 1.
    pub line: u32,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'t> {
    /// An identifier, an opcode's first word, a register: `%r1`, `$L__BB0_2`, `ld`.
    Word(&'t str),
    /// `.word`, without its dot: a directive, a type, a modifier. `::` stays inside.
    Dot(&'t str),
    /// An integer.
    Int(u64),
    /// `0f…`: the bits.
    F32(u32),
    /// `0d…`, or a decimal number with a point or an exponent: the bits.
    F64(u64),
    /// What stands between quotes, escapes as written.
    Text(&'t str),
    /// One character of punctuation.
    Mark(u8),
    /// The end of the text.
    End,
}

impl std::fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) => write!(f, "`{}`", shortened(word)),
            Self::Dot(word) => write!(f, "`.{}`", shortened(word)),
            Self::Int(value) => write!(f, "the number {value}"),
            Self::F32(bits) => write!(f, "`0f{bits:08X}`"),
            Self::F64(bits) => write!(f, "`0d{bits:016X}`"),
            Self::Text(text) => write!(f, "\"{}\"", shortened(text)),
            Self::Mark(mark) => write!(f, "`{}`", char::from(*mark)),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// The beginning of a word that may be a damaged file's megabytes.
fn shortened(text: &str) -> &str {
    match text.char_indices().nth(60) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Walks over a text.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn fail<T>(&self, message: String) -> Result<T, ParseError> {
        Err(ParseError { line: self.line, message })
    }

    /// Goes on while the bytes satisfy `wanted`, and gives what was passed from `start` on.
    fn take_while(&mut self, start: usize, wanted: impl Fn(u8) -> bool) -> &'t str {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|&byte| wanted(byte)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Token<'t>, ParseError> {
        self.skip_space()?;
        let (start, line) = (self.at, self.line);
        let Some(&byte) = self.text.as_bytes().get(start) else {
            return Ok(Token { kind: Kind::End, start, end: start, line });
        };
        let kind = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => {
                self.at += 1;
                Kind::Word(self.take_while(start, is_word))
            }
            b'.' if is_word(self.peek(1)) => {
                self.at += 1;
                self.dotted()
            }
            b'0'..=b'9' => self.number()?,
            b'"' => self.string()?,
            b'!'..=b'~' => {
                self.at += 1;
                Kind::Mark(byte)
            }
            _ => {
                let character = self.text[start..].chars().next().unwrap_or_default();
                return self.fail(format!("a character that PTX does not have: {character:?}"));
            }
        };
        Ok(Token { kind, start, end: self.at, line })
    }

    /// Space, comments, `#` lines and the DWARF lines of old compilers.
    fn skip_space(&mut self) -> Result<(), ParseError> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0 => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'#' => self.skip_line(),
                b'@' if bytes[self.at..].starts_with(b"@@DWARF") => self.skip_line(),
                b'/' if self.peek(1) == b'*' => {
                    let Some(length) = self.text[self.at + 2..].find("*/") else {
                        return self
                            .fail("a comment `/*` that does not end; the text may be truncated".into());
                    };
                    let end = self.at + 2 + length + 2;
                    self.line += newlines(&bytes[self.at..end]);
                    self.at = end;
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        self.at += self.text.as_bytes()[self.at..]
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(self.text.len() - self.at);
    }

    /// After the dot: `global`, `2d`, `shared::cluster`, `L2::128B`.
    fn dotted(&mut self) -> Kind<'t> {
        let start = self.at;
        self.take_while(start, is_word);
        while self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
            self.at += 2;
            self.take_while(start, is_word);
        }
        Kind::Dot(&self.text[start..self.at])
    }

    fn string(&mut self) -> Result<Kind<'t>, ParseError> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(b'\n') | None => {
                    return self
                        .fail("a string that does not end on its line; the text may be truncated".into());
                }
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        Ok(Kind::Text(&self.text[start..at]))
    }

    fn number(&mut self) -> Result<Kind<'t>, ParseError> {
        let start = self.at;
        let rest = self.text.as_bytes();
        let second = self.peek(1) | 0x20;
        if rest[start] == b'0' && matches!(second, b'f' | b'd') {
            return self.float_bits(second);
        }
        let (radix, skipped) = match (rest[start], second) {
            (b'0', b'x') => (16, 2),
            (b'0', b'b') => (2, 2),
            (b'0', b'0'..=b'7') => (8, 1),
            _ => (10, 0),
        };
        self.at += skipped;
        let digits = self.at;
        self.take_while(
            start,
            |byte| if radix == 16 { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() },
        );
        if radix != 16 && radix != 2 && self.is_decimal_point() {
            return self.decimal(start);
        }
        let end = self.at;
        if matches!(self.peek(0), b'U' | b'u') {
            self.at += 1;
        }
        if is_word(self.peek(0)) {
            let text = self.take_while(start, is_word);
            return self.fail(format!("`{}` is no number", shortened(text)));
        }
        match u64::from_str_radix(&self.text[digits..end], radix) {
            Ok(value) => Ok(Kind::Int(value)),
            Err(_) => self.fail(format!("`{}` is no integer of 64 bits", shortened(&self.text[start..end]))),
        }
    }

    /// `.` and a digit, or an exponent, follows the digits that were read.
    fn is_decimal_point(&self) -> bool {
        match self.peek(0) {
            b'.' => !self.peek(1).is_ascii_alphabetic() && self.peek(1) != b'_',
            b'e' | b'E' => self.peek(1).is_ascii_digit() || matches!(self.peek(1), b'+' | b'-'),
            _ => false,
        }
    }

    fn decimal(&mut self, start: usize) -> Result<Kind<'t>, ParseError> {
        if self.peek(0) == b'.' {
            self.at += 1;
            self.take_while(start, |byte| byte.is_ascii_digit());
        }
        if matches!(self.peek(0), b'e' | b'E') {
            self.at += 1 + usize::from(matches!(self.peek(1), b'+' | b'-'));
            self.take_while(start, |byte| byte.is_ascii_digit());
        }
        let text = &self.text[start..self.at];
        match text.parse::<f64>() {
            Ok(value) => Ok(Kind::F64(value.to_bits())),
            Err(_) => self.fail(format!("`{}` is no number", shortened(text))),
        }
    }

    /// `0f` with 8 and `0d` with 16 hexadecimal digits.
    fn float_bits(&mut self, which: u8) -> Result<Kind<'t>, ParseError> {
        let start = self.at;
        self.at += 2;
        let digits = self.take_while(self.at, is_word);
        let wanted = if which == b'f' { 8 } else { 16 };
        match u64::from_str_radix(digits, 16) {
            Ok(bits) if digits.len() == wanted && which == b'f' => Ok(Kind::F32(bits as u32)),
            Ok(bits) if digits.len() == wanted => Ok(Kind::F64(bits)),
            _ => self.fail(format!(
                "`{}` should have {wanted} hexadecimal digits",
                shortened(&self.text[start..self.at])
            )),
        }
    }

    /// Passes the inside of a `{` that was just read, and its `}`, unread.
    pub fn skip_block(&mut self) -> Result<(), ParseError> {
        let opened = self.line;
        let mut depth = 1usize;
        for (index, &byte) in self.text.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                b'\n' => self.line += 1,
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += index + 1;
                return Ok(());
            }
        }
        self.line = opened;
        self.fail("this section does not end; the text may be truncated".into())
    }
}

/// Letters, digits, `_` and `$`; `%` only begins a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn newlines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u32
}
