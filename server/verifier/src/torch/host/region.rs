//! Files in memory through which tensors pass. The parent makes them, and reads and writes them by `pread` and `pwrite` only: a child can
//! neither shrink them (they are sealed) nor move the parent's place in them, and there is no mapping whose pages could go away.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::memory::Memory;

/// Bytes that one thread moves at a time.
const PIECE: usize = 16 << 20;
/// Threads that move bytes at once: more do not read memory faster, and other verifications have work to do too.
const MOVERS: usize = 4;

/// A sealed file in memory.
#[derive(Clone, Debug)]
pub(super) struct Region {
    file: Arc<File>,
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
        Ok(Self { file: Arc::new(file), size })
    }

    /// How many bytes it has.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Writes bytes at its beginning.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let piece = |(at, piece): (usize, &[u8])| self.file.write_all_at(piece, (at * PIECE) as u64);
        if bytes.len() <= PIECE {
            return bytes.chunks(PIECE).enumerate().try_for_each(piece);
        }
        std::thread::scope(|scope| {
            let lane =
                |lane: usize| bytes.chunks(PIECE).enumerate().skip(lane).step_by(MOVERS).try_for_each(piece);
            join((0..MOVERS).map(|at| scope.spawn(move || lane(at))).collect())
        })
    }

    /// Its first bytes, so many, as they are now. What a child writes later changes nothing of them.
    pub(super) async fn read(&self, size: u64) -> io::Result<Memory> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let file = Arc::clone(&self.file);
        let read = move || {
            let mut memory = Memory::of_size(size)?;
            fill(&file, &mut memory).map(|()| memory)
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }
}

fn fill(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    let piece = |(at, piece): (usize, &mut [u8])| file.read_exact_at(piece, (at * PIECE) as u64);
    if bytes.len() <= PIECE {
        return bytes.chunks_mut(PIECE).enumerate().try_for_each(piece);
    }
    let mut lanes: Vec<Vec<(usize, &mut [u8])>> = (0..MOVERS).map(|_| Vec::new()).collect();
    for (at, piece) in bytes.chunks_mut(PIECE).enumerate() {
        lanes[at % MOVERS].push((at, piece));
    }
    std::thread::scope(|scope| {
        let lanes = lanes.into_iter();
        join(lanes.map(|lane| scope.spawn(move || lane.into_iter().try_for_each(piece))).collect())
    })
}

/// Waits for threads.
fn join(threads: Vec<std::thread::ScopedJoinHandle<'_, io::Result<()>>>) -> io::Result<()> {
    threads
        .into_iter()
        .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
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
        let region = Region::new(5).unwrap();
        region.write(b"hello").unwrap();
        let mut shared = region.file.try_clone().unwrap();
        shared.seek(SeekFrom::Start(4)).unwrap();
        assert_eq!(region.read(5).await.unwrap()[..], b"hello"[..]);
        assert!(region.file.set_len(3).is_err());
        assert!(region.file.set_len(9).is_err());
        shared.write_all(b"0").unwrap();
        assert!(shared.write_all(b"past the end").is_err());
        assert_eq!(region.read(5).await.unwrap()[..], b"hell0"[..]);
        assert_eq!(region.read(2).await.unwrap()[..], b"he"[..]);
        assert!(region.read(6).await.is_err());
        assert!(fcntl(region.as_fd(), FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_WRITE)).is_err());
        assert!(Region::new(0).unwrap().read(0).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn many_threads_move_every_byte_to_its_place() {
        let bytes: Vec<u8> = (0..PIECE * 6 + 12_345).map(|at| (at % 251) as u8).collect();
        let region = Region::new(bytes.len() as u64).unwrap();
        region.write(&bytes).unwrap();
        assert!(region.read(bytes.len() as u64).await.unwrap()[..] == bytes[..]);
    }
}
