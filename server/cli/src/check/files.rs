//! Which files a `check` is about: those named, and all CUDA and Python files in the folders named.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use serde::Serialize;
use stitch_analysis::{Language, decode};

use super::gather::canonical;

/// A file to check.
#[derive(Debug)]
pub struct Source {
    /// As a person named it.
    pub path: PathBuf,
    /// Its one path, whatever it was named.
    pub canonical: PathBuf,
    /// What it is written in.
    pub language: Language,
    /// Its text, as long in bytes as the file.
    pub text: String,
}

/// A name that leads to nothing that can be checked: wrong input.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// As a person named it.
    #[serde(serialize_with = "super::report::path")]
    pub path: PathBuf,
    /// What is wrong, and what to do.
    pub message: String,
}

/// What was found under the names given.
#[derive(Debug, Default)]
pub struct Sources {
    /// The files, in the order of the names, each once.
    pub files: Vec<Source>,
    /// Names that lead nowhere: wrong input.
    pub problems: Vec<Problem>,
    /// What a person should know of files that were read all the same.
    pub notes: Vec<String>,
}

impl Sources {
    /// Reads everything under `names`.
    pub fn read(names: &[PathBuf]) -> Self {
        let mut sources = Self::default();
        for name in names {
            if name.is_dir() {
                sources.read_folder(name);
            } else {
                sources.read_named(name);
            }
        }
        sources
    }

    fn read_folder(&mut self, folder: &Path) {
        let before = self.files.len();
        for entry in WalkBuilder::new(folder).sort_by_file_path(Path::cmp).build() {
            match entry {
                Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                    if let Some(language) = Language::of_path(entry.path()) {
                        self.read_file(entry.path(), language);
                    }
                }
                Ok(_) => {}
                Err(error) => self.notes.push(format!("not looked into: {error}")),
            }
        }
        if self.files.len() == before {
            self.refuse(folder, "no .cu, .cuh or .py file in this folder");
        }
    }

    fn read_named(&mut self, path: &Path) {
        match Language::of_path(path) {
            Some(language) => self.read_file(path, language),
            None if path.exists() => {
                self.refuse(path, "neither CUDA (.cu, .cuh) nor Python (.py), so it can't be checked");
            }
            None => self.refuse(path, "no such file"),
        }
    }

    fn refuse(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push(Problem { path: path.to_owned(), message: message.into() });
    }

    fn read_file(&mut self, path: &Path, language: Language) {
        let canonical = canonical(path);
        if self.files.iter().any(|known| known.canonical == canonical) {
            return;
        }
        let bytes = match read(path) {
            Ok(bytes) => bytes,
            Err(problem) => {
                self.refuse(path, problem);
                return;
            }
        };
        let Some(decoded) = decode(&bytes) else {
            self.refuse(path, "is UTF-16; save it as UTF-8");
            return;
        };
        if decoded.replaced > 0 {
            let (path, count) = (path.display(), decoded.replaced);
            self.notes.push(format!("{path}: {count} bytes are no UTF-8, and are shown as `?`"));
        }
        let text = decoded.text.into_owned();
        self.files.push(Source { path: path.to_owned(), canonical, language, text });
    }
}

/// The bytes of a regular file: reading a pipe with the name of a source could wait for ever.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("can't be read: {error}"),
    };
    if !fs::metadata(path).map_err(said)?.is_file() {
        return Err("is no regular file, so it can't be checked".to_owned());
    }
    fs::read(path).map_err(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_walked_and_names_that_lead_nowhere_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/.hidden")).unwrap();
        fs::create_dir_all(root.join("empty")).unwrap();
        for name in ["b/two.cuh", "a.cu", "b/.hidden/no.cu", "readme.md", "b/m.py"] {
            fs::write(root.join(name), "// Andr\n").unwrap();
        }
        fs::write(root.join("latin.cu"), b"// Andr\xe9\n").unwrap();
        fs::write(root.join("wide.cu"), b"\xff\xfe/\0").unwrap();

        let names = ["a.cu", "b", "b/../a.cu", "latin.cu", "wide.cu", "readme.md", "none.cu", "empty"]
            .map(|name| root.join(name));
        let sources = Sources::read(&names);
        let files: Vec<_> = sources.files.iter().map(|file| file.path.strip_prefix(root).unwrap()).collect();
        assert_eq!(files, ["a.cu", "b/m.py", "b/two.cuh", "latin.cu"].map(Path::new));
        let ends: Vec<_> = sources.problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(ends[0], "is UTF-16; save it as UTF-8");
        assert_eq!(ends[2], "no such file");
        assert_eq!((sources.problems.len(), sources.notes.len()), (4, 1));
    }
}
