//! Scratch folders: private, limited in size, outside the workspace, gone with the job.
//!
//! All scratch folders of one process lie in one owner folder, on whose `.lock` the process holds a file lock. The
//! kernel gives the lock back when the process dies, however it dies, so that the next process to start knows which owner
//! folders are left over (a process id would be reused, and means nothing on a home folder shared by machines).

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, SystemTime};

use crate::environment::Environment;
use crate::removal::remove_folder;

/// The file in an owner folder on which its process holds a lock.
const LOCK: &str = ".lock";

/// How much a scratch folder may hold, in bytes, if nothing else is asked for.
pub const DEFAULT_SCRATCH_LIMIT: u64 = 2 << 30;

/// What an entry of a folder counts at least, in bytes: a million empty files fill a disk too.
const LEAST_ENTRY: u64 = 4096;
/// Deeper than this, a folder counts as full: no compiler nests so, and paths would grow past what the kernel takes.
const DEEPEST: usize = 100;
/// A half-made owner folder older than this was left by a process that died while making it.
const HALF_MADE_AGE: Duration = Duration::from_secs(3600);

/// A private folder for one job (mode 0700). Removed when the value is dropped; if the process is killed, by the next
/// process that makes one.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    limit: u64,
    _owner: Arc<OwnerFolder>,
}

impl Scratch {
    /// Makes a scratch folder in the user's cache folder, else in the temporary folder. `prefix` begins its name.
    ///
    /// # Errors
    /// If neither place can be written.
    pub fn new(prefix: &str) -> io::Result<Self> {
        let environment = Environment::of_this_process();
        let in_cache = environment.cache_folder().join("scratch");
        Self::new_in(&in_cache, prefix).or_else(|_| {
            let user = nix::unistd::getuid();
            let in_temporary =
                environment.temporary_folder().join(format!("stitchcuda-{user}")).join("scratch");
            Self::new_in(&in_temporary, prefix)
        })
    }

    /// Makes a scratch folder in the folder `base`, which is made if it is not there.
    ///
    /// # Errors
    /// If `base` can't be written, or belongs to another user.
    pub fn new_in(base: &Path, prefix: &str) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let owner = OwnerFolder::of(base)?;
        let prefix: String =
            prefix.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = owner.path.join(format!("{prefix}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, limit: DEFAULT_SCRATCH_LIMIT, _owner: owner })
    }

    /// Sets how much the folder may hold, in bytes, while a program that was given it runs.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How much it may hold, in bytes.
    pub fn size_limit(&self) -> u64 {
        self.limit
    }

    /// How much it holds now, in bytes on disk.
    pub fn size(&self) -> u64 {
        folder_size(&self.path, u64::MAX)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_folder(&self.path) {
            tracing::warn!("The scratch folder {} could not be removed: {error}.", self.path.display());
        }
    }
}

/// The bytes that a folder takes on disk, each entry counted as one block at least. Stops counting above `enough`.
/// A folder nested too deep counts as `u64::MAX`.
pub(super) fn folder_size(folder: &Path, enough: u64) -> u64 {
    let mut total = 0_u64;
    let mut waiting = vec![(folder.to_path_buf(), 0_usize)];
    while let Some((folder, depth)) = waiting.pop() {
        if depth > DEEPEST {
            return u64::MAX;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            total = total.saturating_add((metadata.blocks() * 512).max(LEAST_ENTRY));
            if total > enough {
                return total;
            }
            if metadata.is_dir() {
                waiting.push((entry.path(), depth + 1));
            }
        }
    }
    total
}

/// The folder of this process among the scratch folders, and the lock that says the process lives.
#[derive(Debug)]
struct OwnerFolder {
    path: PathBuf,
    _lock: File,
}

type Owned = Mutex<Vec<(PathBuf, Arc<OwnerFolder>)>>;

/// The owner folders of this process, by the folder that each is in.
fn owned() -> MutexGuard<'static, Vec<(PathBuf, Arc<OwnerFolder>)>> {
    static OWNED: OnceLock<Owned> = OnceLock::new();
    OWNED.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes the owner folders of this process that hold nothing more; for its end. Those that do are left to the next process.
pub fn leave() {
    for (_, owner) in owned().drain(..) {
        let lock = owner.path.join(LOCK);
        let entries = fs::read_dir(&owner.path).map_or(2, |entries| entries.take(2).count());
        if entries == 1 && fs::remove_file(&lock).is_ok() {
            // Where another thread put something there meanwhile, it stays, and goes once it is old.
            let _ = fs::remove_dir(&owner.path);
        }
    }
}

impl OwnerFolder {
    /// This process' owner folder in `base`: made once, and again if someone cleaned it away. The first time, what dead
    /// processes left is removed in the background.
    fn of(base: &Path) -> io::Result<Arc<Self>> {
        let mut owned = owned();
        let known = owned.iter().find(|(of, _)| of == base).map(|(_, owner)| Arc::clone(owner));
        match known {
            Some(owner) if owner.path.is_dir() => return Ok(owner),
            Some(_) => owned.retain(|(of, _)| of != base),
            None => {
                let base = base.to_path_buf();
                std::thread::spawn(move || sweep(&base));
            }
        }
        let owner = Arc::new(Self::create(base)?);
        owned.push((base.to_path_buf(), Arc::clone(&owner)));
        Ok(owner)
    }

    fn create(base: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(base)?;
        // In a shared temporary folder another user may have made the folder first, to read what we put there.
        if fs::symlink_metadata(base)?.uid() != nix::unistd::getuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} belongs to another user", base.display()),
            ));
        }
        let half_made = tempfile::Builder::new().prefix(".new-").tempdir_in(base)?;
        let lock = File::create(half_made.path().join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        let half_made = half_made.keep();
        let name = half_made.file_name().unwrap_or_default().to_string_lossy().replace(".new-", "owner-");
        let path = base.join(name);
        fs::rename(&half_made, &path)?;
        Ok(Self { path, _lock: lock })
    }
}

/// Removes what dead processes left in `base`. Returns how many owner folders that were.
pub fn sweep(base: &Path) -> usize {
    let Ok(entries) = fs::read_dir(base) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let left_over = if name.starts_with("owner-") {
            owner_is_dead(&path)
        } else {
            name.starts_with(".new-") && is_older_than(&path, HALF_MADE_AGE)
        };
        if left_over && remove_folder(&path).is_ok() {
            removed += 1;
        }
    }
    removed
}

fn owner_is_dead(owner: &Path) -> bool {
    match File::open(owner.join(LOCK)) {
        Ok(lock) => match lock.try_lock() {
            Ok(()) => true,
            // An unknown error (a file system without locks) must not cost a living process its files.
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        Err(error) => error.kind() == io::ErrorKind::NotFound && is_older_than(owner, HALF_MADE_AGE),
    }
}

fn is_older_than(path: &Path, age: Duration) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|passed| passed > age))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_scratch_folder_is_private_and_removed_on_drop() {
        let base = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(base.path(), "nv/cc").unwrap();
        let path = scratch.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(path.parent().unwrap().parent().unwrap(), base.path());
        fs::write(path.join("file"), vec![0; 10_000]).unwrap();
        assert!(scratch.size() >= 10_000);
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn sweeping_removes_what_the_dead_left_and_nothing_of_the_living() {
        let base = tempfile::tempdir().unwrap();
        let alive = Scratch::new_in(base.path(), "alive").unwrap();
        let dead = base.path().join("owner-dead");
        fs::create_dir_all(dead.join("job-0/deep")).unwrap();
        fs::write(dead.join(".lock"), "").unwrap();
        fs::create_dir(base.path().join("stranger")).unwrap();
        // Making the first scratch folder has started a sweep too; both may see the dead one.
        sweep(base.path());
        for _ in 0..100 {
            if !dead.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!dead.exists());
        assert!(alive.path().exists());
        assert!(base.path().join("stranger").exists());
        assert_eq!(sweep(base.path()), 0);
    }

    #[test]
    fn an_end_leaves_nothing_but_what_is_in_use() {
        let (empty, used) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(Scratch::new_in(empty.path(), "job").unwrap());
        let alive = Scratch::new_in(used.path(), "job").unwrap();
        leave();
        assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
        assert!(alive.path().is_dir());
        assert_eq!(sweep(used.path()), 0, "its lock is held still");
        // Another one is made where one is wanted.
        assert!(Scratch::new_in(empty.path(), "job").unwrap().path().is_dir());
    }

    #[test]
    fn empty_files_and_deep_folders_count() {
        let base = tempfile::tempdir().unwrap();
        for index in 0..100 {
            fs::write(base.path().join(index.to_string()), "").unwrap();
        }
        assert_eq!(folder_size(base.path(), u64::MAX), 100 * LEAST_ENTRY);
        let mut deep = base.path().to_path_buf();
        for _ in 0..150 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(folder_size(base.path(), u64::MAX), u64::MAX);
    }
}
