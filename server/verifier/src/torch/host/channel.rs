//! Lines over a unix socket, with descriptors beside them.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// What came instead of a line.
#[derive(Debug)]
pub(super) enum NoLine {
    /// The other side is gone, or has closed its end.
    Closed,
    /// A line without end.
    TooLong(usize),
}

/// Our end.
#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
    /// What came and is no whole line yet.
    rest: Vec<u8>,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Sends a line, with descriptors at its first byte.
    pub(super) async fn send(&mut self, line: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let raw: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&raw)];
        let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
        let socket = self.stream.as_raw_fd();
        let sent = self
            .stream
            .async_io(Interest::WRITABLE, || {
                let parts = [IoSlice::new(&bytes)];
                sendmsg::<()>(socket, &parts, control, MsgFlags::MSG_NOSIGNAL, None).map_err(io::Error::from)
            })
            .await?;
        self.stream.write_all(bytes.get(sent..).unwrap_or_default()).await
    }

    /// The next line, without its end; of `limit` bytes at most. Descriptors that come along are closed by the system.
    pub(super) async fn receive(&mut self, limit: usize) -> Result<Vec<u8>, NoLine> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', self.rest.get(searched..).unwrap_or_default()) {
                let mut line: Vec<u8> = self.rest.drain(..=searched + end).collect();
                line.pop();
                return Ok(line);
            }
            searched = self.rest.len();
            if searched > limit {
                return Err(NoLine::TooLong(limit));
            }
            self.rest.reserve(1 << 16);
            match self.stream.read_buf(&mut self.rest).await {
                Ok(0) | Err(_) => return Err(NoLine::Closed),
                Ok(_) => {}
            }
        }
    }

    /// Whether the other side has said something that was not read, which it may only when it was asked.
    pub(super) fn has_unasked(&mut self) -> bool {
        let mut byte = [0];
        !self.rest.is_empty() || matches!(self.stream.try_read(&mut byte), Ok(count) if count > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn pair() -> (Channel, std::os::unix::net::UnixStream) {
        let (own, other) = std::os::unix::net::UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        (Channel::new(UnixStream::from_std(own).unwrap()), other)
    }

    #[tokio::test]
    async fn lines_come_as_they_were_sent() {
        let (mut channel, mut other) = pair();
        other.write_all(b"one\ntw").unwrap();
        assert_eq!(channel.receive(10).await.unwrap(), b"one");
        assert!(channel.has_unasked());
        other.write_all(b"o\n").unwrap();
        assert_eq!(channel.receive(10).await.unwrap(), b"two");
        assert!(!channel.has_unasked());
        channel.send("three", &[]).await.unwrap();
        let mut bytes = [0; 6];
        other.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"three\n");
        other.write_all(&[b'x'; 100]).unwrap();
        assert!(matches!(channel.receive(10).await, Err(NoLine::TooLong(10))));
        drop(other);
        let (mut channel, other) = pair();
        drop(other);
        assert!(matches!(channel.receive(10).await, Err(NoLine::Closed)));
    }
}
