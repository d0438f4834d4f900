//! Estimates of time, for events. No measurement, and shown as none; those of kernels are in [`crate::estimate`].

use crate::device::Device;

/// What a copy costs at least, in nanoseconds.
const COPY: u64 = 5_000;
/// Bytes a second between host and device: sixteen lanes of PCI Express 4.
const HOST_BANDWIDTH: f64 = 25e9;

/// Nanoseconds, rounded.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Times are positive and far below 2^53 ns.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Time of a copy of `bytes` bytes, in nanoseconds; `host` where one end is the host's.
#[allow(clippy::cast_precision_loss)]
pub(super) fn copy(device: &Device, bytes: u64, host: bool) -> u64 {
    // Within the device each byte is read and written.
    let bandwidth = if host { HOST_BANDWIDTH } else { device.bandwidth() / 2.0 };
    COPY + nanoseconds(bytes as f64 / bandwidth)
}
