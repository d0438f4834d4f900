//! What is given away, and what a checkout installs: made by the commands that the READMEs name, as a person runs them, and used in the
//! editors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Surroundings, neovim, vscode};
use crate::test::step;

/// What `cargo xtask package` makes.
pub struct Packages {
    /// The extension for VS Code with the server inside.
    pub with_server: PathBuf,
    /// The same without one.
    pub without_server: PathBuf,
    /// The plugin for Neovim with the server inside.
    pub neovim: PathBuf,
}

/// Makes the packages of this machine's platform, of the server that is tested.
///
/// # Errors
/// A step that fails, or a package that is not there in the end.
pub fn packages(surroundings: &Surroundings) -> Result<Packages> {
    let out = surroundings.target.join("test-packages");
    let _ = fs::remove_dir_all(&out);
    let platform = vscode::platform()?;
    let mut package = xtask()?;
    package.args(["package", "--platform", &platform, "--binary"]).arg(&surroundings.server);
    step(package.arg("--out").arg(&out))?;
    let made = Packages {
        with_server: out.join(format!("stitchcuda-{platform}.vsix")),
        without_server: out.join("stitchcuda.vsix"),
        neovim: out.join(format!("stitchcuda-nvim-{platform}.tar.gz")),
    };
    for package in [&made.with_server, &made.without_server, &made.neovim] {
        ensure!(package.is_file(), "`cargo xtask package` made no {}", package.display());
    }
    Ok(made)
}

/// This program, as `cargo xtask` starts it.
fn xtask() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("finding this program")?))
}

/// `cargo xtask install --vscode`, into a VS Code with folders of its own: the server that it has then runs.
///
/// # Errors
/// A step that fails.
pub fn test_vscode(tools: &Path) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder")?;
    let (editor, extensions) = (folder.path().join("editor"), folder.path().join("extensions"));
    let flags = format!(
        "--accept-server-license-terms --server-data-dir '{}' --extensions-dir '{}'",
        folder.path().join("data").display(),
        extensions.display()
    );
    let program = tools.join("bin/vscode-server");
    write_program(&editor, &format!("exec '{}' \"$@\" {flags}", program.display()))?;
    step(xtask()?.args(["install", "--vscode", "--debug", "--editor"]).arg(&editor))?;
    let entries = fs::read_dir(&extensions).with_context(|| format!("reading {}", extensions.display()))?;
    let is_ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("stitchcuda.stitchcuda-"))
    };
    let installed = entries.flatten().map(|entry| entry.path()).find(is_ours);
    let installed = installed.with_context(|| format!("no extension of ours in {}", extensions.display()))?;
    step(Command::new(installed.join("bin/stitchcuda")).arg("--version"))
}

/// `cargo xtask install --nvim`, for a person with a home of their own; the plugin then runs the program that cargo installed. That takes
/// minutes to be built as it is given away, so cargo here has it at hand: the one that is tested.
///
/// # Errors
/// A step that fails.
pub fn test_neovim(surroundings: &Surroundings) -> Result<()> {
    let home = neovim::Home::new()?;
    let (cargo, programs) = (home.place("cargo"), home.place("data/cargo/bin"));
    let server = surroundings.server.display();
    let expected = "install --locked --path server/cli";
    write_program(
        &cargo,
        &format!("[ \"$*\" = '{expected}' ] && mkdir -p '{0}' && cp '{server}' '{0}'", programs.display()),
    )?;
    step(xtask()?.args(["install", "--nvim"]).env("CARGO", &cargo).env("XDG_DATA_HOME", home.place("data")))?;
    neovim::test_at_home(surroundings, &home, &programs)
}

/// What is unpacked where a person would, with nothing else of ours in reach.
///
/// # Errors
/// A step that fails.
pub fn test_neovim_package(surroundings: &Surroundings, archive: &Path) -> Result<()> {
    let home = neovim::Home::new()?;
    let packages = home.place("data/nvim/site/pack/stitchcuda/start");
    fs::create_dir_all(&packages).with_context(|| format!("making {}", packages.display()))?;
    step(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&packages))?;
    neovim::test_at_home(surroundings, &home, Path::new("/usr/bin"))
}

/// A program of one line for a shell.
fn write_program(path: &Path, line: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{line}\n")).with_context(|| format!("writing {}", path.display()))?;
    neovim::make_executable(path)
}
