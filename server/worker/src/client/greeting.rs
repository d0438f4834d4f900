//! How a connection begins: hello is said and heard, and what the machine greets with before it is passed over.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::command::{Command, LONGEST_WORDS, Streams, shortened};
use super::error::WorkerError;
use crate::lines::{self, Line};
use crate::perform::Progress;
use crate::protocol::{FromWorker, PROTOCOL, ToWorker, VERSION, misunderstanding};

/// What may be printed before a worker says hello: a greeting of the machine.
const MOST_LINES: usize = 200;
/// How many times the patience a command may take to lead to a worker: a queue of jobs may be before it.
const CONNECTING: u32 = 20;
/// How long a command may take to end that leads to no worker.
const ENDING: Duration = Duration::from_secs(2);

/// Says hello through the streams of a command, and hears that of a worker: what its machine calls itself. What comes on standard error meanwhile is
/// told.
///
/// # Errors
/// No worker answers, or one that can't be understood.
pub async fn greet(
    command: &mut Command,
    name: &str,
    streams: &mut Streams,
    patience: Duration,
    progress: &Progress<'_>,
) -> Result<String, WorkerError> {
    let (stdin, stdout, heard) = streams;
    let milliseconds = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    let hello = ToWorker::Hello { protocol: PROTOCOL, version: VERSION.to_owned(), patience: milliseconds };
    // Where nobody reads it, the end of the command says more.
    let _ = write(stdin, &hello).await;
    let limit = patience * CONNECTING;
    let (greeting, deadline) = (answer(stdout, name), tokio::time::sleep(limit));
    tokio::pin!(greeting, deadline);
    let answered = loop {
        tokio::select! {
            answered = &mut greeting => break answered,
            () = &mut deadline => {
                let seconds = limit.as_secs();
                break Err(WorkerError::Silent { command: name.to_owned(), seconds, said: String::new() });
            }
            Some(line) = heard.recv() => progress(&format!("connecting: {line}"), None),
        }
    };
    match answered {
        Ok((protocol, version, machine)) => {
            match misunderstanding("this machine", &machine, protocol, &version) {
                None => Ok(machine),
                Some(message) => Err(WorkerError::Version(message)),
            }
        }
        Err(error) => {
            let how = command.end(ENDING).await;
            Err(with_end(error, how, command.words().text()))
        }
    }
}

/// Reads up to the hello of a worker: its protocol, its version and the name of its machine.
async fn answer(
    stdout: &mut BufReader<ChildStdout>,
    command: &str,
) -> Result<(u32, String, String), WorkerError> {
    let mut first = String::new();
    let no_worker = |printed: String, beginning: &str| WorkerError::NoWorker {
        command: command.to_owned(),
        printed,
        beginning: beginning.to_owned(),
        said: String::new(),
    };
    for count in 0..=MOST_LINES {
        match lines::next(stdout, LONGEST_WORDS).await {
            Ok(Line::Whole(line)) => match serde_json::from_slice(&line) {
                Ok(FromWorker::Hello { protocol, version, machine }) => {
                    return Ok((protocol, version, machine));
                }
                Ok(FromWorker::Refused { message }) => return Err(WorkerError::Refused(message)),
                _ if first.is_empty() => first = shortened(&line),
                _ => {}
            },
            Ok(Line::TooLong) => {
                return Err(no_worker(format!("a line of over {LONGEST_WORDS} bytes"), &first));
            }
            Ok(Line::End | Line::Silent) | Err(_) if first.is_empty() => {
                let (command, how, said) = (command.to_owned(), String::new(), String::new());
                return Err(WorkerError::Ended { command, how, said });
            }
            Ok(Line::End | Line::Silent) | Err(_) => {
                let printed = if count == 1 { "a line".to_owned() } else { format!("{count} lines") };
                return Err(no_worker(printed, &first));
            }
        }
    }
    Err(no_worker(format!("more than {MOST_LINES} lines"), &first))
}

/// The error with how the command ended by itself, and with its last words.
fn with_end(error: WorkerError, ended: Option<String>, said: String) -> WorkerError {
    match error {
        WorkerError::Ended { command, .. } => {
            let how = ended.unwrap_or_else(|| "closed its output".to_owned());
            WorkerError::Ended { command, how, said }
        }
        WorkerError::NoWorker { command, printed, beginning, .. } => {
            WorkerError::NoWorker { command, printed, beginning, said }
        }
        WorkerError::Silent { command, seconds, .. } => WorkerError::Silent { command, seconds, said },
        error => error,
    }
}

/// Writes a message.
///
/// # Errors
/// Nobody reads it.
pub async fn write(stdin: &mut ChildStdin, message: &ToWorker) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await
}
