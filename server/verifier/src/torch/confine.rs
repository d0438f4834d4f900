//! Puts the processes of a person's Python into the sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::sandbox::{Policy, Sandbox, shows_home};

use super::host::{LIFE, Needs, OUTPUT_LIMIT, Place, Wrap};

/// The share of the machine's memory that a process may take where nothing else is said: 3 / 4.
const SHARE: (u64, u64) = (3, 4);
/// Processor time of a job, over all its processes: each request has a limit of its own in wall time.
const PROCESSOR_TIME: Duration = Duration::from_secs(24 * 3600);

/// A sandbox around each process. It sees the system, its interpreter and what it needs; no home folder is ever shown, nor one that holds it.
pub fn confined(sandbox: Sandbox) -> Wrap {
    Arc::new(move |needs, scratch, end| {
        let job = sandbox.wrap(policy(needs, scratch.path()), scratch).map_err(|error| error.to_string())?;
        let job = job.time_limit(LIFE).output_limit(OUTPUT_LIMIT);
        Ok(Box::pin(
            async move { job.run(&end).await.map(|ran| ran.finished).map_err(|error| error.to_string()) },
        ))
    })
}

fn policy(needs: &Needs, scratch: &Path) -> Policy {
    let mut policy = Policy::new(&needs.program)
        .args(&needs.arguments)
        .current_dir(scratch)
        .cpu(PROCESSOR_TIME)
        .large_files()
        .memory(needs.memory_bytes.unwrap_or_else(most_memory));
    for (name, value) in &needs.environment {
        policy = policy.env(name.clone(), value.clone());
    }
    let is_there = |path: &&PathBuf| path.exists() && !shows_home(path);
    for path in needs.readable.iter().filter(is_there) {
        policy = policy.readable(path);
    }
    if matches!(needs.place, Place::Cuda(_)) { policy.gpu() } else { policy }
}

/// What a process may take of the machine's memory, in bytes.
fn most_memory() -> u64 {
    const UNKNOWN: u64 = 16 << 30;
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    total.map_or(UNKNOWN, |kibibytes| kibibytes * 1024 / SHARE.1 * SHARE.0)
}
