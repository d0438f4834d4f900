//! The kernel's check on paths, which needs neither root nor namespaces. See `landlock(7)`.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use nix::unistd::geteuid;

use super::layout;
use super::message::Order;
use super::{Active, Layer};

/// The newest interface that is asked for; what a kernel lacks of it is left out.
const NEWEST: ABI = ABI::V9;
/// Folders that are private where there are mounts.
const PRIVATE: &[&str] = &["/tmp", "/dev/shm"];
/// CUDA names its threads by writing to `/proc/self/task/*/comm`; without that, `cuInit` gives CUDA_ERROR_OPERATING_SYSTEM (H200, driver 580).
/// What else lies there is kept by its own rights, and by mounts that make the parts read-only by which root could change the machine.
const THREADS: &str = "/proc";

/// Restricts this process and what it starts. What is not active is said in `active`.
pub(super) fn apply(order: &Order, has_mounts: bool, active: &mut Active) {
    let names_threads = order.policy.gpu;
    if names_threads && !has_mounts && geteuid().is_root() {
        active.lack(
            "Landlock",
            "CUDA writes to /proc, which root may only be let do in a file system of its own",
        );
        return;
    }
    let mut interface = ABI::Unsupported;
    match restrict(order, has_mounts) {
        Ok((RulesetStatus::NotEnforced, status)) => active.lack("Landlock", absence(status)),
        Ok((_, LandlockStatus::Available { effective_abi, .. })) => {
            interface = effective_abi;
            active.add(Layer::Landlock);
        }
        Ok((_, status)) => active.lack("Landlock", absence(status)),
        Err(error) => active.lack("Landlock", error),
    }
    if interface >= ABI::V6 {
        active.add(Layer::LandlockSignals);
    } else if !active.has(Layer::PidNamespace) {
        active.lack("a guard on signals", "it takes a process namespace, or Landlock of Linux 6.12");
    }
    if interface < ABI::V9 && !has_mounts {
        active.lack(
            "a guard on sockets",
            "services of this machine can be reached by the paths of their sockets",
        );
    }
}

fn absence(status: LandlockStatus) -> &'static str {
    match status {
        LandlockStatus::NotEnabled => "it is off in this kernel; its boot option is `lsm=landlock,...`",
        _ => "this kernel has none, or a container forbids it; Linux 5.13 and newer have it",
    }
}

fn restrict(order: &Order, has_mounts: bool) -> Result<(RulesetStatus, LandlockStatus), RulesetError> {
    let everything = AccessFs::from_all(NEWEST);
    let readable = if has_mounts { vec![PathBuf::from("/")] } else { layout::readable(&order.policy) };
    let private = PRIVATE.iter().map(Path::new).filter(|_| has_mounts).map(Path::to_owned);
    let writable: Vec<PathBuf> = private.chain([order.scratch.clone()]).collect();
    let named: &[&str] = if order.policy.gpu { &[THREADS] } else { &[] };
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules(layout::devices(order.policy.gpu), everything))?
        .add_rules(path_beneath_rules(writable, everything))?
        .add_rules(path_beneath_rules(named, AccessFs::WriteFile | AccessFs::Truncate))?
        .restrict_self()?;
    Ok((status.ruleset, status.landlock))
}
