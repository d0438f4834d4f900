//! What waits to be written to the client, with its size.
//!
//! Reading never waits for writing, or a client that writes a thousand requests before it reads the first answer would
//! block for good. Instead work waits: a handler starts only while little is unwritten, so that memory stays bounded
//! by the requests (small) and not by the answers (large).
//!
//! Writing has a thread of its own, and blocks there: the runtime would hand each write to one more thread, and on a busy machine
//! waking a thread up takes longer than all else that a keystroke costs.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, mpsc};

use crate::frames;

/// Handlers start while fewer bytes than this are unwritten.
const START_BELOW: usize = 4 << 20;

/// Reading goes on while fewer bytes than this are unwritten; only a flood of broken messages gets there.
const READ_BELOW: usize = 64 << 20;

/// The sending end; clones share one queue.
#[derive(Clone, Debug)]
pub struct Outbox {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    backlog: Arc<Backlog>,
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    drained: Notify,
}

/// The writing end.
#[derive(Debug)]
pub struct Writer {
    queue: mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: Arc<Backlog>,
}

/// A new queue.
pub fn outbox() -> (Outbox, Writer) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    (Outbox { queue: sender, backlog: backlog.clone() }, Writer { queue: receiver, backlog })
}

impl Outbox {
    /// Queues one message. After the writer ended, it is dropped.
    pub fn send(&self, body: &str) {
        let frame = frames::encode(body);
        self.backlog.bytes.fetch_add(frame.len(), Ordering::SeqCst);
        // The writer is gone only when the client is, and then nobody waits for this.
        let _ = self.queue.send(frame);
    }

    /// Ends the writer, once it wrote what is queued.
    pub fn end(&self) {
        let _ = self.queue.send(Vec::new());
    }

    /// Whether little enough is unwritten that more may be made.
    pub fn has_room(&self) -> bool {
        self.backlog.bytes.load(Ordering::SeqCst) < START_BELOW
    }

    /// Waits until a handler may start.
    pub async fn room_to_start(&self) {
        self.backlog.below(START_BELOW).await;
    }

    /// Waits until more may be read.
    pub async fn room_to_read(&self) {
        self.backlog.below(READ_BELOW).await;
    }

    /// Waits until all is written.
    pub async fn all_written(&self) {
        self.backlog.below(1).await;
    }
}

impl Backlog {
    async fn below(&self, limit: usize) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.bytes.load(Ordering::SeqCst) < limit {
                return;
            }
            drained.await;
        }
    }
}

impl Writer {
    /// Writes until the end is queued or all senders are gone. Blocks: for a thread of its own.
    ///
    /// # Errors
    /// The client no longer reads.
    pub fn run(mut self, mut output: impl Write) -> io::Result<()> {
        while let Some(frame) = self.queue.blocking_recv() {
            let mut written = 0;
            let mut next = Some(frame);
            while let Some(frame) = next {
                if frame.is_empty() {
                    return output.flush();
                }
                output.write_all(&frame)?;
                written += frame.len();
                next = self.queue.try_recv().ok();
            }
            output.flush()?;
            self.backlog.bytes.fetch_sub(written, Ordering::SeqCst);
            self.backlog.drained.notify_waiters();
        }
        Ok(())
    }
}
