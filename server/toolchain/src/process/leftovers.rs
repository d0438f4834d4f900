//! Finds processes of a job that lost its supervisor, by the variable that marks them, and kills them.
//!
//! This is the second net, for a supervisor that was itself killed (by the program, or by the kernel short of memory).

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::JOB_VARIABLE;

/// A process may fork while it is looked for; after this many looks the rest is left alone.
const LOOKS: u32 = 50;

/// Kills each process of this user that carries the mark of the job. Returns how many it found.
pub(super) fn kill_job(job: &str) -> usize {
    let mark = format!("{JOB_VARIABLE}={job}").into_bytes();
    let mut killed = 0;
    for _ in 0..LOOKS {
        let found = marked(&mark);
        if found.is_empty() {
            break;
        }
        killed += found.len();
        for pid in found {
            // It may be gone by now, which is what is wanted.
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    killed
}

fn marked(mark: &[u8]) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = Pid::this();
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
            // A zombie's environment reads as empty, so that the dead are not found again.
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let is_marked = environment.split(|&byte| byte == 0).any(|variable| variable == mark);
            (pid != own && is_marked).then_some(pid)
        })
        .collect()
}
