//! Preprocessor lines, as far as they decide what text is read.
//!
//! No condition is evaluated but a literal `0` or `1`: what a macro is worth is the build's business. So every branch is
//! read where the branches are whole, and one where they are not. What a literal rules out no compiler reads whatever the
//! build, and neither does anybody here: a finding in `#if 0` would be about code that does not exist.

use super::items::Scopes;
use super::lexer::{Kind, Lexer, Token};

/// What is known of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Open,
    /// `#if 1`.
    Always,
    /// `#if 0`.
    Never,
}

/// What a directive does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// `#if`, `#ifdef`, `#ifndef`.
    If(Condition),
    /// `#elif` and its kin, `#else`.
    Else(Condition),
    /// `#endif`.
    End,
    /// `#define`.
    Define,
    /// Anything else.
    Other,
}

impl Branch {
    /// What the directive `token` does.
    pub fn of(text: &str, token: Token) -> Self {
        let bytes = text.as_bytes();
        let mut tokens = Lexer::within(text, token.start + 1, token.end);
        let Some(word) = tokens.next() else { return Self::Other };
        match word.text(bytes) {
            b"if" => Self::If(condition(bytes, tokens)),
            b"ifdef" | b"ifndef" => Self::If(Condition::Open),
            b"elif" => Self::Else(condition(bytes, tokens)),
            b"else" | b"elifdef" | b"elifndef" => Self::Else(Condition::Open),
            b"endif" => Self::End,
            b"define" => Self::Define,
            _ => Self::Other,
        }
    }
}

fn condition(bytes: &[u8], mut tokens: Lexer) -> Condition {
    let (Some(first), None) = (tokens.next(), tokens.next()) else { return Condition::Open };
    match (first.kind, first.text(bytes)) {
        (Kind::Number, b"0") | (Kind::Word, b"false") => Condition::Never,
        (Kind::Number, b"1") | (Kind::Word, b"true") => Condition::Always,
        _ => Condition::Open,
    }
}

/// Where the scan stands, as far as two branches must agree on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Inside an item: how many braces are open in it, and how many parentheses since the last of them.
    pub inside: Option<(usize, u32)>,
}

/// An open preprocessor group.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Where it began.
    pub start: Level,
    /// The namespaces that were open there.
    pub scopes: Scopes,
    /// The namespaces at the end of its first living branch, once that was read.
    pub kept: Option<Scopes>,
    /// Whether it cuts through an item, so that one branch is kept and the directives are blanked.
    pub cuts: bool,
    /// Whether no later branch can be alive, since an earlier one is `#if 1`.
    pub decided: bool,
    /// Whether the branch at hand is read.
    pub read: bool,
}

impl Frame {
    /// Goes to the next branch, one with `condition`.
    pub fn turn(&mut self, condition: Condition) {
        let over = self.cuts && self.kept.is_some();
        let dead = condition == Condition::Never || self.decided;
        self.read = !(over || dead);
        self.decided |= condition == Condition::Always;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        for (text, expected) in [
            ("#if 0", Branch::If(Condition::Never)),
            ("# if /* x */ 1 // y", Branch::If(Condition::Always)),
            ("#if 0 || A", Branch::If(Condition::Open)),
            ("#ifdef A", Branch::If(Condition::Open)),
            ("#elif 0", Branch::Else(Condition::Never)),
            ("#else", Branch::Else(Condition::Open)),
            ("#endif // A", Branch::End),
            ("#define A", Branch::Define),
            ("#", Branch::Other),
            ("#pragma unroll", Branch::Other),
        ] {
            let token = Lexer::at(text, 0).next().unwrap();
            assert_eq!(Branch::of(text, token), expected, "{text}");
        }
    }
}
