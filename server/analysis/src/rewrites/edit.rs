//! Text edits: what each must be, and how they are applied.

use serde::Serialize;
use stitch_findings::Span;

use super::{Context, Proposal, Refusal};

/// One replacement in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// The bytes that are replaced; empty to insert.
    pub span: Span,
    /// What stands there afterwards.
    pub text: String,
}

impl Edit {
    /// Replaces `span` by `text`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Inserts `text` before the byte `at`.
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(Span::new(at, at), text)
    }
}

/// The text after `edits`. `None` where they are not sorted and disjoint or do not fit the text.
pub fn apply(source: &str, edits: &[Edit]) -> Option<String> {
    let mut text = String::with_capacity(source.len());
    let mut at = 0;
    for edit in edits {
        text.push_str(source.get(at..edit.span.start)?);
        text.push_str(&edit.text);
        at = edit.span.end;
    }
    text.push_str(source.get(at..)?);
    Some(text)
}

/// The proposal if its edits may be made, with its line ends those of the file; else a refusal.
pub(super) fn checked(proposal: Proposal, context: &Context) -> Proposal {
    let Proposal::Rewrite(mut rewrite) = proposal else { return proposal };
    for edit in &mut rewrite.edits {
        let lines = edit.text.replace("\r\n", "\n");
        edit.text = if context.newline == "\n" { lines } else { lines.replace('\n', context.newline) };
    }
    rewrite.edits.sort_by_key(|edit| edit.span);
    match trouble(&rewrite.edits, context) {
        None => Proposal::Rewrite(rewrite),
        Some(reason) => Proposal::Refused(Refusal { rule: rewrite.rule, place: rewrite.place, reason }),
    }
}

/// Why these edits can't be made.
fn trouble(edits: &[Edit], context: &Context) -> Option<String> {
    if edits.windows(2).any(|pair| pair[1].span.start < pair[0].span.end) {
        return Some("the edits would overlap".to_owned());
    }
    if edits.is_empty() || apply(context.source, edits).is_none_or(|after| after == context.source) {
        return Some("there is nothing to edit".to_owned());
    }
    let meets = |region: &Span, edit: &Edit| edit.span.start <= region.end && region.start <= edit.span.end;
    for edit in edits {
        let line = context.line(edit.span.start);
        if context.directives.lines.iter().any(|region| meets(region, edit)) {
            return Some(format!("line {line} is a macro's body"));
        }
        if context.directives.conditional.iter().any(|region| meets(region, edit)) {
            return Some(format!("line {line} stands under `#if`"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_applied_in_order_or_not_at_all() {
        let edits = [Edit::replace(Span::new(0, 1), "x"), Edit::insert(2, "y")];
        assert_eq!(apply("abc", &edits), Some("xbyc".to_owned()));
        assert_eq!(apply("abc", &[edits[1].clone(), edits[0].clone()]), None);
        assert_eq!(apply("ä", &[Edit::insert(1, "y")]), None);
    }
}
