//! The functions of `math` by the names of their instructions: integers, bits, carries and video instructions.

use super::evaluate::{extended, integer_named};
use crate::math::bits::{self, Permutation};
use crate::math::convert::Integer;
use crate::math::video::{LaneOperation, LaneTypes, Lanes};
use crate::math::{Comparison, integer};

pub(super) fn whole(words: &[&str], x: &[u64]) -> Option<u64> {
    let u = |at: usize| x[at] as u32;
    let word = |value: u32| Some(u64::from(value));
    let signed = |at: usize| words[at] == "s32";
    let wrap = words.contains(&"wrap");
    match words[0] {
        "mul" | "div" | "rem" | "sad" | "min" | "max" | "abs" | "neg" | "shr" | "shl" | "bfind" | "bfe"
        | "mul24" => arithmetic(words, x),
        "dp4a" => word(integer::dp4a(u(0), u(1), u(2), (signed(1), signed(2)))),
        "dp2a" => word(integer::dp2a(u(0), u(1), u(2), (signed(2), signed(3)), words[1] == "hi")),
        "szext" => word(bits::szext(u(0), u(1), signed(2), wrap)),
        "add" => word((u(0) as i32).saturating_add(u(1) as i32) as u32),
        "sub" => word((u(0) as i32).saturating_sub(u(1) as i32) as u32),
        "mad24" => word(integer::mad24_hi_sat_s32(u(0) as i32, u(1) as i32, u(2) as i32) as u32),
        "mad" => word(integer::mad_hi_sat_s32(u(0) as i32, u(1) as i32, u(2) as i32) as u32),
        "shf" if words[1] == "l" => word(bits::shf_l(u(0), u(1), u(2), wrap)),
        "shf" => word(bits::shf_r(u(0), u(1), u(2), wrap)),
        "bfi" => Some(bits::bfi_b64(x[0], x[1], u(2), u(3), words[1][1..].parse().ok()?)),
        "brev" if words[1] == "b32" => word(u(0).reverse_bits()),
        "brev" => Some(x[0].reverse_bits()),
        "popc" => word(x[0].count_ones()),
        "clz" if words[1] == "b32" => word(u(0).leading_zeros()),
        "clz" => word(x[0].leading_zeros()),
        "fns" => word(bits::fns(u(0), u(1), u(2) as i32)),
        "bmsk" => word(bits::bmsk(u(0), u(1), wrap)),
        "prmt" => word(bits::prmt(u(0), u(1), selector(words.get(2).copied(), u(2)))),
        "lop3" => word(bits::lop3(u(0), u(1), u(2), words[2].parse().ok()?)),
        _ => carries(words, x),
    }
}

fn selector(mode: Option<&str>, control: u32) -> u32 {
    let mode = match mode {
        None => return control,
        Some("f4e") => Permutation::F4e,
        Some("b4e") => Permutation::B4e,
        Some("rc8") => Permutation::Rc8,
        Some("ecl") => Permutation::Ecl,
        Some("ecr") => Permutation::Ecr,
        Some(_) => Permutation::Rc16,
    };
    mode.selector(control)
}

fn arithmetic(words: &[&str], x: &[u64]) -> Option<u64> {
    let last = *words.last()?;
    let of = integer_named(&last.replace('b', "u"))?;
    let s = |at: usize| extended(x[at], of);
    let value: i128 = match (words[0], words[1]) {
        ("mul", "wide") => {
            if of.signed {
                i128::from(integer::mul_wide_s32(s(0) as i32, s(1) as i32))
            } else {
                i128::from(integer::mul_wide_u32(s(0) as u32, s(1) as u32))
            }
        }
        ("mul", _) => pick(
            of,
            s(0),
            s(1),
            [
                |a, b| integer::mul_hi_u16(a as u16, b as u16).into(),
                |a, b| integer::mul_hi_s16(a as i16, b as i16).into(),
                |a, b| integer::mul_hi_u32(a as u32, b as u32).into(),
                |a, b| integer::mul_hi_s32(a as i32, b as i32).into(),
                |a, b| integer::mul_hi_u64(a as u64, b as u64).into(),
                |a, b| integer::mul_hi_s64(a as i64, b as i64).into(),
            ],
        ),
        ("div", _) => pick(
            of,
            s(0),
            s(1),
            [
                |a, b| integer::div_u16(a as u16, b as u16).into(),
                |a, b| integer::div_s16(a as i16, b as i16).into(),
                |a, b| integer::div_u32(a as u32, b as u32).into(),
                |a, b| integer::div_s32(a as i32, b as i32).into(),
                |a, b| integer::div_u64(a as u64, b as u64).into(),
                |a, b| integer::div_s64(a as i64, b as i64).into(),
            ],
        ),
        ("rem", _) => pick(
            of,
            s(0),
            s(1),
            [
                |a, b| integer::rem_u16(a as u16, b as u16).into(),
                |a, b| integer::rem_s16(a as i16, b as i16).into(),
                |a, b| integer::rem_u32(a as u32, b as u32).into(),
                |a, b| integer::rem_s32(a as i32, b as i32).into(),
                |a, b| integer::rem_u64(a as u64, b as u64).into(),
                |a, b| integer::rem_s64(a as i64, b as i64).into(),
            ],
        ),
        ("sad", _) if of.signed => i128::from(integer::sad_s64(s(0) as i64, s(1) as i64, s(2) as i64)),
        ("sad", _) => i128::from(integer::sad_u64(s(0) as u64, s(1) as u64, s(2) as u64)),
        ("min", _) => s(0).min(s(1)),
        ("max", _) => s(0).max(s(1)),
        ("abs", _) => s(0).abs(),
        ("neg", _) => -s(0),
        ("mul24", "lo") if of.signed => integer::mul24_lo_s32(s(0) as i32, s(1) as i32).into(),
        ("mul24", "lo") => integer::mul24_lo_u32(s(0) as u32, s(1) as u32).into(),
        ("mul24", _) if of.signed => integer::mul24_hi_s32(s(0) as i32, s(1) as i32).into(),
        ("mul24", _) => integer::mul24_hi_u32(s(0) as u32, s(1) as u32).into(),
        _ => return fields(words, of, x),
    };
    let width = if words[1] == "wide" { 64 } else { of.bits };
    Some(value as u64 & (u64::MAX >> (64 - width)))
}

/// Shifts and bit fields.
fn fields(words: &[&str], of: Integer, x: &[u64]) -> Option<u64> {
    let amount = |at: usize| x[at] as u32;
    let shift_amount = words.contains(&"shiftamt");
    let s = extended(x[0], of);
    let value: i128 = match (words[0], words[1]) {
        ("shl", "b16") => bits::shl_b16(x[0] as u16, amount(1)).into(),
        ("shl", "b32") => bits::shl_b32(x[0] as u32, amount(1)).into(),
        ("shl", _) => bits::shl_b64(x[0], amount(1)).into(),
        ("shr", "u16") => bits::shr_u16(x[0] as u16, amount(1)).into(),
        ("shr", "s16") => bits::shr_s16(x[0] as i16, amount(1)).into(),
        ("shr", "u32") => bits::shr_u32(x[0] as u32, amount(1)).into(),
        ("shr", "s32") => bits::shr_s32(x[0] as i32, amount(1)).into(),
        ("shr", "u64") => bits::shr_u64(x[0], amount(1)).into(),
        ("shr", _) => bits::shr_s64(x[0] as i64, amount(1)).into(),
        ("bfind", _) if of.signed => {
            return Some(bits::bfind_s64(s as i64, of.bits, shift_amount).into());
        }
        ("bfind", _) => return Some(bits::bfind_u64(s as u64, of.bits, shift_amount).into()),
        ("bfe", _) if of.signed => bits::bfe_s64(s as i64, amount(1), amount(2), of.bits).into(),
        ("bfe", _) => bits::bfe_u64(s as u64, amount(1), amount(2), of.bits).into(),
        _ => return None,
    };
    Some(value as u64 & (u64::MAX >> (64 - of.bits)))
}

/// The function for a width of 16, 32 or 64 bits, unsigned before signed.
fn pick(of: Integer, a: i128, b: i128, functions: [fn(i128, i128) -> i128; 6]) -> i128 {
    let row = of.bits.trailing_zeros() as usize - 4;
    functions[2 * row + usize::from(of.signed)](a, b)
}

fn carries(words: &[&str], x: &[u64]) -> Option<u64> {
    let wide = words.last() == Some(&"u64");
    let out = words[1] == "cc";
    let add = |a: u64, b: u64, carry: bool| {
        if wide {
            return integer::add_carry_u64(a, b, carry);
        }
        let (sum, carry) = integer::add_carry_u32(a as u32, b as u32, carry);
        (u64::from(sum), carry)
    };
    let sub = |a: u64, b: u64, borrow: bool| {
        if wide {
            return integer::sub_borrow_u64(a, b, borrow);
        }
        let (difference, borrow) = integer::sub_borrow_u32(a as u32, b as u32, borrow);
        (u64::from(difference), borrow)
    };
    let mask = if wide { u64::MAX } else { 0xffff_ffff };
    Some(match words[0] {
        "addc" => {
            let (sum, carry) = add(x[2], x[3], add(x[0], x[1], false).1);
            sum.wrapping_add(u64::from(out && carry)) & mask
        }
        "subc" => {
            let (difference, borrow) = sub(x[2], x[3], sub(x[0], x[1], false).1);
            difference.wrapping_sub(u64::from(out && borrow)) & mask
        }
        "madc" => {
            let low = x[0].wrapping_mul(x[1]) & mask;
            let high = if wide {
                integer::mul_hi_u64(x[0], x[1])
            } else {
                integer::mul_hi_u32(x[0] as u32, x[1] as u32).into()
            };
            add(high, x[3], add(low, x[2], false).1).0
        }
        _ => return None,
    })
}

pub(super) fn video(words: &[&str], x: &[u64]) -> Option<u64> {
    let (a, b, c) = (x[0] as u32, x[1] as u32, x[2] as u32);
    let lanes = if words[0].ends_with('2') { Lanes::HALVES } else { Lanes::BYTES };
    let all = if lanes == Lanes::HALVES { 0b11 } else { 0b1111 };
    let signed = |at: usize| words[at].starts_with('s');
    let operation = match words[0].trim_end_matches(['2', '4']) {
        "vadd" => LaneOperation::Add,
        "vsub" => LaneOperation::Sub,
        "vavrg" => LaneOperation::Average,
        "vabsdiff" => LaneOperation::AbsoluteDifference,
        "vmin" => LaneOperation::Min,
        "vmax" => LaneOperation::Max,
        _ => {
            let operation = LaneOperation::Set(Comparison::named(words[3])?);
            let types = LaneTypes { a: signed(1), b: signed(2), ..LaneTypes::default() };
            return Some(lanes.merge(lanes.compute(operation, a, b, types), c, all).into());
        }
    };
    let types = LaneTypes { d: signed(1), a: signed(2), b: signed(3), saturate: words.contains(&"sat") };
    Some(u64::from(if words.contains(&"add") {
        lanes.accumulate(operation, [a, b, c], all, types)
    } else {
        lanes.merge(lanes.compute(operation, a, b, types), c, all)
    }))
}
