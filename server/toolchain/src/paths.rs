//! One spelling for each file, whatever it was called by.

use std::path::{Component, Path, PathBuf};

/// `path`, which may be relative to `base`, as an absolute path without `.` and `..`, with links followed where it exists. Without a
/// base it is relative to the folder of this process.
pub fn absolute(path: &Path, base: Option<&Path>) -> PathBuf {
    let joined = base.map_or_else(|| path.to_owned(), |base| base.join(path));
    let joined = std::path::absolute(&joined).unwrap_or(joined);
    std::fs::canonicalize(&joined).unwrap_or_else(|_| without_dots(&joined))
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
