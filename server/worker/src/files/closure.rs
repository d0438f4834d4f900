//! The files that sources name: what they include, import, or write in quotes.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Wanted;

/// Larger sources are not looked into.
const LARGEST_SOURCE: u64 = 4 << 20;
/// Longer texts name no file.
const LONGEST_NAME: usize = 200;
/// Folders above a file in which a header is looked for, and folders in each: as where it is compiled.
const MOST_FOLDERS_UP: usize = 4;
const USUAL: [&str; 4] = ["", "include", "src", "inc"];
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
        match metadata.is_dir() {
            true => search.add_folder(path, most)?,
            false => search.add(clean(path)),
        }
    }
    for folder in &wanted.folders {
        search.add_folder(folder, most)?;
    }
    let database = wanted.workspace.join("compile_commands.json");
    for path in [database, wanted.workspace.join("build/compile_commands.json")] {
        if path.is_file() {
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
}

impl<'a> Search<'a> {
    fn new(wanted: &'a Wanted) -> Self {
        let mut named: Vec<PathBuf> =
            wanted.sources.iter().filter_map(|path| Some(path.parent()?.to_owned())).collect();
        named.extend(wanted.folders.iter().cloned());
        named.sort();
        named.dedup();
        Self { wanted, found: Vec::new(), seen: HashSet::new(), named }
    }

    fn add(&mut self, path: PathBuf) {
        if self.seen.insert(path.clone()) {
            self.found.push(path);
        }
    }

    /// Adds a file that a source seems to name, if there is such a file and it may be taken.
    fn consider(&mut self, path: &Path) {
        let path = clean(path);
        if !self.seen.contains(&path) && self.is_ours(&path) && path.is_file() {
            self.add(path);
        }
    }

    /// Whether a file belongs to the project, or lies beside one that was named, and is not hidden.
    fn is_ours(&self, path: &Path) -> bool {
        let roots = std::iter::once(&self.wanted.workspace).chain(&self.named);
        roots
            .filter(|root| root.components().count() > 1)
            .filter_map(|root| path.strip_prefix(root).ok())
            .any(|rest| !rest.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b".")))
    }

    /// Adds all of a folder but what is hidden, as a build of a person's own copies it.
    fn add_folder(&mut self, folder: &Path, most: usize) -> Result<(), (PathBuf, io::Error)> {
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| (folder.clone(), error))?;
            for entry in entries.flatten() {
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => waiting.push(path),
                    // A link's file goes there as a file.
                    Ok(_) if path.is_file() => self.add(clean(&path)),
                    _ => {}
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
        for line in text.lines() {
            if let Some(name) = included(line) {
                self.header(&folder, name);
            }
            if ending.as_deref() == Some("py") {
                modules(line).iter().for_each(|module| self.module(&folder, &bases, module));
            }
            for name in quoted(line) {
                bases.iter().for_each(|base| self.consider(&base.join(name)));
            }
        }
    }

    /// Adds a header by the name that it is included by.
    fn header(&mut self, folder: &Path, name: &str) {
        let up = folder.ancestors().take(MOST_FOLDERS_UP);
        let usual = up.flat_map(|up| USUAL.map(|usual| up.join(usual)));
        let places: Vec<PathBuf> = usual.chain(self.wanted.include.iter().cloned()).collect();
        let there = places.iter().map(|place| clean(&place.join(name)));
        let first = there.filter(|path| self.is_ours(path)).find(|path| path.is_file());
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

/// The name in `#include "name"` or `<name>`.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let (open, rest) = (rest.chars().next()?, rest.get(1..)?);
    let close = match open {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    rest.split(close).next().filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
}

/// The texts in quotes of a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(['"', '\''])?;
            let quote = rest.as_bytes()[at] as char;
            let after = &rest[at + 1..];
            let Some(end) = after.find(quote) else {
                rest = after;
                continue;
            };
            let text = &after[..end];
            // The closing one may be an opening one: `'` is also in words.
            rest = if quote == '"' { &after[end + 1..] } else { after };
            if !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(['\n', '\0']) {
                return Some(text);
            }
        }
    })
}

/// A module that a line imports.
struct Module<'a> {
    dots: usize,
    words: Vec<&'a str>,
}

/// The modules that `import a.b, c` or `from ..a import b, c` names; a name that is imported may be a module too.
fn modules(line: &str) -> Vec<Module<'_>> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix("import ") {
        let names = rest.split(',').map(|name| split(first_word(name)));
        return names.map(|words| Module { dots: 0, words }).collect();
    }
    let Some((from, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) else {
        return Vec::new();
    };
    let from = from.trim();
    let dots = from.len() - from.trim_start_matches('.').len();
    let base = split(&from[dots..]);
    let mut found = vec![Module { dots, words: base.clone() }];
    for name in names.split(',') {
        let name = first_word(name.trim_matches(['(', ')', ' ']));
        let mut words = base.clone();
        words.extend(split(name));
        found.push(Module { dots, words });
    }
    found
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// The words of a dotted name; none where it is no name.
fn split(name: &str) -> Vec<&str> {
    let words: Vec<&str> = name.split('.').filter(|word| !word.is_empty()).collect();
    let is_word = |word: &&str| word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if words.iter().all(is_word) { words } else { Vec::new() }
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
                "import torch, helpers\nfrom pkg.ops import fast as f\nfrom pkg import more\nx = load('k.cu')\n",
            ),
            ("w/helpers.py", ""),
            ("w/pkg/__init__.py", "from .inner import z"),
            ("w/pkg/inner.py", "import nothing.at.all"),
            ("w/pkg/ops.py", ""),
            ("w/pkg/more.py", ""),
            ("w/pkg/unused.py", ""),
            ("w/k.cu", "#include \"k.cuh\""),
            ("w/k.cuh", ""),
        ];
        let of_python =
            |root: &Path| Wanted { sources: vec![root.join("w/m.py")], ..Wanted::of(&root.join("w")) };
        assert_eq!(
            found(&files, of_python),
            [
                "w/helpers.py",
                "w/k.cu",
                "w/k.cuh",
                "w/m.py",
                "w/pkg/__init__.py",
                "w/pkg/inner.py",
                "w/pkg/more.py",
                "w/pkg/ops.py"
            ]
        );
    }

    #[test]
    fn what_was_named_and_is_not_there_is_an_error_with_its_name() {
        let wanted = Wanted { inputs: vec!["/no/such/input.pt".into()], ..Wanted::of(Path::new("/no")) };
        assert_eq!(of(&wanted, 10).unwrap_err().0, Path::new("/no/such/input.pt"));
    }
}
