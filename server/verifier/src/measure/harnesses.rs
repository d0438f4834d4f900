//! Built harnesses of the versions of one target.
//!
//! Each candidate is timed against the best version so far, whose harness is built once. And of two versions that nvcc makes the same machine code of,
//! launched alike, neither is faster: there is nothing to time.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};

use stitch_simulator::image::{MachineCode, machine_code};

use super::MeasureError;
use super::timed::Harness;
use crate::program::Built;
use crate::verify::VerifyError;

/// Harnesses that are kept, a few megabytes each: those of the best version's kernels, and of what was tried last.
const MOST: usize = 16;

/// Harnesses that were built for one target. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Harnesses(Arc<Mutex<VecDeque<(Key, Built)>>>);

/// What a harness is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    /// Of a harness around a kernel in the file `version`.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn of(harness: &Harness, version: &Path) -> Result<Self, MeasureError> {
        let text = std::fs::read(version)
            .map_err(|source| VerifyError::File { path: version.to_owned(), source })?;
        let mut hasher = DefaultHasher::new();
        (&harness.text, version, text).hash(&mut hasher);
        Ok(Self(hasher.finish()))
    }
}

impl Harnesses {
    /// One that was built before.
    pub(super) fn get(&self, key: Key) -> Option<Built> {
        let kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.iter().find(|one| one.0 == key).map(|one| one.1.clone())
    }

    /// Keeps one, and lets the oldest go where there are too many.
    pub(super) fn put(&self, key: Key, built: &Built) {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.retain(|one| one.0 != key);
        kept.push_back((key, built.clone()));
        if kept.len() > MOST {
            kept.pop_front();
        }
    }
}

/// A harness that is built, with what tells whether it is another's equal.
pub(super) struct Ready {
    pub built: Built,
    /// The text, the version's path left out: how the kernel is launched, and on what.
    around: String,
}

impl Ready {
    /// A harness around a kernel in the file `version`.
    pub fn new(built: Built, harness: &Harness, version: &Path) -> Self {
        Self { built, around: harness.text.replace(&*version.to_string_lossy(), "") }
    }

    /// Whether a device does the same for both. `false` where that can't be told.
    pub fn does_the_same(&self, other: &Self) -> bool {
        let code = |ready: &Self| -> Option<MachineCode> {
            machine_code(&std::fs::read(ready.built.executable()?).ok()?).ok()?
        };
        self.around == other.around && code(self).is_some_and(|one| code(other) == Some(one))
    }
}
