//! Large pieces of memory, which are used again: the system hands out each page of new memory with a fault of its own, which takes longer than
//! filling it.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Smaller pieces are not worth keeping.
const LEAST: usize = 1 << 20;
/// Larger ones are given back, so that a machine's memory does not lie about unused.
const MOST: usize = 1 << 30;
/// All that is kept together, in bytes.
const MOST_KEPT: usize = 3 << 30;

/// What is free to be used again.
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Memory(Vec<u8>);

impl Memory {
    /// So many bytes, which hold anything.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn of_size(size: usize) -> io::Result<Self> {
        if let Some(mut bytes) = again(size) {
            bytes.truncate(size);
            return Ok(Self(bytes));
        }
        // Asked for first, since what follows takes no refusal; it gives pages that are zero once they are touched.
        Vec::<u8>::new().try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let bytes = vec![0; size];
        Ok(Self(bytes))
    }
}

/// Gives the system what is kept and not used.
pub fn give_back() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The smallest of the free pieces that has so many bytes and not four times as many.
fn again(size: usize) -> Option<Vec<u8>> {
    if !(LEAST..=MOST).contains(&size) {
        return None;
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |bytes: &Vec<u8>| bytes.len() >= size && bytes.len() / 4 < size;
    let (at, _) =
        kept.iter().enumerate().filter(|(_, bytes)| fits(bytes)).min_by_key(|(_, bytes)| bytes.len())?;
    Some(kept.swap_remove(at))
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        if !(LEAST..=MOST).contains(&bytes.len()) {
            return;
        }
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().map(Vec::len).sum::<usize>() + bytes.len() <= MOST_KEPT {
            kept.push(bytes);
        }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        match Self::of_size(self.0.len()) {
            Ok(mut copy) => {
                copy.0.copy_from_slice(&self.0);
                copy
            }
            // As every other copy that memory does not suffice for.
            Err(_) => Self(self.0.clone()),
        }
    }
}

impl From<Vec<u8>> for Memory {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_the_size_that_was_asked_for_and_copies_are_apart() {
        for size in [0, 1, LEAST + 7, LEAST * 2, LEAST + 7, LEAST] {
            let mut one = Memory::of_size(size).unwrap();
            assert_eq!(one.len(), size);
            one.fill(7);
            let two = one.clone();
            one.fill(9);
            assert!(two.iter().all(|byte| *byte == 7) && one != two || size == 0);
        }
        assert!(Memory::of_size(usize::MAX / 2).is_err());
    }
}
