//! Puts an accepted candidate into the file: the same names, signatures and state-dict keys, new code for the calls that were verified,
//! and the original code for all others.
//!
//! The candidate's own statements become the body of one function, so that no name of theirs meets a name of the file, and an extension is
//! built at the first call that needs it and not when the file is imported. The original code stays where it is, under another name, and
//! the old name looks the call up among what was verified (`support.py`). What can't be composed is refused with its reason.

mod candidate;
mod class;
mod guard;
mod layout;
mod new_code;
mod parts;
mod place;
mod version;

use serde::Serialize;
use stitch_findings::Span;

use super::denote::Denoted;
use super::source::Source;
use super::targets::{TargetKind, definition, targets};
pub use guard::Verified;
pub use stitch_findings::{Argument, VerifiedCall};
pub use version::{as_function, in_version};

/// The guard, as it stands in an edited file, with four spaces and `\n`.
const SUPPORT: &str = include_str!("support.py");
/// The modules that it imports.
const SUPPORT_IMPORTS: &[&str] =
    &["functools", "hashlib", "itertools", "operator", "threading", "warnings", "weakref", "torch"];

/// A Python script that defines `settings_of(module)`, whose text goes into [`Verified::settings`]: the classes and plain settings of a
/// module and its parts, which of its tensors are one, and its buffers that are in no state dictionary, as one digest. It is what an edited
/// file computes itself, so both agree.
pub fn settings_script() -> String {
    let imports: String = SUPPORT_IMPORTS.iter().map(|name| format!("import {name}\n")).collect();
    format!(
        "{imports}\n\n{SUPPORT}\n\ndef settings_of(module):\n    return _Verified.settings_of(list(module.named_modules()))\n"
    )
}

/// A file with the candidate in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Composition {
    /// The whole text.
    pub text: String,
    /// What changed, as bytes of the new text, in order.
    pub changed: Vec<Span>,
    /// The same as replacements in the old text, in order.
    pub edits: Vec<(Span, String)>,
}

/// The name of the class or function of a candidate's text that stands for the target `name`: `ModelNew`, the same name, the name with
/// `New` behind it, or the only one of its kind.
///
/// # Errors
/// The names that there are, where none is meant or several could be.
pub fn candidate_name(candidate: &str, kind: TargetKind, name: &str) -> Result<String, String> {
    let short = name.rsplit('.').next().unwrap_or(name);
    let what = if kind == TargetKind::Module { "module" } else { "function" };
    let source =
        Source::new(candidate).ok_or("The candidate is too long or too deeply nested to be parsed.")?;
    let names: Vec<String> = match kind {
        TargetKind::Module => {
            targets(candidate).into_iter().filter(|one| one.kind == kind).map(|one| one.name).collect()
        }
        TargetKind::Function => place::functions(&source),
    };
    let snake = super::inputs::snake_case(short);
    let wanted = match kind {
        TargetKind::Module => vec!["ModelNew".to_owned(), short.to_owned(), format!("{short}New")],
        TargetKind::Function => {
            vec![short.to_owned(), format!("{short}_new"), format!("{snake}_new"), format!("{short}New")]
        }
    };
    if let Some(found) = wanted.iter().find(|wanted| names.contains(wanted)) {
        return Ok(found.clone());
    }
    match &names[..] {
        [only] => Ok(only.clone()),
        [] => Err(format!("The candidate has no {what}; name it `{}`.", wanted[0])),
        several => Err(format!(
            "The candidate has several {what}s ({}); name the one that is meant `{}`.",
            several.join(", "),
            wanted[0]
        )),
    }
}

/// Puts `candidate` into `original` in place of what `of` denotes there.
///
/// # Errors
/// Why that can't be done, in one sentence.
pub fn compose(
    original: &str,
    of: &Denoted,
    candidate: &str,
    verified: &Verified,
) -> Result<Composition, String> {
    let source = Source::new(original).ok_or("The file is too long or too deeply nested to be parsed.")?;
    let plain = candidate.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let new = Source::new(&plain).ok_or("The candidate is too long or too deeply nested to be parsed.")?;
    if new.root().has_error() {
        return Err("The candidate is no valid Python.".to_owned());
    }
    if verified.calls.is_empty() {
        return Err("Nothing was verified, so the original code would always run.".to_owned());
    }
    let edits = match of {
        Denoted::Target(target) => {
            let node = definition(&source, target)
                .ok_or_else(|| format!("`{}` can't be found in the file any more.", target.name))?;
            let name = candidate_name(&plain, target.kind, &target.name)?;
            match target.kind {
                TargetKind::Module => place::module(&source, target, node, (&new, &name), verified)?,
                TargetKind::Function => place::function(&source, target, node, (&new, &name), verified)?,
            }
        }
        Denoted::Statements(statements) => {
            let name = candidate_name(&plain, TargetKind::Function, "statements")?;
            place::statements(&source, statements, (&new, &name), verified)?
        }
    };
    let composition = applied(original, edits).ok_or("The edits do not fit the file.")?;
    let result = Source::new(&composition.text).ok_or("The edited file is too long to be parsed.")?;
    if result.root().has_error() && !source.root().has_error() {
        return Err("The edited file would be no valid Python.".to_owned());
    }
    Ok(composition)
}

/// Makes the replacements.
fn applied(original: &str, mut edits: Vec<(Span, String)>) -> Option<Composition> {
    edits.sort_by_key(|(span, _)| *span);
    let mut text = String::with_capacity(original.len() * 2);
    let mut changed = Vec::new();
    let mut at = 0;
    for (span, new) in &edits {
        text.push_str(original.get(at..span.start)?);
        let start = text.len();
        text.push_str(new);
        changed.push(Span::new(start, text.len()));
        at = span.end;
    }
    text.push_str(original.get(at..)?);
    Some(Composition { text, changed, edits })
}
