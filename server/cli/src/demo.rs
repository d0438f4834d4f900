//! `stitchcuda demo`: checks a small program that the binary carries, so that a newcomer sees in one command what
//! StitchCUDA says.

use std::io::Write;

use anyhow::{Context, Result};

use crate::check;
use crate::format::Format;
use crate::status::Status;

/// A program that is right and slower than it need be.
const TOUR: &str = include_str!("demo/tour.cu");

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Writes the program to a temporary folder and checks it there.
///
/// # Errors
/// The temporary folder can't be written, or standard output.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let folder = tempfile::tempdir()
        .context("the demo needs a temporary folder; set TMPDIR to one that can be written")?;
    let path = folder.path().join("tour.cu");
    std::fs::write(&path, TOUR).with_context(|| format!("{} could not be written", path.display()))?;
    let status = check::run(&check::Arguments::for_demo(path, arguments.format), out)?;
    // Without a compiler the demo shows less, and says so; nothing that was asked for is missing.
    Ok(if status == Status::Missing { Status::Good } else { status })
}
