//! Whether a number of blocks that is rounded up covers the data exactly all the same: because both sizes are known, as `N = 2048`
//! in `(N + 255) / 256`, or because the size was rounded up before.

use crate::rules::constants::{Constants, Token, Tokens, fold_text, split_arguments};

/// Longer expressions than a person writes are not looked into.
const LONGEST_TEXT: usize = 1000;

/// How often names that stand for other names are replaced.
const MOST_PASSES: usize = 6;

/// An expression with local names replaced by what they were set to; `value` knows them, also members: `block.x`.
pub fn expanded<'t>(text: &str, value: impl Fn(&str, Option<&str>) -> Option<&'t str>) -> String {
    let mut text = text.to_owned();
    for _ in 0..MOST_PASSES {
        let mut out = String::new();
        let mut copied = 0;
        let words: Vec<_> = Tokens::new(&text).collect();
        for (at, (token, span)) in words.iter().enumerate() {
            let Token::Name(name) = token else { continue };
            let is_member = text[..span.start].ends_with(['.', '>']);
            let after = text[span.end..].strip_prefix('.').and_then(|_| words.get(at + 2));
            let member = after.map(|(_, span)| span.clone());
            if !is_member
                && span.start >= copied
                && let Some(known) = value(name, member.as_ref().and_then(|span| text.get(span.clone())))
            {
                out.push_str(&text[copied..span.start]);
                out.push('(');
                out.push_str(known);
                out.push(')');
                copied = member.map_or(span.end, |span| span.end);
            }
        }
        if copied == 0 {
            break;
        }
        out.push_str(&text[copied..]);
        text = out;
        if text.len() > LONGEST_TEXT {
            break;
        }
    }
    text
}

/// Whether each size of a grid that is rounded up is known to be exact.
pub fn is_exact(grid: &str, scope: &dyn Constants) -> bool {
    if grid.len() > LONGEST_TEXT {
        return false;
    }
    let grid = bare(grid);
    let rest = grid.strip_prefix("dim3").map_or(grid, str::trim_start);
    let inner = bracketed(rest, '(', ')').or_else(|| bracketed(rest, '{', '}'));
    match inner.filter(|_| rest.len() != grid.len() || rest.starts_with('{')) {
        Some(list) => split_arguments(list)
            .is_some_and(|sizes| !sizes.is_empty() && sizes.iter().all(|size| is_exact_size(size, scope))),
        None => is_exact_size(grid, scope),
    }
}

/// `(n + b - 1) / b` and `(n - 1) / b + 1` are exact where `b` divides `n`, so that the dividend leaves `b - 1`.
fn is_exact_size(size: &str, scope: &dyn Constants) -> bool {
    let size = bare(size);
    if fold_text(size, scope).is_some() && !size.contains('/') {
        return true;
    }
    if let Some((size, block)) = rounded_sizes(size, scope) {
        return size % block == 0;
    }
    let mut depth = 0usize;
    let mut division = None;
    let mut sum = None;
    for (token, span) in Tokens::new(size) {
        match token {
            Token::Symbol("(") => depth += 1,
            Token::Symbol(")") => depth = depth.saturating_sub(1),
            Token::Symbol("/") if depth == 0 && division.is_none() => division = Some(span.start),
            Token::Symbol("+") if depth == 0 && division.is_some() => sum = Some(span.start),
            Token::Symbol("*" | "/" | "-" | "%") if depth == 0 => return false,
            _ => {}
        }
    }
    let Some(division) = division else { return false };
    let divisor = &size[division + 1..sum.unwrap_or(size.len())];
    let adds_one = sum.is_none_or(|sum| fold_text(&size[sum + 1..], scope) == Some(1));
    let sizes = fold_text(&size[..division], scope).zip(fold_text(divisor, scope));
    adds_one && sizes.is_some_and(|(dividend, divisor)| divisor > 0 && dividend % divisor == divisor - 1)
}

/// Names of functions and macros that divide and round up.
pub fn is_rounding_name(name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name).to_ascii_lowercase();
    name == "cdiv"
        || name == "ceil"
        || name == "get_blocks"
        || (name.contains("div") && (name.contains("ceil") || name.contains("up")))
}

/// The two sizes of `ceil_div(n, b)` or `ceil(1.0 * n / b)`, where these are known.
pub fn rounded_sizes(call: &str, scope: &dyn Constants) -> Option<(i64, i64)> {
    let call = bare(call);
    let (name, rest) = call.split_once('(')?;
    let arguments = bracketed(&call[name.len()..], '(', ')')
        .filter(|_| is_rounding_name(name.trim()) && !rest.is_empty())?;
    let whole = |text: &str| fold_text(&without_floats(text), scope);
    match split_arguments(arguments)?.as_slice() {
        [size, block] => whole(size).zip(whole(block)),
        [quotient] => {
            let (size, block) = quotient.rsplit_once('/')?;
            whole(size).zip(whole(block))
        }
        _ => None,
    }
    .filter(|(_, block)| *block > 0)
}

/// A number without what makes it floating: `(float)n`, `1.0 * n`, `16.0f`.
fn without_floats(text: &str) -> String {
    let mut text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    for part in
        ["(float)", "(double)", "static_cast<float>", "static_cast<double>", "1.0f*", "1.0*", "*1.0f", "*1.0"]
    {
        text = text.replace(part, "");
    }
    match text.strip_suffix("f").unwrap_or(&text).strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Whether a text divides by something and multiplies by the same: `(n + 31) / 32 * 32`, `block * (n / block + …)`.
pub fn is_padded(text: &str) -> bool {
    if text.len() > LONGEST_TEXT || !text.contains('/') || !text.contains('*') {
        return false;
    }
    let tokens: Vec<Token> = Tokens::new(text).map(|(token, _)| token).collect();
    let beside = |at: Option<usize>| {
        at.and_then(|at| tokens.get(at)).filter(|token| matches!(token, Token::Name(_) | Token::Literal(_)))
    };
    let operators = |symbol| {
        tokens.iter().enumerate().filter(move |(_, token)| **token == Token::Symbol(symbol)).map(|(at, _)| at)
    };
    let factors: Vec<&Token> = operators("*")
        .flat_map(|at| [beside(at.checked_sub(1)), beside(at.checked_add(1))])
        .flatten()
        .collect();
    operators("/").filter_map(|at| beside(at.checked_add(1))).any(|divisor| factors.contains(&divisor))
}

/// A text without the brackets around all of it.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(inner) = bracketed(text, '(', ')') {
        text = inner.trim();
    }
    text
}

/// What is between the brackets that enclose all of a text.
fn bracketed(text: &str, open: char, close: char) -> Option<&str> {
    let inner = text.strip_prefix(open)?.strip_suffix(close)?;
    let mut depth = 0i32;
    let is_one = inner.chars().all(|c| {
        depth += i32::from(c == open) - i32::from(c == close);
        depth >= 0
    });
    is_one.then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sizes_that_divide() {
        let exact = |text: &str| is_exact(text, &());
        for text in [
            "(2048 + 255) / 256",
            "((1 << 25) + 256 - 1) / 256",
            "(8 - 1) / 4 + 1",
            "dim3((64 + 15) / 16, (32 + (16) - 1) / (16))",
            "(dim3{(64 + 15) / 16, 3})",
            "ceil_div(1024, 256)",
            "dim3(ceil(1.0 * 2048 / 64), ceil((float)(2048) / 64.0f))",
        ] {
            assert!(exact(text), "{text}");
        }
        for text in [
            "(5 + 255) / 256",
            "2048 / 256 + 1",
            "(n + 255) / 256",
            "dim3((64 + 15) / 16, (33 + 15) / 16)",
            "",
            "/",
        ] {
            assert!(!exact(text), "{text}");
        }
    }

    #[test]
    fn names_are_replaced_as_far_as_they_are_known() {
        let value = |name: &str, member: Option<&str>| match (name, member) {
            ("n", None) => Some("1 << 20"),
            ("block", Some("x")) => Some("t"),
            ("t", None) => Some("256"),
            ("loop", None) => Some("loop + loop"),
            _ => None,
        };
        assert_eq!(expanded("(n + block.x - 1) / block.x", value), "((1 << 20) + ((256)) - 1) / ((256))");
        assert_eq!(expanded("a.n + b->n + m", value), "a.n + b->n + m");
        assert!(expanded("loop", value).len() > 100);
    }
}
