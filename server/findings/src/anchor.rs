//! Anchors: where something found in an earlier text lies in the text of now, and whether it still holds there.
//!
//! A finding hangs on a scope: the innermost function around it, or its own lines where there is none. While the text
//! of the scope is what it was, whatever happens elsewhere only moves it. Once the scope's text differs the finding is
//! stale: it is kept at its best place, for a number measured a moment ago still helps, but it must be shown as old.
//! Undoing brings it back.

use std::sync::Arc;

use crate::{Edit, ReadText, Span};

/// How far something found earlier can be trusted in the text of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnchorState {
    /// The whole text is the one it was found in.
    Fresh,
    /// Something changed elsewhere; its scope is the same and may have moved.
    Shifted,
    /// Its scope changed since.
    Stale,
}

/// The text that a group of anchors depends on, as it was and where it is now.
#[derive(Clone, Debug)]
pub struct Scope {
    text: Arc<str>,
    original: Span,
    current: Span,
    intact: bool,
    /// Whether the text may be looked for elsewhere: a function, not a line that may stand in many places.
    searchable: bool,
}

impl Scope {
    /// A scope over `span` of `text`. `None` if the span is no part of the text.
    pub fn new(span: Span, text: &(impl ReadText + ?Sized), searchable: bool) -> Option<Self> {
        let scope = text.read(span)?;
        let searchable = searchable && !scope.is_empty();
        Some(Self { text: scope.as_ref().into(), original: span, current: span, intact: true, searchable })
    }

    /// The span it was made for.
    pub fn original(&self) -> Span {
        self.original
    }

    /// Follows one edit, by position only.
    pub fn follow(&mut self, edit: Edit) {
        self.current = edit.stretch(self.current);
    }

    /// Compares with the text of now, after all edits were followed, and looks for a text that moved.
    pub fn settle(&mut self, text: &str) {
        let here = Span::new(self.current.start, self.current.start + self.text.len());
        self.intact = text.get(here.range()).is_some_and(|found| *found == *self.text);
        if self.intact {
            self.current = here;
        } else if self.searchable
            && let Some(found) = find_only(text, &self.text)
        {
            self.current = found;
            self.intact = true;
        }
    }

    /// Puts it back to the text it was made for.
    pub fn reset(&mut self) {
        self.current = self.original;
        self.intact = true;
    }
}

/// The only place where `needle` stands in `text`.
fn find_only(text: &str, needle: &str) -> Option<Span> {
    let mut places = memchr::memmem::find_iter(text.as_bytes(), needle.as_bytes());
    let start = places.next()?;
    places.next().is_none().then(|| Span::new(start, start + needle.len()))
}

/// A span in an earlier text, followed to the text of now.
#[derive(Clone, Debug)]
pub struct Anchor {
    original: Span,
    /// By position only; used when the scope is stale. `None` once its text is gone.
    tracked: Option<Span>,
}

impl Anchor {
    /// An anchor at `span` of the text it is made from.
    pub fn new(span: Span) -> Self {
        Self { original: span, tracked: Some(span) }
    }

    /// Follows one edit, by position only. An edit that swallows the span ends it.
    pub fn follow(&mut self, edit: Edit) {
        self.tracked = self.tracked.and_then(|span| match edit.map(span) {
            Some(moved) => Some(moved),
            None if edit.start <= span.start && span.end <= edit.old_end => None,
            None => Some(edit.stretch(span)),
        });
    }

    /// Puts it back to the text it was made from.
    pub fn reset(&mut self) {
        self.tracked = Some(self.original);
    }

    /// Where it is now, and how far it holds. `None` when its text is gone.
    pub fn place(&self, scope: &Scope, fresh: bool) -> Option<(Span, AnchorState)> {
        if fresh {
            return Some((self.original, AnchorState::Fresh));
        }
        if scope.intact {
            let into = self.original.start - scope.original.start;
            let start = scope.current.start + into;
            return Some((Span::new(start, start + self.original.len()), AnchorState::Shifted));
        }
        self.tracked.map(|span| (span, AnchorState::Stale))
    }
}
