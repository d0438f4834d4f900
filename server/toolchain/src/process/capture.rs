//! What a program printed, with a cap: its beginning and its end are kept, the middle is left out.
//!
//! A compiler's first error and a test's last line both matter. What is printed past the cap is still read, so that a
//! program with a long log does not block on a full pipe; one that prints for ever is ended (see [`most`]).

use std::collections::VecDeque;

/// How much a program may print, in bytes, of whose output `limit` bytes are kept: twice that, or what a long log takes
/// where little of it is wanted. Beyond it is ended, since reading on would only burn a core until its time limit.
pub(super) fn most(limit: usize) -> u64 {
    (2 * limit as u64).max(LONG_LOG)
}

/// What a program may print at least, in bytes.
const LONG_LOG: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), limit, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.limit / 2).saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let keep = self.limit - self.limit / 2;
        let rest = &bytes[room..];
        let rest = &rest[rest.len().saturating_sub(keep)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(keep);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub(super) fn is_flood(&self) -> bool {
        self.total > most(self.limit)
    }

    /// What was kept, with a line between beginning and end that says how much is missing, and whether any is.
    pub(super) fn take(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = std::mem::take(&mut self.head);
        let tail = std::mem::take(&mut self.tail);
        let left_out = self.total - (bytes.len() + tail.len()) as u64;
        if left_out > 0 {
            bytes.extend_from_slice(format!("\n[... {left_out} bytes left out ...]\n").as_bytes());
        }
        bytes.extend(tail);
        (bytes, left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, chunks: &[&[u8]]) -> (String, bool) {
        let mut capture = Capture::new(limit);
        chunks.iter().for_each(|chunk| capture.push(chunk));
        let (bytes, truncated) = capture.take();
        (String::from_utf8(bytes).unwrap(), truncated)
    }

    #[test]
    fn head_and_tail_are_kept_whatever_the_chunks() {
        assert_eq!(captured(8, &[b"abc", b"", b"defgh"]), ("abcdefgh".into(), false));
        let expected = ("0123\n[... 2 bytes left out ...]\n6789".to_string(), true);
        assert_eq!(captured(8, &[b"0123456789"]), expected);
        assert_eq!(captured(8, &[b"0", b"1", b"2345", b"6", b"789"]), expected);
        assert_eq!(captured(0, &[b"x"]), ("\n[... 1 bytes left out ...]\n".into(), true));
    }

    #[test]
    fn memory_stays_bounded_and_a_flood_is_noticed() {
        let mut capture = Capture::new(1 << 16);
        for _ in 0..16 {
            capture.push(&[b'x'; 1 << 16]);
        }
        assert!(!capture.is_flood());
        capture.push(b"x");
        assert!(capture.is_flood());
        assert_eq!(most(16 << 20), 32 << 20);
        assert!(capture.head.capacity() + capture.tail.capacity() < 1 << 19);
    }
}
