//! Which files a profile may speak of.

use std::path::PathBuf;

use ignore::WalkBuilder;
use stitch_profiles::python::Workspace;

/// Files that are looked at, at most: a folder may be a whole home.
const MOST_FILES: usize = 100_000;

/// The Python files of folders, without what a `.gitignore` leaves out.
pub fn of_folders(folders: Vec<PathBuf>) -> Workspace {
    let Some((first, others)) = folders.split_first() else { return Workspace::default() };
    let mut walk = WalkBuilder::new(first);
    for folder in others {
        walk.add(folder);
    }
    let entries = walk.build().filter_map(|entry| Some(entry.ok()?.into_path()));
    let python = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "py");
    let files = entries.take(MOST_FILES).filter(python).collect();
    Workspace { folders, files, from_elsewhere: false }
}
