//! Holds the date still, so that all runs of a verification seed alike.
//!
//! A program that says `srand(time(NULL))` has other data in each run, and a right candidate would differ from its reference. A small
//! library (`clock/clock.c`) is loaded before the program's own: it answers questions for the date and for the system's random
//! numbers from a base that is the same for all runs that are compared, and lets durations be what they are. What it can't
//! hold (a static program, the processor's `rdrand`, /dev/urandom) is as it was: where two runs of the reference differ by it, that is
//! left out of the comparison and said, as ever.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::watch::{LibraryError, compile_in};

const SOURCE: &str = include_str!("clock/clock.c");
const NAME: &str = "libstitchcuda-date.so";

/// Flags of the compile.
const FLAGS: [&str; 9] = [
    "-O2",
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "clock.c",
];

/// The variable that tells the library the base, in seconds since 1970.
const VARIABLE: &str = "STITCHCUDA_DATE";

/// The date at which a verification's runs begin: now. Never one to come, since deadlines are made of it.
pub(crate) fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::from_secs(1)).as_secs()
}

/// Another one, of the days before `date`: what follows from the date is other data then.
pub(crate) fn earlier(date: u64, by: u64) -> u64 {
    const DAYS: u64 = 30;
    date.saturating_sub(1 + by % (DAYS * 24 * 3600)).max(1)
}

/// The variables that hold the date at `date` for a program that is started with them.
///
/// # Errors
/// The library can't be built: there is no compiler, or no folder for it.
pub(crate) fn variables(
    date: u64,
    cache: &Path,
    compiler: &str,
) -> Result<[(OsString, OsString); 2], LibraryError> {
    let library = library(cache, compiler)?;
    let mut preload = library.into_os_string();
    if let Some(before) = std::env::var_os("LD_PRELOAD").filter(|before| !before.is_empty()) {
        preload.push(":");
        preload.push(before);
    }
    Ok([("LD_PRELOAD".into(), preload), (VARIABLE.into(), date.to_string().into())])
}

/// The library, built if it is not in `cache` yet.
fn library(cache: &Path, compiler: &str) -> Result<PathBuf, LibraryError> {
    let mut hasher = DefaultHasher::new();
    (SOURCE, FLAGS, compiler, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    let folder = cache.join(format!("date-{:016x}", hasher.finish()));
    let library = folder.join(NAME);
    if library.is_file() {
        return Ok(library);
    }
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| LibraryError::Write { path, source }
    };
    fs::create_dir_all(cache).map_err(write(cache))?;
    // Built aside and moved: another process may build the same.
    let scratch = tempfile::tempdir_in(cache).map_err(write(cache))?;
    let (sources, built) = (scratch.path().join("source"), scratch.path().join("library"));
    for path in [&sources, &built] {
        fs::create_dir_all(path).map_err(write(path))?;
    }
    fs::write(sources.join("clock.c"), SOURCE).map_err(write(&sources))?;
    let output = built.join(NAME);
    let arguments = [&FLAGS[..], &["-ldl", "-o"]].concat();
    compile_in(&sources, compiler, &arguments, &[output.as_os_str()])?;
    match fs::rename(&built, &folder) {
        Err(error) if !library.is_file() => Err(write(&folder)(error)),
        _ => Ok(library),
    }
}

/// What a program seeds with.
const SEEDS: &[&str] = &[
    "srand",
    "srandom",
    "srand48",
    "mt19937",
    "mt19937_64",
    "default_random_engine",
    "minstd_rand",
    "curand_init",
];
/// What gives another number in each run.
const CLOCKS: &[&str] = &[
    "time",
    "clock",
    "gettimeofday",
    "clock_gettime",
    "system_clock",
    "high_resolution_clock",
    "random_device",
    "getrandom",
];

/// Whether a program seeds by the clock, as far as its text tells.
pub(crate) fn seeds_by_the_clock(text: &str) -> bool {
    let words = || text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words().any(|word| SEEDS.contains(&word)) && words().any(|word| CLOCKS.contains(&word))
}

#[cfg(test)]
mod tests;
