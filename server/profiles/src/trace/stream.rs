//! The bytes of a trace, a piece at a time, with the number of the line.

use std::io::{ErrorKind, Read};

/// How much is read at once.
const PIECE: usize = 1 << 16;

/// The longest value that is kept whole. An event has some hundred bytes; names of kernels and call stacks can make it some ten thousand.
const LONGEST: usize = 1 << 20;

/// Bytes that may be looked at for nothing.
const HOPELESS: usize = 64 * LONGEST;

/// A stream of bytes.
pub struct Stream<'r> {
    source: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    at: usize,
    line: u64,
    ended: bool,
    trouble: Option<String>,
    in_vain: usize,
}

/// Where a value ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It has so many bytes.
    Whole(usize),
    /// The stream ends before it does.
    Cut,
    /// It is longer than any sound one.
    TooLong,
}

impl<'r> Stream<'r> {
    /// The bytes of a source.
    pub fn new(source: Box<dyn Read + 'r>) -> Self {
        Self { source, buffer: Vec::new(), at: 0, line: 1, ended: false, trouble: None, in_vain: 0 }
    }

    /// The number of the line, from one.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Why the source ended before its end, if it did.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The byte `ahead` of the next one.
    pub fn peek(&mut self, ahead: usize) -> Option<u8> {
        while self.at + ahead >= self.buffer.len() {
            if !self.fill() {
                return None;
            }
        }
        self.buffer.get(self.at + ahead).copied()
    }

    /// The next `count` bytes, which [`peek`](Self::peek) or [`extent`](Self::extent) has seen.
    pub fn seen(&self, count: usize) -> &[u8] {
        let end = (self.at + count).min(self.buffer.len());
        &self.buffer[self.at..end]
    }

    /// Goes on by `count` bytes that were seen.
    pub fn skip(&mut self, count: usize) {
        let end = (self.at + count).min(self.buffer.len());
        self.line += self.buffer[self.at..end].iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at = end;
    }

    /// Goes on to the next byte that is no white space, and gives it.
    pub fn next_sign(&mut self) -> Option<u8> {
        loop {
            let byte = self.peek(0)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.skip(1);
        }
    }

    /// How long the value is that begins here: an object, an array, a string, or a word.
    pub fn extent(&mut self) -> Extent {
        let (mut depth, mut ahead) = (0usize, 0);
        loop {
            let Some(byte) = self.peek(ahead) else {
                let word = depth == 0 && ahead > 0;
                return if word { Extent::Whole(ahead) } else { self.in_vain(ahead, Extent::Cut) };
            };
            match byte {
                b'"' => match self.string_end(ahead) {
                    Ok(end) => ahead = end,
                    Err(extent) => return extent,
                },
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return Extent::Whole(ahead),
                b'}' | b']' => depth -= 1,
                b',' | b':' if depth == 0 => return Extent::Whole(ahead),
                _ => {}
            }
            ahead += 1;
            if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
                return Extent::Whole(ahead);
            }
            if ahead > LONGEST {
                return self.in_vain(ahead, Extent::TooLong);
            }
        }
    }

    /// Counts bytes that were looked at for nothing.
    fn in_vain(&mut self, bytes: usize, extent: Extent) -> Extent {
        self.in_vain += bytes;
        extent
    }

    /// Whether so much was looked at for nothing that the rest is not worth it: a sound trace has one such place, or none.
    pub fn is_hopeless(&self) -> bool {
        self.in_vain > HOPELESS
    }

    /// Goes to the end, whatever is left.
    pub fn end(&mut self) {
        self.buffer.clear();
        self.at = 0;
        self.ended = true;
    }

    /// The place of the quote that ends the string that begins `ahead`.
    fn string_end(&mut self, ahead: usize) -> Result<usize, Extent> {
        let mut at = ahead + 1;
        loop {
            match self.peek(at) {
                None => return Err(self.in_vain(at, Extent::Cut)),
                Some(b'"') => return Ok(at),
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
            if at > LONGEST {
                return Err(self.in_vain(at, Extent::TooLong));
            }
        }
    }

    /// Reads another piece. `false` at the end.
    fn fill(&mut self) -> bool {
        if self.ended {
            return false;
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let filled = self.buffer.len();
        self.buffer.resize(filled + PIECE, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let count = match read {
            Ok(count) => count,
            Err(error) => {
                self.trouble = Some(error.to_string());
                0
            }
        };
        self.buffer.truncate(filled + count);
        self.ended = count == 0;
        count > 0
    }
}
