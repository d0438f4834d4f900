//! Serves one connection with no program behind it: what a test or a fuzzer says over a socket.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use super::connection;
use super::context::Shared;
use super::engine::Engine;
use super::report::Report;
use super::watch::{Watch, Watcher};
use crate::checks::Checks;
use crate::device::Device;
use crate::memory::Memory;

/// Answers what comes over `stream` until its other end is closed, as [`serve`](super::serve) does for a program. The device has `limit` bytes of
/// memory. Kernels that have not ended after `patience` are stopped.
///
/// # Errors
/// Where the memory of the device can't be made.
pub fn converse(
    stream: UnixStream,
    device: &'static Device,
    engine: Box<dyn Engine>,
    limit: u64,
    patience: Duration,
) -> io::Result<Report> {
    let memory = Memory::new(limit)?;
    let checks = engine.checks();
    let memory = if checks == Checks::None { memory } else { memory.tracked() };
    let report = Mutex::new(Report { checks, ..Report::new(device, &memory) });
    let watch = Watcher::new(&Watch::default())?;
    let shared = Arc::new(Shared { device, memory, engine, cancel: AtomicBool::new(false), report, watch });
    let (over, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let shared = &shared;
        scope.spawn(move || {
            // Ends when `over` is dropped, or when the time is up.
            if waiting.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                shared.cancel.store(true, Ordering::Relaxed);
            }
        });
        connection::serve(stream, shared);
        drop(over);
    });
    let report = shared.report().clone();
    Ok(report)
}
