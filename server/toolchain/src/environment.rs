//! A snapshot of the environment variables, and what follows from them: home, cache folder, programs on `PATH`.
//!
//! Everything that searches gets a snapshot instead of asking the process, so that a test (or an editor that sends
//! another environment for each folder) decides what is there. Programs get a snapshot with the secrets taken out:
//! a compiler needs no key of a model.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names of variables that hold secrets: how the upper-case name ends, or what it contains.
const SECRET_ENDINGS: &[&str] =
    &["_API_KEY", "APIKEY", "_TOKEN", "_PRIVATE_KEY", "_ACCESS_KEY", "_PAT", "_PASS", "_AUTH"];
const SECRET_NAMES: &[&str] = &["API_KEY", "TOKEN", "PASS", "AUTH"];
const SECRET_PARTS: &[&str] = &["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// Environment variables, and the root of the file system in which fixed places such as `/usr/local/cuda` are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    root: PathBuf,
}

impl Environment {
    /// The environment of this process, as it is now.
    pub fn of_this_process() -> Self {
        Self::from_variables(std::env::vars_os())
    }

    /// An environment of exactly these variables.
    pub fn from_variables<N: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, root: PathBuf::from("/") }
    }

    /// Looks up fixed places (`/usr/local`, `/opt`, `/usr/bin`) under another root. Paths in variables stay as they are.
    pub fn with_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = root.into();
        self
    }

    /// Sets one variable.
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Takes one variable out.
    pub fn without(mut self, name: impl AsRef<OsStr>) -> Self {
        self.variables.remove(name.as_ref());
        self
    }

    /// The value of a variable. An empty value counts as not set, as most tools treat it.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value of a variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// All variables.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The same without the variables that look like keys, tokens or passwords.
    pub fn without_secrets(mut self) -> Self {
        self.variables.retain(|name, _| !is_secret(name));
        self
    }

    /// A fixed place under the root: `under_root("usr/local")`.
    pub fn under_root(&self, place: &str) -> PathBuf {
        self.root.join(place.trim_start_matches('/'))
    }

    /// The person's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").filter(|home| home.is_absolute())
    }

    /// The folder in which StitchCUDA keeps what it can make again: `$STITCHCUDA_CACHE_DIR`, else
    /// `$XDG_CACHE_HOME/stitchcuda`, else `~/.cache/stitchcuda`, else a folder of this user in the temporary folder.
    /// Source: XDG Base Directory Specification (a relative `XDG_CACHE_HOME` is ignored; ours is treated alike).
    pub fn cache_folder(&self) -> PathBuf {
        let absolute = |name| self.path(name).filter(|path| path.is_absolute());
        if let Some(moved) = absolute("STITCHCUDA_CACHE_DIR") {
            return moved;
        }
        let base = absolute("XDG_CACHE_HOME");
        match base.or_else(|| self.home().map(|home| home.join(".cache"))) {
            Some(base) => base.join("stitchcuda"),
            None => self.temporary_folder().join(format!("stitchcuda-{}", nix::unistd::getuid())),
        }
    }

    /// The folder for temporary files: `TMPDIR`, else `/tmp`.
    pub fn temporary_folder(&self) -> PathBuf {
        self.path("TMPDIR").filter(|path| path.is_absolute()).unwrap_or_else(|| self.under_root("tmp"))
    }

    /// The folders of `PATH`. Relative and empty entries are left out: they mean the current folder, and a program
    /// that lies in a workspace must not be run because its name is `nvcc`.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let Some(value) = self.get("PATH") else { return Vec::new() };
        std::env::split_paths(value).filter(|folder| folder.is_absolute()).collect()
    }

    /// The first program of this name on `PATH`.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.search_path().into_iter().map(|folder| folder.join(name)).find(|path| is_executable(path))
    }

    /// Each program of this name on `PATH`, in order.
    pub fn find_programs(&self, name: &str) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for path in self.search_path().into_iter().map(|folder| folder.join(name)) {
            if is_executable(&path) && !found.contains(&path) {
                found.push(path);
            }
        }
        found
    }
}

/// Whether a path is a file that may be executed by someone.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_nothing_else() {
        let secret = [
            "OPENAI_API_KEY",
            "HF_TOKEN",
            "MY_SECRET_THING",
            "aws_secret_access_key",
            "DB_PASSWORD",
            "GH_PAT",
        ];
        let harmless = [
            "PATH",
            "HOME",
            "LD_LIBRARY_PATH",
            "CUDA_HOME",
            "SSH_AUTH_SOCK",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
        ];
        let environment =
            Environment::from_variables(secret.iter().chain(&harmless).map(|name| (*name, "x")));
        let kept = environment.without_secrets();
        let kept: Vec<_> = kept.variables().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let mut expected = harmless.map(String::from).to_vec();
        expected.sort();
        assert_eq!(kept, expected);
    }

    #[test]
    fn relative_entries_of_path_are_not_searched() {
        let environment = Environment::from_variables([("PATH", ":.:bin:/a:/b")]);
        assert_eq!(environment.search_path(), [PathBuf::from("/a"), PathBuf::from("/b")]);
    }

    #[test]
    fn the_cache_folder_follows_the_specification() {
        for (variables, expected) in [
            (vec![("HOME", "/h"), ("XDG_CACHE_HOME", "/c")], "/c/stitchcuda"),
            (vec![("HOME", "/h"), ("XDG_CACHE_HOME", "relative")], "/h/.cache/stitchcuda"),
            (vec![("HOME", "/h"), ("XDG_CACHE_HOME", "")], "/h/.cache/stitchcuda"),
            (vec![("XDG_CACHE_HOME", "/c"), ("STITCHCUDA_CACHE_DIR", "/moved")], "/moved"),
            (vec![("XDG_CACHE_HOME", "/c"), ("STITCHCUDA_CACHE_DIR", "relative")], "/c/stitchcuda"),
        ] {
            assert_eq!(Environment::from_variables(variables).cache_folder(), PathBuf::from(expected));
        }
        let none: [(&str, &str); 0] = [];
        let homeless = Environment::from_variables(none).cache_folder();
        assert!(homeless.starts_with("/tmp") && homeless.to_string_lossy().contains("stitchcuda-"));
    }
}
