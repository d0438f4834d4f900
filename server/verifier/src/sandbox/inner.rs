//! The stage inside: starts the program, takes in orphans, and says how the program ended.

use std::convert::Infallible;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::message::{Failure, Message, Order};
use super::restrict;

/// Exit status of a stage that could not do its work; the message says why.
pub(super) const FAILED: i32 = 127;

/// Says something to the first stage.
pub(super) fn say(mut messages: &File, message: &Message) {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    // If the first stage is gone, so are we in a moment.
    let _ = messages.write_all(&line);
}

/// The stage that `bwrap` starts.
pub(super) fn run(order: &Order) -> ! {
    let Some(descriptor) = order.messages else { std::process::exit(FAILED) };
    restrict::close_on_exec();
    // SAFETY: the first stage left this descriptor open for us, and nothing else here knows it.
    let messages = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    let done = start_and_reap(order, &messages);
    finish_first(done, &messages)
}

/// Ends this process as its work ended.
pub(super) fn finish_first(done: Result<i32, Failure>, messages: &File) -> ! {
    match done {
        Ok(status) => {
            say(messages, &Message::Ended(status));
            std::process::exit(0)
        }
        Err(failure) => {
            say(messages, &Message::Failed(failure));
            std::process::exit(FAILED)
        }
    }
}

/// Starts the program and waits for it, and for every orphan that ends meanwhile. Returns the program's wait status.
///
/// # Errors
/// The system gives no process.
pub(super) fn start_and_reap(order: &Order, messages: &File) -> Result<i32, Failure> {
    // SAFETY: this process has one thread, so the child may do everything.
    let program = match unsafe { fork() }.map_err(|error| Failure::new("starting a process", error))? {
        ForkResult::Child => {
            let Err(failure) = become_program(order, messages);
            say(messages, &Message::Failed(failure));
            std::process::exit(FAILED)
        }
        ForkResult::Parent { child } => child,
    };
    // The program may not look into this process.
    let _ = nix::sys::prctl::set_dumpable(false);
    loop {
        match waitpid(Pid::from_raw(-1), None) {
            Ok(ended) if ended.pid() == Some(program) => {
                if let Some(status) = raw(ended) {
                    return Ok(status);
                }
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(Failure::new("waiting for the program", error)),
        }
    }
}

/// A wait status as the kernel writes it.
pub(super) fn raw(status: WaitStatus) -> Option<i32> {
    match status {
        WaitStatus::Exited(_, code) => Some(code << 8),
        WaitStatus::Signaled(_, signal, _) => Some(signal as i32),
        _ => None,
    }
}

/// Becomes the program. Returns only if that can't be.
///
/// # Errors
/// Its folder can't be entered. That it can't be executed is said as a message.
pub(super) fn become_program(order: &Order, messages: &File) -> Result<Infallible, Failure> {
    let policy = &order.policy;
    let mut active = order.known.clone();
    restrict::of_namespaces(order, &mut active);
    let folder = policy.folder.as_deref().unwrap_or(&order.scratch);
    std::env::set_current_dir(folder)
        .map_err(|error| Failure::new(format!("entering {}", folder.display()), error))?;
    // Out of the group in which the outer stages are; under `bwrap` it leads a session already.
    let _ = nix::unistd::setsid();
    restrict::close_on_exec();
    let mut command = Command::new(&policy.program);
    command.args(&policy.arguments).env_clear().envs(policy.variables(&order.scratch));
    if let Some((name, value)) = &order.mark {
        command.env(name, value);
    }
    restrict::apply(order, &mut active);
    debug_assert!(messages.as_raw_fd() > 2);
    say(messages, &Message::Active(active));
    let error = command.exec();
    say(messages, &Message::NotExecuted(error.raw_os_error().unwrap_or(Errno::ENOEXEC as i32)));
    std::process::exit(FAILED)
}
