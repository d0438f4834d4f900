//! Spans that lie in each other, as functions and classes do.

use std::cmp::Reverse;

use crate::Span;

/// Tells the innermost of many spans around a place, without looking at all of them.
#[derive(Clone, Debug, Default)]
pub struct Nest {
    /// Each with its index as it was given, in the order of the text; one inside another comes after it.
    spans: Vec<(Span, usize)>,
    /// For each, the nearest one before it that reaches further.
    around: Vec<Option<usize>>,
}

impl Nest {
    /// Of these spans.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut spans: Vec<(Span, usize)> =
            spans.into_iter().enumerate().map(|(index, span)| (span, index)).collect();
        spans.sort_by_key(|(span, _)| (span.start, Reverse(span.end)));
        let mut around: Vec<Option<usize>> = Vec::with_capacity(spans.len());
        for (at, (span, _)) in spans.iter().enumerate() {
            let mut before = at.checked_sub(1);
            while let Some(other) = before
                && spans[other].0.end <= span.end
            {
                before = around[other];
            }
            around.push(before);
        }
        Self { spans, around }
    }

    /// The index of the innermost span that contains `span`; of two that are crossed, the one that begins later.
    pub fn innermost(&self, span: Span) -> Option<usize> {
        let mut at = self.spans.partition_point(|(other, _)| other.start <= span.start).checked_sub(1);
        while let Some(other) = at
            && self.spans[other].0.end < span.end
        {
            at = self.around[other];
        }
        at.map(|at| self.spans[at].1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn says_what_a_look_at_all_would_say(
            spans in prop::collection::vec((0..60usize, 0..30usize), 0..40),
            (start, length) in (0..60usize, 0..10usize),
        ) {
            let spans: Vec<Span> = spans.into_iter().map(|(start, length)| Span::new(start, start + length)).collect();
            let wanted = Span::new(start, start + length);
            let best = spans
                .iter()
                .filter(|span| span.start <= wanted.start && wanted.end <= span.end)
                .max_by_key(|span| (span.start, Reverse(span.end)));
            let found = Nest::new(spans.iter().copied()).innermost(wanted);
            prop_assert_eq!(found.map(|index| &spans[index]), best);
        }
    }

    #[test]
    fn many_spans_take_no_time() {
        let started = std::time::Instant::now();
        for spans in [
            (0..100_000).map(|i| Span::new(3 * i, 3 * i + 2)).collect::<Vec<_>>(),
            (0..100_000).map(|i| Span::new(i, 400_000 - i)).collect(),
        ] {
            let nest = Nest::new(spans.iter().copied());
            assert!((0..100_000).all(|i| nest.innermost(spans[i]) == Some(i)));
        }
        assert!(started.elapsed().as_secs() < 5);
    }
}
