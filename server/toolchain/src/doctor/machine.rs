//! The items about the machine: driver, counters, cache folder and disk, C library.

use std::time::Duration;

use super::{DeviceFacts, Item, Status};
use crate::discovery::{self, COUNTERS_REMEDY, Counters, Search, Toolkit, Tools};
use crate::install::free_bytes;
use crate::process::{Program, Scratch};
use crate::sentence::part;

/// A private toolkit and its wheels take about this much while it is made (measured on 13.5: 0.96 GB), in bytes.
const ROOM_FOR_TOOLKIT: u64 = 1_200_000_000;
/// The oldest C library that CUDA 13's wheels run on (their tags: manylinux_2_17 to 2_28).
const OLDEST_GLIBC: (u32, u32) = (2, 28);

/// The driver's library, and what the caller knows of the devices.
pub(super) fn driver(tools: &Tools, devices: Option<&DeviceFacts>, toolkit: Option<&Toolkit>) -> Vec<Item> {
    let why = "Kernels run on a device through it; without one they are only compiled and checked.";
    let mut items = Vec::new();
    let driver = devices.and_then(|devices| devices.driver);
    match &tools.libcuda {
        None => items.push(Item::new("GPU driver", why, Status::Optional, "There is no libcuda.so.1: no driver is installed, or this container has none.")
            .remedy("On a machine with a GPU, install the NVIDIA driver; in a container, start it with `--gpus all`.")),
        Some(library) => {
            let item = |status, detail: String| Item::new("GPU driver", why, status, detail).at(&library.path).version(driver);
            items.push(match (devices.and_then(|devices| devices.problem.as_ref()), driver, toolkit) {
                (Some(problem), _, _) => item(Status::Problem, format!("It is there, but can't be used: {}.", part(problem)))
                    .remedy("Run nvidia-smi to see what the driver says; after an update of the driver, restart the machine."),
                // Within a major release a newer toolkit's programs run on an older driver.
                (None, Some(driver), Some(toolkit)) if driver.major < toolkit.version.major => item(
                    Status::Problem,
                    format!("It runs CUDA up to {driver}, and the toolkit is {}: compiled programs won't start.", toolkit.version),
                )
                .remedy(format!("Update the driver, or use a toolkit of CUDA {}.", driver.major)),
                _ => item(Status::Ok, "Found.".into()),
            });
        }
    }
    if let Some(devices) = devices {
        let why = "What kernels run on.";
        items.push(if devices.devices.is_empty() {
            Item::new("GPU", why, Status::Optional, "None.")
        } else {
            Item::new("GPU", why, Status::Ok, devices.devices.join("; "))
        });
    }
    items
}

/// Whether this user may read a device's counters. Says nothing without a driver.
pub(super) fn counters(search: &Search) -> Option<Item> {
    let why = "ncu reads them; without permission it measures nothing.";
    let item = |status, detail: &str| Item::new("GPU counters", why, status, detail);
    match discovery::counters(search) {
        Counters::Unknown => None,
        Counters::Allowed => Some(item(Status::Ok, "This user may read them.")),
        Counters::Refused => {
            let detail = "Only the administrator may read them (RmProfilingAdminOnly is 1).";
            Some(item(Status::Optional, detail).remedy(COUNTERS_REMEDY))
        }
    }
}

/// The cache folder: whether it can be written, and the room on its disk.
pub(super) fn cache(search: &Search) -> Vec<Item> {
    let folder = search.environment.cache_folder();
    let why = "Compile results, private toolkits and scratch folders lie there.";
    if let Err(error) = Scratch::new_in(&folder.join("scratch"), "doctor") {
        return vec![
            Item::new("cache folder", why, Status::Problem, format!("It can't be written: {}.", part(error)))
                .at(folder)
                .remedy("Check who owns it (`ls -ld`), or set XDG_CACHE_HOME to a folder of yours."),
        ];
    }
    let mut items = vec![Item::new("cache folder", why, Status::Ok, "It can be written.").at(&folder)];
    if let Some(free) = free_bytes(&folder) {
        let detail = format!("{:.1} GB are free.", free as f64 / 1e9);
        let why = "A private toolkit takes about 1 GB while it is made.";
        items.push(if free >= ROOM_FOR_TOOLKIT {
            Item::new("disk", why, Status::Ok, detail).at(folder)
        } else {
            Item::new("disk", why, Status::Problem, detail)
                .at(folder)
                .remedy("Make room, or set XDG_CACHE_HOME to a folder on a larger disk.")
        });
    }
    items
}

/// The C library, on Linux.
pub(super) fn c_library(search: &Search) -> Option<Item> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let why = "nvcc and the CUDA libraries are built for it.";
    let program = Program::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .environment(search.environment.clone().without_secrets());
    let finished = program.time_limit(Duration::from_secs(10)).run_blocking().ok();
    let text = finished.filter(|finished| finished.status.success()).map(|finished| finished.stdout_text());
    let version = text.as_deref().and_then(|text| text.trim().strip_prefix("glibc ")).map(String::from);
    let Some(version) = version else {
        return Some(
            Item::new(
                "C library",
                why,
                Status::Optional,
                "It is not glibc, or does not say its version; CUDA runs on glibc only.",
            )
            .remedy("Use a distribution with glibc (a container will do)."),
        );
    };
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let is_new = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= OLDEST_GLIBC;
    Some(if is_new {
        Item::new("C library", why, Status::Ok, "glibc.").version(Some(version))
    } else {
        Item::new("C library", why, Status::Problem, "This glibc is older than 2.28; CUDA 13 may not run.")
            .version(Some(version))
            .remedy("Use a newer distribution (a container will do), or CUDA 12.")
    })
}
