//! Standard output, which belongs to the protocol alone: what anything else in this process prints goes to standard error.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio_util::sync::CancellationToken;

use crate::protocol::FromWorker;

/// Writes messages, one after the other, on a thread of its own: a reader that is slow holds up nothing else.
#[derive(Clone, Debug)]
pub struct Out {
    told: Arc<Mutex<Option<Sender<Vec<u8>>>>>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    closed: CancellationToken,
}

impl Out {
    /// Takes standard output for the protocol.
    ///
    /// # Errors
    /// The system gives no descriptor or thread.
    pub fn take_stdout() -> io::Result<Self> {
        let stream = File::from(nix::unistd::dup(io::stdout())?);
        nix::unistd::dup2_stdout(io::stderr())?;
        let (told, heard) = channel();
        let closed = CancellationToken::new();
        let for_thread = closed.clone();
        let thread = std::thread::Builder::new()
            .name("protocol".to_owned())
            .spawn(move || write(stream, &heard, &for_thread))?;
        Ok(Self {
            told: Arc::new(Mutex::new(Some(told))),
            thread: Arc::new(Mutex::new(Some(thread))),
            closed,
        })
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

    /// Waits until all that was said is written, or can't be.
    pub fn finish(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn write(mut stream: File, heard: &Receiver<Vec<u8>>, closed: &CancellationToken) {
    while let Ok(line) = heard.recv() {
        if stream.write_all(&line).is_err() {
            closed.cancel();
            return;
        }
    }
}
