//! The messages that go through the process which leads to a worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::BufReader;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use super::command::{Command, Words, shortened};
use super::error::{Lost, WorkerError};
use super::greeting::{greet, write};
use crate::lines::{self, Line};
use crate::perform::Progress;
use crate::protocol::{BEATS, FromWorker, LONGEST_LINE, ToWorker};

/// How long the command may take to end after a farewell.
const LEAVING: Duration = Duration::from_secs(10);
/// How long it may take to end when it leads nowhere any more.
const ENDING: Duration = Duration::from_millis(500);

/// Who waits for messages about a job, by its id.
type Listeners = Mutex<HashMap<String, mpsc::UnboundedSender<FromWorker>>>;

/// When each content was sent to its end. Held by who sends one: two jobs may want the same.
pub type Whole = HashMap<String, Instant>;

/// What the reading side shares with the rest.
#[derive(Debug, Default)]
struct Shared {
    listeners: Listeners,
    /// How it was lost.
    lost: Mutex<Option<Lost>>,
}

/// A connection to a worker. Dropping it ends the command.
#[derive(Debug)]
pub struct Connection {
    machine: String,
    words: Words,
    shared: Arc<Shared>,
    to_worker: mpsc::Sender<ToWorker>,
    sending: tokio::sync::Mutex<Whole>,
    /// Turns true when it is over.
    over: watch::Receiver<bool>,
    /// Ends the command when it is dropped.
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
        let (mut process, mut streams) = Command::start(command)?;
        let name = shell_words::join(command);
        let machine = greet(&mut process, &name, &mut streams, patience, progress).await?;
        let (stdin, stdout, _) = streams;
        let (words, shared) = (process.words(), Arc::new(Shared::default()));
        let (to_worker, messages) = mpsc::channel(4);
        let (ended, over) = watch::channel(false);
        let (end, dropped) = mpsc::channel(1);
        tokio::spawn(say_all(stdin, messages, patience / BEATS));
        tokio::spawn(watch_over(shared.clone(), (process, name), patience, stdout, (dropped, ended)));
        Ok(Self { machine, words, shared, to_worker, sending: Default::default(), over, _end: end })
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

    /// What was sent to its end; nobody else sends meanwhile.
    pub async fn sending(&self) -> tokio::sync::MutexGuard<'_, Whole> {
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
            said: self.words.text(),
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
    (mut process, name): (Command, String),
    patience: Duration,
    mut stdout: BufReader<ChildStdout>,
    (mut dropped, over): (mpsc::Receiver<()>, watch::Sender<bool>),
) {
    let why = tokio::select! {
        why = read_all(&shared, patience, &mut stdout) => why,
        _ = dropped.recv() => None,
    };
    let how = process.end(ENDING).await.unwrap_or_else(|| "closed its output".to_owned());
    *held(&shared.lost) = Some(why.unwrap_or(Lost::Ended { command: name, how }));
    // In this order: whoever listens anew after the first looks at it.
    let _ = over.send(true);
    held(&shared.listeners).clear();
}

/// Reads messages until none comes; why, but for the end of the stream.
async fn read_all(shared: &Shared, patience: Duration, stdout: &mut BufReader<ChildStdout>) -> Option<Lost> {
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
