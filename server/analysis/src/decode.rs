//! Source files as text, whatever bytes they hold.
//!
//! Old CUDA sources have Latin-1 names in comments, and nvcc does not mind. Neither do we: each byte that is no UTF-8
//! becomes one `?`, so that every offset stays what it is in the file.

use std::borrow::Cow;

/// A file's bytes as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text; as long in bytes as the file.
    pub text: Cow<'a, str>,
    /// How many bytes were no UTF-8, and stand as `?`.
    pub replaced: usize,
}

/// Reads `bytes` as UTF-8, byte for byte. `None` for UTF-16 and UTF-32, known by their byte order mark.
pub fn decode(bytes: &[u8]) -> Option<Decoded<'_>> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Decoded { text: Cow::Borrowed(text), replaced: 0 });
    }
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for _ in chunk.invalid() {
            text.push('?');
        }
        replaced += chunk.invalid().len();
    }
    Some(Decoded { text: Cow::Owned(text), replaced })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_stay_what_they_are_in_the_file() {
        let decoded = decode(b"// Andr\xe9 \xf0\x9f\n__global__").unwrap();
        assert_eq!((decoded.text.as_ref(), decoded.replaced), ("// Andr? ??\n__global__", 3));
        assert_eq!(decode("é".as_bytes()).unwrap().text, "é");
        assert_eq!(decode(b"\xff\xfe_\0").map(|decoded| decoded.replaced), None);
    }
}
