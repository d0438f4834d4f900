//! Text that PowerShell wrote.
//!
//! `ncu … > out.csv` in Windows PowerShell, and its `Tee-Object`, write UTF-16 with a byte order mark. The readers here want UTF-8.

use std::io::{self, BufRead, BufReader, Read};

/// A reader of UTF-8: the given one, or one that decodes UTF-16 where the stream begins with its mark.
pub(crate) fn decoded(reader: impl Read) -> io::Result<impl BufRead> {
    let mut reader = BufReader::new(reader);
    let big_endian = match reader.fill_buf()? {
        [0xff, 0xfe, ..] => Some(false),
        [0xfe, 0xff, ..] => Some(true),
        _ => None,
    };
    let decoder = big_endian.map(|big_endian| Decoder { big_endian, high: None });
    Ok(BufReader::new(Decoded { reader, decoder, ready: Vec::new(), given: 0 }))
}

struct Decoder {
    big_endian: bool,
    /// The first half of a pair whose second half is to come.
    high: Option<u16>,
}

struct Decoded<R> {
    reader: R,
    decoder: Option<Decoder>,
    /// Decoded bytes that were not given yet.
    ready: Vec<u8>,
    given: usize,
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(decoder) = &mut self.decoder else { return self.reader.read(into) };
        while self.given == self.ready.len() {
            let mut raw = [0_u8; 4096];
            let length = read_even(&mut self.reader, &mut raw)?;
            if length == 0 {
                return Ok(0);
            }
            self.ready.clear();
            self.given = 0;
            decoder.decode(&raw[..length], &mut self.ready);
        }
        let ready = &self.ready[self.given..];
        let length = ready.len().min(into.len());
        into[..length].copy_from_slice(&ready[..length]);
        self.given += length;
        Ok(length)
    }
}

/// Reads an even number of bytes, but for an odd one at the end of the stream.
fn read_even(reader: &mut impl Read, raw: &mut [u8]) -> io::Result<usize> {
    let mut length = reader.read(raw)?;
    while length % 2 == 1 {
        let more = reader.read(&mut raw[length..=length])?;
        if more == 0 {
            break;
        }
        length += more;
    }
    Ok(length)
}

impl Decoder {
    fn decode(&mut self, raw: &[u8], ready: &mut Vec<u8>) {
        let big_endian = self.big_endian;
        let units = raw.chunks(2).map(|pair| match *pair {
            [a, b] if big_endian => u16::from_be_bytes([a, b]),
            [a, b] => u16::from_le_bytes([a, b]),
            _ => u16::from(b'?'),
        });
        let mut units: Vec<u16> = self.high.take().into_iter().chain(units).collect();
        if units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            self.high = units.pop();
        }
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            if c != '\u{feff}' {
                ready.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        let mut text = String::new();
        decoded(bytes).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn utf_16_of_either_order_becomes_utf_8() {
        let text = "\"ID\",\"µ𝄞\"\r\n".repeat(2000);
        for big_endian in [false, true] {
            let unit = |unit: u16| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
            let bytes: Vec<u8> = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(unit).collect();
            assert_eq!(read(&bytes), text);
        }
        assert_eq!(read(text.as_bytes()), text);
        assert_eq!(read(b""), "");
        assert_eq!(read(b"\xff\xfeA\x00B"), "A?");
    }
}
