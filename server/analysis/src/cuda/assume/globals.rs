//! What the names outside of a function stand for.

use std::collections::BTreeMap;

use super::divisions::rewritten;
use crate::rules::Environment;
use crate::rules::constants::{Constants, fold_text};

/// Constants of the file, where `values` does not say otherwise.
pub struct Globals<'s> {
    /// The text of the file.
    pub source: &'s str,
    /// What a person said.
    pub values: &'s BTreeMap<String, i64>,
    /// What the file's own constants are: macros, `constexpr`, enumerators.
    pub environment: &'s Environment,
}

/// Constants that stand for others deeper than this are not followed.
const DEEPEST: u32 = 8;

impl Globals<'_> {
    fn look_up(&self, name: &str, depth: u32) -> Option<i64> {
        if let Some(value) = self.values.get(name) {
            return Some(*value);
        }
        if let Some(value) = self.environment.value(name) {
            return Some(value);
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
