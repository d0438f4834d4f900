//! Removes a folder whatever a program has made of it.
//!
//! `std::fs::remove_dir_all` opens one folder for each level: 10,000 nested folders run it out of file descriptors, and
//! paths grow past what the kernel takes. Here each nested folder is first moved up to the top, so that every path is
//! short, nothing recurses, and one folder is open at a time. Folders without permissions are given them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Removes a folder and everything in it. A symbolic link is removed, never followed.
///
/// # Errors
/// The first error met; the rest is removed as far as possible. A folder that is not there is no error.
pub(crate) fn remove_folder(top: &Path) -> io::Result<()> {
    match fs::symlink_metadata(top) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.is_dir() => return fs::remove_file(top),
        Ok(_) => {}
    }
    let mut first_error = None;
    let mut moved = 0_u64;
    let mut waiting: Vec<PathBuf> = Vec::new();
    empty(top, top, &mut moved, &mut waiting, &mut first_error);
    while let Some(folder) = waiting.pop() {
        empty(&folder, top, &mut moved, &mut waiting, &mut first_error);
        keep_first(fs::remove_dir(&folder), &mut first_error);
    }
    keep_first(fs::remove_dir(top), &mut first_error);
    first_error.map_or(Ok(()), Err)
}

/// Removes the files of one folder, and moves its folders to the top under new names.
fn empty(
    folder: &Path,
    top: &Path,
    moved: &mut u64,
    waiting: &mut Vec<PathBuf>,
    first_error: &mut Option<io::Error>,
) {
    keep_first(fs::set_permissions(folder, Permissions::from_mode(0o700)), first_error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return keep_first(Err(error), first_error),
    };
    // Collected first: moving folders into a folder that is being listed could list them again.
    for entry in entries.flatten().collect::<Vec<_>>() {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            keep_first(fs::remove_file(&path), first_error);
            continue;
        }
        if folder == top {
            waiting.push(path);
            continue;
        }
        // Moving a folder writes its `..`, which needs the right to write in it.
        keep_first(fs::set_permissions(&path, Permissions::from_mode(0o700)), first_error);
        let short = loop {
            *moved += 1;
            let short = top.join(format!(".removing-{moved}"));
            if fs::symlink_metadata(&short).is_err() {
                break short;
            }
        };
        match fs::rename(&path, &short) {
            Ok(()) => waiting.push(short),
            Err(error) => keep_first(Err(error), first_error),
        }
    }
}

fn keep_first(result: io::Result<()>, first_error: &mut Option<io::Error>) {
    if let Err(error) = result
        && error.kind() != io::ErrorKind::NotFound
        && first_error.is_none()
    {
        *first_error = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_locked_and_linked_folders_go_and_link_targets_stay() {
        let base = tempfile::tempdir().unwrap();
        let outside = base.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("keep"), "x").unwrap();
        let top = base.path().join("top");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::write(top.join("a/b/c/file"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("a/link")).unwrap();
        fs::set_permissions(top.join("a/b/c"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(top.join("a/b"), Permissions::from_mode(0o000)).unwrap();
        remove_folder(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("keep").exists());
        remove_folder(&top).unwrap();
    }

    #[test]
    fn folders_deeper_than_a_path_may_be_long_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("top");
        // Built from the inside out: each new folder takes the last one in, so that no path is ever long.
        fs::create_dir(&top).unwrap();
        let (mut inner, outer) = (top.join("d"), top.join("e"));
        fs::create_dir(&inner).unwrap();
        for _ in 0..2500 {
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join("d")).unwrap();
            fs::rename(&outer, &inner).unwrap();
            inner = top.join("d");
        }
        remove_folder(&top).unwrap();
        assert!(!top.exists());
    }
}
