//! What a body does to a vector that may give it another size.

use stitch_findings::Span;

use super::super::arguments::{group_end, split_tokens};
use super::super::lexer::{Kind, Token};
use super::super::tidy::tidy;

/// Something that may give a vector another size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `v.resize(count)` in a statement of its own.
    Set {
        /// As written.
        count: String,
        /// Where.
        at: usize,
        /// The block around it: what follows in it runs after.
        within: Span,
    },
    /// Anything else.
    Other {
        /// What does it, as written.
        by: String,
    },
}

impl Change {
    /// What to blame for a size that is not known.
    pub fn blamed(&self) -> Option<&str> {
        match self {
            Change::Set { .. } => None,
            Change::Other { by } => Some(by),
        }
    }
}

/// What the functions of the file do to a vector that is passed to them.
pub trait Callees {
    /// Whether the vector keeps its size in a call of `function` whose argument `index` it is.
    fn keep_size(&self, function: &str, index: usize) -> bool;
}

/// Members of `std::vector` that leave its size alone. Source: the C++ standard, [vector.overview].
const KEEP: &[&str] = &[
    "size",
    "data",
    "begin",
    "end",
    "cbegin",
    "cend",
    "rbegin",
    "rend",
    "crbegin",
    "crend",
    "front",
    "back",
    "at",
    "empty",
    "capacity",
    "reserve",
    "max_size",
    "shrink_to_fit",
];
/// Functions of the standard library that take a container and leave its size alone. Source: [iterator.range].
const KEEPERS: &[&str] =
    &["begin", "end", "cbegin", "cend", "rbegin", "rend", "size", "ssize", "data", "empty", "sizeof"];

/// What the tokens do to the vector `name` that is seen in `visible`.
pub fn of(tokens: &[Token], masked: &str, name: &str, visible: Span, callees: &dyn Callees) -> Vec<Change> {
    let reader = Reader { tokens, masked };
    let mut changes = Vec::new();
    let mut blocks: Vec<usize> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Byte(b'{') => blocks.push(index),
            Kind::Byte(b'}') => {
                blocks.pop();
            }
            Kind::Word
                if visible.start <= token.start && token.start < visible.end && reader.names(index, name) =>
            {
                changes.extend(reader.change(index, blocks.last().copied(), callees));
            }
            _ => {}
        }
    }
    changes
}

struct Reader<'t> {
    tokens: &'t [Token],
    masked: &'t str,
}

impl Reader<'_> {
    fn is(&self, index: usize, byte: u8) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is(byte))
    }

    fn word(&self, index: usize) -> Option<&str> {
        let token = self.tokens.get(index).filter(|token| token.kind == Kind::Word)?;
        self.masked.get(token.start..token.end)
    }

    /// Whether the word at `index` is the vector `name`.
    fn names(&self, index: usize, name: &str) -> bool {
        self.word(index) == Some(name) && !self.is_member(index)
    }

    /// Whether the name at `index` is another object's: `a.name`, `a->name`, `a::name`.
    fn is_member(&self, index: usize) -> bool {
        let before = |back: usize, byte: u8| index.checked_sub(back).is_some_and(|at| self.is(at, byte));
        before(1, b'.') || (before(1, b'>') && before(2, b'-')) || (before(1, b':') && before(2, b':'))
    }

    /// What the mention at `index` may change, in the block that opens at the token `block`.
    fn change(&self, index: usize, block: Option<usize>, callees: &dyn Callees) -> Option<Change> {
        let other = |by: String| Some(Change::Other { by });
        if self.is(index + 1, b'[') {
            return None;
        }
        if self.is(index + 1, b'.') {
            let member = self.word(index + 2)?;
            return match member {
                _ if KEEP.contains(&member) => None,
                "resize" | "assign" => self
                    .set(index, block)
                    .or_else(|| other(format!("{}.{member}(…)", self.word(index).unwrap_or_default()))),
                _ => other(format!("{}.{member}(…)", self.word(index).unwrap_or_default())),
            };
        }
        let previous = index.checked_sub(1)?;
        let (ends, listed) = (self.is(index + 1, b')'), self.is(index + 1, b','));
        // `for (float x : v)`; a label's colon is followed by a statement.
        if self.is(previous, b':') && ends {
            return None;
        }
        if (self.is(previous, b'(') || self.is(previous, b',')) && (ends || listed) {
            return self.passed(index, callees);
        }
        let compares = (self.is(index + 1, b'=') || self.is(index + 1, b'!')) && self.is(index + 2, b'=');
        let is_copied = self.is(index + 1, b';')
            && (self.word(previous) == Some("return")
                || (self.is(previous, b'=') && !self.is_bound(previous)));
        if compares || is_copied {
            return None;
        }
        let (first, last) = (self.tokens.get(previous)?, self.tokens.get(index + 1)?);
        other(tidy(self.masked.get(first.start..last.end).unwrap_or_default()))
    }

    /// Whether the `=` at `index` binds a reference: `auto& r = v;`.
    fn is_bound(&self, index: usize) -> bool {
        index.checked_sub(2).is_none_or(|at| self.is(at, b'&'))
    }

    /// The mention at `index` is an argument of a call.
    fn passed(&self, index: usize, callees: &dyn Callees) -> Option<Change> {
        let (mut depth, mut commas, mut open) = (0usize, 0usize, None);
        for at in (0..index).rev() {
            match self.tokens[at].kind {
                Kind::Byte(b')' | b']' | b'}') => depth += 1,
                Kind::Byte(b'(') if depth == 0 => {
                    open = Some(at);
                    break;
                }
                Kind::Byte(b'[' | b'{' | b';') if depth == 0 => break,
                Kind::Byte(b'(' | b'[' | b'{') => depth -= 1,
                Kind::Byte(b',') if depth == 0 => commas += 1,
                _ => {}
            }
        }
        let callee =
            open.and_then(|open| open.checked_sub(1)).and_then(|at| self.word(at)).unwrap_or_default();
        let keeps = KEEPERS.contains(&callee) || callees.keep_size(callee, commas);
        (!keeps).then(|| Change::Other {
            by: format!("{callee}(… {} …)", self.word(index).unwrap_or_default()),
        })
    }

    /// `v.resize(n);`, where nothing but its block decides whether it runs.
    fn set(&self, index: usize, block: Option<usize>) -> Option<Change> {
        let previous = index.checked_sub(1)?;
        let alone = [b';', b'{', b'}'].iter().any(|byte| self.is(previous, *byte));
        let (open, block) = (index + 3, block?);
        let close = group_end(self.tokens, open).filter(|close| self.is(close + 1, b';') && alone)?;
        let end = group_end(self.tokens, block).map_or(usize::MAX, |end| self.tokens[end].start);
        let parts = split_tokens(&self.tokens[open + 1..close]);
        let count = parts.first()?;
        let count = tidy(self.masked.get(count.range()).unwrap_or_default());
        let at = self.tokens[close].end;
        Some(Change::Set { count, at, within: Span::new(at, end) })
    }
}
