//! A harness's process that makes calls when it is told to, timed by our clock.
//!
//! It connects to a socket in the scratch folder, once it has drawn its inputs. Each command begins with a number drawn anew, which is the answer once
//! the command is done: an answer can't be sent before its command has come. What this does not protect from: host code of the candidate that is in
//! the process can look for the connection and talk over it, as it could print what it likes. It would have to leave the right arrays after as many
//! calls, since these are compared. A CUDA function that it defines anew does not link: nvcc's runtime is one object, which has it too.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::MeasureError;
use super::stopwatch::Failure;
use crate::program::{Built, End, Ran, RunError, Running, run_held};
use crate::verify::{Files, VerifyError, ended, read_outputs, secret};

/// How long a process may take to end once it was told to, or once it has closed its connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a new process is looked for.
const LOOK: Duration = Duration::from_millis(1);
/// Commands of one process, with the longest of which it could be busy all its life.
const MOST_COMMANDS: u32 = 1000;

/// A process that obeys.
pub(super) struct TimedProcess {
    version: usize,
    stream: Arc<UnixStream>,
    running: JoinHandle<Result<Ran, RunError>>,
    /// Ends the process, at the latest when this value is dropped.
    end: DropGuard,
    /// That of the job.
    cancel: CancellationToken,
    /// How long one command may take.
    limit: Duration,
}

/// Why a command has no answer.
#[derive(Debug)]
enum Broken {
    /// The other side has gone.
    Closed,
    /// It says something that is no answer.
    Wrong,
    /// It takes too long.
    Late,
    /// The job was cancelled.
    Cancelled,
}

impl TimedProcess {
    /// Starts the version's harness, and waits until it has drawn its inputs from `seed`. Each command may take as long as a run of `running`.
    ///
    /// # Errors
    /// It ends or hangs before that, or the job was cancelled.
    pub async fn start(
        (version, built): (usize, &Built),
        seed: u64,
        running: &Running,
        cancel: &CancellationToken,
    ) -> Result<Self, Failure> {
        let limit = running.time_limit;
        let (listener, socket) = listen(built.folder())?;
        let own = cancel.child_token();
        let name = socket.file_name().unwrap_or_default().to_string_lossy();
        let running = Running {
            // It runs in a folder beside the socket, and the path of a socket may not be long.
            arguments: vec![seed.to_string(), format!("../{name}")],
            time_limit: limit.saturating_mul(MOST_COMMANDS),
            ..running.clone()
        };
        let (built, token) = (built.clone(), own.clone());
        let mut running = tokio::spawn(async move { run_held(&built, &running, &token).await });
        let end = own.drop_guard();
        let stream = tokio::select! {
            ran = &mut running => Err(ran),
            stream = accept(&listener, limit) => Ok(stream),
        };
        let _ = std::fs::remove_file(&socket);
        let stream = match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                drop(end);
                let _ = running.await;
                return Err(Failure::Fails(version, late("was not ready to be timed after", limit)));
            }
            Ok(Err(source)) => return Err(socket_error(&socket, source)),
            Err(ran) => return Err(unfinished(version, ran)),
        };
        stream.set_read_timeout(Some(limit)).map_err(|source| socket_error(&socket, source))?;
        Ok(Self { version, stream: Arc::new(stream), running, end, cancel: cancel.clone(), limit })
    }

    /// Makes so many calls in a row; the seconds from the command to the answer.
    pub async fn run(&mut self, calls: u64) -> Result<f64, Failure> {
        self.command(format!("run {calls}")).await
    }

    /// Gives all arrays their first contents back.
    pub async fn fill(&mut self) -> Result<(), Failure> {
        self.command("fill".to_owned()).await.map(drop)
    }

    /// The arrays as the last calls left them.
    pub async fn arrays(&mut self, built: &Built) -> Result<Files, Failure> {
        let file = |(path, source)| MeasureError::from(VerifyError::File { path, source });
        let folder = built.new_folder("outputs").map_err(file)?;
        self.command(format!("save {}", folder.display())).await?;
        let read = {
            let folder = folder.clone();
            tokio::task::spawn_blocking(move || read_outputs(&folder)).await
        };
        let _ = std::fs::remove_dir_all(&folder);
        match read {
            Ok(files) => Ok(files.map_err(MeasureError::from)?),
            Err(error) => Err(socket_error(&folder, io::Error::other(error))),
        }
    }

    /// Tells it to end, and waits until it has.
    pub async fn quit(mut self) -> Result<(), Failure> {
        self.command("quit".to_owned()).await?;
        match tokio::time::timeout(PATIENCE, &mut self.running).await {
            Ok(Ok(Ok(ran))) if ran.end == End::Status(0) => Ok(()),
            Ok(ran) => Err(unfinished(self.version, ran)),
            Err(_) => {
                self.end().await;
                Err(Failure::Fails(self.version, "does not end after its last call".to_owned()))
            }
        }
    }

    async fn command(&mut self, command: String) -> Result<f64, Failure> {
        let (stream, limit) = (Arc::clone(&self.stream), self.limit);
        // A thread that waits for nothing but the answer: the clock is read right before and after.
        let asked = tokio::task::spawn_blocking(move || exchange(&stream, &command, limit));
        let answer = tokio::select! {
            answer = asked => answer.unwrap_or(Err(Broken::Closed)),
            () = self.cancel.cancelled() => Err(Broken::Cancelled),
        };
        match answer {
            Ok(took) => Ok(took.as_secs_f64()),
            Err(broken) => Err(self.failure(broken).await),
        }
    }

    /// Why it does not go on. Nothing is left of it then.
    async fn failure(&mut self, broken: Broken) -> Failure {
        // Whoever still waits for an answer stops.
        let _ = self.stream.shutdown(Shutdown::Both);
        if matches!(broken, Broken::Closed)
            && let Ok(ran) = tokio::time::timeout(PATIENCE, &mut self.running).await
        {
            return unfinished(self.version, ran);
        }
        self.end().await;
        let how = match broken {
            _ if self.cancel.is_cancelled() => return Failure::Error(MeasureError::Cancelled),
            Broken::Cancelled => return Failure::Error(MeasureError::Cancelled),
            Broken::Late => late("took longer than", self.limit),
            Broken::Wrong => "said something else over the connection on which it is timed".to_owned(),
            Broken::Closed => "closed the connection on which it is timed, and went on".to_owned(),
        };
        Failure::Fails(self.version, how)
    }

    /// Ends it, and waits until nothing is left of it.
    pub async fn end(&mut self) {
        let ended = std::mem::replace(&mut self.end, CancellationToken::new().drop_guard());
        drop(ended);
        if !self.running.is_finished() {
            let _ = (&mut self.running).await;
        }
    }
}

fn late(what: &str, limit: Duration) -> String {
    format!("{what} {:.0} s", limit.as_secs_f64())
}

/// How a process ended that was to go on.
fn unfinished(version: usize, ran: Result<Result<Ran, RunError>, tokio::task::JoinError>) -> Failure {
    let ran = match ran {
        Ok(Ok(ran)) => ran,
        Ok(Err(error)) => return Failure::Error(error.into()),
        Err(error) => return socket_error(Path::new("the process"), io::Error::other(error)),
    };
    match super::stopwatch::well(version, &ran) {
        Ok(_) => Failure::Fails(version, format!("{} before its last call", ended(&ran.end))),
        Err(failure) => failure,
    }
}

fn socket_error(path: &Path, source: io::Error) -> Failure {
    Failure::Error(MeasureError::from(VerifyError::File { path: path.to_owned(), source }))
}

/// A socket in a folder, under a name that no other has.
fn listen(folder: &Path) -> Result<(UnixListener, PathBuf), Failure> {
    static SOCKETS: AtomicU64 = AtomicU64::new(0);
    let path = folder.join(format!("timed-{}", SOCKETS.fetch_add(1, Ordering::Relaxed)));
    let listen = || {
        // A socket's path has a hundred bytes at most, and the folder's may be longer.
        let opened = File::open(folder)?;
        let name = path.file_name().unwrap_or_default();
        let short = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(name);
        let listener = UnixListener::bind(short)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    match listen() {
        Ok(listener) => Ok((listener, path)),
        Err(source) => Err(socket_error(&path, source)),
    }
}

/// The first who connects.
async fn accept(listener: &UnixListener, limit: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + limit;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                tokio::time::sleep(LOOK).await;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sends a command and waits for its answer; how long that took.
fn exchange(mut stream: &UnixStream, command: &str, limit: Duration) -> Result<Duration, Broken> {
    let number = format!("{:016x}", secret());
    let (line, expected) = (format!("{number} {command}\n"), format!("{number}\n"));
    let mut answer = vec![0; expected.len()];
    let began = Instant::now();
    stream.write_all(line.as_bytes()).map_err(|_| Broken::Closed)?;
    let mut length = 0;
    while length < answer.len() {
        match stream.read(&mut answer[length..]) {
            Ok(0) => return Err(Broken::Closed),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(Broken::Late);
            }
            Err(_) => return Err(Broken::Closed),
        }
        if began.elapsed() > limit {
            return Err(Broken::Late);
        }
    }
    let took = began.elapsed();
    if answer == expected.as_bytes() { Ok(took) } else { Err(Broken::Wrong) }
}
