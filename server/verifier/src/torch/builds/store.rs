//! What was built, under a hash of everything that went in; and the lock under which it is built once.
//!
//! The cache of results holds libraries: whole or not at all, checked when they are read, the oldest leaving first. Headers that a build has
//! read are noted with their sizes and times of change: where one differs, nothing is found.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use stitch_session::CancellationToken;
use stitch_session::cache::{Cache, Key};

use super::Asked;
use super::tools::identity;

/// Another way of building gives other bytes: another name for all.
const WAY: &str = "1";
/// A library is no larger, in bytes.
const MOST_BYTES: u64 = 512 << 20;
/// Between two looks at a lock.
const LOOK: Duration = Duration::from_millis(25);

/// A library.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub bytes: Arc<[u8]>,
    pub about: About,
}

/// What is kept with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// Headers with their identities; `None` where one changed during the build, which is then not kept.
    pub read: Option<Vec<(PathBuf, String)>>,
    /// Sources that were not taken apart, with reasons.
    pub whole: Vec<(String, String)>,
    /// How many were.
    pub apart: usize,
}

/// Where things are kept.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) folder: PathBuf,
    cache: Cache,
}

/// The name of what an extension is built from. Folders that differ between processes, the extension's and those of sources that the process
/// alone can read (which is what `is_own` asks), go into nothing but messages.
pub(super) fn key(
    asked: &Asked,
    tools: &str,
    variables: &[(OsString, OsString)],
    is_own: impl Fn(&str) -> bool,
) -> Key {
    use std::os::unix::ffi::OsStrExt;
    let own = asked.sources.keys().filter(|path| !path.starts_with(&asked.folder) && is_own(path));
    let own: Vec<(&String, String)> = own
        .enumerate()
        .map(|(number, path)| (path, format!("@{number}/{}", path.rsplit('/').next().unwrap_or_default())))
        .collect();
    let neutral = |text: &str| {
        let text = text.replace(&asked.folder, "@");
        own.iter().fold(text, |text, (path, name)| text.replace(path.as_str(), name)).into_bytes()
    };
    let mut parts = vec![WAY.as_bytes().to_vec(), neutral(&asked.ninja), tools.as_bytes().to_vec()];
    let mut sources: Vec<[Vec<u8>; 2]> =
        asked.sources.iter().map(|(path, text)| [neutral(path), text.clone().into_bytes()]).collect();
    sources.sort();
    parts.extend(sources.into_iter().flatten());
    for (name, value) in variables {
        parts.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
    }
    Key::of("torch-extension", parts.iter().map(Vec::as_slice))
}

impl Store {
    pub fn new(folder: PathBuf, cache: Cache) -> Self {
        Self { folder, cache }
    }

    /// The library of a key, if all that was read for it is as it was.
    pub async fn get(&self, key: &Key) -> Option<Built> {
        let (cache, key) = (self.cache.clone(), *key);
        tokio::task::spawn_blocking(move || {
            let value = cache.get(&key)?;
            let end = memchr::memchr(b'\n', &value)?;
            let about: About = serde_json::from_slice(value.get(..end)?).ok()?;
            let is_same = about.read.as_ref()?.iter().all(|(path, known)| identity(path) == *known);
            is_same.then(|| Built { bytes: value.get(end + 1..).unwrap_or_default().into(), about })
        })
        .await
        .ok()?
    }

    /// Keeps a library. Nothing depends on whether it could be kept but time.
    pub async fn put(&self, key: &Key, built: &Built) {
        if built.about.read.is_none() {
            return;
        }
        let Ok(mut value) = serde_json::to_vec(&built.about) else { return };
        value.push(b'\n');
        value.extend_from_slice(&built.bytes);
        let (cache, key) = (self.cache.clone(), *key);
        let _ = tokio::task::spawn_blocking(move || cache.put(&key, &value)).await;
    }

    /// Waits until nobody else builds what has this name. Free again when dropped, or when the process ends, however it does.
    pub async fn lock(&self, name: &str, cancel: &CancellationToken) -> Result<File, String> {
        let folder = self.folder.join("locks");
        let failed = |error: io::Error| format!("{} can't be locked ({error})", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        // Few files for many names: two names in one file wait for each other, and nothing grows.
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join(name.get(..2).unwrap_or(name)));
        let file = file.map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if cancel.is_cancelled() => {
                    return Err("it was cancelled".to_owned());
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// The bytes of a plain file.
pub(super) fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let found = std::fs::symlink_metadata(path)?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(io::Error::other("it is no plain file, or too large"));
    }
    std::fs::read(path)
}

/// What compilers noted of what they read, in files that end in `.d`; what lies in the folder itself went in as text. `None` where
/// something was changed after the build began: nobody knows which version was read.
pub(super) fn what_was_read(folder: &Path, began: SystemTime) -> Option<Vec<(PathBuf, String)>> {
    let mut paths = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        if path.extension().is_some_and(|end| end == "d") {
            paths.extend(dependencies(&std::fs::read_to_string(path).ok()?));
        }
    }
    let outside = paths.into_iter().filter(|path| path.is_absolute() && !path.starts_with(folder));
    outside
        .map(|path| {
            let changed = std::fs::metadata(&path).ok()?.modified().ok()?;
            let identity = identity(&path);
            (changed < began).then_some((path, identity))
        })
        .collect()
}

/// The files of a rule as compilers write it: `x.o: a.cpp \` and so on, with blanks escaped.
fn dependencies(text: &str) -> Vec<PathBuf> {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let joined = rest.replace("\\\n", " ").replace("\\ ", "\u{0}");
    joined.split_whitespace().map(|word| PathBuf::from(word.replace('\u{0}', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(folder: &Path) -> Store {
        Store::new(folder.join("builds"), Cache::open(Some(&folder.join("cache")), 1 << 20))
    }

    #[tokio::test]
    async fn a_changed_header_is_no_hit() {
        let folder = tempfile::tempdir().unwrap();
        let header = folder.path().join("a.h");
        std::fs::write(&header, "1").unwrap();
        std::fs::write(folder.path().join("x.o.d"), format!("x.o: x.cpp \\\n {}\n", header.display()))
            .unwrap();
        let scratch = folder.path().join("elsewhere");
        std::fs::create_dir(&scratch).unwrap();
        std::fs::copy(folder.path().join("x.o.d"), scratch.join("x.o.d")).unwrap();
        let later = SystemTime::now() + Duration::from_secs(1);
        let read = what_was_read(&scratch, later);
        assert_eq!(read.as_ref().unwrap().len(), 1);
        assert_eq!(what_was_read(&scratch, SystemTime::UNIX_EPOCH), None);
        let store = store(folder.path());
        let key = key(&Asked::default(), "tools", &[], |_| false);
        let built =
            Built { bytes: b"lib\nrary".as_slice().into(), about: About { read, ..About::default() } };
        store.put(&key, &built).await;
        assert_eq!(&*store.get(&key).await.unwrap().bytes, b"lib\nrary");
        std::fs::write(&header, "12").unwrap();
        assert!(store.get(&key).await.is_none());
    }

    #[test]
    fn a_key_is_of_everything_but_the_folder() {
        let asked = |folder: &str, flag: &str, text: &str| Asked {
            folder: folder.to_owned(),
            ninja: format!("cflags = {flag}\nbuild a.o: compile {folder}/a.cpp\n"),
            sources: [(format!("{folder}/a.cpp"), text.to_owned())].into(),
            ..Asked::default()
        };
        let of = |asked: &Asked, tools: &str| key(asked, tools, &[("PATH".into(), "/bin".into())], |_| false);
        let first = of(&asked("/one", "-O2", "int x;"), "t");
        assert_eq!(first, of(&asked("/two", "-O2", "int x;"), "t"));
        for other in [
            of(&asked("/one", "-O3", "int x;"), "t"),
            of(&asked("/one", "-O2", "int y;"), "t"),
            of(&asked("/one", "-O2", "int x;"), "u"),
        ] {
            assert_ne!(first, other);
        }
        assert_ne!(first, key(&asked("/one", "-O2", "int x;"), "t", &[], |_| false));
        // A file that a program has written for itself has another path each time.
        let written = |path: &str| Asked {
            ninja: format!("build a.o: compile {path}\n"),
            sources: [(path.to_owned(), "int x;".to_owned())].into(),
            folder: "/one".to_owned(),
            ..Asked::default()
        };
        let of = |path: &str, is_own: bool| key(&written(path), "t", &[], |_| is_own);
        assert_eq!(of("/tmp/a/x.cpp", true), of("/tmp/b/x.cpp", true));
        assert_ne!(of("/tmp/a/x.cpp", false), of("/tmp/b/x.cpp", false));
    }

    #[tokio::test]
    async fn a_lock_is_one_process_at_a_time_and_can_be_left() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let cancel = CancellationToken::new();
        let first = store.lock("abc", &cancel).await.unwrap();
        let waiting = tokio::spawn({
            let (store, cancel) = (store.clone(), cancel.clone());
            async move { store.lock("abc", &cancel).await.map(drop) }
        });
        tokio::time::sleep(Duration::from_millis(80)).await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap().unwrap();
        let _held = store.lock("abc", &cancel).await.unwrap();
        cancel.cancel();
        assert!(store.lock("abd", &cancel).await.is_err());
    }
}
