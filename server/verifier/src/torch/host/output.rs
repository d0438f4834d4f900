//! What a child prints: read as it comes, its beginning and end kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// What is kept of the beginning, and of the end, in bytes.
const KEPT: usize = 64 << 10;
/// A child that prints more is ended, as a program is that prints twice what is kept of it: it seems to print for ever.
pub(super) const MOST: u64 = 64 << 20;

#[derive(Debug, Default)]
struct Printed {
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    total: u64,
}

impl Printed {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (KEPT - self.beginning.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.beginning.extend_from_slice(first);
        let rest = rest.get(rest.len().saturating_sub(KEPT)..).unwrap_or_default();
        let surplus = (self.end.len() + rest.len()).saturating_sub(KEPT);
        self.end.drain(..surplus);
        self.end.extend(rest);
    }

    fn text(&self) -> String {
        let left_out = self.total - (self.beginning.len() + self.end.len()) as u64;
        let mut bytes = self.beginning.clone();
        if left_out > 0 {
            bytes.extend_from_slice(format!("\n[... {left_out} bytes left out ...]\n").as_bytes());
        }
        bytes.extend(&self.end);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What is known of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Flooded,
    Closed,
}

/// What a child printed so far.
#[derive(Clone, Debug)]
pub(super) struct Output {
    printed: Arc<Mutex<Printed>>,
    phase: watch::Receiver<Phase>,
}

impl Output {
    /// Begins to read a pipe.
    pub(super) fn read(mut pipe: Receiver) -> Self {
        let printed = Arc::new(Mutex::new(Printed::default()));
        let (sender, phase) = watch::channel(Phase::Open);
        let own = Arc::clone(&printed);
        tokio::spawn(async move {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let count = pipe.read(&mut bytes).await.unwrap_or(0);
                if count == 0 {
                    break;
                }
                let mut printed = own.lock().unwrap_or_else(PoisonError::into_inner);
                printed.push(bytes.get(..count).unwrap_or_default());
                if printed.total > MOST {
                    // What it prints from here on fails, since nobody reads.
                    let _ = sender.send(Phase::Flooded);
                    return;
                }
            }
            let _ = sender.send(Phase::Closed);
        });
        Self { printed, phase }
    }

    /// Waits until too much was printed; for ever, if it is not.
    pub(super) async fn flooded(&self) {
        let mut phase = self.phase.clone();
        if phase.wait_for(|phase| *phase == Phase::Flooded).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until nothing more can come.
    pub(super) async fn closed(&self) {
        let _ = self.phase.clone().wait_for(|phase| *phase != Phase::Open).await;
    }

    /// What was printed.
    pub(super) fn text(&self) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut printed = Printed::default();
        printed.push(b"begin");
        printed.push(&vec![b'x'; 3 * KEPT]);
        printed.push(b"end");
        let text = printed.text();
        assert!(text.starts_with("beginx") && text.ends_with("xend"));
        assert!(text.contains(&format!("[... {} bytes left out ...]", KEPT + 8)), "{}", text.len());
    }
}
