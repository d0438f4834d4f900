//! What the configuration says, for the command line: read once, its warnings said on standard error.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use stitch_session::config::{Config, Folder, Settings, Surroundings, workspace_of};
use stitch_toolchain::discovery::{Search, Toolkit};
use stitch_toolchain::environment::Environment;

/// The settings of this process. The projects of the files it is about count as trusted workspaces, else the folder it was started
/// in: the person who types a command means their `stitchcuda.toml`.
pub struct Surrounding {
    settings: Settings,
    /// The folder that the command was started in.
    pub folder: PathBuf,
    /// What is wrong with the settings, as it was said.
    warnings: Mutex<Vec<String>>,
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
        Ok(Self { settings, folder, warnings: Mutex::default() })
    }

    /// The same for a command that is about these files: each has the settings of its own project, wherever the command was
    /// started.
    pub fn about<'a>(self, files: impl Iterator<Item = &'a Path>) -> Self {
        let projects: BTreeSet<PathBuf> = files.filter_map(workspace_of).collect();
        self.settings.set_folders(projects.into_iter().map(|path| Folder { path, trusted: true }).collect());
        self
    }

    /// All settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What holds for a file. Says what is wrong with the settings, each thing once.
    pub fn config_for(&self, path: Option<&Path>) -> Arc<Config> {
        let config = self.settings.for_path(path);
        let new = self.settings.take_warnings();
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in new {
            anstream::eprintln!("warning: {warning}");
            warnings.push(warning.to_string());
        }
        config
    }

    /// Everything that was said of the settings so far.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where to look for toolkits under `config`.
    pub fn search(&self, config: &Config) -> Search {
        self.search_for(config, self.folder.clone())
    }

    /// The same for a file of the project in `workspace`.
    pub fn search_for(&self, config: &Config, workspace: PathBuf) -> Search {
        Search {
            configured: config.nvcc.path.clone(),
            workspace: Some(workspace),
            environment: Environment::of_this_process(),
        }
    }
}

/// A toolkit as a person would name it: `CUDA 13.5 (…/bin/nvcc, found on PATH)`.
pub fn describe(toolkit: &Toolkit) -> String {
    format!("CUDA {} ({}, found {})", toolkit.version, toolkit.nvcc.display(), toolkit.origin.words())
}
