//! How much the cache holds, without counting it each time.
//!
//! The sum is one number in a file, which all processes add to under a file lock. Only when it passes the limit are the
//! entries counted, and the least recently used removed. The sum may be too high (an entry that was put twice, a process that was killed
//! before its entry appeared), and then the count comes early and mends it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The folder where entries are written before they are renamed into place.
pub(super) const ASIDE: &str = "aside";
/// The file that holds the sum.
const SUM: &str = "size";
/// A file aside that is older than this was left by a process that was killed.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);
/// How long to wait for another process that counts. Then the addition is kept for the next time.
const PATIENCE: Duration = Duration::from_millis(200);
/// What is left after removing, in tenths of the limit: so that the next put does not remove again.
const KEEP_TENTHS: u64 = 9;

#[derive(Debug)]
pub(super) struct Ledger {
    folder: PathBuf,
    limit: u64,
    /// Bytes added while another process held the lock for too long.
    pending: AtomicU64,
}

struct Entry {
    used: SystemTime,
    size: u64,
    path: PathBuf,
}

impl Ledger {
    pub(super) fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit, pending: AtomicU64::new(0) }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Makes room for `size` bytes that are about to appear, and adds them to the sum.
    pub(super) fn add(&self, size: u64) -> io::Result<()> {
        let path = self.folder.join(SUM);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if !lock(&file)? {
            self.pending.fetch_add(size, Ordering::Relaxed);
            return Ok(());
        }
        let size = size.saturating_add(self.pending.swap(0, Ordering::Relaxed));
        let sum = match read_sum(&mut file).map(|sum| sum.saturating_add(size)) {
            Some(sum) if sum <= self.limit => sum,
            _ => self.make_room(size)?.saturating_add(size),
        };
        write_sum(&mut file, sum)
    }

    /// Counts all entries, and removes the least recently used until `size` more bytes fit. What is left.
    fn make_room(&self, size: u64) -> io::Result<u64> {
        self.remove_leftovers();
        let mut entries = self.entries()?;
        let mut sum: u64 = entries.iter().map(|entry| entry.size).sum();
        if sum.saturating_add(size) <= self.limit {
            return Ok(sum);
        }
        let target = (self.limit / 10).saturating_mul(KEEP_TENTHS).saturating_sub(size);
        entries.sort_by(|one, other| one.used.cmp(&other.used).then_with(|| one.path.cmp(&other.path)));
        for entry in entries {
            if sum <= target {
                break;
            }
            // One that is in use stays readable for whoever has it open. One that can't be removed is counted again.
            if std::fs::remove_file(&entry.path).is_ok() {
                sum = sum.saturating_sub(entry.size);
            }
        }
        Ok(sum)
    }

    fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for folder in std::fs::read_dir(&self.folder)? {
            let folder = folder?;
            if folder.file_name() == ASIDE || !folder.file_type()?.is_dir() {
                continue;
            }
            // Another process may remove what is listed here at any moment, so what is gone is passed over.
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let Ok(metadata) = file.metadata() else { continue };
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Entry { used, size: metadata.len(), path: file.path() });
            }
        }
        Ok(entries)
    }

    fn remove_leftovers(&self) {
        let now = SystemTime::now();
        let aside: &Path = &self.folder.join(ASIDE);
        for file in std::fs::read_dir(aside).into_iter().flatten().flatten() {
            let written = file.metadata().and_then(|metadata| metadata.modified());
            let age = written.ok().and_then(|written| now.duration_since(written).ok());
            if age.is_some_and(|age| age > LEFTOVER_AGE) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// Locks the sum. Whether it was free soon enough; a process that was stopped while it held the lock holds up nobody.
fn lock(file: &File) -> io::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The sum, or `None` when it was never written or is damaged: it is followed by its complement.
fn read_sum(file: &mut File) -> Option<u64> {
    let (mut sum, mut complement) = ([0; 8], [0; 8]);
    file.rewind().ok()?;
    file.read_exact(&mut sum).ok()?;
    file.read_exact(&mut complement).ok()?;
    let sum = u64::from_le_bytes(sum);
    (u64::from_le_bytes(complement) == !sum).then_some(sum)
}

fn write_sum(file: &mut File, sum: u64) -> io::Result<()> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
    bytes[8..].copy_from_slice(&(!sum).to_le_bytes());
    file.rewind()?;
    file.write_all(&bytes)
}
