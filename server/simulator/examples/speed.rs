//! How fast kernels run, on one worker: `cargo run --release -p stitch-simulator --example speed`.
//!
//! Prints millions of thread and of warp instructions a second, with counters and checks, with counters, with checks, with neither, and with counters and caches: the
//! best of five runs, in seconds of the processor.

#![allow(clippy::print_stdout, clippy::result_large_err)]

use std::error::Error;
use std::sync::atomic::AtomicBool;

use stitch_simulator::checks::Checks;
use stitch_simulator::code::Program;
use stitch_simulator::device::Device;
use stitch_simulator::machine::{Host, Launch, Options, run};
use stitch_simulator::memory::{Kind, Memory};
use stitch_simulator::ptx;

const LINES: &str = include_str!("../src/machine/tests/ptx/lines.ptx");

struct Silent;

impl Host for Silent {
    fn print(&self, _: &[u8]) {}
}

/// A parameter.
#[derive(Clone, Copy)]
enum P {
    Array(usize),
    Int(i32),
}

/// Kernel, grid, block, parameters.
type Case = (&'static str, [u32; 3], [u32; 3], &'static [P]);

const CASES: &[Case] = &[
    ("scale_coalesced", [4096, 1, 1], [256, 1, 1], &[P::Array(1 << 20), P::Array(1 << 20), P::Int(1 << 20)]),
    (
        "matmul_tiled",
        [16, 16, 1],
        [16, 16, 1],
        &[P::Array(1 << 16), P::Array(1 << 16), P::Array(1 << 16), P::Int(256)],
    ),
    ("fma_chain", [256, 1, 1], [256, 1, 1], &[P::Array(1 << 16), P::Int(1 << 16), P::Int(256)]),
    (
        "transpose_conflict",
        [32, 32, 1],
        [32, 32, 1],
        &[P::Array(1 << 20), P::Array(1 << 20), P::Int(1 << 10)],
    ),
    ("sum_divergent", [2048, 1, 1], [256, 1, 1], &[P::Array(1 << 19), P::Array(2048), P::Int(1 << 19)]),
    ("local_indexed", [256, 1, 1], [256, 1, 1], &[P::Array(1 << 16), P::Array(1 << 16), P::Int(1 << 16)]),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<20} {:>17} {:>17} {:>17} {:>17} {:>17}",
        "M thread/s, M warp/s", "both", "counters", "checks", "neither", "caches"
    );
    for case in CASES {
        print!("{:<20}", case.0);
        for (counters, checks, caches) in [
            (true, Checks::All, false),
            (true, Checks::None, false),
            (false, Checks::All, false),
            (false, Checks::None, false),
            (true, Checks::None, true),
        ] {
            let caches = if caches { Device::named("h200") } else { None };
            let (threads, warps) = measure(case, counters, checks, caches)?;
            print!(" {threads:>10.0} {warps:>6.1}");
        }
        println!();
    }
    Ok(())
}

/// Seconds that this thread has been running: other work of the machine does not count.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists for every thread, and the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Millions of thread and warp instructions a second.
fn measure(
    (kernel, grid, block, list): &Case,
    counters: bool,
    checks: Checks,
    caches: Option<&'static Device>,
) -> Result<(f64, f64), Box<dyn Error>> {
    let memory = Memory::new(1 << 30)?.tracked();
    let program = Program::link(vec![ptx::parse(LINES)?], &memory)?;
    let names = program.kernel_names();
    let name = names.iter().find(|name| name.contains(kernel)).ok_or("no such kernel")?;
    let mut parameters = Vec::new();
    for parameter in *list {
        match parameter {
            P::Array(n) => {
                let address = memory.allocate(*n as u64 * 4, 256, Kind::Device)?;
                let bytes: Vec<u8> = (0..*n).flat_map(|i| (i as f32 * 1e-4).fract().to_le_bytes()).collect();
                memory.write(address, &bytes)?;
                parameters.extend(address.to_le_bytes());
            }
            P::Int(value) => parameters.extend(value.to_le_bytes()),
        }
    }
    let launch = Launch {
        kernel: name,
        grid: *grid,
        block: *block,
        dynamic_shared: 0,
        parameters: &parameters,
        cooperative: false,
        cluster: [1; 3],
    };
    let go = |counters| {
        let options = Options { workers: 1, counters, sample: None, until: None, checks, caches };
        run(&program, &launch, &memory, &Silent, &options, &AtomicBool::new(false))
    };
    let total = go(true)?.total();
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = processor_time();
        go(counters)?;
        best = best.min(processor_time() - start);
    }
    Ok((total.active as f64 / best / 1e6, total.warps as f64 / best / 1e6))
}
