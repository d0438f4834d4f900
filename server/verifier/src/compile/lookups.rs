//! Which files a compile looked for, also those it did not find.
//!
//! A result that is kept must fall when a header appears earlier on the include path, or when a file appears that
//! `__has_include` asks for; no list of the files that were read tells that. So each name that the sources mention is looked for in every
//! folder where headers may be, and it is remembered which of these paths exist. That errs on the side of compiling again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// Names that one compile looks for. Nobody's own sources have more; the rest is not looked for.
const MOST_NAMES: usize = 20_000;

/// Folders of toolkits and systems after which a header's name begins.
const ROOTS: [&str; 3] = ["/include/", "/cccl/", "/libcudacxx/include/"];

/// The names to look for.
pub(super) struct Lookups {
    folders: Vec<PathBuf>,
    /// Names that are looked for in all folders.
    names: BTreeSet<String>,
    /// Paths beside the files that mention them.
    beside: BTreeSet<PathBuf>,
}

impl Lookups {
    /// For a compile that looks into these folders.
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, names: BTreeSet::new(), beside: BTreeSet::new() }
    }

    /// Takes in the names that a source of the user's mentions.
    pub(super) fn of_source(&mut self, path: &Path, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let folder = path.parent().unwrap_or(Path::new(""));
        for name in text.lines().filter(|line| is_directive(line)).flat_map(names_in) {
            if self.names.len() >= MOST_NAMES {
                return;
            }
            self.beside.insert(folder.join(name));
            if !self.names.contains(name) {
                self.names.insert(name.to_owned());
            }
        }
    }

    /// Takes in a header of the system that was read: one of the same name in a folder of the user's would be read instead.
    pub(super) fn of_system(&mut self, path: &Path) {
        let text = path.to_string_lossy();
        for root in ROOTS {
            if let Some(at) = text.rfind(root).filter(|_| self.names.len() < MOST_NAMES) {
                self.names.insert(text[at + root.len()..].to_owned());
            }
        }
    }

    /// One number for which of the paths exist.
    pub(super) fn print(&self) -> u64 {
        let mut print = Xxh3::new();
        let anywhere = self.folders.iter().filter(|folder| folder.is_dir());
        let anywhere: Vec<PathBuf> =
            anywhere.flat_map(|folder| self.names.iter().map(move |name| folder.join(name))).collect();
        for path in anywhere.iter().chain(&self.beside).filter(|path| path.is_file()) {
            print.update(path.as_os_str().as_encoded_bytes());
            print.update(&[0]);
        }
        print.digest()
    }
}

/// Whether a line may name a header: an `#include`, a condition with `__has_include`, or a macro that one of them may use.
fn is_directive(line: &str) -> bool {
    line.contains("__has_include")
        || line.trim_start().strip_prefix('#').is_some_and(|rest| {
            let word = rest.trim_start();
            ["include", "import", "define"].iter().any(|directive| word.starts_with(directive))
        })
}

/// What stands in quotes or angle brackets and could be a path.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let open = rest.find(['"', '<'])?;
            let close = if rest[open..].starts_with('"') { '"' } else { '>' };
            let after = &rest[open + 1..];
            let Some(end) = after.find(close) else {
                rest = after;
                continue;
            };
            let name = &after[..end];
            rest = &after[end + 1..];
            let is_path = !name.is_empty()
                && !name.contains(['(', ')', '=', ';', '\\', '%', ','])
                && name == name.trim();
            if is_path {
                return Some(name);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_appears_where_one_was_looked_for_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["i1", "i2", "src"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let text = "#include \"h.cuh\"\n  # include <sub/deep.h>\n#if __has_include(<opt.h>) && __has_include(\"own.h\")\n\
                    #define CONFIG \"config.h\"\n#include CONFIG\nauto s = \"said.h\";\n";
        let print = || {
            let mut lookups = Lookups::new(vec![root.join("i1"), root.join("i2")]);
            lookups.of_source(&root.join("src/k.cu"), text.as_bytes());
            lookups.of_system(Path::new("/opt/cuda/include/cccl/cub/cub.cuh"));
            lookups.print()
        };
        let mut seen = vec![print()];
        for name in [
            "i2/h.cuh",
            "i1/h.cuh",
            "i1/sub/deep.h",
            "i2/opt.h",
            "src/own.h",
            "src/h.cuh",
            "i1/config.h",
            "i1/cub/cub.cuh",
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let now = print();
            assert!(!seen.contains(&now), "{name}");
            seen.push(now);
        }
        for name in ["i1/said.h", "i1/other.h", "src/deep.h"] {
            std::fs::write(root.join(name), "").unwrap();
            assert_eq!(Some(&print()), seen.last(), "{name}");
        }
        std::fs::remove_file(root.join("i1/cub/cub.cuh")).unwrap();
        assert_eq!(print(), seen[seen.len() - 2]);
    }
}
