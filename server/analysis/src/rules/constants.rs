//! Integer constant expressions, folded from their text.
//!
//! The text, not the tree, because half of the constants stand where the grammar sees none: after `#define`, in template
//! defaults, in an outline. Operators are reduced on two stacks, so that a hundred thousand parentheses cost memory in
//! proportion and no call stack. Arithmetic is checked: what C++ leaves undefined, or what we can't know, is `None`.

mod reduce;
mod token;

use tree_sitter::Node;

pub use reduce::fold_text;
pub use token::{Token, Tokens};

/// Names with a known value.
pub trait Constants {
    /// The value of `name` (`N`, `Traits::kTile`), if it is a known integer constant.
    fn value(&self, name: &str) -> Option<i64>;

    /// The sizes of `name`, if it is a `dim3` known to be constant.
    fn dimensions(&self, _name: &str) -> Option<[i64; 3]> {
        None
    }
}

/// No names at all.
impl Constants for () {
    fn value(&self, _name: &str) -> Option<i64> {
        None
    }
}

/// The value of an integer constant expression. `None` where it is not one or not known.
pub fn fold(expression: Node, source: &str, scope: &dyn Constants) -> Option<i64> {
    fold_text(source.get(expression.byte_range())?, scope)
}

/// The value of a launch's grid or block: an integer, `dim3(x, y, z)`, `{x, y, z}`, or the name of a constant one.
/// Missing sizes are 1.
pub fn fold_dimensions(text: &str, scope: &dyn Constants) -> Option<[i64; 3]> {
    let text = text.trim();
    if let Some(arguments) = dimension_arguments(text) {
        let mut sizes = [1; 3];
        let parts = split_arguments(arguments)?;
        if parts.len() > 3 {
            return None;
        }
        for (size, part) in sizes.iter_mut().zip(&parts) {
            *size = fold_text(part, scope)?;
        }
        return Some(sizes);
    }
    scope.dimensions(text).or_else(|| fold_text(text, scope).map(|x| [x, 1, 1]))
}

/// What stands between the brackets of `dim3(…)`, `dim3{…}` or `{…}`.
fn dimension_arguments(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("dim3").unwrap_or(text).trim_start();
    let inner = if rest.len() == text.len() {
        rest.strip_prefix('{')?.strip_suffix('}')?
    } else {
        let close = match rest.chars().next()? {
            '(' => ')',
            '{' => '}',
            _ => return None,
        };
        rest.get(1..)?.strip_suffix(close)?
    };
    Some(inner)
}

/// The parts of `text` between commas that no bracket encloses; none for a blank text. `None` where brackets do not match.
pub fn split_arguments(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut seen) = (0usize, 0, false);
    for (token, span) in Tokens::new(text) {
        seen = true;
        match token {
            Token::Symbol("(" | "[" | "{") => depth += 1,
            Token::Symbol(")" | "]" | "}") => depth = depth.checked_sub(1)?,
            Token::Symbol(",") if depth == 0 => {
                parts.push(text[start..span.start].trim());
                start = span.end;
            }
            _ => {}
        }
    }
    if seen {
        parts.push(text[start..].trim());
    }
    (depth == 0).then_some(parts)
}

#[cfg(test)]
mod tests;
