//! The folder that a run leaves, written as it happens.
//!
//! ```text
//! run.json                  what was asked for: target, device, engine, budget
//! reference/FILE            the code as it was
//! profile.json              what profilers saw of it
//! history/0001.json …       what happened, in order: baseline, plans, attempts, conclusion
//! attempts/0001/FILE …      the text of each candidate
//! exchanges/0001-coder.json every question to a model, and its answer
//! best.patch                the best attempt so far, against the reference
//! ```
//!
//! Each file is written beside its place and moved there, so a run that is killed leaves whole files only. The history alone says how
//! far a run is: what it does next follows from it, whether the process that goes on is the same or another.

mod entry;
mod list;
mod manifest;

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use stitch_profiles::profile::Profile;

pub use entry::{Attempt, Conclusion, Entry, Outcome, Why};
pub(crate) use entry::{attempts, best, composed, offered, tried};
pub use list::{Summary, list, remove};
pub use manifest::{Budget, Manifest};

use crate::engine::Exchange;
use crate::patch;

/// Why a run's folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no run of that name.
    #[error("There is no run `{id}` in {}. `stitchcuda runs list` shows those that there are.", root.display())]
    Unknown {
        /// The name.
        id: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Another process works on it.
    #[error("The run `{id}` is at work in another process. Wait for its end, or cancel it there.")]
    Busy {
        /// The run.
        id: String,
    },
    /// A file of it can't be read or written.
    #[error("{} could not be {what}: {source}. If its disk is full or read-only, set STITCHCUDA_STATE_DIR to another folder.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file of it holds something else than it should.
    #[error("{} holds something else than this version writes ({source}). Remove the run with `stitchcuda runs remove`, or take the version that wrote it.", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
}

const MANIFEST: &str = "run.json";
const LOCK: &str = "lock";
const HISTORY: &str = "history";
const PATCH: &str = "best.patch";
const PROFILE: &str = "profile.json";

/// A run that this process works on; no other can until it is dropped.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    manifest: Manifest,
    history: Vec<Entry>,
    reference: String,
    exchanges: AtomicUsize,
    _lock: File,
}

/// A run as its folder shows it, whoever works on it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its folder.
    pub folder: PathBuf,
    /// What was asked for.
    pub manifest: Manifest,
    /// What happened.
    pub history: Vec<Entry>,
    /// The code as it was.
    pub reference: String,
}

impl Record {
    /// Reads the run `id` under `root`.
    ///
    /// # Errors
    /// There is none, or a file of it can't be read.
    pub fn read(root: &Path, id: &str) -> Result<Self, RunError> {
        let folder = folder_of(root, id)?;
        let manifest: Manifest = read_json(&folder.join(MANIFEST))?;
        let reference = read_text(&folder.join("reference").join(manifest.file_name()))?;
        let history = read_history(&folder)?;
        Ok(Self { folder, manifest, history, reference })
    }

    /// The text of a candidate.
    ///
    /// # Errors
    /// It can't be read.
    pub fn candidate(&self, number: u32) -> Result<String, RunError> {
        read_text(&candidate_path(&self.folder, number, &self.manifest))
    }

    /// The attempt that may be offered, and its text.
    ///
    /// # Errors
    /// Its text can't be read.
    pub fn best(&self) -> Result<Option<(Attempt, String)>, RunError> {
        match entry::offered(&self.history) {
            Some(best) => Ok(Some((best.clone(), self.candidate(best.number)?))),
            None => Ok(None),
        }
    }
}

impl Run {
    /// Begins a run: makes its folder under `root`, and gives it a name that tells when and of what.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn create(root: &Path, mut manifest: Manifest, reference: &str) -> Result<Self, RunError> {
        stitch_session::folders::create_private(root).map_err(|source| written(root, source))?;
        let name = manifest.proposed_id();
        let folder = (1u32..)
            .map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") })
            .map(|id| (root.join(&id), id))
            .find_map(|(folder, id)| match std::fs::create_dir(&folder) {
                Ok(()) => Some(Ok((folder, id))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(source) => Some(Err(written(&folder, source))),
            });
        let (folder, id) = folder.unwrap_or_else(|| Err(written(root, io::ErrorKind::StorageFull.into())))?;
        manifest.id = id;
        let lock = lock(&folder, &manifest.id)?;
        for inner in [HISTORY, "reference", "attempts", "exchanges"] {
            let inner = folder.join(inner);
            std::fs::create_dir(&inner).map_err(|source| written(&inner, source))?;
        }
        write(&folder.join("reference").join(manifest.file_name()), reference.as_bytes())?;
        // Last: a folder with a manifest is a whole run.
        write_json(&folder.join(MANIFEST), &manifest)?;
        Ok(Self {
            folder,
            manifest,
            history: Vec::new(),
            reference: reference.to_owned(),
            exchanges: AtomicUsize::new(0),
            _lock: lock,
        })
    }

    /// Takes up a run that was begun before.
    ///
    /// # Errors
    /// There is none, another process works on it, or a file of it can't be read.
    pub fn resume(root: &Path, id: &str) -> Result<Self, RunError> {
        let folder = folder_of(root, id)?;
        let lock = lock(&folder, id)?;
        let Record { folder, manifest, history, reference } = Record::read(root, id)?;
        let exchanges = std::fs::read_dir(folder.join("exchanges")).map_or(0, Iterator::count);
        Ok(Self { folder, manifest, history, reference, exchanges: AtomicUsize::new(exchanges), _lock: lock })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was asked for.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Gives it another budget, on disk too.
    ///
    /// # Errors
    /// It can't be written.
    pub fn set_budget(&mut self, budget: Budget) -> Result<(), RunError> {
        self.manifest.budget = budget;
        write_json(&self.folder.join(MANIFEST), &self.manifest)
    }

    /// What happened.
    pub fn history(&self) -> &[Entry] {
        &self.history
    }

    /// The code as it was.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// The copy of the code as it was.
    pub fn reference_path(&self) -> PathBuf {
        self.folder.join("reference").join(self.manifest.file_name())
    }

    /// Writes down what profilers saw of the reference.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write_profile(&self, profile: &Profile) -> Result<(), RunError> {
        write_json(&self.folder.join(PROFILE), profile)
    }

    /// What profilers saw of the reference; `None` where there is nothing that can be read, as in a run of an older version.
    pub fn profile(&self) -> Option<Profile> {
        read_json(&self.folder.join(PROFILE)).ok()
    }

    /// Writes down what happened; of an attempt that may be offered, also its patch.
    ///
    /// # Errors
    /// It can't be written.
    pub fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        let path = self.folder.join(HISTORY).join(format!("{:04}.json", self.history.len() + 1));
        write_json(&path, &entry)?;
        let number = match &entry {
            Entry::Attempt(attempt) if attempt.outcome == Outcome::Kept => Some(attempt.number),
            _ => None,
        };
        self.history.push(entry);
        if let Some(number) = number
            && entry::offered(&self.history).is_some_and(|offered| offered.number == number)
        {
            let text = self.candidate(number)?;
            let patch = patch::unified(&self.reference, &text, &self.manifest.file_name());
            write(&self.folder.join(PATCH), patch.as_bytes())?;
        }
        Ok(())
    }

    /// Writes down a candidate, and says where.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write_candidate(&self, number: u32, text: &str) -> Result<PathBuf, RunError> {
        let path = candidate_path(&self.folder, number, &self.manifest);
        let folder = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder).map_err(|source| written(folder, source))?;
        write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// The text of a candidate.
    ///
    /// # Errors
    /// It can't be read.
    pub fn candidate(&self, number: u32) -> Result<String, RunError> {
        read_text(&candidate_path(&self.folder, number, &self.manifest))
    }

    /// The file of a candidate.
    pub fn candidate_path(&self, number: u32) -> PathBuf {
        candidate_path(&self.folder, number, &self.manifest)
    }

    /// The text to go on from: the best attempt's, or the reference.
    ///
    /// # Errors
    /// It can't be read.
    pub fn current(&self) -> Result<String, RunError> {
        match entry::best(&self.history) {
            Some(best) => self.candidate(best.number),
            None => Ok(self.reference.clone()),
        }
    }

    /// Writes down an exchange with a model.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write_exchange(&self, exchange: &Exchange) -> Result<(), RunError> {
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("{number:04}-{}.json", exchange.role);
        write_json(&self.folder.join("exchanges").join(name), exchange)
    }
}

fn candidate_path(folder: &Path, number: u32, manifest: &Manifest) -> PathBuf {
    folder.join("attempts").join(format!("{number:04}")).join(manifest.file_name())
}

/// The folder of a run. Its name is one part of a path, so that no name leads elsewhere.
fn folder_of(root: &Path, id: &str) -> Result<PathBuf, RunError> {
    let is_name =
        Path::new(id).components().count() == 1 && !id.starts_with('.') && !id.contains(['/', '\\']);
    let folder = root.join(id);
    if is_name && folder.join(MANIFEST).is_file() {
        Ok(folder)
    } else {
        Err(RunError::Unknown { id: id.to_owned(), root: root.to_owned() })
    }
}

fn lock(folder: &Path, id: &str) -> Result<File, RunError> {
    let path = folder.join(LOCK);
    let file = File::create(&path).map_err(|source| written(&path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunError::Busy { id: id.to_owned() }),
        Err(TryLockError::Error(source)) => Err(written(&path, source)),
    }
}

/// The entries on disk, in order. One that is missing ends them.
fn read_history(folder: &Path) -> Result<Vec<Entry>, RunError> {
    let mut history = Vec::new();
    loop {
        let path = folder.join(HISTORY).join(format!("{:04}.json", history.len() + 1));
        if !path.exists() {
            return Ok(history);
        }
        history.push(read_json(&path)?);
    }
}

fn written(path: &Path, source: io::Error) -> RunError {
    RunError::File { path: path.to_owned(), what: "written", source }
}

fn read_text(path: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(path).map_err(|source| RunError::File {
        path: path.to_owned(),
        what: "read",
        source,
    })
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    serde_json::from_str(&read_text(path)?)
        .map_err(|source| RunError::Content { path: path.to_owned(), source })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| written(path, error.into()))?;
    bytes.push(b'\n');
    write(path, &bytes)
}

/// Writes a file beside its place and moves it there: it is there whole, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let attempt = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    attempt().map_err(|source| written(path, source))
}

#[cfg(test)]
mod tests;
