//! Files that profilers wrote on an H200, for tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a helper of a test fails like the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::Folder;

/// A file of the profiles room's own tests.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/profiles/tests/data").join(name)
}

/// Some of them, unpacked into one file of a folder.
pub fn unpacked(folder: &Folder, names: &[&str], to: &str) -> PathBuf {
    let packed: Vec<PathBuf> = names.iter().map(|name| data(name)).collect();
    let text = Command::new("zcat").args(&packed).output().unwrap();
    assert!(text.status.success(), "{}", String::from_utf8_lossy(&text.stderr));
    folder.write(to, text.stdout).unwrap()
}

/// The kernels with planted traits that most of them are about.
pub fn lines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/simulator/src/machine/tests/ptx/lines.cu")
}
