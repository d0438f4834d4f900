//! Operator precedence on two stacks.

use super::Constants;
use super::token::{Token, Tokens};

/// More words than any constant that a person writes; a longer expression is not folded.
const MOST_TOKENS: usize = 4096;

/// A value, or `None` where it is not known.
type Known = Option<i64>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Open,
    Prefix(Prefix),
    Binary(&'static str, u8),
    /// The condition and the first arm are on the value stack.
    Question,
    /// All three parts are.
    Choose,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Prefix {
    Minus,
    Plus,
    Complement,
    Not,
    /// A cast to an integer of this many bits, signed or not.
    Cast(u32, bool),
}

/// Binary operators and how tightly they bind, from the C++ standard's grammar.
const BINARY: &[(&str, u8)] = &[
    ("*", 12),
    ("/", 12),
    ("%", 12),
    ("+", 11),
    ("-", 11),
    ("<<", 10),
    (">>", 10),
    ("<", 9),
    ("<=", 9),
    (">", 9),
    (">=", 9),
    ("==", 8),
    ("!=", 8),
    ("&", 7),
    ("^", 6),
    ("|", 5),
    ("&&", 4),
    ("||", 3),
];

/// The value of an integer constant expression in C++ syntax. `None` where it is not one, or not known.
pub fn fold_text(text: &str, scope: &dyn Constants) -> Option<i64> {
    let mut folder = Folder { values: Vec::new(), operators: Vec::new(), operand_next: true };
    let tokens: Vec<Token> = Tokens::new(text).map(|(token, _)| token).take(MOST_TOKENS + 1).collect();
    if tokens.len() > MOST_TOKENS {
        return None;
    }
    let mut rest = tokens.as_slice();
    while !rest.is_empty() {
        let used = if folder.operand_next { folder.operand(rest, scope)? } else { folder.operator(rest)? };
        rest = rest.get(used..)?;
    }
    folder.finish()
}

struct Folder {
    values: Vec<Known>,
    operators: Vec<Operator>,
    operand_next: bool,
}

impl Folder {
    /// Takes an operand or a prefix; returns how many tokens it was.
    fn operand(&mut self, rest: &[Token], scope: &dyn Constants) -> Option<usize> {
        let prefix = |name| match name {
            "-" => Some(Prefix::Minus),
            "+" => Some(Prefix::Plus),
            "~" => Some(Prefix::Complement),
            "!" => Some(Prefix::Not),
            _ => None,
        };
        match rest[0] {
            Token::Literal(value) => Some(self.push(value, 1)),
            Token::Symbol("(") => {
                if let Some((cast, used)) = c_cast(rest) {
                    self.operators.push(Operator::Prefix(cast));
                    return Some(used);
                }
                self.operators.push(Operator::Open);
                Some(1)
            }
            Token::Symbol(name) => {
                self.operators.push(Operator::Prefix(prefix(name)?));
                Some(1)
            }
            Token::Name("sizeof") => {
                let (bytes, used) = type_in_brackets(&rest[1..])?;
                Some(self.push(Some(i64::from(bytes.bits / 8)), used + 1))
            }
            Token::Name("static_cast") => {
                let (target, used) = type_between(&rest[1..], "<", ">")?;
                self.operators.push(Operator::Prefix(target.cast()?));
                Some(used + 1)
            }
            Token::Name("true") => Some(self.push(Some(1), 1)),
            Token::Name("false") => Some(self.push(Some(0), 1)),
            Token::Name(name) => {
                if rest.get(1) == Some(&Token::Symbol("(")) {
                    // `int(x)`, `size_t(x)`; any other call is not a constant that can be known here.
                    let (target, used) = integer_type(rest)?;
                    self.operators.push(Operator::Prefix(target.cast()?));
                    return Some(used);
                }
                Some(self.push(scope.value(name.trim_start_matches("::")), 1))
            }
            Token::Other => None,
        }
    }

    fn push(&mut self, value: Known, used: usize) -> usize {
        self.values.push(value);
        self.operand_next = false;
        used
    }

    /// Takes what may follow an operand; returns how many tokens it was.
    fn operator(&mut self, rest: &[Token]) -> Option<usize> {
        let Token::Symbol(symbol) = rest[0] else { return None };
        match symbol {
            ")" => {
                self.reduce(0)?;
                (self.operators.pop()? == Operator::Open).then_some(())?;
            }
            "?" => {
                self.reduce(3)?;
                self.operators.push(Operator::Question);
                self.operand_next = true;
            }
            ":" => {
                self.reduce(2)?;
                (self.operators.pop()? == Operator::Question).then_some(())?;
                self.operators.push(Operator::Choose);
                self.operand_next = true;
            }
            _ => {
                let (name, strength) = *BINARY.iter().find(|(name, _)| *name == symbol)?;
                self.reduce(strength)?;
                self.operators.push(Operator::Binary(name, strength));
                self.operand_next = true;
            }
        }
        Some(1)
    }

    /// Applies the operators on the stack that bind at least as tightly as `strength`, down to a bracket.
    fn reduce(&mut self, strength: u8) -> Option<()> {
        while let Some(top) = self.operators.last().copied() {
            let binds = match top {
                Operator::Open => return Some(()),
                Operator::Question => return Some(()),
                Operator::Choose => 2,
                Operator::Prefix(_) => 14,
                Operator::Binary(_, strength) => strength,
            };
            if binds < strength {
                return Some(());
            }
            self.operators.pop();
            let right = self.values.pop()?;
            let value = match top {
                Operator::Prefix(prefix) => right.and_then(|value| apply_prefix(prefix, value)),
                Operator::Binary(name, _) => {
                    let left = self.values.pop()?;
                    apply_binary(name, left, right)
                }
                Operator::Choose => {
                    let (first, condition) = (self.values.pop()?, self.values.pop()?);
                    condition.and_then(|condition| if condition != 0 { first } else { right })
                }
                Operator::Open | Operator::Question => None,
            };
            self.values.push(value);
        }
        Some(())
    }

    fn finish(mut self) -> Option<i64> {
        if self.operand_next {
            return None;
        }
        self.reduce(0)?;
        if !self.operators.is_empty() || self.values.len() != 1 {
            return None;
        }
        self.values.pop().flatten()
    }
}

fn apply_prefix(prefix: Prefix, value: i64) -> Known {
    match prefix {
        Prefix::Minus => value.checked_neg(),
        Prefix::Plus => Some(value),
        Prefix::Complement => Some(!value),
        Prefix::Not => Some(i64::from(value == 0)),
        Prefix::Cast(1, _) => Some(i64::from(value != 0)),
        Prefix::Cast(64.., _) => Some(value),
        Prefix::Cast(bits, signed) => {
            let wrapped = value & ((1i64 << bits) - 1);
            let negative = signed && wrapped >> (bits - 1) & 1 == 1;
            Some(if negative { wrapped - (1i64 << bits) } else { wrapped })
        }
    }
}

fn apply_binary(name: &str, left: Known, right: Known) -> Known {
    match (name, left, right) {
        ("&&", Some(0), _) | ("&&", _, Some(0)) => return Some(0),
        ("||", Some(known), _) | ("||", _, Some(known)) if known != 0 => return Some(1),
        _ => {}
    }
    let (left, right) = (left?, right?);
    let shift = || u32::try_from(right).ok().filter(|by| *by < 64);
    match name {
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "<<" => shift().and_then(|by| left.checked_mul(1i64.checked_shl(by).filter(|power| *power > 0)?)),
        ">>" => shift().map(|by| left >> by),
        "<" => Some(i64::from(left < right)),
        "<=" => Some(i64::from(left <= right)),
        ">" => Some(i64::from(left > right)),
        ">=" => Some(i64::from(left >= right)),
        "==" => Some(i64::from(left == right)),
        "!=" => Some(i64::from(left != right)),
        "&" => Some(left & right),
        "^" => Some(left ^ right),
        "|" => Some(left | right),
        "&&" => Some(i64::from(left != 0 && right != 0)),
        "||" => Some(i64::from(left != 0 || right != 0)),
        _ => None,
    }
}

/// A basic type as far as `sizeof` and casts need it.
#[derive(Clone, Copy)]
struct Basic {
    bits: u32,
    signed: bool,
    integer: bool,
}

impl Basic {
    fn cast(self) -> Option<Prefix> {
        self.integer.then_some(Prefix::Cast(self.bits, self.signed))
    }
}

/// Sizes on a 64-bit Linux or Windows host and in device code, where these agree (`long` does not).
const BASIC: &[(&str, Basic)] = &[
    ("bool", Basic { bits: 1, signed: false, integer: true }),
    ("char", Basic { bits: 8, signed: true, integer: true }),
    ("short", Basic { bits: 16, signed: true, integer: true }),
    ("int", Basic { bits: 32, signed: true, integer: true }),
    ("unsigned", Basic { bits: 32, signed: false, integer: true }),
    ("signed", Basic { bits: 32, signed: true, integer: true }),
    ("uint", Basic { bits: 32, signed: false, integer: true }),
    ("int8_t", Basic { bits: 8, signed: true, integer: true }),
    ("uint8_t", Basic { bits: 8, signed: false, integer: true }),
    ("int16_t", Basic { bits: 16, signed: true, integer: true }),
    ("uint16_t", Basic { bits: 16, signed: false, integer: true }),
    ("int32_t", Basic { bits: 32, signed: true, integer: true }),
    ("uint32_t", Basic { bits: 32, signed: false, integer: true }),
    ("int64_t", Basic { bits: 64, signed: true, integer: true }),
    ("uint64_t", Basic { bits: 64, signed: false, integer: true }),
    ("size_t", Basic { bits: 64, signed: false, integer: true }),
    ("ptrdiff_t", Basic { bits: 64, signed: true, integer: true }),
    ("float", Basic { bits: 32, signed: true, integer: false }),
    ("double", Basic { bits: 64, signed: true, integer: false }),
    ("half", Basic { bits: 16, signed: true, integer: false }),
    ("__half", Basic { bits: 16, signed: true, integer: false }),
    ("half2", Basic { bits: 32, signed: true, integer: false }),
    ("__half2", Basic { bits: 32, signed: true, integer: false }),
    ("__nv_bfloat16", Basic { bits: 16, signed: true, integer: false }),
    ("float2", Basic { bits: 64, signed: true, integer: false }),
    ("float4", Basic { bits: 128, signed: true, integer: false }),
    ("int2", Basic { bits: 64, signed: true, integer: false }),
    ("int4", Basic { bits: 128, signed: true, integer: false }),
    ("uint2", Basic { bits: 64, signed: true, integer: false }),
    ("uint4", Basic { bits: 128, signed: true, integer: false }),
    ("double2", Basic { bits: 128, signed: true, integer: false }),
];

/// The type that `tokens` start with, and how many tokens it is: `unsigned long long`, `std::size_t`, `float*`.
fn integer_type(tokens: &[Token]) -> Option<(Basic, usize)> {
    let mut found: Option<Basic> = None;
    let (mut unsigned, mut longs, mut used) = (false, 0, 0);
    for token in tokens {
        match token {
            Token::Name("const") => {}
            Token::Name("unsigned") => unsigned = true,
            Token::Name("signed") => {}
            Token::Name("long") => longs += 1,
            Token::Name(name) => {
                let name = name.trim_start_matches("::").trim_start_matches("std::");
                let basic = BASIC.iter().find(|(known, _)| *known == name)?.1;
                // `short int` is a short.
                found = Some(found.filter(|seen| seen.bits < basic.bits).unwrap_or(basic));
            }
            Token::Symbol("*") if found.is_some() => {
                found = Some(Basic { bits: 64, signed: false, integer: false })
            }
            _ => break,
        }
        used += 1;
    }
    let basic = match (found, longs) {
        // A `long` alone has 32 bits on Windows and 64 elsewhere.
        (_, 1) => return None,
        (_, 2) => Basic { bits: 64, signed: true, integer: true },
        (Some(basic), _) => basic,
        (None, _) if unsigned => Basic { bits: 32, signed: true, integer: true },
        (None, _) => return None,
    };
    Some((Basic { signed: basic.signed && !unsigned, ..basic }, used))
}

/// A type between brackets, and how many tokens that is.
fn type_between(tokens: &[Token], open: &str, close: &str) -> Option<(Basic, usize)> {
    (tokens.first() == Some(&Token::Symbol(open))).then_some(())?;
    let (basic, used) = integer_type(&tokens[1..])?;
    (tokens.get(used + 1) == Some(&Token::Symbol(close))).then_some((basic, used + 2))
}

fn type_in_brackets(tokens: &[Token]) -> Option<(Basic, usize)> {
    let (basic, used) = type_between(tokens, "(", ")")?;
    // `sizeof(bool)` is one byte; only the cast makes it one bit.
    Some((Basic { bits: basic.bits.max(8), ..basic }, used))
}

/// `(int)` before an operand.
fn c_cast(tokens: &[Token]) -> Option<(Prefix, usize)> {
    let (basic, used) = type_between(tokens, "(", ")")?;
    Some((basic.cast()?, used))
}
