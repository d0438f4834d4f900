//! A text as lines, with where each lies and how it ends.

use stitch_findings::Span;

/// A text's lines. LF and CRLF end a line; a text of no bytes has no line.
pub(crate) struct Lines<'a> {
    source: &'a str,
    lines: Vec<Line<'a>>,
    newline: &'static str,
}

struct Line<'a> {
    text: &'a str,
    start: usize,
    /// Where the next line begins.
    next: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `source`.
    pub(crate) fn of(source: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        let mut carriage_returns = 0;
        for piece in source.split_inclusive('\n') {
            let bare = piece.strip_suffix('\n').unwrap_or(piece);
            let text = if bare.len() < piece.len() { bare.strip_suffix('\r').unwrap_or(bare) } else { bare };
            carriage_returns += usize::from(text.len() < bare.len());
            lines.push(Line { text, start, next: start + piece.len() });
            start += piece.len();
        }
        let newline = if carriage_returns * 2 > lines.len() { "\r\n" } else { "\n" };
        Self { source, lines, newline }
    }

    /// The lines without their ends.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().map(|line| line.text)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The text of line `index`, from zero; empty past the end.
    pub(crate) fn text(&self, index: usize) -> &'a str {
        self.lines.get(index).map_or("", |line| line.text)
    }

    /// How most lines end.
    pub(crate) fn newline(&self) -> &'static str {
        self.newline
    }

    /// How line `index` ends; as most do, where it is the last and has no end.
    pub(crate) fn newline_at(&self, index: usize) -> &'static str {
        let Some(line) = self.lines.get(index) else { return self.newline };
        match line.next - line.start - line.text.len() {
            2 => "\r\n",
            1 => "\n",
            _ => self.newline,
        }
    }

    /// The number, from 1, of the line that holds the byte at `offset`.
    pub(crate) fn number_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|line| line.start <= offset).max(1)
    }

    /// `count` lines from `first` on, without the end of the last.
    pub(crate) fn span(&self, first: usize, count: usize) -> Span {
        let Some(lines) = self.lines.get(first..first + count) else { return Span::default() };
        match (lines.first(), lines.last()) {
            (Some(first), Some(last)) => Span::new(first.start, last.start + last.text.len()),
            _ => Span::default(),
        }
    }

    /// The same with the line end that goes when the lines do. At the end of a text without a final line end it is the one before.
    pub(crate) fn span_to_remove(&self, first: usize, count: usize) -> Span {
        let bare = self.span(first, count);
        let next = self.lines.get(first + count - 1).map_or(bare.end, |line| line.next);
        if next > bare.end || first == 0 {
            return Span::new(bare.start, next);
        }
        let before = &self.lines[first - 1];
        Span::new(before.start + before.text.len(), bare.end)
    }

    /// Where `search` stands as whole lines, as indices of the first.
    pub(crate) fn whole(&self, search: &[&str], same: impl Fn(&str, &str) -> bool) -> Vec<usize> {
        if search.is_empty() || search.len() > self.lines.len() {
            return Vec::new();
        }
        (0..=self.lines.len() - search.len())
            .filter(|first| search.iter().zip(&self.lines[*first..]).all(|(one, line)| same(one, line.text)))
            .collect()
    }

    /// Where `search` stands as a text, whose first and last line may be parts of lines.
    pub(crate) fn parts(&self, search: &[&str]) -> Vec<Span> {
        let (Some(head), Some(tail)) = (search.first(), search.last()) else { return Vec::new() };
        if search.len() == 1 {
            return self
                .source
                .match_indices(head)
                .map(|(start, text)| Span::new(start, start + text.len()))
                .collect();
        }
        let between = &search[1..search.len() - 1];
        let mut found = Vec::new();
        for first in 0..(self.lines.len() + 1).saturating_sub(search.len()) {
            let (start, end) = (&self.lines[first], &self.lines[first + search.len() - 1]);
            let middle = &self.lines[first + 1..first + search.len() - 1];
            if start.text.ends_with(head)
                && end.text.starts_with(tail)
                && between.iter().zip(middle).all(|(one, line)| *one == line.text)
            {
                found.push(Span::new(start.start + start.text.len() - head.len(), end.start + tail.len()));
            }
        }
        found
    }
}
