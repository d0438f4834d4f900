//! Puts what a program reads where it runs, without letting it write into the workspace by its relative paths.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// How many bytes of a folder are copied for a build of a person's own.
const MOST_BYTES: u64 = 1 << 30;
/// How many entries.
const MOST_ENTRIES: usize = 50_000;

/// Why a folder could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It is too large.
    #[error("{} holds more than {} MB or {MOST_ENTRIES} files, which is too much to copy for a build. Set `cwd` of the target to a smaller folder.", folder.display(), MOST_BYTES / 1_000_000)]
    TooLarge {
        /// The folder.
        folder: PathBuf,
    },
    /// The system refused.
    #[error("{} could not be copied: {source}.", path.display())]
    System {
        /// What was copied.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Copies the folder `from` to `to`, which must not exist. Hidden entries are left out; a link is copied as a link, made absolute.
///
/// # Errors
/// It is too large, or can't be read or written.
pub fn folder(from: &Path, to: &Path) -> Result<(), CopyError> {
    let (mut bytes, mut entries) = (0u64, 0usize);
    let mut waiting = vec![(from.to_owned(), to.to_owned())];
    while let Some((from_folder, to_folder)) = waiting.pop() {
        let system = |source| CopyError::System { path: from_folder.clone(), source };
        fs::create_dir_all(&to_folder).map_err(system)?;
        for entry in fs::read_dir(&from_folder).map_err(system)? {
            let entry = entry.map_err(system)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let (path, target) = (entry.path(), to_folder.join(entry.file_name()));
            let system = |source| CopyError::System { path: path.clone(), source };
            let metadata = entry.metadata().map_err(system)?;
            entries += 1;
            if metadata.is_dir() {
                waiting.push((path, target));
            } else if metadata.is_symlink() {
                let meant = fs::read_link(&path).map_err(system)?;
                symlink(from_folder.join(meant), target).map_err(system)?;
            } else if metadata.is_file() {
                bytes += metadata.len();
                if bytes <= MOST_BYTES {
                    fs::copy(&path, target).map_err(system)?;
                }
            }
            if bytes > MOST_BYTES || entries > MOST_ENTRIES {
                return Err(CopyError::TooLarge { folder: from.to_owned() });
            }
        }
    }
    Ok(())
}

/// Fills the new folder `to` with links to the entries of `from` and to `inputs`, so that relative paths lead where they led, and new
/// files stay here. Hidden entries are left out.
///
/// # Errors
/// It can't be read or written.
pub fn links(from: &Path, inputs: &[PathBuf], to: &Path) -> Result<(), CopyError> {
    let system = |path: &Path, source| CopyError::System { path: path.to_owned(), source };
    fs::create_dir_all(to).map_err(|source| system(to, source))?;
    let entries = fs::read_dir(from).map_err(|source| system(from, source))?;
    let entries = entries.flatten().map(|entry| entry.path());
    for path in inputs.iter().cloned().chain(entries) {
        let Some(name) = path.file_name().filter(|name| !name.as_encoded_bytes().starts_with(b".")) else {
            continue;
        };
        match symlink(&path, to.join(name)) {
            // An input that is named goes before a neighbour of its name.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(system(&path, error)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_and_links_lead_home() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("from/sub")).unwrap();
        fs::create_dir_all(root.join("from/.git")).unwrap();
        fs::write(root.join("from/sub/a.txt"), "a").unwrap();
        fs::write(root.join("other.txt"), "o").unwrap();
        symlink("../other.txt", root.join("from/link.txt")).unwrap();
        super::folder(&root.join("from"), &root.join("to")).unwrap();
        assert_eq!(fs::read_to_string(root.join("to/sub/a.txt")).unwrap(), "a");
        assert_eq!(fs::read_to_string(root.join("to/link.txt")).unwrap(), "o");
        assert!(!root.join("to/.git").exists());
        links(&root.join("from"), &[root.join("other.txt")], &root.join("run")).unwrap();
        assert_eq!(fs::read_to_string(root.join("run/sub/a.txt")).unwrap(), "a");
        assert_eq!(fs::read_to_string(root.join("run/other.txt")).unwrap(), "o");
        fs::write(root.join("run/new.txt"), "").unwrap();
        assert!(!root.join("from/new.txt").exists());
        assert!(matches!(links(&root.join("no"), &[], &root.join("x")), Err(CopyError::System { .. })));
    }
}
