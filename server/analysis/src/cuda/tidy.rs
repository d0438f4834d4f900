//! Text as a person would write it on one line: without comments, continuations and runs of white space.

use super::lexer::Lexer;

/// `text` on one line. Its words are untouched.
pub fn tidy(text: &str) -> String {
    let text = text.trim();
    let plain =
        !text.bytes().any(|b| matches!(b, b'\n' | b'\r' | b'\t' | b'/' | b'\\')) && !text.contains("  ");
    if plain {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    let mut end = None;
    for token in Lexer::within(text, 0, text.len()) {
        if end.is_some_and(|end| end < token.start) {
            line.push(' ');
        }
        line.push_str(text.get(token.start..token.end).unwrap_or_default());
        end = Some(token.end);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_without_comments() {
        for (text, expected) in [
            (" a + b ", "a + b"),
            ("a /* x */ +\n  b // y", "a + b"),
            ("dim3(a, \\\n b)", "dim3(a, b)"),
            ("n / 256", "n / 256"),
            ("\"a  b\"  ", "\"a  b\""),
        ] {
            assert_eq!(tidy(text), expected);
        }
    }
}
