//! A memory file and its mapping. The only place that maps or touches the region outside of running kernels.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::PAGE;
use super::bell::Bell;

/// Where the first region of a process lies. Far from where Linux puts programs, heaps, libraries and stacks on x86-64 and
/// on AArch64 with 48-bit addresses, and above the windows of shared and local memory.
pub const FIRST_BASE: u64 = 0x2000_0000_0000;

/// Length of a region in bytes: 1 TiB of addresses. Pages cost nothing until they are touched.
pub const LENGTH: u64 = 1 << 40;

/// How many places are tried.
const PLACES: u64 = 16;

/// An address of this process as a pointer.
fn pointer(address: u64) -> *mut libc::c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// A memory file, mapped whole.
#[derive(Debug)]
pub(super) struct Region {
    base: u64,
    file: OwnedFd,
    bell: Bell,
}

impl Region {
    /// Makes the file and maps it.
    pub(super) fn map() -> io::Result<Self> {
        // SAFETY: the name is a C string; the call has no other preconditions.
        let raw = unsafe { libc::memfd_create(c"stitchcuda-device-memory".as_ptr(), libc::MFD_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just made and is owned by nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(raw) };
        let length = i64::try_from(LENGTH + PAGE).map_err(io::Error::other)?;
        // SAFETY: a valid descriptor.
        if unsafe { libc::ftruncate(file.as_raw_fd(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
        for place in 0..PLACES {
            let base = FIRST_BASE + place * LENGTH;
            match map_file(&file, base, LENGTH, 0) {
                Ok(()) => {
                    let bell = Bell::map(&file)?;
                    return Ok(Self { base, file, bell });
                }
                Err(error) => failure = error,
            }
        }
        let message =
            format!("can't map {LENGTH:#x} bytes of simulated device memory at {FIRST_BASE:#x}: {failure}");
        Err(io::Error::new(failure.kind(), message))
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Writes `bytes` at `address`. The caller has checked that the range is allocated.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) {
        // SAFETY: an allocated range lies inside the mapping (or an alias of it), which lives as long as `self` and is
        // never behind a Rust reference. The program may race with this, as it may with a device.
        unsafe { ptr::copy(bytes.as_ptr(), pointer(address).cast(), bytes.len()) }
    }

    /// Reads all of `bytes` from `address`. The caller has checked that the range is allocated.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) {
        // SAFETY: as in `write`.
        unsafe { ptr::copy(pointer(address).cast(), bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Makes a range zero again, and gives its pages back.
    pub(super) fn clear(&self, address: u64, size: u64) {
        if size == 0 {
            return;
        }
        let (Ok(offset), Ok(length)) = (i64::try_from(address - self.base), i64::try_from(size)) else {
            return;
        };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // Pages that lie in part outside are zeroed in that part and kept.
        // SAFETY: a valid descriptor; the range lies inside the file.
        let failed = unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, length) } != 0;
        if failed {
            // SAFETY: as in `write`.
            unsafe { ptr::write_bytes(pointer(address).cast::<u8>(), 0, size as usize) }
        }
    }

    /// Maps the pages at `backing` a second time, at `address`, which must be free.
    pub(super) fn alias(&self, address: u64, size: u64, backing: u64) -> io::Result<()> {
        map_file(&self.file, address, size, backing - self.base)
    }

    /// Takes an alias away.
    pub(super) fn unalias(&self, address: u64, size: u64) {
        // SAFETY: the range was mapped by `alias`, and its owner has taken it from the table: nobody looks there any more.
        unsafe { libc::munmap(pointer(address), size as usize) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.unalias(self.base, LENGTH);
    }
}

/// Maps `length` bytes of `file` from `offset` at `address`, if nothing is there.
fn map_file(file: &OwnedFd, address: u64, length: u64, offset: u64) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let offset = i64::try_from(offset).map_err(io::Error::other)?;
    let size = usize::try_from(length).map_err(io::Error::other)?;
    // SAFETY: `MAP_FIXED_NOREPLACE` never touches what is mapped already.
    let mapped = unsafe { libc::mmap(pointer(address), size, protection, flags, file.as_raw_fd(), offset) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    if mapped != pointer(address) {
        // Kernels before 4.17 take the address for a wish.
        // SAFETY: the range was mapped just now by us.
        unsafe { libc::munmap(mapped, size) };
        return Err(io::Error::from(io::ErrorKind::AddrInUse));
    }
    // SAFETY: the range was just mapped. Core dumps leave the region out: it is as long as 1 TiB.
    unsafe { libc::madvise(mapped, size, libc::MADV_DONTDUMP) };
    Ok(())
}
