//! Constant expressions of integers, as inline assembly has them: `1 << 4 | 3`, `4 * (8 - 1)`.
//!
//! Source: PTX ISA, section "Constant Expressions". Values are 64 bits wide; division and right shifts are signed. Comparisons,
//! logical operators, `%` and `?:` are not read: nobody was seen to write them.

use super::{Kind, NESTING_LIMIT, ParseError, Parser};

/// How strongly an operator binds, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    Xor,
    And,
    Shift,
    Plus,
    Times,
    Unary,
}

impl Parser<'_> {
    /// An expression of operators that bind at least as strongly as `least`.
    pub(super) fn read_integer(&mut self, least: Level) -> Result<u64, ParseError> {
        let first = self.read_unary(0)?;
        self.read_integer_from(first, least, 0)
    }

    /// The rest of an expression whose first operand was read.
    pub(super) fn read_integer_from(
        &mut self,
        first: u64,
        least: Level,
        depth: usize,
    ) -> Result<u64, ParseError> {
        let mut value = first;
        while let Some((operator, level, next)) = self.operator()
            && level >= least
        {
            self.take()?;
            if matches!(operator, b'<' | b'>') {
                self.expect_mark(operator, "for a shift")?;
            }
            let operand = self.read_unary(depth)?;
            let right = self.read_integer_from(operand, next, depth + 1)?;
            value = match operator {
                b'|' => value | right,
                b'^' => value ^ right,
                b'&' => value & right,
                b'<' => value.checked_shl(right.min(64) as u32).unwrap_or(0),
                b'>' => ((value as i64) >> right.min(63)) as u64,
                b'+' => value.wrapping_add(right),
                b'-' => value.wrapping_sub(right),
                b'*' => value.wrapping_mul(right),
                _ => match (value as i64).checked_div(right as i64) {
                    Some(quotient) => quotient as u64,
                    None => return self.fail(format!("{value} / {right} has no value")),
                },
            };
        }
        Ok(value)
    }

    /// The operator that is looked at, its level, and the next stronger one.
    fn operator(&self) -> Option<(u8, Level, Level)> {
        let Kind::Mark(mark) = self.token.kind else { return None };
        let (level, next) = match mark {
            b'|' => (Level::Or, Level::Xor),
            b'^' => (Level::Xor, Level::And),
            b'&' => (Level::And, Level::Shift),
            b'<' | b'>' => (Level::Shift, Level::Plus),
            b'+' | b'-' => (Level::Plus, Level::Times),
            b'*' | b'/' => (Level::Times, Level::Unary),
            _ => return None,
        };
        Some((mark, level, next))
    }

    /// `-`, `~`, parentheses, or a literal.
    pub(super) fn read_unary(&mut self, depth: usize) -> Result<u64, ParseError> {
        if depth >= NESTING_LIMIT {
            return self.fail(format!("a constant expression of more than {NESTING_LIMIT} levels"));
        }
        if self.takes_mark(b'-')? {
            return Ok(self.read_unary(depth + 1)?.wrapping_neg());
        }
        if self.takes_mark(b'~')? {
            return Ok(!self.read_unary(depth + 1)?);
        }
        if !self.takes_mark(b'(')? {
            return self.expect_int("an integer");
        }
        let first = self.read_unary(depth + 1)?;
        let value = self.read_integer_from(first, Level::Or, depth + 1)?;
        self.expect_mark(b')', "after a constant expression")?;
        Ok(value)
    }
}
