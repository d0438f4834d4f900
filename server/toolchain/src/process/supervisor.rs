//! The small process that stands between us and a program on Linux, and takes everything down.
//!
//! A process group is not enough: a program leaves it with one `setsid`, and nothing kills the group when we are killed
//! ourselves. So there is a supervisor, whose child the program is. It is a *subreaper*: whatever descends from the
//! program, double-forked or in a session of its own, becomes the supervisor's child once its own parent is gone, and
//! can't get out. It holds one end of a socket; when that closes (we are done, or dead, by whatever signal) it kills its
//! children until it has none.
//!
//! The supervisor is this same executable, started anew: a function that runs before `main` sees its name and never
//! returns ([`ENTRY`]). Forking would be simpler, but copies the page tables of a whole language server and holds up its
//! threads (measured: 20 ms of system time at 60 MB, for a program that takes 1). Where the executable can't be started
//! anew, the child forks once more ([`split`]).
//!
//! Either way it runs where Rust's runtime is not: before `main`, or between `fork` and `exec` in a copy of a process with
//! many threads. So it makes system calls only: no allocation, no lock, no panic.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

use libc::{c_char, c_int, pid_t};

/// What we write to the supervisor: ask the program to end, then kill it after [`GRACE_MILLISECONDS`].
pub(super) const TERMINATE: u8 = b'T';
/// What comes back, each followed by a number of four bytes: the supervisor is there; the program could not be executed
/// (with the error number); the program ended (with its wait status).
pub(super) const READY: u8 = b'R';
pub(super) const FAILED: u8 = b'E';
pub(super) const ENDED: u8 = b'X';
/// The name (first argument) under which the executable is started as a supervisor. Then follow the descriptor of the
/// socket, the largest size of a file in bytes or 0, [`SHELL`], the program, and its arguments.
pub(super) const NAME: &CStr = c"stitch-guard";
/// Runs a script without `#!`, as `execvp` does.
pub(super) const SHELL: &str = "/bin/sh";
/// Begins the name of each variable that is meant for the program. So the dynamic linker does not see the program's
/// `LD_PRELOAD` in the supervisor, and nothing has to go through arguments, which everyone may read.
pub(super) const VARIABLE_PREFIX: u8 = b'+';
/// A script that was written a moment ago may still be open for writing in a process that is being forked.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE_NANOSECONDS: i64 = 25_000_000;
/// How long a program may take to end after SIGTERM.
pub(super) const GRACE_MILLISECONDS: i64 = 2000;
/// How long killing may take: a process in an uninterruptible system call can't be waited for for ever.
const KILL_MILLISECONDS: i64 = 2000;
/// `CLOSE_RANGE_CLOEXEC` of `linux/close_range.h`.
const CLOSE_ON_EXEC: u32 = 4;
/// Exit status of a program whose supervisor was gone before it began.
const NO_SUPERVISOR: c_int = 127;

/// Calls [`enter`] before `main`. With glibc it gets the arguments of `main`; with other C libraries it does not, so there
/// it is left out.
#[cfg(target_env = "gnu")]
#[used]
#[unsafe(link_section = ".init_array")]
pub(super) static ENTRY: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = enter;

/// Returns at once, unless this process was started to be a supervisor; then it never returns.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn enter(count: c_int, arguments: *mut *mut c_char, variables: *mut *mut c_char) {
    // SAFETY: the C library hands in its arrays, which end with a null pointer; there is one thread.
    unsafe {
        if count < 5
            || CStr::from_ptr(*arguments) != NAME
            || CStr::from_ptr(*arguments.add(3)).to_bytes() != SHELL.as_bytes()
        {
            return;
        }
        let control = libc::atoi(*arguments.add(1));
        let largest_file = libc::strtoull(*arguments.add(2), std::ptr::null_mut(), 10);
        let mut kind: c_int = 0;
        let mut size = size_of::<c_int>() as libc::socklen_t;
        if libc::getsockopt(control, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &mut size) != 0
        {
            return;
        }
        libc::fcntl(control, libc::F_SETFD, libc::FD_CLOEXEC);
        tell(control, READY, 0);
        let (mut from, mut to) = (variables, variables);
        while !(*from).is_null() {
            if **from == VARIABLE_PREFIX as c_char {
                *to = (*from).add(1);
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = std::ptr::null_mut();
        match split(control, (largest_file > 0).then_some(largest_file)) {
            Ok(()) => execute(arguments.add(3).cast(), variables.cast(), control),
            Err(error) => {
                tell(control, FAILED, error.raw_os_error().unwrap_or(libc::EAGAIN));
                libc::_exit(NO_SUPERVISOR);
            }
        }
    }
}

/// Becomes the program. `arguments` are the shell, the program, and the program's arguments.
#[cfg(target_env = "gnu")]
unsafe fn execute(arguments: *const *const c_char, variables: *const *const c_char, control: RawFd) -> ! {
    // SAFETY: arrays of the C library that end with a null pointer.
    unsafe {
        let program = arguments.add(1);
        let mut tries = 0;
        loop {
            libc::execve(*program, program, variables);
            let error = *libc::__errno_location();
            match error {
                libc::ETXTBSY if tries < BUSY_TRIES => {
                    tries += 1;
                    let pause = libc::timespec { tv_sec: 0, tv_nsec: BUSY_PAUSE_NANOSECONDS };
                    libc::nanosleep(&pause, std::ptr::null_mut());
                }
                libc::ENOEXEC => {
                    libc::execve(*arguments, arguments, variables);
                    tell(control, FAILED, libc::ENOEXEC);
                    libc::_exit(NO_SUPERVISOR);
                }
                _ => {
                    tell(control, FAILED, error);
                    libc::_exit(NO_SUPERVISOR);
                }
            }
        }
    }
}

/// Sends one message to our side. If nobody is there, the end of the connection says so soon.
unsafe fn tell(control: RawFd, what: u8, number: c_int) {
    let [a, b, c, d] = number.to_ne_bytes();
    let message = [what, a, b, c, d];
    // SAFETY: the message lives in this frame.
    unsafe { libc::send(control, message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL) };
}

/// Splits this process into supervisor and program. Returns only in the program.
///
/// `largest_file` limits the size of each file that the program writes, in bytes.
///
/// # Safety
/// The process must have one thread: before `main`, or between `fork` and `exec` (`pre_exec`).
pub(super) unsafe fn split(control: RawFd, largest_file: Option<u64>) -> io::Result<()> {
    // SAFETY: only async-signal-safe calls on plain values; the caller promises that there is one thread.
    unsafe {
        libc::setsid();
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        let supervisor = libc::getpid();
        let program = libc::fork();
        if program < 0 {
            return Err(io::Error::last_os_error());
        }
        if program > 0 {
            supervise(program, control);
        }
        libc::setpgid(0, 0);
        // If the program kills its supervisor, it goes down with it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != supervisor {
            libc::_exit(NO_SUPERVISOR);
        }
        // What our own parent (an editor) let us inherit is not for the program. Before Linux 5.11 it stays open.
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOSE_ON_EXEC);
        if let Some(bytes) = largest_file {
            let limit = libc::rlimit { rlim_cur: bytes as libc::rlim_t, rlim_max: bytes as libc::rlim_t };
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
        }
        Ok(())
    }
}

/// Until when the program may live.
enum Phase {
    Running,
    Terminating { until: i64 },
    Killing { until: i64 },
}

unsafe fn supervise(program: pid_t, control: RawFd) -> ! {
    // SAFETY: async-signal-safe calls on memory of this frame; ends the process.
    unsafe {
        let mut every: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut every);
        libc::sigprocmask(libc::SIG_SETMASK, &every, std::ptr::null_mut());
        libc::setpgid(program, program);
        libc::prctl(libc::PR_SET_NAME, c"stitch-guard".as_ptr(), 0, 0, 0);
        let control = keep_only(control);
        let mut child_ended: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut child_ended);
        libc::sigaddset(&mut child_ended, libc::SIGCHLD);
        let signals = libc::signalfd(-1, &child_ended, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);

        let mut phase = Phase::Running;
        loop {
            if reap(program, control, &mut phase) {
                libc::_exit(0);
            }
            let wait = match phase {
                // Without a signalfd (a sandbox that forbids it) the children are asked for now and then.
                Phase::Running => {
                    if signals < 0 {
                        20
                    } else {
                        -1
                    }
                }
                Phase::Terminating { until } => {
                    let left = until - milliseconds();
                    if left <= 0 {
                        phase = killing();
                        continue;
                    }
                    left.min(50) as c_int
                }
                Phase::Killing { until } => {
                    if milliseconds() > until {
                        libc::_exit(0);
                    }
                    each_child(|pid| kill_with_group(pid, libc::SIGKILL));
                    5
                }
            };
            let listen = if matches!(phase, Phase::Killing { .. }) { -1 } else { control };
            let mut sources = [
                libc::pollfd { fd: listen, events: libc::POLLIN, revents: 0 },
                libc::pollfd { fd: signals, events: libc::POLLIN, revents: 0 },
            ];
            libc::poll(sources.as_mut_ptr(), 2, wait);
            let mut ignored = [0_u8; 1024];
            if sources[1].revents != 0 {
                libc::read(signals, ignored.as_mut_ptr().cast(), ignored.len());
            }
            if sources[0].revents != 0 {
                obey(program, control, &mut phase);
            }
        }
    }
}

/// Takes in children that ended, and reports the program's status. Returns whether no child is left.
unsafe fn reap(program: pid_t, control: RawFd, phase: &mut Phase) -> bool {
    loop {
        let mut status: c_int = 0;
        // SAFETY: `status` lives in this frame, and its bytes are sent as they are.
        let ended = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG | libc::__WALL) };
        if ended == 0 {
            return false;
        }
        if ended < 0 {
            return true;
        }
        if ended == program {
            // SAFETY: as above.
            unsafe { tell(control, ENDED, status) };
            // While terminating, the others have the rest of the grace too.
            if matches!(phase, Phase::Running) {
                *phase = killing();
            }
        }
    }
}

/// Reads one order, or the end of the connection.
unsafe fn obey(program: pid_t, control: RawFd, phase: &mut Phase) {
    let mut order = [0_u8; 1];
    // SAFETY: the buffer lives in this frame.
    let read = unsafe { libc::read(control, order.as_mut_ptr().cast(), 1) };
    if read == 1 && order[0] == TERMINATE {
        // SAFETY: signals to our own descendants.
        unsafe {
            libc::kill(-program, libc::SIGTERM);
            each_child(|pid| {
                if pid != program {
                    kill_with_group(pid, libc::SIGTERM);
                }
            });
        }
        if matches!(phase, Phase::Running) {
            *phase = Phase::Terminating { until: milliseconds() + GRACE_MILLISECONDS };
        }
    } else if read <= 0 {
        *phase = killing();
    }
}

fn killing() -> Phase {
    Phase::Killing { until: milliseconds() + KILL_MILLISECONDS }
}

/// Signals a child and its whole group. The group at once is what stops a program that forks without end.
unsafe fn kill_with_group(pid: pid_t, signal: c_int) {
    // SAFETY: the group is one of our descendants' (only they are in our session or make sessions of their own), and
    // never the supervisor's own.
    unsafe {
        let group = libc::getpgid(pid);
        if group > 1 && group != libc::getpgrp() {
            libc::kill(-group, signal);
        }
        libc::kill(pid, signal);
    }
}

/// Makes `control` descriptor 0 and closes all others: a copy of the program's pipes kept open here would never let us
/// see their end, and a copy of another job's control would keep that job alive.
unsafe fn keep_only(control: RawFd) -> RawFd {
    // SAFETY: closing descriptors of a process whose Rust values are never used again.
    unsafe {
        libc::dup2(control, 0);
        if libc::syscall(libc::SYS_close_range, 1_u32, u32::MAX, 0_u32) != 0 {
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            for descriptor in 1..limit.rlim_cur.min(65_536) as RawFd {
                libc::close(descriptor);
            }
        }
        0
    }
}

fn milliseconds() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` lives in this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    // The types differ between systems.
    #[allow(clippy::useless_conversion)]
    let milliseconds = i64::from(now.tv_sec) * 1000 + i64::from(now.tv_nsec) / 1_000_000;
    milliseconds
}

/// Calls `act` with each child of this process: from the kernel's own list, else by looking at every process.
unsafe fn each_child(act: impl Fn(pid_t)) {
    // SAFETY: system calls on memory of this frame.
    unsafe {
        let list = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if list < 0 {
            return each_child_by_parent(act);
        }
        let mut pid: pid_t = 0;
        let mut bytes = [0_u8; 1024];
        loop {
            let read = libc::read(list, bytes.as_mut_ptr().cast(), bytes.len());
            if read <= 0 {
                break;
            }
            for &byte in bytes.iter().take(read as usize) {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(pid_t::from(byte - b'0'));
                } else {
                    if pid > 1 {
                        act(pid);
                    }
                    pid = 0;
                }
            }
        }
        if pid > 1 {
            act(pid);
        }
        libc::close(list);
    }
}

/// For kernels without `CONFIG_PROC_CHILDREN`: reads the parent of each process from `/proc/PID/stat`.
unsafe fn each_child_by_parent(act: impl Fn(pid_t)) {
    // SAFETY: system calls on memory of this frame; `linux_dirent64` records are read by their documented offsets.
    unsafe {
        let proc = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if proc < 0 {
            return;
        }
        let own = libc::getpid();
        let mut records = [0_u8; 4096];
        loop {
            let read = libc::syscall(libc::SYS_getdents64, proc, records.as_mut_ptr(), records.len());
            if read <= 0 {
                break;
            }
            let mut at = 0_usize;
            while at + 19 <= read as usize {
                let length = usize::from(u16::from_ne_bytes([records[at + 16], records[at + 17]]));
                let end = (at + length.max(20)).min(records.len());
                if let Ok(name) = CStr::from_bytes_until_nul(&records[at + 19..end]) {
                    let name = name.to_bytes();
                    if name.first().is_some_and(u8::is_ascii_digit) && parent_of(proc, name) == own {
                        act(name.iter().fold(0, |pid: pid_t, digit| {
                            pid.wrapping_mul(10).wrapping_add(pid_t::from(digit.wrapping_sub(b'0')))
                        }));
                    }
                }
                at += length.max(20);
            }
        }
        libc::close(proc);
    }
}

/// The parent of a process: the second field after the last `)` of its `stat`. 0 if it is gone.
unsafe fn parent_of(proc: RawFd, name: &[u8]) -> pid_t {
    let mut path = [0_u8; 32];
    let suffix = b"/stat\0";
    if name.len() + suffix.len() > path.len() {
        return 0;
    }
    path[..name.len()].copy_from_slice(name);
    path[name.len()..name.len() + suffix.len()].copy_from_slice(suffix);
    let mut text = [0_u8; 512];
    // SAFETY: `path` ends with a NUL; `text` lives in this frame.
    let read = unsafe {
        let file = libc::openat(proc, path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        read
    };
    if read <= 0 {
        return 0;
    }
    let text = &text[..read as usize];
    let Some(close) = text.iter().rposition(|&byte| byte == b')') else { return 0 };
    let digits = text[close..].iter().skip(4).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |pid: pid_t, digit| pid.wrapping_mul(10).wrapping_add(pid_t::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn both_ways_to_list_children_agree() {
        // `/proc/thread-self/children` lists the children of this thread, so the child is started here.
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let id = child.id() as pid_t;
        let (listed, searched) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        // SAFETY: reads /proc only.
        unsafe {
            each_child(|pid| listed.borrow_mut().push(pid));
            each_child_by_parent(|pid| searched.borrow_mut().push(pid));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.borrow().contains(&id), "{listed:?}");
        assert!(searched.borrow().contains(&id), "{searched:?}");
    }
}
