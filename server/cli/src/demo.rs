//! `stitchcuda demo`: checks a small program that the binary carries, so that a newcomer sees in one command what
//! StitchCUDA says.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::check;
use crate::format::Format;
use crate::status::Status;

/// A program that is right and slower than it need be.
const TOUR: &str = include_str!("demo/tour.cu");

/// What it is called.
const NAME: &str = "tour.cu";

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write the program to tour.cu in the current folder, and check it there
    #[arg(long)]
    write: bool,
}

/// Checks the program: where the person wants to have it, or else in a temporary folder.
///
/// # Errors
/// The folder can't be written, or standard output.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    if arguments.write {
        return kept(arguments.format, out);
    }
    let folder = tempfile::tempdir()
        .context("the demo needs a temporary folder; set TMPDIR to one that can be written")?;
    let path = folder.path().join(NAME);
    std::fs::write(&path, TOUR).with_context(|| format!("{} could not be written", path.display()))?;
    let mut printed = Vec::new();
    let status = check::run(&check::Arguments::for_demo(path.clone(), arguments.format), &mut printed)?;
    // Where it was for a moment is of no use to anyone.
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let mut text = String::from_utf8_lossy(&printed).into_owned();
    for place in [&real, &path] {
        text = text.replace(&place.display().to_string(), NAME);
    }
    out.write_all(text.as_bytes())?;
    if arguments.format == Format::Human {
        out.flush()?;
        anstream::eprintln!("note: `stitchcuda demo --write` writes {NAME} here, to be read and changed.");
    }
    Ok(without_compiler(status))
}

fn kept(format: Format, out: &mut impl Write) -> Result<Status> {
    let path = Path::new(NAME);
    match File::create_new(path) {
        Ok(mut file) => {
            file.write_all(TOUR.as_bytes()).with_context(|| format!("{NAME} could not be written"))?
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if std::fs::read(path).ok().as_deref() != Some(TOUR.as_bytes()) {
                anstream::eprintln!(
                    "error: there is a {NAME} here already, and it is another. Move it away, or go to another folder."
                );
                return Ok(Status::Usage);
            }
        }
        Err(error) => return Err(error).with_context(|| format!("{NAME} could not be written here")),
    }
    check::run(&check::Arguments::for_demo(path.to_owned(), format), out).map(without_compiler)
}

/// Without a compiler the demo shows less, and says so; nothing that was asked for is missing.
fn without_compiler(status: Status) -> Status {
    if status == Status::Missing { Status::Good } else { status }
}
