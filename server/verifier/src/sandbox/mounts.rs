//! Makes the file system inside by our own mounts, in a mount namespace that is already ours.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{chdir, pivot_root};

use super::layout::Entry;
use super::message::Failure;

/// Where the new root is put together: any folder that is there on every system will do, it is covered only for us.
const STAGE: &str = "/tmp";
/// Parts of `/proc` by which root could change the machine. Source: the same list in bubblewrap and in runc.
const PROC_READ_ONLY: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// What a container may have mounted there, so that the driver sees only the GPUs that are given to it.
pub(super) const PROC_DRIVER: &str = "/proc/driver/nvidia";
/// The mounts, while the old root is there. The old `/proc` knows this process too.
const MOUNTS: &str = "/old/proc/self/mountinfo";

const NONE: Option<&str> = None;

/// Makes the root of this mount namespace hold `entries` and nothing else.
///
/// # Errors
/// The system refuses a mount.
pub(super) fn make(entries: &[Entry], fresh_proc: bool) -> Result<(), Failure> {
    let what = |what: &str| {
        let what = what.to_owned();
        move |error: nix::Error| Failure::new(what, error)
    };
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .map_err(what("keeping mounts private"))?;
    memory(Path::new(STAGE), 1 << 20, "755").map_err(what("mounting a new root"))?;
    // Under the new root, so that the old one can be put beside it.
    let (new, old) = (Path::new(STAGE).join("new"), Path::new(STAGE).join("old"));
    for folder in [&new, &old] {
        fs::create_dir(folder).map_err(|error| Failure::new("making a new root", error))?;
    }
    mount(Some(&new), &new, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)
        .map_err(what("binding a new root"))?;
    pivot_root(STAGE, &old).map_err(what("entering a new root"))?;
    chdir("/").map_err(what("entering a new root"))?;
    for entry in entries {
        put(entry, fresh_proc)?;
    }
    // The root that it replaces comes to lie over it, and is taken away.
    chdir("/new").map_err(what("entering the finished root"))?;
    pivot_root(".", ".").map_err(what("entering the finished root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(what("leaving the old root"))?;
    chdir("/").map_err(what("entering the finished root"))?;
    let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | kept("/");
    mount(NONE, "/", NONE, read_only, NONE).map_err(what("making the root read-only"))
}

/// Puts one entry under `/new`; the machine's files lie under `/old`.
fn put(entry: &Entry, fresh_proc: bool) -> Result<(), Failure> {
    let failure = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::new(format!("showing {}", path.display()), error)
    };
    match entry {
        Entry::Show { real, path, writable } => {
            bind(real, path).map_err(|error| failure(path, &error))?;
            if *writable {
                Ok(())
            } else {
                read_only(&under("/new", path)).map_err(|error| failure(path, &error))
            }
        }
        Entry::Device(path) => bind(path, path).map_err(|error| failure(path, &error)),
        Entry::Link { at, target } => {
            let place = under("/new", at);
            parent(&place).and_then(|()| symlink(target, place)).map_err(|error| failure(at, &error))
        }
        Entry::Memory { at, bytes } => {
            let place = under("/new", at);
            fs::create_dir_all(&place).map_err(|error| failure(at, &error))?;
            memory(&place, *bytes, "1777").map_err(|error| failure(at, &error))
        }
        Entry::Processes => processes(fresh_proc).map_err(|error| failure(Path::new("/proc"), &error)),
    }
}

/// The processes: of this namespace, or, where the system does not allow that, all, read-only.
fn processes(fresh: bool) -> nix::Result<()> {
    let place = Path::new("/new/proc");
    fs::create_dir_all(place).map_err(|_| nix::Error::EIO)?;
    if !fresh {
        bind(Path::new("/proc"), Path::new("/proc"))?;
        return read_only(place);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), place, Some("proc"), flags, NONE)?;
    for name in PROC_READ_ONLY {
        let path = place.join(name);
        if path.exists() {
            mount(Some(&path), &path, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?;
            read_only(&path)?;
        }
    }
    // An old mount is shown over the new one only if there is one: the file system of processes has no folder of that name else.
    if is_mount(Path::new(MOUNTS), &under("/old", Path::new(PROC_DRIVER)))
        && under("/new", Path::new(PROC_DRIVER)).exists()
    {
        bind(Path::new(PROC_DRIVER), Path::new(PROC_DRIVER))?;
        read_only(&under("/new", Path::new(PROC_DRIVER)))?;
    }
    Ok(())
}

/// Whether something is mounted at or below a path, by the table of mounts at `table`.
pub(super) fn is_mount(table: &Path, path: &Path) -> bool {
    fs::read_to_string(table).is_ok_and(|text| mounts_at(&text, path).next().is_some())
}

/// Shows a file or folder of the machine at a path.
fn bind(real: &Path, path: &Path) -> nix::Result<()> {
    let (from, to) = (under("/old", real), under("/new", path));
    let made = if from.is_dir() {
        fs::create_dir_all(&to)
    } else {
        parent(&to).and_then(|()| if to.exists() { Ok(()) } else { File::create(&to).map(drop) })
    };
    // In a folder that is shown read-only, what is to be mounted on is there already.
    made.map_err(|error| error.raw_os_error().map_or(nix::Error::EIO, nix::Error::from_raw))?;
    mount(Some(&from), &to, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)
}

fn parent(place: &Path) -> std::io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}

fn memory(at: &Path, bytes: u64, mode: &str) -> nix::Result<()> {
    let options = format!("size={bytes},mode={mode}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some(options.as_str()))
}

/// Makes a mount and those below it read-only. `mount_setattr` would do it at once, from Linux 5.12 on.
fn read_only(top: &Path) -> nix::Result<()> {
    let text = fs::read_to_string(MOUNTS).map_err(|_| nix::Error::ENOENT)?;
    for path in mounts_at(&text, top) {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | kept(&path);
        match mount(NONE, &path, NONE, flags, NONE) {
            // One that lies under another, or that we can't reach: nor can the program.
            Ok(()) | Err(nix::Error::EACCES | nix::Error::ENOENT | nix::Error::EINVAL) if path != top => {}
            Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The mount points at and below a path, in the form of `/proc/self/mountinfo`.
fn mounts_at<'a>(text: &'a str, top: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    text.lines().filter_map(move |line| {
        let path = PathBuf::from(plain(line.split(' ').nth(4)?));
        path.starts_with(top).then_some(path)
    })
}

/// A path as it is: blanks, tabs, line ends and backslashes are written as octal numbers there.
fn plain(written: &str) -> String {
    let mut rest = written;
    let mut path = String::new();
    while let Some(at) = rest.find('\\') {
        path.push_str(&rest[..at]);
        match rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            None => {
                path.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    path.push_str(rest);
    path
}

/// The flags that a mount has and must keep: a user namespace may not take them away.
fn kept(path: impl AsRef<Path>) -> MsFlags {
    let Ok(path) = CString::new(path.as_ref().as_os_str().as_bytes()) else { return MsFlags::empty() };
    let Ok(found) = statvfs(path.as_c_str()) else { return MsFlags::empty() };
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let flags = found.flags();
    pairs.into_iter().filter(|(has, _)| flags.contains(*has)).map(|(_, keep)| keep).collect()
}

fn under(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_found_below_a_path() {
        let text = "22 1 8:1 / / rw - ext4 a rw\n23 22 0:5 / /a\\040b rw - tmpfs b rw\n\
                    24 22 0:5 / /a\\040b/c\\134 rw - tmpfs b rw\n25 22 0:5 / /ab rw - tmpfs b rw\n";
        let found: Vec<_> = mounts_at(text, Path::new("/a b")).collect();
        assert_eq!(found, [PathBuf::from("/a b"), PathBuf::from("/a b/c\\")]);
        assert_eq!(mounts_at(text, Path::new("/")).count(), 4);
    }
}
