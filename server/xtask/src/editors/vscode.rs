//! The extension for VS Code: how it is built, packed, and tested in VS Code as code-server has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Surroundings, npm, packages};
use crate::test::step;

/// Where it lies.
pub fn folder(root: &Path) -> PathBuf {
    root.join("editors/vscode")
}

/// Builds it, checked.
///
/// # Errors
/// A step that fails.
pub fn build(root: &Path) -> Result<()> {
    let folder = folder(root);
    packages(&folder)?;
    step(npm(&folder).args(["run", "--silent", "check"]))?;
    step(npm(&folder).args(["run", "--silent", "build"]))
}

/// Packs what was built into `out`: with a server for a platform of VS Code (`linux-x64`), or without one for all.
///
/// # Errors
/// A step that fails, or a file that can't be copied.
pub fn pack(root: &Path, out: &Path, server: Option<(&str, &Path)>) -> Result<PathBuf> {
    let folder = folder(root);
    let bin = folder.join("bin");
    // One of another platform must not get in.
    let _ = fs::remove_dir_all(&bin);
    let mut vsce = Command::new(folder.join("node_modules/.bin/vsce"));
    vsce.current_dir(&folder).args([
        "package",
        "--no-dependencies",
        "--allow-missing-repository",
        "--no-rewrite-relative-links",
        "--out",
    ]);
    let name = match server {
        Some((platform, binary)) => {
            fs::create_dir_all(&bin)?;
            let suffix = if platform.starts_with("win32") { ".exe" } else { "" };
            let inside = bin.join(format!("stitchcuda{suffix}"));
            fs::copy(binary, &inside).with_context(|| format!("copying {}", binary.display()))?;
            format!("stitchcuda-{platform}.vsix")
        }
        None => "stitchcuda.vsix".to_owned(),
    };
    fs::create_dir_all(out)?;
    let package = out.join(name);
    vsce.arg(&package);
    if let Some((platform, _)) = server {
        vsce.args(["--target", platform]);
    }
    let packed = step(&mut vsce);
    let _ = fs::remove_dir_all(&bin);
    packed.map(|()| package)
}

/// What VS Code calls the platform of this machine.
///
/// # Errors
/// It has no name for it.
pub fn platform() -> Result<String> {
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "windows" => "win32",
        "macos" => "darwin",
        other => anyhow::bail!("VS Code has no packages for {other}"),
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => anyhow::bail!("VS Code has no packages for {other}"),
    };
    Ok(format!("{system}-{processor}"))
}

/// Runs its tests: those of single parts, then the scenarios in the editor, with the packages without a server and with one. It was built.
///
/// # Errors
/// A step that fails.
pub fn test(surroundings: &Surroundings, tools: &Path, [package, bundle]: [&Path; 2]) -> Result<()> {
    let folder = folder(&surroundings.root);
    step(npm(&folder).args(["run", "--silent", "lint"]))?;
    step(npm(&folder).args(["run", "--silent", "build-tests"]))?;
    let node = tools.join("bin/node");
    step(Command::new(&node).current_dir(&folder).args(["--test", "out/*.test.js"]))?;
    let out = surroundings.target.join("test-vscode");
    let mut run = Command::new(&node);
    run.current_dir(&folder).arg("test/run.mjs");
    for (name, path) in [
        ("--tools", tools),
        ("--out", &out),
        ("--server", &surroundings.server),
        ("--toolkit", &surroundings.toolkit),
        ("--endpoint", &surroundings.endpoint),
        ("--vsix", package),
        ("--bundle", bundle),
    ] {
        run.arg(name).arg(path);
    }
    step(&mut run)
}
