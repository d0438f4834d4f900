//! Runs a program on the simulator: starts it, serves it, and leaves nothing behind.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::connection;
use super::context::Shared;
use super::engine::Engine;
use super::processor::AFTERMATH;
use super::report::{Ending, Report};
use super::stub::{self, StubError};
use super::watch::{Watch, Watcher};
use crate::checks::Checks;
use crate::device::Device;
use crate::memory::Memory;

/// What to run, and how.
pub struct Config {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where it runs; the caller's folder if none.
    pub folder: Option<PathBuf>,
    /// Further variables of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The device.
    pub device: &'static Device,
    /// What runs kernels.
    pub engine: Box<dyn Engine>,
    /// Where the stub is kept once built.
    pub cache: PathBuf,
    /// The C compiler that builds it.
    pub compiler: String,
    /// The program and all that it started are ended after this.
    pub time_limit: Option<Duration>,
    /// Its standard streams.
    pub stdin: Stdio,
    /// Its standard streams.
    pub stdout: Stdio,
    /// Its standard streams.
    pub stderr: Stdio,
    /// What is wanted of the program's copies.
    pub watch: Watch,
}

/// A run that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No command.
    #[error("no program to run was named")]
    NoProgram,
    /// The stub.
    #[error(transparent)]
    Stub(#[from] StubError),
    /// The memory of the device.
    #[error("the memory of the simulated device can't be made: {0}")]
    Memory(#[source] io::Error),
    /// The record of copies.
    #[error("can't make the file for what is copied to the host: {0}")]
    Record(#[source] io::Error),
    /// The socket.
    #[error("can't listen for the program on a socket: {0}")]
    Listen(#[source] io::Error),
    /// The program.
    #[error("can't start {}: {source}", program.to_string_lossy())]
    Start {
        /// Which.
        program: OsString,
        /// Why.
        source: io::Error,
    },
}

/// How long it may take to see that the caller gave up, or that a program that never connected has ended.
const GLANCE: Duration = Duration::from_millis(20);

/// Runs the program to its end, or until `cancel` is set or the time is over.
///
/// # Errors
/// Where it can't be started. What goes wrong later is in the report.
pub fn serve(config: Config, cancel: &AtomicBool) -> Result<Report, ServeError> {
    let library = stub::build(&config.cache, &config.compiler)?;
    let (listener, socket) = listen().map_err(ServeError::Listen)?;
    listener.set_nonblocking(true).map_err(ServeError::Listen)?;
    let (limit, note) = memory_limit(config.device);
    let memory = Memory::new(limit).map_err(ServeError::Memory)?;
    let checks = config.engine.checks();
    let memory = if checks == Checks::None { memory } else { memory.tracked() };
    let report = Mutex::new(Report { checks, ..Report::new(config.device, &memory) });
    let shared = Shared {
        device: config.device,
        memory,
        engine: config.engine,
        cancel: AtomicBool::new(false),
        report,
        watch: Watcher::new(&config.watch).map_err(ServeError::Record)?,
    };
    let shared = Arc::new(shared);
    if let Some(note) = note {
        shared.report().note(note);
    }
    let mut command = prepare(&config.command, &library, &socket)?;
    command.envs(config.environment).stdin(config.stdin).stdout(config.stdout).stderr(config.stderr);
    if let Some(folder) = config.folder {
        command.current_dir(folder);
    }
    let program = command.get_program().to_owned();
    let child = command.spawn().map_err(|source| ServeError::Start { program, source })?;
    let deadline = config.time_limit.map(|limit| Instant::now() + limit);
    let mut run = Run { child, listener, shared, connection: None, processes: 0 };
    let ending = run.wait(deadline, cancel);
    run.finish(matches!(ending, Ending::Exited(_)));
    let mut report = run.shared.report().clone();
    report.ending = ending;
    let (perturbed, trouble) = run.shared.watch.finish();
    report.perturbed = perturbed;
    if let Some(trouble) = trouble {
        report.note(trouble);
    }
    report.processes = run.processes;
    report.memory_peak = run.shared.memory.peak();
    if run.processes == 0 {
        report.note(
            "the program made no call to the CUDA runtime: is it linked with `-cudart static`, nvcc's default? Build it with \
             `-cudart shared`"
                .to_owned(),
        );
    }
    Ok(report)
}

/// A socket whose name lies in no folder, so that nothing is left of it however this process ends; and that name.
fn listen() -> io::Result<(UnixListener, String)> {
    // Keys of hash maps are random: nobody else guesses the name, or takes it before.
    let random = RandomState::new().build_hasher().finish();
    let name = format!("stitchcuda-sim-{}-{random:016x}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    Ok((listener, format!("@{name}")))
}

/// Whether the other end is a process of this user.
fn is_ours(stream: &UnixStream) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let Ok(mut size) = libc::socklen_t::try_from(size_of_val(&peer)) else { return false };
    // SAFETY: the structure is as long as said, and the option fills in no more.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    // SAFETY: a plain question.
    failed == 0 && peer.uid == unsafe { libc::geteuid() }
}

/// The device's memory, or half of what this machine has to spare.
fn memory_limit(device: &Device) -> (u64, Option<String>) {
    let Some(half) = available_memory().map(|bytes| bytes / 2).filter(|&half| half < device.memory) else {
        return (device.memory, None);
    };
    let note = format!(
        "the simulated device has {} MiB of memory instead of {}: half of what this machine has to spare",
        half >> 20,
        device.memory >> 20
    );
    (half, Some(note))
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn prepare(words: &[OsString], library: &std::path::Path, socket: &str) -> Result<Command, ServeError> {
    let (program, arguments) = words.split_first().ok_or(ServeError::NoProgram)?;
    let mut paths = OsString::from(library);
    if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
        paths.push(":");
        paths.push(before);
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LD_LIBRARY_PATH", paths)
        .env("STITCHCUDA_SIM_SOCKET", socket)
        .process_group(0);
    let parent = std::process::id();
    // SAFETY: between fork and exec only `prctl` and `getppid` are called, which are safe there.
    unsafe {
        command.pre_exec(move || {
            // The program ends with us, however we end.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
                || libc::getppid().cast_unsigned() != parent
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    Ok(command)
}

/// A process that is being served.
struct Connection {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

struct Run {
    child: Child,
    listener: UnixListener,
    shared: Arc<Shared>,
    connection: Option<Connection>,
    processes: u32,
}

impl Run {
    /// Serves until the program ends.
    fn wait(&mut self, deadline: Option<Instant>, cancel: &AtomicBool) -> Ending {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return ending(status);
            }
            if cancel.load(Ordering::Relaxed) {
                return Ending::Cancelled;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ending::TimeLimit;
            }
            self.glance();
        }
    }

    /// Waits a little for a process that comes or goes.
    fn glance(&mut self) {
        let gone = self.connection.as_ref().map_or(-1, |connection| connection.stream.as_raw_fd());
        let mut waiting = [
            libc::pollfd { fd: self.listener.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: gone, events: libc::POLLRDHUP, revents: 0 },
        ];
        let timeout = i32::try_from(GLANCE.as_millis()).unwrap_or(20);
        // SAFETY: two entries, both valid; a negative descriptor is passed over.
        unsafe { libc::poll(waiting.as_mut_ptr(), 2, timeout) };
        if waiting[1].revents != 0 {
            let goes_on = !self.was_killed();
            self.hang_up(goes_on);
        }
        if waiting[0].revents != 0 {
            self.accept();
        }
    }

    /// A process asks for the device. One has it at a time.
    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        if !is_ours(&stream) {
            return;
        }
        if self.connection.as_ref().is_some_and(|connection| connection.thread.is_finished()) {
            self.hang_up(true);
        }
        if self.connection.is_some() {
            self.shared.report().note(
                "a second process of the run asked for the device while the first was using it, and was refused: the simulator \
                 serves one process at a time"
                    .to_owned(),
            );
            return;
        }
        let Ok(own) = stream.try_clone() else { return };
        self.processes += 1;
        self.shared.cancel.store(false, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::spawn(move || connection::serve(stream, &shared));
        self.connection = Some(Connection { stream: own, thread });
    }

    /// Whether the program was ended by a signal.
    fn was_killed(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if status.signal().is_some())
    }

    /// The process has gone: what its kernels were doing goes on for a little, or is of no use to anyone.
    fn hang_up(&mut self, goes_on: bool) {
        let Some(connection) = self.connection.take() else { return };
        if !goes_on {
            self.shared.cancel.store(true, Ordering::Relaxed);
        }
        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        // Its own thread may be in the middle of a kernel.
        let (begun, most) = (Instant::now(), 2 * AFTERMATH);
        while !connection.thread.is_finished() && begun.elapsed() < most {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.cancel.store(true, Ordering::Relaxed);
        if connection.thread.join().is_err() {
            self.shared
                .report()
                .note("the simulator failed while it served the program: please report this".to_owned());
        }
        for allocation in self.shared.memory.snapshot().as_slice() {
            let _ = self.shared.memory.release(allocation.start);
            let _ = self.shared.memory.free(allocation.start);
        }
    }

    /// Ends whatever is still there.
    fn finish(&mut self, goes_on: bool) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // SAFETY: the group is that of our child, which has not been reaped by anyone else.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.child.wait();
        // A program may come and go between two glances.
        self.accept();
        self.hang_up(goes_on);
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (_, signal) => Ending::Signalled(signal.unwrap_or(0)),
    }
}
