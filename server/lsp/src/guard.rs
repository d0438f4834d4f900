//! Nothing that goes wrong inside a handler gets out of it: a panic becomes an answer, and so does waiting for ever.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tower_lsp::jsonrpc::{Error, ErrorCode};

/// Handlers take milliseconds, and wait a second at most for an analysis. One that takes this long is stuck.
const LONGEST_HANDLER: Duration = Duration::from_secs(60);

/// How long a client may take to answer a request of ours.
const LONGEST_ANSWER: Duration = Duration::from_secs(20);

/// Runs a handler; a panic or a hang becomes `InternalError`.
pub async fn handler<T>(method: &str, run: impl Future<Output = T>) -> Result<T, Error> {
    match tokio::time::timeout(LONGEST_HANDLER, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(panic)) => Err(internal(format!("`{method}` panicked: {}.", panic_message(panic.as_ref())))),
        Err(_) => Err(internal(format!("`{method}` took more than {} s.", LONGEST_HANDLER.as_secs()))),
    }
}

/// Runs something that may panic; says what the panic said.
///
/// # Errors
/// The panic's message.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_message(panic.as_ref()))
}

/// Waits a bounded time for the client's answer to a request of ours. `None` without an answer.
pub async fn answer<T>(request: impl Future<Output = Result<T, Error>>) -> Option<T> {
    tokio::time::timeout(LONGEST_ANSWER, request).await.ok()?.ok()
}

/// `RequestFailed` of LSP 3.17.
const REQUEST_FAILED: i64 = -32803;

/// The answer while nothing is known of a document yet.
pub fn still_read() -> Error {
    failed("The file is long and still being read. Ask again in a moment.".to_owned())
}

/// The answer to a request that was right and can't be fulfilled now.
pub fn failed(message: String) -> Error {
    Error { code: ErrorCode::from(REQUEST_FAILED), message: message.into(), data: None }
}

/// The answer for something that should not have happened; it is logged too.
pub fn internal(message: String) -> Error {
    tracing::error!("{message}");
    Error { code: ErrorCode::InternalError, message: message.into(), data: None }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    // A message may quote the user's source; its first line is enough to find the place by.
    text.and_then(|text| text.lines().next()).unwrap_or("no reason given").chars().take(200).collect()
}
