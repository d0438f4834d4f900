//! Whether this user may read the counters of a GPU, which is what Nsight Compute does.

use super::Search;

/// How to allow it, in a sentence.
pub const COUNTERS_REMEDY: &str = "Put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and restart, or run as administrator; in a container, add `--cap-add=SYS_ADMIN`.";

/// What the driver says of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// This user may read them, as far as the driver's setting goes. A container or a hypervisor may refuse all the same.
    Allowed,
    /// Only an administrator may.
    Refused,
    /// No driver says anything.
    Unknown,
}

/// Reads the driver's setting. Source: NVIDIA's page on ERR_NVGPUCTRPERM.
pub fn counters(search: &Search) -> Counters {
    let path = search.environment.under_root("proc/driver/nvidia/params");
    let Ok(parameters) = std::fs::read_to_string(path) else { return Counters::Unknown };
    let restricted = parameters.lines().any(|line| line.replace(' ', "") == "RmProfilingAdminOnly:1");
    if restricted && !nix::unistd::geteuid().is_root() { Counters::Refused } else { Counters::Allowed }
}
