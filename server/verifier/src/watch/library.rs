//! Builds the library that stands in front of the driver's.
//!
//! It is C, embedded in this binary and compiled once into a cache folder by the host compiler that nvcc needs anyway, as the
//! simulator's runtime is. Its folder is put first on `LD_LIBRARY_PATH`: there lie it, under the driver's name, and a link to
//! the real library, which it needs under another name.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::protocol;

const SOURCES: [(&str, &str); 6] = [
    ("front.c", include_str!("front/front.c")),
    ("front.h", include_str!("front/front.h")),
    ("structures.h", include_str!("front/structures.h")),
    ("channel.c", include_str!("front/channel.c")),
    ("copies.c", include_str!("front/copies.c")),
    ("entries.c", include_str!("front/entries.c")),
];

/// Flags of every compile.
const FLAGS: [&str; 8] =
    ["-O2", "-std=gnu11", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra"];

/// The name by which programs and runtimes ask for the driver.
const NAME: &str = "libcuda.so.1";

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    /// A file could not be written.
    #[error("{} could not be written: {source}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No compiler.
    #[error(
        "the C compiler `{compiler}` could not be started: {source}; install gcc, or name a compiler in CC"
    )]
    NoCompiler {
        /// What was tried.
        compiler: String,
        /// Why not.
        source: io::Error,
    },
    /// The compiler failed.
    #[error("`{compiler}` could not build it: {message}")]
    Compile {
        /// What was started.
        compiler: String,
        /// What it said.
        message: String,
    },
}

/// The folder with the library in front of the driver library `real`, built if it is not in `cache` yet.
///
/// # Errors
/// Where the folder can't be written, or the compiler is missing or fails.
pub(crate) fn front(cache: &Path, compiler: &str, real: &Path) -> Result<PathBuf, LibraryError> {
    let folder = cache.join(format!("libcuda-{:016x}", fingerprint(compiler, real)));
    if folder.is_dir() {
        return Ok(folder);
    }
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| LibraryError::Write { path, source }
    };
    fs::create_dir_all(cache).map_err(write(cache))?;
    // Built aside and moved: another process may build the same.
    let scratch = tempfile::tempdir_in(cache).map_err(write(cache))?;
    let (sources, library) = (scratch.path().join("source"), scratch.path().join("library"));
    for path in [&sources, &library] {
        fs::create_dir_all(path).map_err(write(path))?;
    }
    let header = protocol::header();
    for (name, text) in SOURCES.into_iter().chain([("protocol.h", &*header), ("nothing.c", "")]) {
        fs::write(sources.join(name), text).map_err(write(&sources))?;
    }
    compile(&sources, &library, compiler)?;
    let links = [(real, protocol::REAL_NAME), (Path::new(NAME), "libcuda.so")];
    for (target, name) in links {
        symlink(target, library.join(name)).map_err(write(&library))?;
    }
    match fs::rename(&library, &folder) {
        Err(error) if !folder.is_dir() => Err(write(&folder)(error)),
        _ => Ok(folder),
    }
}

/// `LD_LIBRARY_PATH` with the folder before what it was.
pub(crate) fn search_path(folder: &Path, before: Option<OsString>) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    path
}

fn fingerprint(compiler: &str, real: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    (SOURCES, FLAGS, protocol::header(), compiler, real, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    hasher.finish()
}

fn compile(sources: &Path, library: &Path, compiler: &str) -> Result<(), LibraryError> {
    // A library of the real one's other name, which holds nothing: linked with the real one itself, ours would need its own name.
    let soname = format!("-Wl,-soname,{}", protocol::REAL_NAME);
    let nothing = [&FLAGS[..], &[&soname, "nothing.c", "-o", "nothing.so"]].concat();
    compile_in(sources, compiler, &nothing, &[])?;
    let soname = format!("-Wl,-soname,{NAME}");
    let link = [
        "-Wl,--no-as-needed",
        "./nothing.so",
        "-Wl,-rpath,$ORIGIN",
        "-Wl,-z,nodelete",
        "-Wl,--as-needed",
        "-ldl",
    ];
    let output = library.join(NAME);
    let arguments = [&FLAGS[..], &[&*soname, "front.c"], &link[..], &["-o"]].concat();
    compile_in(sources, compiler, &arguments, &[output.as_os_str()])
}

/// Compiles in `folder`, `output` being the last of the arguments.
///
/// # Errors
/// The compiler is missing or fails.
pub(crate) fn compile_in(
    folder: &Path,
    compiler: &str,
    arguments: &[&str],
    output: &[&OsStr],
) -> Result<(), LibraryError> {
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words).current_dir(folder).args(arguments).args(output);
    let output = command
        .output()
        .map_err(|source| LibraryError::NoCompiler { compiler: compiler.to_owned(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LibraryError::Compile { compiler: compiler.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_built_once_for_each_driver_and_without_a_warning() {
        let cache = tempfile::tempdir().unwrap();
        let real = cache.path().join("libcuda.so.999");
        let folder = front(cache.path(), "cc -Werror", &real).unwrap();
        assert_eq!(front(cache.path(), "cc -Werror", &real).unwrap(), folder);
        assert_eq!(fs::read_link(folder.join(protocol::REAL_NAME)).unwrap(), real);
        let other = front(cache.path(), "cc -Werror", &cache.path().join("other")).unwrap();
        assert_ne!(other, folder);
    }

    #[test]
    fn what_can_not_be_built_is_said() {
        let cache = tempfile::tempdir().unwrap();
        let error = front(cache.path(), "no-such-compiler", Path::new("/x")).unwrap_err().to_string();
        assert!(error.starts_with("the C compiler `no-such-compiler` could not be started"), "{error}");
        let error = front(cache.path(), "false", Path::new("/x")).unwrap_err();
        assert!(matches!(error, LibraryError::Compile { .. }), "{error}");
    }

    #[test]
    fn the_folder_comes_first() {
        let path = |before: Option<&str>| search_path(Path::new("/f"), before.map(Into::into));
        assert_eq!(
            (path(None), path(Some("")), path(Some("/a"))),
            ("/f".into(), "/f".into(), "/f:/a".into())
        );
    }
}
