//! `vmad`: the product of parts of a and b, and c.
//!
//! Source: PTX ISA, "Scalar Video Instructions: vmad", and a device where it differs.

use super::{Part, Video};

/// What an instruction says besides its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct How {
    /// Signedness of a, b.
    pub signed: [bool; 2],
    /// Parts of a, b.
    pub parts: [Part; 2],
    /// The product is subtracted: a or b was negated, but not both.
    pub negate_product: bool,
    pub negate_c: bool,
    /// `.po`: one more.
    pub plus_one: bool,
    pub saturate: bool,
    /// Places that the sum is shifted to the right: 0, 7 or 15.
    pub scale: u32,
}

impl Video for How {
    fn pack(self) -> (u32, i64) {
        let [a, b] = self.signed;
        let flags = [a, b, self.negate_product, self.negate_c, self.plus_one, self.saturate];
        let flags = flags.iter().enumerate().fold(0, |all, (bit, flag)| all | u32::from(*flag) << bit);
        let [pa, pb] = self.parts.map(Part::pack);
        (flags | self.scale << 8, (pa | pb << 16) as i64)
    }

    fn unpack(aux: u32, immediate: i64) -> Self {
        let flag = |bit: u32| aux >> bit & 1 == 1;
        let parts = immediate as u64;
        Self {
            signed: [flag(0), flag(1)],
            negate_product: flag(2),
            negate_c: flag(3),
            plus_one: flag(4),
            saturate: flag(5),
            scale: aux >> 8,
            parts: [parts, parts >> 16].map(|part| Part::unpack(part & 0xffff)),
        }
    }

    /// As devices compute it, and not quite as the manual says: whole registers, and c, are signed whatever their types are, and the
    /// sum has 64 bits. Seen in what ptxas makes for sm_90, and in the results of an H200.
    fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let signed = self.signed[0] || self.signed[1] || self.negate_product || self.negate_c;
        let [a, b] = [(a, 0), (b, 1)].map(|(value, at)| {
            let part = self.parts[at];
            part.extract(value, self.signed[at] || part == Part::WHOLE)
        });
        // At most 2^62 and 2^31: no overflow.
        let (product, c) = (a * b, i64::from(c as i32));
        let sum = if self.negate_product { -product } else { product }
            + if self.negate_c { -c } else { c }
            + i64::from(self.plus_one);
        let scaled = if signed { sum >> self.scale } else { (sum as u64 >> self.scale) as i64 };
        match (self.saturate, signed) {
            (false, _) => scaled as u32,
            (true, true) => scaled.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
            (true, false) => scaled.clamp(0, u32::MAX.into()) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let how = How {
            signed: [true, false],
            parts: [Part { bits: 16, at: 16 }, Part { bits: 8, at: 24 }],
            negate_product: true,
            negate_c: false,
            plus_one: false,
            saturate: true,
            scale: 15,
        };
        let (aux, immediate) = how.pack();
        assert_eq!(How::unpack(aux, immediate), how);
    }
}
