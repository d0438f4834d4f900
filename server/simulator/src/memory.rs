//! The memory that a simulated device and the program share.
//!
//! Device addresses are plain addresses of this process, and of the program's: one memory file is mapped at the same place
//! in both. So a pointer needs no translation, wherever it is stored. [`Memory`] says which parts of that region are
//! allocated; every access of a kernel is checked against a [snapshot](Memory::snapshot) of that table, never against what
//! happens to be mapped.
//!
//! Allocations never touch: between two lies a guard gap as long as the first (at least 256 bytes, at most 1 MiB), and a
//! freed place is not given out again at once. So an access past an end, or to what was freed, is seen as such.

mod allocations;
mod bell;
mod region;
mod table;
#[cfg(test)]
mod tests;
mod track;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use allocations::Allocations;
pub use bell::Bell;
use region::Region;
pub use region::{FIRST_BASE, LENGTH};
use table::Table;
pub use track::{Stamps, Track};

/// The least alignment of an allocation, in bytes: what `cudaMalloc` promises.
///
/// Source: CUDA C++ Programming Guide, "Device Memory Accesses": "any address of a variable residing in global memory or
/// returned by one of the memory allocation routines … is always aligned to at least 256 bytes".
pub const MIN_ALIGN: u64 = 256;

/// A page, in bytes: what the program may touch ([`Kind::Managed`], [`Kind::Pinned`]) is protected by whole pages.
pub const PAGE: u64 = 4096;

/// What an allocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `cudaMalloc` and its kin: the host may not touch it.
    Device,
    /// `cudaMallocManaged`: both sides.
    Managed,
    /// `cudaMallocHost`, `cudaHostRegister`: host memory that the device sees.
    Pinned,
    /// Variables of a module (`__device__`, `__constant__`).
    Module,
    /// `malloc` in a kernel.
    Heap,
}

impl Kind {
    /// Whether the host program may read and write it directly.
    #[must_use]
    pub fn seen_by_host(self) -> bool {
        matches!(self, Self::Managed | Self::Pinned)
    }
}

/// A piece of allocated memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allocation {
    /// Its first address.
    pub start: u64,
    /// Its length in bytes, as asked for; may be 0, then no address is inside.
    pub size: u64,
    /// What it is for.
    pub kind: Kind,
}

impl Allocation {
    /// The first address past it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.size
    }

    /// Whether `size` bytes from `address` lie inside.
    #[must_use]
    pub fn contains(&self, address: u64, size: u64) -> bool {
        address >= self.start && address.checked_add(size).is_some_and(|end| end <= self.end())
    }
}

/// The limit is reached, or no gap is long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("can't allocate {asked} bytes: {used} of {limit} are in use")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes in use.
    pub used: u64,
    /// Bytes that may be in use.
    pub limit: u64,
}

/// No allocation starts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address:#x} is not the start of an allocation")]
pub struct NotAllocated {
    /// The address.
    pub address: u64,
}

/// A range that does not lie inside one allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{size} bytes at {address:#x} are not inside one allocation")]
pub struct OutOfRange {
    /// First address of the range.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
}

/// The shared region and what is allocated in it. All methods lock inside and may be called from any thread.
#[derive(Debug)]
pub struct Memory {
    region: Region,
    table: Mutex<Table>,
    generation: AtomicU64,
    snapshot: Mutex<Option<Arc<Allocations>>>,
    /// What is remembered of the bytes of each allocation, where that is wanted.
    tracks: Option<Mutex<Tracks>>,
}

/// What is remembered of bytes, by first address.
#[derive(Debug, Default)]
struct Tracks {
    by_start: BTreeMap<u64, Arc<Track>>,
    /// Allocations so far.
    made: u64,
}

impl Memory {
    /// Maps a fresh region, of which `limit` bytes may be allocated in all.
    ///
    /// The region lies at [`FIRST_BASE`], or where another of this process is there already, at the next multiple of
    /// [`LENGTH`] that is free.
    ///
    /// # Errors
    /// Where the system has no memory files, or its address space has no place for the region (`ulimit -v`).
    pub fn new(limit: u64) -> io::Result<Self> {
        let region = Region::map()?;
        let table = Table::new(region.base(), LENGTH, limit);
        Ok(Self {
            region,
            table: Mutex::new(table),
            generation: AtomicU64::new(0),
            snapshot: Mutex::new(None),
            tracks: None,
        })
    }

    /// The same memory, with what was written and by whom remembered from here on.
    #[must_use]
    pub fn tracked(self) -> Self {
        Self { tracks: Some(Mutex::default()), ..self }
    }

    /// The first address of the region.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.region.base()
    }

    /// The memory file behind the region, to be mapped by the program. Offset 0 is [`base`](Self::base).
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.region.file()
    }

    /// What threads of the program sleep on. Its page is the one at offset [`LENGTH`] of the file.
    #[must_use]
    pub fn bell(&self) -> &Bell {
        self.region.bell()
    }

    /// Bytes that may be allocated in all.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.table().limit()
    }

    /// Sets how many bytes there may be of [`Kind::Heap`]; as many as of all at first.
    pub fn limit_heap(&self, limit: u64) {
        self.table().limit_heap(limit);
    }

    /// Bytes in use, each allocation rounded up to [`MIN_ALIGN`] (what the host may touch: to [`PAGE`]).
    #[must_use]
    pub fn used(&self) -> u64 {
        self.table().used()
    }

    /// The most bytes that were ever in use at once.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.table().peak()
    }

    /// Allocates `size` bytes at a multiple of `align` (at least [`MIN_ALIGN`]; a power of two). Fresh memory is zero.
    ///
    /// An allocation of zero bytes has a place of its own, which no address is inside.
    ///
    /// # Errors
    /// Where that would exceed the limit, or no gap is long enough.
    pub fn allocate(&self, size: u64, align: u64, kind: Kind) -> Result<u64, OutOfMemory> {
        let start = self.table().allocate(size, align, kind)?;
        if let Some(mut tracks) = self.tracks() {
            tracks.made += u64::from(matches!(kind, Kind::Device | Kind::Managed | Kind::Pinned));
            let track = Track::new(Allocation { start, size, kind }, tracks.made);
            tracks.by_start.insert(start, Arc::new(track));
        }
        self.changed();
        Ok(start)
    }

    /// Frees the allocation that starts at `start`, and gives its pages back to the system.
    ///
    /// # Errors
    /// Where no allocation starts there.
    pub fn free(&self, start: u64) -> Result<(), NotAllocated> {
        let mut table = self.table();
        let allocation = table.free(start)?;
        // Under the lock: the place must not be given out before it is empty.
        self.region.clear(allocation.start, allocation.size);
        drop(table);
        if let Some(mut tracks) = self.tracks() {
            tracks.by_start.remove(&start);
        }
        self.changed();
        Ok(())
    }

    /// Says what the allocation that starts at `start` is called.
    pub fn label(&self, start: u64, label: &str) {
        if let Some(mut tracks) = self.tracks()
            && let Some(track) = tracks.by_start.get_mut(&start)
        {
            *track = Arc::new(track.labelled(label.to_owned()));
        }
        self.changed();
    }

    /// Bytes are written by what [`write`](Self::write) does not see.
    pub fn mark(&self, address: u64, size: u64) {
        if self.tracks.is_some()
            && let Some(track) = self.snapshot().track(address)
        {
            track.mark(address, size);
        }
    }

    /// Whether all of these bytes were written, as far as that is remembered.
    #[must_use]
    pub fn is_written(&self, address: u64, size: u64) -> bool {
        self.tracks.is_none()
            || self.snapshot().track(address).is_none_or(|track| track.is_written(address, size))
    }

    /// The allocation that `address` lies in.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Allocation> {
        self.table().find(address)
    }

    /// The allocation that holds all of `size` bytes from `address`.
    ///
    /// # Errors
    /// Where there is none.
    pub fn check(&self, address: u64, size: u64) -> Result<Allocation, OutOfRange> {
        let found = self.find(address).filter(|found| found.contains(address, size));
        found.ok_or(OutOfRange { address, size })
    }

    /// The table as it is now, for look-ups without a lock. Made once for each state of the table.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Allocations> {
        let mut kept = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = &*kept {
            return Arc::clone(snapshot);
        }
        let table = self.table();
        let (all, freed) = (table.all(), table.freed());
        drop(table);
        let tracks =
            self.tracks().map_or_else(Vec::new, |tracks| tracks.by_start.values().cloned().collect());
        let fresh = Arc::new(Allocations::new(all).with(tracks, freed));
        *kept = Some(Arc::clone(&fresh));
        fresh
    }

    /// A number that differs after each change of the table: a running kernel may compare it with the one from before its
    /// snapshot.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Copies `bytes` to `address`.
    ///
    /// # Errors
    /// Where the destination is not inside one allocation; nothing is written then.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        self.check(address, bytes.len() as u64)?;
        self.region.write(address, bytes);
        self.mark(address, bytes.len() as u64);
        Ok(())
    }

    /// Copies to `to` what was read at `from`. Bytes that nothing has written stay such.
    ///
    /// # Errors
    /// Where the destination is not inside one allocation; nothing is written then.
    pub fn copy(&self, from: u64, to: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        let size = bytes.len() as u64;
        if self.is_written(from, size) {
            return self.write(to, bytes);
        }
        self.check(to, size)?;
        self.region.write(to, bytes);
        let now = self.snapshot();
        if let (Some(source), Some(target)) = (now.track(from), now.track(to)) {
            let written = (0..size).filter(|at| source.is_written(from + at, 1));
            written.for_each(|at| target.mark(to + at, 1));
        }
        Ok(())
    }

    /// Copies from `address` into all of `bytes`.
    ///
    /// # Errors
    /// Where the source is not inside one allocation.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), OutOfRange> {
        self.check(address, bytes.len() as u64)?;
        self.region.read(address, bytes);
        Ok(())
    }

    /// Makes memory of the program's own, `size` bytes at `address` (whole pages), part of the device's: the pages behind
    /// the allocation at `backing` are mapped there too, at the same address as in the program, and are found there.
    /// Until [`release`](Self::release).
    ///
    /// # Errors
    /// Where this process has something else at those addresses, or `address` is not at a page.
    pub fn adopt(&self, address: u64, size: u64, backing: u64) -> io::Result<()> {
        self.region.alias(address, size, backing)?;
        self.table().adopt(Allocation { start: address, size, kind: Kind::Pinned });
        self.changed();
        Ok(())
    }

    /// Undoes [`adopt`](Self::adopt).
    ///
    /// # Errors
    /// Where nothing was adopted at `address`.
    pub fn release(&self, address: u64) -> Result<(), NotAllocated> {
        let adopted = self.table().release(address)?;
        self.changed();
        self.region.unalias(adopted.start, adopted.size);
        Ok(())
    }

    /// Writes down that the table changed. After the change, so that a snapshot taken in between is dropped.
    fn changed(&self) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn tracks(&self) -> Option<MutexGuard<'_, Tracks>> {
        self.tracks.as_ref().map(|tracks| tracks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
