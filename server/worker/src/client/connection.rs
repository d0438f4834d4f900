//! One process that leads to a worker, and the messages that go through it.

use std::collections::{HashMap, VecDeque};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stitch_toolchain::environment::Environment;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};

use super::error::{Lost, WorkerError};
use crate::lines::{self, Line};
use crate::perform::Progress;
use crate::protocol::{BEATS, FromWorker, LONGEST_LINE, PROTOCOL, ToWorker, VERSION, misunderstanding};

/// What may be printed before a worker says hello: a greeting of the machine.
const MOST_GREETING_LINES: usize = 200;
/// How long one line of that may be, in bytes.
const LONGEST_GREETING: usize = 64 << 10;
/// How many times the patience a command may take to lead to a worker: a queue of jobs may be before it.
const CONNECTING: u32 = 20;
/// Lines of standard error that are remembered.
const MOST_WORDS: usize = 8;
/// How long the command may take to end after a farewell.
const LEAVING: Duration = Duration::from_secs(10);

/// Who waits for messages about a job, by its id.
type Listeners = Mutex<HashMap<String, mpsc::UnboundedSender<FromWorker>>>;

/// What the reading side shares with the rest.
#[derive(Debug, Default)]
struct Shared {
    listeners: Listeners,
    /// How it was lost.
    lost: Mutex<Option<Lost>>,
    /// Its last words on standard error.
    words: Mutex<VecDeque<String>>,
}

/// A connection to a worker. Dropping it ends the process.
#[derive(Debug)]
pub struct Connection {
    machine: String,
    shared: Arc<Shared>,
    to_worker: mpsc::Sender<ToWorker>,
    /// Held by who sends a content: two jobs may want the same one.
    sending: tokio::sync::Mutex<()>,
    /// Turns true when it is over.
    over: watch::Receiver<bool>,
    /// Ends the process when it is dropped.
    _end: mpsc::Sender<()>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Starts the command and waits for a worker's hello.
    pub async fn open(
        command: &[String],
        patience: Duration,
        progress: &Progress<'_>,
    ) -> Result<Self, WorkerError> {
        let mut child = start(command)?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(WorkerError::Internal("a process without streams".to_owned()));
        };
        let shared = Arc::new(Shared::default());
        let (said, mut heard) = mpsc::unbounded_channel();
        let listening = tokio::spawn(hear_words(stderr, shared.clone(), said));
        let milliseconds = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let hello =
            ToWorker::Hello { protocol: PROTOCOL, version: VERSION.to_owned(), patience: milliseconds };
        // Where nobody reads it, the end of the command says more.
        let _ = write(&mut stdin, &hello).await;
        let mut stdout = BufReader::with_capacity(1 << 20, stdout);
        let command_line = shell_words::join(command);
        let greeted =
            greeted_within(&mut stdout, &command_line, patience * CONNECTING, &mut heard, progress).await;
        let machine = match greeted {
            Ok((protocol, version, machine)) => {
                match misunderstanding("this machine", &machine, protocol, &version) {
                    None => machine,
                    Some(message) => return Err(WorkerError::Version(message)),
                }
            }
            Err(error) => return Err(with_end(error, &mut child, listening, &shared).await),
        };
        Ok(Self::begun(machine, command_line, patience, shared, child, (stdin, stdout)))
    }

    /// Starts what reads, writes and watches.
    fn begun(
        machine: String,
        command: String,
        patience: Duration,
        shared: Arc<Shared>,
        child: Child,
        (stdin, stdout): (ChildStdin, BufReader<tokio::process::ChildStdout>),
    ) -> Self {
        let (to_worker, messages) = mpsc::channel(4);
        let (ended, over) = watch::channel(false);
        let (end, dropped) = mpsc::channel(1);
        tokio::spawn(say_all(stdin, messages, patience / BEATS));
        tokio::spawn(watch_over(shared.clone(), command, patience, child, stdout, (dropped, ended)));
        Self { machine, shared, to_worker, sending: tokio::sync::Mutex::default(), over, _end: end }
    }

    /// What the machine calls itself.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Whether it still leads there.
    pub fn is_open(&self) -> bool {
        !*self.over.borrow()
    }

    /// Hears what is said about a job. The stream ends when the connection is lost.
    pub fn listen(&self, id: &str) -> mpsc::UnboundedReceiver<FromWorker> {
        let (told, heard) = mpsc::unbounded_channel();
        held(&self.shared.listeners).insert(id.to_owned(), told);
        if !self.is_open() {
            held(&self.shared.listeners).clear();
        }
        heard
    }

    /// Keeps others from sending contents meanwhile.
    pub async fn sending(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.sending.lock().await
    }

    /// Hears no more about a job.
    pub fn forget(&self, id: &str) {
        held(&self.shared.listeners).remove(id);
    }

    /// Says something.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn say(&self, message: ToWorker) -> Result<(), WorkerError> {
        let mut over = self.over.clone();
        tokio::select! {
            said = self.to_worker.send(message) => match said {
                Ok(()) => Ok(()),
                // The writing side ended first; how the process ends says why.
                Err(_) => {
                    let _ = tokio::time::timeout(LEAVING, over.wait_for(|over| *over)).await;
                    Err(self.lost())
                }
            },
            _ = async { over.wait_for(|over| *over).await.map(drop) } => Err(self.lost()),
        }
    }

    /// How the connection was lost.
    pub fn lost(&self) -> WorkerError {
        let why = held(&self.shared.lost).clone();
        WorkerError::Lost {
            machine: self.machine.clone(),
            why: why.unwrap_or(Lost::Ended { command: "the command".to_owned(), how: "ended".to_owned() }),
            said: last_words(&self.shared),
        }
    }

    /// Says farewell, and waits for the end of the process.
    pub async fn close(&self) {
        if self.say(ToWorker::Bye).await.is_ok() {
            let mut over = self.over.clone();
            let _ = tokio::time::timeout(LEAVING, over.wait_for(|over| *over)).await;
        }
    }
}

/// Starts the command in a session of its own: it asks nothing on the terminal, and a Ctrl-C there is ours to handle.
fn start(command: &[String]) -> Result<Child, WorkerError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(WorkerError::Internal("an empty command".to_owned()));
    };
    let environment = Environment::of_this_process().without_secrets();
    let mut process = Command::new(program);
    process
        .args(arguments)
        .env_clear()
        .envs(environment.variables())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // SAFETY: `setsid` may be called between fork and exec (signal-safety(7)), and nothing else is.
    unsafe {
        process.pre_exec(|| nix::unistd::setsid().map(drop).map_err(std::io::Error::from));
    }
    process.spawn().map_err(|source| WorkerError::Start { program: program.clone(), source })
}

/// As [`greeted`], for no longer than `limit`; what comes on standard error meanwhile is told.
async fn greeted_within(
    stdout: &mut BufReader<tokio::process::ChildStdout>,
    command: &str,
    limit: Duration,
    heard: &mut mpsc::UnboundedReceiver<String>,
    progress: &Progress<'_>,
) -> Result<(u32, String, String), WorkerError> {
    let greeting = greeted(stdout, command);
    let deadline = tokio::time::sleep(limit);
    tokio::pin!(greeting, deadline);
    loop {
        tokio::select! {
            greeted = &mut greeting => return greeted,
            () = &mut deadline => {
                let seconds = limit.as_secs();
                return Err(WorkerError::Silent { command: command.to_owned(), seconds, said: String::new() });
            }
            Some(line) = heard.recv() => progress(&format!("connecting: {line}"), None),
        }
    }
}

/// Reads up to the hello of a worker: its protocol, its version and the name of its machine. What the machine greets with is passed over.
async fn greeted(
    stdout: &mut BufReader<tokio::process::ChildStdout>,
    command: &str,
) -> Result<(u32, String, String), WorkerError> {
    let mut first = String::new();
    for count in 0..=MOST_GREETING_LINES {
        let no_worker = |printed: String, beginning: &str| WorkerError::NoWorker {
            command: command.to_owned(),
            printed,
            beginning: beginning.to_owned(),
            said: String::new(),
        };
        match lines::next(stdout, LONGEST_GREETING).await {
            Ok(Line::Whole(line)) => match serde_json::from_slice(&line) {
                Ok(FromWorker::Hello { protocol, version, machine }) => {
                    return Ok((protocol, version, machine));
                }
                Ok(FromWorker::Refused { message }) => {
                    return Err(WorkerError::Refused { message, said: String::new() });
                }
                _ if count == MOST_GREETING_LINES => {
                    return Err(no_worker(format!("more than {MOST_GREETING_LINES} lines"), &first));
                }
                _ if first.is_empty() => first = shortened(&line),
                _ => {}
            },
            Ok(Line::TooLong) => {
                return Err(no_worker(format!("a line of over {LONGEST_GREETING} bytes"), &first));
            }
            Ok(Line::End | Line::Silent) | Err(_) if first.is_empty() => {
                return Err(WorkerError::Ended {
                    command: command.to_owned(),
                    how: String::new(),
                    said: String::new(),
                });
            }
            Ok(Line::End | Line::Silent) | Err(_) => {
                let printed = if count == 1 { "a line".to_owned() } else { format!("{count} lines") };
                return Err(no_worker(printed, &first));
            }
        }
    }
    Err(WorkerError::Internal("a greeting without an end".to_owned()))
}

/// The beginning of a line, as it can be shown.
fn shortened(line: &[u8]) -> String {
    const MOST: usize = 120;
    let text = String::from_utf8_lossy(line);
    text.chars().filter(|character| !character.is_control()).take(MOST).collect()
}

/// The error with how the command ended, and with its last words.
async fn with_end(
    error: WorkerError,
    child: &mut Child,
    listening: tokio::task::JoinHandle<()>,
    shared: &Shared,
) -> WorkerError {
    let is_ended = matches!(error, WorkerError::Ended { .. });
    let status = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
    // Standard error ends with the process, unless something else has it.
    let _ = tokio::time::timeout(Duration::from_millis(500), listening).await;
    let said = last_words(shared);
    match error {
        WorkerError::Ended { command, .. } if is_ended => {
            let how = status.ok().and_then(Result::ok).map_or_else(|| "closed its output".to_owned(), ended);
            WorkerError::Ended { command, how, said }
        }
        WorkerError::NoWorker { command, printed, beginning, .. } => {
            WorkerError::NoWorker { command, printed, beginning, said }
        }
        WorkerError::Silent { command, seconds, .. } => WorkerError::Silent { command, seconds, said },
        WorkerError::Refused { message, .. } => WorkerError::Refused { message, said: String::new() },
        error => error,
    }
}

/// How a command ended, in words.
fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

fn last_words(shared: &Shared) -> String {
    held(&shared.words).iter().cloned().collect::<Vec<_>>().join("\n")
}

/// Remembers what comes on standard error, and tells it until nobody wants to hear it.
async fn hear_words(
    stream: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    told: mpsc::UnboundedSender<String>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let line = match lines::next(&mut stream, LONGEST_GREETING).await {
            Ok(Line::Whole(line)) => shortened(&line),
            Ok(Line::TooLong) => continue,
            Ok(Line::End | Line::Silent) | Err(_) => return,
        };
        if line.trim().is_empty() {
            continue;
        }
        tracing::debug!("the worker's side said: {line}");
        let mut words = held(&shared.words);
        words.push_back(line.clone());
        while words.len() > MOST_WORDS {
            words.pop_front();
        }
        drop(words);
        let _ = told.send(line);
    }
}

async fn write(stdin: &mut ChildStdin, message: &ToWorker) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await
}

/// Writes messages, and beats between them, until there are no more.
async fn say_all(mut stdin: ChildStdin, mut messages: mpsc::Receiver<ToWorker>, every: Duration) {
    loop {
        let message = match tokio::time::timeout(every, messages.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(_) => ToWorker::Beat,
        };
        let is_last = matches!(message, ToWorker::Bye);
        if write(&mut stdin, &message).await.is_err() || is_last {
            // Dropping the stream ends it.
            return;
        }
    }
}

/// Reads messages until the connection is over, by its end, by silence or by nobody needing it; then ends the process.
async fn watch_over(
    shared: Arc<Shared>,
    command: String,
    patience: Duration,
    mut child: Child,
    mut stdout: BufReader<tokio::process::ChildStdout>,
    (mut dropped, over): (mpsc::Receiver<()>, watch::Sender<bool>),
) {
    let mut why = tokio::select! {
        why = read_all(&shared, patience, &mut stdout) => why,
        _ = dropped.recv() => None,
    };
    let status = tokio::time::timeout(Duration::from_millis(500), child.wait()).await;
    let status = status.ok().and_then(Result::ok);
    if status.is_none() {
        // It leads nowhere any more.
        let _ = child.kill().await;
    }
    if why.is_none() {
        let how = status.map_or_else(|| "closed its output".to_owned(), ended);
        why = Some(Lost::Ended { command, how });
    }
    *held(&shared.lost) = why;
    // In this order: whoever listens anew after the first looks at it.
    let _ = over.send(true);
    held(&shared.listeners).clear();
}

/// Reads messages until none comes; why, but for the end of the stream.
async fn read_all(
    shared: &Shared,
    patience: Duration,
    stdout: &mut BufReader<tokio::process::ChildStdout>,
) -> Option<Lost> {
    loop {
        let line = match lines::next_within(stdout, LONGEST_LINE, patience).await {
            Ok(Line::Whole(line)) => line,
            Ok(Line::Silent) => return Some(Lost::Stalled { seconds: patience.as_secs() }),
            Ok(Line::TooLong) => {
                return Some(Lost::Garbled { beginning: "a line without an end".to_owned() });
            }
            Ok(Line::End) | Err(_) => return None,
        };
        let Ok(message) = serde_json::from_slice::<FromWorker>(&line) else {
            return Some(Lost::Garbled { beginning: shortened(&line) });
        };
        let id = match &message {
            FromWorker::Need { id, .. }
            | FromWorker::Progress { id, .. }
            | FromWorker::Result { id, .. }
            | FromWorker::Failed { id, .. } => id,
            FromWorker::Refused { message } => return Some(Lost::Garbled { beginning: message.clone() }),
            FromWorker::Hello { .. } | FromWorker::Beat => continue,
        };
        let listener = held(&shared.listeners).get(id).cloned();
        // Whoever asked may have gone.
        let _ = listener.map(|listener| listener.send(message));
    }
}
