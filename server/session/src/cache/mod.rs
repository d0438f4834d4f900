//! A cache on disk of what is slow to make and the same each time: what nvcc said of a text, under its flags.
//!
//! An entry is named by a hash of all that its value depends on, so it never becomes wrong, only unused. One entry is one
//! file, written aside and renamed, so that any number of processes may share a cache and be killed at any moment: a reader sees a
//! whole entry or none. What is read is checked against its own hash; a damaged entry is removed and missed.
//!
//! The cache only ever saves time. When its folder can't be had or written, everything is a miss, one note says so, and
//! nobody gets an error. Its functions do file I/O, so an async caller wraps them in `spawn_blocking`.

mod entry;
mod ledger;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use crate::config;
use crate::folders::{self, Folders};
use ledger::Ledger;

/// The layout of the folder and of the entries. Another layout gets another folder, so that an older binary, still
/// running, never reads what it doesn't know.
const LAYOUT: &str = "v1";
/// How long to leave the disk alone after it could not be written.
const PAUSE_AFTER_TROUBLE: Duration = Duration::from_secs(60);

/// The name of an entry: a hash of all that its value depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key for a value of this `kind` that is made from `parts`. Equal parts in an equal order give an equal key;
    /// where one part ends and the next begins counts too. SHA-256, for a text that we don't trust must not be able to
    /// stand in for another.
    pub fn of<'a>(kind: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in std::iter::once(kind.as_bytes()).chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({self})")
    }
}

/// The cache. Cloning it gives another handle on the same one.
#[derive(Clone, Debug)]
pub struct Cache {
    inner: Option<Arc<Inner>>,
    health: Arc<Mutex<Health>>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    ledger: Ledger,
}

/// Whether the disk takes what we write.
#[derive(Debug, Default)]
struct Health {
    failed: Option<Instant>,
    noted: bool,
    note: Option<String>,
}

impl Cache {
    /// The cache in `folder`, which may hold `size_limit` bytes; 0 turns it off. Nothing is created before the first put.
    pub fn open(folder: Option<&Path>, size_limit: u64) -> Self {
        let cache = Self { inner: None, health: Arc::default() };
        if size_limit == 0 {
            return cache;
        }
        let Some(folder) = folder else {
            cache.trouble(
                "There is no folder for a cache: no home folder is known. Set STITCHCUDA_CACHE_DIR.",
            );
            return cache;
        };
        let folder = folder.join(LAYOUT);
        let ledger = Ledger::new(folder.clone(), size_limit);
        Self { inner: Some(Arc::new(Inner { folder, ledger })), ..cache }
    }

    /// The cache as configured, in the user's folders.
    pub fn configured(settings: &config::Cache, folders: &Folders) -> Self {
        let folder = settings.folder.clone().or_else(|| Some(folders.cache.as_ref()?.join("results")));
        Self::open(folder.as_deref(), u64::from(settings.size_limit_megabytes) * 1_000_000)
    }

    /// A cache that holds nothing.
    pub fn off() -> Self {
        Self::open(None, 0)
    }

    /// The value of `key`, if it is there and whole.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.inner.as_ref()?.path(key);
        self.read(&path, entry::read)
    }

    /// Puts the folder stored under `key` at `into`, which must not exist yet. Whether it is there and whole; if not,
    /// nothing is left at `into`.
    pub fn get_folder(&self, key: &Key, into: &Path) -> bool {
        let Some(inner) = &self.inner else { return false };
        let path = inner.path(key);
        self.read(&path, |file| entry::read_folder(file, into)).is_some()
    }

    /// Stores `value` under `key`. Whether it was stored; nothing depends on it but time.
    pub fn put(&self, key: &Key, value: &[u8]) -> bool {
        self.write(key, |file, limit| entry::write(file, value, limit))
    }

    /// Stores the folder `from`, with its plain files and folders and which of these may be executed. Not stored, if there is
    /// anything else in it, such as a link.
    pub fn put_folder(&self, key: &Key, from: &Path) -> bool {
        self.write(key, |file, limit| entry::write_folder(file, from, limit))
    }

    /// What a person should know of the cache's trouble, once.
    pub fn take_note(&self) -> Option<String> {
        self.health().note.take()
    }

    fn read<T>(&self, path: &Path, read: impl FnOnce(&mut std::fs::File) -> io::Result<T>) -> Option<T> {
        let mut file = std::fs::File::open(path).ok()?;
        match read(&mut file) {
            Ok(value) => {
                // Marks it as used. In a cache that can't be written it ages, which does no harm.
                let _ = file.set_modified(SystemTime::now());
                Some(value)
            }
            Err(error) => {
                tracing::debug!("cache entry {} not used: {error}", path.display());
                if error.kind() == io::ErrorKind::InvalidData {
                    let _ = std::fs::remove_file(path);
                }
                None
            }
        }
    }

    fn write(&self, key: &Key, write: impl FnOnce(&mut std::fs::File, u64) -> io::Result<u64>) -> bool {
        let Some(inner) = &self.inner else { return false };
        if self.health().failed.is_some_and(|since| since.elapsed() < PAUSE_AFTER_TROUBLE) {
            return false;
        }
        match inner.write(key, write) {
            Ok(()) => {
                self.health().failed = None;
                true
            }
            // About the value, not about the disk: too large, or something that is not stored.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::Unsupported) =>
            {
                tracing::debug!("not cached: {error}");
                false
            }
            Err(error) => {
                self.trouble(&format!(
                    "The cache in {} can't be written ({error}). Compile results are not kept until it can. Free some \
                     space, or set `cache.folder`.",
                    inner.folder.display()
                ));
                false
            }
        }
    }

    fn trouble(&self, note: &str) {
        let mut health = self.health();
        health.failed = Some(Instant::now());
        if !health.noted {
            health.noted = true;
            health.note = Some(note.to_owned());
        }
    }

    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn path(&self, key: &Key) -> PathBuf {
        let name = key.to_string();
        // One more level, since some file systems are slow with many files in one folder.
        self.folder.join(&name[..2]).join(name)
    }

    fn write(
        &self,
        key: &Key,
        write: impl FnOnce(&mut std::fs::File, u64) -> io::Result<u64>,
    ) -> io::Result<()> {
        let aside = self.folder.join(ledger::ASIDE);
        folders::create_private(&aside)?;
        let mut file = tempfile::Builder::new().prefix("put-").tempfile_in(&aside)?;
        let size = write(file.as_file_mut(), self.ledger.limit())?;
        // Counted before it appears: a process killed in between leaves the count too high, which the next full count
        // mends. The other way round the folder could grow past its limit unseen.
        self.ledger.add(size)?;
        let path = self.path(key);
        if let Some(parent) = path.parent() {
            folders::create_private(parent)?;
        }
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
