//! `cargo xtask install`: builds from this checkout, and installs for the person who works here.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
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
        install_vscode(&editor(arguments.editor.clone())?, || package(&root, arguments.debug))?;
    }
    if arguments.nvim {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let build = || step(cargo(&root).args(["install", "--locked", "--path", "server/cli"]));
        let place = install_nvim(&root.join("editors/neovim"), &packages_of_nvim(variable)?, build)?;
        eprintln!("Neovim loads {}; `:checkhealth stitchcuda` tells whether all is well.", place.display());
    }
    Ok(())
}

/// Links the plugin into a folder of packages, with the server that is built for it: its place there.
fn install_nvim(plugin: &Path, packages: &Path, build: impl FnOnce() -> Result<()>) -> Result<PathBuf> {
    // Before anything is built, which takes minutes.
    let place = place_of_nvim(plugin, packages)?;
    build()?;
    link_nvim(plugin, &place)?;
    Ok(place)
}

/// The server, built for use; its path.
///
/// # Errors
/// It can't be built.
pub fn server(root: &Path, target: &Path) -> Result<PathBuf> {
    step(cargo(root).args(["build", "--release", "--locked", "--package", "stitchcuda"]))?;
    Ok(target.join("release").join(format!("stitchcuda{EXE_SUFFIX}")))
}

/// Has an editor install the package that is made for it.
fn install_vscode(editor: &OsStr, package: impl FnOnce() -> Result<PathBuf>) -> Result<()> {
    // Before anything is built, which takes minutes.
    let name = editor.display();
    let asked = Command::new(editor).arg("--version").output();
    let asked = asked.with_context(|| format!("`{name}` can't be run; name your VS Code with --editor"))?;
    if !asked.status.success() {
        bail!("`{name} --version` ends with {}; name your VS Code with --editor", asked.status);
    }
    step(Command::new(editor).arg("--install-extension").arg(package()?).arg("--force"))
}

/// Makes the package with the server inside: its path.
fn package(root: &Path, is_debug: bool) -> Result<PathBuf> {
    let target = target_directory(root)?;
    let binary = if is_debug {
        step(cargo(root).args(["build", "--locked", "--package", "stitchcuda"]))?;
        target.join("debug").join(format!("stitchcuda{EXE_SUFFIX}"))
    } else {
        server(root, &target)?
    };
    vscode::build(root)?;
    vscode::pack(root, &target.join("packages"), Some((&vscode::platform()?, &binary)))
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

/// Where Neovim looks for packages that are loaded at its start (`:help packages`): under the name that `NVIM_APPNAME` gives it.
fn packages_of_nvim(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from);
    let name = variable("NVIM_APPNAME").unwrap_or_else(|| "nvim".into());
    let data = match (folder("XDG_DATA_HOME"), folder("LOCALAPPDATA"), folder("HOME")) {
        (Some(data), ..) => data.join(name),
        (None, Some(data), _) if cfg!(windows) => {
            let mut name = name;
            name.push("-data");
            data.join(name)
        }
        (None, _, Some(home)) => home.join(".local/share").join(name),
        _ => bail!("there is no home folder; set XDG_DATA_HOME"),
    };
    Ok(data.join("site/pack/stitchcuda/start"))
}

/// The plugin's place in a folder of packages. A person's own folder may be there, and is left alone.
fn place_of_nvim(plugin: &Path, packages: &Path) -> Result<PathBuf> {
    if !plugin.is_dir() {
        bail!("{} is not there", plugin.display());
    }
    let place = packages.join("stitchcuda");
    match fs::symlink_metadata(&place) {
        Ok(found) if !found.is_symlink() => {
            bail!("{} is there already, and is no link; remove it first", place.display())
        }
        _ => Ok(place),
    }
}

/// Links the plugin there, in the place of an older link.
fn link_nvim(plugin: &Path, place: &Path) -> Result<()> {
    let packages = place.parent().context("the plugin's place is in no folder")?;
    fs::create_dir_all(packages).with_context(|| format!("making {}", packages.display()))?;
    if fs::symlink_metadata(place).is_ok() {
        fs::remove_file(place).with_context(|| format!("removing {}", place.display()))?;
    }
    link(plugin, place).with_context(|| format!("linking {}", place.display()))
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
        let refused = || install_nvim(&plugin, &packages, || bail!("it was built")).unwrap_err().to_string();
        assert!(refused().contains("is not there"));
        fs::create_dir_all(plugin.join("lua")).unwrap();
        for _ in 0..2 {
            let place = install_nvim(&plugin, &packages, || Ok(())).unwrap();
            assert!(place.join("lua").is_dir());
        }
        // What can't be built is not linked, and what can't be linked is not built.
        assert_eq!(refused(), "it was built");
        fs::remove_file(packages.join("stitchcuda")).unwrap();
        fs::create_dir(packages.join("stitchcuda")).unwrap();
        assert!(refused().contains("no link"));
    }

    #[test]
    fn a_package_is_given_to_an_editor_that_runs() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let (editor, told) = (folder.path().join("editor"), folder.path().join("told"));
        let refused =
            || install_vscode(editor.as_os_str(), || bail!("it was built")).unwrap_err().to_string();
        assert!(refused().contains("can't be run; name your VS Code with --editor"));
        let write = |line: &str| {
            fs::write(&editor, format!("#!/bin/sh\n{line}\n")).unwrap();
            fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("exit 3");
        assert!(refused().contains("--version` ends with exit status: 3"));
        write(&format!("echo \"$@\" >> '{}'", told.display()));
        assert_eq!(refused(), "it was built");
        install_vscode(editor.as_os_str(), || Ok(PathBuf::from("of/this.vsix"))).unwrap();
        let told = fs::read_to_string(told).unwrap();
        assert_eq!(told.lines().last(), Some("--install-extension of/this.vsix --force"));
    }

    #[test]
    fn the_plugin_goes_where_the_persons_neovim_looks() {
        let of = |variables: &[(&str, &str)]| {
            let variable = |name: &str| variables.iter().find(|(known, _)| *known == name);
            packages_of_nvim(|name| variable(name).map(|(_, value)| value.into()))
        };
        let rows: [(&[(&str, &str)], &str); 3] = [
            (&[("HOME", "/me")], "/me/.local/share/nvim"),
            (&[("HOME", "/me"), ("XDG_DATA_HOME", "/data")], "/data/nvim"),
            (&[("HOME", "/me"), ("NVIM_APPNAME", "lazy")], "/me/.local/share/lazy"),
        ];
        for (variables, expected) in rows {
            assert_eq!(of(variables).unwrap(), Path::new(expected).join("site/pack/stitchcuda/start"));
        }
        assert!(of(&[]).unwrap_err().to_string().contains("XDG_DATA_HOME"));
    }
}
