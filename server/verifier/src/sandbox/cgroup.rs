//! A cgroup (version 2) for one job: the kernel itself limits memory and processes, and ends everything at once.
//!
//! Version 1 has no rule by which a user may make groups, and containers show it read-only, so it is not tried.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::message::Failure;

/// How the names of our groups begin; then the process that made it, and a number.
const PREFIX: &str = "stitchcuda-";
/// The controllers that are needed.
const NEEDED: [&str; 2] = ["memory", "pids"];
/// A group whose last process has just ended can't be removed for a moment.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// Where groups can be made: the folder in which they are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    folder: PathBuf,
}

/// A group for one job. Removed when dropped, with what is left in it.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
}

impl Groups {
    /// Finds where groups can be made, and makes one to see that they can.
    ///
    /// # Errors
    /// They can't; in words, with what to do.
    pub(super) fn find() -> Result<Self, String> {
        let own =
            fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
        let (root, path) = place(&own, &mounts)?;
        let own = root.join(path.trim_start_matches('/'));
        // A group with processes in it can't hand controllers down, so ours are made beside the one that we are in.
        let folder = if own == root { own } else { own.parent().unwrap_or(&root).to_owned() };
        let handed = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        let lacking: Vec<_> = NEEDED
            .into_iter()
            .filter(|needed| !handed.split_whitespace().any(|word| word == *needed))
            .collect();
        if !lacking.is_empty() {
            return Err(format!(
                "the cgroup {} hands no controller for {} down; start StitchCUDA by `systemd-run --user --scope`",
                folder.display(),
                lacking.join(" and ")
            ));
        }
        let groups = Self { folder };
        groups.sweep();
        let group = groups.make(1 << 30, 100).map_err(|error| {
            format!("no cgroup can be made ({error}); start StitchCUDA by `systemd-run --user --scope`")
        })?;
        group.try_entering()?;
        Ok(groups)
    }

    /// Makes a group that holds at most `memory` bytes and `tasks` processes and threads.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn make(&self, memory: u64, tasks: u64) -> io::Result<Group> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("{PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = self.folder.join(name);
        fs::create_dir(&path)?;
        let group = Group { path };
        group.write("memory.max", memory)?;
        group.write("pids.max", tasks)?;
        // Where there is no swap there is no such file.
        let _ = group.write("memory.swap.max", 0);
        Ok(group)
    }

    /// Removes the empty groups of processes that are gone.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
            if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
                // One that still holds a process stays.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// The mount of version 2, and the path of our own group in it.
fn place(own: &str, mounts: &str) -> Result<(PathBuf, String), String> {
    let root = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<_> = before.split(' ').collect();
        let is_read_only = fields.get(5)?.split(',').any(|option| option == "ro");
        after.starts_with("cgroup2 ").then(|| (PathBuf::from(fields[4]), is_read_only))
    });
    let Some((root, is_read_only)) = root else {
        return Err("there is no cgroup of version 2; the kernel's boot option is `systemd.unified_cgroup_hierarchy=1`".into());
    };
    if is_read_only {
        return Err(format!(
            "{} is mounted read-only, as containers have it; a container that may limit its jobs needs it writable",
            root.display()
        ));
    }
    if NEEDED.iter().any(|needed| own.lines().any(|line| controls(line, needed))) {
        return Err(
            "memory or processes are counted by cgroups of version 1, where a job can't have its own".into(),
        );
    }
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("this process is in no cgroup")?;
    Ok((root, path.to_owned()))
}

/// Whether a line of `/proc/PID/cgroup` is of version 1 and has this controller.
fn controls(line: &str, controller: &str) -> bool {
    line.split(':').nth(1).is_some_and(|names| names.split(',').any(|name| name == controller))
}

impl Group {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, name: &str, value: u64) -> io::Result<()> {
        fs::write(self.path.join(name), value.to_string())
    }

    /// Sees whether a process of ours may enter: that takes rights on the group above too.
    fn try_entering(&self) -> Result<(), String> {
        use stitch_toolchain::process::Program;
        let script = "echo $$ > \"$0/cgroup.procs\"";
        let program = Program::new("/bin/sh").args(["-c", script]).arg(&self.path);
        match program.run_blocking() {
            Ok(finished) if finished.status.success() => Ok(()),
            Ok(_) => Err("a process may not enter a cgroup of its own; start StitchCUDA by `systemd-run --user --scope`".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Linux 5.14 and newer; what is older has had its processes ended by the supervisor.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        for _ in 0..REMOVE_TRIES {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(nix::errno::Errno::EBUSY as i32) => {
                    std::thread::sleep(REMOVE_PAUSE);
                }
                _ => return,
            }
        }
        tracing::warn!("The cgroup {} could not be removed.", self.path.display());
    }
}

/// Moves this process into a group.
///
/// # Errors
/// The system refuses.
pub(super) fn enter(path: &Path) -> Result<(), Failure> {
    fs::write(path.join("cgroup.procs"), "0").map_err(|error| Failure::new("entering the cgroup", error))
}

/// Ends every process of a group at once, where the kernel can.
pub(super) fn kill(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
}

/// Whether the kernel ended a process of the group for its memory.
pub(super) fn ran_out_of_memory(path: &Path) -> bool {
    let events = fs::read_to_string(path.join("memory.events")).unwrap_or_default();
    events.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_group_is_found_where_version_2_rules() {
        let own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n";
        let (root, path) = place(own, UNIFIED).unwrap();
        assert_eq!(root, Path::new("/sys/fs/cgroup"));
        assert!(path.ends_with("/a.scope"));
    }

    #[test]
    fn other_machines_say_why_not() {
        let error = |own: &str, mounts: &str| place(own, mounts).unwrap_err();
        assert!(error("0::/\n", &UNIFIED.replace("rw,nosuid", "ro,nosuid")).contains("read-only"));
        assert!(error("4:memory:/\n0::/\n", UNIFIED).contains("version 1"));
        assert!(error("4:memory:/\n", "").contains("no cgroup of version 2"));
    }

    #[test]
    fn this_machine_says_whether_it_can() {
        match Groups::find() {
            Ok(groups) => {
                let group = groups.make(1 << 30, 50).unwrap();
                let path = group.path().to_owned();
                assert_eq!(fs::read_to_string(path.join("pids.max")).unwrap().trim(), "50");
                drop(group);
                assert!(!path.exists());
            }
            Err(why) => assert!(!why.is_empty() && !why.ends_with('.'), "{why}"),
        }
    }
}
