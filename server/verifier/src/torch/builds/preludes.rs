//! Compiled headers: what a C++ compiler has read of torch, kept for the next source.
//!
//! A folder holds the headers of a prelude, and what the compiler made of them for one set of flags. It is made aside and moved, so it is
//! there whole or not at all; the least used leave when there are too many. Nothing of a candidate's goes into it. For flags that torch itself
//! does not pass, the headers alone are there: compiling them takes as long as compiling one source with them, and 350 MB.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use stitch_session::cache::Key;
use stitch_toolchain::process::Scratch;

use super::headers::SHADOWED;
use super::plan::Compiled;
use super::store::{Store, what_was_read};
use super::tools::{Tools, identity};
use super::{Builds, Failed, flags, write};

/// As many are kept: each takes 300 to 400 MB.
const MOST: usize = 6;
/// Flags, by how they begin, that torch passes to every source of an extension, and levels of optimisation.
const USUAL: [&str; 16] = [
    "-DTORCH_",
    "-DUSE_CUDA",
    "-DWITH_CUDA",
    "-DAT_",
    "-DNDEBUG",
    "-DPYBIND11_",
    "-D_GLIBCXX_",
    "-D__CUDA_NO_",
    "-U__CUDA_NO_",
    "-O",
    "-std=",
    "-fPIC",
    "-W",
    "-w",
    "-isystem",
    "/",
];
/// One that was used this lately stays: somebody may be compiling with it.
const IN_USE: Duration = Duration::from_secs(3600);
/// The list of what was read, in the folder.
const READ: &str = "read.json";

impl Store {
    /// Where all of them lie.
    pub fn preludes(&self) -> PathBuf {
        self.folder.join("preludes")
    }

    /// Where one lies, or will.
    pub fn prelude_folder(&self, compiled: &Compiled, tools: &Tools) -> PathBuf {
        let (file, text) = (compiled.prelude.file(), compiled.prelude.text());
        let flags = flags::quoted(&compiled.flags);
        let parts = [file, &text, &flags, &compiled.cxx, &tools.identity].map(str::as_bytes);
        self.preludes().join(Key::of("torch-prelude", parts).to_string())
    }
}

/// Whether it is there, and what it was made of is as it was.
fn is_good(folder: &Path) -> bool {
    let Ok(text) = std::fs::read(folder.join(READ)) else { return false };
    let Ok(read) = serde_json::from_slice::<Vec<(PathBuf, String)>>(&text) else { return false };
    if !read.iter().all(|(path, known)| identity(path) == *known) {
        return false;
    }
    // Marks it as used.
    let marked = std::fs::File::options()
        .append(true)
        .open(folder.join(READ))
        .and_then(|file| file.set_modified(SystemTime::now()));
    marked.is_ok() || folder.is_dir()
}

impl Builds {
    /// Has a prelude made, if it is not there.
    pub(super) async fn prelude(
        &self,
        compiled: &Compiled,
        tools: &Tools,
        variables: &[(OsString, OsString)],
    ) -> Result<(), String> {
        let Compiled { prelude, cxx, flags } = compiled;
        let folder = self.store.prelude_folder(compiled, tools);
        if is_good(&folder) {
            return Ok(());
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let _lock = self.store.lock(&format!("prelude-{name}"), &self.cancel).await?;
        if is_good(&folder) {
            return Ok(());
        }
        let words = |failed: Failed| match failed {
            Failed::Compilers(text) | Failed::Other(text) => text,
        };
        let scratch = self.scratch().map_err(words)?;
        let header = prelude.file();
        write(scratch.path(), header, &prelude.text()).map_err(words)?;
        for shadowed in SHADOWED {
            write(scratch.path(), shadowed, "#pragma once\n").map_err(words)?;
        }
        if !flags.iter().all(|flag| USUAL.iter().any(|usual| flag.starts_with(usual))) {
            let kept = self.store.keep(&scratch, &[header], &[], &folder);
            return kept.map_err(|error| format!("headers could not be kept ({error})"));
        }
        let rule = format!(
            "rule header\n  command = {} -MD -MF $out.d {} -x c++-header $in -o $out\n",
            cxx,
            flags::quoted(flags)
        );
        let edge = format!("build {header}.gch: header {header}\ndefault {header}.gch\n");
        write(scratch.path(), "build.ninja", &(rule + &edge)).map_err(words)?;
        let (finished, began) = self.run(tools, &scratch, variables).await.map_err(words)?;
        if !finished.status.success() {
            let first = super::first_error(&finished.stdout_text());
            return Err(format!("torch's headers could not be compiled by themselves: {first}"));
        }
        let read = what_was_read(scratch.path(), began).ok_or("torch's headers were changed meanwhile")?;
        self.store
            .keep(&scratch, &[header, &format!("{header}.gch")], &read, &folder)
            .map_err(|error| format!("compiled headers could not be kept ({error})"))
    }
}

impl Store {
    fn keep(
        &self,
        scratch: &Scratch,
        names: &[&str],
        read: &[(PathBuf, String)],
        folder: &Path,
    ) -> io::Result<()> {
        let root = self.preludes();
        std::fs::create_dir_all(&root)?;
        make_room(&root);
        let aside = tempfile::Builder::new().prefix(".aside-").tempdir_in(&root)?;
        for name in names.iter().copied().chain(SHADOWED) {
            let (from, to) = (scratch.path().join(name), aside.path().join(name));
            if !std::fs::symlink_metadata(&from)?.is_file() {
                return Err(io::Error::other(format!("{name} is no plain file")));
            }
            std::fs::create_dir_all(to.parent().unwrap_or(aside.path()))?;
            // A move within a file system, a copy otherwise.
            std::fs::rename(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(|_| ()))?;
        }
        std::fs::write(aside.path().join(READ), serde_json::to_vec(read)?)?;
        // A sandbox may have another user, who reads it.
        let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(aside.path(), open)?;
        if folder.exists() {
            // Made of headers that are no longer so.
            let gone = tempfile::Builder::new().prefix(".gone-").tempdir_in(&root)?;
            std::fs::rename(folder, gone.path().join("old"))?;
        }
        std::fs::rename(aside.path(), folder)?;
        // It has moved; nothing is left to remove.
        let _ = aside.keep();
        Ok(())
    }
}

/// Removes what was left half made and what was used least.
fn make_room(root: &Path) {
    let used = |path: &Path| {
        std::fs::metadata(path.join(READ))
            .and_then(|found| found.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let made = |path: &Path| {
        std::fs::metadata(path).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age > IN_USE);
    let mut whole: Vec<(SystemTime, PathBuf)> = Vec::new();
    for path in std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_aside = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !is_aside {
            whole.push((used(&path), path));
        } else if is_old(made(&path)) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    whole.sort();
    let surplus = (whole.len() + 1).saturating_sub(MOST);
    for (used, path) in whole.into_iter().take(surplus) {
        if is_old(used) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_not_whole_or_has_aged_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let header = folder.path().join("h.h");
        std::fs::write(&header, "1").unwrap();
        let prelude = folder.path().join("p");
        std::fs::create_dir(&prelude).unwrap();
        assert!(!is_good(&prelude));
        let read = vec![(header.clone(), identity(&header))];
        std::fs::write(prelude.join(READ), serde_json::to_vec(&read).unwrap()).unwrap();
        assert!(is_good(&prelude));
        std::fs::write(&header, "12").unwrap();
        assert!(!is_good(&prelude));
    }

    #[test]
    fn the_least_used_leave() {
        let root = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - 3 * IN_USE;
        for number in 0..MOST + 2 {
            let folder = root.path().join(number.to_string());
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(READ), "[]").unwrap();
            let file = std::fs::File::options().append(true).open(folder.join(READ)).unwrap();
            file.set_modified(old + Duration::from_secs(number as u64)).unwrap();
        }
        let aside = root.path().join(".aside-x");
        std::fs::create_dir(&aside).unwrap();
        std::fs::File::open(&aside).unwrap().set_modified(old).unwrap();
        make_room(root.path());
        let mut left: Vec<_> = std::fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), MOST - 1);
        assert!(!left.contains(&"0".to_owned()) && !left.contains(&".aside-x".to_owned()));
    }
}
