//! The CUDA toolkit for a folder, looked for once: a search starts programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stitch_session::config::Config;
use stitch_toolchain::discovery::{self, Toolkit};

use crate::session::Session;

/// What decides about the toolkit.
type Question = (Option<PathBuf>, Option<PathBuf>);

/// The toolkits that were found. What was not found is looked for again: a person may just have installed it.
#[derive(Debug, Default)]
pub struct Toolkits(Mutex<HashMap<Question, Toolkit>>);

impl Toolkits {
    fn get(&self, question: &Question) -> Option<Toolkit> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(question).cloned();
        // It may have been removed since.
        known.filter(|toolkit| toolkit.nvcc.exists())
    }
}

/// The toolkit to compile with.
///
/// # Errors
/// Why there is none, and what to do.
pub async fn find(
    session: &Arc<Session>,
    config: &Config,
    workspace: Option<&Path>,
) -> Result<Toolkit, String> {
    let question = (config.nvcc.path.clone(), workspace.map(Path::to_owned));
    if let Some(known) = session.toolkits.get(&question) {
        return Ok(known);
    }
    let search = session.search(config, question.1.clone());
    let found = tokio::task::spawn_blocking(move || discovery::find(&search)).await;
    let discovery = found.map_err(|error| format!("The search for a CUDA toolkit failed: {error}."))?;
    let Some(toolkit) = discovery.chosen.clone() else { return Err(discovery.advice()) };
    let name = format!("CUDA {} ({})", toolkit.version, toolkit.root.display());
    session.notices.info(format!("{name}, found {}.", toolkit.origin.words()));
    session.status.update(&session.notices, |status| status.toolkit = Some(name));
    session.toolkits.0.lock().unwrap_or_else(PoisonError::into_inner).insert(question, toolkit.clone());
    Ok(toolkit)
}
