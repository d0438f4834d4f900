//! The worker's side: reads what is ordered, keeps its promises about it, and ends with whoever ordered it.
//!
//! A connection that ends without a farewell was lost. Then jobs go on for as long as either side is patient: whoever comes again meanwhile, with
//! another connection and so another process of this kind, waits for the job's lock and is given its answer. If nobody comes, they are ended.

mod job;
mod lock;
mod out;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{BufReader, Stdin};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::lines::{self, Line};
use crate::perform::Here;
use crate::protocol::{BEATS, FromWorker, Kind, LONGEST_LINE, PROTOCOL, ToWorker, VERSION, misunderstanding};
use crate::store::{Incoming, Store, is_name, objection, trouble};
use job::{Job, Surroundings};
use out::Out;

/// How long jobs may take to end when they are cancelled.
const ENDING: Duration = Duration::from_secs(8);
/// How often a worker that lost its connection looks whether somebody came for its jobs.
const LOOK: Duration = Duration::from_millis(200);
/// The patience that is believed.
const LEAST_PATIENCE: Duration = Duration::from_millis(300);
const MOST_PATIENCE: Duration = Duration::from_secs(3600);
/// What is said to whoever is no StitchCUDA.
const NO_HELLO: &str = "`stitchcuda worker` is started by another StitchCUDA, which says hello in JSON: `docs/worker.md` in the source.";

/// How the other side came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// It said farewell.
    Farewell,
    /// The stream ended, or it was silent for too long.
    Lost,
}

/// Speaks the protocol on the standard streams until they end. Gives the exit status.
///
/// # Errors
/// The streams can't be had.
pub async fn serve() -> io::Result<u8> {
    let out = Out::take_stdout()?;
    let mut stdin = BufReader::with_capacity(1 << 20, tokio::io::stdin());
    let greeted = match lines::next(&mut stdin, LONGEST_LINE).await {
        Ok(Line::Whole(line)) => greeted(&line, &out),
        _ => Err((2, NO_HELLO.to_owned())),
    };
    let (surroundings, ended) = match greeted {
        Ok((surroundings, ended)) => (Arc::new(surroundings), ended),
        Err((status, message)) => {
            out.say(&FromWorker::Refused { message: message.clone() });
            out.finish();
            // For a person who started this by hand.
            return if status == 2 { Err(io::Error::other(message)) } else { Ok(status) };
        }
    };
    let (store, patience) = (surroundings.store.clone(), surroundings.patience);
    let pruning = tokio::task::spawn_blocking(move || store.prune());
    let mut lines = read_lines(stdin, patience);
    // Of its own: a disk that is slow to take files must not look like a worker that is stuck.
    let beating = AbortOnDropHandle::new(tokio::spawn(beat(out.clone(), patience / BEATS)));
    let mut host =
        Host { surroundings, jobs: HashMap::new(), waiting: Vec::new(), incoming: HashMap::new(), ended };
    let how = host.listen(&mut lines).await;
    if how == Ended::Lost {
        host.wait_for_somebody().await;
    }
    host.end_jobs().await;
    drop(beating);
    // It ends by itself.
    let _ = pruning.await;
    out.finish();
    Ok(0)
}

/// Answers the first line. `Err` with the exit status and why nothing can be done for whoever said it.
fn greeted(line: &[u8], out: &Out) -> Result<(Surroundings, mpsc::UnboundedReceiver<String>), (u8, String)> {
    let Ok(ToWorker::Hello { protocol, version, patience }) = serde_json::from_slice(line) else {
        return Err((2, NO_HELLO.to_owned()));
    };
    let machine = machine();
    let hello =
        FromWorker::Hello { protocol: PROTOCOL, version: VERSION.to_owned(), machine: machine.clone() };
    if let Some(message) = misunderstanding(&machine, "the other side", protocol, &version) {
        // Said also now: whoever can't understand the rest learns who is too old.
        out.say(&hello);
        return Err((3, message));
    }
    let store = Store::open().map_err(|(path, error)| (3, trouble(&machine, &path, &error)))?;
    let here = Here::new(&machine).map_err(|error| (3, format!("{machine} can do nothing: {error}.")))?;
    out.say(&hello);
    let patience = Duration::from_millis(patience).clamp(LEAST_PATIENCE, MOST_PATIENCE);
    let (told, ended) = mpsc::unbounded_channel();
    Ok((Surroundings { here, store, machine, patience, out: out.clone(), told }, ended))
}

/// What this machine calls itself.
fn machine() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "the machine there".to_owned())
}

/// Reads standard input until it ends, or is silent for too long. What is no message that is known is left out: it is of a newer side that was
/// understood at its hello, or noise.
fn read_lines(mut stdin: BufReader<Stdin>, patience: Duration) -> mpsc::Receiver<ToWorker> {
    let (told, heard) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok(Line::Whole(line)) = lines::next_within(&mut stdin, LONGEST_LINE, patience).await {
            match serde_json::from_slice(&line) {
                Ok(message) => {
                    if told.send(message).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::warn!("a line that is no message was left out: {error}"),
            }
        }
    });
    heard
}

/// Says that this lives, as long as somebody hears it.
async fn beat(out: Out, every: Duration) {
    loop {
        out.say(&FromWorker::Beat);
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = out.closed() => return,
        }
    }
}

/// A job whose contents are not all there.
struct Waiting {
    id: String,
    job: Job,
    lacks: HashSet<String>,
}

struct Host {
    surroundings: Arc<Surroundings>,
    /// Jobs at work, each with what ends it.
    jobs: HashMap<String, CancellationToken>,
    waiting: Vec<Waiting>,
    /// Contents on their way, by their digests.
    incoming: HashMap<String, Incoming>,
    /// Hears of jobs that came to an end.
    ended: mpsc::UnboundedReceiver<String>,
}

impl Host {
    /// Does what it is told until the other side is gone.
    async fn listen(&mut self, lines: &mut mpsc::Receiver<ToWorker>) -> Ended {
        loop {
            tokio::select! {
                message = lines.recv() => match message {
                    Some(ToWorker::Bye) => return Ended::Farewell,
                    Some(message) => self.obey(message),
                    None => return Ended::Lost,
                },
                () = self.surroundings.out.closed() => return Ended::Lost,
                Some(id) = self.ended.recv() => { self.jobs.remove(&id); }
            }
        }
    }

    fn obey(&mut self, message: ToWorker) {
        match message {
            ToWorker::Job { id, order, roots, files } => self.take(id, Job { order, roots, files }),
            ToWorker::Put { content, at, data, last } => self.put(&content, at, &data, last),
            ToWorker::Cancel { id } => {
                if let Some(cancel) = self.jobs.get(&id) {
                    cancel.cancel();
                } else if let Some(at) = self.waiting.iter().position(|waiting| waiting.id == id) {
                    self.waiting.remove(at);
                    self.fail(&id, Kind::Cancelled, "The job was cancelled.");
                }
            }
            ToWorker::Done { id } => {
                // Said only after the answer came, though the job's own end may not have been heard of yet.
                if is_name(&id) {
                    crate::store::remove_folder(&self.surroundings.store.job(&id));
                }
            }
            ToWorker::Hello { .. } | ToWorker::Beat | ToWorker::Bye => {}
        }
    }

    /// Takes a job on: begins it where all contents are there, else asks for them.
    fn take(&mut self, id: String, job: Job) {
        let unfit = (!is_name(&id)).then(|| format!("`{id}` is no id of a job"));
        if let Some(why) = unfit.or_else(|| job.files.iter().find_map(objection)) {
            return self.fail(&id, Kind::Usage, &format!("The order can't be taken: {why}."));
        }
        if self.jobs.contains_key(&id) {
            return;
        }
        if let Some(answer) = job::answer(&self.surroundings.store, &id) {
            return self.surroundings.out.say(&answer);
        }
        let store = &self.surroundings.store;
        let lacks: HashSet<String> = job
            .files
            .iter()
            .filter(|file| !store.has(&file.content, file.bytes))
            .map(|file| file.content.clone())
            .collect();
        if lacks.is_empty() {
            return self.begin(id, job);
        }
        let mut contents: Vec<String> = lacks.iter().cloned().collect();
        contents.sort();
        self.surroundings.out.say(&FromWorker::Need { id: id.clone(), contents });
        self.waiting.push(Waiting { id, job, lacks });
    }

    fn begin(&mut self, id: String, job: Job) {
        let cancel = CancellationToken::new();
        self.jobs.insert(id.clone(), cancel.clone());
        tokio::spawn(job::work(self.surroundings.clone(), id, job, cancel));
    }

    /// Takes a part of a content.
    fn put(&mut self, content: &str, at: u64, data: &str, last: bool) {
        match self.add(content, at, data, last) {
            Ok(false) => {}
            Ok(true) => {
                let mut ready = Vec::new();
                for at in (0..self.waiting.len()).rev() {
                    self.waiting[at].lacks.remove(content);
                    if self.waiting[at].lacks.is_empty() {
                        ready.push(self.waiting.remove(at));
                    }
                }
                for Waiting { id, job, .. } in ready {
                    self.begin(id, job);
                }
            }
            Err((kind, message)) => {
                self.incoming.remove(content);
                let lacking = |waiting: &Waiting| waiting.lacks.contains(content);
                let failed: Vec<String> = self
                    .waiting
                    .extract_if(.., |waiting| lacking(waiting))
                    .map(|waiting| waiting.id)
                    .collect();
                failed.iter().for_each(|id| self.fail(id, kind, &message));
            }
        }
    }

    /// Adds a part of a content; whether it is whole now.
    fn add(&mut self, content: &str, at: u64, data: &str, last: bool) -> Result<bool, (Kind, String)> {
        if !self.waiting.iter().any(|waiting| waiting.lacks.contains(content)) {
            // Of a job that failed or was cancelled meanwhile.
            self.incoming.remove(content);
            return Ok(false);
        }
        let Surroundings { store, machine, .. } = &*self.surroundings;
        let wrong = |why: &str| (Kind::Bad, format!("A file came to {machine} {why}."));
        let system = |error: io::Error| (Kind::Missing, trouble(machine, store.root(), &error));
        if at == 0 {
            self.incoming.insert(content.to_owned(), store.begin(content).map_err(system)?);
        }
        let Some(incoming) = self.incoming.get_mut(content).filter(|incoming| incoming.bytes() == at) else {
            return Err(wrong("without a part of it"));
        };
        let bytes = STANDARD.decode(data).map_err(|_| wrong("that is no base64"))?;
        incoming.add(&bytes).map_err(system)?;
        if !last {
            return Ok(false);
        }
        let Some(incoming) = self.incoming.remove(content) else { return Ok(false) };
        match incoming.finish().map_err(system)? {
            true => Ok(true),
            false => Err(wrong(
                "with other bytes than it was said to have: it was changed while it was sent. Try again",
            )),
        }
    }

    fn fail(&self, id: &str, status: Kind, message: &str) {
        self.surroundings.out.say(&FromWorker::Failed {
            id: id.to_owned(),
            status,
            message: message.to_owned(),
        });
    }

    /// Goes on without a connection, for as long as the sides are patient or somebody waits for an answer.
    async fn wait_for_somebody(&mut self) {
        let mut since = Instant::now();
        while !self.jobs.is_empty() && since.elapsed() < self.surroundings.patience {
            tokio::select! {
                Some(id) = self.ended.recv() => { self.jobs.remove(&id); }
                () = tokio::time::sleep(LOOK) => {
                    if self.jobs.keys().any(|id| lock::is_awaited(&self.surroundings.store, id)) {
                        since = Instant::now();
                    }
                }
            }
        }
    }

    /// Cancels all jobs and waits for their ends.
    async fn end_jobs(&mut self) {
        self.jobs.values().for_each(CancellationToken::cancel);
        let deadline = Instant::now() + ENDING;
        while !self.jobs.is_empty() && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.ended.recv()).await {
                Ok(Some(id)) => drop(self.jobs.remove(&id)),
                _ => return,
            }
        }
    }
}
