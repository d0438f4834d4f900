//! `cargo xtask install`: builds what people use from this checkout, and puts it where an editor of this machine finds it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::neovim;
use crate::test::{cargo, step, target_directory, workspace_root};

/// For whom.
#[derive(clap::Args)]
pub struct Arguments {
    /// For Neovim: the plugin, with the program beside it, among its packages
    #[arg(long)]
    nvim: bool,
}

/// Builds and installs.
///
/// # Errors
/// No editor is named, the program can't be built, or something can't be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.nvim {
        bail!("say for which editor: `--nvim`");
    }
    let root = workspace_root();
    let program = release_program(&root)?;
    let place = neovim::install_plugin(&root, &program)?;
    println!("The plugin is in {}.", place.display());
    println!("Put this into your init.lua: vim.lsp.enable('stitchcuda')");
    Ok(())
}

/// Builds the program as it is shipped, and gives its path.
///
/// # Errors
/// It can't be built.
pub fn release_program(root: &Path) -> Result<PathBuf> {
    step(cargo(root).args(["build", "--release", "--package", "stitchcuda"]))?;
    let target = target_directory(root)?;
    Ok(target.join("release").join(format!("stitchcuda{}", std::env::consts::EXE_SUFFIX)))
}
