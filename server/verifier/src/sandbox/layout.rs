//! What the file system inside looks like: a list of entries, made the same whoever mounts it.
//!
//! Nothing of the machine is there but what is named here. So a key in a place that nobody thought of is not there either.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Policy;

/// Folders of the system that are shown, read-only: programs, libraries, and the stores of Nix and Guix.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system/sw",
    "/run/opengl-driver",
    "/sys",
];

/// What is shown of `/etc`: what the loader, the C library and Python read. Keys and the passwords' hashes lie there too.
const CONFIGURATION: &[&str] = &[
    "alternatives",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "nsswitch.conf",
    "nvidia",
    "passwd",
    "timezone",
];

/// Devices that every program may use.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// How the names of a GPU's devices begin: those of NVIDIA's driver, of its boards with Tegra, and of Windows' subsystem.
/// Source: `nvidia-container-toolkit`, `internal/platform-support`. `nvme` disks must not match.
const GPU_DEVICES: &[&str] = &["nvidia", "nvhost", "nvmap", "nvgpu", "nvsciipc", "dxg", "dri"];

/// How much `/tmp` may hold, in bytes: it is memory. `TMPDIR` names the scratch folder, which is for more.
pub(super) const TEMPORARY: u64 = 64 << 20;

/// One thing of the file system inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A file or folder of the machine, at the path by which it is known; `real` has no links in it.
    Show { real: PathBuf, path: PathBuf, writable: bool },
    /// A device of the machine.
    Device(PathBuf),
    /// A symbolic link.
    Link { at: PathBuf, target: PathBuf },
    /// A private folder in memory, of a size in bytes.
    Memory { at: PathBuf, bytes: u64 },
    /// The processes.
    Processes,
}

impl Entry {
    fn path(&self) -> &Path {
        match self {
            Self::Show { path, .. } | Self::Device(path) => path,
            Self::Link { at, .. } | Self::Memory { at, .. } => at,
            Self::Processes => Path::new("/proc"),
        }
    }
}

/// Everything inside, parents before what lies in them.
pub(super) fn entries(policy: &Policy, scratch: &Path) -> Vec<Entry> {
    let mut entries = system();
    for path in policy.all_readable() {
        for entry in show(path, false) {
            if !covered(&entries, entry.path()) {
                entries.push(entry);
            }
        }
    }
    entries.push(Entry::Processes);
    entries.push(Entry::Memory { at: "/tmp".into(), bytes: TEMPORARY });
    let shared = policy.shared_memory.unwrap_or(policy.memory / 2);
    entries.push(Entry::Memory { at: "/dev/shm".into(), bytes: shared });
    entries.extend(devices(policy.gpu).into_iter().map(Entry::Device));
    let streams = [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1")];
    for (name, target) in streams.into_iter().chain([("stderr", "/proc/self/fd/2")]) {
        entries.push(Entry::Link { at: Path::new("/dev").join(name), target: target.into() });
    }
    entries.extend(show(scratch, true));
    entries.sort_by_key(|entry| entry.path().components().count());
    entries
}

/// A path, and where it leads to if there is a link in it: a program may use either.
fn show(path: &Path, writable: bool) -> Vec<Entry> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut paths = vec![path.to_owned()];
    if real != path {
        paths.push(real.clone());
    }
    paths.into_iter().map(|path| Entry::Show { real: real.clone(), path, writable }).collect()
}

/// What is shown of the system, as it is on this machine.
fn system() -> Vec<Entry> {
    let mut entries = Vec::new();
    let configuration = CONFIGURATION.iter().map(|name| Path::new("/etc").join(name));
    for path in SYSTEM.iter().map(PathBuf::from).chain(configuration).chain(python_configuration()) {
        if let Some(entry) = as_it_is(&path) {
            entries.push(entry);
        }
    }
    entries
}

/// `/etc/python3` and its kin, which the distributions' Pythons read when they start.
fn python_configuration() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python"))
        .map(|entry| entry.path())
        .collect()
}

/// A link as a link, where what it names is in the system too; else what it leads to.
fn as_it_is(path: &Path) -> Option<Entry> {
    let target = fs::read_link(path);
    match target {
        Ok(target) if fs::canonicalize(path).is_ok_and(|real| real.starts_with("/usr")) => {
            Some(Entry::Link { at: path.to_owned(), target })
        }
        _ => {
            let real = fs::canonicalize(path).ok()?;
            Some(Entry::Show { real, path: path.to_owned(), writable: false })
        }
    }
}

fn covered(entries: &[Entry], path: &Path) -> bool {
    entries.iter().any(|entry| matches!(entry, Entry::Show { path: shown, .. } if path.starts_with(shown)))
        || entries.iter().any(|entry| matches!(entry, Entry::Link { at, .. } if path.starts_with(at)))
}

/// The devices that a program may use.
pub(super) fn devices(gpu: bool) -> Vec<PathBuf> {
    let mut devices: Vec<PathBuf> = DEVICES.iter().map(|name| Path::new("/dev").join(name)).collect();
    if gpu {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        devices.extend(entries.map(|entry| entry.path()).filter(|path| is_gpu(path)));
    }
    devices.retain(|path| path.exists());
    devices
}

fn is_gpu(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    GPU_DEVICES.iter().any(|beginning| name.starts_with(beginning))
}

/// What may be read where no mounts hide the rest: the same paths, for Landlock.
pub(super) fn readable(policy: &Policy) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = system()
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Show { path, .. } => Some(path),
            // A rule on a link is a rule on what it leads to.
            Entry::Link { at, .. } => fs::canonicalize(at).ok(),
            _ => None,
        })
        .collect();
    paths.push("/proc".into());
    paths.extend(policy.all_readable().map(Path::to_owned));
    paths
}

/// Whether a path is a home folder, or a folder that one lies in: showing that would show everything.
///
/// # Errors
/// The path is not there.
pub(super) fn shows_home(path: &Path, homes: &[PathBuf]) -> io::Result<bool> {
    let real = fs::canonicalize(path)?;
    let mut homes = homes.iter().filter_map(|home| fs::canonicalize(home).ok());
    Ok(real == Path::new("/") || homes.any(|home| home.starts_with(&real)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_sees_the_system_its_paths_and_its_scratch_folder() {
        let home = tempfile::tempdir().unwrap();
        let (sources, scratch) = (home.path().join("project/src"), home.path().join("cache/scratch"));
        fs::create_dir_all(&sources).unwrap();
        fs::create_dir_all(&scratch).unwrap();
        let policy = Policy::new("/usr/bin/env").readable(&sources);
        let entries = entries(&policy, &scratch);
        let at = |path: &Path| entries.iter().position(|entry| entry.path() == path);
        let shown = |path: &Path, writable| Entry::Show { real: path.into(), path: path.into(), writable };
        assert!(entries.contains(&shown(&sources, false)));
        assert!(entries.contains(&shown(&scratch, true)));
        // Each after what it lies in.
        assert!(at(Path::new("/tmp")) < at(&sources) && at(Path::new("/usr")) < at(&scratch));
        // The program's own file is in the system already.
        assert_eq!(at(Path::new("/usr/bin/env")), None);
        for hidden in ["/", "/root", "/home", "/etc", "/etc/shadow", "/var", "/run"] {
            assert_eq!(at(Path::new(hidden)), None, "{hidden}");
        }
    }

    #[test]
    fn a_disk_is_no_gpu() {
        for (name, expected) in [
            ("nvidia0", true),
            ("nvidiactl", true),
            ("nvidia-uvm", true),
            ("nvme0n1", false),
            ("nvram", false),
        ] {
            assert_eq!(is_gpu(&Path::new("/dev").join(name)), expected, "{name}");
        }
    }

    #[test]
    fn the_home_folder_is_never_shown_whole() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        let shows = |path: &Path| shows_home(path, &[home.path().to_owned()]).unwrap();
        assert!(shows(home.path()) && shows(home.path().parent().unwrap()) && shows(Path::new("/")));
        assert!(!shows(&home.path().join("project")) && !shows(Path::new("/usr")));
        assert!(shows_home(&home.path().join("nothing"), &[]).is_err());
    }
}
