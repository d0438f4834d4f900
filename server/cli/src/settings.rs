//! What the configuration says, for the command line: read once, its warnings said on standard error.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use stitch_session::config::{Config, Folder, Settings, Surroundings};
use stitch_toolchain::discovery::{Search, Toolkit};
use stitch_toolchain::environment::Environment;

/// The settings of this process, and the folder it was started in, which counts as a trusted workspace: the person who
/// types a command there means its `stitchcuda.toml`.
pub struct Surrounding {
    settings: Settings,
    /// The folder that the command was started in.
    pub folder: PathBuf,
}

impl Surrounding {
    /// Reads the surroundings, with `flags` given on the command line as configuration keys and values.
    ///
    /// # Errors
    /// The folder that the command was started in is gone.
    pub fn read(flags: Vec<(String, String)>) -> Result<Self> {
        let folder =
            std::env::current_dir().context("the folder that this was started in is gone; go to another")?;
        let settings = Settings::new(Surroundings::of_this_process(flags));
        settings.set_folders(vec![Folder { path: folder.clone(), trusted: true }]);
        Ok(Self { settings, folder })
    }

    /// All settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What holds for a file. Says what is wrong with the settings, each thing once.
    pub fn config_for(&self, path: Option<&Path>) -> Arc<Config> {
        let config = self.settings.for_path(path);
        for warning in self.settings.take_warnings() {
            anstream::eprintln!("warning: {warning}");
        }
        config
    }

    /// Where to look for toolkits under `config`.
    pub fn search(&self, config: &Config) -> Search {
        Search {
            configured: config.nvcc.path.clone(),
            workspace: Some(self.folder.clone()),
            environment: Environment::of_this_process(),
        }
    }
}

/// A toolkit as a person would name it: `CUDA 13.5 (…/bin/nvcc, found on PATH)`.
pub fn describe(toolkit: &Toolkit) -> String {
    format!("CUDA {} ({}, found {})", toolkit.version, toolkit.nvcc.display(), toolkit.origin.words())
}
