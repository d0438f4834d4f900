//! An OpenAI-compatible endpoint that answers by a script, down to the byte, so that it can misbehave as real ones do.
//!
//! It listens on a port of 127.0.0.1 and answers each connection's one request; bytes are written as they are given, with pauses.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Received {
    /// `POST`.
    pub method: String,
    /// `/v1/chat/completions`.
    pub path: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// The body; null where there is none.
    pub body: Value,
}

impl Received {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All that the messages say, one after the other.
    pub fn text(&self) -> String {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        messages.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// What is done next on a connection.
#[derive(Clone, Debug)]
pub enum Step {
    /// Write these bytes.
    Send(Vec<u8>),
    /// Wait, unless the other side goes.
    Wait(Duration),
    /// Write these bytes again and again, until the other side goes.
    Flood(Vec<u8>),
    /// Wait until the other side goes.
    Hang,
}

/// An answer: what is written, and when. The connection is closed after it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
    is_chunked: bool,
}

impl Answer {
    /// An answer of this status and type, with this body.
    pub fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        Self { status, headers, steps: vec![Step::Send(body.into())], is_chunked: false }
    }

    /// JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// An error in OpenAI's words.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self::json(status, &json!({ "error": { "message": message, "type": code, "code": code } }))
    }

    /// A list of models.
    pub fn models(names: &[&str]) -> Self {
        let models: Vec<_> = names.iter().map(|name| json!({ "id": name, "object": "model" })).collect();
        Self::json(200, &json!({ "object": "list", "data": models }))
    }

    /// A stream that begins with this; the end of the connection is its end.
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// A stream as it should be: this text in a few events, tokens used, and the mark of the end.
    pub fn text(text: &str) -> Self {
        let letters: Vec<_> = text.chars().collect();
        let mut body = String::new();
        for piece in letters.chunks(17) {
            body += &event(&json!({ "content": piece.iter().collect::<String>() }), None);
        }
        body += &event(&json!({}), Some("stop"));
        body += &usage(100, 10);
        Self::stream(body + DONE)
    }

    /// The same with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with one more step.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The same in chunks, one a `Send`, so that an end before the last chunk is seen as a break.
    pub fn chunked(mut self) -> Self {
        self.is_chunked = true;
        self
    }

    /// The same written in pieces of these sizes with a pause between, what is left in one.
    pub fn in_pieces(mut self, sizes: &[usize], pause: Duration) -> Self {
        let bytes: Vec<u8> = self
            .steps
            .drain(..)
            .flat_map(|step| if let Step::Send(bytes) = step { bytes } else { Vec::new() })
            .collect();
        let mut rest = bytes.as_slice();
        for size in sizes {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            rest = after;
            self.steps.extend([Step::Send(piece.to_vec()), Step::Wait(pause)]);
        }
        self.steps.push(Step::Send(rest.to_vec()));
        self
    }
}

/// The mark of the end of a stream.
pub const DONE: &str = "data: [DONE]\n\n";

/// An event with a part of the answer, and why it ended.
pub fn event(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!(
        "data: {}\n\n",
        json!({ "id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice] })
    )
}

/// The event that says how many tokens were used, which has no choices.
pub fn usage(prompt: u64, completion: u64) -> String {
    let usage = json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion });
    format!("data: {}\n\n", json!({ "id": "c1", "model": "m", "choices": [], "usage": usage }))
}

type Script = dyn Fn(&Received, usize) -> Answer + Send + Sync;

struct Shared {
    script: Box<Script>,
    received: Mutex<Vec<Received>>,
    /// Questions that came, for the script.
    asked: AtomicUsize,
    /// When the other side went before an answer was over.
    left: Mutex<Vec<Instant>>,
    changed: Condvar,
    is_over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running endpoint; it ends when dropped.
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Endpoint {
    /// Answers the questions with these answers in turn, and with the last again when there are no more. It has one model, `m`.
    ///
    /// # Errors
    /// No port can be had.
    pub fn with(answers: Vec<Answer>) -> Result<Self> {
        Self::start(move |received, index| {
            if received.method == "GET" {
                return Answer::models(&["m"]);
            }
            answers
                .get(index)
                .or(answers.last())
                .cloned()
                .unwrap_or_else(|| Answer::error(500, "none", "no answers"))
        })
    }

    /// Answers each request with what `script` says to it and to how many questions (`POST`) came before.
    ///
    /// # Errors
    /// No port can be had.
    pub fn start(script: impl Fn(&Received, usize) -> Answer + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("getting a port")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Box::new(script),
            received: Mutex::default(),
            asked: AtomicUsize::new(0),
            left: Mutex::default(),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
        });
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_over.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let serving = serving.clone();
                // A client that goes is not the endpoint's trouble; what it saw of it is in `left`.
                thread::spawn(move || drop(serve(stream, &serving)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Its base address.
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests that came, the list of models included.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// The questions that came.
    pub fn questions(&self) -> Vec<Received> {
        self.received().into_iter().filter(|received| received.method == "POST").collect()
    }

    /// Waits until a client has gone before its answer was over, and tells when it did.
    pub fn left(&self, most: Duration) -> Option<Instant> {
        let left = lock(&self.shared.left);
        let waited = self.shared.changed.wait_timeout_while(left, most, |left| left.is_empty());
        let (left, _) = waited.unwrap_or_else(PoisonError::into_inner);
        left.first().copied()
    }

    /// Waits until so many questions have come.
    pub fn wait_for_questions(&self, count: usize, most: Duration) -> bool {
        let start = Instant::now();
        while self.questions().len() < count {
            if start.elapsed() > most {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let Some(received) = read_request(&mut stream)? else { return Ok(()) };
    lock(&shared.received).push(received.clone());
    let is_question = received.method == "POST";
    let index = shared.asked.fetch_add(usize::from(is_question), Ordering::SeqCst);
    let answer = (shared.script)(&received, index);
    if write_answer(&mut stream, &answer, shared).is_err() {
        lock(&shared.left).push(Instant::now());
        shared.changed.notify_all();
    }
    Ok(())
}

fn write_answer(stream: &mut TcpStream, answer: &Answer, shared: &Shared) -> Result<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if answer.is_chunked {
        head += "Transfer-Encoding: chunked\r\n";
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let write = |stream: &mut TcpStream, bytes: &[u8]| -> std::io::Result<()> {
        if answer.is_chunked && !bytes.is_empty() {
            stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
            stream.write_all(bytes)?;
            return stream.write_all(b"\r\n");
        }
        stream.write_all(bytes)
    };
    for step in &answer.steps {
        match step {
            Step::Send(bytes) => write(stream, bytes)?,
            Step::Wait(pause) => wait(stream, Some(*pause), shared)?,
            Step::Hang => wait(stream, None, shared)?,
            Step::Flood(bytes) => loop {
                write(stream, bytes)?;
                if shared.is_over.load(Ordering::SeqCst) {
                    break;
                }
            },
        }
    }
    stream.flush()?;
    Ok(())
}

/// Waits; an error when the other side goes.
fn wait(stream: &mut TcpStream, most: Option<Duration>, shared: &Shared) -> Result<()> {
    let start = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(2)))?;
    while most.is_none_or(|most| start.elapsed() < most) && !shared.is_over.load(Ordering::SeqCst) {
        match stream.read(&mut [0; 64]) {
            Ok(0) => anyhow::bail!("the other side has gone"),
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_request(stream: &mut TcpStream) -> Result<Option<Received>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 8192];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(Ok(0), |(_, value)| value.parse())?;
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            count => body.extend_from_slice(&piece[..count]),
        }
    }
    Ok(Some(Received { method, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() }))
}
