//! What the simulator's process does with its order.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use stitch_simulator::device::Device;
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::stub::StubError;
use stitch_simulator::runtime::{self, Config, Executor, ServeError, Watch};

use super::Order;
use crate::clock;

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ObeyError {
    /// There is no such device.
    #[error("there is no simulated device `{0}`")]
    Device(String),
    /// The program could not be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The report could not be written.
    #[error("the report could not be written to {}: {source}", path.display())]
    Report {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The status of a process whose program needs what the simulator lacks, as of every command.
const MISSING: u8 = 3;

/// Runs a program as ordered, writes the report, and returns the status to end with: that of the program.
///
/// # Errors
/// The program could not be run, or the report not be written.
pub fn obey(order: &Order, cache: &Path) -> Result<u8, ObeyError> {
    let device = Device::named(&order.device).ok_or_else(|| ObeyError::Device(order.device.clone()))?;
    let budget = order.budget.map(Duration::from_millis);
    let command = std::iter::once(order.program.clone().into_os_string());
    let executor = Executor::new(device, order.counters, order.sample).checking(order.checks).within(budget);
    let executor = if order.caches { executor.modelling(device) } else { executor };
    let config = Config {
        command: command.chain(order.arguments.iter().map(Into::into)).collect(),
        folder: None,
        environment: held(order.date, cache),
        device,
        engine: Box::new(executor),
        cache: cache.to_owned(),
        compiler: compiler(),
        time_limit: None,
        stdin: Stdio::null(),
        stdout: Stdio::inherit(),
        stderr: Stdio::inherit(),
        watch: Watch { perturb: order.perturb, record: order.copies.clone() },
    };
    // The one who gave the order ends this process, and the program with it: all that it started, too.
    let report = runtime::serve(config, runtime::cancelled_by_signals())?;
    let failed = |source| ObeyError::Report { path: order.report.clone(), source };
    let text = serde_json::to_vec(&report).map_err(|error| failed(io::Error::other(error)))?;
    std::fs::write(&order.report, text).map_err(failed)?;
    if report.lacks() {
        return Ok(MISSING);
    }
    let status = |number: i32| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
    Ok(match report.ending {
        Ending::Exited(code) => status(code),
        // As a shell shows a signal.
        Ending::Signalled(signal) => status(128 + signal),
        Ending::Running | Ending::TimeLimit | Ending::Cancelled => 1,
    })
}

/// The variables that hold the date. Without the library, which needs the compiler that the simulator's own needs, it is not held.
fn held(date: Option<u64>, cache: &Path) -> Vec<(OsString, OsString)> {
    let Some(date) = date else { return Vec::new() };
    match clock::variables(date, cache, &compiler()) {
        Ok(variables) => variables.into(),
        Err(error) => {
            tracing::debug!("the date is not held: {error}");
            Vec::new()
        }
    }
}

/// The C compiler for libraries that are put before a program.
pub(crate) fn compiler() -> String {
    std::env::var("CC").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "cc".to_owned())
}

/// The folder for the linker, with `libcudart.so` of the release `major`: the simulator's, built if it is not in `cache` yet.
///
/// # Errors
/// It can't be built, for want of a C compiler or of a folder.
pub fn runtime_library(cache: &Path, major: u32) -> anyhow::Result<PathBuf> {
    let built =
        runtime::stub::build(cache, &compiler()).map_err(|error: StubError| anyhow::anyhow!("{error}"))?;
    let name = format!("libcudart.so.{major}");
    anyhow::ensure!(
        built.join(&name).exists(),
        "the simulator stands in for CUDA 12 and 13, not for CUDA {major}"
    );
    let folder = built.with_file_name(format!(
        "{}-link-{major}",
        built.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    ));
    std::fs::create_dir_all(&folder)?;
    match std::os::unix::fs::symlink(built.join(name), folder.join("libcudart.so")) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(folder),
    }
}
