//! Namespaces of our own making, where there is no `bwrap`.
//!
//! Three processes: one that makes the namespaces, and stays in the old one for processes, since `unshare` moves only children;
//! the first process inside, which mounts, takes in orphans and ends everything by ending; and the program.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, getgid, getuid, pipe, sethostname, setsid};

use super::inner;
use super::layout::{self, Entry};
use super::message::{Failure, Order};
use super::mounts;

/// Runs the program in namespaces of its own. Returns only if that can't be.
///
/// # Errors
/// The system refuses a step.
pub(super) fn run(
    order: &Order,
    user: bool,
    with_mounts: bool,
    messages: File,
) -> Result<Infallible, Failure> {
    let entries = with_mounts.then(|| layout::entries(&order.policy, &order.scratch));
    separate(user, with_mounts)?;
    let what = |error| Failure::new("starting a process", error);
    let (alive, hold) = pipe().map_err(what)?;
    // SAFETY: this process has one thread, so the child may do everything.
    match unsafe { fork() }.map_err(what)? {
        ForkResult::Child => {
            drop(hold);
            first(order, entries.as_deref(), File::from(alive), messages)
        }
        ForkResult::Parent { child } => {
            drop((alive, messages));
            let mut hold = File::from(hold);
            // If nobody reads, the child is gone, and the wait says so.
            let _ = hold.write_all(b"!");
            let _ = waitpid(child, None);
            std::process::exit(0)
        }
    }
}

/// Leaves the namespaces of the parent.
fn separate(user: bool, with_mounts: bool) -> Result<(), Failure> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags = CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    flags.set(CloneFlags::CLONE_NEWUSER, user);
    flags.set(CloneFlags::CLONE_NEWNS, with_mounts);
    unshare(flags).map_err(|error| Failure::new("making namespaces", error))?;
    if user {
        let write = |name: &str, text: String| {
            fs::write(format!("/proc/self/{name}"), text).map_err(|error| {
                Failure::new("naming the user inside", format!("/proc/self/{name}: {error}"))
            })
        };
        // A kernel before 3.19 has no such file, and needs none.
        let _ = write("setgroups", "deny".into());
        write("uid_map", format!("{uid} {uid} 1"))?;
        write("gid_map", format!("{gid} {gid} 1"))?;
    }
    // A kernel before 4.6 has none; nothing hangs on it.
    let _ = unshare(CloneFlags::CLONE_NEWCGROUP);
    Ok(())
}

/// The first process inside.
fn first(order: &Order, entries: Option<&[Entry]>, mut alive: File, messages: File) -> ! {
    let made = die_with_parent(&mut alive).and_then(|()| {
        // The old name tells nobody much.
        let _ = sethostname("sandbox");
        let _ = setsid();
        entries.map_or(Ok(()), |entries| mounts::make(entries, order.plan.fresh_proc))
    });
    inner::finish_first(made.and_then(|()| inner::start_and_reap(order, &messages)), &messages)
}

/// The parent is in another process namespace, where its end can't be seen by asking for it; but it holds a pipe open.
fn die_with_parent(alive: &mut File) -> Result<(), Failure> {
    let what = |error: &dyn std::fmt::Display| Failure::new("tying the sandbox to its parent", error);
    set_pdeathsig(Signal::SIGKILL).map_err(|error| what(&error))?;
    alive.read_exact(&mut [0]).map_err(|error| what(&error))?;
    let mut ends = [PollFd::new(alive.as_fd(), PollFlags::POLLIN)];
    match poll(&mut ends, PollTimeout::ZERO) {
        Ok(0) => Ok(()),
        _ => Err(what(&"it is gone")),
    }
}
