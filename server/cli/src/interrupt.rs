//! Long work that Ctrl-C, or another wish that we end, ends where it is, with nothing left running and nothing left behind.

use std::future::Future;
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use stitch_session::CancellationToken;
use stitch_session::jobs::Jobs;
use tokio::signal::unix::{SignalKind, signal};

/// The signal that ended the work; 0 while none came.
static CAME: AtomicI32 = AtomicI32::new(0);

/// What a shell shows for a command that the signal ended which came: 128 and its number, so 130 for Ctrl-C.
pub fn exit_status() -> u8 {
    let number = match CAME.load(Ordering::SeqCst) {
        0 => SignalKind::interrupt().as_raw_value(),
        came => came,
    };
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

/// Runs `work` to its end, with jobs of which `at_once` may use a processor each, and the token that Ctrl-C, SIGTERM and
/// SIGHUP cancel. Jobs that still run when `work` is done are cancelled and waited for.
///
/// # Errors
/// The system gives no threads, or no signals.
pub fn until_done<W: Future>(
    at_once: usize,
    work: impl FnOnce(Jobs, CancellationToken) -> W,
) -> Result<W::Output> {
    let runtime = tokio::runtime::Runtime::new().context("the system gives no threads to work with")?;
    runtime.block_on(async {
        let session = CancellationToken::new();
        let jobs = Jobs::new(runtime.handle().clone(), session.clone(), at_once);
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            // `nohup` has the end of the terminal ignored, and means it.
            if kind == SignalKind::hangup() && is_ignored(kind) {
                continue;
            }
            let mut came = signal(kind).context("the system tells of no signals")?;
            let interrupt = session.clone();
            tokio::spawn(async move {
                if came.recv().await.is_some() {
                    let _ = CAME.compare_exchange(0, kind.as_raw_value(), Ordering::SeqCst, Ordering::SeqCst);
                    interrupt.cancel();
                }
            });
        }
        let output = work(jobs.clone(), session).await;
        jobs.shutdown().await;
        Ok(output)
    })
}

/// Whether who started us had the signal ignored. Where the system does not tell, it is not.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}
