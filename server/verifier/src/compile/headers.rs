//! Finds the source through which a header is compiled. A header has no flags and no instantiations of its own, so it is
//! never compiled alone.
//!
//! Includes are matched by the end of their path, without looking through include folders: a near miss costs one compile that
//! says nothing about the header, while a search through every folder would cost more than the compile.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use stitch_toolchain::compile_commands::CompileCommands;

use crate::units;

/// Files that are looked at in a workspace, and the size of one, beyond which the search gives up.
const MOST_FILES: usize = 4000;
const MOST_BYTES: u64 = 1 << 20;

/// Folders that hold no sources of the project.
const SKIPPED: [&str; 6] = ["node_modules", "target", "__pycache__", "site-packages", "venv", "third_party"];

/// Whether nvcc is given such a file itself.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|ending| {
        ["cu", "cpp", "cc", "cxx", "c"].iter().any(|known| ending.eq_ignore_ascii_case(known))
    })
}

/// The source to compile for `path`: itself, or for a header a CUDA source that includes it, directly or through other
/// headers. Those of the database go first.
pub(super) fn unit_of(
    path: &Path,
    database: Option<&CompileCommands>,
    workspace: Option<&Path>,
) -> Option<PathBuf> {
    if is_source(path) {
        return Some(path.to_owned());
    }
    let listed = database
        .into_iter()
        .flat_map(CompileCommands::files)
        .filter(|file| file.is_file())
        .map(Path::to_owned);
    let folder = workspace.filter(|folder| path.starts_with(folder)).or(path.parent());
    let mut files: Vec<PathBuf> = listed.collect();
    let own_folder: Vec<PathBuf> = path.parent().map(sources_in).unwrap_or_default();
    files.extend(own_folder);
    files.extend(folder.map(sources_under).unwrap_or_default());
    includer(path, &files)
}

/// The nearest `.cu` that reaches `header` by includes, by a search backwards from the header.
fn includer(header: &Path, files: &[PathBuf]) -> Option<PathBuf> {
    let mut seen = HashSet::new();
    let mut including: HashMap<String, Vec<&PathBuf>> = HashMap::new();
    for file in files.iter().filter(|file| seen.insert(file.as_path())) {
        for name in includes(file) {
            let base = name.rsplit('/').next().unwrap_or(&name).to_owned();
            including.entry(base).or_default().push(file);
        }
    }
    let mut waiting = VecDeque::from([header.to_owned()]);
    let mut reached: HashSet<PathBuf> = HashSet::from([header.to_owned()]);
    while let Some(current) = waiting.pop_front() {
        let Some(base) = current.file_name().and_then(|name| name.to_str()) else { continue };
        let users = including.get(base).map(Vec::as_slice).unwrap_or_default();
        if let Some(found) =
            users.iter().find(|user| user.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("cu")))
        {
            return Some((*found).clone());
        }
        for user in users {
            if reached.insert((*user).clone()) {
                waiting.push_back((*user).clone());
            }
        }
    }
    None
}

/// What a file includes, as written.
pub(super) fn includes(file: &Path) -> Vec<String> {
    let small = file.metadata().is_ok_and(|metadata| metadata.len() <= MOST_BYTES);
    let Some(bytes) = small.then(|| std::fs::read(file).ok()).flatten() else { return Vec::new() };
    let Some(decoded) = stitch_analysis::decode(&bytes) else { return Vec::new() };
    decoded.text.lines().filter_map(|line| units::included(line).map(str::to_owned)).collect()
}

fn is_code(path: &Path) -> bool {
    let endings = ["cu", "cuh", "h", "hpp", "hxx", "hh", "inl", "inc", "cuinc", "cpp", "cc", "cxx"];
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}

fn sources_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_code(path)).collect();
    found.sort();
    found.truncate(MOST_FILES);
    found
}

fn sources_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(folder) = folders.pop_front() {
        if found.len() >= MOST_FILES {
            break;
        }
        found.extend(sources_in(&folder));
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut below: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                !name.starts_with('.') && !SKIPPED.contains(&name.as_ref())
            })
            .map(|entry| entry.path())
            .collect();
        below.sort();
        folders.extend(below);
    }
    found.truncate(MOST_FILES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_compiled_through_a_source_that_reaches_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (name, text) in [
            ("inc/deep.cuh", ""),
            ("inc/mid.h", "# include <deep.cuh>\n"),
            ("src/a.cu", "#include \"other.h\"\n"),
            ("src/b.cu", "  #include \"../inc/mid.h\"\n"),
            ("src/c.cpp", "#include \"alone.cuh\"\n"),
            ("inc/alone.cuh", "#include \"alone.cuh\"\n"),
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), text).unwrap();
        }
        let unit = |name: &str| unit_of(&root.join(name), None, Some(root));
        assert_eq!(unit("inc/deep.cuh"), Some(root.join("src/b.cu")));
        assert_eq!(unit("src/a.cu"), Some(root.join("src/a.cu")));
        assert_eq!(unit("inc/alone.cuh"), None);
    }
}
