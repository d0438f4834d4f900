//! The files that sources name: what they include, import, or write in quotes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::Wanted;
use super::names::{Module, imports, included, modules, quoted};

/// Larger sources are not looked into.
const LARGEST_SOURCE: u64 = 4 << 20;
/// Folders above a file in which a header is looked for, and folders in each: as where it is compiled.
const MOST_FOLDERS_UP: usize = 4;
const USUAL: [&str; 4] = ["", "include", "src", "inc"];
/// Folders in which a line's names are looked for.
const MOST_PLACES: usize = 16;
/// Ends of names of files that may name others.
const SOURCES: [&str; 13] =
    ["cu", "cuh", "h", "hpp", "hh", "hxx", "inl", "inc", "cpp", "cc", "c", "cxx", "py"];

/// All files of a job, each once.
///
/// # Errors
/// A file or folder that was named and can't be read, or there are more than `most`.
pub fn of(wanted: &Wanted, most: usize) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut search = Search::new(wanted);
    for path in wanted.sources.iter().chain(&wanted.inputs) {
        let metadata = path.metadata().map_err(|error| (path.clone(), error))?;
        if metadata.is_dir() {
            search.add_folder(path, most, true)?;
        } else if metadata.is_file() {
            search.add(clean(path));
        } else {
            return Err((path.clone(), io::Error::other("it is neither a file nor a folder")));
        }
    }
    for folder in &wanted.folders {
        search.add_folder(folder, most, false)?;
    }
    let database = wanted.workspace.join("compile_commands.json");
    for path in [database, wanted.workspace.join("build/compile_commands.json")] {
        if path.is_file() && (search.is_ours(&path) || is_list(&path)) {
            search.add(path);
        }
    }
    let folders: Vec<PathBuf> = search.named.clone();
    for argument in &wanted.arguments {
        for folder in &folders {
            search.consider(&folder.join(argument));
            quoted(argument).for_each(|name| search.consider(&folder.join(name)));
        }
    }
    let mut next = 0;
    while let Some(path) = search.found.get(next).cloned() {
        if search.found.len() > most {
            let error = io::Error::other(format!("with it, a job would be about more than {most} files"));
            return Err((path, error));
        }
        search.look_into(&path);
        next += 1;
    }
    Ok(search.found)
}

struct Search<'a> {
    wanted: &'a Wanted,
    found: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    /// The folders of files that were named, from which files may be taken too.
    named: Vec<PathBuf>,
    /// The project and those folders, where they really are.
    ours: Vec<PathBuf>,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a Wanted) -> Self {
        let mut named: Vec<PathBuf> =
            wanted.sources.iter().filter_map(|path| Some(path.parent()?.to_owned())).collect();
        named.extend(wanted.folders.iter().cloned());
        named.sort();
        named.dedup();
        let roots = std::iter::once(&wanted.workspace).chain(&named);
        let ours = roots.filter_map(|root| root.canonicalize().ok()).filter(|root| root.parent().is_some());
        let ours = ours.collect();
        Self { wanted, found: Vec::new(), seen: HashSet::new(), named, ours }
    }

    fn add(&mut self, path: PathBuf) {
        if self.seen.insert(path.clone()) {
            self.found.push(path);
        }
    }

    /// Adds a file that a source seems to name, if there is such a file and it may be taken.
    fn consider(&mut self, path: &Path) {
        let path = clean(path);
        if !self.seen.contains(&path) && path.is_file() && self.is_ours(&path) {
            self.add(path);
        }
    }

    /// Whether a file belongs to the project, or lies beside one that was named, and is not hidden. Where it really lies counts: a link in a
    /// project must not lead to a person's keys.
    fn is_ours(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let rests = self.ours.iter().filter_map(|root| path.strip_prefix(root).ok());
        let is_hidden = |rest: &Path| rest.components().any(|part| is_hidden(part.as_os_str()));
        rests.into_iter().any(|rest| !is_hidden(rest))
    }

    /// Adds all of a folder but what is hidden, as a build of a person's own copies it. A link's file goes there as a file: in a folder that a
    /// person listed wherever it lies, as data often does.
    fn add_folder(
        &mut self,
        folder: &Path,
        most: usize,
        is_listed: bool,
    ) -> Result<(), (PathBuf, io::Error)> {
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| (folder.clone(), error))?;
            for entry in entries.flatten() {
                if is_hidden(&entry.file_name()) {
                    continue;
                }
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => waiting.push(path),
                    Ok(kind) if kind.is_file() || is_listed && path.is_file() => self.add(clean(&path)),
                    _ => self.consider(&path),
                }
                if self.found.len() > most {
                    let error = io::Error::other(format!("it holds more than {most} files"));
                    return Err((folder, error));
                }
            }
        }
        Ok(())
    }

    fn look_into(&mut self, path: &Path) {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let is_source = ending.as_deref().is_some_and(|ending| SOURCES.contains(&ending));
        if !is_source || path.metadata().map_or(true, |metadata| metadata.len() > LARGEST_SOURCE) {
            return;
        }
        let Ok(bytes) = fs::read(path) else { return };
        let text = String::from_utf8_lossy(&bytes);
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let bases: Vec<PathBuf> = std::iter::once(folder.clone()).chain(self.named.clone()).collect();
        if ending.as_deref() == Some("py") {
            for statement in imports(&text) {
                modules(&statement).iter().for_each(|module| self.module(&folder, &bases, module));
            }
        }
        for line in text.lines() {
            if let Some(name) = included(line) {
                self.header(&folder, name);
            }
            self.names(line, &bases);
        }
    }

    /// Adds the files that a line names in quotes, also in parts: `here / "csrc" / "k.cu"`.
    fn names(&mut self, line: &str, bases: &[PathBuf]) {
        let mut places = bases.to_vec();
        for name in quoted(line) {
            for at in 0..places.len() {
                let path = places[at].join(name);
                if places.len() < MOST_PLACES && path.is_dir() {
                    places.push(path);
                } else {
                    self.consider(&path);
                }
            }
        }
    }

    /// Adds a header by the name that it is included by.
    fn header(&mut self, folder: &Path, name: &str) {
        let up = folder.ancestors().take(MOST_FOLDERS_UP);
        let usual = up.flat_map(|up| USUAL.map(|usual| up.join(usual)));
        let places: Vec<PathBuf> = usual.chain(self.wanted.include.iter().cloned()).collect();
        let there = places.iter().map(|place| clean(&place.join(name)));
        let first = there.filter(|path| path.is_file()).find(|path| self.is_ours(path));
        first.into_iter().for_each(|path| self.add(path));
    }

    /// Adds a module of Python, with the packages that it is in.
    fn module(&mut self, folder: &Path, bases: &[PathBuf], module: &Module<'_>) {
        let relative = folder.ancestors().nth(module.dots.saturating_sub(1)).map(Path::to_owned);
        let bases = if module.dots > 0 { relative.into_iter().collect() } else { bases.to_vec() };
        for base in bases {
            let mut place = base;
            for word in &module.words {
                place.push(word);
                self.consider(&place.join("__init__.py"));
                self.consider(&place.with_extension("py"));
            }
            if module.dots > 0 && module.words.is_empty() {
                self.consider(&place.join("__init__.py"));
            }
        }
    }
}

/// Whether a file holds a list in JSON: a compile database that lies outside of the project, as a link leads to it, and no key.
fn is_list(path: &Path) -> bool {
    let mut beginning = [0; 64];
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut beginning));
    read.is_ok_and(|count| beginning[..count].trim_ascii_start().starts_with(b"["))
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// A path without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(made.pop()),
            Component::CurDir => {}
            part => made.push(part),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], wanted: impl FnOnce(&Path) -> Wanted) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let paths = of(&wanted(&root), 1000).unwrap();
        let mut names: Vec<String> =
            paths.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_sources_include_import_and_name_comes_along_and_nothing_else() {
        let files = [
            (
                "w/src/a.cu",
                "#include \"b.cuh\"\n#include <lib/c.h>\n#include <cstdio>\nfopen(\"data.bin\"); fopen(\"../../key\"); fopen(\".hidden\");",
            ),
            ("w/src/b.cuh", "#  include \"deep/d.h\""),
            ("w/include/deep/d.h", ""),
            ("w/third/lib/c.h", ""),
            ("w/src/data.bin", ""),
            ("w/src/.hidden", ""),
            ("w/src/other.cu", ""),
            ("key", ""),
        ];
        let of_cuda = |root: &Path| Wanted {
            sources: vec![root.join("w/src/a.cu")],
            include: vec![root.join("w/third")],
            ..Wanted::of(&root.join("w"))
        };
        assert_eq!(
            found(&files, of_cuda),
            ["w/include/deep/d.h", "w/src/a.cu", "w/src/b.cuh", "w/src/data.bin", "w/third/lib/c.h"]
        );
        let files = [
            (
                "w/m.py",
                "import torch, helpers\nfrom pkg.ops import fast as f\nfrom pkg import (  # both\n    more,\n    last as l,\n)\n\
                x = load('k.cu', here / 'csrc' / \"deep\" / 'm.cu')\n",
            ),
            ("w/helpers.py", ""),
            ("w/pkg/__init__.py", "from .inner import z"),
            ("w/pkg/inner.py", "import nothing.at.all"),
            ("w/pkg/ops.py", ""),
            ("w/pkg/more.py", ""),
            ("w/pkg/last.py", ""),
            ("w/pkg/unused.py", ""),
            ("w/csrc/deep/m.cu", ""),
            ("w/k.cu", "#include \"k.cuh\""),
            ("w/k.cuh", ""),
        ];
        let of_python =
            |root: &Path| Wanted { sources: vec![root.join("w/m.py")], ..Wanted::of(&root.join("w")) };
        assert_eq!(
            found(&files, of_python),
            [
                "w/csrc/deep/m.cu",
                "w/helpers.py",
                "w/k.cu",
                "w/k.cuh",
                "w/m.py",
                "w/pkg/__init__.py",
                "w/pkg/inner.py",
                "w/pkg/last.py",
                "w/pkg/more.py",
                "w/pkg/ops.py"
            ]
        );
    }

    #[test]
    fn a_link_leads_to_no_file_that_could_not_be_named() {
        let files = [
            ("w/a.cu", "fopen(\"key.bin\"); fopen(\"env.bin\"); fopen(\"data.bin\");"),
            ("key", ""),
            ("w/.env", ""),
            ("w/data", ""),
        ];
        let named = |root: &Path, folders: &[&str]| {
            for (link, meant) in [("key.bin", "../key"), ("env.bin", ".env"), ("data.bin", "data")] {
                let _ = std::os::unix::fs::symlink(meant, root.join("w").join(link));
            }
            let folders = folders.iter().map(|folder| root.join(folder)).collect();
            Wanted { sources: vec![root.join("w/a.cu")], folders, ..Wanted::of(&root.join("w")) }
        };
        assert_eq!(found(&files, |root| named(root, &[])), ["w/a.cu", "w/data.bin"]);
        assert_eq!(found(&files, |root| named(root, &["w"])), ["w/a.cu", "w/data", "w/data.bin"]);
        // A project that is itself behind a link is one all the same.
        let behind = |root: &Path| {
            std::os::unix::fs::symlink("w", root.join("l")).unwrap();
            Wanted { sources: vec![root.join("l/a.cu")], ..Wanted::of(&root.join("l")) }
        };
        assert_eq!(
            found(&[("w/a.cu", "fopen(\"data.bin\");"), ("w/data.bin", "")], behind),
            ["l/a.cu", "l/data.bin"]
        );
        // A compile database may lie elsewhere.
        for (text, expected) in [("\n[]", &["w/a.cu", "w/compile_commands.json"][..]), ("{}", &["w/a.cu"])] {
            let database = |root: &Path| {
                std::os::unix::fs::symlink("../key", root.join("w/compile_commands.json")).unwrap();
                Wanted { sources: vec![root.join("w/a.cu")], ..Wanted::of(&root.join("w")) }
            };
            assert_eq!(found(&[("w/a.cu", ""), ("key", text)], database), expected);
        }
        // What a person lists travels wherever it leads.
        let listed =
            |root: &Path| Wanted { inputs: vec![root.join("w/../key")], ..Wanted::of(&root.join("w")) };
        assert_eq!(found(&files, listed), ["key"]);
        let folder = |root: &Path| {
            named(root, &[]);
            Wanted { inputs: vec![root.join("w")], ..Wanted::of(&root.join("elsewhere")) }
        };
        assert_eq!(found(&files, folder), ["w/a.cu", "w/data", "w/data.bin", "w/env.bin", "w/key.bin"]);
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.h");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let wanted = Wanted { inputs: vec![pipe.clone()], ..Wanted::of(folder.path()) };
        let (path, error) = of(&wanted, 10).unwrap_err();
        assert!(path == pipe && error.to_string().contains("neither a file nor a folder"), "{error}");
    }

    #[test]
    fn what_was_named_and_is_not_there_is_an_error_with_its_name() {
        let wanted = Wanted { inputs: vec!["/no/such/input.pt".into()], ..Wanted::of(Path::new("/no")) };
        assert_eq!(of(&wanted, 10).unwrap_err().0, Path::new("/no/such/input.pt"));
    }
}
