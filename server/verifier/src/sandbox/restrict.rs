//! The last steps before the program: what it may use, no rights, no paths, no system calls that it does not need.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{F_SETFD, FdFlag, fcntl};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};

use super::message::Order;
use super::{Active, Isolation, Layer, landlock, seccomp, tree};

/// Capabilities that a kernel may ever have: their set is a 64-bit number.
const CAPABILITIES: libc::c_ulong = 64;
/// Between the signal that tells a process that its processor time is up, and the one that ends it, in seconds.
const CPU_GRACE: u64 = 1;

/// Takes everything from this process that the program shall not have.
pub(super) fn apply(order: &Order, active: &mut Active) {
    match limit(order, active) {
        Ok(()) => active.add(Layer::Limits),
        Err(error) => active.lack("limits on processor time and files", error),
    }
    match drop_capabilities() {
        Ok(()) => active.add(Layer::NoCapabilities),
        Err(error) => active.lack("dropped capabilities", error),
    }
    match set_no_new_privs() {
        Ok(()) => active.add(Layer::NoNewPrivileges),
        Err(error) => active.lack("no new privileges", error),
    }
    let has_mounts = active.has(Layer::Files);
    if order.plan.landlock {
        landlock::apply(order, has_mounts, active);
    } else {
        active.lack("Landlock", "it was not asked for");
    }
    if !order.plan.seccomp {
        active.lack("seccomp", "it was not asked for");
        return;
    }
    match seccomp::apply() {
        Ok(()) => active.add(Layer::Seccomp),
        Err(error) => active.lack("seccomp", error),
    }
}

fn limit(order: &Order, active: &Active) -> nix::Result<()> {
    let policy = &order.policy;
    let cpu = policy.cpu.as_secs() + u64::from(policy.cpu.subsec_nanos() > 0);
    lower(Resource::RLIMIT_CPU, cpu, cpu + CPU_GRACE)?;
    lower(Resource::RLIMIT_CORE, 0, 0)?;
    lower(Resource::RLIMIT_NOFILE, policy.open_files, policy.open_files)?;
    if !policy.large_files {
        lower(Resource::RLIMIT_FSIZE, order.scratch_limit, order.scratch_limit)?;
    }
    // For root the kernel never counts. In a user namespace it counts what is in there, else all that the user has.
    if !geteuid().is_root() {
        let others = if active.has(Layer::UserNamespace) { 0 } else { tree::tasks_of(geteuid()) };
        lower(Resource::RLIMIT_NPROC, others + policy.tasks, others + policy.tasks)?;
    }
    Ok(())
}

/// Lowers a limit; one that is lower already stays.
fn lower(resource: Resource, soft: u64, hard: u64) -> nix::Result<()> {
    let (old_soft, old_hard) = getrlimit(resource)?;
    setrlimit(resource, soft.min(old_soft), hard.min(old_hard))
}

/// Also for root: without them it may no longer mount, trace, or read what belongs to others.
fn drop_capabilities() -> io::Result<()> {
    for capability in 0..CAPABILITIES {
        // SAFETY: changes a set of this process; a number that the kernel does not know, or a missing right, is an error.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // Where the kernel has no ambient set there is nothing to clear.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Lets the program inherit its three streams and nothing else.
pub(super) fn close_on_exec() {
    let descriptors = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let descriptors: Vec<RawFd> =
        descriptors.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in descriptors.into_iter().filter(|descriptor| *descriptor > 2) {
        // SAFETY: the descriptor is only borrowed for the call, and not closed: the value that would do so is forgotten.
        let borrowed = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(descriptor) });
        // The one by which the folder was read is closed by now.
        let _ = fcntl(&*borrowed, F_SETFD(FdFlag::FD_CLOEXEC));
    }
}

/// Numbers of the namespaces that this process is in, by kind.
pub(super) fn namespaces() -> Vec<(String, u64)> {
    use std::os::unix::fs::MetadataExt;
    let kinds = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let number =
        |kind: &str| Some((kind.to_owned(), fs::metadata(format!("/proc/self/ns/{kind}")).ok()?.ino()));
    kinds.into_iter().filter_map(number).collect()
}

/// The layers that follow from the namespaces: those that differ from the ones outside.
pub(super) fn of_namespaces(order: &Order, active: &mut Active) {
    let inside = namespaces();
    let mounts = !matches!(
        order.plan.isolation,
        Isolation::User { mounts: false } | Isolation::Root { mounts: false }
    );
    if matches!(order.plan.isolation, Isolation::Bubblewrap(_)) {
        active.add(Layer::Bubblewrap);
    }
    let mut lacking = Vec::new();
    for (kind, layer, words) in [
        ("user", Layer::UserNamespace, None),
        ("mnt", Layer::Files, Some("files")),
        ("pid", Layer::PidNamespace, Some("processes")),
        ("net", Layer::NetworkNamespace, Some("network")),
        ("ipc", Layer::IpcNamespace, Some("shared memory")),
        ("uts", Layer::UtsNamespace, None),
        ("cgroup", Layer::CgroupNamespace, None),
    ] {
        let find =
            |list: &[(String, u64)]| list.iter().find(|(known, _)| known == kind).map(|(_, number)| *number);
        let is_own = find(&inside).is_some() && find(&inside) != find(&order.outside);
        if is_own && (layer != Layer::Files || mounts) {
            active.add(layer);
        } else if let Some(words) = words {
            lacking.push(words);
        }
    }
    if !lacking.is_empty() {
        let what = format!("namespaces for {}", lacking.join(", "));
        active.lack(what, format!("jobs run with {} here", order.plan.isolation));
    }
}
