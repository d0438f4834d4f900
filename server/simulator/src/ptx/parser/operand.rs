//! Operands of instructions.
//!
//! Source: PTX ISA, section "Instruction Operands".

use super::constant::Level;
use super::{Kind, NESTING_LIMIT, ParseError, Parser};
use crate::ptx::ast::Operand;

/// Threads of a warp, which PTX writes `WARP_SZ`.
const WARP_SIZE: u64 = 32;

impl<'t> Parser<'t> {
    /// One operand; `depth` counts the brackets around it.
    pub(super) fn read_operand(&mut self, depth: usize) -> Result<Operand, ParseError> {
        if depth == NESTING_LIMIT {
            return self.fail(format!("more than {NESTING_LIMIT} brackets within each other"));
        }
        let operand = match self.token.kind {
            Kind::Word(_) => self.read_named()?,
            Kind::F32(_) | Kind::F64(_) => self.read_float(false)?,
            Kind::Int(_) | Kind::Mark(b'~') => Operand::Int(self.read_integer(Level::Or)?),
            Kind::Mark(b'-') => {
                self.take()?;
                match self.token.kind {
                    Kind::F32(_) | Kind::F64(_) => self.read_float(true)?,
                    Kind::Word(name) if name != "WARP_SZ" => {
                        Operand::Negated(self.read_name("a register after `-`")?.to_owned())
                    }
                    _ => {
                        let first = self.read_unary(depth)?.wrapping_neg();
                        Operand::Int(self.read_integer_from(first, Level::Or, depth)?)
                    }
                }
            }
            Kind::Mark(b'!') => {
                self.take()?;
                Operand::Not(self.read_name("a predicate after `!`")?.to_owned())
            }
            Kind::Mark(b'{') => Operand::Vector(self.read_list(b'}', depth)?),
            Kind::Mark(b'(') => Operand::List(self.read_list(b')', depth)?),
            Kind::Mark(b'[') => self.read_bracketed(depth)?,
            _ => return self.unexpected("an operand"),
        };
        if self.takes_mark(b'|')? {
            let second = self.read_operand(depth + 1)?;
            return Ok(Operand::Pair(Box::new(operand), Box::new(second)));
        }
        Ok(operand)
    }

    /// A word and the parts after its dots: `%tid.x`.
    fn read_name(&mut self, wanted: &str) -> Result<&'t str, ParseError> {
        let (start, mut end) = (self.token.start, self.token.end);
        self.expect_word(wanted)?;
        while matches!(self.token.kind, Kind::Dot(_)) && self.token.start == end {
            end = self.take()?.end;
        }
        Ok(&self.text[start..end])
    }

    fn read_named(&mut self) -> Result<Operand, ParseError> {
        let name = self.read_name("a name")?;
        match name {
            "_" => return Ok(Operand::Sink),
            "WARP_SZ" => return Ok(Operand::Int(WARP_SIZE)),
            _ => {}
        }
        if self.is_mark(b'+') || self.is_mark(b'-') {
            return Ok(Operand::NameOffset(name.to_owned(), self.offset()?));
        }
        Ok(Operand::Name(name.to_owned()))
    }

    fn read_float(&mut self, negative: bool) -> Result<Operand, ParseError> {
        let operand = match self.token.kind {
            Kind::F32(bits) => Operand::F32(bits ^ u32::from(negative) << 31),
            Kind::F64(bits) => Operand::F64(bits ^ u64::from(negative) << 63),
            _ => return self.unexpected("a floating-point number"),
        };
        self.take()?;
        Ok(operand)
    }

    /// From the opening mark to the closing one.
    fn read_list(&mut self, close: u8, depth: usize) -> Result<Vec<Operand>, ParseError> {
        self.take()?;
        let mut operands = Vec::new();
        while !self.takes_mark(close)? {
            if !operands.is_empty() {
                self.expect_mark(b',', &format!("or `{}` in a list of operands", char::from(close)))?;
            }
            operands.push(self.read_operand(depth + 1)?);
        }
        Ok(operands)
    }

    /// `[base+offset]`, `[16]`, or a list in brackets.
    fn read_bracketed(&mut self, depth: usize) -> Result<Operand, ParseError> {
        let line = self.token.line;
        let mut operands = self.read_list(b']', depth)?;
        if operands.len() != 1 {
            return if operands.is_empty() {
                Err(ParseError { line, message: "an address `[]` without anything in it".into() })
            } else {
                Ok(Operand::Bracketed(operands))
            };
        }
        Ok(match operands.pop() {
            Some(Operand::Name(name)) => Operand::Address { base: Some(name), offset: 0 },
            Some(Operand::NameOffset(name, offset)) => Operand::Address { base: Some(name), offset },
            Some(Operand::Int(value)) => Operand::Address { base: None, offset: value as i64 },
            Some(other) => Operand::Bracketed(vec![other]),
            None => Operand::Bracketed(Vec::new()),
        })
    }
}
