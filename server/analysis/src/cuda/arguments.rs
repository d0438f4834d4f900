//! Splits argument lists at their commas, on tokens, so that errors and macros do not matter.

use smallvec::SmallVec;
use stitch_findings::Span;

use super::lexer::{Kind, Lexer, Token};

/// The arguments in `span` of `text`, without the white space around each. An empty list has none.
pub fn split(text: &str, span: Span) -> SmallVec<[Span; 8]> {
    let tokens: Vec<Token> = Lexer::within(text, span.start, span.end).collect();
    split_tokens(&tokens)
}

/// The arguments that `tokens`, what stands between the parentheses, make.
pub fn split_tokens(tokens: &[Token]) -> SmallVec<[Span; 8]> {
    let mut parts = SmallVec::new();
    let mut first = 0;
    let mut depth = 0u32;
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        match token.kind {
            Kind::Byte(b'(' | b'[' | b'{') => depth += 1,
            Kind::Byte(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            Kind::Byte(b'<') => index = template_end(tokens, index).unwrap_or(index),
            Kind::Byte(b',') if depth == 0 => {
                parts.push(cover(&tokens[first..index], token.start));
                first = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    if first < tokens.len() {
        parts.push(cover(&tokens[first..], 0));
    }
    parts
}

fn cover(tokens: &[Token], otherwise: usize) -> Span {
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => Span::new(first.start, last.end),
        _ => Span::new(otherwise, otherwise),
    }
}

/// More tokens than this are no template arguments.
const LONGEST: usize = 64;

/// The index of the `>` that closes the template arguments opened at `open`, if that is what they are.
pub fn template_end(tokens: &[Token], open: usize) -> Option<usize> {
    if open == 0 || tokens[open - 1].kind != Kind::Word {
        return None;
    }
    let mut angles = 0u32;
    let mut depth = 0u32;
    for (index, token) in tokens.iter().enumerate().skip(open).take(LONGEST) {
        match token.kind {
            Kind::Byte(b'(') => depth += 1,
            Kind::Byte(b')') => depth = depth.checked_sub(1)?,
            Kind::Byte(b'<') if depth == 0 => angles += 1,
            Kind::Byte(b'>') if depth == 0 => {
                angles -= 1;
                if angles == 0 {
                    let used = tokens.get(index + 1).is_some_and(|t| t.is(b'(') || t.is(b':') || t.is(b'{'));
                    return used.then_some(index);
                }
            }
            Kind::Byte(b';' | b'{' | b'}') => return None,
            Kind::Byte(b'&' | b'|') if tokens.get(index + 1).is_some_and(|n| n.kind == token.kind) => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// The index of the bracket that closes the one at `open`.
pub fn group_end(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0u32;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Byte(b'(' | b'[' | b'{') => depth += 1,
            Kind::Byte(b')' | b']' | b'}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

/// The index of the `<` that opens the template arguments closed at `close`.
pub fn template_start(tokens: &[Token], close: usize) -> Option<usize> {
    let mut angles = 0u32;
    let mut depth = 0u32;
    for index in (0..=close).rev().take(4 * LONGEST) {
        match tokens[index].kind {
            Kind::Byte(b')' | b']' | b'}') => depth += 1,
            Kind::Byte(b'(' | b'[' | b'{') => depth = depth.checked_sub(1)?,
            Kind::Byte(b'>') if depth == 0 => angles += 1,
            Kind::Byte(b'<') if depth == 0 => {
                angles -= 1;
                if angles == 0 {
                    return Some(index);
                }
            }
            Kind::Byte(b';') => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_brackets_and_template_arguments_do_not_split() {
        for (text, expected) in [
            ("a, b", &["a", "b"] as &[_]),
            ("", &[]),
            ("f(a, b), {1, 2}, x[i, j]", &["f(a, b)", "{1, 2}", "x[i, j]"]),
            ("ceil<int, 4>(n), b", &["ceil<int, 4>(n)", "b"]),
            ("T<a, b>::value, c", &["T<a, b>::value", "c"]),
            ("a < b, c > d", &["a < b", "c > d"]),
            ("a,, b", &["a", "", "b"]),
        ] {
            let parts = split(text, Span::new(0, text.len()));
            assert_eq!(parts.iter().map(|s| &text[s.range()]).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
