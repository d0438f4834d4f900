//! Long work that Ctrl-C ends where it is, with nothing left running.

use std::future::Future;

use anyhow::{Context, Result};
use stitch_session::CancellationToken;
use stitch_session::jobs::Jobs;

/// Runs `work` to its end, with jobs of which `at_once` may use a processor each, and the token that Ctrl-C cancels. Jobs
/// that still run when `work` is done are cancelled and waited for.
///
/// # Errors
/// The system gives no threads.
pub fn until_done<W: Future>(
    at_once: usize,
    work: impl FnOnce(Jobs, CancellationToken) -> W,
) -> Result<W::Output> {
    let runtime = tokio::runtime::Runtime::new().context("the system gives no threads to work with")?;
    runtime.block_on(async {
        let session = CancellationToken::new();
        let jobs = Jobs::new(runtime.handle().clone(), session.clone(), at_once);
        let interrupt = session.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupt.cancel();
            }
        });
        let output = work(jobs.clone(), session).await;
        jobs.shutdown().await;
        Ok(output)
    })
}
