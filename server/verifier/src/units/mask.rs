//! Blanks what is no code: comments, and what is between quotes. Byte for byte, so that offsets stay.

/// `text` with comments and the insides of literals as blanks; line ends stay.
pub fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_comment(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => after(bytes, at + 2, b"*/"),
            b'"' if is_raw(bytes, at) => raw_literal(bytes, at),
            b'"' => literal(bytes, at, b'"'),
            // Between digits a quote groups them: 1'000'000.
            b'\''
                if at > 0
                    && bytes[at - 1].is_ascii_hexdigit()
                    && bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit) =>
            {
                at + 1
            }
            b'\'' => literal(bytes, at, b'\''),
            _ => at + 1,
        };
        if end > at + 1 {
            let quoted = usize::from(matches!(bytes[at], b'"' | b'\''));
            let inside = at + quoted..end - quoted.min(end - at - 1);
            masked[inside]
                .iter_mut()
                .filter(|byte| !matches!(byte, b'\n' | b'\r'))
                .for_each(|byte| *byte = b' ');
        }
        at = end;
    }
    String::from_utf8_lossy(&masked).into_owned()
}

/// The end of a comment that reaches to the end of its line, or further where the line goes on.
fn line_comment(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
        let before = if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end };
        if end == bytes.len() || bytes.get(before.wrapping_sub(1)) != Some(&b'\\') {
            return end;
        }
        at = end + 1;
    }
}

/// One past the next `end` from `start`, or the end of the text.
fn after(bytes: &[u8], start: usize, end: &[u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    memchr::memmem::find(rest, end).map_or(bytes.len(), |length| start + length + end.len())
}

fn is_raw(bytes: &[u8], quote: usize) -> bool {
    let before = &bytes[..quote];
    before.ends_with(b"R")
        && !before[..before.len() - 1]
            .last()
            .is_some_and(|b| b.is_ascii_alphanumeric() && !matches!(b, b'u' | b'U' | b'L' | b'8'))
}

/// The end of `R"x(…)x"`, which starts at its quote.
fn raw_literal(bytes: &[u8], quote: usize) -> usize {
    let Some(open) = memchr::memchr(b'(', &bytes[quote..]).filter(|length| *length <= 17) else {
        return literal(bytes, quote, b'"');
    };
    let mut end = vec![b')'];
    end.extend_from_slice(&bytes[quote + 1..quote + open]);
    end.push(b'"');
    after(bytes, quote + open + 1, &end)
}

/// The end of a literal; one that is not closed ends with its line.
fn literal(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
