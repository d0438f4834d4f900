//! JSON as models write it: with comments, trailing commas, single quotes, Python's `None` and `True`, bare words, line ends and quotes
//! inside strings, and cut off in the middle.
//!
//! The repairing crates there are end what is cut off with something plausible and don't tell. Here what is not complete is left out,
//! and it is told.

use serde_json::{Map, Value};

/// Deeper nesting than this is no plan.
const DEEPEST: usize = 64;

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lenient {
    pub(super) value: Value,
    /// Whether the text ended before the value did. What was not complete is left out.
    pub(super) is_cut: bool,
    /// Where it ends, in bytes of the text.
    pub(super) end: usize,
}

/// Reads the object or list that `text` begins with.
pub(super) fn parse(text: &str) -> Option<Lenient> {
    let mut strict = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = strict.next() {
        return Some(Lenient { value, is_cut: false, end: strict.byte_offset() });
    }
    let mut reader = Reader { text, at: 0, is_cut: false };
    let value = reader.value(0)?;
    (value.is_object() || value.is_array()).then_some(Lenient {
        value,
        is_cut: reader.is_cut,
        end: reader.at,
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_cut: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let one = self.peek()?;
        self.at += one.len_utf8();
        Some(one)
    }

    /// Past spaces and comments.
    fn skip(&mut self) {
        loop {
            self.at += self.rest().len() - self.rest().trim_start().len();
            let rest = self.rest();
            let length = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n')
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|at| at + 2)
            } else {
                return;
            };
            self.at += length.unwrap_or(rest.len());
        }
    }

    /// A value; `None` for none, or for one that is cut off and has no parts.
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip();
        match self.peek() {
            None => {
                self.is_cut = true;
                None
            }
            Some('{') if depth < DEEPEST => self.object(depth),
            Some('[' | '(') if depth < DEEPEST => self.list(depth),
            Some('{' | '[' | '(') => None,
            Some(quote) if closing_quote(quote).is_some() => self.string().map(Value::String),
            Some(_) => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take();
        let mut object = Map::new();
        loop {
            self.skip();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    break;
                }
                Some('}') => {
                    self.take();
                    break;
                }
                Some(',' | ';') => {
                    self.take();
                    continue;
                }
                // A list that ends here is not ours: the brace was forgotten.
                Some(']' | ')') => break,
                Some(_) => {}
            }
            let Some((key, has_value)) = self.key() else { break };
            if !has_value {
                continue;
            }
            let value = self.value(depth + 1);
            match value {
                Some(value) if !self.is_cut || value.is_object() || value.is_array() => {
                    object.insert(key, value);
                }
                _ if self.is_cut => break,
                Some(_) | None => {}
            }
        }
        Some(Value::Object(object))
    }

    /// A key and its colon, if it has one: what stands alone is passed over, so that the reading goes on.
    fn key(&mut self) -> Option<(String, bool)> {
        let key = match self.peek()? {
            quote if closing_quote(quote).is_some() => self.string()?,
            _ => {
                let rest = self.rest();
                let end = rest.find([':', '=', '\n', '}', ',']).unwrap_or(rest.len());
                self.at += end;
                rest[..end].trim().to_owned()
            }
        };
        self.skip();
        match self.peek() {
            Some(':' | '=') => {
                self.take();
                if self.rest().starts_with('>') {
                    self.take();
                }
                Some((key, true))
            }
            Some('}' | ',') => Some((key, false)),
            Some(_) => {
                self.take();
                Some((key, false))
            }
            None => {
                self.is_cut = true;
                None
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.take();
        let mut list = Vec::new();
        loop {
            self.skip();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    break;
                }
                Some(']' | ')') => {
                    self.take();
                    break;
                }
                Some(',' | ';') => {
                    self.take();
                    continue;
                }
                Some('}') => break,
                Some(_) => {}
            }
            let before = self.at;
            let value = self.value(depth + 1);
            if self.is_cut {
                break;
            }
            list.extend(value);
            if self.at == before {
                self.take();
            }
        }
        Some(Value::Array(list))
    }

    /// A string in any quotes; `None` if it is cut off.
    fn string(&mut self) -> Option<String> {
        let close = self.take().and_then(closing_quote)?;
        let triple: String = std::iter::repeat_n(close, 3).collect();
        let is_triple = self.rest().starts_with(&triple[close.len_utf8()..]);
        if is_triple {
            self.at += 2 * close.len_utf8();
        }
        let mut text = String::new();
        loop {
            if is_triple && self.rest().starts_with(&triple) {
                self.at += triple.len();
                return Some(text);
            }
            match self.take() {
                None => {
                    self.is_cut = true;
                    return None;
                }
                Some('\\') => self.escape(&mut text),
                Some(one) if one == close && !is_triple && self.ends_string() => return Some(text),
                Some(one) => text.push(one),
            }
        }
    }

    /// Whether what follows a quote shows that it ended its string: a sign that can only come between values, and is not followed by
    /// more of a sentence.
    fn ends_string(&self) -> bool {
        let rest = self.rest();
        let next = rest.trim_start();
        let skipped = &rest[..rest.len() - next.len()];
        let mut after = next.chars();
        match after.next() {
            None | Some('}' | ']' | ')' | ':' | '=' | '#') => true,
            Some(',' | ';') => {
                let then = after.as_str().trim_start_matches([' ', '\t', '\r']);
                then.is_empty()
                    || then.starts_with(['"', '\'', '{', '[', '}', ']', '\n', '/', '#', '-', '\u{201c}'])
                    || then.starts_with(|one: char| one.is_ascii_digit())
                    || then
                        .split_once([':', ',', '}', ']', '\n'])
                        .is_some_and(|(word, _)| is_word(word.trim()))
            }
            Some('/') => next.starts_with("//") || next.starts_with("/*"),
            Some(_) => skipped.contains('\n'),
        }
    }

    fn escape(&mut self, text: &mut String) {
        match self.take() {
            None => {}
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('u') => text.push_str(&self.unicode()),
            // Python's continued line.
            Some('\n') => {}
            Some(one @ ('"' | '\'' | '\\' | '/' | '`')) => text.push(one),
            // What JSON has no escape for is meant as it stands: `\d`.
            Some(other) => text.extend(['\\', other]),
        }
    }

    /// What four digits say, with the other half of a pair.
    fn unicode(&mut self) -> String {
        let mut units = Vec::new();
        loop {
            let digits = self.rest().get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
            let Some(unit) = digits else { break };
            self.at += 4;
            units.push(unit);
            let is_first_half = (0xd800..0xdc00).contains(&unit) && units.len() == 1;
            if !is_first_half || !self.rest().starts_with("\\u") {
                break;
            }
            self.at += 2;
        }
        String::from_utf16_lossy(&units)
    }

    /// A number, a constant, or a text without quotes.
    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest.find([',', '}', ']', ')', '\n']).unwrap_or(rest.len());
        self.at += end;
        if end == rest.len() {
            self.is_cut = true;
        }
        let word = rest[..end].split("//").next().unwrap_or_default().trim();
        Some(match word {
            "" => return None,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            "null" | "None" | "undefined" | "NaN" | "nil" => Value::Null,
            word => match word.trim_start_matches('+').parse::<serde_json::Number>() {
                Ok(number) => Value::Number(number),
                Err(_) => Value::String(word.to_owned()),
            },
        })
    }
}

fn closing_quote(open: char) -> Option<char> {
    Some(match open {
        '"' | '\'' | '`' => open,
        '\u{201c}' => '\u{201d}',
        '\u{2018}' => '\u{2019}',
        _ => return None,
    })
}

/// Whether it could be a key or a constant without quotes.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}
