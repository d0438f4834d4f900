//! Fixtures.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A fixture, unpacked into a folder of its own.
pub struct Fixture {
    _folder: tempfile::TempDir,
    /// The file.
    pub path: PathBuf,
}

/// The export of Nsight Systems with this name.
pub fn nsys(name: &str) -> Fixture {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nsys").join(format!("{name}.gz"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(packed).unwrap()).read_to_end(&mut bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Fixture { _folder: folder, path }
}
