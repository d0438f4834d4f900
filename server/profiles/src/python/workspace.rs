//! Which files are a person's own.

use std::path::{Component, Path, PathBuf};

/// Parts of a path that are the interpreter's or a package's, also within a workspace (`.venv/lib/python3.12/site-packages`).
const LIBRARIES: [&str; 3] = ["site-packages", "dist-packages", ".venv"];

/// Part of the path of the interpreter's own library: `/usr/lib/python3.12/contextlib.py`.
const INTERPRETER: &str = "python3";

/// A person's folders and files. PyTorch shortens paths by the entries of `sys.path`, so that a script's own folder is missing: files that are
/// known are found by the end of their path.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Folders whose files are a person's own.
    pub folders: Vec<PathBuf>,
    /// Python files that are a person's own. For names without a folder.
    pub files: Vec<PathBuf>,
    /// Whether the recording may be of another machine, where the same files lie in other folders: then the file with the longest common end
    /// of the path is meant.
    pub from_elsewhere: bool,
}

impl Workspace {
    /// The file that the profiler calls `name`, where it is one of theirs.
    pub fn resolve(&self, name: &str) -> Option<PathBuf> {
        if name.starts_with('<') || name.is_empty() {
            return None;
        }
        let path = Path::new(name);
        if path.components().any(|part| matches!(part, Component::Normal(name) if LIBRARIES.iter().any(|library| name == *library))) {
            return None;
        }
        if path.is_absolute() {
            let own = self.folders.iter().any(|folder| path.starts_with(folder));
            if own || self.files.iter().any(|file| file == path) {
                return Some(path.to_path_buf());
            }
            return self.from_elsewhere.then(|| self.likest(path)).flatten();
        }
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        // Of two with the same end, the one nearest to the root.
        let ends = self.files.iter().filter(|file| file.ends_with(&path));
        ends.min_by_key(|file| (file.components().count(), (*file).clone())).cloned()
    }

    /// The file that shares the longest end with a path of another machine. `None` where none has its name, or two share as much.
    fn likest(&self, path: &Path) -> Option<PathBuf> {
        let is_interpreters = |part: Component<'_>| match part {
            Component::Normal(name) => name.to_string_lossy().starts_with(INTERPRETER),
            _ => false,
        };
        if path.components().any(is_interpreters) {
            return None;
        }
        let shared = |file: &Path| {
            let pairs = file.components().rev().zip(path.components().rev());
            pairs.take_while(|(here, there)| here == there).count()
        };
        let most = self.files.iter().map(|file| shared(file)).max().filter(|most| *most > 0)?;
        let mut files = self.files.iter().filter(|file| shared(file) == most);
        let found = files.next()?;
        files.next().is_none().then(|| found.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_found_and_packages_are_not() {
        let files = ["/w/train.py", "/w/models/net.py", "/w/old/models/net.py"].map(PathBuf::from).to_vec();
        let workspace = Workspace { folders: vec!["/w".into()], files, from_elsewhere: false };
        let found = |name| workspace.resolve(name).map(|path| path.display().to_string());
        assert_eq!(found("/w/other.py").as_deref(), Some("/w/other.py"));
        assert_eq!(found("train.py").as_deref(), Some("/w/train.py"));
        assert_eq!(found("./train.py").as_deref(), Some("/w/train.py"));
        assert_eq!(found("models/net.py").as_deref(), Some("/w/models/net.py"));
        for other in [
            "/elsewhere/train.py",
            "et.py",
            "torch/nn/modules/linear.py",
            "/w/.venv/lib/python3.12/site-packages/x.py",
            "/w/env/lib/python3.12/site-packages/x.py",
            "<string>",
            "",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn files_of_another_machine_are_known_by_the_end_of_their_path() {
        let files = ["/w/train.py", "/w/models/net.py", "/w/old/net.py"].map(PathBuf::from).to_vec();
        let workspace = Workspace { folders: vec!["/w".into()], files, from_elsewhere: true };
        let found = |name| workspace.resolve(name).map(|path| path.display().to_string());
        assert_eq!(found("/root/repo/train.py").as_deref(), Some("/w/train.py"));
        assert_eq!(found("/root/repo/models/net.py").as_deref(), Some("/w/models/net.py"));
        assert_eq!(found("/root/repo/net.py"), None, "two have that name");
        assert_eq!(found("/usr/lib/python3.12/train.py"), None);
        assert_eq!(found("/opt/env/site-packages/models/net.py"), None);
    }
}
