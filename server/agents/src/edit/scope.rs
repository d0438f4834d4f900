//! What of a file may be changed: the person's selection. Checked on the result, so that it holds for every way to write an edit.

use stitch_analysis::{Analysis, Language};
use stitch_findings::Span;

use super::Lines;
use crate::engine::Brief;

/// What of a file may be changed.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The parts that may be changed, in bytes of the file; `None` for all of it.
    parts: Option<Vec<Span>>,
    /// All functions, by name.
    functions: Vec<(String, Span)>,
    /// What may be changed, in words.
    named: String,
}

/// A change outside of the scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The answer changes line {line}{}, but only {allowed} may be changed (new functions, includes and constants may be added \
    between functions). Leave that line as it is.", function.as_ref().map(|name| format!(" in `{name}`")).unwrap_or_default())]
pub struct Outside {
    /// The line of the file, from 1.
    pub line: usize,
    /// The function around it.
    pub function: Option<String>,
    /// What may be changed, in words.
    pub allowed: String,
}

impl Scope {
    /// All of the file.
    pub fn everything() -> Self {
        Self::default()
    }

    /// What `brief` allows to change in its current text: the selection, and the functions named with it.
    pub fn of(brief: &Brief) -> Self {
        let Some(selection) = brief.selection else { return Self::everything() };
        let text = &brief.current;
        let language = Language::of_path(std::path::Path::new(&brief.file)).unwrap_or(Language::Cuda);
        let analysis = Analysis::of(language, text);
        let outline = analysis.outline();
        let functions: Vec<_> = outline
            .functions
            .iter()
            .filter(|function| function.is_definition)
            .map(|function| (function.name.clone(), function.span))
            .chain(outline.modules.iter().map(|module| (module.name.clone(), module.span)))
            .collect();
        let lines = Lines::of(text);
        let named = functions.iter().filter(|(name, _)| brief.scope.contains(name)).map(|(_, span)| *span);
        let parts: Vec<_> = named
            .chain(std::iter::once(moved(selection, &brief.reference, text)))
            .map(|span| with_comments(&lines, span))
            .collect();
        let named = if brief.scope.is_empty() {
            let lines: Vec<_> = parts
                .iter()
                .map(|part| format!("lines {} to {}", lines.number_at(part.start), lines.number_at(part.end)))
                .collect();
            lines.join(" and ")
        } else {
            let names: Vec<_> = brief.scope.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        Self { parts: Some(parts), functions, named }
    }

    /// Whether all of the file may be changed.
    pub fn is_everything(&self) -> bool {
        self.parts.is_none()
    }

    /// What may be changed, in words; empty for everything.
    pub fn named(&self) -> &str {
        &self.named
    }

    /// `new`, if it differs from `old` only where it may. Where it may not, other spaces and empty lines, as come with a whole file, are
    /// put back as they were.
    ///
    /// # Errors
    /// The first line that may not be changed, or before which nothing may be put.
    pub(super) fn confine(&self, old: &str, new: String) -> Result<String, Outside> {
        let Some(parts) = &self.parts else { return Ok(new) };
        let lines = Lines::of(old);
        let diff = super::line_diff(old, &new);
        let mut text = String::with_capacity(new.len());
        for op in diff.ops() {
            let (first, count) = (op.old_range().start, op.old_range().len());
            let before = diff.old_slices()[op.old_range()].concat();
            let after = diff.new_slices()[op.new_range()].concat();
            // Empty lines make room for something new.
            let place = if before.trim().is_empty() {
                let at = if first < lines.len() { lines.span(first, 1).start } else { old.len() };
                Span::new(at, at)
            } else {
                lines.span(first, count)
            };
            let is_inside = parts.iter().any(|part| part.contains(place));
            let is_between = place.is_empty() && self.function_at(place.start).is_none();
            if is_inside {
                text.push_str(&after);
            } else if before.split_whitespace().eq(after.split_whitespace()) {
                text.push_str(&before);
            } else if is_between {
                text.push_str(&after);
            } else {
                return Err(Outside {
                    line: first + 1,
                    function: self.function_at(place.start).map(str::to_owned),
                    allowed: self.named.clone(),
                });
            }
        }
        Ok(text)
    }

    /// The innermost function with `offset` strictly inside; at its very beginning one is still before it.
    fn function_at(&self, offset: usize) -> Option<&str> {
        let around = self.functions.iter().filter(|(_, span)| span.start < offset && offset < span.end);
        around.min_by_key(|(_, span)| span.len()).map(|(name, _)| name.as_str())
    }
}

/// Where `selection` of `reference` lies in `current`, which was made from it by changes inside the selection: what is the same
/// before and after it tells.
fn moved(selection: Span, reference: &str, current: &str) -> Span {
    let same = |pair: &(u8, u8)| pair.0 == pair.1;
    let before = reference.bytes().zip(current.bytes()).take_while(same).count();
    let after = reference.bytes().rev().zip(current.bytes().rev()).take_while(same).count();
    let start = selection.start.min(before);
    let end = (reference.len() - selection.end.min(reference.len())).min(after);
    Span::new(start, current.len() - end)
}

/// The span in whole lines, and with the comment right before it.
fn with_comments(lines: &Lines<'_>, span: Span) -> Span {
    let mut first = lines.number_at(span.start) - 1;
    let last = lines.number_at(span.end.saturating_sub(1).max(span.start)) - 1;
    let is_comment = |line: &str| ["//", "/*", "*"].iter().any(|start| line.trim_start().starts_with(start));
    while first > 0 && is_comment(lines.text(first - 1)) {
        first -= 1;
    }
    let start = lines.span(first, 1).start;
    // The line end after it belongs to it, so that lines can be added behind its last.
    let next = if last + 1 < lines.len() { lines.span(last + 1, 1).start } else { lines.span(last, 1).end };
    Span::new(start, next.max(span.end))
}
