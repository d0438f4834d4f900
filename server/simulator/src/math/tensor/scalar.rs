//! `mma.m8n8k4` of f16, for which tensor cores after Volta's have no instruction.
//!
//! The compiler makes instructions of f32 of it, each rounded to nearest: with results of f32 a fused multiply-add for each product, from
//! zero on, in the order of `k`, and then an addition of the accumulator; with results of f16 the products in pairs, each
//! pair added to the accumulator, and a conversion at the end. Source: the machine code that nvcc 13.5 makes for sm_90, and an H200's results.

use super::super::single;
use super::{ABSENT, Parts, Width, half_of};

/// The number, which is an f16: products of two are exact in f32.
fn value(parts: &Parts, at: usize) -> f32 {
    let (significand, exponent) = (parts.significands[at], parts.exponents[at]);
    let scale = f32::from_bits(((exponent + 127).clamp(1, 254) as u32) << 23);
    significand * scale
}

/// `c += a · b`, where rows of `a` have four columns that are there.
pub(super) fn multiply(a: &Parts, b: &Parts, c: &mut [f32], [m, n, k]: [usize; 3], width: Width) {
    for row in 0..m {
        let there = (0..k).filter(|column| a.exponents[row * k + column] != ABSENT);
        let columns: Vec<usize> = there.collect();
        for column in 0..n {
            let products = columns.iter().map(|i| value(a, row * k + i) * value(b, i * n + column));
            let c = &mut c[row * n + column];
            let sum = match width {
                Width::Single => *c + products.fold(0.0, |sum, product| sum + product),
                Width::Half => pairs(*c, products),
            };
            *c = if width == Width::Half { half_of(f64::from(sum)) } else { sum };
            *c = single::canonical(*c);
        }
    }
}

fn pairs(c: f32, mut products: impl Iterator<Item = f32>) -> f32 {
    let mut sum = c;
    while let (Some(first), Some(second)) = (products.next(), products.next()) {
        sum += first + second;
    }
    sum
}
