//! Writes sizes out as numbers, so that what is left is an integer expression: `in.size() * sizeof *p` is `4096 * 4`.

use super::super::arguments::{group_end, split_tokens, template_end};
use super::super::lexer::{Kind, Lexer, Token};

/// What the names of a text stand for.
pub trait Named {
    /// How many elements the vector or array `name` holds.
    fn count(&self, name: &str) -> Option<i64>;
    /// The bytes of the variable or the type `name`.
    fn bytes(&self, name: &str) -> Option<i64>;
    /// The bytes of `*name`.
    fn pointee(&self, name: &str) -> Option<i64>;
    /// The sizes of the `dim3` called `name`.
    fn axes(&self, name: &str) -> Option<[i64; 3]>;
    /// The value of an integer expression.
    fn integer(&self, text: &str) -> Option<i64>;
}

/// Longer texts are no sizes.
const LONGEST: usize = 4096;

/// `text` with the sizes that are known as numbers; `None` where nothing in it is a size.
pub fn spelled(text: &str, named: &dyn Named) -> Option<String> {
    let worth = ["size", ".", "ceil", "min", "max", "length"].iter().any(|part| text.contains(part));
    if !worth || text.len() > LONGEST {
        return None;
    }
    let tokens: Vec<Token> = Lexer::within(text, 0, text.len()).collect();
    let speller = Speller { tokens: &tokens, text, named };
    let mut out = String::new();
    let (mut copied, mut index) = (0, 0);
    while index < tokens.len() {
        match speller.size(index) {
            Some((value, end)) => {
                out.push_str(&text[copied..tokens[index].start]);
                out.push_str(&value.to_string());
                copied = tokens[end - 1].end;
                index = end;
            }
            None => index += 1,
        }
    }
    out.push_str(&text[copied..]);
    (copied > 0).then_some(out)
}

struct Speller<'t> {
    tokens: &'t [Token],
    text: &'t str,
    named: &'t dyn Named,
}

impl<'t> Speller<'t> {
    fn is(&self, index: usize, byte: u8) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is(byte))
    }

    fn word(&self, index: usize) -> Option<&'t str> {
        let token = self.tokens.get(index).filter(|token| token.kind == Kind::Word)?;
        self.text.get(token.start..token.end)
    }

    fn between(&self, first: usize, end: usize) -> &'t str {
        let span = self.tokens.get(first).zip(self.tokens.get(end.wrapping_sub(1)));
        span.and_then(|(first, last)| self.text.get(first.start..last.end)).unwrap_or_default()
    }

    /// The value of the size that starts at `index`, and the token after it.
    fn size(&self, index: usize) -> Option<(i64, usize)> {
        let word = self.word(index)?;
        let before = index.checked_sub(1);
        if before.is_some_and(|at| self.is(at, b'.') || self.is(at, b'>')) {
            return None;
        }
        match word {
            "sizeof" => self.size_of(index + 1),
            // `std::min(a, b)` is a value from its first word on.
            "std" if self.is(index + 1, b':') && self.is(index + 2, b':') => {
                self.call(self.word(index + 3)?, index + 4)
            }
            _ if before.is_some_and(|at| self.is(at, b':')) => None,
            _ if self.is(index + 1, b'.') => self.member(word, index + 2),
            _ => self.call(word, index + 1),
        }
    }

    /// `v.size()`, `block.x`.
    fn member(&self, name: &str, at: usize) -> Option<(i64, usize)> {
        let member = self.word(at)?;
        if matches!(member, "size" | "length") && self.is(at + 1, b'(') && self.is(at + 2, b')') {
            return Some((self.named.count(name)?, at + 3));
        }
        let axis = ["x", "y", "z"].iter().position(|axis| *axis == member)?;
        Some((self.named.axes(name)?[axis], at + 1))
    }

    /// `sizeof(float)`, `sizeof v[0]`, `sizeof(*p)`: what stands at `at` and behind.
    fn size_of(&self, at: usize) -> Option<(i64, usize)> {
        if self.is(at, b'(') {
            let close = group_end(self.tokens, at)?;
            // `sizeof (a)[0]` is of an element.
            let goes_on = self.is(close + 1, b'[') || self.is(close + 1, b'.');
            let (bytes, end) = self.operand(at + 1).unwrap_or((None, 0));
            let whole = if end == close { bytes } else { self.named.bytes(self.between(at + 1, close)) };
            return whole.filter(|_| !goes_on).map(|bytes| (bytes, close + 1));
        }
        let (bytes, end) = self.operand(at)?;
        Some((bytes?, end))
    }

    /// `*p`, `p[…]` or `p`, and the token after it.
    fn operand(&self, at: usize) -> Option<(Option<i64>, usize)> {
        if self.is(at, b'*') {
            return Some((self.named.pointee(self.word(at + 1)?), at + 2));
        }
        let name = self.word(at)?;
        if self.is(at + 1, b'[') {
            let close = group_end(self.tokens, at + 1)?;
            return (!self.is(close + 1, b'[')).then(|| (self.named.pointee(name), close + 1));
        }
        Some((self.named.bytes(name), at + 1))
    }

    /// `min(a, b)`, `ceil(n / 256.0)`, `size(v)`, with the bracket at `open`.
    fn call(&self, name: &str, open: usize) -> Option<(i64, usize)> {
        self.is(open, b'(').then_some(())?;
        let close = group_end(self.tokens, open)?;
        let parts = split_tokens(&self.tokens[open + 1..close]);
        let text = |index: usize| parts.get(index).and_then(|part| self.text.get(part.range()));
        let value = match (name, parts.len()) {
            ("min", 2) => self.named.integer(text(0)?)?.min(self.named.integer(text(1)?)?),
            ("max", 2) => self.named.integer(text(0)?)?.max(self.named.integer(text(1)?)?),
            ("size" | "ssize", 1) => self.named.count(text(0)?.trim())?,
            ("ceil" | "ceilf", 1) => self.rounded_up(open + 1, close)?,
            _ => return None,
        };
        Some((value, close + 1))
    }

    /// `a / b` rounded up, for the tokens from `first` to `end`: where one of both is floating, as C++ computes it.
    fn rounded_up(&self, first: usize, end: usize) -> Option<i64> {
        let mut depth = 0usize;
        let mut division = None;
        let mut at = first;
        while at < end {
            match self.tokens[at].kind {
                // `static_cast<float>` compares nothing.
                Kind::Byte(b'<') => at = template_end(self.tokens, at)?,
                Kind::Byte(b'(' | b'[') => depth += 1,
                Kind::Byte(b')' | b']') => depth = depth.checked_sub(1)?,
                Kind::Byte(b'/') if depth == 0 && division.is_none() => division = Some(at),
                // Anything weaker than a division, or a second one: `1 + a / b`, `a / b / c`.
                Kind::Byte(b'+' | b'-' | b'/' | b'?' | b'>' | b'%' | b',') if depth == 0 => return None,
                _ => {}
            }
            at += 1;
        }
        let division = division?;
        let (left, right) = (self.number(first, division)?, self.number(division + 1, end)?);
        match (left, right) {
            (Number::Integer(a), Number::Integer(b)) => a.checked_div(b),
            (a, b) if a.is_single() && b.is_single() => Some(quotient_of_floats(a.value(), b.value())),
            (a, b) => Some((a.value() / b.value()).ceil()).filter(|up| up.abs() < EXACT).map(|up| up as i64),
        }
    }

    /// A number, cast or not: `n`, `(float)n`, `256.0f`, `float(n)`, `static_cast<double>(n)`, `1.0 * n`.
    fn number(&self, first: usize, end: usize) -> Option<Number> {
        let text = self.between(first, end);
        let squeezed: String = text.split_whitespace().collect();
        for (cast, single) in [
            ("(float)", true),
            ("(double)", false),
            ("float(", true),
            ("double(", false),
            ("static_cast<float>(", true),
            ("static_cast<double>(", false),
            ("1.0*", false),
            ("1.0f*", true),
        ] {
            let Some(rest) = squeezed.strip_prefix(cast) else { continue };
            let inner = match cast.ends_with('(') {
                true => rest.strip_suffix(')')?,
                false => rest,
            };
            let value = self.named.integer(inner)?;
            return Some(if single { Number::Single(value as f64) } else { Number::Double(value as f64) });
        }
        if let Some(value) = self.named.integer(text) {
            return Some(Number::Integer(value));
        }
        let (digits, single) = match squeezed.strip_suffix(['f', 'F']) {
            Some(digits) => (digits, true),
            None => (squeezed.as_str(), false),
        };
        let value: f64 = digits.parse().ok().filter(|_| digits.contains('.'))?;
        Some(if single { Number::Single(value) } else { Number::Double(value) })
    }
}

/// Above this a double has no place for every integer: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Single(f64),
    Double(f64),
}

impl Number {
    fn value(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Single(value) | Number::Double(value) => value,
        }
    }

    /// Whether arithmetic with a float stays in floats.
    fn is_single(self) -> bool {
        !matches!(self, Number::Double(_))
    }
}

/// As a float divides: both are rounded to floats first.
fn quotient_of_floats(a: f64, b: f64) -> i64 {
    (a as f32 / b as f32).ceil() as i64
}
