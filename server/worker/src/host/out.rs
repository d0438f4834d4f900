//! Standard output, which belongs to the protocol alone: what anything else in this process prints goes to standard error.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::protocol::FromWorker;

/// How long the rest may take when the worker ends: a side that is stuck may have left the stream open and read nothing.
const FINISHING: Duration = Duration::from_secs(10);

/// Writes messages, one after the other, on a thread of its own: a reader that is slow holds up nothing else.
#[derive(Clone, Debug)]
pub struct Out {
    told: Arc<Mutex<Option<Sender<Vec<u8>>>>>,
    /// Ends with the thread.
    thread: Arc<Mutex<Receiver<()>>>,
    closed: CancellationToken,
}

impl Out {
    /// Takes standard output for the protocol.
    ///
    /// # Errors
    /// The system gives no descriptor or thread.
    pub fn take_stdout() -> io::Result<Self> {
        let stream = of_our_own(&io::stdout())?;
        nix::unistd::dup2_stdout(io::stderr())?;
        let ((told, heard), (over, thread)) = (channel(), channel());
        let closed = CancellationToken::new();
        let for_thread = closed.clone();
        std::thread::Builder::new().name("protocol".to_owned()).spawn(move || {
            write(stream, &heard, &for_thread);
            drop(over);
        })?;
        let (told, thread) = (Arc::new(Mutex::new(Some(told))), Arc::new(Mutex::new(thread)));
        Ok(Self { told, thread, closed })
    }

    /// Says something. Where nobody hears it, that is seen by [`Out::closed`].
    pub fn say(&self, message: &FromWorker) {
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        if let Some(told) = &*self.told.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread is gone only when the stream is.
            let _ = told.send(line);
        }
    }

    /// Ends when nobody reads any more, as far as that was noticed by writing.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Waits until all that was said is written, or can't be; no longer than somebody who reads takes.
    pub fn finish(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent.
        let _ = thread.recv_timeout(FINISHING);
    }
}

/// The same stream, which is not open in what is started: a program must not be able to speak for the worker, nor keep the stream open when that
/// is gone.
fn of_our_own(stream: &impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

fn write(mut stream: File, heard: &Receiver<Vec<u8>>, closed: &CancellationToken) {
    while let Ok(line) = heard.recv() {
        if stream.write_all(&line).is_err() {
            closed.cancel();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_does_not_have_the_stream() {
        use nix::fcntl::{FcntlArg, FdFlag, fcntl};
        let stream = of_our_own(&io::stdout()).unwrap();
        assert_eq!(fcntl(&stream, FcntlArg::F_GETFD).unwrap(), FdFlag::FD_CLOEXEC.bits());
    }
}
