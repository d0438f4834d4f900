//! Video instructions on packed halves and bytes. Source: PTX ISA, "Video Instructions".

use super::Video;
use crate::math::Comparison;
use crate::math::video::{LaneOperation, LaneTypes, Lanes, select};

/// What an instruction says besides its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct How {
    pub lanes: Lanes,
    pub operation: LaneOperation,
    pub types: LaneTypes,
    /// `.add`.
    pub accumulate: bool,
    /// Lanes of the result.
    pub mask: u32,
    /// Where the lanes of a and of b lie in `b:a`.
    pub a: [u8; 4],
    pub b: [u8; 4],
}

const COMPARISONS: [Comparison; 6] =
    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];

impl Video for How {
    fn pack(self) -> (u32, i64) {
        let operation = match self.operation {
            LaneOperation::Add => 0,
            LaneOperation::Sub => 1,
            LaneOperation::Average => 2,
            LaneOperation::AbsoluteDifference => 3,
            LaneOperation::Min => 4,
            LaneOperation::Max => 5,
            LaneOperation::Set(is) => 6 + COMPARISONS.iter().position(|c| *c == is).unwrap_or(0) as u32,
        };
        let LaneTypes { d, a, b, saturate } = self.types;
        let flags = [d, a, b, saturate, self.accumulate, self.lanes == Lanes::BYTES];
        let flags = flags.iter().enumerate().fold(0, |all, (bit, flag)| all | u32::from(*flag) << bit);
        let selectors = u32::from_le_bytes(self.a) as u64 | (u32::from_le_bytes(self.b) as u64) << 32;
        (operation | flags << 8 | self.mask << 16, selectors as i64)
    }

    fn unpack(aux: u32, immediate: i64) -> Self {
        let flag = |bit: u32| aux >> (8 + bit) & 1 == 1;
        let operation = match aux & 0xff {
            0 => LaneOperation::Add,
            1 => LaneOperation::Sub,
            2 => LaneOperation::Average,
            3 => LaneOperation::AbsoluteDifference,
            4 => LaneOperation::Min,
            5 => LaneOperation::Max,
            other => LaneOperation::Set(COMPARISONS[(other - 6) as usize % COMPARISONS.len()]),
        };
        Self {
            lanes: if flag(5) { Lanes::BYTES } else { Lanes::HALVES },
            operation,
            types: LaneTypes { d: flag(0), a: flag(1), b: flag(2), saturate: flag(3) },
            accumulate: flag(4),
            mask: aux >> 16,
            a: (immediate as u32).to_le_bytes(),
            b: ((immediate >> 32) as u32).to_le_bytes(),
        }
    }

    fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let (x, y) = (select(a, b, self.a, self.lanes), select(a, b, self.b, self.lanes));
        if self.accumulate {
            return self.lanes.accumulate(self.operation, [x, y, c], self.mask, self.types);
        }
        self.lanes.merge(self.lanes.compute(self.operation, x, y, self.types), c, self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let how = How {
            lanes: Lanes::BYTES,
            operation: LaneOperation::Set(Comparison::Ge),
            types: LaneTypes { d: false, a: true, b: false, saturate: true },
            accumulate: true,
            mask: 0b1010,
            a: [7, 0, 3, 2],
            b: [4, 5, 6, 7],
        };
        let (aux, immediate) = how.pack();
        assert_eq!(How::unpack(aux, immediate), how);
    }
}
