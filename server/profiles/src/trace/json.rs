//! An object of a trace, as leniently as Chrome reads it.
//!
//! Profilers write what strict JSON refuses: `NaN` and `inf` as numbers, raw line breaks in strings, a comma before a bracket. A library that
//! refuses them would refuse the file. Times are kept as they are written, for a double has no room for nanoseconds since 1970.

use std::borrow::Cow;

/// A value in an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A string, with its escapes resolved.
    Text(Cow<'a, str>),
    /// A number, or a word: `true`, `null`, `NaN`.
    Word(&'a str),
    /// An object or an array, as it is written.
    Nested(&'a [u8]),
}

/// No object can be made of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Gives each key and value of the object that `bytes` are.
pub fn object<'a>(bytes: &'a [u8], mut field: impl FnMut(&str, Value<'a>)) -> Result<(), Broken> {
    let mut rest = Rest { bytes, at: 0 };
    rest.expect(b'{')?;
    loop {
        match rest.sign() {
            Some(b'}') => return Ok(()),
            Some(b',') => rest.at += 1,
            Some(b'"') => {
                let key = rest.string()?;
                rest.expect(b':')?;
                let value = rest.value()?;
                if !matches!(rest.sign(), Some(b',' | b'}')) {
                    return Err(Broken);
                }
                field(&key, value);
            }
            _ => return Err(Broken),
        }
    }
}

/// The values of the array that `bytes` are.
pub fn array(bytes: &[u8]) -> Result<Vec<Value<'_>>, Broken> {
    let mut rest = Rest { bytes, at: 0 };
    let mut values = Vec::new();
    rest.expect(b'[')?;
    loop {
        match rest.sign() {
            Some(b']') => return Ok(values),
            Some(b',') => rest.at += 1,
            Some(_) => values.push(rest.value()?),
            None => return Err(Broken),
        }
    }
}

impl Value<'_> {
    /// The value as an integer, be it written as a number or as a string.
    pub fn integer(&self) -> Option<i64> {
        let text = self.word()?;
        text.parse().ok().or_else(|| {
            let number: f64 = text.parse().ok()?;
            (number.is_finite() && number.abs() < 9.0e18).then_some(number as i64)
        })
    }

    /// The value, in microseconds with a fraction, as whole nanoseconds.
    pub fn nanoseconds(&self) -> Option<i64> {
        let text = self.word()?;
        decimal_ns(text).or_else(|| {
            let number: f64 = text.parse().ok()?;
            (number.is_finite() && number.abs() < 9.0e15).then_some((number * 1e3).round() as i64)
        })
    }

    fn word(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.trim()),
            Self::Word(word) => Some(word),
            Self::Nested(_) => None,
        }
    }
}

/// `12.3456` as 12346: a decimal number without an exponent, times a thousand.
fn decimal_ns(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |byte| i64::from(byte - b'0'));
    let below = digit(0) * 100 + digit(1) * 10 + digit(2) + i64::from(digit(3) >= 5);
    let ns = whole.parse::<i64>().ok()?.checked_mul(1_000)?.checked_add(below)?;
    Some(if negative { -ns } else { ns })
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    /// The next byte that is no white space.
    fn sign(&mut self) -> Option<u8> {
        while self.bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, sign: u8) -> Result<(), Broken> {
        if self.sign() != Some(sign) {
            return Err(Broken);
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Result<Value<'a>, Broken> {
        match self.sign().ok_or(Broken)? {
            b'"' => Ok(Value::Text(self.string()?)),
            b'{' | b'[' => self.nested(),
            _ => {
                let bytes = &self.bytes[self.at..];
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let length = bytes.iter().position(|byte| !is_word(byte)).unwrap_or(bytes.len());
                if length == 0 {
                    return Err(Broken);
                }
                self.at += length;
                std::str::from_utf8(&bytes[..length]).map(Value::Word).map_err(|_| Broken)
            }
        }
    }

    fn nested(&mut self) -> Result<Value<'a>, Broken> {
        let (start, mut depth) = (self.at, 0usize);
        loop {
            match self.bytes.get(self.at).ok_or(Broken)? {
                b'"' => {
                    self.at = self.string_end()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(Value::Nested(&self.bytes[start..self.at]));
            }
        }
    }

    /// The place after the string that begins here.
    fn string_end(&self) -> Result<usize, Broken> {
        let mut at = self.at + 1;
        loop {
            match self.bytes.get(at).ok_or(Broken)? {
                b'"' => return Ok(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Broken> {
        let end = self.string_end()?;
        let bytes = &self.bytes[self.at + 1..end - 1];
        self.at = end;
        if bytes.contains(&b'\\') {
            return Ok(Cow::Owned(unescape(&String::from_utf8_lossy(bytes))));
        }
        Ok(String::from_utf8_lossy(bytes))
    }
}

/// Resolves escapes. One that does not exist stands for itself, and half a surrogate pair for the replacement character.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let mut after = rest[at + 1..].chars();
        match after.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let (sign, length) = code_point(&rest[at..]);
                plain.push(sign);
                rest = &rest[at + length..];
                continue;
            }
            Some(sign @ ('"' | '\\' | '/')) => plain.push(sign),
            Some(sign) => {
                plain.push('\\');
                plain.push(sign);
            }
            None => plain.push('\\'),
        }
        rest = after.as_str();
    }
    plain.push_str(rest);
    plain
}

/// The character of `\uXXXX` or of a surrogate pair, and how many bytes that took.
fn code_point(text: &str) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        text.get(at..at + 2).filter(|start| *start == "\\u")?;
        u32::from_str_radix(text.get(at + 2..at + 6)?, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        (Some(code), _) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        (None, _) => (char::REPLACEMENT_CHARACTER, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(text: &str) -> Result<Vec<(String, String)>, Broken> {
        let mut all = Vec::new();
        object(text.as_bytes(), |key, value| all.push((key.to_owned(), format!("{value:?}"))))?;
        Ok(all)
    }

    #[test]
    fn what_profilers_write_is_read() {
        let text = "{\"a\" : NaN, \"b\":-Infinity,\"c\": \"x\ny\\u00e9\\ud83d\\ude00\\q\", \"d\": [1, {\"e\": \"]}\"}], }";
        let found = fields(text).unwrap();
        assert_eq!(found[0].1, "Word(\"NaN\")");
        assert_eq!(found[1].1, "Word(\"-Infinity\")");
        assert_eq!(found[2].1, format!("Text({:?})", "x\nyé😀\\q"));
        assert!(found[3].1.starts_with("Nested"));
        assert_eq!(array(b"[1, \"2\",]").unwrap().len(), 2);
    }

    #[test]
    fn what_no_one_can_read_is_broken() {
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\": \"b\"c\"}",
            "{\"a\": 1 2}",
            "[1]",
            "{1: 2}",
            "{\"a\": [}",
        ] {
            assert_eq!(fields(text), Err(Broken), "{text}");
        }
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        let ns = |text| Value::Word(text).nanoseconds();
        assert_eq!(ns("1712195495519689.123"), Some(1_712_195_495_519_689_123));
        assert_eq!(ns("0.0015"), Some(2));
        assert_eq!(ns("-3.25"), Some(-3_250));
        assert_eq!(ns("1e3"), Some(1_000_000));
        assert_eq!(ns("NaN"), None);
        assert_eq!(Value::Text("12.5".into()).nanoseconds(), Some(12_500));
        assert_eq!(ns("99999999999999999999"), None);
        assert_eq!(Value::Text("2560".into()).integer(), Some(2_560));
        assert_eq!(Value::Word("7.0").integer(), Some(7));
        assert_eq!(Value::Word("inf").integer(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = object(&bytes, |_, _| {});
            let _ = array(&bytes);
        }

        #[test]
        fn any_text_in_brackets_ends(text in "[{}\\[\\]\",:\\\\u0-9a-f -]{0,60}") {
            let _ = object(format!("{{\"a\":{text}}}").as_bytes(), |_, value| {
                let _ = (value.integer(), value.nanoseconds());
            });
        }

        #[test]
        fn what_serde_writes_is_read_alike(name in any::<String>(), number in any::<i64>()) {
            let text = serde_json::json!({ "name": name, "number": number }).to_string();
            let mut seen = 0;
            object(text.as_bytes(), |key, value| match key {
                "name" => { assert_eq!(value, Value::Text(name.as_str().into())); seen += 1; }
                _ => { assert_eq!(value.integer(), Some(number)); seen += 1; }
            }).unwrap();
            prop_assert_eq!(seen, 2);
        }
    }
}
