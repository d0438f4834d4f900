//! What a worker keeps on disk: contents by their digest, so that none travels twice; and a folder for each job, with its lock and its answer.
//!
//! A job's files are copied to a tree of its own and not linked: a program that writes beside itself must not change what a later job is about,
//! and two versions of a file never meet.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use stitch_session::folders::{self, Folders};

use crate::protocol::Sent;
use crate::relocate::text_under;

/// How much of contents is kept; the least recently used go first.
const MOST_BYTES: u64 = 4 << 30;
/// What was not used for so long is gone.
const LONGEST_UNUSED: Duration = Duration::from_secs(14 * 24 * 3600);
/// What was used within so long is not removed.
const RECENT: Duration = Duration::from_secs(3600);
/// How long a job's answer waits for whoever lost the connection.
const LONGEST_ANSWER: Duration = Duration::from_secs(24 * 3600);

/// The folder of all that is kept.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// Whether a text may name a content or a job: nothing that leads out of a folder.
pub fn is_name(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl Store {
    /// The one of this user, made where it is not there.
    ///
    /// # Errors
    /// Which folder can't be made, and what the system said.
    pub fn open() -> Result<Self, (PathBuf, io::Error)> {
        let cache = Folders::find().cache.ok_or_else(|| {
            let unknown = io::Error::other("no home is known; set STITCHCUDA_CACHE_DIR there");
            (PathBuf::from("The folder of a cache"), unknown)
        })?;
        let root = cache.join("worker");
        let failed = |error| (root.clone(), error);
        for part in ["contents", "jobs"] {
            folders::create_private(&root.join(part)).map_err(failed)?;
        }
        // What a compiler or an interpreter says of a file is at the path that the system has for it.
        Ok(Self { root: root.canonicalize().map_err(failed)? })
    }

    /// Where it lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn content(&self, digest: &str) -> PathBuf {
        self.root.join("contents").join(digest)
    }

    /// Whether a content is there whole; then it counts as used.
    pub fn has(&self, digest: &str, bytes: u64) -> bool {
        let path = self.content(digest);
        let whole = path.metadata().is_ok_and(|metadata| metadata.len() == bytes);
        if whole && let Ok(file) = File::options().append(true).open(&path) {
            // Of use only to what is removed first.
            let _ = file.set_modified(SystemTime::now());
        }
        whole
    }

    /// A content that begins to come.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn begin(&self, digest: &str) -> io::Result<Incoming> {
        let file = tempfile::Builder::new().prefix(".incoming-").tempfile_in(self.root.join("contents"))?;
        let (digest, path) = (digest.to_owned(), self.content(digest));
        Ok(Incoming { file, hash: Sha256::new(), bytes: 0, digest, path })
    }

    /// The folder of a job.
    pub fn job(&self, id: &str) -> PathBuf {
        self.root.join("jobs").join(id)
    }

    /// Lays the files of a job out under `tree`, at their paths on the other side. What was there of a process that did not come to an end is
    /// removed: a program may have written beside itself.
    ///
    /// # Errors
    /// The file, and what the system said.
    pub fn lay_out(
        &self,
        files: &[Sent],
        roots: &[PathBuf],
        tree: &Path,
    ) -> Result<(), (PathBuf, io::Error)> {
        match fs::remove_dir_all(tree) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((tree.to_owned(), error)),
            _ => {}
        }
        let at = |path: &Path| tree.join(path.strip_prefix("/").unwrap_or(path));
        for root in roots {
            let to = at(root);
            fs::create_dir_all(&to).map_err(|error| (to, error))?;
        }
        for file in files {
            let to = at(&file.path);
            let made = to.parent().map_or(Ok(()), fs::create_dir_all);
            let copied = made.and_then(|()| match file.path.ends_with("compile_commands.json") {
                true => self.database(&file.content, roots, tree, &to),
                false => fs::copy(self.content(&file.content), &to).map(drop),
            });
            let set = copied.and_then(|()| set_mode(&to, file.executable));
            set.map_err(|error| (to, error))?;
        }
        Ok(())
    }

    /// Writes a compile database, whose folders and files are those of the tree.
    fn database(&self, content: &str, roots: &[PathBuf], tree: &Path, to: &Path) -> io::Result<()> {
        let mut text = fs::read_to_string(self.content(content))?;
        for root in roots {
            text = text_under(&text, &root.to_string_lossy(), &tree.to_string_lossy());
        }
        fs::write(to, text)
    }

    /// Removes what nobody used for long, and the oldest contents where there are too many. What was just used stays: another worker may be about
    /// to lay it out.
    pub fn prune(&self) {
        for job in self.entries("jobs") {
            let limit = if job.join("answer").exists() { LONGEST_ANSWER } else { RECENT };
            if age(&job) > Some(limit) {
                remove_if_free(&job);
            }
        }
        let mut contents: Vec<(Duration, u64, PathBuf)> = self
            .entries("contents")
            .into_iter()
            .filter_map(|path| Some((age(&path)?, path.metadata().ok()?.len(), path)))
            .collect();
        contents.sort();
        let mut total = 0;
        for (old, bytes, path) in contents {
            total += bytes;
            let came_to_no_end =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let goes = total > MOST_BYTES || old > LONGEST_UNUSED || came_to_no_end;
            if goes && age(&path) > Some(RECENT) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn entries(&self, part: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join(part)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// How long ago something was written or used.
fn age(path: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(path.metadata().ok()?.modified().ok()?).ok()
}

/// Removes a job that no process does: one that does has its lock.
fn remove_if_free(job: &Path) {
    let lock = File::open(job.join("lock"));
    if lock.as_ref().map_or(true, |lock| lock.try_lock().is_ok()) {
        remove_folder(job);
    }
}

fn set_mode(path: &Path, executable: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(if executable { 0o700 } else { 0o600 }))
}

/// Removes a folder, or says in the log why it stays.
pub fn remove_folder(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("{} could not be removed: {error}", folder.display());
    }
}

/// Why a file of a job is none that can be laid out; `None` where it can.
pub fn objection(file: &Sent) -> Option<String> {
    let mut parts = file.path.components();
    let is_plain =
        parts.next() == Some(Component::RootDir) && parts.all(|part| matches!(part, Component::Normal(_)));
    if !is_plain {
        return Some(format!("{} is no absolute path without `..`", file.path.display()));
    }
    (!is_name(&file.content)).then(|| format!("`{}` is no digest", file.content))
}

/// A content on its way.
#[derive(Debug)]
pub struct Incoming {
    file: tempfile::NamedTempFile,
    hash: Sha256,
    bytes: u64,
    digest: String,
    path: PathBuf,
}

impl Incoming {
    /// How many bytes of it are there.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Keeps it, if it is what it was said to be; whether it is.
    ///
    /// # Errors
    /// It can't be kept.
    pub fn finish(self) -> io::Result<bool> {
        if hexadecimal(&self.hash.finalize()) != self.digest {
            return Ok(false);
        }
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(true)
    }
}

/// Bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the system said when something was written at `path` on `machine`, and what to do.
pub fn trouble(machine: &str, path: &Path, error: &io::Error) -> String {
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return format!(
            "The disk of {machine} is full: {} could not be written ({error}). Free some of it, or set STITCHCUDA_CACHE_DIR there to a folder on another disk.",
            path.display()
        );
    }
    format!("{} could not be written on {machine}: {error}.", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out_of_the_folders() {
        let sent = |path: &str, content: &str| Sent {
            path: path.into(),
            content: content.into(),
            bytes: 0,
            executable: false,
        };
        let digest = "a".repeat(64);
        assert_eq!(objection(&sent("/w/a.cu", &digest)), None);
        for (path, content) in [
            ("w/a.cu", &*digest),
            ("/w/../../etc/passwd", &digest),
            ("/w/a.cu", "../../../x"),
            ("/w/a.cu", ""),
        ] {
            assert!(objection(&sent(path, content)).is_some(), "{path} {content}");
        }
        assert!(is_name("0123456789abcdef") && !is_name("../x/../../y") && !is_name(""));
    }

    fn store(folder: &tempfile::TempDir) -> Store {
        let root = folder.path().to_owned();
        ["contents", "jobs"].iter().for_each(|part| fs::create_dir_all(root.join(part)).unwrap());
        Store { root }
    }

    #[test]
    fn what_a_program_left_of_a_job_that_came_to_no_end_is_gone_when_it_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (store, digest) = (store(&folder), "a".repeat(64));
        fs::write(store.content(&digest), "new").unwrap();
        let (tree, outside) = (store.job("job00001").join("tree"), folder.path().join("outside"));
        fs::create_dir_all(tree.join("w")).unwrap();
        fs::write(&outside, "outside").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("w/a.txt")).unwrap();
        fs::write(tree.join("w/left.txt"), "").unwrap();
        let sent = Sent { path: "/w/a.txt".into(), content: digest, bytes: 3, executable: false };
        store.lay_out(&[sent], &["/w".into(), "/w/empty".into()], &tree).unwrap();
        assert_eq!(fs::read_to_string(tree.join("w/a.txt")).unwrap(), "new");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "outside");
        assert!(!tree.join("w/left.txt").exists() && tree.join("w/empty").is_dir());
    }

    #[test]
    fn what_is_old_or_too_much_goes_and_what_is_used_stays() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let old = |path: &Path, age: Duration| {
            File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        };
        let hour = Duration::from_secs(3600);
        for (name, hours, gigabytes) in [
            ("used", 0, 3),
            ("second", 2, 3),
            ("third", 3, 1),
            ("old", 400, 0),
            (".incoming-1", 2, 0),
            (".incoming-2", 0, 0),
        ] {
            let path = store.root.join("contents").join(name);
            File::create(&path).unwrap().set_len(gigabytes << 30).unwrap();
            old(&path, hour * hours);
        }
        let mut locks = Vec::new();
        for (name, hours, has_answer) in [
            ("new", 0, false),
            ("left", 2, false),
            ("busy", 2, false),
            ("answer", 2, true),
            ("unheard", 25, true),
        ] {
            let path = store.job(name);
            fs::create_dir(&path).unwrap();
            locks.push(File::create(path.join("lock")).unwrap());
            if name == "busy" {
                locks.last().unwrap().try_lock().unwrap();
            }
            if has_answer {
                fs::write(path.join("answer"), "{}").unwrap();
            }
            old(&path, hour * hours);
        }
        store.prune();
        let kept = |part: &str| {
            let names = store.entries(part).into_iter();
            let mut names: Vec<String> =
                names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(kept("contents"), [".incoming-2", "used"]);
        assert_eq!(kept("jobs"), ["answer", "busy", "new"]);
    }

    #[test]
    fn a_full_disk_is_said_with_what_to_do() {
        let error = io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32);
        let text = trouble("gpu01", Path::new("/c/x"), &error);
        assert!(
            text.starts_with("The disk of gpu01 is full") && text.contains("STITCHCUDA_CACHE_DIR"),
            "{text}"
        );
    }
}
