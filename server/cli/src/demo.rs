//! `stitchcuda demo`: the main job on three programs that the binary carries, with what is there.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use stitch_toolchain::discovery;
use stitch_verifier::program::{self, RunDevice};

use crate::format::Format;
use crate::settings::Surrounding;
use crate::status::Status;
use crate::{check, optimize, toolchain};

/// A program that is right and slower than it need be.
struct Example {
    name: &'static str,
    text: &'static str,
    /// What says how much data it has.
    size: &'static str,
    /// A hundred times as much: a GPU is done with the other before its next launch begins, so that nothing faster could be seen there.
    size_for_a_gpu: &'static str,
}

/// Seconds after which no further attempt at a program begins: a demonstration is watched. `stitchcuda runs resume` goes on with what is left.
const SECONDS: u64 = 70;

const EXAMPLES: [Example; 3] = [
    Example {
        name: "transpose.cu",
        text: include_str!("../../../tests/examples/transpose.cu"),
        size: "height = 300;",
        size_for_a_gpu: "height = 30000;",
    },
    Example {
        name: "reduction.cu",
        text: include_str!("../../../tests/examples/reduction.cu"),
        size: "n = 100000,",
        size_for_a_gpu: "n = 10000000,",
    },
    Example {
        name: "chain.cu",
        text: include_str!("../../../tests/examples/chain.cu"),
        size: "n = 50000,",
        size_for_a_gpu: "n = 5000000,",
    },
];

impl Example {
    fn text(&self, is_for_a_gpu: bool) -> String {
        if is_for_a_gpu { self.text.replace(self.size, self.size_for_a_gpu) } else { self.text.to_owned() }
    }
}

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How to print; json prints one event a line
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write the programs to the current folder, to be read and changed, and optimise them there
    #[arg(long)]
    write: bool,
}

/// Optimises the programs: where the person wants to have them, or else in a temporary folder.
///
/// # Errors
/// The folder can't be written, or standard output.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let temporary;
    if !arguments.write {
        temporary = tempfile::tempdir()
            .context("the demo needs a temporary folder; set TMPDIR to one that can be written")?;
        // The names that are shown are those that a person would type.
        std::env::set_current_dir(temporary.path()).context("the temporary folder can't be entered")?;
    }
    let mut paths = Vec::new();
    let is_for_a_gpu = runs_on_a_gpu()?;
    for example in EXAMPLES {
        let (name, path) = (example.name, PathBuf::from(example.name));
        if !write(&path, &example.text(is_for_a_gpu))? {
            anstream::eprintln!(
                "error: there is a {name} here already, and it is another. Move it away, or go to another folder."
            );
            return Ok(Status::Usage);
        }
        paths.push(path);
    }
    let status = install(arguments.format, out)?;
    if status != Status::Good {
        return without_compiler(&paths, arguments.format, status, out);
    }
    let mut status = Status::Good;
    for path in &paths {
        if arguments.format == Format::Human {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            writeln!(out, "\n== {name} {}\n", "=".repeat(100usize.saturating_sub(name.len())))?;
        }
        let ended = optimize::run(&optimize::Arguments::of_demo(path, arguments.format, SECONDS), out)?;
        status = status.worse(ended);
        if ended == Status::Interrupted {
            break;
        }
    }
    out.flush()?;
    if !arguments.write {
        anstream::eprintln!(
            "note: `stitchcuda demo --write` writes the programs here, to be read and changed."
        );
    }
    Ok(status)
}

/// Whether the programs will run on a GPU. What is wrong with the device is said later, when one is needed.
fn runs_on_a_gpu() -> Result<bool> {
    let device = Surrounding::read(Vec::new())?.config_for(None).device.clone();
    let runtime = tokio::runtime::Runtime::new().context("no threads to look with")?;
    Ok(matches!(runtime.block_on(program::choose(&device)), Ok(RunDevice::Cuda { .. })))
}

/// Writes an example, unless it is there. Whether what is there is the example.
fn write(path: &Path, text: &str) -> Result<bool> {
    match File::create_new(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())
                .with_context(|| format!("{} could not be written", path.display()))?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(std::fs::read(path).ok().as_deref() == Some(text.as_bytes()))
        }
        Err(error) => Err(error).with_context(|| format!("{} could not be written", path.display())),
    }
}

/// Installs a private toolkit if there is none.
fn install(format: Format, out: &mut impl Write) -> Result<Status> {
    let surrounding = Surrounding::read(Vec::new())?;
    let search = surrounding.search(&surrounding.config_for(None));
    if discovery::find(&search).chosen.is_some() {
        return Ok(Status::Good);
    }
    anstream::eprintln!(
        "note: No CUDA toolkit was found, so a private one is installed (about 300 MB to download; `stitchcuda toolchain remove latest` takes it away again)."
    );
    let arguments = toolchain::Arguments::install_latest(format);
    match format {
        Format::Human => toolchain::run(&arguments, out),
        // Its result is no event of the demo.
        Format::Json => toolchain::run(&arguments, &mut std::io::sink()),
    }
}

/// What can be said without a compiler: the static rules' findings.
fn without_compiler(
    paths: &[PathBuf],
    format: Format,
    status: Status,
    out: &mut impl Write,
) -> Result<Status> {
    if status == Status::Interrupted {
        return Ok(status);
    }
    anstream::eprintln!(
        "note: Without a compiler nothing can be optimised; this is what the static rules say."
    );
    let found = check::run(&check::Arguments::for_demo(paths.to_vec(), format), out)?;
    Ok(status.worse(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_gets_a_hundred_times_as_much_data() {
        let number = |size: &str| -> u64 {
            size.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
        };
        for example in EXAMPLES {
            assert_eq!(number(example.size_for_a_gpu), 100 * number(example.size), "{}", example.name);
            assert_eq!(example.text.matches(example.size).count(), 1, "{}", example.name);
            assert!(example.text(true).contains(example.size_for_a_gpu), "{}", example.name);
            assert_eq!(example.text(false), example.text);
        }
    }
}
