//! The filter on system calls.
//!
//! A list of what is refused, not of what is allowed: CUDA, Python and compilers call nearly everything else, and what they will
//! call next year is not known. A refused call returns an error and never ends the program, which may only be asking. (A program of
//! another processor, 32-bit x86 say, is ended: its calls have other numbers.)

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Refused with EPERM, whatever the arguments.
const REFUSED: &[i64] = &[
    // Other processes: their memory, their files, their fate.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Parts of the kernel that are large, young, and of no use here.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Mounts and namespaces: what is hidden stays hidden.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine.
    libc::SYS_kexec_load,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Flags of `clone` that make a namespace. Source: `linux/sched.h`; CLONE_NEWTIME is none of `clone`'s.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests of `ioctl` that type into the terminal of the one who started us.
// The type differs between C libraries.
#[allow(clippy::unnecessary_cast)]
const TYPING: &[u64] = &[libc::TIOCSTI as u64, libc::TIOCLINUX as u64];

/// Bit of the numbers of system calls of the x32 interface, which would pass by every rule on x86-64.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Applies the filter to this thread and what it starts.
///
/// # Errors
/// The kernel has no filters, or refuses them; in words.
pub(super) fn apply() -> Result<(), String> {
    for program in programs()? {
        apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// One filter for each error number. Of several filters on one call, an error wins over permission.
fn programs() -> Result<Vec<BpfProgram>, String> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|&call| (call, Vec::new())).collect();
    let clone: Result<_, String> =
        NAMESPACES.iter().map(|&flag| rule(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64)).collect();
    refused.insert(libc::SYS_clone, clone?);
    let typing: Result<_, String> =
        TYPING.iter().map(|&request| rule(1, SeccompCmpOp::Eq, request)).collect();
    refused.insert(libc::SYS_ioctl, typing?);
    let not_unix = || Ok::<_, String>(vec![rule(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?]);
    let sockets = BTreeMap::from([(libc::SYS_socket, not_unix()?), (libc::SYS_socketpair, not_unix()?)]);
    // Its flags lie in memory, where no filter sees them; every C library then calls `clone`.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut first = compile(refused, libc::EPERM)?;
    refuse_x32(&mut first);
    Ok(vec![first, compile(sockets, libc::EAFNOSUPPORT)?, compile(absent, libc::ENOSYS)?])
}

/// One condition on an argument. The kernel cuts the arguments in question to 32 bits, so the upper ones must not be looked at.
fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(|error| error.to_string())
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, String> {
    let architecture: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| format!("no filter is known for the processor {}", std::env::consts::ARCH))?;
    let error = SeccompAction::Errno(u32::try_from(error).unwrap_or(1));
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, architecture);
    filter.and_then(BpfProgram::try_from).map_err(|error| error.to_string())
}

/// Puts a rule first that refuses calls of the x32 interface as if the kernel had none.
#[cfg(target_arch = "x86_64")]
fn refuse_x32(program: &mut BpfProgram) {
    use seccompiler::sock_filter;
    // Codes of the kernel's `linux/bpf_common.h`; the number of the call is the first word of `struct seccomp_data`.
    let load = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let at_least = sock_filter { code: 0x35, jt: 0, jf: 1, k: X32 };
    let refuse = sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32 };
    program.splice(0..0, [load, at_least, refuse]);
}

#[cfg(not(target_arch = "x86_64"))]
fn refuse_x32(_program: &mut BpfProgram) {}
