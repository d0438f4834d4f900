//! A process that has imported torch, and forks children from itself.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::fcntl::OFlag;
use serde::Deserialize;
use stitch_session::folders::Folders;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Finished;
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Role;
use super::channel::{Channel, NoLine};
use super::child::Child;
use super::error::{HostError, How};
use super::ledger::{Ledger, how};
use super::output::Output;
use super::runner::{self, PACKAGE};
use super::setting::{Needs, Running, Setting};

/// How long torch's import may take: minutes from a cold network disk.
const START_LIMIT: Duration = Duration::from_secs(180);
/// How long forking may take.
const FORK_LIMIT: Duration = Duration::from_secs(30);
/// A zygote says little.
const LONGEST_LINE: usize = 1 << 16;
/// The variable that says where to connect, and the word that proves who does. It is gone before other code runs.
const VARIABLE: &str = "STITCHCUDA_CHANNEL";

/// An order to the zygote, on its way.
pub(super) struct Order {
    line: String,
    descriptors: Vec<OwnedFd>,
}

/// What children share with their zygote.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) ledger: Arc<Ledger>,
    orders: mpsc::UnboundedSender<Order>,
    /// Ends the zygote and all below it.
    pub(super) end: CancellationToken,
}

impl Link {
    /// Has a child and what it left behind killed.
    pub(super) fn kill(&self, child: u64) {
        let line = serde_json::json!({ "do": "kill", "child": child }).to_string();
        // Without a zygote there is no child.
        let _ = self.orders.send(Order { line, descriptors: Vec::new() });
    }
}

/// A process that has imported torch. It ends, with all its children, when the value is dropped.
pub struct Zygote {
    link: Link,
    program: Option<JoinHandle<()>>,
    next: AtomicU64,
    time_limit: Duration,
    cancel: CancellationToken,
    role: Role,
}

/// What a zygote says.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Token(String),
    Forked(u64),
    NotForked { child: u64, reason: String },
    Ended { child: u64, status: i32 },
}

impl Zygote {
    /// Starts one and waits until it has imported torch.
    ///
    /// # Errors
    /// It can't be started, does not import torch, or the job was cancelled.
    pub async fn start(
        setting: &Setting<'_>,
        role: Role,
        cancel: &CancellationToken,
    ) -> Result<Self, HostError> {
        let token = format!("{:032x}", random());
        let name = format!(".channel-{:08x}", name_part());
        let (listener, socket) = listen(setting, &name)?;
        let how = if setting.forks { "" } else { ":alone" };
        let needs = needs(setting, &format!("{name}:{token}{how}"))?;
        let end = cancel.child_token();
        let process = (setting.wrap)(&needs, setting.scratch, end.clone()).map_err(HostError::Sandbox)?;
        let ledger = Arc::new(Ledger::new());
        let (orders, waiting) = mpsc::unbounded_channel();
        let link = Link { ledger: Arc::clone(&ledger), orders, end: end.clone() };
        let running = tokio::spawn(run(process, end.clone(), Arc::clone(&ledger)));
        let guard = end.clone().drop_guard();
        // In this order: a cancelled job's process may have ended too, and that is not why it did not start.
        let channel = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(HostError::Cancelled),
            channel = accept(&listener, &token) => channel,
            how = ledger.ended(0) => return Err(start_failed(setting, role, how.to_string())),
            () = tokio::time::sleep(START_LIMIT) => {
                let reason = format!("it took longer than {} s.", START_LIMIT.as_secs());
                return Err(start_failed(setting, role, reason));
            }
        };
        let _ = std::fs::remove_file(socket);
        tokio::spawn(converse(channel, waiting, ledger));
        guard.disarm();
        Ok(Self {
            link,
            program: Some(running),
            next: AtomicU64::new(1),
            time_limit: setting.time_limit,
            cancel: cancel.clone(),
            role,
        })
    }

    /// What its children are for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Forks a child, which has loaded nothing yet. Children of one zygote share its scratch folder: what one leaves there, the next finds,
    /// so candidates that must not help each other need a zygote each.
    ///
    /// # Errors
    /// The zygote is gone, or the system has no process left.
    pub async fn child(&mut self) -> Result<Child, HostError> {
        let system = HostError::system("a channel to a process could not be made");
        let made = std::os::unix::net::UnixStream::pair().and_then(|(own, other)| {
            own.set_nonblocking(true)?;
            let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            // The child's end of the pipe must block: what it prints is read as fast as it comes.
            let read = pipe::Receiver::from_owned_fd(nonblocking(read)?)?;
            Ok((UnixStream::from_std(own)?, other, read, write))
        });
        let (own, other, read, write) = made.map_err(system)?;
        let child = self.next.fetch_add(1, Ordering::Relaxed);
        let line = serde_json::json!({ "do": "fork", "child": child, "fds": 2 }).to_string();
        let order = Order { line, descriptors: vec![other.into(), write] };
        let failed = |reason: String| HostError::Fork { role: self.role.word(), reason };
        self.link.orders.send(order).map_err(|_| failed("its zygote is gone.".to_owned()))?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(HostError::Cancelled),
            forked = self.link.ledger.forked(child) => forked.map_err(|why| failed(format!("{why}.")))?,
            () = tokio::time::sleep(FORK_LIMIT) => return Err(failed("its zygote does not answer.".to_owned())),
        }
        let output = Output::read(read);
        let limit = self.time_limit;
        Ok(Child::new(child, Channel::new(own), output, self.link.clone(), limit, self.cancel.clone()))
    }

    /// Waits until it has ended by itself, for so long, and ends it then.
    pub async fn end_by_itself(mut self, patience: Duration) {
        if let Some(program) = &mut self.program
            && tokio::time::timeout(patience, program).await.is_ok()
        {
            self.program = None;
        }
        self.end().await;
    }

    /// Ends it and all below it, and waits until nothing is left.
    pub async fn end(mut self) {
        self.link.end.cancel();
        if let Some(program) = self.program.take() {
            let _ = program.await;
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.link.end.cancel();
    }
}

/// A number that nobody else can guess: the hash function's key comes from the system.
pub(super) fn random() -> u128 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

fn name_part() -> u32 {
    (random() & u128::from(u32::MAX)) as u32
}

fn nonblocking(descriptor: OwnedFd) -> std::io::Result<OwnedFd> {
    nix::fcntl::fcntl(descriptor.as_fd(), nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(descriptor)
}

fn start_failed(setting: &Setting<'_>, role: Role, reason: String) -> HostError {
    HostError::Start { python: setting.python.path.clone(), role: role.word(), reason }
}

/// Listens in the scratch folder, where a sandbox without network can connect too. Its path may be longer than the name of a socket
/// (108 bytes), so the folder is named by a descriptor.
fn listen(setting: &Setting<'_>, name: &str) -> Result<(UnixListener, PathBuf), HostError> {
    let scratch = setting.scratch.path();
    let system = HostError::system(format!("a socket could not be made in {}", scratch.display()));
    let made = File::open(scratch).and_then(|folder| {
        let listener = StdListener::bind(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?;
        listener.set_nonblocking(true)?;
        std::fs::create_dir_all(&setting.build_folder)?;
        UnixListener::from_std(listener)
    });
    Ok((made.map_err(system)?, scratch.join(name)))
}

fn needs(setting: &Setting<'_>, channel: &str) -> Result<Needs, HostError> {
    let cache = Folders::find().cache.unwrap_or_else(std::env::temp_dir).join("torch");
    let folder = runner::folder(&cache)
        .map_err(HostError::system(format!("the runner could not be written to {}", cache.display())))?;
    let mut environment = setting.variables(&Environment::of_this_process());
    environment.push((VARIABLE.into(), channel.into()));
    let script = folder.join(PACKAGE).join("zygote.py");
    let mut readable = vec![folder, setting.python.folder.clone()];
    readable.extend(setting.python.prefixes.iter().chain(&setting.readable).cloned());
    Ok(Needs {
        program: setting.python.path.clone(),
        arguments: vec![OsString::from("-u"), script.into()],
        environment,
        readable,
        place: setting.place,
        memory_bytes: setting.memory_bytes,
    })
}

/// Runs the process to its end, and says to all who wait for it how it ended.
async fn run(process: Running, end: CancellationToken, ledger: Arc<Ledger>) {
    let how = match process.await {
        _ if end.is_cancelled() => How::Earlier,
        Ok(finished) => How::Other(words_of(&finished)),
        Err(why) => How::Other(format!("could not go on: {why}")),
    };
    ledger.update(|state| state.gone = Some(how));
}

fn words_of(finished: &Finished) -> String {
    use std::os::unix::process::ExitStatusExt;
    let text = finished.stderr_text();
    let said: Vec<&str> = text.trim().lines().collect();
    let last = said.get(said.len().saturating_sub(12)..).unwrap_or_default().join("\n");
    let how = how(finished.status.into_raw());
    if last.is_empty() { format!("{how}") } else { format!("{how}; it printed last:\n{last}") }
}

/// Waits for the one who knows the token. Others are hung up on.
async fn accept(listener: &UnixListener, token: &str) -> Channel {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut channel = Channel::new(stream);
        let line = tokio::time::timeout(Duration::from_secs(10), channel.receive(LONGEST_LINE)).await;
        if let Ok(Ok(line)) = line
            && matches!(serde_json::from_slice(&line), Ok(Said::Token(said)) if said == token)
        {
            return channel;
        }
    }
}

/// Sends orders and writes down what the zygote says, until either side is gone.
async fn converse(mut channel: Channel, mut waiting: mpsc::UnboundedReceiver<Order>, ledger: Arc<Ledger>) {
    loop {
        tokio::select! {
            order = waiting.recv() => {
                let Some(Order { line, descriptors }) = order else { return };
                let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
                if channel.send(&line, &borrowed).await.is_err() {
                    return;
                }
            }
            line = channel.receive(LONGEST_LINE) => match line {
                Ok(line) => note(&line, &ledger),
                // The program's own end says what has become of it.
                Err(NoLine::Closed | NoLine::TooLong(_)) => return,
            },
        }
    }
}

fn note(line: &[u8], ledger: &Ledger) {
    match serde_json::from_slice(line) {
        Ok(Said::Forked(child)) => ledger.update(|state| {
            state.forked.insert(child, Ok(()));
        }),
        Ok(Said::NotForked { child, reason }) => ledger.update(|state| {
            state.forked.insert(child, Err(reason));
        }),
        Ok(Said::Ended { child, status }) => ledger.update(|state| {
            state.ended.insert(child, how(status));
        }),
        Ok(Said::Token(_)) | Err(_) => tracing::debug!("A zygote said something that means nothing."),
    }
}
