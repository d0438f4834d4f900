//! What a compile is asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stitch_analysis::Language;
use stitch_session::cache::Cache;
use stitch_session::config::{Architecture as ConfiguredArchitecture, Config};
use stitch_session::folders::Folders;
use stitch_toolchain::discovery::Toolkit;

use crate::architecture::Architecture;

/// Threads a block that occupancy is reckoned with where nothing tells.
pub const DEFAULT_BLOCK: u32 = 256;

/// How long a compile may take. Big template libraries take minutes.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// A compile of one file as it is saved.
#[derive(Clone, Debug)]
pub struct CompileRequest {
    /// The file.
    pub path: PathBuf,
    /// Its text in the editor. If it differs from the disk, the disk is compiled and the report says so.
    pub text: Arc<str>,
    /// What it is written in.
    pub language: Language,
    /// The toolkit to compile with, unless the compile database names an nvcc that exists.
    pub toolkit: Toolkit,
    /// The folder of the workspace that the file is in. Nothing outside is searched for a database or for sources.
    pub workspace: Option<PathBuf>,
    /// Flags of the person's own, after all others.
    pub flags: Vec<String>,
    /// The compile database, if it is configured: a file, or the folder that holds it.
    pub compile_commands: Option<PathBuf>,
    /// The architecture, if it is configured, as nvcc takes it: `sm_90a`, `native`. A database's own goes first.
    pub architecture: Option<String>,
    /// The architecture of the device in this machine; used where nothing else names one. See [`crate::device`].
    pub device: Option<Architecture>,
    /// The host compiler, if it is configured: passed as `-ccbin` unless the flags name one.
    pub host_compiler: Option<PathBuf>,
    /// Threads a block that occupancy is reckoned with where neither a launch nor launch bounds tell.
    pub block_size: u32,
    /// When the compile is given up.
    pub time_limit: Duration,
    /// Where results are kept for a file that has not changed.
    pub cache: Option<Cache>,
}

impl CompileRequest {
    /// A compile with nothing configured.
    pub fn new(
        path: impl Into<PathBuf>,
        text: impl Into<Arc<str>>,
        language: Language,
        toolkit: Toolkit,
    ) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
            language,
            toolkit,
            workspace: None,
            flags: Vec::new(),
            compile_commands: None,
            architecture: None,
            device: None,
            host_compiler: None,
            block_size: DEFAULT_BLOCK,
            time_limit: TIME_LIMIT,
            cache: None,
        }
    }

    /// The same under what a person configured, for a file of this workspace.
    pub async fn configured(mut self, config: &Config, workspace: Option<PathBuf>) -> Self {
        self.workspace = workspace;
        self.flags = config.nvcc.extra_flags.clone();
        self.block_size = config.occupancy.assumed_block_size;
        self.time_limit = Duration::from_secs(config.compile.time_limit_seconds.into());
        self.cache = Some(Cache::configured(&config.cache, &Folders::find()));
        match &config.nvcc.architecture {
            ConfiguredArchitecture::Named(name) => self.architecture = Some(name.clone()),
            ConfiguredArchitecture::Auto => self.device = crate::device::architecture().await,
        }
        self
    }
}
