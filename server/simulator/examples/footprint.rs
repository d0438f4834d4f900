//! How much memory a run takes: `cargo run --release -p stitch-simulator --example footprint [MIB…]`.
//!
//! For programs that use so many MiB of device memory, all of them, in several ways: the most that the program's process and this
//! one took together, in MiB, shared pages counted once (`Pss` of `/proc/PID/smaps_rollup`, looked at all the time). It should
//! be less than twice the device memory and 100 MB. Needs a C compiler.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use stitch_simulator::device::Device;
use stitch_simulator::runtime::report::Ending;
use stitch_simulator::runtime::{Config, Executor, Watch, serve, stub};

const KINDS: [&str; 5] = ["fill", "copy", "managed", "pinned", "pool"];

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Vec<u64> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let sizes = if asked.is_empty() { vec![10, 1024, 4096] } else { asked };
    let folder = tempfile::tempdir()?;
    let program = build(folder.path())?;
    println!("{:<10} {:>8} {:>8} {:>8}", "kind", "device", "taken", "allowed");
    for size in sizes {
        for kind in KINDS {
            let taken = run(&program, folder.path(), kind, size)?;
            let allowed = 2 * size + 100_000_000 / (1 << 20);
            let verdict = if taken < allowed { "" } else { "  too much" };
            println!("{kind:<10} {size:>8} {taken:>8} {allowed:>8}{verdict}");
        }
    }
    Ok(())
}

fn cache(folder: &Path) -> PathBuf {
    folder.join("stub")
}

fn build(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let library = stub::build(&cache(folder), "cc")?.join("libcudart.so.13");
    let program = folder.join("footprint");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/footprint.c");
    let built =
        Command::new("cc").arg("-O1").arg(source).arg(library).arg("-o").arg(&program).status()?.success();
    if built { Ok(program) } else { Err("cc could not build the program".into()) }
}

/// The most that both processes took, in MiB.
fn run(program: &Path, folder: &Path, kind: &str, size: u64) -> Result<u64, Box<dyn Error>> {
    let device = Device::named("h200").ok_or("no such device")?;
    let config = Config {
        command: vec![program.into(), kind.into(), size.to_string().into()],
        folder: None,
        environment: Vec::new(),
        device,
        engine: Box::new(Executor::new(device, true, None)),
        cache: cache(folder),
        compiler: "cc".to_owned(),
        time_limit: None,
        stdin: Stdio::null(),
        stdout: Stdio::null(),
        stderr: Stdio::inherit(),
        watch: Watch::default(),
    };
    let (ended, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                most.fetch_max(taken(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let report = serve(config, &AtomicBool::new(false));
        ended.store(true, Ordering::Relaxed);
        report
    })?;
    match report.ending {
        Ending::Exited(0) if report.memory_peak >= size << 20 => Ok(most.into_inner() >> 10),
        ending => Err(format!("{kind} of {size} MiB: {ending:?}, {:?}", report.notes).into()),
    }
}

/// KiB of this process and its children, shared pages counted once.
fn taken() -> u64 {
    let own = std::process::id();
    let children = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        (parent.trim() == own.to_string()).then_some(pid)
    });
    std::iter::once(own).chain(children).filter_map(proportional).sum()
}

/// `Pss` of a process, in KiB.
fn proportional(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
