//! Runs a CUDA program on the simulator: `simulate [--device h200] [--report FILE] [--no-counters] [--caches] [--sample SHARE]
//! [--checks none|memory|all] [--seconds N] -- PROGRAM ARGUMENTS…`.
//!
//! The program is one that was built with `-cudart shared`. The report is JSON, on standard error or in the file; what the
//! program prints is left alone.

#![allow(clippy::print_stderr)]

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use stitch_simulator::checks::Checks;
use stitch_simulator::device::{DEVICES, Device};
use stitch_simulator::runtime;
use stitch_simulator::runtime::report::{Ending, Report};
use stitch_simulator::runtime::{Config, Executor, Watch, serve};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("simulate: {message}");
            ExitCode::from(2)
        }
    }
}

struct Arguments {
    device: &'static Device,
    report: Option<PathBuf>,
    counters: bool,
    caches: bool,
    checks: Checks,
    sample: Option<f64>,
    seconds: Option<u64>,
    command: Vec<OsString>,
}

fn arguments() -> Result<Arguments, String> {
    let device = Device::named("h200").ok_or("no such device")?;
    let mut parsed = Arguments {
        device,
        report: None,
        counters: true,
        caches: false,
        checks: Checks::All,
        sample: None,
        seconds: None,
        command: Vec::new(),
    };
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{} needs a value", word.to_string_lossy()));
        match word.to_str() {
            Some("--device") => {
                let name = value()?.to_string_lossy().into_owned();
                let known: Vec<&str> = DEVICES.iter().map(|device| device.name).collect();
                parsed.device = Device::named(&name)
                    .ok_or(format!("there is no device {name}, but {}", known.join(", ")))?;
            }
            Some("--report") => parsed.report = Some(value()?.into()),
            Some("--caches") => parsed.caches = true,
            Some("--no-counters") => parsed.counters = false,
            Some("--checks") => parsed.checks = value()?.to_string_lossy().parse()?,
            Some("--sample") => {
                let text = value()?.to_string_lossy().into_owned();
                parsed.sample = Some(text.parse().map_err(|error| format!("--sample {text}: {error}"))?);
            }
            Some("--seconds") => {
                let text = value()?.to_string_lossy().into_owned();
                parsed.seconds = Some(text.parse().map_err(|error| format!("--seconds {text}: {error}"))?);
            }
            Some("--") => parsed.command = words.by_ref().collect(),
            _ => {
                parsed.command = std::iter::once(word).chain(words.by_ref()).collect();
            }
        }
    }
    Ok(parsed)
}

fn run() -> Result<u8, String> {
    let arguments = arguments()?;
    let executor =
        Executor::new(arguments.device, arguments.counters, arguments.sample).checking(arguments.checks);
    let executor = if arguments.caches { executor.modelling(arguments.device) } else { executor };
    let config = Config {
        command: arguments.command,
        folder: None,
        environment: Vec::new(),
        device: arguments.device,
        engine: Box::new(executor),
        cache: std::env::temp_dir().join("stitchcuda-simulate"),
        compiler: std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()),
        time_limit: arguments.seconds.map(Duration::from_secs),
        stdin: Stdio::inherit(),
        stdout: Stdio::inherit(),
        stderr: Stdio::inherit(),
        watch: Watch::default(),
    };
    let report = serve(config, runtime::cancelled_by_signals()).map_err(|error| error.to_string())?;
    write(&report, arguments.report)?;
    Ok(status(&report))
}

fn write(report: &Report, to: Option<PathBuf>) -> Result<(), String> {
    let written = match to {
        Some(path) => std::fs::File::create(path).map_err(|error| error.to_string()).and_then(|file| {
            serde_json::to_writer_pretty(io::BufWriter::new(file), report).map_err(|error| error.to_string())
        }),
        None => serde_json::to_writer_pretty(io::stderr(), report).map_err(|error| error.to_string()),
    };
    written.map_err(|error| format!("can't write the report: {error}"))
}

/// 3 where something was missing; else the program's own.
fn status(report: &Report) -> u8 {
    match report.ending {
        _ if report.lacks() || report.processes == 0 => 3,
        Ending::Exited(code) => u8::try_from(code).unwrap_or(1),
        Ending::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(1),
        Ending::TimeLimit | Ending::Cancelled | Ending::Running => 124,
    }
}
