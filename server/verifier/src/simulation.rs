//! The seam to the simulator: an order goes to a process of ours, a report and what was copied back come from it.
//!
//! The simulator runs in a process of its own, as an outside program like any other: in a group of its own, with a time limit and a scratch
//! folder, gone with the job. The order is written to its standard input, not to its command line, which the program that it runs could read:
//! the seed by which inputs are perturbed is nobody else's business.

mod defects;
mod obey;
mod report;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stitch_toolchain::process::{Finished, Program as Process, ProgramError, Scratch};
use tokio_util::sync::CancellationToken;

use crate::program::{Command, Running};
pub use defects::Source;
pub(crate) use obey::compiler;
pub use obey::{ObeyError, obey, runtime_library};
pub use report::{
    Copies, Count, Counters, Defect, Ending, Fault, Instruction, Kernel, Line, Lines, Other, Report,
};
pub use stitch_simulator::checks::Checks;

/// The subcommand of our own program that is the simulator's process.
pub const SUBCOMMAND: &str = "simulate";
/// How much is kept of what a program prints, in bytes.
const OUTPUT_LIMIT: usize = 64 << 20;

/// What is done besides running a program. On a real device copies are recorded and perturbed too; the rest is the simulator's.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Our own program, of which [`SUBCOMMAND`] is a subcommand.
    pub executable: PathBuf,
    /// Perturbs what is first copied to each buffer, by this seed.
    pub perturb: Option<u64>,
    /// Records what is copied back to the host.
    pub record: bool,
    /// Holds the date at this one, in seconds since 1970.
    pub date: Option<u64>,
    /// Counts what the memory system would do.
    pub counters: bool,
    /// With that, models the caches: hit rates, bytes of memory, and a better estimate of the time, on one thread.
    pub caches: bool,
    /// Simulates only this share of the blocks, for counters alone.
    pub sample: Option<f64>,
    /// Simulates all blocks for so long, and then a sample of those of each launch, for counters alone.
    pub budget: Option<Duration>,
    /// What is looked for.
    pub checks: Checks,
}

/// What is looked for, as it is configured.
pub fn checks(configured: stitch_session::config::Checks) -> Checks {
    match configured {
        stitch_session::config::Checks::None => Checks::None,
        stitch_session::config::Checks::Memory => Checks::Memory,
        stitch_session::config::Checks::All => Checks::All,
    }
}

/// What the simulator's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The device, by its name without `sim:`.
    pub device: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where the report goes.
    pub report: PathBuf,
    /// Where copies to the host go, one after the other: their length in eight bytes, little-endian, then their bytes.
    pub copies: Option<PathBuf>,
    /// The seed by which inputs are perturbed.
    pub perturb: Option<u64>,
    /// The date that the program is told, in seconds since 1970.
    pub date: Option<u64>,
    /// Whether to count.
    pub counters: bool,
    /// Whether to model the caches too.
    #[serde(default)]
    pub caches: bool,
    /// The share of blocks to simulate.
    pub sample: Option<f64>,
    /// For how long all blocks are simulated, in milliseconds.
    #[serde(default)]
    pub budget: Option<u64>,
    /// What to look for.
    #[serde(default)]
    pub checks: Checks,
}

/// What came of a run.
#[derive(Debug)]
pub struct Simulated {
    /// How the program ended; the simulator's process ends as its program did.
    pub finished: Result<Finished, ProgramError>,
    /// The report, if one was written.
    pub report: Option<Report>,
    /// What was copied back, in order.
    pub copies: Option<Vec<Vec<u8>>>,
}

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The program needs something that the simulator does not have.
    #[error("The simulator can't run this program, since it has no {}. Run it on a GPU: `--device cuda:0`.", names.join(", "))]
    Missing {
        /// Functions of the runtime that it lacks.
        names: Vec<String>,
    },
    /// The program never asked for the device.
    #[error(
        "The program made no call to the simulator's CUDA runtime, so its kernels did not run on it: it may be linked with `-cudart static`, nvcc's default, or make no call at all. Link it with `-cudart shared`."
    )]
    NotUsed,
    /// It left no report.
    #[error("The simulator left no report: {reason} {said}")]
    NoReport {
        /// Why, as far as it is known.
        reason: String,
        /// What its process said.
        said: String,
    },
    /// What it wrote can't be read.
    #[error("{} could not be read: {source}.", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Keeps other processes of the user, the program that runs here among them, from looking into this one.
///
/// # Errors
/// The system refused.
pub fn shield() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false)?;
    Ok(())
}

/// Runs a program in the simulator's process, under the limits of `running`.
///
/// # Errors
/// The program needs what the simulator lacks, or the simulator itself failed.
pub async fn run(
    program: &Command,
    folder: &Path,
    device: &str,
    running: &Running,
    scratch: &Scratch,
    cancel: &CancellationToken,
) -> Result<Simulated, SimulationError> {
    let options = &running.simulation;
    let report = folder.with_extension("report.json");
    let copies = options.record.then(|| folder.with_extension("copies"));
    let order = Order {
        device: device.to_owned(),
        program: program.path.clone(),
        arguments: program.arguments.clone(),
        report: report.clone(),
        copies: copies.clone(),
        perturb: options.perturb,
        date: options.date,
        counters: options.counters,
        caches: options.caches,
        sample: options.sample,
        budget: options.budget.map(|budget| u64::try_from(budget.as_millis()).unwrap_or(u64::MAX)),
        checks: options.checks,
    };
    let text = serde_json::to_vec(&order)
        .map_err(|error| SimulationError::NoReport { reason: error.to_string(), said: String::new() })?;
    let process = Process::new(&options.executable)
        .arg(SUBCOMMAND)
        .stdin(text)
        .current_dir(folder)
        .scratch(scratch)
        // The memory of the simulated device is a file in memory.
        .large_files()
        .output_limit(OUTPUT_LIMIT)
        .time_limit(running.time_limit);
    let finished = process.run(cancel).await;
    let written = match std::fs::read(&report) {
        Ok(bytes) => serde_json::from_slice::<Report>(&bytes).map_err(|error| error.to_string()),
        Err(error) => Err(format!("{} could not be read ({error}).", report.display())),
    };
    let (reported, recorded) = (report.clone(), copies.clone());
    let report = match (written, &finished) {
        // Ended from outside, by the time limit say: what it was doing then is no fault of the program.
        (_, Err(_)) => None,
        (Ok(report), Ok(_)) => Some(report),
        (Err(reason), Ok(finished)) => {
            return Err(SimulationError::NoReport { reason, said: finished.stderr_text() });
        }
    };
    if let Some(missing) = report.as_ref().map(|report| &report.missing).filter(|missing| !missing.is_empty())
    {
        return Err(SimulationError::Missing { names: missing.clone() });
    }
    let copies = match (copies, &report) {
        (Some(path), Some(_)) => Some(read_copies(&path)?),
        _ => None,
    };
    // What the reference gave must not lie where a candidate could read it.
    for written in recorded.iter().chain([&reported]) {
        let _ = std::fs::remove_file(written);
    }
    Ok(Simulated { finished, report, copies })
}

/// The copies in a file as [`Order::copies`] says. One that was cut off at the end is left out.
fn read_copies(path: &Path) -> Result<Vec<Vec<u8>>, SimulationError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(SimulationError::Unreadable { path: path.to_owned(), source }),
    };
    Ok(split_copies(&bytes))
}

fn split_copies(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut copies = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((copy, after)) = after.split_at_checked(length) else { break };
        copies.push(copy.to_vec());
        rest = after;
    }
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_taken_apart_and_one_that_was_cut_off_is_left_out() {
        let mut bytes = 3u64.to_le_bytes().to_vec();
        bytes.extend([1, 2, 3]);
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(9u64.to_le_bytes());
        bytes.extend([4; 5]);
        assert_eq!(split_copies(&bytes), [vec![1, 2, 3], vec![]]);
        assert_eq!(split_copies(&u64::MAX.to_le_bytes()), Vec::<Vec<u8>>::new());
        assert_eq!(split_copies(&[1, 2]), Vec::<Vec<u8>>::new());
    }
}
