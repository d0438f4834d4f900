//! Cuts the byte stream into messages: `Content-Length` headers and bodies.
//!
//! tower-lsp's own codec gives up for good on a broken header and on a body that is not UTF-8, and it trusts any length.
//! This one says what is wrong once, then reads on at the next header, whatever stood in between. A raw line break
//! can't stand in a JSON string, so a header found inside a body that is no JSON is a header: its length was wrong.
//!
//! Pure and incremental: bytes go in as they come, frames come out; nothing is allocated for a length before its bytes came.

use std::fmt;

/// The longest body that is read, in bytes. VS Code sends no document above 50 MB; JSON escapes may double that.
pub const LONGEST_BODY: usize = 256 << 20;

/// The longest header block, in bytes. Real ones have under 100.
const LONGEST_HEADER: usize = 8 << 10;

const LENGTH: &[u8] = b"content-length:";

/// Why bytes were skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// A header line that is none.
    Malformed,
    /// No `Content-Length`.
    NoLength,
    /// A `Content-Length` that is no number, or two that differ.
    BadLength,
    /// A body longer than is read.
    TooLong,
    /// A charset other than UTF-8.
    Charset,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("a header line has no `name: value`; reading on at the next Content-Length.")
            }
            Self::NoLength => f.write_str("the header has no Content-Length; reading on at the next one."),
            Self::BadLength => {
                f.write_str("the Content-Length is not one number; reading on at the next one.")
            }
            Self::TooLong => write!(f, "the message is longer than {LONGEST_BODY} bytes; it is skipped."),
            Self::Charset => f.write_str("the charset is not utf-8; the message is skipped."),
        }
    }
}

/// What the bytes at the front of the buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Header,
    Body {
        length: usize,
        skip: bool,
    },
    /// Anything up to the next `Content-Length:`.
    Garbage,
}

/// What one header block says.
#[derive(Default)]
struct Header {
    length: Option<usize>,
    bad_charset: bool,
}

/// The incremental reader.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Bytes before this are used up.
    start: usize,
    /// Bytes before this were already looked at, for the current state.
    seen: usize,
    expect: Expect,
    longest: usize,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::with_limit(LONGEST_BODY)
    }
}

impl FrameReader {
    /// A reader that takes bodies of up to `longest` bytes.
    pub fn with_limit(longest: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, seen: 0, expect: Expect::Header, longest }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            // One large message must not keep its memory for the rest of the session.
            self.buffer.shrink_to(1 << 20);
            (self.seen, self.start) = (0, 0);
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            (self.seen, self.start) = (self.seen.saturating_sub(self.start), 0);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next body, or what is wrong with the bytes before it. `None`: more bytes are needed.
    pub fn next_frame(&mut self) -> Option<Result<Vec<u8>, FrameError>> {
        loop {
            match self.expect {
                Expect::Header => match self.read_header()? {
                    Ok(header) => match self.accept(&header) {
                        Ok(()) => {}
                        Err(error) => return Some(Err(error)),
                    },
                    Err(error) => {
                        self.resynchronise(1);
                        return Some(Err(error));
                    }
                },
                Expect::Body { length, skip } => {
                    if self.buffer.len() - self.start < length {
                        return None;
                    }
                    let body = self.buffer[self.start..self.start + length].to_vec();
                    self.consume(length);
                    self.expect = Expect::Header;
                    return Some(if skip { Err(FrameError::Charset) } else { Ok(body) });
                }
                Expect::Garbage => self.find_header()?,
            }
        }
    }

    /// Takes back a body that is no JSON: its length was probably wrong. Reading goes on at the first header inside it,
    /// or else at the next one behind it.
    pub fn reject(&mut self, body: &[u8]) {
        if let Some(at) = header_inside(body).or_else(|| header_begun(body)) {
            let mut buffer = body[at..].to_vec();
            buffer.extend_from_slice(&self.buffer[self.start..]);
            self.buffer = buffer;
            self.start = 0;
        }
        self.resynchronise(0);
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.seen = self.start;
    }

    fn resynchronise(&mut self, skip: usize) {
        self.start = (self.start + skip).min(self.buffer.len());
        self.seen = self.start;
        self.expect = Expect::Garbage;
    }

    fn accept(&mut self, header: &Header) -> Result<(), FrameError> {
        let refusal = match header.length {
            None => FrameError::NoLength,
            Some(length) if length > self.longest => FrameError::TooLong,
            Some(length) => {
                self.expect = Expect::Body { length, skip: header.bad_charset };
                return Ok(());
            }
        };
        self.resynchronise(0);
        Err(refusal)
    }

    /// Reads the header block at the front, line by line, so that bytes that are no header are noticed at once.
    fn read_header(&mut self) -> Option<Result<Header, FrameError>> {
        let mut header = Header::default();
        let mut at = self.start;
        let mut lines = 0;
        loop {
            let rest = &self.buffer[at..];
            let Some(end) = memchr::memchr(b'\n', rest) else {
                let too_long = self.buffer.len() - self.start > LONGEST_HEADER;
                return (too_long || starts_wrong(rest)).then_some(Err(FrameError::Malformed));
            };
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            at += end + 1;
            if !line.is_empty() {
                lines += 1;
                if let Err(error) = header.read_line(line) {
                    return Some(Err(error));
                }
            } else if lines > 0 {
                self.consume(at - self.start);
                return Some(Ok(header));
            } else {
                // An empty line between two messages is nothing.
                self.consume(at - self.start);
            }
        }
    }

    /// Drops bytes up to the next `Content-Length:`; keeps what may be the beginning of one.
    fn find_header(&mut self) -> Option<()> {
        let found = find_length(&self.buffer[self.seen..]);
        self.start = match found {
            Some(at) => self.seen + at,
            None => self.buffer.len().saturating_sub(LENGTH.len() - 1).max(self.seen),
        };
        self.seen = self.start;
        found?;
        self.expect = Expect::Header;
        Some(())
    }
}

impl Header {
    fn read_line(&mut self, line: &[u8]) -> Result<(), FrameError> {
        let colon = memchr::memchr(b':', line).ok_or(FrameError::Malformed)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || !name.iter().copied().all(is_name_byte) {
            return Err(FrameError::Malformed);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = read_length(value).ok_or(FrameError::BadLength)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(FrameError::BadLength);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"content-type") {
            self.bad_charset = !is_utf8_charset(value);
        }
        Ok(())
    }
}

/// Only digits; a number too large for the machine is as good as any other too large one.
fn read_length(value: &[u8]) -> Option<usize> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
    Some(text.parse().unwrap_or(usize::MAX))
}

/// LSP 3.17: the charset is utf-8, the default; `utf8` is accepted for old clients.
fn is_utf8_charset(content_type: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content_type).to_ascii_lowercase();
    let charset = text.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="));
    charset.is_none_or(|name| matches!(name.trim_matches(['"', ' ']), "utf-8" | "utf8"))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether an unfinished line can't become a header line any more.
fn starts_wrong(line: &[u8]) -> bool {
    let name = line.split(|byte| matches!(byte, b':' | b'\r')).next().unwrap_or_default();
    !name.iter().copied().all(is_name_byte)
}

fn find_length(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'c', b'C', &bytes[from..])?;
        let candidate = bytes.get(at..at + LENGTH.len())?;
        if candidate.eq_ignore_ascii_case(LENGTH) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The place of a whole `Content-Length: N` line inside a body.
fn header_inside(body: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + find_length(&body[from..])?;
        let value = &body[at + LENGTH.len()..];
        let end = memchr::memchr(b'\n', value);
        // At the body's end the line may be cut off; it is still the beginning of the next message.
        if end.is_none_or(|end| read_length(value[..end].trim_ascii()).is_some()) {
            return Some(at);
        }
        from = at + LENGTH.len();
    }
}

/// Where the end of a body may be the beginning of a header.
fn header_begun(body: &[u8]) -> Option<usize> {
    let longest = body.len().min(LENGTH.len() - 1);
    (body.len() - longest..body.len()).find(|at| LENGTH[..body.len() - at].eq_ignore_ascii_case(&body[*at..]))
}

/// A message as it is sent.
pub fn encode(body: &str) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body.as_bytes());
    frame
}

#[cfg(test)]
mod tests;
