//! Which errors of a text that was compiled by itself are not the user's: those about something that only torch, the host code
//! that was left out, or another string of the same program declares.
//!
//! Errors come in chains: what follows on the same line as an error that is excused is excused too.

use std::collections::HashSet;
use std::sync::Arc;

use crate::compiler_text::{Level, Message};

/// What is known of the rest of the program that a text was taken out of.
#[derive(Clone, Debug, Default)]
pub(super) struct Foreign {
    /// Names that the parts left out may define.
    pub left_out: HashSet<String>,
    /// The text before anything was left out of it, where something was: it has the launches.
    pub whole: Option<Arc<str>>,
    /// The other texts of the program.
    pub others: String,
    /// Lines of the text itself; what is behind them is ours.
    pub lines: u32,
    /// Whether types were chosen for it, since a dispatch macro chooses them when it runs.
    pub guessed_types: bool,
}

/// Prefixes of names that only torch declares.
const TORCH_PREFIXES: [&str; 10] =
    ["at::", "torch::", "c10::", "caffe2::", "AT_", "TORCH_", "C10_", "THC", "CUDA_KERNEL", "Tensor"];

/// Names of namespaces and stand-ins about which no error is the user's.
const TORCH_NAMES: [&str; 8] =
    ["at", "torch", "c10", "caffe2", "py", "SmallFloat", "TensorAccessor", "GenericPackedTensorAccessor"];

/// Words of errors that say that something is not declared, or not what it was thought to be for want of a declaration.
const MISSING: [&str; 7] = [
    "is undefined",
    "has no member",
    "must be a class or namespace name",
    "is not a template",
    "is not a class or function template name",
    "not a type",
    "explicit type is missing",
];

impl Foreign {
    /// The messages that are the user's, and how many errors were excused.
    pub(super) fn sort(&self, messages: Vec<Message>) -> (Vec<Message>, usize) {
        let mut excused_lines = HashSet::new();
        let mut excused = 0;
        let mut kept = Vec::with_capacity(messages.len());
        for message in messages {
            let line = message.place.as_ref().map(|place| (place.file.clone(), place.line));
            let follows = line.as_ref().is_some_and(|line| excused_lines.contains(line));
            if follows || self.excuses(&message) {
                excused += usize::from(message.level == Level::Error);
                excused_lines.extend(line);
            } else {
                kept.push(message);
            }
        }
        (kept, excused)
    }

    fn excuses(&self, message: &Message) -> bool {
        let Some(place) = &message.place else { return false };
        let ours = |line: u32, file: &str| {
            file.ends_with("prologue.h") || (file.ends_with("unit.cu") && line > self.lines)
        };
        if ours(place.line, &place.file) {
            return true;
        }
        let named = quoted(&message.text);
        if message.level == Level::Warning {
            // Without the host code, what it alone uses is not used.
            return message.text.contains("never referenced")
                && (message.text.starts_with("function") || self.knows(&named));
        }
        let through_ours =
            message.notes.iter().filter_map(|note| note.place.as_ref()).any(|at| ours(at.line, &at.file));
        let missing = MISSING.iter().any(|word| message.text.contains(word));
        message.text.contains("No such file or directory")
            || message.text.contains("cannot open source file")
            || message.text.contains("<error-type>")
            || (through_ours && self.guessed_types)
            || mentions_torch(&message.text, &named)
            || (missing && (self.knows(&named) || self.knows(&under_caret(message))))
    }

    fn knows(&self, names: &[String]) -> bool {
        names.iter().any(|name| {
            let base = name.rsplit("::").next().unwrap_or(name);
            let base = base.split(['<', '(']).next().unwrap_or(base);
            self.left_out.contains(base) || TORCH_NAMES.contains(&base) || declares(&self.others, base)
        })
    }
}

fn mentions_torch(text: &str, named: &[String]) -> bool {
    let prefixed = |name: &String| TORCH_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    named.iter().any(|name| prefixed(name) || TORCH_NAMES.contains(&name.as_str()))
        || ["at::", "torch::", "c10::", "SmallFloat", "TensorAccessor"].iter().any(|name| text.contains(name))
}

/// The names between quotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The word that the caret is under.
fn under_caret(message: &Message) -> Vec<String> {
    let word = message.place.as_ref().and_then(|place| {
        let start = usize::try_from(place.column?).ok()?.checked_sub(1)?;
        let rest = place.echo.as_ref()?.get(start..)?;
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    });
    word.into_iter().collect()
}

/// Whether `text` has `name` as a word; where it does, it may declare it.
fn declares(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text
            .match_indices(name)
            .any(|(at, _)| !text[..at].ends_with(word) && !text[at + name.len()..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler_text::parse;

    #[test]
    fn what_torch_or_the_host_code_declares_is_excused_and_a_slip_is_not() {
        let foreign = Foreign {
            left_out: HashSet::from(["helper".to_owned()]),
            whole: None,
            others: "__device__ float other_unit(float x);".to_owned(),
            lines: 20,
            guessed_types: true,
        };
        for (text, kept) in [
            ("unit.cu(3): error: identifier \"alpha\" is undefined\n  x = alpha;\n      ^\n", 1),
            ("unit.cu(3): error: identifier \"helper\" is undefined\n", 0),
            ("unit.cu(3): error: identifier \"other_unit\" is undefined\n", 0),
            ("unit.cu(3): error: namespace \"at\" has no member \"cuda\"\n", 0),
            (
                "unit.cu(3): error: name followed by \"::\" must be a class or namespace name\n  torch::x y;\n  ^\n",
                0,
            ),
            (
                "unit.cu(3): error: identifier \"helper\" is undefined\n\nunit.cu(3): error: expected a \";\"\n",
                0,
            ),
            ("unit.cu(3): error: expected a \";\"\n", 1),
            ("unit.cu(22): error: no instance of overloaded function\n", 0),
            ("unit.cu(3): error: bad\n          detected during instantiation of \"k\" at line 23\n", 0),
            ("unit.cu:1:10: fatal error: mine.h: No such file or directory\n", 0),
            ("unit.cu(3): warning #177-D: function \"f\" was declared but never referenced\n", 0),
            ("unit.cu(3): warning #177-D: variable \"y\" was declared but never referenced\n", 1),
        ] {
            assert_eq!(foreign.sort(parse(text.as_bytes())).0.len(), kept, "{text}");
        }
    }
}
