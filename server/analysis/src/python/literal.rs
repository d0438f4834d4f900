//! Decodes Python string literals as CPython does, keeping the way back to the file.

use stitch_findings::Span;

use super::decoded::Decoded;

/// No name in `\N{…}` is longer.
const NAME_LENGTH: usize = 128;

/// The parts of a literal: `rb'''…'''` is a prefix, an opening quote, a body, a closing quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    raw: bool,
    bytes: bool,
    format: bool,
    /// The body, in the file.
    body: Span,
}

/// Reads the prefix and the quotes of the literal at `span`. `None` where there is no quote.
fn shape(source: &str, span: Span) -> Option<Shape> {
    let text = source.get(span.range())?;
    let open = text.find(['"', '\''])?;
    let prefix = text[..open].to_ascii_lowercase();
    let quote = &text[open..open + 1];
    let length = if text[open..].starts_with(&quote.repeat(3)) { 3 } else { 1 };
    let start = open + length;
    let closes = text.len() >= start + length && text[start..].ends_with(&quote.repeat(length));
    let end = if closes { text.len() - length } else { text.len().max(start) };
    Some(Shape {
        raw: prefix.contains('r'),
        bytes: prefix.contains('b'),
        format: prefix.contains(['f', 't']),
        body: Span::new(span.start + start, span.start + end),
    })
}

/// Decodes the string literal at `span` of `source` to the end of `into`. `holes` are the `{…}` of a formatted string, in
/// order; `fill` may know what one of them will hold.
pub(super) fn decode(
    source: &str,
    span: Span,
    holes: &[Span],
    fill: &dyn Fn(Span) -> Option<String>,
    into: &mut Decoded,
) {
    let Some(shape) = shape(source, span) else { return };
    let mut at = shape.body.start;
    for hole in holes.iter().filter(|hole| shape.body.contains(**hole)) {
        if hole.start < at {
            continue;
        }
        run(source, Span::new(at, hole.start), shape, into);
        match fill(*hole) {
            Some(text) => into.make(&text, *hole),
            None => into.hole(*hole),
        }
        at = hole.end;
    }
    run(source, Span::new(at, shape.body.end), shape, into);
}

/// Decodes a stretch of a literal without holes.
fn run(source: &str, span: Span, shape: Shape, into: &mut Decoded) {
    let Some(text) = source.get(span.range()) else { return };
    let bytes = text.as_bytes();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let (length, made) = match bytes[at] {
            b'\\' if !shape.raw => escape(&text[at..], shape.bytes),
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => (2, Some('\n')),
            b'\r' => (1, Some('\n')),
            brace @ (b'{' | b'}') if shape.format && bytes.get(at + 1) == Some(&brace) => {
                (2, Some(brace as char))
            }
            _ => {
                at += 1;
                continue;
            }
        };
        if length == 0 {
            // No escape after all: the backslash stays.
            at += 1;
            continue;
        }
        into.copy(&text[copied..at], span.start + copied);
        if let Some(made) = made {
            into.make(made.encode_utf8(&mut [0; 4]), Span::new(span.start + at, span.start + at + length));
        }
        at += length;
        copied = at;
    }
    into.copy(&text[copied..], span.start + copied);
}

/// The length of the escape that `text` begins with, and the character it makes. Length 0: it is no escape. No character:
/// a backslash before a line end, which is left out.
fn escape(text: &str, bytes: bool) -> (usize, Option<char>) {
    let rest = &text.as_bytes()[1..];
    let simple = |made| (2, Some(made));
    match rest.first() {
        Some(b'\r') if rest.get(1) == Some(&b'\n') => (3, None),
        Some(b'\n' | b'\r') => (2, None),
        Some(b'\\') => simple('\\'),
        Some(b'\'') => simple('\''),
        Some(b'"') => simple('"'),
        Some(b'a') => simple('\x07'),
        Some(b'b') => simple('\x08'),
        Some(b'f') => simple('\x0c'),
        Some(b'n') => simple('\n'),
        Some(b'r') => simple('\r'),
        Some(b't') => simple('\t'),
        Some(b'v') => simple('\x0b'),
        Some(b'0'..=b'7') => {
            let digits = rest.iter().take(3).take_while(|digit| (b'0'..=b'7').contains(*digit)).count();
            number(&text[1..=digits], 8, 1)
        }
        Some(b'x') => digits(text, 2),
        Some(b'u') if !bytes => digits(text, 4),
        Some(b'U') if !bytes => digits(text, 8),
        Some(b'N') if !bytes && rest.get(1) == Some(&b'{') => {
            match rest.iter().take(NAME_LENGTH).position(|byte| *byte == b'}') {
                // The table of names is not here; no CUDA code depends on one.
                Some(end) => (end + 2, Some(char::REPLACEMENT_CHARACTER)),
                None => (0, None),
            }
        }
        _ => (0, None),
    }
}

/// An escape of a letter and exactly `count` hexadecimal digits.
fn digits(text: &str, count: usize) -> (usize, Option<char>) {
    match text.get(2..2 + count) {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => number(digits, 16, 2),
        _ => (0, None),
    }
}

/// The character of a number written in `radix`; a surrogate is none.
fn number(digits: &str, radix: u32, before: usize) -> (usize, Option<char>) {
    let made = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    (before + digits.len(), Some(made.unwrap_or(char::REPLACEMENT_CHARACTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(source: &str) -> (String, super::super::decoded::Map) {
        let mut text = Decoded::default();
        decode(source, Span::new(0, source.len()), &[], &|_| None, &mut text);
        text.finish()
    }

    /// What CPython 3.11 makes of each literal, by `ast.literal_eval`.
    #[test]
    fn literals_decode_as_in_python() {
        let cases = [
            (r#""a\tb\n""#, "a\tb\n"),
            (r#"r"a\tb\n""#, "a\\tb\\n"),
            (r#"Rb'\x41'"#, "\\x41"),
            (r#"'\x41\101\0\7'"#, "AA\0\x07"),
            (r#"'\u00e9\U0001F600'"#, "é😀"),
            (r#"b'\u00e9\x41'"#, "\\u00e9A"),
            (r#"'\d\%\ '"#, "\\d\\%\\ "),
            (r#"'''a"'b'''"#, "a\"'b"),
            ("'a\\\nb'", "ab"),
            ("'a\\\r\nb'", "ab"),
            ("'''a\r\nb\rc\nd'''", "a\nb\nc\nd"),
            ("r'''a\\\r\nb'''", "a\\\nb"),
            (r#"'\1234'"#, "S4"),
            (r#"'\x4'"#, "\\x4"),
            (r#"'\\n\\\'"'"#, "\\n\\'\""),
            (r#"'\N{BULLET}x'"#, "\u{fffd}x"),
            (r#"'\ud800'"#, "\u{fffd}"),
            (r#"''"#, ""),
            (r#""""""""#, ""),
            ("u'語é\\n😀'", "語é\n😀"),
            ("\"open", "open"),
        ];
        for (source, expected) in cases {
            assert_eq!(decoded(source).0, expected, "{source}");
        }
    }

    #[test]
    fn every_offset_of_a_decoded_text_leads_to_its_place() {
        let source = "'''é\\n\r\n😀x'''";
        let (text, map) = decoded(source);
        assert_eq!(text, "é\n\n😀x");
        let there: Vec<_> = text.char_indices().map(|(at, _)| map.to_file(at).unwrap()).collect();
        let expected: Vec<_> = ["é", "\\n", "\r\n", "😀", "x"].map(|part| source.find(part).unwrap()).into();
        assert_eq!(there, expected);
        for (at, _) in text.char_indices() {
            assert_eq!(map.to_text(map.to_file(at).unwrap()), Some(at));
        }
        assert_eq!(map.span_to_file(Span::new(2, 3)), Some(Span::new(5, 7)));
    }

    #[test]
    fn formatted_strings_have_holes() {
        let source = "f'k_{n}<{{a}}> \\t{m}'";
        let hole = |text: &str| {
            let start = source.find(text).unwrap();
            Span::new(start, start + text.len())
        };
        let holes = [hole("{n}"), hole("{m}")];
        let mut text = Decoded::default();
        let fill = |span| (span == holes[1]).then(|| "32".to_owned());
        decode(source, Span::new(0, source.len()), &holes, &fill, &mut text);
        let (text, map) = text.finish();
        assert_eq!(text, "k_stitch_unknown<{a}> \t32");
        assert_eq!(map.holes(), [holes[0]]);
        assert_eq!(map.to_file(text.len() - 1), Some(holes[1].start));
    }
}
