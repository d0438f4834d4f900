//! What the headers beside a document define, for the reading of its macros and constants.
//!
//! Only `#include "…"` is followed, from the file's folder and the usual places of the workspace, with limits: this is a help
//! for the static rules, not a preprocessor. Files are read off the threads that answer.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stitch_analysis::{Analysis, Language, Workspace};
use stitch_findings::ReadText;

use crate::documents::Document;
use crate::session::Session;
use crate::uri::Key;

/// Headers read for one document, at most, by number and by bytes.
const MOST_HEADERS: usize = 64;
const MOST_BYTES: u64 = 4 << 20;

/// Folders tried for an include beside the includer's own and the workspace's.
const USUAL: [&str; 3] = ["include", "src", "inc"];

/// What is known of the headers of each open document.
#[derive(Debug, Default)]
pub struct Headers(Mutex<HashMap<Key, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The includes that it was made from.
    includes: Option<Vec<String>>,
    /// A hash of all that was read.
    hash: u64,
    workspace: Workspace,
}

impl Headers {
    /// What is known for a document.
    pub fn workspace(&self, key: &Key) -> Workspace {
        self.lock().get(key).map(|known| known.workspace.clone()).unwrap_or_default()
    }

    /// Forgets a document that was closed.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Reads all again after the next analysis: a header changed on disk.
    pub fn changed_on_disk(&self) {
        self.lock().values_mut().for_each(|known| known.includes = None);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After an analysis: reads the headers if the includes changed, and analyses again if they say something new.
pub fn follow(session: &Arc<Session>, document: &Document, analysis: &Analysis) {
    let Some(path) = document.path.clone().filter(|_| analysis.language() == Language::Cuda) else { return };
    let includes = includes(analysis.source());
    let mut headers = session.headers.lock();
    let known = headers.entry(document.key.clone()).or_default();
    if known.includes.as_ref() == Some(&includes) {
        return;
    }
    known.includes = Some(includes.clone());
    drop(headers);
    let (session, key) = (session.clone(), document.key.clone());
    let root = session.configuration.folder_of(&path);
    let runtime = session.runtime.clone();
    runtime.spawn_blocking(move || {
        let texts = read(&path, root.as_deref(), includes);
        let mut workspace = Workspace::default();
        texts.iter().for_each(|text| workspace.add(text));
        let hash = texts.concat().as_str().content_hash();
        let mut headers = session.headers.lock();
        let Some(known) = headers.get_mut(&key).filter(|known| known.hash != hash) else { return };
        (known.hash, known.workspace) = (hash, workspace);
        drop(headers);
        session.queue.push(key);
    });
}

/// The names in `#include "…"`, in their order.
fn includes(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        let (name, _) = rest.strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    };
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The texts of the headers, nearest first, each once.
fn read(path: &Path, root: Option<&Path>, includes: Vec<String>) -> Vec<String> {
    let mut waiting: VecDeque<(PathBuf, String)> = VecDeque::new();
    let folder = path.parent().unwrap_or(path).to_owned();
    waiting.extend(includes.into_iter().map(|name| (folder.clone(), name)));
    let mut seen = HashSet::from([path.to_owned()]);
    let (mut texts, mut left) = (Vec::new(), MOST_BYTES);
    while let Some((folder, name)) = waiting.pop_front() {
        let Some(header) = places(&folder, root, &name).find(|place| place.is_file()) else { continue };
        if !seen.insert(header.clone()) || texts.len() >= MOST_HEADERS {
            continue;
        }
        let Some(length) = header.metadata().ok().map(|data| data.len()).filter(|length| *length <= left)
        else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(&header) else { continue };
        left -= length;
        let folder = header.parent().unwrap_or(&header).to_owned();
        waiting.extend(self::includes(&text).into_iter().map(|name| (folder.clone(), name)));
        texts.push(text);
    }
    texts
}

/// Where an include may be: beside the includer, in the workspace, in its usual folders.
fn places(folder: &Path, root: Option<&Path>, name: &str) -> impl Iterator<Item = PathBuf> {
    let roots = root.into_iter().flat_map(|root| {
        let usual = USUAL.iter().map(|usual| root.join(usual));
        std::iter::once(root.to_owned()).chain(usual)
    });
    let mut folders = vec![folder.to_owned()];
    folders.extend(roots);
    let name = name.to_owned();
    folders.into_iter().map(move |folder| folder.join(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_includes_are_followed_from_file_to_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("include/a.cuh", "#include \"../src/b.h\"\n#include \"a.cuh\"\nA\n");
        write("src/b.h", "# include \"c.h\" // here\n#include <vector>\nB\n");
        write("src/c.h", "C\n");
        let source = "#include \"a.cuh\"\n  #include \"none.h\"\n#include \"a.cuh\"\n// #include \"c.h\"\n";
        assert_eq!(includes(source), ["a.cuh", "none.h"]);
        let texts = read(&root.join("src/k.cu"), Some(root), includes(source));
        let last: Vec<_> = texts.iter().map(|text| text.trim_end().lines().last().unwrap()).collect();
        assert_eq!(last, ["A", "B", "C"]);
    }
}
