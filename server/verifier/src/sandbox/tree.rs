//! What a process and its descendants use, read from `/proc`: for where no cgroup counts.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, Uid, sysconf};

/// What a tree of processes uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Memory that is its own, in bytes: anonymous and shared pages, not files. Shared ones count once for each process here.
    pub(super) memory: u64,
    /// Processes and threads.
    pub(super) tasks: u64,
    /// Processor time in clock ticks, of those that live and of the children that they have waited for.
    pub(super) ticks: u64,
}

/// One line of `/proc/PID/stat`, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: i32,
    group: i32,
    /// When it began, in clock ticks since the machine did.
    began: u64,
    ticks: u64,
    threads: u64,
}

/// The descendants of a process, without itself, and what they use.
pub(super) fn look(root: Pid) -> (Vec<Pid>, Usage) {
    let stats = all();
    let members = descendants(&stats, root.as_raw());
    let mut usage = Usage::default();
    for pid in &members {
        if let Some(stat) = stats.get(pid) {
            usage.tasks += stat.threads;
            usage.ticks += stat.ticks;
        }
        usage.memory += memory(*pid, "status", &["RssAnon:", "RssShmem:"]);
    }
    (members.into_iter().map(Pid::from_raw).collect(), usage)
}

/// The memory of these processes with what they share counted once, in bytes. Exact, but the kernel walks all of it.
pub(super) fn exact_memory(members: &[Pid]) -> u64 {
    let fields = ["Pss_Anon:", "Pss_Shmem:"];
    members.iter().map(|pid| memory(pid.as_raw(), "smaps_rollup", &fields)).sum()
}

/// Clock ticks of a second.
pub(super) fn ticks_per_second() -> u64 {
    sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(100)
}

/// Ends all descendants of a process, each with its process group: the kernel ends a group at once, and none in it can start another
/// meanwhile. The caller is in none of these groups.
///
/// A number may have gone to a stranger since it was read. So the process is held by a descriptor first, and then looked at again.
pub(super) fn kill_all(root: Pid) {
    let stats = all();
    for pid in descendants(&stats, root.as_raw()) {
        let (Some(seen), Some(held)) = (stats.get(&pid), hold(pid)) else { continue };
        if read(pid).is_none_or(|now| now.began != seen.began) {
            continue;
        }
        if seen.group > 1 && seen.group != nix::unistd::getpgrp().as_raw() {
            // It may be gone by now.
            let _ = kill(Pid::from_raw(-seen.group), Signal::SIGKILL);
        }
        // SAFETY: sends a signal to the process that the descriptor holds.
        unsafe {
            let no_details = std::ptr::null::<libc::siginfo_t>();
            libc::syscall(libc::SYS_pidfd_send_signal, held.as_raw_fd(), libc::SIGKILL, no_details, 0);
        }
    }
}

/// A descriptor for a process, which keeps meaning that process. Linux 5.3 and newer have it.
fn hold(pid: i32) -> Option<OwnedFd> {
    // SAFETY: makes a descriptor, which nobody else owns.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
        Some(OwnedFd::from_raw_fd(descriptor))
    }
}

/// How many processes and threads a user has.
pub(super) fn tasks_of(user: Uid) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let theirs =
        entries.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user.as_raw()));
    theirs.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).map(|stat| stat.threads).sum()
}

fn all() -> HashMap<i32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, read(pid)?))
        })
        .collect()
}

fn read(pid: i32) -> Option<Stat> {
    stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 4, 5, 14 to 17, 20 and 22 of `proc_pid_stat(5)`. The name in parentheses may hold anything.
fn stat(line: &str) -> Option<Stat> {
    let fields: Vec<_> = line.get(line.rfind(')')? + 2..)?.split(' ').collect();
    let number = |index: usize| fields.get(index - 3)?.parse::<u64>().ok();
    let ticks = (14..=17).map(|index| number(index).unwrap_or(0)).sum();
    let small = |index: usize| fields.get(index - 3)?.parse().ok();
    Some(Stat { parent: small(4)?, group: small(5)?, ticks, threads: number(20)?, began: number(22)? })
}

fn descendants(stats: &HashMap<i32, Stat>, root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, stat) in stats {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let (mut found, mut seen, mut waiting) = (Vec::new(), HashSet::from([root]), vec![root]);
    while let Some(pid) = waiting.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if seen.insert(*child) {
                found.push(*child);
                waiting.push(*child);
            }
        }
    }
    found
}

/// The sum of some fields of a file of a process, which are in KiB, in bytes. 0 if it is gone.
fn memory(pid: i32, file: &str, fields: &[&str]) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let value = |line: &str| {
        let rest = fields.iter().find_map(|field| line.strip_prefix(field))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(value).sum::<u64>() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn a_line_is_read_whatever_the_name() {
        let rest = "S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 5 0 100 1 2";
        for name in ["cat", "a b", "x) R 9 (y"] {
            let expected = Stat { parent: 7, group: 1, began: 100, ticks: 100, threads: 5 };
            assert_eq!(stat(&format!("12 ({name}) {rest}")), Some(expected), "{name}");
        }
        assert_eq!(stat("nonsense"), None);
    }

    #[test]
    fn children_and_their_children_are_counted() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "sleep 30 & wait"])
            .process_group(0)
            .spawn()
            .unwrap();
        let mut usage = Usage::default();
        for _ in 0..100 {
            let (members, found) = look(Pid::this());
            let ours = descendants(&all(), child.id() as i32);
            if ours.len() == 1 && members.contains(&Pid::from_raw(ours[0])) {
                usage = found;
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(usage.tasks >= 2 && usage.memory > 0, "{usage:?}");
        assert!(exact_memory(&[Pid::from_raw(child.id() as i32)]) > 0);
        kill_all(Pid::from_raw(child.id() as i32));
        child.wait().unwrap();
    }
}
