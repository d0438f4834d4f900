//! The inputs of `tests/h200/tensors`, as `numbers.h` there makes them.

/// What the inputs of a line are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Uniform,
    Wide,
    Far,
    Cancelling,
    Subnormal,
    Special,
    Integers,
    Few,
}

pub const KINDS: [(&str, Kind); 8] = [
    ("uniform", Kind::Uniform),
    ("wide", Kind::Wide),
    ("far", Kind::Far),
    ("cancelling", Kind::Cancelling),
    ("subnormal", Kind::Subnormal),
    ("special", Kind::Special),
    ("integers", Kind::Integers),
    ("few", Kind::Few),
];

/// A format: bits in memory, of its exponent (0: an integer), of its mantissa.
#[derive(Clone, Copy)]
pub struct Format {
    pub bits: u32,
    exponent: u32,
    mantissa: u32,
}

pub fn format(name: &str) -> Option<Format> {
    let (bits, exponent, mantissa) = match name {
        "f16" => (16, 5, 10),
        "bf16" => (16, 8, 7),
        "tf32" => (32, 8, 10),
        "f32" => (32, 8, 23),
        "f64" => (64, 11, 52),
        "e4m3" => (8, 4, 3),
        "e5m2" => (8, 5, 2),
        "s32" => (32, 0, 0),
        "s8" | "u8" => (8, 0, 0),
        "s4" | "u4" => (4, 0, 0),
        "b1" => (1, 0, 0),
        _ => return None,
    };
    Some(Format { bits, exponent, mantissa })
}

/// FNV-1a of 64 bits.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: i32) -> i32 {
        (self.next() >> 33) as i32 % n
    }

    /// That of a tile's input.
    pub fn of(line: &str, kind: Kind, number: usize, tile: usize) -> Self {
        let start = hash(line.as_bytes())
            .wrapping_add((kind as u64) << 40)
            .wrapping_add((number as u64) << 32)
            .wrapping_add(tile as u64);
        let mut random = Self(start);
        Self(random.next())
    }

    /// Metadata of a sparse matrix: two of four, or, of 32 bits, one of two.
    pub fn metadata(&mut self, bytes: usize, of_32: bool) -> Vec<u8> {
        let choices: &[u8] = if of_32 { &[0x4, 0xe] } else { &[0x4, 0x8, 0x9, 0xc, 0xd, 0xe] };
        let mut draw = || choices[self.below(choices.len() as i32) as usize];
        (0..bytes).map(|_| draw() | draw() << 4).collect()
    }

    /// `bytes` of numbers. `sum`: what products are added to.
    pub fn fill(&mut self, bytes: usize, f: Format, kind: Kind, sum: bool) -> Vec<u8> {
        let mut to = vec![0; bytes];
        for bit in (0..bytes * 8).step_by(f.bits as usize) {
            let value = if f.exponent == 0 { self.integer(f, kind) } else { self.real(f, kind, sum) };
            if f.bits < 8 {
                to[bit / 8] |= (value << (bit % 8)) as u8;
            } else {
                let size = f.bits as usize / 8;
                to[bit / 8..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
        to
    }

    fn integer(&mut self, f: Format, kind: Kind) -> u64 {
        let bits = self.next() >> (64 - f.bits);
        if f.bits == 32 {
            return match kind {
                Kind::Uniform => u64::from((bits as i32 >> self.below(32)) as u32),
                _ => u64::from(0x8000_0000u32.wrapping_add((self.below(1 << 18) - (1 << 17)) as u32)),
            };
        }
        if kind == Kind::Uniform || f.bits == 1 {
            return bits;
        }
        let end = [0x7f, 0x80, 0xff, 0x81][self.below(4) as usize];
        (if f.bits == 8 { end } else { end >> 4 }) & ((1 << f.bits) - 1)
    }

    fn real(&mut self, f: Format, kind: Kind, sum: bool) -> u64 {
        let (bias, most) = ((1 << (f.exponent - 1)) - 1, (1 << f.exponent) - 1);
        let sign = self.below(2);
        let mantissa = self.next() >> (64 - f.mantissa);
        let low = if f.is_tf32() && kind == Kind::Wide { self.next() >> 51 } else { 0 };
        let spread = match f.exponent {
            11 => 30,
            _ => 14.min(bias - 1),
        } * if sum && f.exponent >= 8 { 2 } else { 1 };
        match kind {
            Kind::Few if self.below(8) >= if sum { 4 } else { 1 } => f.compose(sign, 0, 0),
            Kind::Few => f.compose(sign, bias + self.below(2 * spread + 1) - spread, mantissa),
            Kind::Wide => f.compose(sign, bias + self.below(2 * spread + 1) - spread, mantissa) | low,
            Kind::Far => {
                let mantissa = if f.exponent == 4 { mantissa.min(6) } else { mantissa };
                f.compose(sign, 1 + self.below(if f.exponent == 4 { most } else { most - 1 }), mantissa)
            }
            Kind::Cancelling => {
                // The last argument is computed first.
                let mantissa = self.below(4) as u64;
                f.compose(sign, bias + self.below(2), mantissa)
            }
            Kind::Subnormal if f.exponent < 8 => {
                let field = if self.below(6) < 3 { 0 } else { self.below(4) };
                f.compose(sign, field, mantissa)
            }
            Kind::Subnormal => {
                let half = bias / 2;
                let fields = [0, 1, half, half - 1, half - 3, half - 7, bias];
                let sums = [0, 0, 1, 2, 10, bias - 48, bias - 30];
                f.compose(sign, if sum { sums } else { fields }[self.below(7) as usize], mantissa)
            }
            Kind::Integers => f.whole(sign, self.below(8)),
            Kind::Special if self.below(40) == 0 => f.special(sign, self.below(8)),
            Kind::Uniform | Kind::Special => {
                let down = 1 + (self.next().trailing_ones() as i32).min(5);
                f.compose(sign, (bias - down).max(1), mantissa)
            }
        }
    }
}

impl Format {
    fn is_tf32(self) -> bool {
        self.mantissa == 10 && self.bits == 32
    }

    fn compose(self, sign: i32, field: i32, mantissa: u64) -> u64 {
        let shift = if self.is_tf32() { 13 } else { 0 };
        (((sign as u64) << self.exponent | field as u64) << self.mantissa | mantissa) << shift
    }

    fn whole(self, sign: i32, value: i32) -> u64 {
        if value == 0 {
            return self.compose(sign, 0, 0);
        }
        let top = value.ilog2();
        let mantissa = (value as u64 - (1 << top)) << self.mantissa >> top;
        self.compose(sign, (1 << (self.exponent - 1)) - 1 + top as i32, mantissa)
    }

    /// Infinities, NaN, zeros, the largest number.
    fn special(self, sign: i32, which: i32) -> u64 {
        let (most, all) = ((1 << self.exponent) - 1, (1u64 << self.mantissa) - 1);
        match (which, self.exponent == 4) {
            (0..=3, true) => self.compose(sign, most, all),
            (0..=2, false) => self.compose(sign, most, 0),
            (3, false) => self.compose(sign, most, all - 1),
            (4 | 5, _) => self.compose(sign, 0, 0),
            (_, true) => self.compose(sign, most, all - 1),
            (_, false) => self.compose(sign, most - 1, all),
        }
    }
}
