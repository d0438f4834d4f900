//! The first stage: starts the rest, watches what it uses, and reports. It lies between the supervisor and the sandbox, outside.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, IntoRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, pipe2};
use stitch_toolchain::process::JOB_VARIABLE;

use super::message::{End, Failure, Message, Order, Report, VARIABLE};
use super::{Active, Isolation, Layer, bubblewrap, cgroup, inner, layout, namespaces, restrict, tree};

/// What is used is looked at this often at most; less often if looking takes long.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looking may take this part of one core,
const LOOK_SHARE: u32 = 10;
/// unless that would be too seldom: memory fills fast.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(500);
/// Processes of our own that are counted with the job's.
pub(super) const OWN_TASKS: u64 = 4;
/// The niceness of the watch.
const PRIORITY: i32 = -15;
/// How long is waited for a child that is about to end.
const MOMENT: Duration = Duration::from_millis(1);
/// Exit status where the sandbox or a limit ended the program; the report says which.
const ENDED_BY_US: i32 = 126;

/// Runs an order to its end, and ends this process as the program ended.
pub(super) fn run(mut order: Order) -> ! {
    order.outside = restrict::namespaces();
    let niceness = hurry();
    if !order.plan.isolation.ends_all() {
        let mark = std::env::var_os(JOB_VARIABLE);
        order.mark = mark.map(|value| (JOB_VARIABLE.into(), value));
    }
    let end = start(&order, niceness).map_or_else(
        |failure| {
            let end = End::Failed(failure);
            write_report(&order, &Active::default(), Some(&end));
            end
        },
        |(child, messages)| Watch::new(&order, child, messages).finish(),
    );
    match end {
        End::Itself(status) => leave_as(status),
        _ => std::process::exit(ENDED_BY_US),
    }
}

/// Raises the priority of this process, so that a flood of others does not keep the one from running that would end it. Only root may.
/// Returns what it was, if it was raised.
fn hurry() -> Option<i32> {
    // SAFETY: reads and sets the priority of this process.
    unsafe {
        let before = libc::getpriority(libc::PRIO_PROCESS, 0);
        (libc::setpriority(libc::PRIO_PROCESS, 0, PRIORITY) == 0).then_some(before)
    }
}

/// Ends this process with a wait status.
fn leave_as(status: i32) -> ! {
    let signal = status & 0x7f;
    if let Ok(signal) = Signal::try_from(signal) {
        let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the default action of a signal is no function of ours.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
        let _ = kill(getpid(), signal);
    }
    std::process::exit(if signal == 0 { status >> 8 } else { 128 + signal })
}

/// Starts what makes the sandbox. Returns its process, and where messages come from.
fn start(order: &Order, niceness: Option<i32>) -> Result<(Pid, File), Failure> {
    let what = |error| Failure::new("starting a process", error);
    // Orphans of a program that is in no process namespace come to us, so that they are counted and ended.
    let _ = set_child_subreaper(true);
    let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(what)?;
    let own = getpid();
    // SAFETY: this process has one thread, so the child may do everything.
    match unsafe { fork() }.map_err(what)? {
        ForkResult::Parent { child } => Ok((child, File::from(read))),
        ForkResult::Child => {
            drop(read);
            if let Some(niceness) = niceness {
                // SAFETY: sets the priority of this process back.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
            }
            let messages = File::from(write);
            let copy = messages.try_clone();
            let Err(failure) = isolate(order, own, messages);
            if let Ok(messages) = copy {
                inner::say(&messages, &Message::Failed(failure));
            }
            std::process::exit(inner::FAILED)
        }
    }
}

/// In the child: makes the sandbox and becomes the program, or what starts it.
fn isolate(order: &Order, parent: Pid, messages: File) -> Result<Infallible, Failure> {
    set_pdeathsig(Signal::SIGKILL).map_err(|error| Failure::new("tying the sandbox to its parent", error))?;
    if getppid() != parent {
        return Err(Failure::new("tying the sandbox to its parent", "it is gone"));
    }
    // If the machine runs out of memory, it is the candidate that goes.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    if let Some(path) = &order.cgroup {
        cgroup::enter(path)?;
    }
    match &order.plan.isolation {
        Isolation::Bubblewrap(program) => start_bubblewrap(order, program, messages),
        Isolation::User { mounts } => namespaces::run(order, true, *mounts, messages),
        Isolation::Root { mounts } => namespaces::run(order, false, *mounts, messages),
        Isolation::None => inner::become_program(order, &messages),
    }
}

/// Starts `bwrap`, with its arguments in a file in memory and this executable as an open file: it need not lie inside.
fn start_bubblewrap(order: &Order, program: &Path, messages: File) -> Result<Infallible, Failure> {
    let what = |error: &dyn std::fmt::Display| Failure::new("starting bubblewrap", error);
    let mut inside = order.clone();
    inside.messages = Some(inherit(messages).map_err(|error| what(&error))?);
    let entries = layout::entries(&order.policy, &order.scratch);
    let mut text = Vec::new();
    for argument in bubblewrap::arguments(&entries, order.plan.fresh_proc) {
        text.extend_from_slice(argument.as_encoded_bytes());
        text.push(0);
    }
    let memory = nix::sys::memfd::memfd_create(c"arguments", nix::sys::memfd::MFdFlags::empty());
    let mut arguments = File::from(memory.map_err(|error| what(&error))?);
    arguments
        .write_all(&text)
        .and_then(|()| arguments.seek(SeekFrom::Start(0)))
        .map_err(|error| what(&error))?;
    let own = File::open("/proc/self/exe").and_then(inherit).map_err(|error| what(&error))?;
    let order = serde_json::to_string(&inside).map_err(|error| what(&error))?;
    let arguments =
        [OsString::from("--args"), inherit(arguments).map_err(|error| what(&error))?.to_string().into()];
    let error = Command::new(program)
        .args(arguments)
        .arg("--")
        .arg(format!("/proc/self/fd/{own}"))
        .arg(super::SUBCOMMAND)
        .env_clear()
        .env(VARIABLE, order)
        .exec();
    Err(what(&error))
}

/// Leaves a file open for what is executed.
fn inherit(file: File) -> std::io::Result<RawFd> {
    nix::fcntl::fcntl(&file, nix::fcntl::F_SETFD(nix::fcntl::FdFlag::empty()))?;
    Ok(file.into_raw_fd())
}

/// Writes what the parent reads. That it can't be written, the parent sees.
fn write_report(order: &Order, active: &Active, end: Option<&End>) {
    let report = Report { active: active.clone(), end: end.cloned() };
    let _ = fs::write(&order.report, serde_json::to_vec(&report).unwrap_or_default());
}

/// The watch over a running sandbox.
struct Watch<'a> {
    order: &'a Order,
    child: Pid,
    messages: File,
    text: Vec<u8>,
    active: Active,
    /// Whether the program was about to start.
    begun: bool,
    end: Option<End>,
    /// Whether a limit was passed.
    killed: bool,
    pause: Duration,
}

impl<'a> Watch<'a> {
    fn new(order: &'a Order, child: Pid, messages: File) -> Self {
        let (text, active) = (Vec::new(), Active::default());
        Self {
            order,
            child,
            messages,
            text,
            active,
            begun: false,
            end: None,
            killed: false,
            pause: LOOK_EVERY,
        }
    }

    fn finish(mut self) -> End {
        let mut last = Instant::now();
        let status = loop {
            self.listen(self.pause);
            if let Some(status) = self.reap() {
                break status;
            }
            if last.elapsed() >= self.pause && self.killed {
                // What was being started meanwhile has escaped the first time.
                self.kill();
                last = Instant::now();
            } else if last.elapsed() >= self.pause && self.end.is_none() {
                let began = Instant::now();
                self.look();
                self.pause = (began.elapsed() * LOOK_SHARE).clamp(LOOK_EVERY, LOOK_AT_LEAST_EVERY);
                last = Instant::now();
            }
        };
        self.listen(Duration::ZERO);
        let end = self.decide(status);
        write_report(self.order, &self.active, Some(&end));
        end
    }

    /// Reads messages that are there, or come within a time.
    fn listen(&mut self, wait: Duration) {
        let mut timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        let mut bytes = [0; 4096];
        loop {
            let mut ends = [PollFd::new(self.messages.as_fd(), PollFlags::POLLIN)];
            if !matches!(poll(&mut ends, timeout), Ok(1..)) {
                return;
            }
            match self.messages.read(&mut bytes) {
                Ok(count) if count > 0 => self.text.extend_from_slice(&bytes[..count]),
                _ => {
                    // All who could speak are gone; only the end of the child is waited for.
                    let ends = matches!(self.end, Some(End::Itself(_)));
                    std::thread::sleep(wait.min(if ends { MOMENT } else { LOOK_EVERY / 4 }));
                    return;
                }
            }
            while let Some(at) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=at).collect();
                if let Ok(message) = serde_json::from_slice(&line) {
                    self.hear(message);
                }
            }
            timeout = PollTimeout::ZERO;
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Active(active) => {
                self.active = active;
                self.begun = true;
                if self.order.cgroup.is_some() {
                    self.active.add(Layer::CgroupMemory);
                    self.active.add(Layer::CgroupTasks);
                } else {
                    self.active.add(Layer::WatchedMemory);
                    self.active.add(Layer::WatchedTasks);
                }
                write_report(self.order, &self.active, None);
            }
            Message::Failed(failure) => self.end = self.end.take().or(Some(End::Failed(failure))),
            Message::NotExecuted(error) => self.end = self.end.take().or(Some(End::NotExecuted(error))),
            Message::Ended(status) => self.end = self.end.take().or(Some(End::Itself(status))),
        }
    }

    /// Takes in children that ended. The wait status of the one that we started, once it has.
    fn reap(&mut self) -> Option<i32> {
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return None,
                Ok(ended) if ended.pid() == Some(self.child) => return inner::raw(ended),
                Ok(_) => {}
                Err(_) => return Some(Signal::SIGKILL as i32),
            }
        }
    }

    /// Compares what is used with what may be used.
    fn look(&mut self) {
        let policy = &self.order.policy;
        let (members, usage) = tree::look(getpid());
        let cpu = usage.ticks / tree::ticks_per_second();
        let limited = self.order.cgroup.is_some();
        let end = if !limited && usage.tasks > policy.tasks + OWN_TASKS {
            End::Tasks(usage.tasks - OWN_TASKS)
        } else if cpu > policy.cpu.as_secs() + 1 {
            End::Cpu(cpu)
        } else if !limited && usage.memory > policy.memory {
            // What forked processes share was counted for each.
            let memory = tree::exact_memory(&members);
            if memory <= policy.memory {
                return;
            }
            End::Memory(memory)
        } else {
            return;
        };
        self.end = Some(end);
        self.killed = true;
        self.kill();
    }

    fn kill(&self) {
        if let Some(path) = &self.order.cgroup {
            cgroup::kill(path);
        }
        if self.active.has(Layer::PidNamespace) {
            // The first process inside goes with it, and takes all others along.
            let _ = kill(self.child, Signal::SIGKILL);
        } else {
            // It leads the group in which all are that did not leave it.
            let _ = kill(Pid::from_raw(-self.child.as_raw()), Signal::SIGKILL);
            tree::kill_all(getpid());
        }
    }

    /// How it all ended, by what was said and the wait status of our child.
    fn decide(&mut self, status: i32) -> End {
        let speaks = !matches!(self.order.plan.isolation, Isolation::None);
        let end = match self.end.take() {
            Some(end) => end,
            None if !speaks && self.begun => End::Itself(status),
            // Who should have told how it ended was killed.
            None if self.begun => End::Itself(Signal::SIGKILL as i32),
            None => {
                let how = if status & 0x7f == 0 { "status" } else { "signal" };
                let number = if status & 0x7f == 0 { status >> 8 } else { status & 0x7f };
                let why = format!("{} ended with {how} {number}", self.order.plan.isolation);
                End::Failed(Failure::new("starting the sandbox", why))
            }
        };
        match (&self.order.cgroup, &end) {
            (_, End::Itself(status)) if status & 0x7f == Signal::SIGXCPU as i32 => {
                End::Cpu(self.order.policy.cpu.as_secs())
            }
            (Some(path), End::Itself(_)) if cgroup::ran_out_of_memory(path) => {
                End::Memory(self.order.policy.memory)
            }
            _ => end,
        }
    }
}
