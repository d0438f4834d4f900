//! The constants of the function at hand, put in place where a launch uses them: outside the function nobody knows their names.

use crate::rules::constants::{Token, Tokens};

/// How many names are remembered.
const MOST_NAMES: usize = 256;

/// Longer values than a person writes are not put in place.
const LONGEST_VALUE: usize = 200;

/// Local names, innermost last, each with what it stands for; `None` for one that may change.
#[derive(Default)]
pub(super) struct LocalConstants<'t> {
    names: Vec<(&'t str, Option<String>)>,
    /// How many names there were where each open block began.
    blocks: Vec<usize>,
}

impl<'t> LocalConstants<'t> {
    /// Opens a block.
    pub(super) fn open(&mut self) {
        self.blocks.push(self.names.len());
    }

    /// Closes the innermost block; its names are gone.
    pub(super) fn close(&mut self) {
        self.names.truncate(self.blocks.pop().unwrap_or(0));
    }

    /// Declares a name that stands for `value`, or one that hides such a name.
    pub(super) fn declare(&mut self, name: &'t str, value: Option<&str>) {
        if self.names.len() < MOST_NAMES {
            let value = value.map(|value| self.in_place(value)).filter(|value| value.len() <= LONGEST_VALUE);
            self.names.push((name, value));
        }
    }

    /// `text` with values in place of names.
    pub(super) fn in_place(&self, text: &str) -> String {
        let mut result = String::new();
        let mut taken = 0;
        for (token, span) in Tokens::new(text) {
            let Token::Name(name) = token else { continue };
            let found = self.names.iter().rev().find(|(known, _)| *known == name);
            if let Some((_, Some(value))) = found {
                result.push_str(&text[taken..span.start]);
                result.push('(');
                result.push_str(value);
                result.push(')');
                taken = span.end;
            }
        }
        result.push_str(&text[taken..]);
        result
    }
}
