//! Video instructions: on packed halves and bytes, on one value, and products of parts.
//!
//! Source: PTX ISA, "Video Instructions". All read a, b and c and write d, in registers of 32 bits; what they do besides is in their
//! modifiers.

pub(crate) mod packed;
pub(crate) mod product;
pub(crate) mod scalar;

use crate::code::{Handler, Op, handler};
use crate::machine::lanes::map3;
use crate::machine::{Exec, Next};

/// What an instruction says besides its registers.
pub(crate) trait Video: Copy {
    /// As [`Op::aux`] and [`Op::immediate`].
    fn pack(self) -> (u32, i64);
    fn unpack(aux: u32, immediate: i64) -> Self;
    /// The value of d.
    fn apply(self, a: u32, b: u32, c: u32) -> u32;
}

/// The handler: slots are the result, a, b, c.
pub(crate) fn run<V: Video>() -> Handler {
    handler!(where <V: Video> perform::<V>)
}

#[inline(always)]
unsafe fn perform<V: Video>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let how = V::unpack(op.aux, op.immediate);
    // SAFETY: the caller's promise.
    unsafe { map3::<u32, u32, u32, u32>(x, op, mask, |a, b, c| how.apply(a, b, c)) };
    Next::Advance
}

/// The part of a register that an operand names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// 8, 16 or 32.
    pub bits: u32,
    /// Its lowest bit.
    pub at: u32,
}

impl Part {
    /// All of it.
    pub const WHOLE: Self = Self { bits: 32, at: 0 };

    /// `b0` to `b3`, `h0`, `h1`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "b0" => Self { bits: 8, at: 0 },
            "b1" => Self { bits: 8, at: 8 },
            "b2" => Self { bits: 8, at: 16 },
            "b3" => Self { bits: 8, at: 24 },
            "h0" => Self { bits: 16, at: 0 },
            "h1" => Self { bits: 16, at: 16 },
            _ => return None,
        })
    }

    fn extract(self, register: u32, signed: bool) -> i64 {
        let above = 32 - self.bits;
        let cut = register >> self.at << above;
        if signed { i64::from(cut as i32 >> above) } else { i64::from(cut >> above) }
    }

    fn ones(self) -> u32 {
        u32::MAX >> (32 - self.bits) << self.at
    }

    fn merge(self, value: u32, c: u32) -> u32 {
        (value << self.at) & self.ones() | c & !self.ones()
    }

    fn pack(self) -> u64 {
        u64::from(self.bits | self.at << 8)
    }

    fn unpack(packed: u64) -> Self {
        Self { bits: packed as u32 & 0xff, at: packed as u32 >> 8 & 0xff }
    }
}
