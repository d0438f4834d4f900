//! Integer arithmetic.
//!
//! Source: PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic Instructions". Sums and low
//! products of any width are Rust's `wrapping_…`. What division by zero gives is left open there; here is what an H200 gives.

macro_rules! wide_products {
    ($($doc:literal $name:ident $ty:ty, $wide:ty;)*) => {$(
        #[doc = $doc]
        #[inline(always)]
        pub fn $name(a: $ty, b: $ty) -> $ty {
            ((a as $wide * b as $wide) >> <$ty>::BITS) as $ty
        }
    )*};
}

wide_products! {
    "`mul.hi.u16`." mul_hi_u16 u16, u32;
    "`mul.hi.s16`." mul_hi_s16 i16, i32;
    "`mul.hi.u32`." mul_hi_u32 u32, u64;
    "`mul.hi.s32`." mul_hi_s32 i32, i64;
    "`mul.hi.u64`." mul_hi_u64 u64, u128;
    "`mul.hi.s64`." mul_hi_s64 i64, i128;
}

macro_rules! divisions {
    ($($div:ident $rem:ident $ty:ty, $zero:expr;)*) => {$(
        #[doc = concat!("`div` of `", stringify!($ty), "`. Division by zero gives what the hardware does; the least value by -1 wraps.")]
        #[inline(always)]
        pub fn $div(a: $ty, b: $ty) -> $ty {
            if b == 0 { ($zero)(a).0 } else { a.wrapping_div(b) }
        }
        #[doc = concat!("`rem` of `", stringify!($ty), "`, with the sign of the dividend. Division by zero gives what the hardware does.")]
        #[inline(always)]
        pub fn $rem(a: $ty, b: $ty) -> $ty {
            if b == 0 { ($zero)(a).1 } else { a.wrapping_rem(b) }
        }
    )*};
}

// Quotient and remainder of a division by zero.
divisions! {
    div_u16 rem_u16 u16, |a: u16| (u16::MAX, a);
    div_s16 rem_s16 i16, |a: i16| (-1, a);
    div_u32 rem_u32 u32, |a: u32| (u32::MAX, a);
    div_s32 rem_s32 i32, |a: i32| (-1, a);
    div_u64 rem_u64 u64, |a: u64| (u64::MAX, a);
    div_s64 rem_s64 i64, |a: i64| (-1, a);
}

/// `mul24.lo.u32`: the low half of the 48-bit product of the low 24 bits.
#[inline(always)]
pub fn mul24_lo_u32(a: u32, b: u32) -> u32 {
    (u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) as u32
}

/// `mul24.hi.u32`: bits 47 to 16 of the product.
#[inline(always)]
pub fn mul24_hi_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32
}

/// `mul24.lo.s32`.
#[inline(always)]
pub fn mul24_lo_s32(a: i32, b: i32) -> i32 {
    product24(a, b) as i32
}

/// `mul24.hi.s32`.
#[inline(always)]
pub fn mul24_hi_s32(a: i32, b: i32) -> i32 {
    (product24(a, b) >> 16) as i32
}

#[inline(always)]
fn product24(a: i32, b: i32) -> i64 {
    i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)
}

/// `mad24.hi.sat.s32`.
#[inline(always)]
pub fn mad24_hi_sat_s32(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi_s32(a, b).saturating_add(c)
}

/// `mad.hi.sat.s32`.
#[inline(always)]
pub fn mad_hi_sat_s32(a: i32, b: i32, c: i32) -> i32 {
    mul_hi_s32(a, b).saturating_add(c)
}

/// `mul.wide.u32`.
#[inline(always)]
pub fn mul_wide_u32(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}

/// `mul.wide.s32`.
#[inline(always)]
pub fn mul_wide_s32(a: i32, b: i32) -> i64 {
    i64::from(a) * i64::from(b)
}

/// `sad.u32` of operands widened to 64 bits; truncate the result. For 64 bits too.
#[inline(always)]
pub fn sad_u64(a: u64, b: u64, c: u64) -> u64 {
    c.wrapping_add(a.abs_diff(b))
}

/// `sad.s32` of operands extended to 64 bits; truncate the result. For 64 bits too.
#[inline(always)]
pub fn sad_s64(a: i64, b: i64, c: i64) -> i64 {
    c.wrapping_add(a.abs_diff(b) as i64)
}

/// `add.cc`, `addc` and `addc.cc` of 32 bits: the sum and the carry out. `carry` is 0 for `add.cc`.
#[inline(always)]
pub fn add_carry_u32(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

/// The same of 64 bits.
#[inline(always)]
pub fn add_carry_u64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first | second)
}

/// `sub.cc`, `subc` and `subc.cc` of 32 bits: the difference and the borrow out, both as PTX defines `CC.CF` for them.
#[inline(always)]
pub fn sub_borrow_u32(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(u32::from(borrow));
    (difference, first | second)
}

/// The same of 64 bits.
#[inline(always)]
pub fn sub_borrow_u64(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(u64::from(borrow));
    (difference, first | second)
}

/// The bytes of a word, each extended to 32 bits.
#[inline(always)]
fn bytes(word: u32, signed: bool) -> [i32; 4] {
    word.to_le_bytes().map(|byte| if signed { i32::from(byte as i8) } else { i32::from(byte) })
}

/// `dp4a`: `c` plus the products of four bytes. Signedness is that of `a` and of `b`.
#[inline(always)]
pub fn dp4a(a: u32, b: u32, c: u32, signed: (bool, bool)) -> u32 {
    let products = bytes(a, signed.0).into_iter().zip(bytes(b, signed.1)).map(|(a, b)| a * b);
    c.wrapping_add(products.sum::<i32>() as u32)
}

/// `dp2a.lo` and `dp2a.hi`: `c` plus the products of two halves of `a` and the lower or upper two bytes of `b`.
#[inline(always)]
pub fn dp2a(a: u32, b: u32, c: u32, signed: (bool, bool), high: bool) -> u32 {
    let half = |bits: u16| if signed.0 { i32::from(bits as i16) } else { i32::from(bits) };
    let b = bytes(b, signed.1);
    let from = if high { 2 } else { 0 };
    let products = (half(a as u16) * b[from]).wrapping_add(half((a >> 16) as u16) * b[from + 1]);
    c.wrapping_add(products as u32)
}
