//! Answers the library in front of the driver, one thread for each process of the program.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stitch_simulator::perturb::perturb;

use super::Watched;
use super::protocol::{CHANGED, Kind, LEFT, Message, NO_TICKET, NOT_THIS, OVER, UNSEEN, WANTED};

/// More bytes than this are not recorded, as on the simulator.
const MOST_RECORDED: u64 = 1 << 30;
/// A larger copy to the device is left as it is: it lies in memory twice while it is perturbed.
const MOST_PERTURBED: u64 = 8 << 30;
/// Processes of one run that are listened to.
const MOST_PROCESSES: usize = 64;
/// How long a process that outlived its run may hold up the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A watcher of one run.
pub(crate) struct Service {
    name: String,
    token: u64,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

struct Shared {
    state: Mutex<State>,
    over: AtomicBool,
    streams: Mutex<Vec<UnixStream>>,
}

#[derive(Default)]
struct State {
    /// `None` once the inputs are over.
    seed: Option<u64>,
    processes: usize,
    perturbed: usize,
    /// Copies to the host: their size, and their bytes once they have come.
    copies: Vec<(u64, Option<Vec<u8>>)>,
    recorded: u64,
    /// How often, by [`UNSEEN`].
    unseen: [u64; UNSEEN.len()],
    too_large: u64,
    is_full: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that nobody else can guess: the hash function's key comes from the system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Service {
    /// Begins to listen. With a seed, what the program copies to the device before it first copies anything back is perturbed by it.
    ///
    /// # Errors
    /// The system gives no socket or no thread.
    pub fn start(seed: Option<u64>) -> io::Result<Self> {
        // In no folder, so that nothing is left of it however this process ends. Others can list the name, not the token.
        let name = format!("stitchcuda-watch-{}-{:016x}", std::process::id(), random());
        let token = random();
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State { seed, ..State::default() }),
            over: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || accept(&listener, token, &own))?;
        Ok(Self { name, token, shared, acceptor: Some(acceptor) })
    }

    /// What [`super::VARIABLE`] says to the program.
    pub fn variable(&self) -> String {
        format!("{}:{:x}", self.name, self.token)
    }

    /// Waits for what the processes of the run still had to say, and gives what was seen. To be called once they have ended.
    pub fn finish(mut self) -> Watched {
        let connections = self.stop().and_then(|acceptor| acceptor.join().ok()).unwrap_or_default();
        let deadline = Instant::now() + PATIENCE;
        while connections.iter().any(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.hang_up();
        for thread in connections {
            let _ = thread.join();
        }
        std::mem::take(&mut *locked(&self.shared.state)).watched()
    }

    /// Ends the acceptor, once.
    fn stop(&mut self) -> Option<JoinHandle<Vec<JoinHandle<()>>>> {
        let acceptor = self.acceptor.take()?;
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes it; whoever came before is served first.
        let _ =
            SocketAddr::from_abstract_name(&self.name).and_then(|address| UnixStream::connect_addr(&address));
        Some(acceptor)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
        self.shared.hang_up();
    }
}

impl Shared {
    fn hang_up(&self) {
        for stream in locked(&self.streams).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &UnixListener, token: u64, shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        let Ok(own) = stream.try_clone() else { continue };
        let shared_too = Arc::clone(shared);
        let serve = move || {
            if let Err(error) = serve(stream, token, &shared_too) {
                tracing::debug!("the connection to the program broke: {error}");
            }
        };
        if threads.len() < MOST_PROCESSES
            && let Ok(thread) = std::thread::Builder::new().name("watched".to_owned()).spawn(serve)
        {
            locked(&shared.streams).push(own);
            threads.push(thread);
        }
        if shared.over.load(Ordering::SeqCst) {
            break;
        }
    }
    threads
}

/// Answers one process until it has gone.
fn serve(mut stream: UnixStream, token: u64, shared: &Shared) -> io::Result<()> {
    let first = Message::read(&mut stream)?;
    if first.is_none_or(|hello| hello.kind != Kind::Hello || hello.ticket != token) {
        return Ok(());
    }
    locked(&shared.state).processes += 1;
    while let Some(message) = Message::read(&mut stream)? {
        match message.kind {
            Kind::Hello => {}
            Kind::Input => input(&mut stream, message.size, shared)?,
            Kind::OutputBegins => {
                let ticket = locked(&shared.state).announce(message.size);
                stream.write_all(&ticket.to_le_bytes())?;
            }
            Kind::Output => {
                locked(&shared.state).expects(message)?;
                let bytes = read(&mut stream, message.size)?;
                locked(&shared.state).keep(message.ticket, bytes);
            }
            Kind::Unseen => {
                let mut state = locked(&shared.state);
                if let Some(count) = state.unseen.get_mut(message.detail as usize) {
                    *count += 1;
                }
            }
        }
    }
    Ok(())
}

/// So many bytes, for which memory is taken as they come.
fn read(stream: &mut UnixStream, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Perturbs a copy to the device, as [`stitch_simulator`] does before its first use.
fn input(stream: &mut UnixStream, size: u64, shared: &Shared) -> io::Result<()> {
    let Some(seed) = locked(&shared.state).seed else {
        return stream.write_all(&OVER.to_le_bytes());
    };
    if size > MOST_PERTURBED {
        locked(&shared.state).too_large += 1;
        return stream.write_all(&NOT_THIS.to_le_bytes());
    }
    stream.write_all(&WANTED.to_le_bytes())?;
    let mut bytes = read(stream, size)?;
    if !perturb(seed, &mut bytes) {
        return stream.write_all(&LEFT.to_le_bytes());
    }
    locked(&shared.state).perturbed += 1;
    stream.write_all(&CHANGED.to_le_bytes())?;
    stream.write_all(&bytes)
}

impl State {
    /// A copy to the host is asked for: the inputs are over.
    fn announce(&mut self, size: u64) -> u64 {
        self.seed = None;
        self.is_full |= self.recorded.saturating_add(size) > MOST_RECORDED;
        if self.is_full {
            return NO_TICKET;
        }
        self.recorded += size;
        self.copies.push((size, None));
        self.copies.len() as u64 - 1
    }

    /// Whether the bytes of this copy are due.
    fn expects(&self, message: Message) -> io::Result<()> {
        let place = usize::try_from(message.ticket).ok().and_then(|index| self.copies.get(index));
        match place {
            Some((size, None)) if *size == message.size => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "bytes that nobody waits for")),
        }
    }

    fn keep(&mut self, ticket: u64, bytes: Vec<u8>) {
        let place = usize::try_from(ticket).ok().and_then(|index| self.copies.get_mut(index));
        if let Some((_, place)) = place {
            *place = Some(bytes);
        }
    }

    fn watched(self) -> Watched {
        let mut unseen: Vec<String> = UNSEEN
            .iter()
            .zip(self.unseen)
            .filter(|(_, count)| *count > 0)
            .map(|((_, what), count)| format!("{} {what}.", copies(count)))
            .collect();
        if self.too_large > 0 {
            let most = MOST_PERTURBED >> 30;
            unseen.push(format!("{} not perturbed, being larger than {most} GB.", copies(self.too_large)));
        }
        if self.is_full {
            unseen.push(format!(
                "Only the first {} MB of what was copied to the host were compared.",
                self.recorded >> 20
            ));
        }
        let copies = self.copies.into_iter().filter_map(|(_, bytes)| bytes).collect();
        Watched { processes: self.processes, perturbed: self.perturbed, copies, unseen }
    }
}

fn copies(count: u64) -> String {
    if count == 1 { "One copy was".to_owned() } else { format!("{count} copies were") }
}
