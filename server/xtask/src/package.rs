//! `cargo xtask package`: what is given away. For VS Code a package with the server of a platform inside, and one without for all others; for
//! Neovim the plugin with that server. A rock is made by `luarocks make`, from a checkout.

use std::path::PathBuf;

use anyhow::Result;

use crate::editors::{neovim, vscode};
use crate::install::server;
use crate::test::{target_directory, workspace_root};

/// What is packed.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where packages go; `packages` in the build folder if it is not said
    #[arg(long)]
    out: Option<PathBuf>,
    /// A server that was built elsewhere, for `--platform`; else one is built here
    #[arg(long, requires = "platform")]
    binary: Option<PathBuf>,
    /// What VS Code calls the platform of `--binary`: `linux-x64`, `linux-arm64`, `win32-x64`
    #[arg(long, requires = "binary")]
    platform: Option<String>,
}

/// Builds and packs.
///
/// # Errors
/// A step that fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace_root();
    let target = target_directory(&root)?;
    let out = arguments.out.clone().unwrap_or_else(|| target.join("packages"));
    let (platform, binary) = match (&arguments.platform, &arguments.binary) {
        (Some(platform), Some(binary)) => (platform.clone(), binary.clone()),
        _ => (vscode::platform()?, server(&root, &target)?),
    };
    vscode::build(&root)?;
    let packages = [
        vscode::pack(&root, &out, Some((&platform, &binary)))?,
        vscode::pack(&root, &out, None)?,
        neovim::pack(&root, &out, &platform, &binary)?,
    ];
    packages.iter().for_each(|package| eprintln!("{}", package.display()));
    Ok(())
}
