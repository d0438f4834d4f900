//! The functions of `math` by the names of their instructions: floating-point numbers and conversions.

use super::whole::{video, whole};
use crate::math::convert::{self, Integer, Tf32Rounding};
use crate::math::half::{self, Bf16, F16, Half};
use crate::math::minifloat::Minifloat;
use crate::math::{Class, Comparison, Extremum, IntegerRounding, Mode, Rounding, double, single};

/// What an instruction gives for the bits of its inputs; nothing where no function of `math` is meant by it.
pub fn evaluate(name: &str, x: &[u64]) -> Option<u64> {
    let words: Vec<&str> = name.split('.').collect();
    let has = |word: &str| words.contains(&word);
    let last = *words.last()?;
    match words[0] {
        "cvt" if has("pack") => pack(&words, x),
        "cvt" => cvt(&words, x),
        "set" => compare(&words, last, x),
        "testp" => testp(words[1], last, x),
        _ if matches!(last, "f32" | "f64" | "f16" | "bf16") => float(&words, last, x),
        _ if words[0].starts_with('v') => video(&words, x),
        _ => whole(&words, x),
    }
}

fn rounding_of(words: &[&str]) -> Rounding {
    match words.iter().find(|word| matches!(**word, "rz" | "rm" | "rp")) {
        Some(&"rz") => Rounding::Rz,
        Some(&"rm") => Rounding::Rm,
        Some(&"rp") => Rounding::Rp,
        _ => Rounding::Rn,
    }
}

fn integer_rounding_of(words: &[&str]) -> Option<IntegerRounding> {
    words.iter().find_map(|word| match *word {
        "rni" => Some(IntegerRounding::Rni),
        "rzi" => Some(IntegerRounding::Rzi),
        "rmi" => Some(IntegerRounding::Rmi),
        "rpi" => Some(IntegerRounding::Rpi),
        _ => None,
    })
}

fn mode_of(words: &[&str]) -> Mode {
    let has = |word: &str| words.contains(&word);
    Mode { rounding: rounding_of(words), ftz: has("ftz"), saturate: has("sat"), relu: has("relu") }
}

fn float(words: &[&str], ty: &str, x: &[u64]) -> Option<u64> {
    match ty {
        "f32" => single(words, x),
        "f64" => double(words, x),
        "f16" => narrow::<F16>(words, x),
        _ => narrow::<Bf16>(words, x),
    }
}

fn extremum_of(words: &[&str]) -> Extremum {
    let has = |word: &str| words.contains(&word);
    Extremum { ftz: has("ftz"), nan: has("NaN"), abs: has("abs"), xorsign: has("xorsign") }
}

fn single(words: &[&str], x: &[u64]) -> Option<u64> {
    let (mode, f) = (mode_of(words), |at: usize| f32::from_bits(x[at] as u32));
    let result = match words[0] {
        "add" => single::add(f(0), f(1), mode),
        "sub" => single::sub(f(0), f(1), mode),
        "mul" => single::mul(f(0), f(1), mode),
        "fma" => single::fma(f(0), f(1), f(2), mode),
        "div" if words[1] != "approx" && words[1] != "full" => single::div(f(0), f(1), mode),
        "rcp" if words[1] != "approx" => single::rcp(f(0), mode),
        "sqrt" if words[1] != "approx" => single::sqrt(f(0), mode),
        "min" => single::min(f(0), f(1), extremum_of(words)),
        "max" => single::max(f(0), f(1), extremum_of(words)),
        "abs" => single::abs(f(0), mode.ftz),
        "neg" => single::neg(f(0), mode.ftz),
        "copysign" => single::copysign(f(0), f(1)),
        _ => return None,
    };
    Some(u64::from(result.to_bits()))
}

fn double(words: &[&str], x: &[u64]) -> Option<u64> {
    let (rounding, f) = (rounding_of(words), |at: usize| f64::from_bits(x[at]));
    let result = match words[0] {
        "add" => double::add(f(0), f(1), rounding),
        "sub" => double::sub(f(0), f(1), rounding),
        "mul" => double::mul(f(0), f(1), rounding),
        "fma" => double::fma(f(0), f(1), f(2), rounding),
        "div" => double::div(f(0), f(1), rounding),
        "rcp" if words[1] != "approx" => double::rcp(f(0), rounding),
        "sqrt" => double::sqrt(f(0), rounding),
        "min" => double::min(f(0), f(1), extremum_of(words)),
        "max" => double::max(f(0), f(1), extremum_of(words)),
        "abs" => double::abs(f(0)),
        "neg" => double::neg(f(0)),
        "copysign" => f(1).copysign(f(0)),
        _ => return None,
    };
    Some(result.to_bits())
}

fn narrow<H: Half>(words: &[&str], x: &[u64]) -> Option<u64> {
    let (mode, h) = (mode_of(words), |at: usize| x[at] as u16);
    let result = match words[0] {
        "add" => half::add::<H>(h(0), h(1), mode),
        "sub" => half::sub::<H>(h(0), h(1), mode),
        "mul" => half::mul::<H>(h(0), h(1), mode),
        "fma" => half::fma::<H>(h(0), h(1), h(2), mode),
        "min" => half::min::<H>(h(0), h(1), extremum_of(words)),
        "max" => half::max::<H>(h(0), h(1), extremum_of(words)),
        "abs" => half::abs::<H>(h(0), mode.ftz),
        "neg" => half::neg::<H>(h(0), mode.ftz),
        _ => return None,
    };
    Some(u64::from(result))
}

fn compare(words: &[&str], ty: &str, x: &[u64]) -> Option<u64> {
    let comparison = Comparison::named(words[1])?;
    let ftz = words.contains(&"ftz");
    let flush = |bits: u64| {
        let value = f32::from_bits(bits as u32);
        if ftz { single::flush(value) } else { value }
    };
    let holds = match ty {
        "f32" => comparison.holds(flush(x[0]), flush(x[1])),
        "f64" => comparison.holds(f64::from_bits(x[0]), f64::from_bits(x[1])),
        "f16" => half::compare::<F16>(x[0] as u16, x[1] as u16, comparison, ftz),
        "bf16" => half::compare::<Bf16>(x[0] as u16, x[1] as u16, comparison, ftz),
        _ => {
            let of = integer_named(ty)?;
            comparison.holds(extended(x[0], of), extended(x[1], of))
        }
    };
    Some(if holds { 0xffff_ffff } else { 0 })
}

fn testp(class: &str, ty: &str, x: &[u64]) -> Option<u64> {
    let class = match class {
        "finite" => Class::Finite,
        "infinite" => Class::Infinite,
        "number" => Class::Number,
        "notanumber" => Class::NotANumber,
        "normal" => Class::Normal,
        _ => Class::Subnormal,
    };
    Some(u64::from(match ty {
        "f32" => single::is_class(f32::from_bits(x[0] as u32), class),
        _ => class.holds(f64::from_bits(x[0])),
    }))
}

pub(super) fn integer_named(name: &str) -> Option<Integer> {
    let (kind, bits) = name.split_at(1);
    let bits = bits.parse().ok()?;
    matches!(kind, "u" | "s").then_some(Integer { bits, signed: kind == "s" })
}

/// The value of an integer held in the low bits of a register.
pub(super) fn extended(bits: u64, of: Integer) -> i128 {
    let above = 64 - of.bits;
    if of.signed { i128::from((bits << above) as i64 >> above) } else { i128::from(bits << above >> above) }
}

fn pack(words: &[&str], x: &[u64]) -> Option<u64> {
    let to = integer_named(words[3])?;
    let c = x.get(2).copied().unwrap_or(0) as u32;
    Some(u64::from(convert::pack(x[0] as i32, x[1] as i32, c, to)))
}

/// Registers of 32 bits hold narrower integers; what is above them in the 64 bits that were written is zero.
fn stored(value: u64, to: Integer) -> u64 {
    match to.bits {
        8 | 32 => value & 0xffff_ffff,
        16 => value & 0xffff,
        _ => value,
    }
}

fn cvt(words: &[&str], x: &[u64]) -> Option<u64> {
    let (to, from) = (words[words.len() - 2], words[words.len() - 1]);
    let mode = mode_of(words);
    let finite = words.contains(&"satfinite");
    if matches!(to, "f16x2" | "bf16x2") && from == "f32" {
        let high = f32_to_half(to.trim_end_matches("x2"), x[0], mode, finite);
        return Some(high << 16 | f32_to_half(to.trim_end_matches("x2"), x[1], mode, finite));
    }
    if let Some(result) = minifloat(to, from, x, mode.relu) {
        return Some(result);
    }
    match (integer_named(to), integer_named(from)) {
        (Some(to), Some(from)) => {
            let value = extended(x[0], from);
            Some(stored(
                if mode.saturate { convert::saturate_int(value, to) } else { truncated(value, to) },
                to,
            ))
        }
        (Some(to), None) => to_int(words, from, x[0], to, mode.ftz),
        (None, Some(of)) => Some(from_int(to, extended(x[0], of), mode.rounding)),
        (None, None) => between_floats(words, to, from, x[0], mode, finite),
    }
}

fn truncated(value: i128, to: Integer) -> u64 {
    extended(value as u64, to) as u64
}

fn minifloat(to: &str, from: &str, x: &[u64], relu: bool) -> Option<u64> {
    let named = |name: &str| match name {
        "e4m3x2" => Some(Minifloat::E4m3),
        "e5m2x2" => Some(Minifloat::E5m2),
        _ => None,
    };
    if let Some(from) = named(from) {
        return Some(u64::from(from.pair_to_half::<F16>(x[0] as u16, relu)));
    }
    let to = named(to)?;
    Some(u64::from(match from {
        "f32" => to.pair_from_f32(f32::from_bits(x[0] as u32), f32::from_bits(x[1] as u32), relu),
        _ => to.pair_from_half::<F16>(x[0] as u32, relu),
    }))
}

fn to_int(words: &[&str], from: &str, bits: u64, to: Integer, ftz: bool) -> Option<u64> {
    let rounding = integer_rounding_of(words)?;
    let wide = match from {
        "f64" => return Some(stored(convert::double_to_int(f64::from_bits(bits), rounding, to), to)),
        "f32" if ftz => f64::from(single::flush(f32::from_bits(bits as u32))),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        "f16" => f64::from(F16::to_f32(bits as u16)),
        _ => f64::from(Bf16::to_f32(bits as u16)),
    };
    Some(stored(convert::float_to_int(wide, rounding, to), to))
}

fn from_int(to: &str, value: i128, rounding: Rounding) -> u64 {
    let signed = value < 0;
    match to {
        "f32" if signed => u64::from(convert::s64_to_f32(value as i64, rounding).to_bits()),
        "f32" => u64::from(convert::u64_to_f32(value as u64, rounding).to_bits()),
        "f64" if signed => convert::s64_to_f64(value as i64, rounding).to_bits(),
        "f64" => convert::u64_to_f64(value as u64, rounding).to_bits(),
        "f16" => u64::from(convert::int_to_half::<F16>(value, rounding)),
        _ => u64::from(convert::int_to_half::<Bf16>(value, rounding)),
    }
}

fn f32_to_half(to: &str, bits: u64, mode: Mode, finite: bool) -> u64 {
    let value = f32::from_bits(bits as u32);
    u64::from(match (to, finite) {
        ("f16", false) => convert::f32_to_half::<F16>(value, mode),
        ("f16", true) => convert::f32_to_half_finite::<F16>(value, mode),
        (_, false) => convert::f32_to_half::<Bf16>(value, mode),
        (_, true) => convert::f32_to_half_finite::<Bf16>(value, mode),
    })
}

fn between_floats(words: &[&str], to: &str, from: &str, bits: u64, mode: Mode, finite: bool) -> Option<u64> {
    let (s, d, h) = (f32::from_bits(bits as u32), f64::from_bits(bits), bits as u16);
    let of_f32 = |value: f32| Some(u64::from(value.to_bits()));
    let of_half = |value: u16| Some(u64::from(value));
    match (integer_rounding_of(words), to, from) {
        (Some(rounding), "f32", "f32") => of_f32(convert::round_f32(s, rounding, mode)),
        (Some(rounding), "f64", "f64") => Some(convert::round_f64(d, rounding).to_bits()),
        (Some(rounding), "f16", "f16") => of_half(convert::round_half::<F16>(h, rounding, mode)),
        (Some(rounding), "bf16", "bf16") => of_half(convert::round_half::<Bf16>(h, rounding, mode)),
        (_, "tf32", "f32") => {
            let rounding = match words {
                _ if words.contains(&"rna") => Tf32Rounding::Rna,
                _ if words.contains(&"rz") => Tf32Rounding::Rz,
                _ => Tf32Rounding::Rn,
            };
            of_f32(convert::f32_to_tf32(s, rounding, mode.relu, finite))
        }
        (_, "f16" | "bf16", "f32") => Some(f32_to_half(to, bits, mode, finite)),
        (_, "f32", "f64") => of_f32(convert::f64_to_f32(d, mode)),
        (_, "f32", "f32") => of_f32(convert::f32_to_f32(s, mode)),
        (_, "f64", "f32") => Some(convert::f32_to_f64(s, mode).to_bits()),
        (_, "f32", "f16") => of_f32(convert::f16_to_f32(h, mode)),
        (_, "f32", "bf16") => of_f32(convert::bf16_to_f32(h, mode)),
        (_, "f16", "f64") => of_half(convert::double_to_half::<F16>(d, mode)),
        (_, "bf16", "f64") => of_half(convert::double_to_half::<Bf16>(d, mode)),
        (_, "f64", "f16") => Some(convert::f32_to_f64(F16::to_f32(h), mode).to_bits()),
        (_, "f64", "bf16") => Some(convert::f32_to_f64(Bf16::to_f32(h), mode).to_bits()),
        (_, "bf16", "f16") => of_half(convert::half_to_half::<F16, Bf16>(h, mode)),
        (_, "f16", "bf16") => of_half(convert::half_to_half::<Bf16, F16>(h, mode)),
        (_, "f16", "f16") => of_half(convert::half_to_half::<F16, F16>(h, mode)),
        (_, "f64", "f64") if mode.saturate => Some(convert::saturate_f64(d).to_bits()),
        (_, "f64", "f64") => Some(bits),
        _ => None,
    }
}
