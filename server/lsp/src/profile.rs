//! Has profilers look at a document, or the simulator, and tells what they saw at its lines: findings, hints and heat, until their function changes.
//!
//! There is one profile a document, of the text that was on disk when it was made.

mod abroad;
pub mod import;
mod record;
mod related;
mod shown;
mod told;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stitch_analysis::{Analysis, Language};
use stitch_findings::{Finding, Span};
use stitch_profiles::profile::Profile as Recorded;
use stitch_session::config::OnSaveProfile;
use stitch_session::jobs::{JobError, JobId, JobKind, Request};

use crate::documents::Document;
use crate::elsewhere;
use crate::optimize::target;
use crate::session::Session;
use crate::uri::Key;
use crate::view::edit_between;
use record::{Limits, Made, ON_SAVE_BUDGET};
pub use shown::Shown;
use told::{PRODUCERS, Told};

/// How long the program may run.
const RUN_LIMIT: Duration = Duration::from_secs(600);

/// A profile that took less is made again by itself when the file is saved.
const SHORT: Duration = Duration::from_secs(10);

/// What one line moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Its text, without the end of the line, in the text that it is placed in.
    pub span: Span,
    /// Sectors, wavefronts of shared memory, divergent branches and updates that wait, together.
    pub weight: u64,
    /// The same in words, each by itself.
    pub words: String,
}

#[derive(Clone, Debug)]
struct Profile {
    text: Arc<str>,
    functions: Vec<Span>,
    lines: Vec<Moved>,
    device: String,
    /// The same in the form that rules read.
    recorded: Recorded,
    /// What its kernels did wrong.
    defects: Vec<Finding>,
    /// How long building and running took.
    took: Duration,
}

/// The last profile of each document.
#[derive(Debug, Default)]
pub struct Profiles(Mutex<HashMap<Key, Arc<Profile>>>);

impl Profiles {
    /// What is known of the lines of a document whose text is `now`, and the device: nothing of a function that changed since.
    pub fn lines(&self, key: &Key, now: &str) -> (Vec<Moved>, String) {
        let Some(profile) = self.last(key) else { return (Vec::new(), String::new()) };
        let Some(edit) = edit_between(&profile.text, now) else {
            return (profile.lines.clone(), profile.device.clone());
        };
        let changed = Span::new(edit.start, edit.old_end);
        let has_changed = |line: &Moved| {
            let around = profile.functions.iter().find(|function| function.touches(line.span.start));
            let around = around.copied().unwrap_or(line.span);
            changed.start < around.end && around.start < changed.end
        };
        let lines = profile.lines.iter().filter(|line| !has_changed(line));
        let moved = lines.map(|line| Moved { span: edit.stretch(line.span), ..line.clone() });
        (moved.collect(), profile.device.clone())
    }

    /// The last profile of a document.
    fn last(&self, key: &Key) -> Option<Arc<Profile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Adds what was imported of a document to its last profile, which may say other things about the same text.
    fn add(&self, key: &Key, text: &Arc<str>, functions: Vec<Span>, recorded: &Recorded) {
        let last = self.last(key).filter(|last| *last.text == **text);
        let mut profile = last.map(Arc::unwrap_or_clone).unwrap_or_else(|| Profile {
            text: text.clone(),
            functions,
            lines: Vec::new(),
            device: recorded.device.clone().unwrap_or_default(),
            recorded: Recorded::new(recorded.target.clone(), recorded.way.clone()),
            defects: Vec::new(),
            // Nothing was run here, so nothing is run again by itself.
            took: Duration::MAX,
        });
        profile.recorded.add(recorded);
        self.keep(key, Arc::new(profile));
    }

    fn keep(&self, key: &Key, profile: Arc<Profile>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), profile);
    }

    /// The document was closed.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Why a document is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It was saved.
    Saved,
    /// A person asked.
    Asked,
}

impl Reason {
    /// What it may take. One that nobody asked for, and that takes longer, keeps its last profile, which says that it is old.
    fn limits(self) -> Limits {
        match self {
            // As long again as blocks are simulated in full, for the sample and the host's own work.
            Self::Saved => Limits { run: ON_SAVE_BUDGET * 2, blocks: Some(ON_SAVE_BUDGET) },
            Self::Asked => Limits { run: RUN_LIMIT, blocks: None },
        }
    }
}

/// A document was saved: its program is profiled again, if it is to be.
pub fn saved(session: &Arc<Session>, document: &Arc<Document>) {
    let config = session.configuration.for_path(document.path.as_deref());
    let wanted = match config.on_save.profile {
        OnSaveProfile::Never => false,
        OnSaveProfile::Always => has_main(document),
        OnSaveProfile::Auto => {
            let last = session.profiles.last(&document.key);
            last.is_some_and(|last| last.took < SHORT && *last.text != *document.text.to_source())
        }
    };
    if wanted && session.may_run_by_itself() {
        // What can't be profiled is said to who asks, not to who saves.
        let _ = begin(session, document, Reason::Saved);
    }
}

/// Whether a program can be made of a document alone.
fn has_main(document: &Document) -> bool {
    let analysis = document.last_analysis().and_then(|last| last.analysis.clone());
    analysis
        .is_some_and(|analysis| analysis.outline().functions.iter().any(|function| &*function.name == "main"))
}

/// Starts to profile the program that a document is.
///
/// # Errors
/// Why it can't be, in a few words.
pub fn start(session: &Arc<Session>, document: &Arc<Document>) -> Result<JobId, String> {
    begin(session, document, Reason::Asked)
}

fn begin(session: &Arc<Session>, document: &Arc<Document>, reason: Reason) -> Result<JobId, String> {
    match document.to_analyse() {
        Some(Language::Cuda) => {}
        // Whether there is something to profile is seen before a job is begun.
        Some(Language::Python) => drop(target(session, document, None)?),
        None => return Err("only CUDA and Python files can be profiled".to_owned()),
    }
    if !session.configuration.is_trusted() {
        return Err("the workspace is not trusted, and the program would be run".to_owned());
    }
    let path = document.path.clone().ok_or("the document is no file of this machine")?;
    // What is built is the file; an edit that was taken back leaves no difference.
    if std::fs::read_to_string(&path).ok().as_deref() != Some(&*document.text.to_source()) {
        return Err("the file has changes that are not saved".to_owned());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let request = Request::new(JobKind::Profile, format!("Profile {name}"))
        .slot(format!("profile {}", document.key.as_str()))
        .limit(elsewhere::limit(session, Some(&path)));
    let (for_job, profiled) = (session.clone(), document.clone());
    let job = session.jobs.start(request, move |context| async move {
        let (text, language) = (profiled.text.to_source(), profiled.to_analyse().unwrap_or(Language::Cuda));
        let made = record::record(&for_job, &profiled, path.clone(), name, reason.limits(), &context).await;
        let made = match made {
            // Nobody asked: the last profile stays, and says that it is old.
            Err(JobError::Failed(why)) if reason == Reason::Saved => {
                context.note(format!("not profiled: {why}"));
                return Ok(());
            }
            made => made?,
        };
        show(&for_job, &profiled, &path, (text, language), made);
        Ok(())
    });
    session.board.write(job.id(), |card| card.uri = Some(document.uri.to_string()));
    Ok(job.id())
}

/// Keeps what was made of a text for its document, and tells it.
fn show(
    session: &Arc<Session>,
    document: &Document,
    path: &Path,
    (text, language): (Arc<str>, Language),
    made: Made,
) {
    let Made { lines, device, recorded, defects, took } = made;
    let analysis = Analysis::of(language, &text);
    let functions = analysis.function_spans();
    let profile = Arc::new(Profile { text, functions, lines, device, recorded, defects, took });
    // Kept first: whoever reads what is told may save at once.
    session.profiles.keep(&document.key, profile.clone());
    Told::of((path, &profile.text), &analysis, &profile.recorded, &profile.defects)
        .put(session, document, &PRODUCERS);
}

/// A document was opened: what is kept of it from before is told at once, if it still holds, and what was imported. Nothing is built or run.
pub fn opened(session: &Arc<Session>, document: Arc<Document>) {
    let session = session.clone();
    tokio::spawn(async move {
        import::opened(&session, &document);
        recall(&session, &document).await;
    });
}

async fn recall(session: &Arc<Session>, document: &Document) {
    let (Some(path), Some(language)) = (document.path.clone(), document.to_analyse()) else { return };
    let text = document.text.to_source();
    let is_on_disk = || std::fs::read_to_string(&path).ok().as_deref() == Some(&*text);
    // Looking for a compiler starts programs, which only a trusted folder may name.
    if !session.configuration.is_trusted() || !is_on_disk() {
        return;
    }
    let Some(made) = record::recall(session, document, &path).await else { return };
    // One that was made meanwhile is newer.
    if session.profiles.last(&document.key).is_none() {
        show(session, document, &path, (text, language), made);
    }
}

#[cfg(test)]
mod tests {
    use stitch_profiles::profile::Way;

    use super::*;

    #[test]
    fn lines_follow_edits_elsewhere_and_go_with_their_function() {
        let text = "void a() {\n  x;\n}\nvoid b() {\n  y;\n}\n";
        let span = |word: &str, of: &str| {
            let at = of.find(word).unwrap();
            Span::new(at, at + word.len())
        };
        let moved = |word: &str| Moved { span: span(word, text), weight: 1, words: word.to_owned() };
        let functions = Analysis::of(Language::Cuda, text).function_spans();
        assert_eq!(functions.len(), 2);
        let profile = Profile {
            text: text.into(),
            functions,
            lines: vec![moved("x;"), moved("y;")],
            device: "sim:h200".into(),
            recorded: Recorded::new("k.cu", Way::default()),
            defects: Vec::new(),
            took: Duration::ZERO,
        };
        let profiles = Profiles::default();
        let key = Key::of("file:///w/k.cu");
        profiles.0.lock().unwrap().insert(key.clone(), Arc::new(profile));
        let words = |now: &str| {
            let (lines, _) = profiles.lines(&key, now);
            lines.iter().map(|line| format!("{}@{}", line.words, &now[line.span.range()])).collect::<Vec<_>>()
        };
        assert_eq!(words(text), ["x;@x;", "y;@y;"]);
        assert_eq!(words(&format!("// new\n{text}")), ["x;@x;", "y;@y;"]);
        assert_eq!(words(&text.replace("x;", "xx;")), ["y;@y;"]);
        assert_eq!(words(&text.replace("x;", "1;").replace("y;", "2;")), [""; 0]);
    }
}
