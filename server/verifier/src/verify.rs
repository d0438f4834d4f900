//! Decides whether a candidate does what its reference does.
//!
//! Both are built and run alike, the candidate in processes that know neither the right answer nor the seed. The reference runs
//! twice under the same inputs, to see what it does not repeat; then both run once more under other inputs: a harness draws them anew,
//! and of a program what it copies to the device before it copies anything back is perturbed. What was not looked at is said.

mod judge;
mod kernel;
mod program;
mod request;

pub(crate) use judge::words as ended;
pub(crate) use kernel::{Files, read_outputs};
pub use kernel::{harness_around, prepare as harness_for};
pub use program::UNTIMED;
pub(crate) use program::secret;
pub use request::{Progress, Request, VerifyError};

use stitch_findings::Verdict;
use tokio_util::sync::CancellationToken;

use crate::program::Target;

/// Verifies the candidate of a request.
///
/// # Errors
/// The reference itself can't be built or run, something is missing, or the job was cancelled. Whatever is wrong with the
/// candidate is a verdict.
pub async fn verify(
    request: &Request,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Verdict, VerifyError> {
    match &request.reference {
        Target::Program(reference) => program::verify(request, reference, progress, cancel).await,
        Target::Kernel { path, kernel } => kernel::verify(request, path, kernel, progress, cancel).await,
    }
}
