//! What plugins are shown of jobs: each as it is now, in one object, so that who missed a message is right again with the next.
//!
//! The table of jobs knows how far each is. What is known beside that (which file, which run, what came of it) is kept here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use stitch_findings::{Answer, Verdict};
use stitch_session::jobs::{JobId, JobInfo, JobKind, State};

use crate::session::Session;

/// Beyond so many, cards of jobs that nobody lists any more are dropped.
const MOST_CARDS: usize = 300;

/// What became of a candidate that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// It waits for the person.
    Open,
    /// The edit was made.
    Accepted,
    /// The person does not want it.
    Rejected,
}

/// What is known of a job beside how far it is.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// The document it is about, as the client spells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The last thing it said that stays true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The run it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Where kernels ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How many times less the best attempt so far costs than the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// The number of that attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What came of it in a sentence, with where its numbers are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Of a verification: the answer in a word. The whole verdict is in [`Board::verdict`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What became of the offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// A job as a plugin sees it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    id: JobId,
    kind: JobKind,
    title: String,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentage: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    seconds: f64,
    #[serde(flatten)]
    card: Card,
}

/// The cards of all jobs.
#[derive(Debug, Default)]
pub struct Board {
    cards: Mutex<BTreeMap<JobId, Card>>,
    verdicts: Mutex<BTreeMap<JobId, Arc<Verdict>>>,
    /// What was told last of each job, without its time.
    told: Mutex<HashMap<JobId, Value>>,
}

impl Board {
    /// Writes something on a job's card.
    pub fn write(&self, job: JobId, change: impl FnOnce(&mut Card)) {
        change(self.cards().entry(job).or_default());
    }

    /// The job that made a run.
    pub fn job_of_run(&self, run: &str) -> Option<JobId> {
        self.cards().iter().find(|(_, card)| card.run.as_deref() == Some(run)).map(|(job, _)| *job)
    }

    /// Keeps the verdict of a job.
    pub fn judged(&self, job: JobId, verdict: Verdict) {
        self.verdicts().insert(job, Arc::new(verdict));
    }

    /// The verdict of a job that verified.
    pub fn verdict(&self, job: JobId) -> Option<Arc<Verdict>> {
        self.verdicts().get(&job).cloned()
    }

    fn verdicts(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, Arc<Verdict>>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cards(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, Card>> {
        self.cards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, info: JobInfo) -> Shown {
        let card = self.cards().get(&info.id).cloned().unwrap_or_default();
        let ended_badly = info.state == State::Failed;
        let (stage, message) = if ended_badly { (None, info.message) } else { (info.message, None) };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
        let percentage = info.fraction.map(|fraction| (fraction * 100.0) as u32);
        Shown {
            id: info.id,
            kind: info.kind,
            title: info.title,
            state: info.state,
            stage,
            percentage,
            message,
            seconds: info.ran_seconds,
            card,
        }
    }
}

/// Tells a plugin how a job is now, also where it was told so before: a decision that is made again is waited for again.
pub fn tell_again(session: &Session, job: JobId) {
    session.board.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
    tell(session, job);
}

/// All jobs but clang's checks, which come and go with keystrokes; the oldest first.
pub fn all(session: &Session) -> Vec<Shown> {
    session.jobs.list().into_iter().filter(is_shown).map(|info| session.board.show(info)).collect()
}

/// Whether a job has ended.
pub fn is_over(session: &Session, job: JobId) -> bool {
    let is_over = |info: &JobInfo| !matches!(info.state, State::Queued | State::Running);
    session.jobs.list().iter().any(|info| info.id == job && is_over(info))
}

/// Tells a plugin how a job is now, if it wants to know and was not told so before.
pub fn tell(session: &Session, job: JobId) {
    if !session.features().plugin.jobs {
        return;
    }
    let list = session.jobs.list();
    let board = &session.board;
    if board.cards().len() > MOST_CARDS {
        let is_listed = |job: &JobId| list.iter().any(|info| info.id == *job);
        board.cards().retain(|job, _| is_listed(job));
        board.verdicts().retain(|job, _| is_listed(job));
        board.told.lock().unwrap_or_else(PoisonError::into_inner).retain(|job, _| is_listed(job));
    }
    let Some(info) = list.into_iter().find(|info| info.id == job).filter(is_shown) else { return };
    let Ok(shown) = serde_json::to_value(board.show(info)) else { return };
    let mut without_time = shown.clone();
    if let Some(object) = without_time.as_object_mut() {
        object.remove("seconds");
    }
    let before = board.told.lock().unwrap_or_else(PoisonError::into_inner).insert(job, without_time.clone());
    if before.as_ref() != Some(&without_time) {
        session.notices.job(shown);
    }
}

fn is_shown(info: &JobInfo) -> bool {
    info.kind != JobKind::TypeCheck
}
