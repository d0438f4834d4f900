//! `stitchcuda worker`: the device of another machine's StitchCUDA, on the standard streams. See `docs/worker.md`.

use std::process::ExitCode;

use crate::status::Status;

/// Speaks the protocol until the other side is gone. What is logged goes to standard error, which the other side shows where something is wrong.
pub fn run() -> ExitCode {
    crate::log_to_stderr();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            anstream::eprintln!("error: the system gives no threads to work with: {error}");
            return Status::Bad.into();
        }
    };
    let status = match runtime.block_on(stitch_worker::host::serve()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            anstream::eprintln!("error: {error}");
            Status::Usage.into()
        }
    };
    // Nobody waits for what still reads.
    runtime.shutdown_background();
    status
}
