//! The text that a Python string expression makes, and where each of its bytes comes from in the file.
//!
//! A text is a row of segments. Most are copied as they stand; an escape, a line end of a CRLF file and a replaced word
//! have another length in the file; a hole stands for what is only known when the program runs. Operations such as
//! `dedent` and `+` cut and join segments, so the way back to the file survives them.

use stitch_findings::Span;

/// What fills a hole that shares its line with other text: it parses as a name, a type or a value.
pub(super) const HOLE_NAME: &str = "stitch_unknown";
/// Stands for a hole until the text is finished. A noncharacter, so it is neither blank nor part of a word.
const HOLE_MARK: &str = "\u{ffff}";
/// Quotes, blanks and a comment between two strings of one expression are shorter than this, in bytes; what lies further
/// apart is elsewhere in the file.
const SEAM: usize = 240;

/// How a segment of text came from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Byte for byte.
    Copied,
    /// From an escape, a line end or a replacement: the file's span as a whole stands for the text's span as a whole.
    Made,
    /// Not known before the program runs.
    Hole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// In the decoded text.
    text: Span,
    /// In the file.
    file: Span,
    kind: Kind,
}

/// A text with the places that it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    text: String,
    segments: Vec<Segment>,
}

impl Decoded {
    /// The text; a hole is one noncharacter until [`Decoded::finish`].
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Adds text that stands so in the file, beginning at `file`.
    pub(super) fn copy(&mut self, text: &str, file: usize) {
        if !text.is_empty() {
            self.push(text, Span::new(file, file + text.len()), Kind::Copied);
        }
    }

    /// Adds text that `file` stands for as a whole.
    pub(super) fn make(&mut self, text: &str, file: Span) {
        if !text.is_empty() {
            self.push(text, file, Kind::Made);
        }
    }

    /// Adds something that is not known, which `file` stands for.
    pub(super) fn hole(&mut self, file: Span) {
        self.push(HOLE_MARK, file, Kind::Hole);
    }

    /// Adds another text at the end.
    pub(super) fn append(&mut self, other: &Decoded) {
        for segment in &other.segments {
            self.push(&other.text[segment.text.range()], segment.file, segment.kind);
        }
    }

    fn push(&mut self, text: &str, file: Span, kind: Kind) {
        let start = self.text.len();
        self.text.push_str(text);
        if let Some(last) = self.segments.last_mut()
            && (last.kind, kind) == (Kind::Copied, Kind::Copied)
            && last.file.end == file.start
        {
            last.text.end = self.text.len();
            last.file.end = file.end;
            return;
        }
        self.segments.push(Segment { text: Span::new(start, self.text.len()), file, kind });
    }

    /// The part `span` of the text.
    pub(super) fn part(&self, span: Span) -> Decoded {
        let mut part = Decoded::default();
        part.append_part(self, span);
        part
    }

    /// Adds the part `span` of another text.
    pub(super) fn append_part(&mut self, other: &Decoded, span: Span) {
        let first = other.segments.partition_point(|segment| segment.text.end <= span.start);
        for segment in other.segments[first..].iter().take_while(|segment| segment.text.start < span.end) {
            let from = segment.text.start.max(span.start);
            let to = segment.text.end.min(span.end);
            let file = match segment.kind {
                Kind::Copied => Span::new(segment.file_start(from), segment.file_end(to)),
                Kind::Made | Kind::Hole => segment.file,
            };
            self.push(&other.text[from..to], file, segment.kind);
        }
    }

    /// `str.strip`, `lstrip` and `rstrip`: without the characters of `drop` (blanks, for `None`) at the chosen ends.
    pub(super) fn strip(&self, left: bool, right: bool, drop: Option<&str>) -> Decoded {
        let dropped = |c: char| match drop {
            Some(drop) => drop.contains(c),
            None => c.is_whitespace() || matches!(c, '\x1c'..='\x1f'),
        };
        let mut end = self.text.len();
        if right {
            end = self.text.trim_end_matches(dropped).len();
        }
        let mut start = 0;
        if left {
            start = end - self.text[..end].trim_start_matches(dropped).len();
        }
        self.part(Span::new(start, end))
    }

    /// `textwrap.dedent`: without the blanks that all lines begin with; lines of blanks alone become empty.
    pub(super) fn dedent(&self) -> Decoded {
        let is_blank = |c: char| c == ' ' || c == '\t';
        let mut margin: Option<&str> = None;
        for line in self.text.split('\n') {
            let body = line.trim_start_matches(is_blank);
            if body.is_empty() {
                continue;
            }
            let indent = &line[..line.len() - body.len()];
            margin = Some(margin.map_or(indent, |margin| common_prefix(margin, indent)));
        }
        let margin = margin.map_or(0, str::len);
        let mut result = Decoded::default();
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let drop = if body.chars().all(is_blank) { body.len() } else { margin };
            result.append_part(self, Span::new(start + drop, start + line.len()));
            start += line.len();
        }
        result
    }

    /// `str.replace`: what is put in maps to the place of what it replaces.
    pub(super) fn replace(&self, from: &str, to: &str) -> Decoded {
        if from.is_empty() {
            return self.clone();
        }
        let mut result = Decoded::default();
        let mut start = 0;
        for (at, _) in self.text.match_indices(from) {
            result.append_part(self, Span::new(start, at));
            start = at + from.len();
            result.make(to, self.place(Span::new(at, start)));
        }
        result.append_part(self, Span::new(start, self.text.len()));
        result
    }

    /// `str.replace` by something that is not known.
    pub(super) fn replace_with_holes(&self, from: &str) -> Decoded {
        if from.is_empty() {
            return self.clone();
        }
        let mut result = Decoded::default();
        let mut start = 0;
        for (at, _) in self.text.match_indices(from) {
            result.append_part(self, Span::new(start, at));
            start = at + from.len();
            result.hole(self.place(Span::new(at, start)));
        }
        result.append_part(self, Span::new(start, self.text.len()));
        result
    }

    /// The file's span for `span` of the text.
    pub(super) fn place(&self, span: Span) -> Span {
        hull(&self.segments, span).unwrap_or_default()
    }

    /// Fills the holes, and gives the text and the map back to the file.
    pub(super) fn finish(self) -> (String, Map) {
        let mut result = Decoded::default();
        let mut holes = Vec::new();
        for segment in &self.segments {
            if segment.kind != Kind::Hole {
                result.push(&self.text[segment.text.range()], segment.file, segment.kind);
                continue;
            }
            if !holes.contains(&segment.file) {
                holes.push(segment.file);
            }
            if !self.alone_on_its_line(segment.text) {
                result.push(HOLE_NAME, segment.file, Kind::Hole);
            }
        }
        (result.text, Map { segments: result.segments, holes })
    }

    /// A hole with a line to itself stands for whole lines of code, and is best left empty.
    fn alone_on_its_line(&self, hole: Span) -> bool {
        let blank = |c: char| c == ' ' || c == '\t' || c == '\u{ffff}';
        let before = self.text[..hole.start].trim_end_matches(blank);
        let after = self.text[hole.end..].trim_start_matches(blank);
        (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with('\n'))
    }
}

impl Segment {
    fn file_start(&self, text: usize) -> usize {
        match self.kind {
            Kind::Copied => self.file.start + text.clamp(self.text.start, self.text.end) - self.text.start,
            Kind::Made | Kind::Hole => self.file.start,
        }
    }

    fn file_end(&self, text: usize) -> usize {
        match self.kind {
            Kind::Copied => self.file_start(text),
            Kind::Made | Kind::Hole if text <= self.text.start => self.file.start,
            Kind::Made | Kind::Hole => self.file.end,
        }
    }
}

fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let length = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    &a[..length]
}

/// The way from offsets in a finished text to offsets in the file, and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map {
    segments: Vec<Segment>,
    holes: Vec<Span>,
}

impl Map {
    /// The file's offset of the byte at `offset` of the text; of the start of an escape for a byte that it made.
    pub(super) fn to_file(&self, offset: usize) -> Option<usize> {
        let index = segment_at(&self.segments, offset)?;
        let segment = &self.segments[index];
        Some(if offset >= segment.text.end { segment.file_end(offset) } else { segment.file_start(offset) })
    }

    /// The file's span of `span` of the text, widened to whole escapes. It goes on over the seams of a concatenation, and
    /// ends where the text goes on elsewhere in the file.
    pub(super) fn span_to_file(&self, span: Span) -> Option<Span> {
        hull(&self.segments, span)
    }

    /// The text's offset of the file's byte at `offset`; the start of what an escape makes for a byte inside it.
    pub(super) fn to_text(&self, offset: usize) -> Option<usize> {
        let inside = |segment: &&Segment| segment.file.start <= offset && offset < segment.file.end;
        let segment = self.segments.iter().find(inside);
        let segment = segment.or_else(|| self.segments.iter().find(|segment| segment.file.end == offset))?;
        Some(match segment.kind {
            Kind::Copied => segment.text.start + (offset - segment.file.start),
            Kind::Made | Kind::Hole if offset >= segment.file.end => segment.text.end,
            Kind::Made | Kind::Hole => segment.text.start,
        })
    }

    /// What the text leaves open, in the file.
    pub(super) fn holes(&self) -> &[Span] {
        &self.holes
    }

    /// The file's span around the whole text.
    pub(super) fn places(&self) -> impl Iterator<Item = Span> {
        self.segments.iter().map(|segment| segment.file)
    }
}

/// The segment that holds the byte at `offset`, or the last one for the end of the text.
fn segment_at(segments: &[Segment], offset: usize) -> Option<usize> {
    let after = segments.partition_point(|segment| segment.text.end <= offset);
    if after < segments.len() { Some(after) } else { segments.len().checked_sub(1) }
}

/// The file's span for `span` of the text, over all segments that follow each other closely in the file.
fn hull(segments: &[Segment], span: Span) -> Option<Span> {
    let first = segment_at(segments, span.start)?;
    let start = segments[first].file_start(span.start);
    let mut end = segments[first].file_end(span.end);
    for segment in &segments[first + 1..] {
        let follows = end <= segment.file.start && segment.file.start - end <= SEAM;
        if segment.text.start >= span.end || !follows {
            break;
        }
        end = segment.file_end(span.end);
    }
    Some(Span::new(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ab\ncd` in the file at 10, then `ef` at 30 after a seam.
    fn sample() -> Decoded {
        let mut text = Decoded::default();
        text.copy("ab", 10);
        text.make("\n", Span::new(12, 14));
        text.copy("cd", 14);
        text.copy("ef", 30);
        text
    }

    #[test]
    fn offsets_go_to_the_file_and_back() {
        let (text, map) = sample().finish();
        assert_eq!(text, "ab\ncdef");
        let there: Vec<_> = (0..=text.len()).map(|offset| map.to_file(offset).unwrap()).collect();
        assert_eq!(there, [10, 11, 12, 14, 15, 30, 31, 32]);
        assert_eq!(
            [10, 12, 13, 14, 16, 20, 30, 32].map(|offset| map.to_text(offset)),
            [Some(0), Some(2), Some(2), Some(3), Some(5), None, Some(5), Some(7)]
        );
    }

    #[test]
    fn spans_widen_to_escapes_and_cross_seams() {
        let (_, map) = sample().finish();
        let cases = [
            ((0, 2), (10, 12)),
            ((0, 3), (10, 14)),
            ((2, 3), (12, 14)),
            ((3, 6), (14, 31)),
            ((5, 7), (30, 32)),
        ];
        for ((start, end), (from, to)) in cases {
            assert_eq!(map.span_to_file(Span::new(start, end)), Some(Span::new(from, to)), "{start}..{end}");
        }
        let mut far = Decoded::default();
        far.copy("ab", 1000);
        far.copy("cd", 10);
        far.copy("ef", 1002);
        let (_, map) = far.finish();
        assert_eq!(map.span_to_file(Span::new(1, 4)), Some(Span::new(1001, 1002)));
        assert_eq!(Map::default().span_to_file(Span::new(0, 0)), None);
    }

    #[test]
    fn dedent_is_that_of_textwrap() {
        let cases = [
            ("  a\n    b\n  \n  c", "a\n  b\n\nc"),
            ("\n\ta\n\t b\n", "\na\n b\n"),
            ("\ta\n  b", "\ta\n  b"),
            ("  \n a\n", "\na\n"),
            ("", ""),
        ];
        for (from, to) in cases {
            let mut text = Decoded::default();
            text.copy(from, 100);
            let dedented = text.dedent();
            assert_eq!(dedented.text(), to, "{from:?}");
            for segment in &dedented.segments {
                assert_eq!(
                    dedented.text[segment.text.range()],
                    from[segment.file.start - 100..segment.file.end - 100]
                );
            }
        }
    }

    #[test]
    fn strip_and_replace_keep_the_places() {
        let mut text = Decoded::default();
        text.copy("  NAME x NAME ", 50);
        let text = text.strip(true, true, None).replace("NAME", "a_longer_name");
        let (text, map) = text.finish();
        assert_eq!(text, "a_longer_name x a_longer_name");
        assert_eq!(map.span_to_file(Span::new(0, 15)), Some(Span::new(52, 58)));
        assert_eq!(map.to_file(16), Some(59));
        assert_eq!(map.to_text(54), Some(0));
        let mut text = Decoded::default();
        text.copy("xxaxx", 0);
        assert_eq!(text.strip(false, true, Some("x")).text(), "xxa");
        assert_eq!(text.strip(true, false, Some("x")).text(), "axx");
        assert_eq!(text.replace("", "y").text(), "xxaxx");
    }

    #[test]
    fn a_hole_is_a_name_unless_it_has_a_line_to_itself() {
        let mut text = Decoded::default();
        text.copy("k_", 0);
        text.hole(Span::new(2, 8));
        text.copy(";\n  ", 8);
        text.hole(Span::new(12, 20));
        text.copy("\n", 20);
        let (text, map) = text.finish();
        assert_eq!(text, "k_stitch_unknown;\n  \n");
        assert_eq!(map.holes(), [Span::new(2, 8), Span::new(12, 20)]);
        assert_eq!(map.span_to_file(Span::new(5, 9)), Some(Span::new(2, 8)));
        assert_eq!(map.span_to_file(Span::new(0, 17)), Some(Span::new(0, 9)));
    }
}
