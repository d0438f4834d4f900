//! Editors: the tools their tests need, and what each plugin is built, tested, packed and installed with.

mod installed;
pub mod neovim;
pub mod tools;
pub mod vscode;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::test::step;

/// The variable that makes an editor that can't be had here an error, as on the machines of CI.
pub const REQUIRED: &str = "STITCHCUDA_TEST_REQUIRE_EDITORS";

/// What the tests in editors are given.
pub struct Surroundings {
    /// The root of the workspace.
    pub root: PathBuf,
    /// Where cargo builds to. Tools and pictures go below it.
    pub target: PathBuf,
    /// The server.
    pub server: PathBuf,
    /// A CUDA toolkit.
    pub toolkit: PathBuf,
    /// The scripted endpoint.
    pub endpoint: PathBuf,
}

/// Whether an editor that can't be had, or what its tests and lints need, is an error here.
pub fn are_required() -> bool {
    std::env::var_os(REQUIRED).is_some()
}

/// Runs the tests of all plugins in their editors.
///
/// # Errors
/// A test failed; or, where editors are required, one can't be had.
pub fn test(surroundings: &Surroundings) -> Result<()> {
    let has_neovim = cfg!(target_os = "linux");
    if has_neovim {
        installed::test_neovim(surroundings)?;
    }
    match tools::vscode(&surroundings.target) {
        Ok(tools) => {
            let packages = installed::packages(surroundings)?;
            installed::test_neovim_package(surroundings, &packages.neovim)?;
            installed::test_vscode(&tools)?;
            vscode::test(surroundings, &tools, [&packages.without_server, &packages.with_server])
        }
        Err(error) if are_required() => Err(error),
        Err(error) => {
            eprintln!("SKIPPED: the tests in VS Code: {error:#}");
            if !has_neovim {
                return Ok(());
            }
            let Surroundings { root, target, server, .. } = surroundings;
            let archive = neovim::pack(root, &target.join("test-packages"), &vscode::platform()?, server)?;
            installed::test_neovim_package(surroundings, &archive)
        }
    }
}

/// npm in a folder.
pub fn npm(folder: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(folder);
    command
}

/// The packages that a plugin is built with, as its lock file names them. Once for each state of that file.
///
/// # Errors
/// npm can't be started, or fails.
pub fn packages(folder: &Path) -> Result<()> {
    let lock = std::fs::read(folder.join("package-lock.json"))?;
    let stamp = folder.join("node_modules/.stitchcuda-lock");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    step(npm(folder).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))?;
    std::fs::write(stamp, lock)?;
    Ok(())
}
