//! What a file's own headers define: macros that stand for attributes, and constants.
//!
//! `#define KERNEL __global__` in a header makes kernels in a source that never says `__global__`. Only headers named in
//! quotes are read, since those are the project's, and only so many that a keystroke never waits for a library's forest.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use stitch_analysis::{Workspace, decode};

use crate::units;

/// Headers read for one file.
const MOST_HEADERS: usize = 64;
/// Size of one header.
const MOST_BYTES: u64 = 1 << 20;
/// Folders above the file in which a header is looked for.
const MOST_FOLDERS_UP: usize = 4;
/// Folders that are looked into in each of them.
const USUAL: [&str; 4] = ["", "include", "src", "inc"];

/// Reads the headers that `text`, the file at `path`, includes in quotes, and theirs. Reads files: for a thread that may
/// wait. What can't be read is left out.
pub fn workspace_of(path: &Path, text: &str) -> Workspace {
    let mut workspace = Workspace::default();
    texts(path, text).iter().for_each(|header| workspace.add(header));
    workspace
}

/// The texts of the headers of a file, nearest first.
pub fn texts(path: &Path, text: &str) -> Vec<String> {
    headers(path, text).iter().filter_map(|header| read(header)).collect()
}

/// The names that a text includes in quotes, each once, in their order: as long as they stay, so do its own headers.
pub fn quoted(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = text.lines().filter_map(units::included_in_quotes);
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

/// The headers of a file, nearest first, each once.
pub fn headers(path: &Path, text: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut seen = HashSet::from([path.to_path_buf()]);
    let mut next = 0;
    let mut names = included(path, text);
    loop {
        for (from, name) in names.drain(..) {
            if found.len() < MOST_HEADERS
                && let Some(header) = resolve(&from, &name)
                && seen.insert(header.clone())
            {
                found.push(header);
            }
        }
        let Some(header) = found.get(next) else { return found };
        if let Some(text) = read(header) {
            names = included(header, &text);
        }
        next += 1;
    }
}

/// The names in quotes after `#include`, with the folder they are relative to.
fn included(path: &Path, text: &str) -> Vec<(PathBuf, String)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    text.lines()
        .filter_map(|line| {
            let name = units::included_in_quotes(line)?;
            Some((folder.to_path_buf(), name.to_owned()))
        })
        .collect()
}

/// The folders that are there in which headers of a file at `path` are looked for by their names.
pub fn folders(path: &Path) -> Vec<PathBuf> {
    let own = path.parent().unwrap_or(Path::new(""));
    candidates(own).filter(|folder| folder.is_dir()).collect()
}

fn candidates(own: &Path) -> impl Iterator<Item = PathBuf> {
    own.ancestors().take(MOST_FOLDERS_UP).flat_map(|up| USUAL.map(|usual| up.join(usual)))
}

/// Where a header is: beside the file, or in one of the folders above and their usual ones.
fn resolve(folder: &Path, name: &str) -> Option<PathBuf> {
    candidates(folder).find_map(|candidate| {
        let header = candidate.join(name).canonicalize().ok()?;
        header.is_file().then_some(header)
    })
}

/// A header's text, unless it is too large, can't be read, or is UTF-16.
pub fn read(path: &Path) -> Option<String> {
    if fs::metadata(path).ok()?.len() > MOST_BYTES {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    decode(&bytes).map(|decoded| decoded.text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_headers_are_read_once_and_those_in_angle_brackets_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src/kernels")).unwrap();
        fs::create_dir_all(root.join("include")).unwrap();
        fs::write(root.join("include/one.h"), "#include \"two.h\"\n#define KERNEL __global__\n").unwrap();
        fs::write(root.join("include/two.h"), "#pragma once\n  # include \"one.h\"\n").unwrap();
        let text = "#include <one.h>\n#include \"one.h\"\n#include \"missing.h\"\nKERNEL void k() {}\n";
        let path = root.join("src/kernels/k.cu");
        assert_eq!(headers(&path, text), [root.join("include/one.h"), root.join("include/two.h")]);
        assert_eq!(headers(&path, "#include <one.h>\n"), Vec::<PathBuf>::new());
        assert_eq!(quoted(text), ["one.h", "missing.h"]);
        assert_eq!(texts(&path, text).len(), 2);
        assert_eq!(
            folders(&path).iter().take(4).collect::<Vec<_>>(),
            [&root.join("src/kernels"), &root.join("src"), &root, &root.join("include")]
        );
    }
}
