//! What a launch is like where a person says what some of its function's names stand for.
//!
//! `int n = atoi(argv[1]);` has no value in the text; with one said for `n`, the grid `(n + 255) / 256` and the allocation of
//! `n * sizeof(float)` bytes have.

use std::collections::BTreeMap;

use super::allocations;
use super::lexer::{Kind, Lexer, Token};
use super::locals::Locals;
use crate::outline::{Launch, Outline};
use crate::rules::constants::{Constants, fold_dimensions, fold_text, split_arguments};

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

/// The launch, with grid, block, shared memory and arguments as they are where `values` holds. One outside of a function stays as it is.
pub fn assume(source: &str, outline: &Outline, launch: &Launch, values: &BTreeMap<String, i64>) -> Launch {
    let mut assumed = launch.clone();
    let around = outline
        .functions
        .iter()
        .filter(|function| function.body.is_some_and(|body| body.contains(launch.span)))
        .min_by_key(|function| function.span.len());
    let Some((function, body)) = around.and_then(|function| Some((function, function.body?))) else {
        return assumed;
    };
    let part = |start: usize, end: usize| rewritten(source.get(start..end).unwrap_or_default());
    let before = part(body.start, launch.span.start);
    let at = before.len();
    let text = before + &part(launch.span.start, body.end);
    let tokens: Vec<Token> = Lexer::at(&text, 0).filter(|token| token.kind != Kind::Directive).collect();
    let globals = Globals { source, values };
    let locals =
        Locals::read(&tokens, &text, &function.template_parameters, &globals).assuming(values.clone());
    let scope = locals.at(at);
    for expression in [&mut assumed.grid, &mut assumed.block].into_iter().flatten() {
        expression.value = expression.value.or_else(|| fold_dimensions(&rewritten(&expression.text), &scope));
    }
    if let Some(shared) = &mut assumed.shared {
        let value = fold_text(&rewritten(&shared.text), &scope).map(|value| [value, 1, 1]);
        shared.value = shared.value.or(value);
    }
    let found = allocations::of(&tokens, &text);
    let facts = allocations::facts(&launch.arguments, at, &locals, &found);
    for (known, new) in assumed.argument_facts.iter_mut().zip(facts) {
        known.value = known.value.or(new.value);
        known.bytes = known.bytes.or(new.bytes);
    }
    assumed
}

/// `text` with divisions that round up written out.
fn rewritten(text: &str) -> String {
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

/// Constants of the file, by the lines that define them, where `values` does not say otherwise.
struct Globals<'s> {
    source: &'s str,
    values: &'s BTreeMap<String, i64>,
}

/// Constants that stand for others deeper than this are not followed.
const DEEPEST: u32 = 8;

impl Globals<'_> {
    fn look_up(&self, name: &str, depth: u32) -> Option<i64> {
        if let Some(value) = self.values.get(name) {
            return Some(*value);
        }
        let text = definition(self.source, name).filter(|_| depth < DEEPEST)?;
        fold_text(&rewritten(text), &Deeper { globals: self, depth: depth + 1 })
    }
}

impl Constants for Globals<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        self.look_up(name, 0)
    }
}

struct Deeper<'g, 's> {
    globals: &'g Globals<'s>,
    depth: u32,
}

impl Constants for Deeper<'_, '_> {
    fn value(&self, name: &str) -> Option<i64> {
        self.globals.look_up(name, self.depth)
    }
}

/// What `#define NAME …` or `const int NAME = …;` says, at the start of a line, if only one of them does.
fn definition<'s>(source: &'s str, name: &str) -> Option<&'s str> {
    let mut found = None;
    for line in source.lines() {
        let value = match line.strip_prefix("#define ") {
            Some(rest) => rest.trim_start().strip_prefix(name).filter(|rest| rest.starts_with([' ', '\t'])),
            None if ["const ", "constexpr ", "static const"].iter().any(|start| line.starts_with(start)) => {
                let parts = line.split_once('=');
                let named = parts.filter(|(left, _)| left.split_whitespace().next_back() == Some(name));
                named.map(|(_, right)| right.split(';').next().unwrap_or_default())
            }
            None => None,
        };
        if let Some(value) = value {
            if found.is_some() {
                return None;
            }
            found = Some(value.split("//").next().unwrap_or_default().trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Analysis, Language};

    #[test]
    fn values_that_are_said_reach_grid_and_allocations() {
        let source = "#define BLOCK 128\n__global__ void k(float* x, int n) {}\n\
            int main(int c, char** v) { int n = atoi(v[1]); size_t bytes = n * sizeof(float); float* d;\n\
            cudaMalloc(&d, bytes); const int blocks = ceil_div(n, BLOCK); k<<<blocks, BLOCK>>>(d, n); }\n\
            void wrap(float* d, int m, int threads) { k<<<CEIL_DIV(m, threads), threads, (m + 1) * 4>>>(d, m); }\n";
        let analysis = Analysis::of(Language::Cuda, source);
        let launches = &analysis.outline().launches;
        let with = |index: usize, values: &[(&str, i64)]| {
            let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assume(source, analysis.outline(), &launches[index], &values)
        };
        let nothing = with(0, &[]);
        assert_eq!(nothing.grid.unwrap().value, None);
        assert_eq!(nothing.block.unwrap().value, Some([128, 1, 1]));
        let first = with(0, &[("n", 1000)]);
        assert_eq!(first.grid.unwrap().value, Some([8, 1, 1]));
        assert_eq!(first.argument_facts[0].bytes, Some(4000));
        assert_eq!(first.argument_facts[1].value, Some(1000));
        let second = with(1, &[("m", 100), ("threads", 32)]);
        assert_eq!(
            (second.grid.unwrap().value, second.shared.unwrap().value),
            (Some([4, 1, 1]), Some([404, 1, 1]))
        );
    }

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
