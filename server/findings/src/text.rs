//! The little this crate must know about text: spans, edits, and how to read a span.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A half-open range of byte offsets into a UTF-8 text.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span from `start` up to, not including, `end`. A reversed pair gives an empty span at `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether it covers no byte.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `other` lies wholly inside.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether the byte at `offset` lies inside, the end included (a cursor just behind a word is on the word).
    pub fn touches(self, offset: usize) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// The same span, `by` bytes further on.
    pub fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }

    /// As a range, to index a string with.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }
}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

/// One replacement in a text: bytes `start..old_end` became `start..new_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// First byte replaced.
    pub start: usize,
    /// End of the replaced bytes, in the text before the edit.
    pub old_end: usize,
    /// End of the replacement, in the text after the edit.
    pub new_end: usize,
}

impl Edit {
    /// Where `span` lies after the edit, if none of its bytes changed.
    ///
    /// An insertion exactly at either end leaves the span's own bytes alone, so it moves or stays. `None` when the
    /// edit replaced or split bytes of the span.
    pub fn map(self, span: Span) -> Option<Span> {
        if self.old_end <= span.start {
            let start = span.start - self.old_end + self.new_end;
            Some(Span::new(start, start + span.len()))
        } else if self.start >= span.end {
            Some(span)
        } else {
            None
        }
    }

    /// Where the region `span` lies after the edit, growing or shrinking with what was typed inside it.
    pub fn stretch(self, span: Span) -> Span {
        self.map(span).unwrap_or_else(|| {
            let start = span.start.min(self.start);
            let end =
                if span.end <= self.old_end { self.new_end } else { span.end - self.old_end + self.new_end };
            Span::new(start, end)
        })
    }
}

/// A text of which parts can be read: a string, or the rope of an open document.
pub trait ReadText {
    /// Length in bytes.
    fn len_bytes(&self) -> usize;

    /// The text of `span`; the span is clamped to the text, and `None` is returned where it would split a character.
    fn read(&self, span: Span) -> Option<Cow<'_, str>>;

    /// A hash of the whole text, equal for equal texts however they are stored.
    fn content_hash(&self) -> u64;
}

impl ReadText for str {
    fn len_bytes(&self) -> usize {
        self.len()
    }

    fn read(&self, span: Span) -> Option<Cow<'_, str>> {
        let end = span.end.min(self.len());
        self.get(span.start.min(end)..end).map(Cow::Borrowed)
    }

    fn content_hash(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_before_moves_after_keeps_and_inside_breaks_a_span() {
        let span = Span::new(10, 20);
        let insert = |at| Edit { start: at, old_end: at, new_end: at + 3 };
        assert_eq!(insert(0).map(span), Some(Span::new(13, 23)));
        assert_eq!(insert(10).map(span), Some(Span::new(13, 23)));
        assert_eq!(insert(20).map(span), Some(span));
        assert_eq!(insert(15).map(span), None);
        assert_eq!(insert(15).stretch(span), Span::new(10, 23));
        let cut = Edit { start: 5, old_end: 12, new_end: 5 };
        assert_eq!(cut.map(span), None);
        assert_eq!(cut.stretch(span), Span::new(5, 13));
        let swallow = Edit { start: 5, old_end: 25, new_end: 6 };
        assert_eq!(swallow.stretch(span), Span::new(5, 6));
    }
}
