//! The process that leads to a worker, and what is heard of it besides messages: how it ends, and its words on standard error.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use stitch_toolchain::environment::Environment;
use tokio::io::{AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::error::WorkerError;
use crate::lines::{self, Line};

/// How long one line of standard error, or of a greeting, may be, in bytes.
pub const LONGEST_WORDS: usize = 64 << 10;
/// Lines of standard error that are remembered.
const MOST_WORDS: usize = 8;

/// A command that leads to a worker. Dropping it ends it, and what it started.
#[derive(Debug)]
pub struct Command {
    child: Child,
    /// Remembers its last words.
    listening: tokio::task::JoinHandle<()>,
    words: Words,
}

/// The streams of a command: what it hears, what it says, and its words on standard error as they come.
pub type Streams = (ChildStdin, BufReader<ChildStdout>, mpsc::UnboundedReceiver<String>);

/// The last words on standard error.
#[derive(Clone, Debug, Default)]
pub struct Words(Arc<Mutex<VecDeque<String>>>);

impl Words {
    fn add(&self, line: String) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.push_back(line);
        while words.len() > MOST_WORDS {
            words.pop_front();
        }
    }

    /// They, one a line.
    pub fn text(&self) -> String {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}

impl Command {
    /// Starts it in a session of its own: it asks nothing on the terminal, and a Ctrl-C there is ours to handle.
    ///
    /// # Errors
    /// There is no such program, or the system gives no process.
    pub fn start(command: &[String]) -> Result<(Self, Streams), WorkerError> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(WorkerError::Internal("an empty command".to_owned()));
        };
        let environment = Environment::of_this_process().without_secrets();
        let mut process = tokio::process::Command::new(program);
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
        let mut child =
            process.spawn().map_err(|source| WorkerError::Start { program: program.clone(), source })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(WorkerError::Internal("a process without streams".to_owned()));
        };
        let words = Words::default();
        let (said, heard) = mpsc::unbounded_channel();
        let listening = tokio::spawn(hear(stderr, words.clone(), said));
        let stdout = BufReader::with_capacity(1 << 20, stdout);
        Ok((Self { child, listening, words }, (stdin, stdout, heard)))
    }

    /// Its last words.
    pub fn words(&self) -> Words {
        self.words.clone()
    }

    /// Waits for its end, and ends it where that does not come within `limit`: how it ended by itself, in words.
    pub async fn end(&mut self, limit: Duration) -> Option<String> {
        let status = tokio::time::timeout(limit, self.child.wait()).await.ok().and_then(Result::ok);
        if status.is_none() {
            self.kill();
            let _ = self.child.wait().await;
        }
        // Standard error ends with the process, unless something else has it.
        let _ = tokio::time::timeout(Duration::from_millis(500), &mut self.listening).await;
        status.map(ended)
    }

    fn kill(&self) {
        // It leads a group of its own name; none where it was waited for.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let _ = id.map(|id| killpg(Pid::from_raw(id), Signal::SIGKILL));
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.kill();
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

/// Remembers what comes on standard error, and tells it until nobody wants to hear it.
async fn hear(stream: impl AsyncRead + Unpin, words: Words, told: mpsc::UnboundedSender<String>) {
    let mut stream = BufReader::new(stream);
    loop {
        let line = match lines::next(&mut stream, LONGEST_WORDS).await {
            Ok(Line::Whole(line)) => shortened(&line),
            Ok(Line::TooLong) => continue,
            Ok(Line::End | Line::Silent) | Err(_) => return,
        };
        if line.trim().is_empty() {
            continue;
        }
        tracing::debug!("the worker's side said: {line}");
        words.add(line.clone());
        let _ = told.send(line);
    }
}

/// The beginning of a line, as it can be shown.
pub fn shortened(line: &[u8]) -> String {
    const MOST: usize = 120;
    let text = String::from_utf8_lossy(line);
    text.chars().filter(|character| !character.is_control()).take(MOST).collect()
}
