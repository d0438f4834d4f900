//! What an editor feels: how soon the server is there, what it takes in memory, and how long after a keystroke the findings that
//! know of it are on the wire.
//!
//! The file has 5,000 lines and is made here, so that the figures need no download; `--file` takes another. Text is typed
//! character by character, with hovers and inlay hints asked for in between, as an editor does. `--compare` runs the same
//! against clangd, which gets a header of a few lines in place of CUDA's, in its favour.

mod client;
mod figures;
mod source;
mod typing;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use client::Client;
use figures::Figures;
use typing::Typed;

/// Starts measured.
const STARTS: usize = 20;
/// How long nothing is done before memory is read.
const REST: Duration = Duration::from_secs(3);

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The file to type in, instead of one that is made.
    #[arg(long)]
    file: Option<PathBuf>,
    /// The server; by default the release build, which is made first.
    #[arg(long)]
    server: Option<PathBuf>,
    /// A clangd to measure in the same way.
    #[arg(long)]
    compare: Option<PathBuf>,
    /// Between two keystrokes, in milliseconds; 60 is a fast typist.
    #[arg(long, default_value_t = 60)]
    keystroke: u64,
    /// Lists so many of the slowest keystrokes.
    #[arg(long, default_value_t = 0)]
    slowest: usize,
}

/// Measures, and prints a table.
///
/// # Errors
/// A server that does not start or does not answer.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for the file to type in")?;
    let text = match &arguments.file {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?,
        None => source::generate(5_000),
    };
    source::write_project(folder.path(), &text)?;
    let server = match &arguments.server {
        Some(server) => server.clone(),
        None => release_build()?,
    };
    let pause = Duration::from_millis(arguments.keystroke).max(Duration::from_millis(1));
    let mut columns = vec![(
        "stitchcuda".to_owned(),
        measure(&[server.as_os_str(), "lsp".as_ref()], folder.path(), &text, pause)?,
    )];
    if let Some(clangd) = &arguments.compare {
        let name = clangd.file_name().unwrap_or(clangd.as_os_str()).to_string_lossy().into_owned();
        columns.push((name, measure(&[clangd.as_os_str()], folder.path(), &text, pause)?));
    }
    figures::print(text.lines().count(), pause, &columns);
    if arguments.slowest > 0 {
        columns.iter().for_each(|column| figures::print_slowest(arguments.slowest, column));
    }
    Ok(())
}

/// Builds the server as it ships.
fn release_build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo).args(["build", "--release", "-p", "stitchcuda"]).status();
    ensure!(status.context("running cargo")?.success(), "the release build failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(target.join("release").join(format!("stitchcuda{}", std::env::consts::EXE_SUFFIX)))
}

fn measure(command: &[&std::ffi::OsStr], folder: &Path, text: &str, pause: Duration) -> Result<Figures> {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        let mut client = Client::start(command, folder)?;
        client.initialize(folder)?;
        starts.push(begin.elapsed());
        client.end();
    }
    let mut client = Client::start(command, folder)?;
    client.initialize(folder)?;
    let uri = source::uri(folder);
    let document = json!({"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text});
    client.notify("textDocument/didOpen", &json!({"textDocument": document}))?;
    client.diagnostics(1, Duration::from_secs(120)).context("waiting for the first findings")?;
    std::thread::sleep(REST);
    let memory_open = client.memory();
    let typed = Typed::type_into(&mut client, &uri, text, pause)?;
    std::thread::sleep(REST);
    let memory_typed = client.memory();
    client.end();
    Ok(Figures { starts, memory_open, memory_typed, typed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_made_file_has_the_lines_and_places_to_type() {
        let text = source::generate(5_000);
        assert!((5_000..5_200).contains(&text.lines().count()), "{}", text.lines().count());
        assert!(typing::places(&text).len() >= 3);
        assert!(typing::characters() >= 600);
    }
}
