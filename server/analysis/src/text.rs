//! The text of an open document: a rope, with the positions of the Language Server Protocol.
//!
//! A rope, since an editor sends small changes of a large text. Every conversion clamps as LSP 3.17 asks, so no position a
//! client sends can fail. Lines end at LF, CRLF and CR alone: a form feed, NEL or U+2028 inside a string must not shift
//! every line below it. Columns are counted by the encoding that client and server agreed on.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ropey::Rope;
use stitch_findings::{Edit, ReadText, Span};
use xxhash_rust::xxh3::Xxh3;

/// What a column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Code units of UTF-16: what a client means unless it says otherwise.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

/// A place in a text as an editor gives it; both numbers count from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in the units of an [`Encoding`].
    pub character: u32,
}

/// A text that is edited. A clone costs nothing and does not follow later edits of the original.
#[derive(Clone, Default)]
pub struct Text {
    rope: Rope,
}

impl Text {
    /// A document with this text.
    pub fn new(text: &str) -> Self {
        Self { rope: Rope::from_str(text) }
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.rope.len_bytes()
    }

    /// All of it, in one piece.
    pub fn to_source(&self) -> Arc<str> {
        String::from(&self.rope).into()
    }

    /// How many lines there are: one more than there are line ends.
    pub fn line_count(&self) -> usize {
        self.rope.len_lines()
    }

    /// The bytes of `line`, without its line end. A line past the last one is the empty span at the end of the text.
    pub fn line_span(&self, line: usize) -> Span {
        if line >= self.line_count() {
            return Span::new(self.len_bytes(), self.len_bytes());
        }
        let start = self.rope.line_to_byte(line);
        let mut end = self.rope.line_to_byte(line + 1);
        if end > start && self.rope.byte(end - 1) == b'\n' {
            end -= 1;
        }
        if end > start && self.rope.byte(end - 1) == b'\r' {
            end -= 1;
        }
        Span::new(start, end)
    }

    /// The position of `byte`. A byte inside a character counts as the character's first, one inside a line end as the
    /// end of the line, and one past the text as the end of the text.
    pub fn position(&self, byte: usize, encoding: Encoding) -> Position {
        let line = self.rope.byte_to_line(byte.min(self.len_bytes()));
        let span = self.line_span(line);
        let byte = self.floor(byte.min(span.end));
        let column = self.units(byte, encoding) - self.units(span.start, encoding);
        Position { line: saturate(line), character: saturate(column) }
    }

    /// The column of the byte number `byte` of `line`, both from zero; one past the line's end counts as its end.
    pub fn column(&self, line: u32, byte: u32, encoding: Encoding) -> u32 {
        let span = self.line_span(line as usize);
        self.position((span.start + byte as usize).min(span.end), encoding).character
    }

    /// The byte at `position`. A column past the end of its line means the end of the line, before its line end; a line
    /// past the last means the end of the text; a column inside a character means the character's start.
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let span = self.line_span(position.line as usize);
        let column = position.character as usize;
        let last = self.units(span.end, encoding);
        let wanted = self.units(span.start, encoding).saturating_add(column).min(last);
        match encoding {
            Encoding::Utf8 => self.floor(wanted),
            Encoding::Utf16 => self.rope.char_to_byte(self.rope.utf16_cu_to_char(wanted)),
            Encoding::Utf32 => self.rope.char_to_byte(wanted),
        }
    }

    /// Puts `new` in place of `span`, and returns what changed. Each end of the span is clamped to the text and then to
    /// the start of the character that it is in.
    pub fn replace(&mut self, span: Span, new: &str) -> Edit {
        let start = self.floor(span.start);
        let old_end = self.floor(span.end);
        if start == 0 && old_end == self.len_bytes() {
            self.rope = Rope::from_str(new);
        } else {
            let at = self.rope.byte_to_char(start);
            self.rope.remove(at..self.rope.byte_to_char(old_end));
            self.rope.insert(at, new);
        }
        Edit { start, old_end, new_end: start + new.len() }
    }

    /// The start of the character that `byte` is in; the end of the text for a byte past it.
    fn floor(&self, byte: usize) -> usize {
        let byte = byte.min(self.len_bytes());
        self.rope.char_to_byte(self.rope.byte_to_char(byte))
    }

    /// How many units of `encoding` stand before `byte`, which is the start of a character or the end of the text.
    fn units(&self, byte: usize, encoding: Encoding) -> usize {
        match encoding {
            Encoding::Utf8 => byte,
            Encoding::Utf16 => self.rope.char_to_utf16_cu(self.rope.byte_to_char(byte)),
            Encoding::Utf32 => self.rope.byte_to_char(byte),
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("bytes", &self.len_bytes()).field("lines", &self.line_count()).finish()
    }
}

impl ReadText for Text {
    fn len_bytes(&self) -> usize {
        self.rope.len_bytes()
    }

    fn read(&self, span: Span) -> Option<Cow<'_, str>> {
        let end = span.end.min(self.rope.len_bytes());
        self.rope.get_byte_slice(span.start.min(end)..end).map(Cow::from)
    }

    fn content_hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for chunk in self.rope.chunks() {
            hash.update(chunk.as_bytes());
        }
        hash.digest()
    }
}

/// LSP counts in 31 bits; a text of more than four thousand million lines or columns is shown at the last one.
fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    /// The lines of a string with their spans, by hand: LF, CRLF and CR end a line, nothing else does.
    fn naive_lines(text: &str) -> Vec<Span> {
        let bytes = text.as_bytes();
        let (mut lines, mut start, mut index) = (Vec::new(), 0, 0);
        while index < bytes.len() {
            let end = index;
            index += match bytes[index] {
                b'\n' => 1,
                b'\r' if bytes.get(index + 1) == Some(&b'\n') => 2,
                b'\r' => 1,
                _ => {
                    index += 1;
                    continue;
                }
            };
            lines.push(Span::new(start, end));
            start = index;
        }
        lines.push(Span::new(start, bytes.len()));
        lines
    }

    fn width(character: char, encoding: Encoding) -> usize {
        match encoding {
            Encoding::Utf8 => character.len_utf8(),
            Encoding::Utf16 => character.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }

    fn naive_offset(text: &str, position: Position, encoding: Encoding) -> usize {
        let lines = naive_lines(text);
        let Some(line) = lines.get(position.line as usize) else { return text.len() };
        let mut left = position.character as usize;
        let mut offset = line.start;
        for character in text[line.range()].chars() {
            let width = width(character, encoding);
            if left < width {
                break;
            }
            left -= width;
            offset += character.len_utf8();
        }
        offset
    }

    fn naive_floor(text: &str, byte: usize) -> usize {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    }

    fn naive_position(text: &str, byte: usize, encoding: Encoding) -> Position {
        let lines = naive_lines(text);
        let byte = byte.min(text.len());
        let line = lines.iter().rposition(|line| line.start <= byte).unwrap();
        let end = naive_floor(text, byte.min(lines[line].end));
        let column = text[lines[line].start..end].chars().map(|c| width(c, encoding)).sum::<usize>();
        at(line as u32, column as u32)
    }

    fn agree(text: &Text, model: &str) {
        assert_eq!(&*text.to_source(), model);
        assert_eq!(text.len_bytes(), model.len());
        assert_eq!(text.content_hash(), model.content_hash());
        let lines = naive_lines(model);
        assert_eq!(text.line_count(), lines.len(), "{model:?}");
        for (index, line) in lines.iter().enumerate() {
            assert_eq!(text.line_span(index), *line, "{model:?} line {index}");
        }
        assert_eq!(text.line_span(lines.len()), Span::new(model.len(), model.len()));
    }

    #[test]
    fn positions_are_clamped_as_the_protocol_asks() {
        let text = Text::new("a😀b\r\nçd\n\rx");
        let cases = [
            (at(0, 0), [0, 0, 0]),
            (at(0, 2), [1, 1, 5]),
            (at(0, 3), [1, 5, 6]),
            (at(0, 4), [1, 6, 6]),
            (at(0, 99), [6, 6, 6]),
            (at(0, u32::MAX), [6, 6, 6]),
            (at(1, 1), [8, 10, 10]),
            (at(2, 5), [12, 12, 12]),
            (at(3, 1), [14, 14, 14]),
            (at(4, 0), [14, 14, 14]),
            (at(u32::MAX, u32::MAX), [14, 14, 14]),
        ];
        for (position, expected) in cases {
            for (encoding, expected) in ENCODINGS.into_iter().zip(expected) {
                assert_eq!(text.offset(position, encoding), expected, "{position:?} {encoding:?}");
            }
        }
        assert_eq!(text.position(7, Encoding::Utf16), at(0, 4), "between CR and LF is the end of the line");
        assert_eq!(text.position(3, Encoding::Utf16), at(0, 1), "inside a character is its start");
        assert_eq!(text.position(usize::MAX, Encoding::Utf16), at(3, 1));
    }

    #[test]
    fn only_the_three_line_ends_of_the_protocol_end_a_line() {
        let text = Text::new("a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f\ng\rh\r\ni");
        assert_eq!(text.line_count(), 4);
        agree(&Text::new(""), "");
        agree(&Text::new("\n"), "\n");
        agree(&Text::new("\r\n\r\r\n\n"), "\r\n\r\r\n\n");
    }

    #[test]
    fn edits_may_split_and_join_line_ends_and_are_clamped_to_characters() {
        let mut text = Text::new("a\r\nb😀c");
        assert_eq!(text.replace(Span::new(2, 2), "x"), Edit { start: 2, old_end: 2, new_end: 3 });
        agree(&text, "a\rx\nb😀c");
        assert_eq!(text.replace(Span::new(2, 3), ""), Edit { start: 2, old_end: 3, new_end: 2 });
        agree(&text, "a\r\nb😀c");
        assert_eq!(text.replace(Span::new(6, 7), "-"), Edit { start: 4, old_end: 4, new_end: 5 });
        agree(&text, "a\r\nb-😀c");
        assert_eq!(text.replace(Span::new(90, 99), "!"), Edit { start: 10, old_end: 10, new_end: 11 });
        let before = text.clone();
        assert_eq!(text.replace(Span::new(0, 99), "z"), Edit { start: 0, old_end: 11, new_end: 1 });
        agree(&text, "z");
        agree(&before, "a\r\nb-😀c!");
    }

    #[test]
    fn a_span_is_read_whole_or_not_at_all() {
        let text = Text::new("a😀b");
        assert_eq!(text.read(Span::new(1, 5)).as_deref(), Some("😀"));
        assert_eq!(text.read(Span::new(5, 99)).as_deref(), Some("b"));
        assert_eq!(text.read(Span::new(99, 100)).as_deref(), Some(""));
        assert_eq!(text.read(Span::new(2, 5)), None);
    }

    /// Text that is made of what goes wrong: line ends, half line ends, wide characters, and separators that are none.
    fn awkward() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => Just("\r\n".to_owned()),
            2 => Just("\r".to_owned()),
            2 => Just("\n".to_owned()),
            2 => prop_oneof!["\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}", "\u{0}", "\u{feff}"],
            3 => prop_oneof!["😀", "𝕏", "é", "e\u{301}", "語", "👩\u{200d}👩\u{200d}👧", "\u{10ffff}"],
            5 => "[ a-z{}(]{0,12}",
            1 => "\\PC{0,6}",
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_rope_behaves_as_a_string_does(
            start in awkward(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, awkward()), 0..20),
        ) {
            let mut text = Text::new(&start);
            let mut model = start;
            for (index, length, new) in edits {
                let from = index.index(model.len() + 3);
                let span = Span::new(from, from + length);
                let (low, high) = (naive_floor(&model, span.start), naive_floor(&model, span.end));
                let edit = text.replace(span, &new);
                model.replace_range(low..high, &new);
                prop_assert_eq!(edit, Edit { start: low, old_end: high, new_end: low + new.len() });
                agree(&text, &model);
            }
        }

        #[test]
        fn positions_agree_with_counting_by_hand(
            model in awkward(),
            places in prop::collection::vec((0u32..40, 0u32..30), 1..30),
        ) {
            let text = Text::new(&model);
            for encoding in ENCODINGS {
                for (line, character) in &places {
                    let position = at(*line, *character);
                    prop_assert_eq!(
                        text.offset(position, encoding), naive_offset(&model, position, encoding), "{:?}", position
                    );
                }
                for byte in 0..model.len() + 3 {
                    let position = text.position(byte, encoding);
                    prop_assert_eq!(position, naive_position(&model, byte, encoding), "{} {:?}", byte, encoding);
                    let back = text.offset(position, encoding);
                    prop_assert_eq!(text.position(back, encoding), position);
                }
            }
        }

        #[test]
        fn reading_and_hashing_agree_with_the_string(model in awkward(), from in 0usize..60, length in 0usize..60) {
            let text = Text::new(&model.repeat(40));
            let model = model.repeat(40);
            prop_assert_eq!(text.content_hash(), model.content_hash());
            for from in [from, from * 31] {
                let span = Span::new(from, from + length);
                prop_assert_eq!(text.read(span), model.read(span));
            }
        }
    }
}
