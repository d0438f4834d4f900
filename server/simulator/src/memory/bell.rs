//! Wakes threads of the program: a count in a page behind the region, on which they sleep.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{LENGTH, PAGE};

/// The page that both sides map. What the program writes there harms its own threads alone.
#[derive(Debug)]
pub struct Bell(NonNull<AtomicU32>);

// SAFETY: the page is mapped as long as the bell lives, and is touched as an atomic alone.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// Maps the page of the file that follows the region.
    pub(super) fn map(file: &OwnedFd) -> io::Result<Self> {
        let size = usize::try_from(PAGE).map_err(io::Error::other)?;
        let offset = i64::try_from(LENGTH).map_err(io::Error::other)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of a valid descriptor, at a place of the system's choice.
        let page = unsafe {
            libc::mmap(ptr::null_mut(), size, protection, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(page.cast()).map(Self).ok_or_else(|| io::Error::other("mapped at 0"))
    }

    fn counter(&self) -> &AtomicU32 {
        // SAFETY: the page lives as long as `self`, and starts with zeros.
        unsafe { self.0.as_ref() }
    }

    /// How often it has rung.
    pub fn count(&self) -> u32 {
        self.counter().load(Ordering::Acquire)
    }

    /// Wakes all that sleep.
    pub fn ring(&self) {
        self.counter().fetch_add(1, Ordering::Release);
        // SAFETY: a futex of this mapping; nobody is woken where nobody sleeps.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, and nobody holds a reference past `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE as usize) };
    }
}
