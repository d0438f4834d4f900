//! What only the program's process can do while its device works: a thread of the stub waits there for it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::protocol::Action;

/// How long it may take to see that the run was cancelled.
const GLANCE: Duration = Duration::from_millis(20);

/// The simulator's end of the connection to the thread.
pub(super) struct Helper(Mutex<UnixStream>);

impl Helper {
    /// Makes the connection; the other end is for the program.
    ///
    /// # Errors
    /// Where the system has no more sockets.
    pub(super) fn new() -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(GLANCE))?;
        Ok((Self(Mutex::new(ours)), theirs))
    }

    /// Has an action done, with the bytes that belong to it, and waits for that. False where the program has gone.
    pub(super) fn ask(&self, action: &Action, bytes: &[u8], cancel: &AtomicBool) -> bool {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words = action.words();
        let message: Vec<u8> =
            words.into_iter().flat_map(u64::to_le_bytes).chain(bytes.iter().copied()).collect();
        if socket.write_all(&message).is_err() {
            return false;
        }
        let mut done = [0];
        loop {
            match socket.read(&mut done) {
                Ok(count) => return count == 1,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if cancel.load(Ordering::Relaxed) {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}
