//! Divisions that round up, written out: `ceil_div(n, 256)`.

use crate::rules::constants::split_arguments;

/// Functions and macros that divide and round up, as CUDA programs call them.
const CEILING_DIVISIONS: &[&str] = &[
    "ceil_div",
    "CEIL_DIV",
    "ceildiv",
    "CEILDIV",
    "ceilDiv",
    "div_ceil",
    "cdiv",
    "CDIV",
    "div_up",
    "divup",
    "divUp",
    "DIVUP",
    "DIV_UP",
    "iDivUp",
    "DIVIDE_UP",
    "divideUp",
    "div_round_up",
    "DIV_ROUND_UP",
];

/// `text` with divisions that round up written out.
pub fn rewritten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, name)) = next_division(rest) {
        let open = at + name.len();
        let inside = closing(&rest[open..]).map(|length| &rest[open + 1..open + length]);
        out.push_str(&rest[..at]);
        match inside.and_then(|inside| Some((inside, split_arguments(inside)?))) {
            Some((inside, parts)) if parts.len() == 2 => {
                let (a, b) = (rewritten(parts[0]), parts[1]);
                out.push_str(&format!("((({a}) + ({b}) - 1) / ({b}))"));
                rest = &rest[open + inside.len() + 2..];
            }
            _ => {
                out.push_str(name);
                rest = &rest[open..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The first call of a division that rounds up: where, and its name.
fn next_division(text: &str) -> Option<(usize, &'static str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let calls = CEILING_DIVISIONS.iter().filter_map(|name| {
        text.match_indices(name)
            .map(|(at, _)| at)
            .find(|at| text[at + name.len()..].starts_with('(') && !text[..*at].ends_with(is_word))
            .map(|at| (at, *name))
    });
    calls.min_by_key(|(at, name)| (*at, std::cmp::Reverse(name.len())))
}

/// Where the bracket at the start of `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b';' | b'{' | b'}' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_written_out() {
        for (text, expected) in [
            ("ceil_div(n, 4)", "(((n) + (4) - 1) / (4))"),
            ("x + cdiv(f(a, b), c) * 2", "x + (((f(a, b)) + (c) - 1) / (c)) * 2"),
            ("CEIL_DIV(ceil_div(a, b), c)", "((((((a) + (b) - 1) / (b))) + (c) - 1) / (c))"),
            ("my_ceil_div(a, b)", "my_ceil_div(a, b)"),
            ("ceil_div(a", "ceil_div(a"),
            ("ceil_div(a, b, c)", "ceil_div(a, b, c)"),
        ] {
            assert_eq!(rewritten(text), expected);
        }
    }
}
