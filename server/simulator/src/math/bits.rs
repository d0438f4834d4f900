//! Logic, shifts and bit fields.
//!
//! Source: PTX ISA, "Integer Arithmetic Instructions" (bfind to bmsk), "Logic and Shift Instructions" and "prmt".
//! `popc`, `clz` and `brev` are Rust's `count_ones`, `leading_zeros` and `reverse_bits`.

/// `shl.b32`: amounts past the width give 0.
#[inline(always)]
pub fn shl_b32(a: u32, amount: u32) -> u32 {
    a.checked_shl(amount).unwrap_or(0)
}

/// `shl.b64`.
#[inline(always)]
pub fn shl_b64(a: u64, amount: u32) -> u64 {
    a.checked_shl(amount).unwrap_or(0)
}

/// `shl.b16`.
#[inline(always)]
pub fn shl_b16(a: u16, amount: u32) -> u16 {
    a.checked_shl(amount).unwrap_or(0)
}

/// `shr.u32` and `shr.b32`.
#[inline(always)]
pub fn shr_u32(a: u32, amount: u32) -> u32 {
    a.checked_shr(amount).unwrap_or(0)
}

/// `shr.s32`: amounts past the width give the sign.
#[inline(always)]
pub fn shr_s32(a: i32, amount: u32) -> i32 {
    a >> amount.min(31)
}

/// `shr.u64` and `shr.b64`.
#[inline(always)]
pub fn shr_u64(a: u64, amount: u32) -> u64 {
    a.checked_shr(amount).unwrap_or(0)
}

/// `shr.s64`.
#[inline(always)]
pub fn shr_s64(a: i64, amount: u32) -> i64 {
    a >> amount.min(63)
}

/// `shr.u16` and `shr.b16`.
#[inline(always)]
pub fn shr_u16(a: u16, amount: u32) -> u16 {
    a.checked_shr(amount).unwrap_or(0)
}

/// `shr.s16`.
#[inline(always)]
pub fn shr_s16(a: i16, amount: u32) -> i16 {
    a >> amount.min(15)
}

#[inline(always)]
fn limited(amount: u32, wrap: bool) -> u32 {
    if wrap { amount & 31 } else { amount.min(32) }
}

/// `shf.l`: the upper half of `b:a` shifted left. `wrap` takes the amount modulo 32; otherwise it is at most 32.
#[inline(always)]
pub fn shf_l(a: u32, b: u32, amount: u32, wrap: bool) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    ((both << limited(amount, wrap)) >> 32) as u32
}

/// `shf.r`: the lower half of `b:a` shifted right.
#[inline(always)]
pub fn shf_r(a: u32, b: u32, amount: u32, wrap: bool) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    (both >> limited(amount, wrap)) as u32
}

/// `lop3.b32`: bit `4a + 2b + c` of `table` for every bit.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut result = 0;
    for row in 0..8u32 {
        let of = |word: u32, bit: u32| if row >> bit & 1 == 1 { word } else { !word };
        let selected = u32::from(table >> row & 1).wrapping_neg();
        result |= of(a, 2) & of(b, 1) & of(c, 0) & selected;
    }
    result
}

/// `bfind.u32`, `.u64` (zero-extended): the place of the highest one, or `0xffffffff`. `width` is 32 or 64.
#[inline(always)]
pub fn bfind_u64(a: u64, width: u32, shift_amount: bool) -> u32 {
    if a == 0 {
        return u32::MAX;
    }
    let place = 63 - a.leading_zeros();
    if shift_amount { width - 1 - place } else { place }
}

/// `bfind.s32`, `.s64` (sign-extended): the place of the highest bit that is not the sign's.
#[inline(always)]
pub fn bfind_s64(a: i64, width: u32, shift_amount: bool) -> u32 {
    bfind_u64((if a < 0 { !a } else { a }) as u64, width, shift_amount)
}

/// `bfe.u32` and `bfe.u64` (zero-extended): `length` bits from `position` on; both are taken modulo 256.
#[inline(always)]
pub fn bfe_u64(a: u64, position: u32, length: u32, width: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if position >= width || length == 0 {
        return 0;
    }
    let field = a >> position;
    if length >= 64 { field } else { field & ((1 << length) - 1) }
}

/// `bfe.s32` and `bfe.s64` (sign-extended): as [`bfe_u64`], filled with the sign of the field, or of `a` where the field
/// goes beyond it.
#[inline(always)]
pub fn bfe_s64(a: i64, position: u32, length: u32, width: u32) -> i64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if length == 0 {
        return 0;
    }
    let field = a >> position.min(63);
    if position + length >= width {
        return field;
    }
    let above = 64 - length;
    field << above >> above
}

/// `bfi.b32` and `bfi.b64`: the low `length` bits of `a` in `b` from `position` on; both are taken modulo 256.
#[inline(always)]
pub fn bfi_b64(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if position >= width || length == 0 {
        return b;
    }
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = ones << position;
    let result = (b & !mask) | (a << position & mask);
    if width == 32 { result & 0xffff_ffff } else { result }
}

/// `fns`: the place of the `offset`-th one of `mask`, counted from `base` on upward or, where `offset` is negative,
/// downward; `0xffffffff` where there is none.
#[inline]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let (mut place, mut left) = (base as i32, offset.unsigned_abs());
    while (0..32).contains(&place) {
        if mask >> place & 1 == 1 {
            left -= 1;
            if left == 0 {
                return place as u32;
            }
        }
        place += offset.signum();
    }
    u32::MAX
}

/// `szext`: the low `bits` bits, sign-extended or zero-extended. `wrap` takes `bits` modulo 32.
#[inline(always)]
pub fn szext(a: u32, bits: u32, signed: bool, wrap: bool) -> u32 {
    if bits >= 32 && !wrap {
        return a;
    }
    let bits = bits & 31;
    if bits == 0 {
        return 0;
    }
    let above = 32 - bits;
    if signed { ((a << above) as i32 >> above) as u32 } else { a << above >> above }
}

/// `bmsk`: `width` ones from `position` on. `wrap` takes both modulo 32.
#[inline(always)]
pub fn bmsk(position: u32, width: u32, wrap: bool) -> u32 {
    let (position, width) = if wrap { (position & 31, width & 31) } else { (position, width.min(32)) };
    if position >= 32 {
        return 0;
    }
    ((((1u64 << width) - 1) << position) & 0xffff_ffff) as u32
}

/// A mode of `prmt`; without one the selector names each byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are PTX's own.
pub enum Permutation {
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

impl Permutation {
    /// The selector that means the same without a mode.
    #[inline]
    pub fn selector(self, control: u32) -> u32 {
        // By the two lowest bits of the control.
        let selectors = match self {
            Self::F4e => [0x3210, 0x4321, 0x5432, 0x6543],
            Self::B4e => [0x5670, 0x6701, 0x7012, 0x0123],
            Self::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333],
            Self::Ecl => [0x3210, 0x3211, 0x3222, 0x3333],
            Self::Ecr => [0x0000, 0x1110, 0x2210, 0x3210],
            Self::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232],
        };
        selectors[control as usize & 3]
    }
}

/// `prmt.b32`: four bytes of `b:a`, each chosen by a digit of `selector`, whose top bit asks for the byte's sign instead.
#[inline(always)]
pub fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let mut result = 0;
    for place in 0..4 {
        let digit = selector >> (4 * place) & 0xf;
        let byte = (both >> (8 * (digit & 7))) as u8;
        let byte = if digit & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte };
        result |= u32::from(byte) << (8 * place);
    }
    result
}
