//! What a kernel that is timed on a GPU moves, counted by the simulator of a device of its architecture.

use std::time::Duration;

use stitch_simulator::device::{DEVICES, Device as Simulated};
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::cost::Traffic;
use super::timed::Harness;
use super::{Measurement, harness_program};
use crate::device::devices;
use crate::program::{Builder, End, RunDevice, Running, build, run};
use crate::simulation::{Checks, Options, Report};

/// Kernels that take the simulator longer are not counted: the count is worth a glance, not a wait.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a sector.
const SECTOR: u64 = 32;

/// What was counted.
pub(super) struct Counted {
    /// The report of the simulator.
    pub report: Report,
    /// What a call must move, and what the device could.
    pub traffic: Option<Traffic>,
}

/// Counts what a call of a kernel does in its harness. `None` where no device of the architecture can be simulated, the simulator can't run it, or
/// not in time.
pub(super) async fn of(
    measurement: &Measurement,
    harness: &Harness,
    cancel: &CancellationToken,
) -> Option<Counted> {
    let RunDevice::Cuda { index, .. } = &measurement.builder.device else { return None };
    let of = &measurement.builder;
    let alike = twin(&of.device)?;
    let prepared = Builder::prepare(alike, of.toolkit.clone(), of.config.clone(), of.workspace.clone());
    let builder = Builder { origin: of.origin.clone(), ..prepared.await.ok()? };
    let scratch = Scratch::new("harness").ok()?;
    let program = harness_program(&harness.text, &harness.path, &harness.kernel, &scratch).ok()?;
    let built = build(&builder, &program, cancel).await.ok()?;
    let running = Running {
        device: builder.device.clone(),
        arguments: Vec::new(),
        time_limit: PATIENCE,
        simulation: Options {
            executable: measurement.executable.clone(),
            counters: true,
            // What it costs is asked here, not what is wrong with it.
            checks: Checks::None,
            ..Options::default()
        },
    };
    let ran = run(&built, &running, cancel).await.ok()?;
    let report = ran.report.filter(|report| ran.end == End::Status(0) && !report.kernels.is_empty())?;
    let report = Report::clone(&report);
    let device = devices().await.iter().find(|device| device.index == *index);
    let traffic = device.map(|device| traffic(&report, device.bandwidth, device.l2));
    Some(Counted { report, traffic })
}

/// The simulated device that is most like a GPU: the same, or one of its architecture.
pub(crate) fn twin(device: &RunDevice) -> Option<RunDevice> {
    let RunDevice::Cuda { name, architecture, .. } = device else { return None };
    let is_alike = |device: &&'static Simulated| RunDevice::Simulator(device).architecture() == *architecture;
    let same = DEVICES.iter().find(|device| device.product == name);
    same.or_else(|| DEVICES.iter().find(is_alike)).map(RunDevice::Simulator)
}

/// What a call must move: the sectors that its accesses need, though a cache may serve what is accessed again, so no more than all arrays once and
/// those that are copied back, which are those that it may write, twice.
fn traffic(report: &Report, peak: u64, l2: u64) -> Traffic {
    let needed: u64 = report.kernels.iter().map(|kernel| kernel.counters.total.ideal_sectors * SECTOR).sum();
    let arrays = report.memory_peak;
    let bytes = needed.min(arrays + report.device_to_host.bytes);
    Traffic { bytes, arrays, peak, l2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Copies, Count, Counters, Kernel};

    #[test]
    fn what_is_read_again_is_counted_once() {
        for (sectors, expected) in [(10, 320), (1_000, 1_500)] {
            let total = Count { ideal_sectors: sectors, ..Count::default() };
            let kernel = Kernel { counters: Counters { total, ..Counters::default() }, ..Kernel::default() };
            let device_to_host = Copies { bytes: 500, ..Copies::default() };
            let report =
                Report { kernels: vec![kernel], memory_peak: 1_000, device_to_host, ..Report::default() };
            assert_eq!(traffic(&report, 1, 1).bytes, expected);
        }
    }
}
