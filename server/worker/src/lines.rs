//! Lines of bounded length from a stream that may hold anything.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its bytes, without the end of the line.
    Whole(Vec<u8>),
    /// The stream ended, in the middle of a line or not.
    End,
    /// The line is longer than allowed.
    TooLong,
    /// Nothing came for longer than allowed.
    Silent,
}

/// As [`next`], of a stream that may not be silent for so long.
///
/// # Errors
/// The stream can't be read.
pub async fn next_within(
    stream: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
    patience: Duration,
) -> io::Result<Line> {
    read(stream, longest, Some(patience)).await
}

/// Reads the next line of at most `longest` bytes. May be dropped between lines only: a caller that selects keeps the reading in a task of its own.
///
/// # Errors
/// The stream can't be read.
pub async fn next(stream: &mut (impl AsyncBufRead + Unpin), longest: usize) -> io::Result<Line> {
    read(stream, longest, None).await
}

async fn read(
    stream: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
    patience: Option<Duration>,
) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        // A long line on a slow network is not silent.
        let available = match patience {
            None => stream.fill_buf().await?,
            Some(patience) => match tokio::time::timeout(patience, stream.fill_buf()).await {
                Ok(available) => available?,
                Err(_) => return Ok(Line::Silent),
            },
        };
        if available.is_empty() {
            // What has no end was cut off.
            return Ok(Line::End);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > longest {
            return Ok(Line::TooLong);
        }
        line.extend_from_slice(&available[..taken]);
        stream.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Line::Whole(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_and_what_is_cut_off_is_none() {
        let mut stream = &b"one\r\n\ntwo\ncut"[..];
        for line in [&b"one"[..], b"", b"two"] {
            assert_eq!(next(&mut stream, 10).await.unwrap(), Line::Whole(line.to_vec()));
        }
        assert_eq!(next(&mut stream, 10).await.unwrap(), Line::End);
        assert_eq!(next(&mut &b"12345\n"[..], 4).await.unwrap(), Line::TooLong);
    }
}
