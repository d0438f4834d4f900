//! Which files are a person's own.

use std::path::{Component, Path, PathBuf};

/// Parts of a path that are the interpreter's or a package's, also within a workspace (`.venv/lib/python3.12/site-packages`).
const LIBRARIES: [&str; 3] = ["site-packages", "dist-packages", ".venv"];

/// A person's folders and files. PyTorch shortens paths by the entries of `sys.path`, so that a script's own folder is missing: files that are
/// known are found by the end of their path.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Folders whose files are a person's own.
    pub folders: Vec<PathBuf>,
    /// Python files that are a person's own. For names without a folder.
    pub files: Vec<PathBuf>,
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
            return (own || self.files.iter().any(|file| file == path)).then(|| path.to_path_buf());
        }
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        // Of two with the same end, the one nearest to the root.
        let ends = self.files.iter().filter(|file| file.ends_with(&path));
        ends.min_by_key(|file| (file.components().count(), (*file).clone())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_found_and_packages_are_not() {
        let files = ["/w/train.py", "/w/models/net.py", "/w/old/models/net.py"].map(PathBuf::from).to_vec();
        let workspace = Workspace { folders: vec!["/w".into()], files };
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
}
