//! `cargo xtask install`: builds from this checkout, and installs for the person who works here.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::editors::vscode;
use crate::test::{cargo, step, target_directory, workspace_root};

/// What is installed.
#[derive(clap::Args)]
pub struct Arguments {
    /// The extension, with the server inside, into VS Code
    #[arg(long)]
    vscode: bool,
    /// The plugin, as a link to this checkout, and the server into cargo's folder of programs
    #[arg(long)]
    nvim: bool,
    /// The program of the VS Code that is meant; else the first of `code`, `code-insiders`, `codium`, `cursor`, `code-server` in PATH
    #[arg(long, value_name = "PROGRAM")]
    editor: Option<OsString>,
    /// Build without optimisation: sooner there, and slower
    #[arg(long)]
    debug: bool,
}

/// Programs that take `--install-extension`.
const EDITORS: [&str; 5] = ["code", "code-insiders", "codium", "cursor", "code-server"];

/// Installs what is asked for.
///
/// # Errors
/// Nothing is asked for; a step that fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.vscode && !arguments.nvim {
        bail!("say what to install: --vscode, --nvim, or both");
    }
    let root = workspace_root();
    if arguments.vscode {
        install_vscode(&root, arguments)?;
    }
    if arguments.nvim {
        step(cargo(&root).args(["install", "--locked", "--path", "server/cli"]))?;
        let place = link_nvim(&root.join("editors/neovim"), &packages_of_nvim()?)?;
        eprintln!("Neovim loads {}; `:checkhealth stitchcuda` tells whether all is well.", place.display());
    }
    Ok(())
}

/// The server, built for use; its path.
///
/// # Errors
/// It can't be built.
pub fn server(root: &Path, target: &Path) -> Result<PathBuf> {
    step(cargo(root).args(["build", "--release", "--locked", "--package", "stitchcuda"]))?;
    Ok(target.join("release").join(format!("stitchcuda{EXE_SUFFIX}")))
}

fn install_vscode(root: &Path, arguments: &Arguments) -> Result<()> {
    // Before anything is built, which takes minutes.
    let editor = editor(arguments.editor.clone())?;
    let target = target_directory(root)?;
    let binary = if arguments.debug {
        step(cargo(root).args(["build", "--locked", "--package", "stitchcuda"]))?;
        target.join("debug").join(format!("stitchcuda{EXE_SUFFIX}"))
    } else {
        server(root, &target)?
    };
    vscode::build(root)?;
    let package = vscode::pack(root, &target.join("packages"), Some((&vscode::platform()?, &binary)))?;
    step(Command::new(editor).arg("--install-extension").arg(package).arg("--force"))
}

fn editor(named: Option<OsString>) -> Result<OsString> {
    if let Some(named) = named {
        return Ok(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| {
        let names = [name.to_owned(), format!("{name}.cmd")];
        std::env::split_paths(&path).any(|folder| names.iter().any(|name| folder.join(name).is_file()))
    };
    let found = EDITORS.into_iter().find(|name| is_there(name));
    found.map(OsString::from).with_context(|| {
        format!("none of {} is in PATH; name the program of your VS Code with --editor", EDITORS.join(", "))
    })
}

/// Where Neovim looks for packages that are loaded at its start (`:help packages`).
fn packages_of_nvim() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = match (set("XDG_DATA_HOME"), set("LOCALAPPDATA"), set("HOME")) {
        (Some(data), ..) => data.join("nvim"),
        (None, Some(data), _) if cfg!(windows) => data.join("nvim-data"),
        (None, _, Some(home)) => home.join(".local/share/nvim"),
        _ => bail!("there is no home folder; set XDG_DATA_HOME"),
    };
    Ok(data.join("site/pack/stitchcuda/start"))
}

/// Links the plugin into Neovim's folder of packages; what lies there of an older
/// installation is replaced, a person's own folder is not.
fn link_nvim(plugin: &Path, packages: &Path) -> Result<PathBuf> {
    if !plugin.is_dir() {
        bail!("{} is not there", plugin.display());
    }
    fs::create_dir_all(packages).with_context(|| format!("making {}", packages.display()))?;
    let place = packages.join("stitchcuda");
    match fs::symlink_metadata(&place) {
        Ok(found) if found.is_symlink() => fs::remove_file(&place)?,
        Ok(_) => bail!("{} is there already, and is no link; remove it first", place.display()),
        Err(_) => {}
    }
    link(plugin, &place).with_context(|| format!("linking {}", place.display()))?;
    Ok(place)
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(windows)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::windows::fs::symlink_dir(from, to)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_linked_and_a_persons_own_folder_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (plugin, packages) = (folder.path().join("plugin"), folder.path().join("data/start"));
        assert!(link_nvim(&plugin, &packages).unwrap_err().to_string().contains("is not there"));
        fs::create_dir_all(plugin.join("lua")).unwrap();
        for _ in 0..2 {
            let place = link_nvim(&plugin, &packages).unwrap();
            assert!(place.join("lua").is_dir());
        }
        fs::remove_file(packages.join("stitchcuda")).unwrap();
        fs::create_dir(packages.join("stitchcuda")).unwrap();
        assert!(link_nvim(&plugin, &packages).unwrap_err().to_string().contains("no link"));
    }
}
