//! Locks of devices between processes: two programs that time a kernel on the same device at the same time measure each
//! other.
//!
//! What must not be disturbed has a device alone; what disturbs nobody but would disturb that shares it with others. Whoever wants it alone is
//! not passed by those who come later.
//!
//! A lock is a `flock` on a file in the runtime folder, so it ends with its process however that ends, and no
//! file left behind ever blocks anyone. The file's content only says who holds it, for messages.
//!
//! The runtime folder belongs to one user on one machine. So two users of a machine don't exclude each other, nor does a container
//! exclude its host, unless `STITCHCUDA_RUNTIME_DIR` names a folder that both can reach. A name like `cuda:0` means another
//! device under another `CUDA_VISIBLE_DEVICES`; a caller that knows the device's UUID locks that.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::folders;

/// How long to wait before the first look whether the lock is free.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// The longest time between two looks. A file lock can't wake a waiter that may also be cancelled.
const LONGEST_LOOK: Duration = Duration::from_millis(40);
/// Longer names than this are cut and told apart by a hash; file names end at 255 bytes.
const LONGEST_NAME: usize = 150;

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process, as its own process namespace numbers it.
    pub pid: u32,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

impl Holder {
    /// How long it has been held, in seconds.
    pub fn held_seconds(&self) -> u64 {
        seconds_now().saturating_sub(self.since)
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "process {} for {} s", self.pid, self.held_seconds())
    }
}

/// Why a device could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The job that wanted it was cancelled.
    #[error("Waiting for {device} was cancelled.")]
    Cancelled {
        /// The device.
        device: String,
    },
    /// There is no folder for the lock, or its file system has no locks.
    #[error("{device} can't be locked with {}: {source}. Set STITCHCUDA_RUNTIME_DIR to a folder on a local disk.", path.display())]
    Unavailable {
        /// The device.
        device: String,
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A device that no other process of this user uses; free again when dropped.
#[derive(Debug)]
#[must_use = "the device is free again when the lock is dropped"]
pub struct DeviceLock {
    file: File,
    path: PathBuf,
    /// Whether others have it too, so that nobody's name stands in the file.
    is_shared: bool,
}

impl DeviceLock {
    /// Locks `device` (`cuda:0`, a UUID, `sim:h200`), with the lock file in `runtime`, and waits for it as long as it takes.
    ///
    /// `on_wait` is told who holds the device, once when waiting begins and again when the holder changes; `None` when that
    /// can't be read.
    ///
    /// # Errors
    /// When `cancel` fires first, or when the lock file can't be made or locked.
    pub async fn acquire(
        runtime: &Path,
        device: &str,
        cancel: &CancellationToken,
        mut on_wait: impl FnMut(Option<Holder>) + Send,
    ) -> Result<Self, LockError> {
        // Who waits here waits for one that waits for the device, and those who share it wait behind.
        let _gate = Self::acquire_any(runtime, device, &[gate_of(device)], cancel, &mut |_| {}).await?;
        Self::acquire_any(runtime, device, &[device.to_owned()], cancel, &mut on_wait).await
    }

    /// Locks `device` beside others who share it, and waits while someone has it alone or wants to.
    ///
    /// # Errors
    /// As for [`DeviceLock::acquire`].
    pub async fn share(runtime: &Path, device: &str, cancel: &CancellationToken) -> Result<Self, LockError> {
        let mut pause = FIRST_LOOK;
        let [gate, own] =
            [gate_of(device), device.to_owned()].map(|name| runtime.join("locks").join(file_name(&name)));
        let [gate_file, file] = [open(&gate), open(&own)];
        let unavailable = |path: &PathBuf| {
            let (device, path) = (device.to_owned(), path.clone());
            |source| LockError::Unavailable { device, path, source }
        };
        let (gate_file, file) = (gate_file.map_err(unavailable(&gate))?, file.map_err(unavailable(&own))?);
        loop {
            if cancel.is_cancelled() {
                return Err(LockError::Cancelled { device: device.to_owned() });
            }
            match gate_file.try_lock_shared() {
                Ok(()) => {
                    let locked = file.try_lock_shared();
                    gate_file.unlock().map_err(unavailable(&gate))?;
                    match locked {
                        Ok(()) => return Ok(Self { file, path: own, is_shared: true }),
                        Err(TryLockError::WouldBlock) => {}
                        Err(TryLockError::Error(source)) => return Err(unavailable(&own)(source)),
                    }
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(unavailable(&gate)(source)),
            }
            let _ = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// One of `count` places on `device`, for what many may do at a time but not any number, such as keeping a context there. Waits for it as long
    /// as it takes. The place is no lock of the device itself.
    ///
    /// # Errors
    /// As for [`DeviceLock::acquire`].
    pub async fn acquire_place(
        runtime: &Path,
        device: &str,
        count: usize,
        cancel: &CancellationToken,
    ) -> Result<Self, LockError> {
        let names: Vec<String> = (0..count.max(1)).map(|place| format!("{device} place {place}")).collect();
        Self::acquire_any(runtime, device, &names, cancel, &mut |_| {}).await
    }

    async fn acquire_any(
        runtime: &Path,
        device: &str,
        names: &[String],
        cancel: &CancellationToken,
        on_wait: &mut (dyn FnMut(Option<Holder>) + Send),
    ) -> Result<Self, LockError> {
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            let path = runtime.join("locks").join(file_name(name));
            let unavailable =
                |source| LockError::Unavailable { device: device.to_owned(), path: path.clone(), source };
            files.push((open(&path).map_err(unavailable)?, path));
        }
        let mut told = None;
        let mut pause = FIRST_LOOK;
        loop {
            if cancel.is_cancelled() {
                return Err(LockError::Cancelled { device: device.to_owned() });
            }
            for at in 0..files.len() {
                match files[at].0.try_lock() {
                    Ok(()) => {
                        let (file, path) = files.swap_remove(at);
                        let mut lock = Self { file, path, is_shared: false };
                        lock.write_holder(Some(Holder { pid: std::process::id(), since: seconds_now() }));
                        return Ok(lock);
                    }
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(source)) => {
                        let path = files[at].1.clone();
                        return Err(LockError::Unavailable { device: device.to_owned(), path, source });
                    }
                }
            }
            let holder = files.first_mut().and_then(|(file, _)| read_holder(file));
            if told != Some(holder) {
                on_wait(holder);
                told = Some(holder);
            }
            let _ = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes who holds the lock. That it fails (disk full, another user's file) only makes a message poorer.
    fn write_holder(&mut self, holder: Option<Holder>) {
        let text = holder.and_then(|holder| serde_json::to_string(&holder).ok()).unwrap_or_default();
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(text.as_bytes()));
        if let Err(error) = written {
            tracing::debug!("{} does not say who holds it: {error}", self.path.display());
        }
    }
}

impl Drop for DeviceLock {
    fn drop(&mut self) {
        if !self.is_shared {
            self.write_holder(None);
        }
        // Closing the file would do, unless a child process had inherited it.
        if let Err(error) = self.file.unlock() {
            tracing::debug!("{} was not unlocked before closing: {error}", self.path.display());
        }
    }
}

/// Who holds `device` now, for messages. `None` when it is free or the holder can't be read.
pub fn holder(runtime: &Path, device: &str) -> Option<Holder> {
    let mut file = File::open(runtime.join("locks").join(file_name(device))).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read_holder(&mut file),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// What is locked while one waits for the device alone.
fn gate_of(device: &str) -> String {
    format!("{device} gate")
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        folders::create_private(folder)?;
    }
    match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path) {
        // In a folder shared on purpose the file may be another user's; reading is enough to lock.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path).map_err(|_| error),
        opened => opened,
    }
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(1024).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// A file name for a device; different devices have different names, whatever is in them.
fn file_name(device: &str) -> String {
    let mut name = String::new();
    for byte in device.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    if name.len() > LONGEST_NAME {
        name.truncate(LONGEST_NAME);
        name.push_str(&format!("%{:032x}", xxhash_rust::xxh3::xxh3_128(device.as_bytes())));
    }
    format!("device-{name}.lock")
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use super::*;

    async fn lock(folder: &Path, device: &str) -> DeviceLock {
        DeviceLock::acquire(folder, device, &CancellationToken::new(), |_| {}).await.unwrap()
    }

    #[tokio::test]
    async fn a_device_has_so_many_places_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        let place = || DeviceLock::acquire_place(folder.path(), "cuda:0", 2, &cancel);
        let (one, _two) = (place().await.unwrap(), place().await.unwrap());
        let waits = tokio::time::timeout(Duration::from_millis(100), place()).await;
        assert!(waits.is_err());
        // A place is not the device.
        let _device = lock(folder.path(), "cuda:0").await;
        drop(one);
        assert!(tokio::time::timeout(Duration::from_secs(5), place()).await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_device_is_shared_until_one_wants_it_alone_who_is_not_passed() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        let share = || DeviceLock::share(folder.path(), "cuda:0", &cancel);
        let (one, two) = (share().await.unwrap(), share().await.unwrap());
        let alone = {
            let folder = folder.path().to_owned();
            tokio::spawn(async move { lock(&folder, "cuda:0").await })
        };
        tokio::time::sleep(Duration::from_millis(200)).await;
        // A third would go on using it, and the one who waits would wait for ever.
        assert!(tokio::time::timeout(Duration::from_millis(100), share()).await.is_err());
        assert!(!alone.is_finished());
        drop((one, two));
        let alone = tokio::time::timeout(Duration::from_secs(5), alone).await.unwrap().unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(100), share()).await.is_err());
        drop(alone);
        assert!(tokio::time::timeout(Duration::from_secs(5), share()).await.unwrap().is_ok());
        cancel.cancel();
        assert!(matches!(share().await, Err(LockError::Cancelled { .. })));
    }

    #[test]
    fn names_of_files_are_safe_and_never_shared() {
        let long = "x".repeat(1000);
        let devices = [
            "cuda:0",
            "cuda-0",
            "cuda%3a0",
            "sim:h200",
            "",
            ".",
            "..",
            "../../etc/passwd",
            "a/b",
            "ü\0\n",
            &long,
        ];
        let names: std::collections::HashSet<_> = devices.iter().map(|device| file_name(device)).collect();
        assert_eq!(names.len(), devices.len());
        for name in names {
            assert!(
                name.len() <= 255 && !name.starts_with('.') && !name.contains(['/', '\\', ':', '\0']),
                "{name}"
            );
        }
        assert_eq!(file_name("cuda:0"), "device-cuda%3a0.lock");
        assert_ne!(file_name(&format!("{long}a")), file_name(&format!("{long}b")));
    }

    #[tokio::test]
    async fn a_second_lock_waits_is_told_who_holds_the_first_and_gets_it_after() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path(), "cuda:0").await;
        drop(lock(folder.path(), "cuda:1").await);
        let told = Arc::new(Mutex::new(Vec::new()));
        let waiter = {
            let (told, path) = (told.clone(), folder.path().to_owned());
            tokio::spawn(async move {
                let on_wait = |holder| told.lock().unwrap().push(holder);
                DeviceLock::acquire(&path, "cuda:0", &CancellationToken::new(), on_wait).await
            })
        };
        while told.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!waiter.is_finished());
        let holder = told.lock().unwrap()[0].unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert!(holder.held_seconds() < 60);
        drop(first);
        let second = waiter.await.unwrap().unwrap();
        assert_eq!(super::holder(folder.path(), "cuda:0").unwrap().pid, std::process::id());
        drop(second);
        assert_eq!(super::holder(folder.path(), "cuda:0"), None);
        assert_eq!(told.lock().unwrap().iter().flatten().count(), 1, "the same holder is told once");
    }

    #[tokio::test]
    async fn waiting_ends_when_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let _first = lock(folder.path(), "cuda:0").await;
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let result = DeviceLock::acquire(folder.path(), "cuda:0", &cancel, move |_| stop.cancel()).await;
        assert!(matches!(result, Err(LockError::Cancelled { .. })));
    }

    #[tokio::test]
    async fn a_folder_that_can_not_be_made_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("locks"), "a file is in the way").unwrap();
        let cancel = CancellationToken::new();
        let error = DeviceLock::acquire(folder.path(), "cuda:0", &cancel, |_| {}).await.unwrap_err();
        assert!(matches!(error, LockError::Unavailable { .. }));
        assert!(error.to_string().contains("STITCHCUDA_RUNTIME_DIR"), "{error}");
    }

    const CHILD_FOLDER: &str = "STITCH_TEST_LOCK_FOLDER";

    /// Not a test by itself: what the child process of the next test runs.
    #[tokio::test]
    async fn child_that_holds_a_lock() {
        let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
        let _lock = lock(Path::new(&folder), "cuda:0").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    fn start_holder(folder: &Path) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "locks::tests::child_that_holds_a_lock"])
            .env(CHILD_FOLDER, folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[tokio::test]
    async fn a_killed_process_leaves_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start_holder(folder.path());
        let deadline = Instant::now() + Duration::from_secs(30);
        let held = loop {
            if let Some(holder) = holder(folder.path(), "cuda:0") {
                break holder;
            }
            assert!(Instant::now() < deadline, "the child never locked");
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(held.pid, child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let started = Instant::now();
        let _lock = lock(folder.path(), "cuda:0").await;
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(holder(folder.path(), "cuda:0").unwrap().pid, std::process::id());
    }
}
