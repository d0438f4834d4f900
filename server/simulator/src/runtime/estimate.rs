//! Estimates of time, for events. A roofline: the slower of memory and arithmetic. No measurement, and shown as none.

use crate::counters::LaunchCounters;
use crate::device::{Device, WARP};

/// What a launch costs at least, in nanoseconds: about what an empty kernel takes on recent devices.
const LAUNCH: u64 = 2_000;
/// What a copy costs at least, in nanoseconds.
const COPY: u64 = 5_000;
/// Bytes a second between host and device: sixteen lanes of PCI Express 4.
const HOST_BANDWIDTH: f64 = 25e9;

/// Nanoseconds, rounded.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Times are positive and far below 2^53 ns.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Bytes of a sector, the unit in which memory is moved.
const SECTOR: f64 = 32.0;

/// Time of a kernel, in nanoseconds. Every sector counts as if it came from memory; a warp instruction as one of each lane.
#[allow(clippy::cast_precision_loss)]
pub(super) fn kernel(device: &Device, counted: &LaunchCounters) -> u64 {
    let memory = counted.total().sectors as f64 * SECTOR / device.bandwidth();
    let rate = f64::from(device.clock)
        * 1e3
        * f64::from(device.multiprocessors)
        * f64::from(device.limits.lanes / WARP);
    let arithmetic = counted.warp_instructions as f64 / rate;
    LAUNCH + nanoseconds(memory.max(arithmetic))
}

/// Time of a copy of `bytes` bytes, in nanoseconds; `host` where one end is the host's.
#[allow(clippy::cast_precision_loss)]
pub(super) fn copy(device: &Device, bytes: u64, host: bool) -> u64 {
    // Within the device each byte is read and written.
    let bandwidth = if host { HOST_BANDWIDTH } else { device.bandwidth() / 2.0 };
    COPY + nanoseconds(bytes as f64 / bandwidth)
}
