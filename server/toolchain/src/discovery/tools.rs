//! Finds the tools beside nvcc: profilers, sanitizer, disassemblers, clang, and the driver's library.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::places::expand;
use super::version::first_number;
use super::{Search, Toolkit};
use crate::environment::is_executable;
use crate::process::Program;

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// The program (or library).
    pub path: PathBuf,
    /// Its version, if it said one.
    pub version: Option<String>,
}

/// The tools that were found.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tools {
    /// Nsight Compute's command line.
    pub ncu: Option<Tool>,
    /// Nsight Systems' command line.
    pub nsys: Option<Tool>,
    /// Finds races, bounds errors and uninitialised reads on a device.
    pub compute_sanitizer: Option<Tool>,
    /// Takes binaries apart.
    pub cuobjdump: Option<Tool>,
    /// Disassembles.
    pub nvdisasm: Option<Tool>,
    /// Tells of the driver and its devices.
    pub nvidia_smi: Option<Tool>,
    /// A clang of version 19 or newer, for checks between keystrokes.
    pub clang: Option<Tool>,
    /// The driver's library. No version: it is not loaded to ask.
    pub libcuda: Option<Tool>,
}

/// Places beside `PATH` in which a tool lies, newest first. `*` stands for one folder.
/// Sources: the file lists of NVIDIA's packages nsight-compute-* and nsight-systems-*. Nsight Compute carries a whole
/// Nsight Systems below `host`.
const NCU_PLACES: &[&str] =
    &["opt/nvidia/nsight-compute/*/ncu", "usr/local/cuda*/bin/ncu", "usr/local/NVIDIA-Nsight-Compute*/ncu"];
const NSYS_PLACES: &[&str] = &[
    "opt/nvidia/nsight-systems/*/bin/nsys",
    "opt/nvidia/nsight-systems/*/target-linux-*/nsys",
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
    "usr/local/cuda*/nsight-compute*/host/target-linux-*/nsys",
];
const SANITIZER_PLACES: &[&str] =
    &["usr/local/cuda*/bin/compute-sanitizer", "usr/local/cuda*/compute-sanitizer/compute-sanitizer"];
const SMI_PLACES: &[&str] =
    &["usr/bin/nvidia-smi", "usr/lib/wsl/lib/nvidia-smi", "usr/lib/nvidia/bin/nvidia-smi"];
const DISASSEMBLER_PLACES: &[&str] = &["usr/local/cuda*/bin"];

/// Where drivers put `libcuda.so.1`: Debian and Ubuntu, RPM distributions and Arch, WSL, NixOS, containers.
const LIBCUDA_PLACES: &[&str] = &[
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/wsl/lib",
    "run/opengl-driver/lib",
    "usr/local/nvidia/lib64",
    "usr/lib/x86_64-linux-gnu/nvidia/current",
];

/// The newest clang that is looked for by number, and the oldest that reads CUDA 12 headers.
const NEWEST_CLANG: u32 = 30;
const OLDEST_CLANG: u32 = 19;

/// NVIDIA's compute-sanitizer: the toolkit's own, that on `PATH`, or one in the usual places. It is not asked for its version.
pub fn compute_sanitizer(search: &Search, toolkit: Option<&Toolkit>) -> Option<PathBuf> {
    let own = toolkit.map(|toolkit| {
        ["bin/compute-sanitizer", "compute-sanitizer/compute-sanitizer"].map(|name| toolkit.root.join(name))
    });
    let usual = SANITIZER_PLACES.iter().flat_map(|place| expand(&search.environment.under_root(place)));
    own.into_iter()
        .flatten()
        .chain(search.environment.find_programs("compute-sanitizer"))
        .chain(usual)
        .find(|path| is_executable(path))
}

/// NVIDIA's profilers, as they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Profilers {
    /// Nsight Compute's command line.
    pub ncu: Option<PathBuf>,
    /// Nsight Systems' command line.
    pub nsys: Option<PathBuf>,
}

/// NVIDIA's profilers: those on `PATH`, the toolkit's own, or those in the usual places. They are not asked for their versions.
pub fn profilers(search: &Search, toolkit: Option<&Toolkit>) -> Profilers {
    let find = |name: &str, places: &[&str]| {
        let own = toolkit.map(|toolkit| toolkit.root.join("bin").join(name));
        let usual = places.iter().flat_map(|place| expand(&search.environment.under_root(place)));
        let on_path = search.environment.find_programs(name);
        on_path.into_iter().chain(own).chain(usual).find(|path| is_executable(path))
    };
    Profilers { ncu: find("ncu", NCU_PLACES), nsys: find("nsys", NSYS_PLACES) }
}

/// Finds the tools, and runs `--version` of each (a second or two the first time, for nsys). A toolkit's own come before
/// those on `PATH` where they read its files.
pub fn tools(search: &Search, toolkit: Option<&Toolkit>) -> Tools {
    let own = |name: &str| {
        toolkit.map(|toolkit| toolkit.root.join("bin").join(name)).into_iter().collect::<Vec<_>>()
    };
    let on_path = |name: &str| search.environment.find_programs(name);
    let fixed = |places: &[&str]| {
        places.iter().flat_map(|place| expand(&search.environment.under_root(place))).collect::<Vec<_>>()
    };
    let first = |groups: [Vec<PathBuf>; 3]| groups.into_iter().flatten().find(|path| is_executable(path));
    let disassembler = |name: &str| {
        let folders = fixed(DISASSEMBLER_PLACES);
        first([own(name), on_path(name), folders.into_iter().map(|folder| folder.join(name)).collect()])
    };
    let asked = |path: Option<PathBuf>| path.map(|path| ask(path, search));
    let profilers = profilers(search, toolkit);
    Tools {
        ncu: asked(profilers.ncu),
        nsys: asked(profilers.nsys),
        compute_sanitizer: asked(compute_sanitizer(search, toolkit)),
        cuobjdump: asked(disassembler("cuobjdump")),
        nvdisasm: asked(disassembler("nvdisasm")),
        // Without a driver nvidia-smi takes seconds to say so; its version is not worth that.
        nvidia_smi: first([on_path("nvidia-smi"), Vec::new(), fixed(SMI_PLACES)])
            .map(|path| Tool { path, version: None }),
        clang: clang(search),
        libcuda: libcuda(search),
    }
}

/// The newest clang on `PATH` that reads CUDA 12 headers and newer; for callers that want only that.
pub fn clang(search: &Search) -> Option<Tool> {
    let numbered = (OLDEST_CLANG..=NEWEST_CLANG).rev().map(|number| format!("clang-{number}"));
    let mut options =
        numbered.chain(["clang".into()]).filter_map(|name| search.environment.find_program(&name));
    options.find_map(|path| {
        let tool = ask(path, search);
        let major: u32 = tool.version.as_ref()?.split('.').next()?.parse().ok()?;
        (major >= OLDEST_CLANG).then_some(tool)
    })
}

fn libcuda(search: &Search) -> Option<Tool> {
    let variable = search
        .environment
        .get("LD_LIBRARY_PATH")
        .map(|value| std::env::split_paths(value).collect::<Vec<_>>());
    let fixed = LIBCUDA_PLACES.iter().map(|place| search.environment.under_root(place));
    let mut folders =
        variable.unwrap_or_default().into_iter().filter(|folder| folder.is_absolute()).chain(fixed);
    let path = folders.find_map(|folder| Some(folder.join("libcuda.so.1")).filter(|path| path.is_file()))?;
    Some(Tool { path, version: None })
}

/// Asks a program for its version. One that does not answer is still there.
pub(super) fn ask(path: PathBuf, search: &Search) -> Tool {
    let program =
        Program::new(&path).arg("--version").environment(search.environment.clone().without_secrets());
    let answer = program.time_limit(Duration::from_secs(10)).output_limit(1 << 16).run_blocking();
    let version = answer.ok().and_then(|finished| first_number(&finished.stdout_text()));
    Tool { path, version }
}
