//! Lists that grow before they are joined: `parts = [a]`, `parts.append(b)`, `"\n".join(parts)`.
//!
//! What such a list holds is taken only where it is certain: it is made once, every other use of its name is seen to add to
//! it or to read it, and all that adds stands in the block in which it is made.

use stitch_findings::Span;

use super::texts::{Site, Texts};
use super::value::{Value, ValueKind};

/// A statement that makes a list or adds to it.
struct Step<'v> {
    /// In the file.
    span: Span,
    items: &'v [Value],
    piece: usize,
}

impl<'a> Texts<'a> {
    /// What the list `name` holds where `used`, a span of the file, reads it. `None` where that is not certain.
    pub(super) fn grown(&self, name: &str, used: Span, site: Site) -> Option<Vec<(&'a Value, Site)>> {
        let assigned = self.names.assignments(site.level, name);
        let level = self.names.level_of(*assigned.first()?);
        let mut steps = Vec::new();
        let mut made = 0;
        for (piece, assignment) in assigned {
            let ValueKind::List(items) = &assignment.value.kind else { return None };
            made += usize::from(!assignment.augmented);
            let span = assignment.span.shifted(self.piece_start(*piece));
            steps.push(Step { span, items, piece: *piece });
        }
        let first = steps.first()?.span;
        for (piece, growth) in self.names.growths(level, name) {
            let span = growth.span.shifted(self.piece_start(piece));
            steps.push(Step { span, items: &growth.items, piece });
        }
        steps.sort_by_key(|step| step.span);
        let is_first = steps.first().is_some_and(|step| step.span == first);
        let last = steps.last()?.span;
        // A function runs after the file's own level has.
        let before = level != site.level || last.end <= used.start;
        if made != 1 || !is_first || !before || !self.in_one_block(&steps) {
            return None;
        }
        let region = self.names.region(level).unwrap_or(Span::new(0, self.source.len()));
        let explained = |at: usize| {
            (used.start <= at && at < used.end)
                || steps.iter().any(|step| step.span.start == at)
                || self.only_reads(at, name)
        };
        if !self.occurrences(name, region).all(explained) {
            return None;
        }
        let items = steps
            .iter()
            .flat_map(|step| step.items.iter().map(|item| (item, Site { piece: step.piece, level })));
        Some(items.collect())
    }

    /// Whether no line between the steps, and none of theirs, is indented less or begins with something else.
    fn in_one_block(&self, steps: &[Step<'_>]) -> bool {
        let Some(first) = steps.first().and_then(|step| self.indentation(step.span.start)) else {
            return false;
        };
        let same = |step: &Step<'_>| self.indentation(step.span.start) == Some(first);
        let deeper = |between: &str| {
            between.split(['\n', '\r']).skip(1).all(|line| {
                let text = line.trim_start_matches([' ', '\t']);
                text.is_empty() || text.starts_with('#') || line.len() - text.len() >= first.len()
            })
        };
        steps.iter().all(same)
            && steps.windows(2).all(|pair| {
                self.source.get(pair[0].span.end..pair[1].span.start).is_some_and(|between| {
                    // The last line is the next step's own indentation.
                    deeper(between.trim_end_matches([' ', '\t']))
                })
            })
    }

    /// The blanks before `at` on its line, if nothing else is there.
    fn indentation(&self, at: usize) -> Option<&'a str> {
        let before = self.source.get(..at)?;
        let line = &before[before.rfind(['\n', '\r']).map_or(0, |end| end + 1)..];
        line.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(line)
    }

    /// Where `name` stands as a word of its own in a part of the file.
    fn occurrences(&self, name: &str, region: Span) -> impl Iterator<Item = usize> {
        let continues = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80)
        };
        let bytes = self.source.as_bytes();
        let text = self.source.get(region.range()).unwrap_or_default();
        text.match_indices(name).map(move |(at, _)| region.start + at).filter(move |at| {
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            !continues(before) && before != Some(&b'.') && !continues(bytes.get(at + name.len()))
        })
    }

    /// Whether the name at `at` is all that is given to a `join` or `len`.
    fn only_reads(&self, at: usize, name: &str) -> bool {
        let before = self.source[..at].trim_end();
        (before.ends_with(".join(") || before.ends_with("len("))
            && self.source[at + name.len()..].trim_start().starts_with(')')
    }
}
