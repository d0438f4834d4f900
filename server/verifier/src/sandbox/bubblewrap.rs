//! The command line of `bwrap` for the same file system that our own mounts make.

use std::ffi::OsString;
use std::path::Path;

use super::layout::Entry;

/// Options before any mount: every namespace that it can make, no capability, and an end with its parent.
const OPTIONS: &[&str] =
    &["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"];
/// Devices that its own `/dev` has.
const OWN_DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// The arguments of `bwrap`, without the program that it starts.
pub(super) fn arguments(entries: &[Entry], fresh_proc: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    let mut add = |words: &[&Path]| arguments.extend(words.iter().map(|word| word.as_os_str().to_owned()));
    let option = |name: &'static str| Path::new(name);
    add(&[option("--dev"), Path::new("/dev")]);
    for entry in entries {
        match entry {
            Entry::Show { real, path, writable: true } => add(&[option("--bind"), real, path]),
            Entry::Show { real, path, writable: false } => add(&[option("--ro-bind"), real, path]),
            Entry::Device(path) if is_own(path) => {}
            Entry::Device(path) => add(&[option("--dev-bind-try"), path, path]),
            Entry::Link { at, .. } if at.starts_with("/dev") => {}
            Entry::Link { at, target } => add(&[option("--symlink"), target, at]),
            Entry::Memory { at, bytes } => {
                let bytes = bytes.to_string();
                add(&[option("--size"), Path::new(&bytes), option("--tmpfs"), at]);
            }
            Entry::Processes if fresh_proc => add(&[option("--proc"), Path::new("/proc")]),
            Entry::Processes => add(&[option("--ro-bind"), Path::new("/proc"), Path::new("/proc")]),
        }
    }
    let driver = Path::new(super::mounts::PROC_DRIVER);
    if fresh_proc && super::mounts::is_mount(Path::new("/proc/self/mountinfo"), driver) {
        add(&[option("--ro-bind"), driver, driver]);
    }
    add(&[option("--remount-ro"), Path::new("/dev"), option("--remount-ro"), Path::new("/")]);
    arguments
}

fn is_own(path: &Path) -> bool {
    path.parent() == Some(Path::new("/dev"))
        && path.file_name().is_some_and(|name| OWN_DEVICES.iter().any(|own| name == *own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_becomes_an_option() {
        let entries = [
            Entry::Link { at: "/lib".into(), target: "usr/lib".into() },
            Entry::Show { real: "/usr".into(), path: "/usr".into(), writable: false },
            Entry::Show { real: "/data/s".into(), path: "/s".into(), writable: true },
            Entry::Device("/dev/null".into()),
            Entry::Device("/dev/nvidia0".into()),
            Entry::Memory { at: "/dev/shm".into(), bytes: 5 },
            Entry::Processes,
        ];
        let words: Vec<_> =
            arguments(&entries, true).into_iter().map(|word| word.into_string().unwrap()).collect();
        let text = words.join(" ");
        for expected in [
            "--symlink usr/lib /lib --ro-bind /usr /usr --bind /data/s /s",
            "--dev-bind-try /dev/nvidia0 /dev/nvidia0 --size 5 --tmpfs /dev/shm --proc /proc",
            "--unshare-all",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(
            !text.contains("bind /dev/null") && text.ends_with("--remount-ro /dev --remount-ro /"),
            "{text}"
        );
    }
}
