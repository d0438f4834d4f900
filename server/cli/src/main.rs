//! The binary `stitchcuda`: one file a subcommand.
//!
//! Results go to standard output; everything else (notes, progress, errors) to standard error. See [`status::Status`]
//! for what the exit status means.

mod check;
mod demo;
mod doctor;
mod elsewhere;
mod explain;
mod format;
mod interrupt;
mod lsp;
mod optimize;
mod profile;
mod progress;
mod runs;
mod sandbox_exec;
mod settings;
mod setup;
mod simulate;
mod status;
mod toolchain;
mod verify;
mod worker;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::status::Status;

/// Shows what compilers know about GPU code, and what makes it slow, at the line.
#[derive(Debug, Parser)]
#[command(name = "stitchcuda", version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check CUDA and PyTorch files: static rules, compiler errors and warnings, registers, spills, occupancy
    Check(check::Arguments),
    /// Optimize three programs that StitchCUDA carries, with what is there
    Demo(demo::Arguments),
    /// Say what was found on this machine, what is missing, and how to get it
    Doctor(doctor::Arguments),
    /// Explain a finding's code
    Explain(explain::Arguments),
    /// Speak the Language Server Protocol on the standard streams
    Lsp(lsp::Arguments),
    /// Make a kernel or a program faster: plan, attempt, verify, measure, and show the best as a diff
    Optimize(optimize::Arguments),
    /// Run a CUDA program on the simulator and say what its kernels do
    Profile(profile::Arguments),
    /// Show, compare, resume or remove the runs of `optimize`
    Runs(runs::Arguments),
    /// The sandbox's own processes; for developers, runs any command in the sandbox
    #[command(hide = true)]
    SandboxExec(sandbox_exec::Arguments),
    /// The simulator's own process: takes an order on its standard input
    #[command(hide = true)]
    Simulate,
    /// Show, install or remove CUDA toolkits
    Toolchain(toolchain::Arguments),
    /// Decide whether a candidate does what its reference does
    Verify(verify::Arguments),
    /// Be the device of another machine's StitchCUDA, which starts this through ssh, srun or docker exec
    Worker,
}

fn main() -> ExitCode {
    let status = match Arguments::parse().command {
        // The server owns the standard streams.
        Command::Lsp(arguments) => lsp::run(&arguments),
        // The program that it runs owns standard output.
        Command::Simulate => simulate::run(),
        // Its protocol owns the standard streams.
        Command::Worker => worker::run(),
        // So does the one that it becomes.
        Command::SandboxExec(arguments) => sandbox_exec::run(arguments),
        Command::Check(arguments) => print_with(|out| check::run(&arguments, out)),
        Command::Demo(arguments) => print_with(|out| demo::run(&arguments, out)),
        Command::Doctor(arguments) => print_with(|out| doctor::run(&arguments, out)),
        Command::Explain(arguments) => print_with(|out| explain::run(&arguments, out)),
        Command::Optimize(arguments) => print_with(|out| optimize::run(&arguments, out)),
        Command::Profile(arguments) => print_with(|out| profile::run(&arguments, out)),
        Command::Runs(arguments) => print_with(|out| runs::run(&arguments, out)),
        Command::Toolchain(arguments) => print_with(|out| toolchain::run(&arguments, out)),
        Command::Verify(arguments) => print_with(|out| verify::run(&arguments, out)),
    };
    // The next command would, but there may be none.
    stitch_toolchain::process::leave();
    status
}

/// Standard output through one buffer, without colours where none belong.
type Output = BufWriter<anstream::AutoStream<io::StdoutLock<'static>>>;

/// Runs a command that prints its result.
fn print_with(command: impl FnOnce(&mut Output) -> anyhow::Result<Status>) -> ExitCode {
    log_to_stderr();
    let mut out = BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
    let result = command(&mut out).and_then(|status| {
        out.flush()?;
        Ok(status)
    });
    let status = result.unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            return Status::ReaderGone;
        }
        // Every other trouble with files says what it was about.
        let is_output = error.chain().next().is_some_and(|cause| io_kind(cause).is_some());
        let what = if is_output { "the result can't be written to standard output: " } else { "" };
        anstream::eprintln!("error: {what}{error:#}");
        Status::Usage
    });
    if status == Status::ReaderGone {
        // Nothing more can be printed, and the buffer must not try when it is dropped.
        std::mem::forget(out);
    }
    status.into()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| io_kind(cause) == Some(io::ErrorKind::BrokenPipe))
}

fn io_kind(cause: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    io.or_else(|| cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind))
}

/// Warnings of our own parts, for a person; `RUST_LOG` shows more.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .init();
}
