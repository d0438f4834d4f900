//! Products of matrices, as the tensor cores of an H100 or H200 sum them.
//!
//! NVIDIA documents neither order nor precision of the sums. The model began as that of the measurements of Fasi, Higham, Mikaitis and
//! Pranesh, "Numerical behavior of NVIDIA tensor cores" (2021), and Li and others, "FTTN: Feature-Targeted Testing for Numerical
//! Properties of NVIDIA & AMD Matrix Accelerators" (2024): products are exact; up to [`Sum::block`] of them and the accumulator are added at
//! once, each cut (toward zero) at [`Sum::fraction`] bits below the largest exponent among them, where the exponent of a product
//! is the sum of its factors'; the sum is cut to f32, or rounded to nearest for f16. Longer rows go block after block. Subnormal numbers
//! are taken as they are. Sums of f64 are fused multiply-adds in the order of `k`.
//!
//! What an H200 gave (`tests/h200/tensors`) fixed the rest, and is equal to it bit by bit. Of a sparse row only what is there counts: twice as
//! many columns are a block. Sums of e4m3 and e5m2 by `wgmma` are cut to 13 bits of mantissa where the result is f32. A result that
//! is lost whole is +0. The exponent of a subnormal number is the least of its format's, also of accumulators. Instructions of PTX that
//! the machine lacks are made of others: `mma` of e4m3 and e5m2 of those of f16, from zero on, and the accumulator is added last
//! ([`Order::After`]); `mma.m8n8k4` of f16 of arithmetic of f32 ([`Order::Scalar`]); `wmma` of tf32 of those with four columns.
//!
//! Each product that is cut loses less than 2^-`fraction` of the largest term's binade, so that a block of `n` products is off
//! from the exact sum by less than `(n + 1) · 2^(top - fraction)`, and half or one unit in the last place of the result:
//! the bound that the tests hold it to. Older devices keep fewer bits and add fewer products at once.

mod scalar;

use super::half::{F16, Half, rounded};
use super::{Rounding, double, single};

/// Columns that are summed side by side.
pub const WIDE: usize = 8;

/// Products of a block, at most.
const LONGEST: usize = 32;

/// The exponent of zero: below that of everything.
const NOTHING: i32 = -4000;

/// The exponent of what is not there: nothing is multiplied with it.
const ABSENT: i32 = 2 * NOTHING;

/// How products are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Columns whose products are added at once; a multiple of 4, up to 32.
    pub block: usize,
    /// Bits that are kept below the largest exponent; up to 25.
    pub fraction: i32,
    /// Bits that the mantissa of an f32 result has; up to 23.
    pub mantissa: u32,
    /// When the accumulator is added.
    pub order: Order,
}

/// When the accumulator is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// With each block of products.
    Together,
    /// After all blocks, which begin at zero; rounded to nearest, for it is an instruction of its own.
    After,
    /// No tensor core takes part: `mma.m8n8k4` of f16, product by product.
    Scalar,
}

impl Sum {
    /// f16 and bf16.
    pub const HALF: Self = Self { block: 16, fraction: 25, mantissa: 23, order: Order::Together };
    /// tf32.
    pub const TF32: Self = Self { block: 8, ..Self::HALF };
    /// e4m3 and e5m2 of `wgmma`, whose sums keep 13 bits. Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.5.2; FTTN.
    pub const EIGHT: Self = Self { block: 32, fraction: 13, mantissa: 13, order: Order::Together };
}

/// What the accumulator and the result are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// f16, rounded to nearest.
    Half,
    /// f32, cut.
    Single,
}

/// Numbers taken apart: each is its significand times two to its exponent. Infinities and NaN are their own significand.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// 0, or of magnitude below 2.
    pub significands: Vec<f32>,
    /// Of zero, one far below all others.
    pub exponents: Vec<i32>,
    /// Something is infinite or NaN.
    pub special: bool,
}

impl Parts {
    /// Room for `count` numbers.
    pub fn resize(&mut self, count: usize) {
        self.significands.resize(count, 0.0);
        self.exponents.resize(count, ABSENT);
        self.special = false;
    }

    /// Nothing is there any more: what is not set after it takes no part.
    pub fn clear(&mut self) {
        self.significands.fill(0.0);
        self.exponents.fill(ABSENT);
    }

    /// Sets one.
    #[inline(always)]
    pub fn set(&mut self, at: usize, (significand, exponent): (f32, i32)) {
        self.significands[at] = significand;
        self.exponents[at] = exponent;
    }
}

/// Significand and exponent of an IEEE-like number in the low bits of a word: `exponent` and `mantissa` bits below its sign.
#[inline(always)]
fn part(bits: u32, exponent: u32, mantissa: u32) -> (f32, i32) {
    let field = bits >> mantissa & ((1 << exponent) - 1);
    let fraction = bits & ((1 << mantissa) - 1);
    let sign = (bits >> (exponent + mantissa) & 1) << 31;
    let bias = (1 << (exponent - 1)) - 1;
    // 1.fraction; without the one where the number is subnormal.
    let one = f32::from_bits(0x3f80_0000 | fraction << (23 - mantissa));
    let magnitude = if field == 0 { one - 1.0 } else { one };
    let least = if field == 0 { 1 } else { field as i32 };
    let place = if field == 0 && fraction == 0 { NOTHING } else { least - bias };
    (f32::from_bits(magnitude.to_bits() | sign), place)
}

/// An f32, as a number taken apart.
#[inline(always)]
pub fn of_f32(bits: u32) -> (f32, i32) {
    if bits >> 23 & 255 == 255 { (f32::from_bits(bits), 0) } else { part(bits, 8, 23) }
}

/// A tf32: the low 13 bits are not looked at.
#[inline(always)]
pub fn of_tf32(bits: u32) -> (f32, i32) {
    of_f32(bits & !0x1fff)
}

/// An f16.
#[inline(always)]
pub fn of_f16(bits: u32) -> (f32, i32) {
    let special = bits >> 10 & 31 == 31;
    let wide = f32::from_bits((bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13);
    if special { (wide, 0) } else { part(bits & 0xffff, 5, 10) }
}

/// A bf16.
#[inline(always)]
pub fn of_bf16(bits: u32) -> (f32, i32) {
    of_f32(bits << 16)
}

/// An e4m3: no infinity, one NaN.
#[inline(always)]
pub fn of_e4m3(bits: u32) -> (f32, i32) {
    if bits & 0x7f == 0x7f { (f32::NAN, 0) } else { part(bits & 0xff, 4, 3) }
}

/// An e5m2: the upper half of an f16.
#[inline(always)]
pub fn of_e5m2(bits: u32) -> (f32, i32) {
    of_f16((bits & 0xff) << 8)
}

/// An accumulator, which is an f16 or f32. The exponent of a subnormal f16 is that of the least normal one.
#[inline(always)]
fn of_accumulator(c: f32, width: Width) -> (f32, i32) {
    const LEAST: f32 = f32::from_bits((127 - 14) << 23);
    let small = width == Width::Half && c != 0.0 && c.abs() < LEAST;
    if small { (c / LEAST, -14) } else { of_f32(c.to_bits()) }
}

/// The sum in units of 2^(`top` - `fraction`), to the result.
#[inline(always)]
fn finish(total: f64, top: i32, sum: Sum, width: Width) -> f32 {
    let unit = f64::from_bits(((top - sum.fraction).max(-1022) + 1023) as u64 * (1 << 52));
    let value = total * unit;
    let result = match width {
        Width::Single => cut(value, sum.mantissa),
        Width::Half => half_of(value),
    };
    // What is lost whole leaves a zero without a sign.
    result + 0.0
}

/// The f16 nearest to a number, as an f32.
#[inline(always)]
fn half_of(value: f64) -> f32 {
    <F16 as Half>::to_f32(rounded::<F16>(value, Rounding::Rn))
}

/// An f64 to f32, toward zero; beyond the largest, infinity.
#[inline(always)]
fn cut(value: f64, mantissa: u32) -> f32 {
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
    if value.abs() >= SMALLEST || value == 0.0 {
        f64::from_bits(value.to_bits() & !((1 << (52 - mantissa)) - 1)) as f32
    } else {
        // Whole units of the smallest subnormal number, 2^-149.
        let units = (value * f64::from_bits((149 + 1023) << 52)).trunc();
        (units * f64::from_bits((1023 - 149) << 52)) as f32
    }
}

/// A product in units of 2^-`place`, toward zero.
///
/// # Safety
/// The product must be finite and below 4, the place at most 25: then the result fits.
#[inline(always)]
unsafe fn term(product: f32, place: i32) -> i32 {
    let scale = f32::from_bits(((place + 127).max(0) as u32) << 23);
    // SAFETY: the caller's promise.
    unsafe { (product * scale).to_int_unchecked() }
}

/// Rows of a matrix of `stride` columns, from one column on.
#[derive(Clone, Copy)]
struct Rows<'a> {
    significands: &'a [f32],
    exponents: &'a [i32],
    stride: usize,
}

impl Rows<'_> {
    #[inline(always)]
    fn row<const N: usize>(&self, k: usize) -> (&[f32; N], &[i32; N]) {
        let at = k * self.stride;
        match (self.significands[at..].first_chunk(), self.exponents[at..].first_chunk()) {
            (Some(significands), Some(exponents)) => (significands, exponents),
            _ => (&[0.0; N], &[NOTHING; N]),
        }
    }
}

/// Adds one block of products to `N` accumulators side by side; all numbers are finite.
#[inline(always)]
fn block<const N: usize>(
    (a, a_exponents): (&[f32], &[i32]),
    b: Rows<'_>,
    c: [f32; N],
    sum: Sum,
    width: Width,
) -> [f32; N] {
    let fraction = sum.fraction;
    let mut own = [(0.0, NOTHING); N];
    let mut top = [NOTHING; N];
    for i in 0..N {
        own[i] = of_accumulator(c[i], width);
        top[i] = own[i].1;
    }
    for (k, exponent) in a_exponents.iter().enumerate() {
        let (_, row) = b.row::<N>(k);
        for i in 0..N {
            top[i] = top[i].max(exponent + row[i]);
        }
    }
    let mut total = [0.0; N];
    for i in 0..N {
        // SAFETY: an f32's significand is below 2; no exponent is above the top.
        total[i] = f64::from(unsafe { term(own[i].0, own[i].1 - top[i] + fraction) });
    }
    // Eight terms below 2^27 fit 32 bits.
    for (eighth, (a, a_exponents)) in a.chunks(8).zip(a_exponents.chunks(8)).enumerate() {
        let mut sum = [0i32; N];
        for (k, (a, exponent)) in a.iter().zip(a_exponents).enumerate() {
            let (significands, exponents) = b.row::<N>(eighth * 8 + k);
            for i in 0..N {
                // SAFETY: significands are below 2; no exponent is above the top.
                sum[i] += unsafe { term(a * significands[i], exponent + exponents[i] - top[i] + fraction) };
            }
        }
        for i in 0..N {
            total[i] += f64::from(sum[i]);
        }
    }
    let mut result = [0.0; N];
    for i in 0..N {
        result[i] = finish(total[i], top[i], sum, width);
    }
    result
}

/// The same for one accumulator, where something may be infinite or NaN.
#[inline(never)]
fn careful(a: (&[f32], &[i32]), b: Rows<'_>, c: f32, sum: Sum, width: Width) -> f32 {
    // What takes no part is zero on both sides: it may stand beside an infinity.
    let (mut significands, mut exponents) = ([0.0; LONGEST], [ABSENT; LONGEST]);
    let there = a.1.iter().enumerate().filter(|(_, exponent)| **exponent != ABSENT);
    for (k, _) in there.take(LONGEST) {
        let (significand, of_b) = b.row::<1>(k);
        (significands[k], exponents[k]) = (significand[0], of_b[0]);
    }
    let products = a.0.iter().zip(&significands).map(|(a, b)| a * b);
    let special = products.chain([c]).filter(|term| !term.is_finite()).reduce(|all, term| all + term);
    match special {
        Some(all) => single::canonical(all),
        None => {
            let b = Rows { significands: &significands, exponents: &exponents, stride: 1 };
            block::<1>(a, b, [c], sum, width)[0]
        }
    }
}

/// `c += a · b`: `a` has `m` rows of `k`, `b` has `k` rows of `n`, `c` has `m` rows of `n`; `n` is a multiple of [`WIDE`].
#[inline(always)]
pub fn multiply(a: &Parts, b: &Parts, c: &mut [f32], [m, n, k]: [usize; 3], sum: Sum, width: Width) {
    if sum.order == Order::Scalar {
        return scalar::multiply(a, b, c, [m, n, k], width);
    }
    for row in 0..m {
        for column in (0..n).step_by(WIDE) {
            let Some(accumulators) = c[row * n + column..].first_chunk_mut::<WIDE>() else { return };
            let before = *accumulators;
            if sum.order == Order::After {
                *accumulators = [0.0; WIDE];
            }
            for from in (0..k).step_by(sum.block) {
                let of_a = row * k + from..row * k + k.min(from + sum.block);
                let a = (&a.significands[of_a.clone()], &a.exponents[of_a]);
                let of_b = from * n + column;
                let (significands, exponents) = (&b.significands[of_b..], &b.exponents[of_b..]);
                let b_rows = Rows { significands, exponents, stride: n };
                let finite = accumulators.iter().all(|c| c.is_finite());
                if finite && !special_in(a.0) && !b.special {
                    *accumulators = block(a, b_rows, *accumulators, sum, width);
                } else {
                    for (i, c) in accumulators.iter_mut().enumerate() {
                        let (significands, exponents) = (&significands[i..], &exponents[i..]);
                        let b = Rows { significands, exponents, stride: n };
                        *c = careful(a, b, *c, sum, width);
                    }
                }
            }
            if sum.order == Order::After {
                accumulators.iter_mut().zip(before).for_each(|(c, before)| *c = added(before, *c, width));
            }
        }
    }
}

/// The sum of two f16 or two f32, rounded to nearest.
fn added(a: f32, b: f32, width: Width) -> f32 {
    match width {
        Width::Single => single::canonical(a + b),
        Width::Half => single::canonical(half_of(f64::from(a) + f64::from(b))),
    }
}

/// Whether a number among these is infinite or NaN.
#[inline(always)]
pub fn special_in(significands: &[f32]) -> bool {
    significands.iter().fold(false, |any, s| any | (s.to_bits() >> 23 & 255 == 255))
}

/// The same of integers: sums wrap, or end at the largest.
#[inline(always)]
pub fn multiply_integers(a: &[i32], b: &[i32], c: &mut [i32], [m, n, k]: [usize; 3], saturate: bool) {
    for row in 0..m {
        for column in 0..n {
            let at = row * n + column;
            // At most 2^14 · 64 a row, so that the products alone never leave 32 bits.
            let sum = (0..k).map(|k_at| a[row * k + k_at] * b[k_at * n + column]).sum::<i32>();
            c[at] = if saturate { c[at].saturating_add(sum) } else { c[at].wrapping_add(sum) };
        }
    }
}

/// The same of f64: fused multiply-adds in the order of `k`, `b` times `a`, which tells where both are NaN: an H200's results have
/// the sign of that of `b`.
#[inline(always)]
pub fn multiply_doubles(a: &[f64], b: &[f64], c: &mut [f64], [m, n, k]: [usize; 3], rounding: Rounding) {
    for row in 0..m {
        for column in 0..n {
            let products = (0..k).map(|k_at| (a[row * k + k_at], b[k_at * n + column]));
            let start = c[row * n + column];
            c[row * n + column] = products.fold(start, |sum, (a, b)| double::fma(b, a, sum, rounding));
        }
    }
}
