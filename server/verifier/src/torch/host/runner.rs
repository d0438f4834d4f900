//! The Python files of the runner, which are embedded in this binary, in a folder of the cache that their content names.

use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// The name under which they import each other; none that a person's own file would have.
pub(super) const PACKAGE: &str = "stitchcuda_runner";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each.
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../runner/", $name)))),*];
    };
}

files![
    "__init__.py",
    "baseline.py",
    "building.py",
    "calls.py",
    "captured.py",
    "child.py",
    "drawing.py",
    "errors.py",
    "limits.py",
    "loading.py",
    "making.py",
    "moving.py",
    "oracle.py",
    "profiling.py",
    "simulated.py",
    "statements.py",
    "timing.py",
    "values.py",
    "wire.py",
    "zygote.py",
];

/// The folder that holds the package, written if it is not there.
///
/// # Errors
/// It can't be written.
pub(super) fn folder(cache: &Path) -> io::Result<PathBuf> {
    let mut hasher = Xxh3::new();
    for (name, text) in FILES {
        for part in [name, text] {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part.as_bytes());
        }
    }
    let folder = cache.join(format!("runner-{:016x}", hasher.finish()));
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(cache)?;
    // Written aside and moved: another process may write the same.
    let aside = tempfile::Builder::new().prefix(".runner-").tempdir_in(cache)?;
    let package = aside.path().join(PACKAGE);
    fs::create_dir(&package)?;
    for (name, text) in FILES {
        fs::write(package.join(name), text)?;
    }
    let aside = aside.keep();
    // A folder for its owner alone, as temporary ones are made, may be closed to the user of a sandbox.
    let open: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&aside, open)?;
    match fs::rename(&aside, &folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            let _ = fs::remove_dir_all(&aside);
            if folder.is_dir() { Ok(folder) } else { Err(error) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_runner_is_embedded() {
        let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runner");
        let mut names: Vec<String> = fs::read_dir(room)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".py"))
            .collect();
        names.sort();
        let embedded: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, embedded);
    }

    #[test]
    fn they_are_written_once() {
        let cache = tempfile::tempdir().unwrap();
        let written = folder(cache.path()).unwrap();
        assert_eq!(folder(cache.path()).unwrap(), written);
        let zygote = fs::read_to_string(written.join(PACKAGE).join("zygote.py")).unwrap();
        assert!(FILES.contains(&("zygote.py", zygote.as_str())));
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }
}
