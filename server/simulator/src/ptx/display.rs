//! Instructions and operands as text, in the one form that the compiler writes: for messages.

use super::ast::{Guard, Instruction, Operand};
use std::fmt::{Display, Formatter, Result};

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "@{}{}", if self.negated { "!" } else { "" }, self.register)
    }
}

/// `@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];`
impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        f.write_str(&self.opcode)?;
        for modifier in &self.modifiers {
            write!(f, ".{modifier}")?;
        }
        if !self.operands.is_empty() {
            f.write_str(" ")?;
        }
        list(f, "", &self.operands, ";")
    }
}

/// Integers are written in decimal, negative where the top bit is set; floating-point numbers as their bits.
impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Not(name) => write!(f, "!{name}"),
            Self::Negated(name) => write!(f, "-{name}"),
            Self::NameOffset(name, offset) => write!(f, "{name}{offset:+}"),
            Self::Int(value) => write!(f, "{}", *value as i64),
            Self::F32(bits) => write!(f, "0f{bits:08X}"),
            Self::F64(bits) => write!(f, "0d{bits:016X}"),
            Self::Vector(inner) => list(f, "{", inner, "}"),
            Self::Address { base: Some(base), offset: 0 } => write!(f, "[{base}]"),
            Self::Address { base: Some(base), offset } => write!(f, "[{base}{offset:+}]"),
            Self::Address { base: None, offset } => write!(f, "[{offset}]"),
            Self::Bracketed(inner) => list(f, "[", inner, "]"),
            Self::Pair(first, second) => write!(f, "{first}|{second}"),
            Self::List(inner) => list(f, "(", inner, ")"),
            Self::Sink => f.write_str("_"),
        }
    }
}

fn list(f: &mut Formatter<'_>, open: &str, operands: &[Operand], close: &str) -> Result {
    f.write_str(open)?;
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        Display::fmt(operand, f)?;
    }
    f.write_str(close)
}
