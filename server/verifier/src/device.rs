//! The GPUs of this machine, by NVIDIA's driver library. The only place that calls the driver,
//! but for the proof in the sandbox that it can be called there.
//!
//! The library is loaded when it is first asked for. Where it is missing, or panics while it loads, there are no devices: that
//! is the usual state of a laptop, and no error.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::driver::{result, sys};
use serde::Serialize;
use stitch_toolchain::discovery::Version;
use stitch_toolchain::doctor::DeviceFacts;

use crate::architecture::Architecture;

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// As in `cuda:0`.
    pub index: u32,
    /// `NVIDIA H200`.
    pub name: String,
    /// Its compute capability.
    pub architecture: Architecture,
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes that its memory moves in a second at most: two transfers a cycle of the memory's clock over the width of its bus.
    pub bandwidth: u64,
    /// Bytes of its L2 cache.
    pub l2: u64,
    /// The newest CUDA version that the driver runs: 12 and 8 of 12.8.
    pub driver: (u32, u32),
}

/// The GPUs of this machine, asked once for the life of the process.
pub async fn devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    if let Some(known) = DEVICES.get() {
        return known;
    }
    let found = tokio::task::spawn_blocking(|| std::panic::catch_unwind(ask).unwrap_or_default())
        .await
        .unwrap_or_default();
    DEVICES.get_or_init(|| found)
}

/// What is known of the driver and the GPUs, as it is shown to people.
pub async fn facts() -> DeviceFacts {
    let devices = devices().await;
    let word = |device: &Device| {
        let gibibytes = device.memory as f64 / f64::from(1 << 30);
        format!("{}, {}, {gibibytes:.0} GiB", device.name, device.architecture.real())
    };
    DeviceFacts {
        driver: devices.first().map(|device| Version { major: device.driver.0, minor: device.driver.1 }),
        devices: devices.iter().map(word).collect(),
        problem: None,
    }
}

/// The architecture to compile for: that of the first GPU.
pub async fn architecture() -> Option<Architecture> {
    devices().await.first().map(|device| device.architecture)
}

/// The file of the driver's library that this process has loaded; `None` before [`devices`] found any.
pub(crate) fn library() -> Option<PathBuf> {
    library_of(&std::fs::read_to_string("/proc/self/maps").ok()?)
}

/// The file of the driver's library among the mapped ones, in the form of `/proc/PID/maps`.
fn library_of(maps: &str) -> Option<PathBuf> {
    maps.lines().find_map(|line| {
        let path = Path::new(line.get(line.find('/')?..)?);
        path.file_name()?.to_str()?.starts_with("libcuda.so").then(|| path.to_owned())
    })
}

fn ask() -> Vec<Device> {
    // SAFETY: only looks whether the library can be opened.
    if !unsafe { sys::is_culib_present() } || result::init().is_err() {
        return Vec::new();
    }
    let driver = driver_version().unwrap_or_default();
    let count = result::device::get_count().unwrap_or(0);
    (0..count).filter_map(|index| describe(index, driver)).collect()
}

fn driver_version() -> Option<(u32, u32)> {
    let mut version = 0;
    // SAFETY: the driver writes one integer to a valid place.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().ok()?;
    let version = u32::try_from(version).ok()?;
    Some((version / 1000, version % 1000 / 10))
}

fn describe(index: i32, driver: (u32, u32)) -> Option<Device> {
    let device = result::device::get(index).ok()?;
    let attribute = |which| {
        // SAFETY: the device was given by the driver.
        let value = unsafe { result::device::get_attribute(device, which) }.ok()?;
        u64::try_from(value).ok()
    };
    let small = |which| attribute(which).and_then(|value| u16::try_from(value).ok());
    let major = small(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = small(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // In kHz and bits; 0 where the driver does not say.
    let clock = attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0);
    let width = attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unwrap_or(0);
    // SAFETY: the device was given by the driver.
    let memory = unsafe { result::device::total_mem(device) }.ok()?;
    Some(Device {
        index: u32::try_from(index).ok()?,
        name: result::device::get_name(device).ok()?,
        architecture: Architecture::new(major, minor),
        memory: u64::try_from(memory).ok()?,
        bandwidth: 2 * clock * 1_000 * width / 8,
        l2: attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE).unwrap_or(0),
        driver,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_found_among_what_is_loaded() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libcudart.so.13\n\
                    7f02-7f03 r--p 00000000 08:01 13                         /opt/with blank/libcuda.so.580.1\n\
                    7f04-7f05 rw-p 00000000 00:00 0 \n";
        assert_eq!(library_of(maps), Some("/opt/with blank/libcuda.so.580.1".into()));
        assert_eq!(library_of("7f04-7f05 rw-p 00000000 00:00 0 [heap]\n"), None);
    }

    #[tokio::test]
    async fn asking_never_fails_and_answers_alike() {
        assert_eq!(super::devices().await, super::devices().await);
    }
}
