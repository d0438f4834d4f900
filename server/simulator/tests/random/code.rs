//! What a thread does alone: statements and expressions on its variables.

use std::fmt::Write as _;

use super::Random;

/// The variables of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
    Small,
    Half,
}

const TYPES: [Type; 12] = [
    Type::U32,
    Type::U32,
    Type::U32,
    Type::I32,
    Type::I32,
    Type::U64,
    Type::I64,
    Type::F32,
    Type::F32,
    Type::F64,
    Type::Small,
    Type::Half,
];

fn variable(random: &mut Random, of: Type) -> &'static str {
    let names: &[&'static str] = match of {
        Type::U32 => &["s.a0", "s.a1", "s.a2", "s.a3"],
        Type::I32 => &["s.b0", "s.b1"],
        Type::U64 => &["s.c0", "s.c1"],
        Type::I64 => &["s.d0"],
        Type::F32 => &["s.e0", "s.e1", "s.e2"],
        Type::F64 => &["s.g0", "s.g1"],
        Type::Small => &["s.m0", "s.m1", "s.m2", "s.m3"],
        Type::Half => &["s.n0", "s.n1"],
    };
    names[random.below(names.len() as u64) as usize]
}

/// A function that is not inlined.
pub fn function(random: &mut Random, number: u64) -> String {
    let mut text = format!(
        "N u32 call{number}(u32 x, i32 y, f32 z) {{\n  State s = begin(x, 7u);\n  s.b0 = y;\n  s.e0 = z;\n  const u32 t = x & 31, block = 0;\n  (void)t; (void)block;\n"
    );
    for _ in 0..3 {
        let line = assignment(random, None);
        let _ = writeln!(text, "  {line}");
    }
    text.push_str("  return (u32)finish(s);\n}\n");
    text
}

/// Some statements. `depth` is how deep they are inside of others.
pub fn block(random: &mut Random, number: u64, depth: u32) -> String {
    let mut text = String::new();
    for _ in 0..2 + random.below(if depth == 0 { 6 } else { 3 }) {
        text.push_str(&statement(random, number, depth));
    }
    text
}

fn statement(random: &mut Random, number: u64, depth: u32) -> String {
    let kind = if depth >= 3 { 0 } else { random.below(14) };
    match kind {
        7 => {
            let (condition, yes, no) =
                (condition(random), block(random, number, depth + 1), block(random, number, depth + 1));
            format!("if ({condition}) {{\n{yes}}} else {{\n{no}}}\n")
        }
        8 => {
            let (condition, yes) = (condition(random), block(random, number, depth + 1));
            format!("if ({condition}) {{\n{yes}}}\n")
        }
        9 => {
            let (rounds, body) = (expression(random, Type::U32, 1), block(random, number, depth + 1));
            format!(
                "for (u32 i{depth} = 0, n{depth} = {rounds} % 6; i{depth} < n{depth}; ++i{depth}) {{\n{body}s.a0 += i{depth};\n}}\n"
            )
        }
        10 => {
            let (condition, body) = (condition(random), block(random, number, depth + 1));
            let leave = random.pick(&["break", "continue"]);
            format!(
                "for (u32 i{depth} = 0; i{depth} < 5; ++i{depth}) {{\nif ({condition}) {leave};\n{body}}}\n"
            )
        }
        11 => {
            let which = expression(random, Type::U32, 1);
            let mut text = format!("switch ({which} % 5) {{\n");
            for case in 0..4 {
                let inside = block(random, number, depth + 1);
                let through = if random.below(4) == 0 { "" } else { "break;\n" };
                let _ = write!(text, "case {case}: {{\n{inside}}}\n{through}");
            }
            text + "default: s.a1 ^= 5;\n}\n"
        }
        12 => {
            let (values, at) = (expression(random, Type::U32, 1), expression(random, Type::U32, 1));
            let rounds = 1 + random.below(8);
            format!(
                "{{ u32 local[8]; for (u32 i = 0; i < 8; ++i) local[i] = {values} + i * 77;\nfor (u32 i = 0; i < {rounds}; ++i) {{ u32 j = ({at} + i) & 7; local[j] = local[(j * 5 + i) & 7] * 3 + j; s.a3 += local[j ^ 1]; }}\ns.a2 ^= local[s.a3 & 7]; }}\n"
            )
        }
        13 => {
            let (x, y) = (expression(random, Type::U32, 1), expression(random, Type::I32, 1));
            format!("s.a2 += call{number}({x}, {y}, s.e1);\n")
        }
        _ => assignment(random, None) + "\n",
    }
}

fn assignment(random: &mut Random, of: Option<Type>) -> String {
    let of = of.unwrap_or(*random.pick(&TYPES));
    let (to, value) = (variable(random, of), expression(random, of, 3));
    match of {
        Type::F32 | Type::F64 => format!("{to} = tame({value});"),
        Type::Small => {
            let ty = match to {
                "s.m0" => "u8",
                "s.m1" => "i8",
                "s.m2" => "u16",
                _ => "i16",
            };
            format!("{to} = ({ty})({value});")
        }
        _ => format!("{to} = {value};"),
    }
}

fn condition(random: &mut Random) -> String {
    let compare = random.pick(&["<", "<=", ">", ">=", "==", "!="]);
    match random.below(6) {
        0 => format!(
            "({} & {}) {} 0",
            variable(random, Type::U32),
            1 + random.below(15),
            random.pick(&["==", "!="])
        ),
        1 => format!("{} {compare} {}", variable(random, Type::F32), expression(random, Type::F32, 1)),
        2 => format!("{} {compare} {}", variable(random, Type::I32), expression(random, Type::I32, 1)),
        3 => format!("{} {compare} {}", variable(random, Type::F64), expression(random, Type::F64, 1)),
        4 => format!("t % {} {compare} {}", 2 + random.below(30), random.below(8)),
        _ => format!("{} {compare} {}", variable(random, Type::U64), expression(random, Type::U64, 1)),
    }
}

fn expression(random: &mut Random, of: Type, depth: u32) -> String {
    if depth == 0 || random.below(5) == 0 {
        return leaf(random, of);
    }
    let mut sub = |of| expression(random, of, depth - 1);
    match of {
        Type::U32 => {
            let (a, b, c) = (sub(Type::U32), sub(Type::U32), sub(Type::U32));
            let (i, j, w) = (sub(Type::I32), sub(Type::I32), sub(Type::U64));
            let f = sub(Type::F32);
            match random.below(26) {
                0 => format!("({a} + {b})"),
                1 => format!("({a} - {b})"),
                2 => format!("({a} * {b})"),
                3 => format!("({a} / ({b} | 1))"),
                4 => format!("({a} % ({b} | 1))"),
                5 => format!("({a} ^ {b} & {c})"),
                6 => format!("({a} | ~{b})"),
                7 => format!("({a} << ({b} & 31))"),
                8 => format!("({a} >> ({b} & 31))"),
                9 => format!("ones({a})"),
                10 => format!("zeros({a})"),
                11 => format!("turned({a})"),
                12 => format!("first({a})"),
                13 => format!("high({a}, {b})"),
                14 => format!("permute({a}, {b}, {c} & 0x7777)"),
                15 => format!("funnel({a}, {b}, {c})"),
                16 => format!("sum_of_differences({i}, {j}, {a})"),
                17 => format!("bytes_sum({a}, {b})"),
                18 => format!("bytes_most({a}, {b})"),
                19 => format!("halves_difference({a}, {b})"),
                20 => format!("to_u32({f})"),
                21 => format!("bits({f})"),
                22 => format!("(u32)({w} >> 17)"),
                23 => format!("({a} < {b} ? {c} : {a})"),
                24 => format!("(u32){i}"),
                _ => format!("({a} * {b} + {c})"),
            }
        }
        Type::I32 => {
            let (a, b, u) = (sub(Type::I32), sub(Type::I32), sub(Type::U32));
            let (f, g, small) = (sub(Type::F32), sub(Type::F64), sub(Type::Small));
            match random.below(14) {
                0 => format!("(i32)((u32){a} + (u32){b})"),
                1 => format!("(i32)((u32){a} * (u32){b})"),
                2 => format!("sdiv({a}, {b})"),
                3 => format!("srem({a}, {b})"),
                4 => format!("({a} >> ({u} & 31))"),
                5 => format!("({a} < {b} ? {a} : {b})"),
                6 => format!("high({a}, {b})"),
                7 => format!("dot({a}, {b}, (i32){u})"),
                8 => format!("to_i32({f})"),
                9 => format!("nearest({f})"),
                10 => format!("below({g})"),
                11 => format!("(i32){small}"),
                12 => format!("(i32){u}"),
                _ => format!("({a} ^ {b})"),
            }
        }
        Type::U64 => {
            let (a, b, u, v) = (sub(Type::U64), sub(Type::U64), sub(Type::U32), sub(Type::U32));
            let g = sub(Type::F64);
            match random.below(13) {
                0 => format!("({a} + {b})"),
                1 => format!("({a} - {b})"),
                2 => format!("({a} * {b})"),
                3 => format!("({a} / ({b} | 1))"),
                4 => format!("({a} % ({b} | 1))"),
                5 => format!("({a} ^ {b})"),
                6 => format!("({a} << ({u} & 63))"),
                7 => format!("({a} >> ({u} & 63))"),
                8 => format!("((u64){u} * (u64){v})"),
                9 => format!("high({a}, {b})"),
                10 => format!("turned({a})"),
                11 => format!("(u64)(ones({a}) + zeros({b}))"),
                _ => format!("bits({g})"),
            }
        }
        Type::I64 => {
            let (a, b, i, j) = (sub(Type::I64), sub(Type::I64), sub(Type::I32), sub(Type::I32));
            let (u, g) = (sub(Type::U32), sub(Type::F64));
            match random.below(8) {
                0 => format!("(i64)((u64){a} + (u64){b})"),
                1 => format!("(i64)((u64){a} * (u64){b})"),
                2 => format!("sdiv({a}, {b})"),
                3 => format!("srem({a}, {b})"),
                4 => format!("((i64){i} * (i64){j})"),
                5 => format!("({a} >> ({u} & 63))"),
                6 => format!("to_i64(tame({g}))"),
                _ => format!("({a} > {b} ? {a} : (i64){i})"),
            }
        }
        Type::F32 => {
            let (a, b, c) = (sub(Type::F32), sub(Type::F32), sub(Type::F32));
            let (u, i, g, h, w) =
                (sub(Type::U32), sub(Type::I32), sub(Type::F64), sub(Type::Half), sub(Type::U64));
            match random.below(17) {
                0 => format!("({a} + {b})"),
                1 => format!("({a} - {b})"),
                2 => format!("({a} * {b})"),
                3 => format!("({a} / {b})"),
                4 => format!("fmaf({a}, {b}, {c})"),
                5 => format!("rooted({a})"),
                6 => format!("least({a}, {b})"),
                7 => format!("most({a}, {b})"),
                8 => format!("(f32){u}"),
                9 => format!("(f32){i}"),
                10 => format!("(f32)tame({g})"),
                11 => format!("single_of({h})"),
                12 => format!("floorf({a})"),
                13 => format!("as_f32({u} & 0x7fffffffu)"),
                14 => format!("(f32){w}"),
                15 => format!("fabsf({a})"),
                _ => format!("({a} < {b} ? {c} : -({a}))"),
            }
        }
        Type::F64 => {
            let (a, b, c) = (sub(Type::F64), sub(Type::F64), sub(Type::F64));
            let (u, l, f, w) = (sub(Type::U32), sub(Type::I64), sub(Type::F32), sub(Type::U64));
            match random.below(13) {
                0 => format!("({a} + {b})"),
                1 => format!("({a} - {b})"),
                2 => format!("({a} * {b})"),
                3 => format!("({a} / {b})"),
                4 => format!("fma({a}, {b}, {c})"),
                5 => format!("rooted({a})"),
                6 => format!("least({a}, {b})"),
                7 => format!("most({a}, {b})"),
                8 => format!("(f64){u}"),
                9 => format!("(f64){l}"),
                10 => format!("(f64){f}"),
                11 => format!("(f64){w}"),
                _ => format!("trunc({a})"),
            }
        }
        Type::Small => {
            let (a, b, u) = (sub(Type::Small), sub(Type::Small), sub(Type::U32));
            match random.below(4) {
                0 => format!("(i32)((u32){a} + (u32){b})"),
                1 => format!("((i32)((u32){a} * (u32){b}) >> 3)"),
                2 => format!("(i32)((u32){a} - ({u} & 1023))"),
                _ => format!("((i32){a} ^ (i32){b})"),
            }
        }
        Type::Half => {
            let (a, b, f) = (sub(Type::Half), sub(Type::Half), sub(Type::F32));
            match random.below(3) {
                0 => format!("half_sum({a}, {b})"),
                1 => format!("half_product({a}, {b})"),
                _ => format!("half_of({f})"),
            }
        }
    }
}

fn leaf(random: &mut Random, of: Type) -> String {
    if random.below(4) > 0 {
        return variable(random, of).to_owned();
    }
    let number = random.next();
    match of {
        Type::U32 => {
            (*random.pick(&["t", "block", "0u", "1u", "31u", "0x80000000u", "0xffffffffu", "12345u"]))
                .to_owned()
        }
        Type::I32 => {
            (*random.pick(&["(i32)t", "-1", "0", "7", "(-2147483647 - 1)", "2147483647"])).to_owned()
        }
        Type::U64 => format!("{number}ull"),
        Type::I64 => format!("(i64){number}ull"),
        Type::F32 => {
            (*random.pick(&["0.0f", "-0.0f", "1.5f", "-3.25f", "1e-38f", "1e-42f", "16777217.0f", "0.1f"]))
                .to_owned()
        }
        Type::F64 => (*random.pick(&["0.0", "-0.0", "1.5", "0.1", "-1e300", "1e-310", "4503599627370497.5"]))
            .to_owned(),
        Type::Small => format!("{}", number % 300),
        Type::Half => {
            (*random.pick(&["half_of(0.1f)", "half_of(-2.5f)", "half_of(6e-8f)", "half_of(60000.0f)"]))
                .to_owned()
        }
    }
}
