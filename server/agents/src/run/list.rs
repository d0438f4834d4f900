//! The runs that there are.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Conclusion, Entry, Manifest, Record, RunError, entry, folder_of, lock, written};

/// A run in one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Its name.
    pub id: String,
    /// When it was begun.
    pub started: String,
    /// The target as it was named.
    pub target: String,
    /// The file of the target, absolute.
    pub file: PathBuf,
    /// Where candidates ran.
    pub device: String,
    /// What planned and coded.
    pub engine: String,
    /// Whether it was asked for a plan and no more.
    pub only_plan: bool,
    /// Attempts so far.
    pub attempts: usize,
    /// How many times less the best attempt costs than the reference.
    pub gain: Option<f64>,
    /// Whether it came to its end; if not, it can be resumed.
    pub finished: bool,
}

impl Record {
    /// The run in one line.
    pub fn summary(&self) -> Summary {
        let Manifest { id, started, target, file, device, engine, budget, .. } = self.manifest.clone();
        Summary {
            id,
            started,
            target,
            file,
            device,
            engine,
            only_plan: budget.is_only_plan(),
            attempts: entry::attempts(&self.history).count(),
            gain: entry::offered(&self.history).and_then(|best| best.gain),
            finished: self.conclusion().is_some(),
        }
    }

    /// How it ended, if it did.
    pub fn conclusion(&self) -> Option<&Conclusion> {
        match self.history.last() {
            Some(Entry::Conclusion(conclusion)) => Some(conclusion),
            _ => None,
        }
    }
}

/// All runs under `root`, the oldest first, and what is there and can't be read. No folder is no run.
pub fn list(root: &Path) -> (Vec<Summary>, Vec<RunError>) {
    let (mut runs, mut troubles) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        if folder_of(root, &id).is_err() {
            continue;
        }
        match Record::read(root, &id) {
            Ok(record) => runs.push(record.summary()),
            Err(error) => troubles.push(error),
        }
    }
    runs.sort_by(|a, b| a.id.cmp(&b.id));
    (runs, troubles)
}

/// Removes a run with all that it holds.
///
/// # Errors
/// There is none, a process works on it, or it can't be removed.
pub fn remove(root: &Path, id: &str) -> Result<(), RunError> {
    let folder = folder_of(root, id)?;
    let _lock = lock(&folder, id)?;
    std::fs::remove_dir_all(&folder).map_err(|source| written(&folder, source))
}
