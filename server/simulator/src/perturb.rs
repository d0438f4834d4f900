//! Other inputs for a program: changes the floating-point numbers that it copies to the device.
//!
//! A candidate that was made for the inputs of one program is found out by others. These must be as good as the program's own: so a
//! number keeps its sign, zero stays zero, none grows, sorted numbers stay sorted, and nothing that is no floating-point number
//! changes, since it may be an index or a size. What becomes of a number depends on the number and the seed alone, and smoothly:
//! two versions of a program that copy the same data in other pieces, in another order, or after another rounding, see the same.

mod narrow;

use crate::math::half::{Bf16, F16};

/// How the bytes of a copy are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// `__half`.
    F16,
    /// `__nv_bfloat16`.
    Bf16,
}

/// The exponents of numbers that programs compute with: 2^-60 to 2^60.
const PLAIN: std::ops::Range<i32> = -60..60;
/// This share of the nonzero numbers must have such an exponent.
const MOST: f64 = 0.98;
/// Fewer nonzero numbers tell nothing.
const LEAST: usize = 4;

/// The floating-point format that these bytes are in, where they can hardly be anything else. Integers of a plain size, read as
/// floating-point numbers, are subnormal or NaN. Half-precision numbers, two by two, look like `float`s whose lower half is never that of
/// an arbitrary number.
#[must_use]
pub fn format_of(bytes: &[u8]) -> Option<Format> {
    // Letters are floats of a plain size, four by four.
    if bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace() || *byte == 0) {
        return None;
    }
    let as_f64 = bytes.len().is_multiple_of(8) && are_plain(doubles(bytes));
    let as_f32 = bytes.len().is_multiple_of(4) && are_plain(floats(bytes).map(f64::from));
    let wide = match (as_f32, as_f64) {
        (true, true) => {
            // Doubles with few digits, which have a lower half of zeros, or floats.
            let low_is_zero = bytes.chunks_exact(8).all(|double| double[..4] == [0; 4]);
            if low_is_zero { Some(Format::F64) } else { float_unless_halves(bytes) }
        }
        (true, false) => float_unless_halves(bytes),
        (false, true) => Some(Format::F64),
        (false, false) => None,
    };
    wide.or_else(|| narrow::format_of(bytes))
}

fn float_unless_halves(bytes: &[u8]) -> Option<Format> {
    let halves = |at: usize| {
        let half = move |word: &[u8]| u16::from_le_bytes([word[at], word[at + 1]]);
        bytes.chunks_exact(4).map(half).filter(|half| half & 0x7fff != 0).collect::<Vec<_>>()
    };
    let (low, high) = (halves(0), halves(2));
    // Floats with few digits: whole numbers, halves, quarters.
    if low.len() * 2 < bytes.len() / 4 {
        return Some(Format::F32);
    }
    // Exponents of `__half` and of `__nv_bfloat16`.
    let halves = is_like(&low, &high, |half| i32::from(half >> 10 & 0x1f))
        || is_like(&low, &high, |half| i32::from(half >> 7 & 0xff));
    (!halves).then_some(Format::F32)
}

/// Whether the lower halves of words are numbers of about the size of the upper ones: the digits of a `float` are of any size.
fn is_like(low: &[u16], high: &[u16], exponent: impl Fn(&u16) -> i32) -> bool {
    /// Powers of two by which the sizes may differ.
    const NEAR: i32 = 2;
    let (Some(least), Some(most)) = (high.iter().map(&exponent).min(), high.iter().map(&exponent).max())
    else {
        return false;
    };
    let near = low.iter().filter(|half| (least - NEAR..=most + NEAR).contains(&exponent(half))).count();
    near as f64 >= MOST * low.len() as f64
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

fn doubles(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.chunks_exact(8).map(|word| {
        f64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]])
    })
}

fn are_plain(values: impl Iterator<Item = f64>) -> bool {
    let (mut nonzero, mut plain) = (0usize, 0usize);
    for value in values.filter(|value| *value != 0.0) {
        nonzero += 1;
        // The bits of the exponent; subnormal numbers and infinities are outside of the range.
        let exponent = i32::try_from(value.to_bits() >> 52 & 0x7ff).unwrap_or(0) - 1023;
        plain += usize::from(PLAIN.contains(&exponent));
    }
    nonzero >= LEAST && plain as f64 >= MOST * nonzero as f64
}

/// Changes the numbers in `bytes`. Whether there was anything to change.
pub fn perturb(seed: u64, bytes: &mut [u8]) -> bool {
    let change = Change::of(seed);
    match format_of(bytes) {
        Some(Format::F32) => in_pieces(bytes, |piece| {
            for word in piece.as_chunks_mut::<4>().0 {
                let value = f64::from(f32::from_le_bytes(*word));
                *word = (change.value(value) as f32).to_le_bytes();
            }
        }),
        Some(Format::F64) => in_pieces(bytes, |piece| {
            for word in piece.as_chunks_mut::<8>().0 {
                *word = change.value(f64::from_le_bytes(*word)).to_le_bytes();
            }
        }),
        Some(Format::F16) => in_pieces(bytes, |piece| {
            for word in piece.as_chunks_mut::<2>().0 {
                *word = narrow::changed::<F16>(*word, |value| change.value(value));
            }
        }),
        Some(Format::Bf16) => in_pieces(bytes, |piece| {
            for word in piece.as_chunks_mut::<2>().0 {
                *word = narrow::changed::<Bf16>(*word, |value| change.value(value));
            }
        }),
        None => return false,
    }
    true
}

/// Bytes of a piece at least: a logarithm and a sine for each number take milliseconds for so many, a thread far less.
const PIECE: usize = 1 << 20;

/// Changes large arrays in pieces, one for each processor.
fn in_pieces(bytes: &mut [u8], change: impl Fn(&mut [u8]) + Sync) {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = (bytes.len() / PIECE).clamp(1, processors);
    if count == 1 {
        return change(bytes);
    }
    let size = bytes.len().div_ceil(count).next_multiple_of(size_of::<f64>());
    std::thread::scope(|scope| {
        for piece in bytes.chunks_mut(size) {
            scope.spawn(|| change(piece));
        }
    });
}

/// What a seed does to numbers: `x * scale * (1 + RIPPLE * sin(FREQUENCY * ln|x| + phase))`.
struct Change {
    scale: f64,
    phase: f64,
}

/// How far a number moves against its neighbours.
const RIPPLE: f64 = 0.05;
/// Ripples in a factor of e. With `RIPPLE * (1 + FREQUENCY) < 1` the function rises everywhere, so that order is kept.
const FREQUENCY: f64 = 8.0;

impl Change {
    fn of(seed: u64) -> Self {
        let [scale, phase] = [1, 2].map(|index| (mix(seed, index) >> 11) as f64 / (1u64 << 53) as f64);
        // No number grows: 0.95 * (1 + 0.05) < 1.
        Self { scale: 0.85 + 0.1 * scale, phase: std::f64::consts::TAU * phase }
    }

    fn value(&self, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        value * self.scale * (1.0 + RIPPLE * (FREQUENCY * value.abs().ln() + self.phase).sin())
    }
}

/// splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014).
fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::math::Rounding;
    use crate::math::half::{self, Half};

    fn of_floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Numbers from 0 to 1 with all their digits.
    fn arbitrary(count: u64) -> impl Iterator<Item = f64> {
        (0..count).map(|index| (mix(7, index) >> 11) as f64 / (1u64 << 53) as f64)
    }

    #[test]
    fn formats_are_told_apart() {
        let random = of_floats(&arbitrary(512).map(|v| v as f32).collect::<Vec<_>>());
        let whole = of_floats(&(0..100u8).map(f32::from).collect::<Vec<_>>());
        let doubles: Vec<u8> = arbitrary(64).flat_map(f64::to_le_bytes).collect();
        let whole_doubles: Vec<u8> = (0..64u8).flat_map(|v| f64::from(v).to_le_bytes()).collect();
        let ints: Vec<u8> = (0..512i32).flat_map(|v| (v * 1000 - 5000).to_le_bytes()).collect();
        // 0x3800 to 0x3bff are the halves from 0.5 to 1.
        let halves: Vec<u8> =
            (0..1024u64).flat_map(|i| (0x3800 + (mix(3, i) & 0x3ff) as u16).to_le_bytes()).collect();
        let bf16: Vec<u8> =
            (0..1024u64).flat_map(|i| (0x3e80 + (mix(3, i) & 0xff) as u16).to_le_bytes()).collect();
        let text = b"The quick brown fox jumps over the lazy dog, and then some more.".to_vec();
        let noise: Vec<u8> = (0..512).flat_map(|i| mix(1, i).to_le_bytes()).collect();
        for (name, bytes, expected) in [
            ("random floats", &random, Some(Format::F32)),
            ("whole floats", &whole, Some(Format::F32)),
            ("doubles", &doubles, Some(Format::F64)),
            ("whole doubles", &whole_doubles, Some(Format::F64)),
            ("integers", &ints, None),
            ("halves", &halves, Some(Format::F16)),
            ("bfloat16", &bf16, Some(Format::Bf16)),
            ("halves of both signs", &as_halves::<F16>(normal()), Some(Format::F16)),
            ("bfloat16 of both signs", &as_halves::<Bf16>(normal()), Some(Format::Bf16)),
            (
                "halves, an odd number of them",
                &as_halves::<F16>(normal())[..1022].to_vec(),
                Some(Format::F16),
            ),
            ("small weights", &as_halves::<Bf16>(normal().map(|v| v * 0.02)), Some(Format::Bf16)),
            ("short integers", &shorts(|i| i * 29 - 8000), None),
            ("indices of 16 bits", &shorts(|i| i * 32), None),
            ("samples of sound", &shorts(|i| ((f64::from(i) * 0.1).sin() * 20_000.0) as i32), None),
            ("integers of half a word", &(13_500..14_500i32).flat_map(i32::to_le_bytes).collect(), None),
            ("pixels", &(0..1024u64).map(|i| mix(9, i) as u8).collect(), None),
            ("noise", &noise, None),
            ("zeros", &vec![0; 64], None),
            ("text", &text, None),
            ("few floats", &random[..40].to_vec(), Some(Format::F32)),
            ("nothing", &vec![], None),
            ("odd length", &random[..33].to_vec(), None),
        ] {
            assert_eq!(format_of(bytes), expected, "{name}");
        }
    }

    /// About the normal distribution.
    fn normal() -> impl Iterator<Item = f64> {
        (0..512u64).map(|at| {
            (0..12).map(|part| (mix(11, at * 12 + part) >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>()
                - 6.0
        })
    }

    fn as_halves<H: Half>(values: impl Iterator<Item = f64>) -> Vec<u8> {
        values.flat_map(|value| half::rounded::<H>(value, Rounding::Rn).to_le_bytes()).collect()
    }

    fn shorts(value: impl Fn(i32) -> i32) -> Vec<u8> {
        (0..512i32).flat_map(|at| (value(at) as i16).to_le_bytes()).collect()
    }

    #[test]
    fn halves_stay_what_they_were_good_for() {
        fn check<H: Half>(values: &[f64]) {
            let (before, mut after) =
                (as_halves::<H>(values.iter().copied()), as_halves::<H>(values.iter().copied()));
            assert!(perturb(5, &mut after));
            let read = |bytes: &[u8]| -> Vec<f32> {
                bytes.as_chunks::<2>().0.iter().map(|word| H::to_f32(u16::from_le_bytes(*word))).collect()
            };
            let (before, after) = (read(&before), read(&after));
            let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
            assert!(moved * 10 > before.len() * 8, "{moved} of {}", before.len());
            for (before, after) in before.iter().zip(&after) {
                assert!(
                    after.abs() <= before.abs() && after.abs() >= 0.75 * before.abs(),
                    "{before} {after}"
                );
                assert!(before.signum() == after.signum(), "{before} {after}");
            }
            assert!(after.is_sorted());
        }
        let mut values: Vec<f64> = normal().collect();
        values.sort_by(f64::total_cmp);
        check::<F16>(&values);
        check::<Bf16>(&values);
    }

    #[test]
    fn pieces_are_changed_like_the_whole() {
        let values: Vec<f32> = arbitrary(4096).map(|v| v as f32).collect();
        let (mut whole, mut pieces) = (of_floats(&values), of_floats(&values));
        assert!(perturb(5, &mut whole));
        for piece in pieces.chunks_mut(2048) {
            assert!(perturb(5, piece));
        }
        assert_eq!(whole, pieces);
        // Large enough for several threads.
        let mut large = of_floats(&values.repeat(128));
        assert!(perturb(5, &mut large));
        assert!(large.chunks(whole.len()).all(|piece| piece == whole));
        let mut other = of_floats(&values);
        perturb(6, &mut other);
        assert_ne!(whole, other);
    }

    proptest! {
        #[test]
        fn numbers_stay_what_they_were_good_for(seed: u64, mut values in prop::collection::vec(-1e6f64..1e6, 2..50)) {
            let change = Change::of(seed);
            values.sort_by(f64::total_cmp);
            let changed: Vec<f64> = values.iter().map(|value| change.value(*value)).collect();
            for (before, after) in values.iter().zip(&changed) {
                prop_assert!(after.is_finite() && after.abs() <= before.abs());
                prop_assert!(before.signum() == after.signum() || *before == 0.0);
                prop_assert!(*before == 0.0 || (after / before) > 0.8 && (after / before) < 1.0);
            }
            prop_assert!(changed.windows(2).all(|pair| pair[0] <= pair[1]));
        }

        #[test]
        fn a_rounding_stays_a_rounding(seed: u64, value in 1e-6f64..1e6) {
            let change = Change::of(seed);
            let (one, other) = (change.value(value), change.value(value * (1.0 + 1e-12)));
            prop_assert!(((one - other) / one).abs() < 1e-11);
        }
    }
}
