//! Video instructions on packed halves and bytes: `vadd2`, `vsub4`, `vabsdiff4` and their like.
//!
//! Source: PTX ISA, "Video Instructions". An instruction picks the lanes of its operands out of `b:a` bytes or halves
//! ([`select`]), computes every lane in full precision, clamps or truncates it, and then merges or accumulates
//! ([`Lanes::merge`], [`Lanes::accumulate`]) under a lane mask.

use super::Comparison;

/// How many lanes a register has and how they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// Bits of a lane: 16 for `v…2`, 8 for `v…4`.
    pub width: u32,
}

/// An operation on a pair of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneOperation {
    /// `vadd`.
    Add,
    /// `vsub`.
    Sub,
    /// `vavrg`: the mean, halves rounded away from zero.
    Average,
    /// `vabsdiff`.
    AbsoluteDifference,
    /// `vmin`.
    Min,
    /// `vmax`.
    Max,
    /// `vset`: 1 or 0.
    Set(Comparison),
}

/// Signedness of `d`, `a` and `b`, and `.sat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LaneTypes {
    /// `d` is signed.
    pub d: bool,
    /// `a` is signed.
    pub a: bool,
    /// `b` is signed.
    pub b: bool,
    /// `.sat`.
    pub saturate: bool,
}

impl Lanes {
    /// Two halves.
    pub const HALVES: Self = Self { width: 16 };
    /// Four bytes.
    pub const BYTES: Self = Self { width: 8 };

    #[inline(always)]
    fn lane(self, word: u32, index: u32, signed: bool) -> i32 {
        let above = 32 - self.width;
        let lane = word >> (index * self.width) << above;
        if signed { lane as i32 >> above } else { (lane >> above) as i32 }
    }

    #[inline(always)]
    fn count(self) -> u32 {
        32 / self.width
    }

    /// All lanes of the result, packed.
    #[inline]
    pub fn compute(self, operation: LaneOperation, a: u32, b: u32, types: LaneTypes) -> u32 {
        let mut result = 0;
        for index in 0..self.count() {
            let (a, b) = (self.lane(a, index, types.a), self.lane(b, index, types.b));
            let value = self.finish(one(operation, a, b), types);
            result |= (value as u32 & (u32::MAX >> (32 - self.width))) << (index * self.width);
        }
        result
    }

    #[inline(always)]
    fn finish(self, value: i32, types: LaneTypes) -> i32 {
        if !types.saturate {
            return value;
        }
        if types.d {
            value.clamp(-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1)
        } else {
            value.clamp(0, (1 << self.width) - 1)
        }
    }

    /// Lanes of `computed` where `mask` has a one, and of `c` elsewhere.
    #[inline]
    pub fn merge(self, computed: u32, c: u32, mask: u32) -> u32 {
        let mut chosen = 0;
        for index in 0..self.count() {
            if mask >> index & 1 == 1 {
                chosen |= (u32::MAX >> (32 - self.width)) << (index * self.width);
            }
        }
        (computed & chosen) | (c & !chosen)
    }

    /// `.add`: `c` plus the lanes of the result where `mask` has a one.
    #[inline]
    pub fn accumulate(self, computed: u32, c: u32, mask: u32, signed: bool) -> u32 {
        (0..self.count())
            .filter(|index| mask >> index & 1 == 1)
            .fold(c, |sum, index| sum.wrapping_add(self.lane(computed, index, signed) as u32))
    }
}

#[inline(always)]
fn one(operation: LaneOperation, a: i32, b: i32) -> i32 {
    match operation {
        LaneOperation::Add => a + b,
        LaneOperation::Sub => a - b,
        LaneOperation::Average => {
            let sum = a + b;
            if sum >= 0 { (sum + 1) >> 1 } else { sum >> 1 }
        }
        LaneOperation::AbsoluteDifference => (a - b).abs(),
        LaneOperation::Min => a.min(b),
        LaneOperation::Max => a.max(b),
        LaneOperation::Set(comparison) => i32::from(comparison.holds(a, b)),
    }
}

/// Lanes that an operand's selector picks out of `b:a`: digit `i` of `selector` names the byte, or half, for lane `i`.
#[inline]
pub fn select(a: u32, b: u32, selector: [u8; 4], lanes: Lanes) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let mut result = 0;
    for index in 0..lanes.count() {
        let place = u32::from(selector[index as usize & 3]) % (64 / lanes.width);
        let lane = (both >> (place * lanes.width)) as u32 & (u32::MAX >> (32 - lanes.width));
        result |= lane << (index * lanes.width);
    }
    result
}
