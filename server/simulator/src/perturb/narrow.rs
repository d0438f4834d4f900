//! Tells `__half` and `__nv_bfloat16` apart from what else 16 bits may be.
//!
//! Numbers that programs compute with crowd below some size: half of those from 0 to 1 lie above 0.5, a quarter in the octave below.
//! Integers of 16 bits, the digits of wider numbers, and pixels do not: read as halves, their exponents are spread evenly, and
//! negative ones are NaN.

use super::Format;
use crate::math::Rounding;
use crate::math::half::{self, Bf16, F16, Half};

/// Fewer nonzero numbers tell nothing.
const LEAST: usize = 16;
/// This share of them must be of a plain size.
const MOST: f64 = 0.98;
/// The two most frequent octaves hold this share of them at least.
const CROWDED: f64 = 0.5;
/// Where this share of the signs is the rarer one, no unsigned number and no size is meant.
const MIXED: f64 = 0.1;

/// The format of these bytes, if they are halves or bfloat16.
pub(super) fn format_of(bytes: &[u8]) -> Option<Format> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let words: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word)).collect();
    // Small integers of 32 bits and more have nothing in every other word.
    let (even, odd) = (words.iter().step_by(2), words.iter().skip(1).step_by(2));
    if even.clone().all(|word| *word == 0) || odd.clone().all(|word| *word == 0) {
        return None;
    }
    // A half's exponent and its first digits, read as that of a bfloat16, fill eight octaves evenly.
    if is_like::<Bf16>(&words, -40..20) {
        Some(Format::Bf16)
    } else if is_like::<F16>(&words, -14..8) {
        Some(Format::F16)
    } else {
        None
    }
}

/// Whether the words are numbers of this format, of exponents in `plain`.
fn is_like<H: Half>(words: &[u16], plain: std::ops::Range<i32>) -> bool {
    let bias = (1i32 << (H::EXPONENT - 1)) - 1;
    let exponent = |word: &u16| i32::from((word & 0x7fff) >> H::MANTISSA) - bias;
    let nonzero: Vec<u16> = words.iter().copied().filter(|word| word & 0x7fff != 0).collect();
    if nonzero.len() < LEAST {
        return false;
    }
    let count = nonzero.len() as f64;
    let mut octaves = [0usize; 256];
    let mut within = 0usize;
    for word in &nonzero {
        let exponent = exponent(word);
        within += usize::from(plain.contains(&exponent));
        if let Some(octave) = usize::try_from(exponent + bias).ok().and_then(|at| octaves.get_mut(at)) {
            *octave += 1;
        }
    }
    let most = octaves.iter().enumerate().max_by_key(|(_, count)| **count).map_or(0, |(at, _)| at);
    let next = octaves.iter().enumerate().filter(|(at, _)| *at != most).map(|(_, count)| *count).max();
    let crowded = (octaves[most] + next.unwrap_or(0)) as f64 >= CROWDED * count;
    let negative = nonzero.iter().filter(|word| **word & 0x8000 != 0).count() as f64 / count;
    let mixed = negative.min(1.0 - negative) >= MIXED;
    // Shares, weights and normalised pixels: below 2, most of them not far below.
    let near_one = (bias - 4..=bias).contains(&i32::try_from(most).unwrap_or(0)) && negative == 0.0;
    within as f64 >= MOST * count && crowded && (mixed || near_one)
}

/// The bits of what `change` makes of the number.
pub(super) fn changed<H: Half>(word: [u8; 2], change: impl Fn(f64) -> f64) -> [u8; 2] {
    let value = f64::from(H::to_f32(u16::from_le_bytes(word)));
    if !value.is_finite() {
        return word;
    }
    half::rounded::<H>(change(value), Rounding::Rn).to_le_bytes()
}
