//! Multiplications of matrices beside what the host computes from the matrices alone: integers exactly, f64 as fused
//! multiply-adds, the other formats by the documented model in exact integers of 128 bits, and within its bound of the true sum.

use super::Parameter::{Int, Pointer};
use super::*;
use crate::machine::FaultKind;
use crate::math::half::{Bf16, F16, Half};
use crate::math::minifloat::Minifloat;

const MATRICES: &str = include_str!("cases/matrices.ptx");

/// Numbers that look random.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
}

impl Kind {
    /// Bits of the number, its least exponent, its value.
    fn shape(self) -> (u32, i32) {
        match self {
            Kind::F16 => (16, -14),
            Kind::Bf16 => (16, -126),
            Kind::Tf32 => (32, -126),
            Kind::E4m3 => (8, -6),
            Kind::E5m2 => (8, -14),
        }
    }

    /// The exponent of its subnormal numbers.
    pub(super) fn least(self) -> i32 {
        self.shape().1
    }

    /// The bits of an f16.
    pub(super) fn bits_of(self, value: f64) -> u64 {
        assert_eq!(self, Kind::F16);
        u64::from(crate::math::half::rounded::<F16>(value, crate::math::Rounding::Rn))
    }

    pub(super) fn value(self, bits: u64) -> f64 {
        match self {
            Kind::F16 => f64::from(F16::to_f32(bits as u16)),
            Kind::Bf16 => f64::from(Bf16::to_f32(bits as u16)),
            Kind::Tf32 => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
            Kind::E4m3 => Minifloat::E4m3.to_f64(bits as u8),
            Kind::E5m2 => Minifloat::E5m2.to_f64(bits as u8),
        }
    }

    /// A number near 1, small or large, subnormal, zero.
    pub(super) fn draw(self, draw: &mut Draw) -> u64 {
        let bits = self.shape().0;
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        loop {
            let any = match (draw.bits() % 8, self) {
                (0, _) => 0,
                (1, Kind::F16) => draw.bits() & 0x83ff,
                (1, _) => draw.bits() & 7,
                (2, _) => draw.bits() & mask,
                (_, Kind::F16) => 0x3800 + (draw.bits() & 0x87ff),
                (_, Kind::Bf16) => 0x3f00 + (draw.bits() & 0x80ff),
                (_, Kind::Tf32) => 0x3f00_0000 + (draw.bits() & 0x80ff_ffff),
                (_, _) => draw.bits() & mask,
            };
            // Products of the largest would leave f32.
            if self.value(any).is_finite() && self.value(any).abs() < 1e15 {
                return any & mask;
            }
        }
    }
}

/// Exponent of a number; `least` for a subnormal one. None for zero.
fn exponent(value: f64, least: i32) -> Option<i32> {
    (value != 0.0).then(|| ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least))
}

/// `value · 2^shift`, toward zero. Exact otherwise: values have few bits.
fn units(value: f64, shift: i32) -> i128 {
    let (half, rest) = (shift / 2, shift - shift / 2);
    (value * 2f64.powi(half) * 2f64.powi(rest)) as i128
}

/// The model, for `k` products at once.
pub(super) fn summed(a: &[f64], b: &[f64], c: f64, least: i32, fraction: i32, half: bool) -> f64 {
    let special = a.iter().zip(b).map(|(a, b)| a * b).chain([c]).filter(|p| !p.is_finite());
    if let Some(sum) = special.reduce(|x, y| x + y) {
        return sum;
    }
    let exponents = a.iter().zip(b).filter_map(|(a, b)| Some(exponent(*a, least)? + exponent(*b, least)?));
    let Some(top) = exponents.chain(exponent(c, -126)).max() else { return 0.0 };
    let shift = fraction - top;
    let sum = a.iter().zip(b).map(|(a, b)| units(a * b, shift)).sum::<i128>() + units(c, shift);
    if half {
        return f64::from(F16::to_f32(crate::math::half::rounded::<F16>(
            sum as f64 * 2f64.powi(-shift),
            crate::math::Rounding::Rn,
        )));
    }
    // 24 bits, of `wgmma` with numbers of 8 bits 14, or whole units of 2^-149.
    let magnitude = sum.unsigned_abs();
    let kept = if fraction == 13 { 14 } else { 24 };
    let cut = (128 - magnitude.leading_zeros() as i32 - kept).max(-149 + shift).max(0);
    let kept = (magnitude >> cut << cut) as f64 * 2f64.powi(-shift / 2) * 2f64.powi(-shift - (-shift / 2));
    f64::from((kept * sum.signum() as f64) as f32)
}

/// A kernel of floating-point numbers: its name, the type, m, n, k, products at once, parts.
struct Case(&'static str, Kind, usize, usize, usize, usize);

/// The worst that a sum of `block` products may be off by. Source: `math::tensor`.
fn bound(a: &[f64], b: &[f64], c: f64, result: f64, block: usize) -> f64 {
    let largest = a.iter().zip(b).map(|(a, b)| (a * b).abs()).fold(c.abs(), f64::max);
    let blocks = a.len().div_ceil(block) as f64;
    blocks * ((block + 1) as f64 * largest * 2f64.powi(-25) + result.abs().max(largest) * 2f64.powi(-23))
}

/// The model, and its bound: what is widened to f16 is summed in two halves from zero on.
fn in_blocks(kind: Kind, a: &[f64], b: &[f64], c: f32, block: usize) -> (f64, f64) {
    let widened = matches!(kind, Kind::E4m3 | Kind::E5m2);
    let columns = |half: bool| (0..a.len()).filter(move |i| !widened || (i % 4 < 2) == half);
    let order: Vec<usize> = columns(true).chain(columns(false).filter(|_| widened)).collect();
    let sorted = |all: &[f64]| order.iter().map(|i| all[*i]).collect::<Vec<f64>>();
    let (a, b) = (sorted(a), sorted(b));
    let start = if widened { 0.0 } else { f64::from(c) };
    let blocks = a.chunks(block).zip(b.chunks(block));
    let sum = blocks.fold(start, |sum, (a, b)| summed(a, b, sum, kind.shape().1, 25, false));
    let exact = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>() + f64::from(c);
    let last = if widened { exact.abs() * 2f64.powi(-24) } else { 0.0 };
    let worst = bound(&a, &b, f64::from(c), exact, block) + last;
    (if widened { f64::from(c + sum as f32) } else { sum }, worst)
}

/// Arithmetic of f32, and its bound: of four products, each sum is rounded.
fn one_by_one(a: &[f64], b: &[f64], c: f32) -> (f64, f64) {
    let products: Vec<f32> = a.iter().zip(b).map(|(a, b)| (a * b) as f32).collect();
    let largest = products.iter().fold(c.abs(), |most, product| most.max(product.abs()));
    let worst = (2 + 3 + 4 + 5) as f64 * f64::from(largest) * 2f64.powi(-24);
    (f64::from(c + products.iter().fold(0.0, |sum, product| sum + product)), worst)
}

#[test]
fn floats_are_summed_as_the_model_says() {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(1);
    for Case(name, kind, m, n, k, block) in [
        Case("f16_k16", Kind::F16, 16, 8, 16, 16),
        Case("f16_k8", Kind::F16, 16, 8, 8, 16),
        Case("bf16_k16", Kind::Bf16, 16, 8, 16, 16),
        Case("bf16_k8", Kind::Bf16, 16, 8, 8, 16),
        Case("tf32_k8", Kind::Tf32, 16, 8, 8, 8),
        Case("tf32_k4", Kind::Tf32, 16, 8, 4, 8),
        Case("e4m3_k32", Kind::E4m3, 16, 8, 32, 16),
        Case("e5m2_k32", Kind::E5m2, 16, 8, 32, 16),
        Case("f16_m8", Kind::F16, 32, 8, 4, 4),
    ] {
        // Four multiplications of 8 rows, with columns of `b` of their own.
        let wide = if m == 32 { 32 } else { n };
        for round in 0..4 {
            let mut a: Vec<u64> = (0..m * k).map(|_| kind.draw(&mut draw)).collect();
            let mut b: Vec<u64> = (0..k * wide).map(|_| kind.draw(&mut draw)).collect();
            let mut c: Vec<f32> = (0..m * n).map(|_| (draw.bits() as i8) as f32 / 64.0).collect();
            if round == 3 {
                specials(kind, &mut a, &mut b, &mut c);
            }
            let out = bench.array(&vec![0f32; m * n]);
            let arrays = [bench.array(&a), bench.array(&b), bench.array(&c), out].map(Pointer);
            bench.launch(name, 1, 32, &arrays).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let got = bench.read::<f32>(out, m * n);
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let part = if m == 32 { row / 8 * 8 } else { 0 };
                let row_of_a: Vec<f64> = (0..k).map(|i| kind.value(a[row * k + i])).collect();
                let column_of_b: Vec<f64> = (0..k).map(|i| kind.value(b[i * wide + part + column])).collect();
                let scalar = m == 32;
                let (wanted, worst) = if scalar {
                    one_by_one(&row_of_a, &column_of_b, c[at])
                } else {
                    in_blocks(kind, &row_of_a, &column_of_b, c[at], block)
                };
                let same = f64::from(*got) == wanted || got.is_nan() && wanted.is_nan();
                assert!(same, "{name} {round} [{row}][{column}]: {got:e}, not {wanted:e}");
                assert!(!got.is_nan() || got.to_bits() == 0x7fff_ffff, "{:x}", got.to_bits());
                let exact: f64 =
                    row_of_a.iter().zip(&column_of_b).map(|(a, b)| a * b).sum::<f64>() + f64::from(c[at]);
                assert!(
                    !exact.is_finite() || (exact - wanted).abs() <= worst,
                    "{name}: {exact:e} {wanted:e}"
                );
            }
        }
    }
}

/// Infinities and NaN in some rows and columns; an infinity times zero.
fn specials(kind: Kind, a: &mut [u64], b: &mut [u64], c: &mut [f32]) {
    let (infinity, negative) = match kind {
        Kind::F16 => (0x7c00, 0xfc00),
        Kind::Bf16 => (0x7f80, 0xff80),
        Kind::Tf32 => (0x7f80_0000, 0xff80_0000),
        Kind::E4m3 => (0x7f, 0xff),
        Kind::E5m2 => (0x7c, 0xfc),
    };
    a[1] = infinity;
    b[3] = negative;
    c[20] = f32::NAN;
    c[21] = f32::NEG_INFINITY;
    c[22] = f32::from_bits(3);
}

/// Of each four elements of a row of `a` two are there, of tf32 one of each two; the metadata says which.
#[test]
fn sparse_rows_are_spread() {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(6);
    for (name, kind, k, block) in [
        ("sparse_f16_k32", Kind::F16, 32, 32),
        ("sparse_f16_k16", Kind::F16, 16, 32),
        ("sparse_tf32_k16", Kind::Tf32, 16, 16),
    ] {
        let a: Vec<u64> = (0..16 * k / 2).map(|_| kind.draw(&mut draw)).collect();
        let b: Vec<u64> = (0..k * 8).map(|_| kind.draw(&mut draw)).collect();
        let c: Vec<f32> = (0..128).map(|at| at as f32 / 8.0).collect();
        let mut whole = vec![0u64; 16 * k];
        let mut metadata = vec![0u32; 16];
        for row in 0..16 {
            for chunk in 0..if kind == Kind::F16 { k / 4 } else { k / 2 } {
                let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
                let (low, high) = pairs[draw.bits() as usize % 6];
                let bits = if kind == Kind::F16 {
                    whole[row * k + 4 * chunk + low] = a[row * k / 2 + 2 * chunk];
                    whole[row * k + 4 * chunk + high] = a[row * k / 2 + 2 * chunk + 1];
                    low as u32 | (high as u32) << 2
                } else {
                    whole[row * k + 2 * chunk + low % 2] = a[row * k / 2 + chunk];
                    if low % 2 == 1 { 0b1110 } else { 0b0100 }
                };
                metadata[row] |= bits << (4 * chunk);
            }
        }
        let out = bench.array(&[0f32; 128]);
        let arrays =
            [bench.array(&a), bench.array(&metadata), bench.array(&b), bench.array(&c), out].map(Pointer);
        bench.launch(name, 1, 32, &arrays).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        for (at, got) in bench.read::<f32>(out, 128).iter().enumerate() {
            let row: Vec<f64> = (0..k).map(|i| kind.value(whole[at / 8 * k + i])).collect();
            let column: Vec<f64> = (0..k).map(|i| kind.value(b[i * 8 + at % 8])).collect();
            let steps = row.chunks(block).zip(column.chunks(block));
            let wanted = steps.fold(f64::from(c[at]), |sum, (row, column)| {
                summed(row, column, sum, kind.shape().1, 25, false)
            });
            assert_eq!(f64::from(*got), wanted, "{name} {at}");
        }
    }
}

#[test]
fn sparse_rows_of_integers_are_spread() {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(9);
    // Elements of a chunk, and how many lie together.
    for (name, bits, k, wide, together) in
        [("sparse_s8_k64", 8, 64, 4, 1), ("sparse_s8_k32", 8, 32, 4, 1), ("sparse_s4_k128", 4, 128, 8, 2)]
    {
        let mut cells = |count: usize| (0..count).map(|_| draw.bits() & ((1 << bits) - 1)).collect();
        let (a, b): (Vec<u64>, Vec<u64>) = (cells(16 * k / 2), cells(k * 8));
        let (mut whole, mut metadata) = (vec![0u64; 16 * k], vec![0u32; 32]);
        for row in 0..16 {
            for chunk in 0..k / wide {
                let (low, high) = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][draw.bits() as usize % 6];
                metadata[row * 2 + chunk / 8] |= (low as u32 | (high as u32) << 2) << (chunk % 8 * 4);
                for i in 0..wide / 2 {
                    let place = [low, high][i / together] * together + i % together;
                    whole[row * k + chunk * wide + place] = a[row * k / 2 + chunk * wide / 2 + i];
                }
            }
        }
        let (c, out) = (bench.array(&[11i32; 128]), bench.array(&[0i32; 128]));
        let arrays = [bench.array(&a), bench.array(&metadata), bench.array(&b), c, out].map(Pointer);
        bench.launch(name, 1, 32, &arrays).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let signed = |cell: u64| ((cell << (64 - bits)) as i64 >> (64 - bits)) as i32;
        for (at, got) in bench.read::<i32>(out, 128).iter().enumerate() {
            let pair = |i: usize| signed(whole[at / 8 * k + i]) * signed(b[i * 8 + at % 8]);
            assert_eq!(*got, 11 + (0..k).map(pair).sum::<i32>(), "{name} {at}");
        }
    }
}

#[test]
fn halves_are_rounded_once() {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(2);
    let a: Vec<u64> = (0..16 * 16).map(|_| Kind::F16.draw(&mut draw)).collect();
    let b: Vec<u64> = (0..16 * 8).map(|_| Kind::F16.draw(&mut draw)).collect();
    let c: Vec<u16> = (0..16 * 8).map(|_| Kind::F16.draw(&mut draw) as u16).collect();
    let out = bench.array(&[0u16; 128]);
    let arrays = [bench.array(&a), bench.array(&b), bench.array(&c), out].map(Pointer);
    bench.launch("f16_half", 1, 32, &arrays).unwrap();
    for (at, got) in bench.read::<u16>(out, 128).iter().enumerate() {
        let row: Vec<f64> = (0..16).map(|i| Kind::F16.value(a[at / 8 * 16 + i])).collect();
        let column: Vec<f64> = (0..16).map(|i| Kind::F16.value(b[i * 8 + at % 8])).collect();
        let wanted = summed(&row, &column, Kind::F16.value(u64::from(c[at])), -14, 25, true);
        assert_eq!(f64::from(F16::to_f32(*got)), wanted, "{at}");
    }
}

#[test]
fn doubles_are_fused_in_order() {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(3);
    let one = |draw: &mut Draw| (draw.bits() as i32 as f64) / 3e6;
    for (name, m, k) in [("f64_m8", 8, 4), ("f64_k4", 16, 4), ("f64_k8", 16, 8), ("f64_k16", 16, 16)] {
        let a: Vec<f64> = (0..m * k).map(|_| one(&mut draw)).collect();
        let b: Vec<f64> = (0..k * 8).map(|_| one(&mut draw)).collect();
        let c: Vec<f64> = (0..m * 8).map(|_| one(&mut draw)).collect();
        let out = bench.array(&vec![0f64; m * 8]);
        let arrays = [bench.array(&a), bench.array(&b), bench.array(&c), out].map(Pointer);
        bench.launch(name, 1, 32, &arrays).unwrap();
        for (at, got) in bench.read::<f64>(out, m * 8).iter().enumerate() {
            let wanted = (0..k).fold(c[at], |sum, i| a[at / 8 * k + i].mul_add(b[i * 8 + at % 8], sum));
            assert_eq!(*got, wanted, "{name} {at}");
        }
    }
}

#[test]
fn integers_and_bits_are_exact() {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(4);
    // Bits, and whether a and b are signed.
    for (name, m, k, bits, signed_a, signed_b) in [
        ("s8_k32", 16, 32, 8, true, true),
        ("u8_s8_k32", 16, 32, 8, false, true),
        ("s8_k32_sat", 16, 32, 8, true, true),
        ("s8_k16", 16, 16, 8, true, true),
        ("s8_m8", 8, 16, 8, true, true),
        ("s4_k64", 16, 64, 4, true, true),
        ("u4_k32", 16, 32, 4, false, false),
        ("s4_m8", 8, 32, 4, true, true),
        ("b1_xor", 16, 256, 1, false, false),
        ("b1_and", 16, 256, 1, false, false),
        ("b1_m8", 8, 128, 1, false, false),
    ] {
        let mut cell = |_| draw.bits() & ((1 << bits) - 1);
        let a: Vec<u64> = (0..m * k).map(&mut cell).collect();
        let b: Vec<u64> = (0..k * 8).map(&mut cell).collect();
        let mut c: Vec<i32> = (0..m * 8).map(|at| at as i32 * 1000 - 7).collect();
        (c[3], c[4]) = (i32::MAX - 1, i32::MIN + 1);
        let out = bench.array(&vec![0i32; m * 8]);
        let arrays = [bench.array(&a), bench.array(&b), bench.array(&c), out].map(Pointer);
        bench.launch(name, 1, 32, &arrays).unwrap();
        let seen = |cell: u64, signed: bool| match signed {
            true => (cell << (64 - bits)) as i64 >> (64 - bits),
            false => cell as i64,
        };
        for (at, got) in bench.read::<i32>(out, m * 8).iter().enumerate() {
            let pairs = (0..k).map(|i| (a[at / 8 * k + i], b[i * 8 + at % 8]));
            let sum: i64 = match name {
                "b1_xor" | "b1_m8" => pairs.map(|(a, b)| (a ^ b) as i64).sum(),
                "b1_and" => pairs.map(|(a, b)| (a & b) as i64).sum(),
                _ => pairs.map(|(a, b)| seen(a, signed_a) * seen(b, signed_b)).sum(),
            };
            let whole = i64::from(c[at]) + sum;
            let wanted = if name.ends_with("sat") {
                whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
            } else {
                whole as i32
            };
            assert_eq!(*got, wanted, "{name} {at}");
        }
    }
}

/// Runs a kernel of `wmma` on matrices of small integers, whose sums are exact in every format; what it gives is 2 (a b + c).
fn wide<T: Copy + Default, R: Copy + Default>(
    name: &str,
    [m, n, k]: [usize; 3],
    (a_by_columns, b_by_columns): (bool, bool),
    make: fn(i32) -> T,
    make_sum: fn(i32) -> R,
    value: fn(R) -> f64,
) {
    let bench = Bench::new(&[MATRICES]);
    let mut draw = Draw(5);
    let mut small = |_| (draw.bits() % 7) as i32;
    let a: Vec<i32> = (0..m * k).map(&mut small).collect();
    let b: Vec<i32> = (0..k * n).map(&mut small).collect();
    let c: Vec<i32> = (0..m * n).map(&mut small).collect();
    let laid = |matrix: &[i32], rows: usize, columns: usize, by_columns: bool| -> Vec<T> {
        let at = |i: usize| if by_columns { i % rows * columns + i / rows } else { i };
        (0..rows * columns).map(|i| make(matrix[at(i)])).collect()
    };
    let of_c: Vec<R> = c.iter().map(|c| make_sum(*c)).collect();
    let out = bench.array(&vec![R::default(); m * n]);
    let arrays = [
        bench.array(&laid(&a, m, k, a_by_columns)),
        bench.array(&laid(&b, k, n, b_by_columns)),
        bench.array(&of_c),
        out,
    ];
    let counters = bench.launch(name, 1, 32, &arrays.map(Pointer)).unwrap();
    for (at, got) in bench.read::<R>(out, m * n).iter().enumerate() {
        let sum: i32 = (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum();
        assert_eq!(value(*got), f64::from(2 * (sum + c[at])), "{name} {at}");
    }
    let tensor =
        |i: &&crate::counters::InstructionCounters| i.class() == crate::counters::InstructionClass::Tensor;
    assert_eq!(counters.instructions.iter().filter(tensor).map(|i| i.count.warps).sum::<u64>(), 1);
    // Each element of `a`, `b` and `c` is read once, and each of the result written.
    let bytes = (m * k + k * n) * size_of::<T>() + 2 * m * n * size_of::<R>();
    assert!(counters.total().bytes as usize >= bytes, "{name}: {} of {bytes}", counters.total().bytes);
}

#[test]
fn fragments_of_wmma_fit_together() {
    let f16 = |x: i32| crate::math::convert::f32_to_half::<F16>(x as f32, crate::math::Mode::RN);
    let bf16 = |x: i32| ((x as f32).to_bits() >> 16) as u16;
    let same = |x: i32| x as f32;
    let of_f32 = |x: f32| f64::from(x);
    wide("wmma_f16_16", [16, 16, 16], (false, true), f16, same, of_f32);
    wide("wmma_f16_32", [32, 8, 16], (false, false), f16, same, of_f32);
    wide("wmma_f16_8", [8, 32, 16], (true, true), f16, same, of_f32);
    wide("wmma_bf16_32", [32, 8, 16], (false, true), bf16, same, of_f32);
    wide("wmma_half", [16, 16, 16], (false, false), f16, f16, |x: u16| f64::from(F16::to_f32(x)));
    wide("wmma_s8_8", [8, 32, 16], (false, true), |x| x as i8, |x| x, f64::from);
    wide("wmma_u8_32", [32, 8, 16], (false, false), |x| x as u8, |x| x, f64::from);
    wide("wmma_f64", [8, 8, 4], (false, true), f64::from, f64::from, |x| x);
    wide("wmma_tf32", [16, 16, 8], (false, false), |x| x as f32, same, of_f32);
}

#[test]
fn rows_are_dealt_to_lanes() {
    let bench = Bench::new(&[MATRICES]);
    let out = bench.array(&[0u32; 480]);
    let counters = bench.launch("rows", 1, 32, &[Pointer(out)]).unwrap();
    let got = bench.read::<u32>(out, 480);
    let pair = |m: usize, at: [usize; 2]| (64 * m + at[0]) as u32 | ((64 * m + at[1]) as u32) << 16;
    for lane in 0..32 {
        let (major, minor) = (lane / 4, 2 * (lane % 4));
        let (straight, turned) =
            ([major * 8 + minor, major * 8 + minor + 1], [minor * 8 + major, minor * 8 + 8 + major]);
        for m in 0..4 {
            assert_eq!(got[m * 32 + lane], pair(m, straight), "{m} {lane}");
        }
        for m in 0..2 {
            assert_eq!(got[384 + m * 32 + lane], pair(m, turned), "{m} {lane}");
        }
        assert_eq!(got[448 + lane], pair(0, turned), "{lane}");
    }
    for (at, got) in got[128..384].iter().enumerate() {
        let (m, row, column) = (at / 64, at % 64 / 8, at % 8);
        assert_eq!(*got as usize, 64 * m + column * 8 + row);
    }
    // Four matrices of 128 bytes take four wavefronts.
    let of =
        |opcode: &str| counters.instructions.iter().find(|i| i.opcode.starts_with(opcode)).unwrap().count;
    let loaded = of("ldmatrix.sync.aligned.m8n8.x4");
    assert_eq!((loaded.wavefronts, loaded.bytes), (4, 512));
}

#[test]
fn lanes_that_come_early_wait() {
    let bench = Bench::new(&[MATRICES]);
    let out = bench.array(&[0u32; 64]);
    bench.launch("late", 1, 32, &[Pointer(out)]).unwrap();
    for (lane, got) in bench.read::<u32>(out, 32).iter().enumerate() {
        let (row, column) = (lane as u32 / 4, 2 * (lane as u32 % 4));
        assert_eq!(*got, (column * 8 + row) | ((column + 1) * 8 + row) << 16, "{lane}");
    }
    assert_eq!(bench.read::<u32>(out + 128 + 60, 2), [4999 * 2500, 0]);
}

#[test]
fn wrong_rows_are_found() {
    let bench = Bench::new(&[MATRICES]);
    let out = bench.array(&[0u32; 32]);
    for (how, kind) in [(0, FaultKind::IllegalAddress), (1, FaultKind::Misaligned)] {
        let fault = bench.launch("wrong_rows", 1, 32, &[Int(how), Pointer(out)]).unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains("ldmatrix") && fault.place.is_some(), "{fault}");
    }
    let kinds = bench.defects("wrong_rows", 32, 0, &[Int(2), Pointer(out)]);
    assert_eq!(kinds, [crate::checks::DefectKind::UninitialisedRead], "{kinds:?}");
}
