//! Builds the library that stands where a program looks for libcudart.
//!
//! It is C, since only a linker script can give its functions the version that programs ask for (`libcudart.so.12`,
//! `libcudart.so.13`); a program whose library has no such version does not start. The sources are in this binary, and are
//! compiled once into a cache folder, by the host compiler that nvcc needs anyway.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{errors, protocol};

/// The runtimes that are stood in for: the number in the library's name, and what `cudaRuntimeGetVersion` says.
const VERSIONS: [(u32, u32); 2] = [(12, 12090), (13, 13000)];

/// Every function that the real libraries export, and which of them: `both`, `12`, `13`. From the export tables of
/// libcudart 12.9 and 13.5.
const NAMES: &str = include_str!("../stub/names.txt");

const SOURCES: [(&str, &str); 14] = [
    ("stub.c", include_str!("../stub/stub.c")),
    ("stub.h", include_str!("../stub/stub.h")),
    ("connect.c", include_str!("../stub/connect.c")),
    ("helper.c", include_str!("../stub/helper.c")),
    ("register.c", include_str!("../stub/register.c")),
    ("launch.c", include_str!("../stub/launch.c")),
    ("memory.c", include_str!("../stub/memory.c")),
    ("pools.c", include_str!("../stub/pools.c")),
    ("symbols.c", include_str!("../stub/symbols.c")),
    ("streams.c", include_str!("../stub/streams.c")),
    ("device.c", include_str!("../stub/device.c")),
    ("graphs.c", include_str!("../stub/graphs.c")),
    ("executables.c", include_str!("../stub/executables.c")),
    ("tensors.c", include_str!("../stub/tensors.c")),
];

/// The stub could not be built.
#[derive(Debug, thiserror::Error)]
pub enum StubError {
    /// A file could not be written.
    #[error("can't write the simulator's libcudart to {}: {source}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No compiler.
    #[error(
        "can't start the C compiler `{compiler}` to build the simulator's libcudart: {source}; install gcc, or name one in CC"
    )]
    NoCompiler {
        /// What was tried.
        compiler: String,
        /// Why not.
        source: io::Error,
    },
    /// The compiler failed.
    #[error("`{compiler}` could not build the simulator's libcudart: {message}")]
    Compile {
        /// What was started.
        compiler: String,
        /// What it said.
        message: String,
    },
}

/// The folder with `libcudart.so.12` and `libcudart.so.13`, built if it is not in `cache` yet.
///
/// # Errors
/// Where the folder can't be written, or the compiler is missing or fails.
pub fn build(cache: &Path, compiler: &str) -> Result<PathBuf, StubError> {
    let folder = cache.join(format!("libcudart-{:016x}", fingerprint(compiler)));
    if folder.is_dir() {
        return Ok(folder);
    }
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| StubError::Write { path, source }
    };
    fs::create_dir_all(cache).map_err(write(cache))?;
    // Built aside and moved: another process may build the same.
    let scratch = tempfile::tempdir_in(cache).map_err(write(cache))?;
    let sources = scratch.path().join("source");
    let library = scratch.path().join("library");
    for path in [&sources, &library] {
        fs::create_dir_all(path).map_err(write(path))?;
    }
    for (name, text) in SOURCES {
        fs::write(sources.join(name), text).map_err(write(&sources))?;
    }
    for (version, full) in VERSIONS {
        for (name, text) in generated(version) {
            fs::write(sources.join(name), text).map_err(write(&sources))?;
        }
        compile(&sources, &library, version, full, compiler)?;
        // Where `-lcudart` is looked for, so that programs can be linked with it.
        let link = link_folder(&library, version);
        fs::create_dir_all(&link).map_err(write(&link))?;
        let target = format!("../libcudart.so.{version}");
        std::os::unix::fs::symlink(target, link.join("libcudart.so")).map_err(write(&link))?;
    }
    match fs::rename(&library, &folder) {
        Err(error) if !folder.is_dir() => Err(write(&folder)(error)),
        _ => Ok(folder),
    }
}

/// The folder to link a program with (`-L`), for one version of the runtime; `folder` is what [`build`] returned.
#[must_use]
pub fn link_folder(folder: &Path, version: u32) -> PathBuf {
    folder.join(format!("link-{version}"))
}

fn fingerprint(compiler: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (SOURCES, VERSIONS, NAMES, protocol::header(), compiler, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    hasher.finish()
}

fn compile(sources: &Path, library: &Path, version: u32, full: u32, compiler: &str) -> Result<(), StubError> {
    let name = format!("libcudart.so.{version}");
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command
        .args(words)
        .current_dir(sources)
        .args([
            "-O2",
            "-std=gnu11",
            "-fPIC",
            "-shared",
            "-pthread",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
        ])
        .arg(format!("-DCUDART={version}"))
        .arg(format!("-DCUDART_VERSION={full}"))
        .arg(format!("-Wl,-soname,{name}"))
        .args(["-Wl,--version-script=versions.map", "-Wl,-z,nodelete", "stub.c", "-o"])
        .arg(library.join(&name));
    let output =
        command.output().map_err(|source| StubError::NoCompiler { compiler: compiler.to_owned(), source })?;
    if output.status.success() && output.stderr.is_empty() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        tracing::debug!("{message}");
        return Ok(());
    }
    Err(StubError::Compile { compiler: compiler.to_owned(), message })
}

/// The files that are written from tables, for one version of the runtime.
fn generated(version: u32) -> [(&'static str, String); 4] {
    [
        ("protocol.h", protocol::header()),
        ("error_table.h", error_table()),
        ("rest.h", rest(version)),
        ("versions.map", format!("libcudart.so.{version} {{ global: cuda*; __cuda*; local: *; }};\n")),
    ]
}

/// The errors that both runtimes know; the newer ones came after 13.0.
fn error_table() -> String {
    let newer = [10, 227, 917, 918, 919];
    let mut text = String::new();
    for (number, name, meaning) in errors::all().filter(|(number, ..)| !newer.contains(number)) {
        let _ = writeln!(text, "{{{number}, \"{name}\", \"{meaning}\"}},");
    }
    text
}

/// The functions that a version of the runtime exports.
fn exported(version: u32) -> impl Iterator<Item = &'static str> {
    let mine = version.to_string();
    NAMES.lines().filter_map(move |line| {
        let (versions, name) = line.split_once(' ')?;
        (versions == "both" || versions == mine).then_some(name)
    })
}

/// What the sources do not define: variants for the per-thread default stream say so and call the function; everything else
/// says that it is missing.
fn rest(version: u32) -> String {
    let defined = defined(version);
    let mut text = String::from("/* Written from names.txt. */\n");
    for name in exported(version).filter(|&name| !defined.contains_key(name)) {
        let base = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"));
        match base.and_then(|base| Some((base, defined.get(base)?))) {
            Some((base, parameters)) => {
                let _ = writeln!(
                    text,
                    "API status {name}({parameters})\n{{\n    per_thread++;\n    status error = {base}({});\n    per_thread--;\n    \
                     return error;\n}}",
                    names(parameters).join(", ")
                );
            }
            None => {
                let _ = writeln!(text, "API status {name}(void) {{ return missing(\"{name}\"); }}");
            }
        }
    }
    text
}

/// The names in a list of C parameters: the last word of each.
fn names(parameters: &str) -> Vec<&str> {
    parameters.split(',').filter_map(|parameter| parameter.rsplit([' ', '*']).next()).collect()
}

/// The functions that the sources define for a version, with their parameters: those that follow `API`.
fn defined(version: u32) -> HashMap<&'static str, &'static str> {
    let mut found = HashMap::new();
    for (_, source) in SOURCES.iter().filter(|(name, _)| name.ends_with(".c")) {
        let mut taken = true;
        let mut offset = 0;
        for line in source.split_inclusive('\n') {
            match line.trim() {
                "#if CUDART >= 13" => taken = version >= 13,
                "#if CUDART < 13" => taken = version < 13,
                "#else" => taken = !taken,
                "#endif" => taken = true,
                _ => {}
            }
            let rest = source[offset..].strip_prefix("API ").filter(|_| taken);
            if let Some((head, tail)) = rest.and_then(|rest| rest.split_once('('))
                && let Some(name) = head.rsplit([' ', '*']).next()
                && let Some((parameters, _)) = tail.split_once(')')
            {
                found.insert(name, parameters);
            }
            offset += line.len();
        }
    }
    found
}

/// The functions that the simulator has of those that a version of the runtime exports, and those that it has not.
#[must_use]
pub fn coverage(version: u32) -> (Vec<&'static str>, Vec<&'static str>) {
    let defined = defined(version);
    let base = |name: &'static str| {
        name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
    };
    exported(version).partition(|name| defined.contains_key(name) || defined.contains_key(base(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stub_exports_what_the_real_library_does() {
        let cache = tempfile::tempdir().unwrap();
        let folder = build(cache.path(), "cc -Werror").unwrap();
        for (version, _) in VERSIONS {
            let library = folder.join(format!("libcudart.so.{version}"));
            let bytes = fs::read(library).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            let symbols = object::Object::dynamic_symbols(&file).filter(object::ObjectSymbol::is_definition);
            let mut found: Vec<String> =
                symbols.map(|symbol| object::ObjectSymbol::name(&symbol).unwrap().to_owned()).collect();
            found.retain(|name| !name.starts_with("libcudart.so"));
            found.sort_unstable();
            let expected: Vec<&str> = exported(version).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(build(cache.path(), "cc -Werror").unwrap(), folder);
    }

    #[test]
    fn every_defined_function_is_one_of_the_runtime() {
        for (version, _) in VERSIONS {
            let exported: Vec<&str> = exported(version).collect();
            let unknown: Vec<&str> =
                defined(version).into_keys().filter(|name| !exported.contains(name)).collect();
            assert!(unknown.is_empty(), "{version}: {unknown:?}");
            let (has, lacks) = coverage(version);
            assert!(has.len() > 2 * lacks.len() / 3, "{} {}", has.len(), lacks.len());
        }
    }

    #[test]
    fn a_missing_compiler_is_said() {
        let cache = tempfile::tempdir().unwrap();
        let error = build(cache.path(), "no-such-compiler").unwrap_err();
        assert!(error.to_string().starts_with("can't start the C compiler `no-such-compiler`"), "{error}");
        let error = build(cache.path(), "false").unwrap_err();
        assert!(matches!(error, StubError::Compile { .. }), "{error}");
    }
}
