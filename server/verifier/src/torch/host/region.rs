//! Files in memory through which tensors pass. The parent makes them, and reads and writes them by `pread` and `pwrite` only: a child can
//! neither shrink them (they are sealed) nor move the parent's place in them, and there is no mapping whose pages could go away.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Bytes that are moved before other tasks have their turn.
const PIECE: usize = 32 << 20;

/// A sealed file in memory.
#[derive(Debug)]
pub(super) struct Region {
    file: File,
    size: u64,
}

impl Region {
    /// Makes one of so many bytes, which read as zero and take no memory until they are written.
    pub(super) fn new(size: u64) -> io::Result<Self> {
        let file = File::from(memfd_create("values", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
        // A file of no bytes can't be mapped.
        file.set_len(size.max(1))?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(file.as_fd(), FcntlArg::F_ADD_SEALS(seals))?;
        Ok(Self { file, size })
    }

    /// One that holds these bytes.
    pub(super) async fn of(bytes: &[u8]) -> io::Result<Self> {
        let region = Self::new(bytes.len() as u64)?;
        region.write(0, bytes).await?;
        Ok(region)
    }

    /// Writes bytes at a place.
    pub(super) async fn write(&self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let mut at = place;
        for piece in bytes.chunks(PIECE) {
            self.file.write_all_at(piece, at)?;
            at += piece.len() as u64;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// All its bytes, as they are now.
    ///
    /// The file is opened anew, since a child shares the position of the one it was given.
    pub(super) async fn read(&self) -> io::Result<Vec<u8>> {
        let size = usize::try_from(self.size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut own = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        while bytes.len() < size {
            let piece = PIECE.min(size - bytes.len());
            if own.by_ref().take(piece as u64).read_to_end(&mut bytes)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            tokio::task::yield_now().await;
        }
        Ok(bytes)
    }
}

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Memory that can be taken now without harm, in bytes: what the system says is available, less an eighth.
pub(super) fn available() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return u64::MAX };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes * 1024 / 8 * 7)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[tokio::test]
    async fn what_was_written_is_read_and_nobody_changes_its_size() {
        let region = Region::of(b"hello").await.unwrap();
        let mut shared = region.file.try_clone().unwrap();
        shared.seek(SeekFrom::Start(4)).unwrap();
        assert_eq!(region.read().await.unwrap(), b"hello");
        assert!(region.file.set_len(3).is_err());
        assert!(region.file.set_len(9).is_err());
        shared.write_all(b"0").unwrap();
        assert!(shared.write_all(b"past the end").is_err());
        assert_eq!(region.read().await.unwrap(), b"hell0");
        assert!(fcntl(region.as_fd(), FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_WRITE)).is_err());
        assert_eq!(Region::of(b"").await.unwrap().read().await.unwrap(), b"");
    }
}
