//! Which files a job is about, and their way to the machine that has not got them.
//!
//! What travels: the files that were named; what they include, import or name in quotes, as long as it lies in the same project; and what is listed
//! as an input, wherever that lies. A quoted name outside of the project stays here: a source must not be able to ask for a person's keys.

mod closure;
mod names;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use stitch_verifier::program::{Program, Target};
use stitch_verifier::torch::subject::{Callable, Source, Subject};
use tokio_util::sync::CancellationToken;

use crate::client::{Connection, WorkerError};
use crate::perform::Progress;
use crate::protocol::{CHUNK, Sent, ToWorker};
use crate::store::hexadecimal;

/// More is no project but a disk.
const MOST_FILES: usize = 50_000;
/// How many bytes of files may travel for one job.
const MOST_BYTES: u64 = 16 << 30;
/// A larger file's way is told as it goes.
const LARGE: u64 = 4 << 20;

/// What a job is about, before it is looked for on disk.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The project: what sources name is taken from here.
    pub workspace: PathBuf,
    /// Sources, which may name others.
    pub sources: Vec<PathBuf>,
    /// Files that travel wherever they lie.
    pub inputs: Vec<PathBuf>,
    /// Folders that travel whole but for what is hidden.
    pub folders: Vec<PathBuf>,
    /// Folders that includes are looked for in besides the usual.
    pub include: Vec<PathBuf>,
    /// Texts that may name files: a program's arguments.
    pub arguments: Vec<String>,
}

/// The files of a job.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The folders that they lie in.
    pub roots: Vec<PathBuf>,
    /// They, each with what it holds.
    pub sent: Vec<Sent>,
    workspace: PathBuf,
    by_content: HashMap<String, PathBuf>,
}

impl Wanted {
    /// The files of a project.
    pub fn of(workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), ..Self::default() }
    }

    /// And those of a CUDA program or kernel.
    pub fn with_target(mut self, target: &Target) -> Self {
        match target {
            Target::Kernel { path, .. } => self.sources.push(path.clone()),
            Target::Program(program) => self.add_program(program),
        }
        self
    }

    fn add_program(&mut self, program: &Program) {
        self.sources.extend(program.sources.iter().cloned());
        self.inputs.extend(program.inputs.iter().cloned());
        self.arguments.extend(program.arguments.iter().cloned());
        if let Some(own) = &program.own {
            // It is built in a copy of its folder.
            self.folders.push(program.folder.clone());
            if let Some((_, candidate)) = &own.replaced {
                self.sources.push(candidate.clone());
            }
        }
    }

    /// And those of a Python file.
    pub fn with_subject(mut self, subject: &Subject) -> Self {
        self.sources.push(subject.path.clone());
        let mut sources: Vec<&Source> = subject.cases.iter().map(|case| &case.inputs).collect();
        if let Callable::Module { init: Some(init), .. } = &subject.callable {
            sources.push(init);
        }
        for source in sources {
            match source {
                Source::File { path } => self.inputs.push(path.clone()),
                Source::Expression { text } => self.arguments.push(text.clone()),
                Source::Function { .. } => {}
            }
        }
        self
    }

    /// And those that flags of a compiler name: `-Iinclude`.
    pub fn with_flags(mut self, flags: &[String]) -> Self {
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let folder = match flag.strip_prefix("-I") {
                Some("") => flags.next().map(String::as_str),
                folder => folder,
            };
            self.include.extend(folder.map(|folder| self.workspace.join(folder)));
        }
        self
    }

    /// Looks for them, and reads what they hold.
    ///
    /// # Errors
    /// A file that was named can't be read, or can't travel; the job is cancelled.
    pub async fn gather(self, cancel: &CancellationToken) -> Result<Files, WorkerError> {
        let cancel = cancel.clone();
        let gathered = tokio::task::spawn_blocking(move || gather(&self, &cancel)).await;
        gathered.map_err(|error| WorkerError::Internal(error.to_string()))?
    }
}

fn gather(wanted: &Wanted, cancel: &CancellationToken) -> Result<Files, WorkerError> {
    let unreadable = |path: &Path, source| WorkerError::File { path: path.display().to_string(), source };
    let paths = closure::of(wanted, MOST_FILES).map_err(|(path, error)| unreadable(&path, error))?;
    let mut files = Files { workspace: wanted.workspace.clone(), ..Files::default() };
    let mut total = 0;
    for path in paths {
        let described = described(&path, cancel).map_err(|error| unreadable(&path, error))?;
        let sent = described.ok_or(WorkerError::Cancelled)?;
        total += sent.bytes;
        if total > MOST_BYTES {
            let error = io::Error::other(format!("the job's files are more than {} GB", MOST_BYTES >> 30));
            return Err(unreadable(&path, error));
        }
        files.by_content.insert(sent.content.clone(), path);
        files.sent.push(sent);
    }
    let mut roots: Vec<PathBuf> =
        files.sent.iter().filter_map(|sent| sent.path.parent()).map(Path::to_owned).collect();
    roots.extend([wanted.workspace.clone()]);
    roots.extend(wanted.folders.iter().cloned());
    files.roots = outermost(roots);
    Ok(files)
}

/// Folders without those that lie in others of them.
fn outermost(mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    folders.retain(|folder| folder.is_absolute() && folder.parent().is_some());
    folders.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in folders {
        if kept.last().is_none_or(|last| !folder.starts_with(last)) {
            kept.push(folder);
        }
    }
    kept
}

/// A file as it is told of; `None` where nobody wants to know any more.
fn described(path: &Path, cancel: &CancellationToken) -> io::Result<Option<Sent>> {
    use std::os::unix::fs::PermissionsExt;
    if path.to_str().is_none() {
        return Err(io::Error::other("its name is not UTF-8, and so can't be told to the other machine"));
    }
    if path.parent().is_none_or(|folder| folder.parent().is_none()) {
        return Err(io::Error::other("it lies in no folder but the root of the disk: put it into one"));
    }
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        if cancel.is_cancelled() {
            return Ok(None);
        }
        bytes += count as u64;
        hash.update(&buffer[..count]);
    }
    let executable = metadata.permissions().mode() & 0o100 != 0;
    Ok(Some(Sent { path: path.to_owned(), content: hexadecimal(&hash.finalize()), bytes, executable }))
}

impl Files {
    /// Sends contents that are asked for.
    pub(crate) async fn send(
        &self,
        contents: Vec<String>,
        connection: &Connection,
        progress: &Progress<'_>,
    ) -> Result<(), WorkerError> {
        let asked = Instant::now();
        for content in contents {
            let mut whole = connection.sending().await;
            // Another job may have wanted the same, and have sent it to whoever asks since.
            if whole.get(&content).is_none_or(|at| *at < asked) {
                let at = self.send_one(&content, connection, progress).await?;
                whole.insert(content, at);
            }
        }
        Ok(())
    }

    /// Sends one: the moment before its last part was.
    async fn send_one(
        &self,
        content: &str,
        connection: &Connection,
        progress: &Progress<'_>,
    ) -> Result<Instant, WorkerError> {
        let Some(path) = self.by_content.get(content) else {
            return Err(WorkerError::Internal(format!("the worker asks for {content}, which is of no file")));
        };
        let unreadable = |source| WorkerError::File { path: path.display().to_string(), source };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = File::open(path).map_err(unreadable)?;
        let total = file.metadata().map_err(unreadable)?.len();
        progress(&format!("sending {name}"), None);
        let mut sent = 0;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            (&mut file).take(CHUNK as u64).read_to_end(&mut chunk).map_err(unreadable)?;
            let (at, now) = (sent, Instant::now());
            sent += chunk.len() as u64;
            let last = chunk.len() < CHUNK;
            let data = STANDARD.encode(&chunk);
            connection.say(ToWorker::Put { content: content.to_owned(), at, data, last }).await?;
            if total > LARGE {
                let share = sent as f32 / total as f32;
                progress(&format!("sending {name}"), Some(share.min(1.0)));
            }
            if last {
                return Ok(now);
            }
        }
    }

    /// What the worker says, with what to do where a file seems to be missing there.
    pub(crate) fn explained(&self, message: String) -> String {
        let missing = ["No such file or directory", "No module named", "cannot open source file"];
        if !missing.iter().any(|words| message.contains(words)) {
            return message;
        }
        format!(
            "{message} {} files went there: what was named, and what that includes, imports or names in quotes within {}. List others as `inputs` of a \
             [target.NAME] in stitchcuda.toml.",
            self.sent.len(),
            self.workspace.display()
        )
    }

    /// They by their paths, with what each holds.
    pub fn contents(&self) -> BTreeMap<&Path, &str> {
        self.sent.iter().map(|sent| (sent.path.as_path(), sent.content.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn gathered(wanted: Wanted) -> Result<Files, WorkerError> {
        gather(&wanted, &CancellationToken::new())
    }

    #[test]
    fn names_with_odd_characters_travel_and_those_that_can_not_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let inputs: Vec<PathBuf> =
            ["a b.bin", "q\"uo'te.bin", "π\n%s.bin", "back\\slash.bin"].map(|name| root.join(name)).into();
        inputs.iter().for_each(|path| std::fs::write(path, "x").unwrap());
        let files = gathered(Wanted { inputs: inputs.clone(), ..Wanted::of(&root) }).unwrap();
        assert_eq!(files.contents().into_keys().collect::<Vec<_>>().len(), 4);
        let text = serde_json::to_string(&files.sent).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Sent>>(&text).unwrap(), files.sent);
        assert_eq!(files.roots, std::slice::from_ref(&root));

        let odd = root.join(std::ffi::OsStr::from_bytes(b"\xff.bin"));
        std::fs::write(&odd, "x").unwrap();
        let error = gathered(Wanted { inputs: vec![odd], ..Wanted::of(&root) }).unwrap_err();
        assert!(
            error.to_string().contains("not UTF-8") && error.kind() == crate::protocol::Kind::Usage,
            "{error}"
        );
    }

    #[test]
    fn who_cancels_does_not_wait_until_all_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.bin");
        std::fs::write(&path, [0; 100]).unwrap();
        let (wanted, cancel) = (Wanted { inputs: vec![path], ..Wanted::default() }, CancellationToken::new());
        cancel.cancel();
        assert!(matches!(gather(&wanted, &cancel), Err(WorkerError::Cancelled)));
    }

    #[test]
    fn the_root_of_the_disk_is_no_folder_that_travels() {
        assert_eq!(outermost(vec!["/".into(), "/w/p".into(), "/w".into()]), [Path::new("/w")]);
        let error = described(Path::new("/a.cu"), &CancellationToken::new()).unwrap_err();
        assert!(error.to_string().contains("put it into one"), "{error}");
    }
}
