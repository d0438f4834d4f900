//! The words of a constant expression.

use std::ops::Range;

/// One word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// An integer or character literal; `None` if it is a floating one, a string, or does not fit.
    Literal(Option<i64>),
    /// A name, with its scopes: `std::size_t`, `Traits::kTile`.
    Name(&'a str),
    /// An operator or a bracket.
    Symbol(&'a str),
    /// Anything else.
    Other,
}

/// The words of a text, with their places; comments and line splices are no words.
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The words of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n' | b'\\' | 0x0b | 0x0c) => self.at += 1,
                Some(b'/') if bytes.get(self.at + 1) == Some(&b'/') => {
                    self.at = self.text[self.at..].find('\n').map_or(bytes.len(), |end| self.at + end);
                }
                Some(b'/') if bytes.get(self.at + 1) == Some(&b'*') => {
                    self.at =
                        self.text[self.at + 2..].find("*/").map_or(bytes.len(), |end| self.at + 2 + end + 2);
                }
                _ => return,
            }
        }
    }

    fn name_end(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = self.at;
        loop {
            while bytes.get(end).is_some_and(|b| is_word(*b)) {
                end += 1;
            }
            let scoped = bytes[end..].starts_with(b"::") && bytes.get(end + 2).is_some_and(|b| is_word(*b));
            if !scoped {
                return end;
            }
            end += 2;
        }
    }

    fn number_end(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = self.at;
        while let Some(byte) = bytes.get(end) {
            let sign = matches!(byte, b'+' | b'-')
                && matches!(bytes[end - 1], b'e' | b'E' | b'p' | b'P')
                && !self.is_hex();
            let separator = *byte == b'\'' && bytes.get(end + 1).is_some_and(|b| is_word(*b));
            if !(is_word(*byte) || *byte == b'.' || separator || (sign && end > self.at)) {
                break;
            }
            end += 1;
        }
        end
    }

    fn is_hex(&self) -> bool {
        let start = &self.text.as_bytes()[self.at..];
        start.starts_with(b"0x") || start.starts_with(b"0X")
    }

    fn quoted_end(&self, quote: u8) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while let Some(byte) = bytes.get(end) {
            end += 1;
            if *byte == b'\\' {
                end += 1;
            } else if *byte == quote {
                break;
            }
        }
        // An escape at the very end, or one of a longer character, must not split it.
        let mut end = end.min(bytes.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        end
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let start = self.at;
        let first = *self.text.as_bytes().get(start)?;
        let next_is_digit = self.text.as_bytes().get(start + 1).is_some_and(u8::is_ascii_digit);
        let token = if first.is_ascii_digit() || (first == b'.' && next_is_digit) {
            self.at = self.number_end();
            Token::Literal(integer(&self.text[start..self.at]))
        } else if is_word(first) || (first == b':' && self.text[start..].starts_with("::")) {
            self.at = if first == b':' { start + 2 } else { start };
            self.at = self.name_end();
            if self.at == start + 2 && first == b':' {
                Token::Other
            } else {
                Token::Name(&self.text[start..self.at])
            }
        } else if first == b'\'' {
            self.at = self.quoted_end(first);
            Token::Literal(character(&self.text[start..self.at]))
        } else if first == b'"' {
            self.at = self.quoted_end(first);
            Token::Literal(None)
        } else {
            let rest = &self.text[start..];
            let known = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            self.at = start
                + known.map_or_else(|| rest.chars().next().map_or(1, char::len_utf8), |symbol| symbol.len());
            if known.is_some() { Token::Symbol(&self.text[start..self.at]) } else { Token::Other }
        };
        Some((token, start..self.at))
    }
}

/// Longest first, so that `<<` is not read as two `<`.
const SYMBOLS: &[&str] = &[
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<",
    ">", "?", ":", "(", ")", "[", "]", "{", "}", ",",
];

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// The value of an integer literal, with prefix, separators and suffix.
fn integer(text: &str) -> Option<i64> {
    let lower: String = text.chars().filter(|c| *c != '\'').collect::<String>().to_ascii_lowercase();
    let (digits, radix) = if let Some(hex) = lower.strip_prefix("0x") {
        (hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (binary, 2)
    } else if lower.len() > 1 && lower.starts_with('0') && lower.as_bytes()[1].is_ascii_digit() {
        (&lower[1..], 8)
    } else {
        (lower.as_str(), 10)
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let known = matches!(suffix, "" | "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu" | "z" | "uz" | "zu");
    if known { i64::from_str_radix(digits, radix).ok() } else { None }
}

/// The value of a character literal of one byte.
fn character(text: &str) -> Option<i64> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let value = match inner.strip_prefix('\\') {
        None => return if inner.len() == 1 { Some(i64::from(inner.as_bytes()[0])) } else { None },
        Some("n") => 10,
        Some("t") => 9,
        Some("r") => 13,
        Some("a") => 7,
        Some("b") => 8,
        Some("f") => 12,
        Some("v") => 11,
        Some(quoted @ ("\\" | "'" | "\"" | "?")) => i64::from(quoted.as_bytes()[0]),
        Some(number) => {
            let parsed = match number.strip_prefix('x') {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => i64::from_str_radix(number, 8),
            };
            parsed.ok().filter(|value| (0..128).contains(value))?
        }
    };
    Some(value)
}
