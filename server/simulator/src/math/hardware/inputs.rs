//! The inputs that `inputs.h` draws, drawn again.

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The bits of operand `which` of draw `index`, for an operand of that type.
pub fn input(ty: &str, index: u64, which: u64) -> u64 {
    let drawn = mix(index * 4 + which);
    match ty {
        "f32" => floating(drawn, 8, 23),
        "f64" => floating(drawn, 11, 52),
        "f16" => floating(drawn, 5, 10),
        "bf16" => floating(drawn, 8, 7),
        "x2" => floating(drawn, 5, 10) | floating(mix(index * 4 + which + 1), 5, 10) << 16,
        "small" => drawn & 31,
        "smalls" => (drawn & 15).wrapping_sub(7) & 0xffff_ffff,
        "u16" | "s16" => whole(drawn, 16),
        "u64" | "s64" => whole(drawn, 64),
        _ => whole(drawn, 32),
    }
}

fn floating(r: u64, e: u32, m: u32) -> u64 {
    let width = 1 + e + m;
    let bits = r >> (64 - width);
    let sign = bits >> (width - 1) << (width - 1);
    let unit = 1u64 << m;
    let infinity = ((1u64 << e) - 1) << m;
    let one = ((1u64 << (e - 1)) - 1) << m;
    sign | match r & 7 {
        0 => match r >> 3 & 15 {
            0 => 0,
            1 => 1,
            2 => unit - 1,
            3 => unit,
            4 => infinity,
            5 => infinity - 1,
            6 => infinity | 1,
            7 => infinity | unit >> 1,
            8 => one,
            9 => one - 1,
            10 => one + 1,
            11 => one - unit,
            12 => one + unit,
            13 => one.wrapping_add((r >> 7 & 63).wrapping_mul(unit) / 8),
            14 => infinity | (r >> 7 & 255),
            _ => r >> 7 & (unit - 1),
        },
        1 | 2 => one - 2 * unit + (bits & (4 * unit - 1)),
        3 => one + (bits & (unit * if m < 8 { 8 } else { 64 } - 1)),
        _ => return bits,
    }
}

fn whole(r: u64, width: u32) -> u64 {
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    mask & match r & 7 {
        0 => (r >> 8 & 7).wrapping_sub(3),
        1 => (1u64 << (width - 1)).wrapping_add(r >> 8 & 7).wrapping_sub(3),
        2 => 1 << ((r >> 8) % u64::from(width)),
        3 => r >> 8 & 127,
        4 => (r >> (64 - width)) >> ((r >> 3 & 63) % u64::from(width)),
        _ => r >> (64 - width),
    }
}
