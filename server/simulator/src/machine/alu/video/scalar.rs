//! Video instructions on one value: `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`, `vset`.
//!
//! Source: PTX ISA, "Scalar Video Instructions": parts of a and b are extended, combined, clamped, and then merged into c or
//! combined with it.

use super::{Part, Video};
use crate::math::Comparison;

/// What is done with the two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Sub,
    AbsoluteDifference,
    Min,
    Max,
    /// Shifts by more than 32 are by 32, or wrap.
    Shl {
        wrap: bool,
    },
    Shr {
        wrap: bool,
    },
    Set(Comparison),
}

const OPERATIONS: [Operation; 15] = [
    Operation::Add,
    Operation::Sub,
    Operation::AbsoluteDifference,
    Operation::Min,
    Operation::Max,
    Operation::Shl { wrap: false },
    Operation::Shl { wrap: true },
    Operation::Shr { wrap: false },
    Operation::Shr { wrap: true },
    Operation::Set(Comparison::Eq),
    Operation::Set(Comparison::Ne),
    Operation::Set(Comparison::Lt),
    Operation::Set(Comparison::Le),
    Operation::Set(Comparison::Gt),
    Operation::Set(Comparison::Ge),
];

/// What becomes of the result and c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Second {
    /// The result goes into this part of c.
    Merge,
    Add,
    Min,
    Max,
}

const SECONDS: [Second; 4] = [Second::Merge, Second::Add, Second::Min, Second::Max];

/// What an instruction says besides its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct How {
    pub operation: Operation,
    pub second: Second,
    pub saturate: bool,
    /// Signedness of d, a, b.
    pub signed: [bool; 3],
    /// Parts of d, a, b.
    pub parts: [Part; 3],
}

impl Video for How {
    fn pack(self) -> (u32, i64) {
        let operation = OPERATIONS.iter().position(|o| *o == self.operation).unwrap_or(0) as u32;
        let second = SECONDS.iter().position(|s| *s == self.second).unwrap_or(0) as u32;
        let [d, a, b] = self.signed.map(u32::from);
        let [pd, pa, pb] = self.parts.map(Part::pack);
        let aux = operation | second << 4 | u32::from(self.saturate) << 6 | d << 7 | a << 8 | b << 9;
        (aux, (pd | pa << 16 | pb << 32) as i64)
    }

    fn unpack(aux: u32, immediate: i64) -> Self {
        let parts = immediate as u64;
        Self {
            operation: OPERATIONS[(aux & 15) as usize % OPERATIONS.len()],
            second: SECONDS[(aux >> 4 & 3) as usize],
            saturate: aux >> 6 & 1 == 1,
            signed: [7, 8, 9].map(|bit| aux >> bit & 1 == 1),
            parts: [parts, parts >> 16, parts >> 32].map(|part| Part::unpack(part & 0xffff)),
        }
    }

    fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let [part, pa, pb] = self.parts;
        let (a, b) = (pa.extract(a, self.signed[1]), pb.extract(b, self.signed[2]));
        let places = |wrap: bool| if wrap { b as u32 & 31 } else { (b as u32).min(32) };
        let value = match self.operation {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::AbsoluteDifference => (a - b).abs(),
            Operation::Min => a.min(b),
            Operation::Max => a.max(b),
            Operation::Shl { wrap } => a << places(wrap),
            Operation::Shr { wrap } => a >> places(wrap),
            Operation::Set(comparison) => i64::from(comparison.holds(a, b)),
        };
        let value = match (self.saturate, self.signed[0]) {
            (false, _) => value,
            (true, true) => value.clamp(-(1 << (part.bits - 1)), (1 << (part.bits - 1)) - 1),
            (true, false) => value.clamp(0, (1 << part.bits) - 1),
        } as u32;
        let signed = self.signed[0];
        match self.second {
            Second::Merge => part.merge(value, c),
            Second::Add => value.wrapping_add(c),
            Second::Min if signed => (value as i32).min(c as i32) as u32,
            Second::Max if signed => (value as i32).max(c as i32) as u32,
            Second::Min => value.min(c),
            Second::Max => value.max(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for operation in OPERATIONS {
            let how = How {
                operation,
                second: Second::Max,
                saturate: true,
                signed: [true, false, true],
                parts: [Part { bits: 8, at: 24 }, Part { bits: 16, at: 16 }, Part::WHOLE],
            };
            let (aux, immediate) = how.pack();
            assert_eq!(How::unpack(aux, immediate), how);
        }
    }
}
