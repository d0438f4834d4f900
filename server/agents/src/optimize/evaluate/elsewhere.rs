//! A judgement that another machine makes: the same questions, put to whoever can carry them there. What needs no device is done here.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stitch_analysis::target::denote::Denoted;
use stitch_findings::Verdict;
use stitch_profiles::profile::Profile;
use stitch_session::config::Precision;
use stitch_verifier::measure::Cost;
use tokio_util::sync::CancellationToken;

use super::{Baseline, Evaluated, JudgeError, Judgement, Named, ToBeat, Version};

/// A question to a judgement, with the files of versions in place of their texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Question {
    /// What the reference costs.
    Baseline {
        /// Its file.
        reference: PathBuf,
    },
    /// What profilers say of the reference.
    Profile {
        /// Its file.
        reference: PathBuf,
        /// How long a run of it may take.
        limit: Duration,
    },
    /// What becomes of a candidate.
    Evaluate {
        /// The reference's file.
        reference: PathBuf,
        /// The candidate's.
        candidate: PathBuf,
        /// That of the best version so far.
        best: PathBuf,
        /// What that costs.
        cost: Box<Cost>,
        /// How many times less that is than what the reference costs.
        gain: f64,
    },
    /// Whether one version does what another does.
    Verify {
        /// The reference's file, and what it is called.
        reference: (PathBuf, String),
        /// The candidate's.
        candidate: (PathBuf, String),
    },
    /// Whether a candidate module is right in a mode.
    Mode {
        /// The reference's file.
        reference: PathBuf,
        /// The candidate's.
        candidate: PathBuf,
        /// Training mode, or evaluation mode.
        train: bool,
    },
}

/// An answer to a [`Question`], of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answered", content = "with", rename_all = "kebab-case")]
pub enum Answered {
    /// What the reference costs.
    Baseline(Box<Baseline>),
    /// What profilers say of the reference.
    Profiled(Box<Profile>),
    /// What became of a candidate.
    Evaluated(Box<Evaluated>),
    /// Whether it is right.
    Verified(Box<Verdict>),
}

impl Question {
    /// The files that it is about.
    pub fn files(&self) -> Vec<&PathBuf> {
        match self {
            Self::Baseline { reference } | Self::Profile { reference, .. } => vec![reference],
            Self::Evaluate { reference, candidate, best, .. } => vec![reference, candidate, best],
            Self::Verify { reference, candidate } => vec![&reference.0, &candidate.0],
            Self::Mode { reference, candidate, .. } => vec![reference, candidate],
        }
    }

    /// Puts it to a judgement of this machine.
    ///
    /// # Errors
    /// As [`Judgement::baseline`] and its like; also a file that can't be read.
    pub async fn put(
        &self,
        judgement: &Judgement,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Answered, JudgeError> {
        match self {
            Self::Baseline { reference } => {
                let reference = version(reference)?;
                let baseline = judgement.baseline(&reference, progress, cancel).await?;
                Ok(Answered::Baseline(Box::new(baseline)))
            }
            Self::Profile { reference, limit } => {
                let reference = version(reference)?;
                let profile = judgement.profile(&reference, *limit, progress, cancel).await;
                Ok(Answered::Profiled(Box::new(profile.map_err(JudgeError::Unsuitable)?)))
            }
            Self::Evaluate { reference, candidate, best, cost, gain } => {
                let (reference, candidate) = (version(reference)?, version(candidate)?);
                let to_beat = ToBeat { path: best, cost, gain: *gain };
                let evaluated =
                    judgement.evaluate(&reference, &candidate, &to_beat, progress, cancel).await?;
                Ok(Answered::Evaluated(Box::new(evaluated)))
            }
            Self::Verify { reference, candidate } => {
                let versions = [version(&reference.0)?, version(&candidate.0)?];
                let one = Named { version: &versions[0], name: &reference.1 };
                let other = Named { version: &versions[1], name: &candidate.1 };
                let verdict = judgement.verify(&one, &other, progress, cancel).await?;
                Ok(Answered::Verified(Box::new(verdict)))
            }
            Self::Mode { reference, candidate, train } => {
                let versions = [&version(reference)?, &version(candidate)?];
                let verdict = judgement.in_mode(versions, *train, progress, cancel).await?;
                Ok(Answered::Verified(Box::new(verdict)))
            }
        }
    }
}

fn version(path: &Path) -> Result<Version, JudgeError> {
    let text = crate::optimize::read(path)
        .map_err(|error| JudgeError::Unsuitable(format!("{} could not be read: {error}", path.display())))?;
    Ok(Version { path: path.to_owned(), text })
}

/// What [`Carry::ask`] returns.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<Answered, JudgeError>> + Send + 'a>>;

/// Whoever carries questions to another machine.
pub trait Carry: Send + Sync {
    /// Asks.
    fn ask<'a>(
        &'a self,
        question: Question,
        progress: &'a (dyn Fn(&str) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> Asking<'a>;
}

/// All that a candidate is judged by, on another machine.
#[derive(Clone)]
pub struct ElsewhereJudgement {
    /// Who carries questions there.
    pub carrier: Arc<dyn Carry>,
    /// The device there, as a verdict names it.
    pub device: String,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
    /// What of a Python file is judged, which the best candidate is put beside.
    pub denoted: Option<Denoted>,
}

impl fmt::Debug for ElsewhereJudgement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ElsewhereJudgement").field(&self.device).finish()
    }
}

impl ElsewhereJudgement {
    pub(super) async fn baseline(
        &self,
        reference: &Version,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Baseline, JudgeError> {
        let question = Question::Baseline { reference: reference.path.clone() };
        match self.carrier.ask(question, progress, cancel).await? {
            Answered::Baseline(baseline) => Ok(*baseline),
            _ => Err(other_answer()),
        }
    }

    pub(super) async fn profile(
        &self,
        reference: &Version,
        limit: Duration,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Profile, String> {
        let question = Question::Profile { reference: reference.path.clone(), limit };
        match self.carrier.ask(question, progress, cancel).await {
            Ok(Answered::Profiled(profile)) => Ok(*profile),
            Ok(_) => Err(other_answer().to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) async fn evaluate(
        &self,
        reference: &Version,
        candidate: &Version,
        to_beat: &ToBeat<'_>,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Evaluated, JudgeError> {
        let question = Question::Evaluate {
            reference: reference.path.clone(),
            candidate: candidate.path.clone(),
            best: to_beat.path.to_owned(),
            cost: Box::new(to_beat.cost.clone()),
            gain: to_beat.gain,
        };
        match self.carrier.ask(question, progress, cancel).await? {
            Answered::Evaluated(evaluated) => Ok(*evaluated),
            _ => Err(other_answer()),
        }
    }

    pub(super) async fn verify_named(
        &self,
        [reference, candidate]: [&Named<'_>; 2],
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, JudgeError> {
        let of = |named: &Named<'_>| (named.version.path.clone(), named.name.to_owned());
        let question = Question::Verify { reference: of(reference), candidate: of(candidate) };
        match self.carrier.ask(question, progress, cancel).await? {
            Answered::Verified(verdict) => Ok(*verdict),
            _ => Err(other_answer()),
        }
    }
}

impl ElsewhereJudgement {
    pub(super) async fn in_mode(
        &self,
        [reference, candidate]: [&Version; 2],
        train: bool,
        progress: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Verdict, JudgeError> {
        let (reference, candidate) = (reference.path.clone(), candidate.path.clone());
        match self.carrier.ask(Question::Mode { reference, candidate, train }, progress, cancel).await? {
            Answered::Verified(verdict) => Ok(*verdict),
            _ => Err(other_answer()),
        }
    }
}

fn other_answer() -> JudgeError {
    JudgeError::Unsuitable(
        "The worker answered another question. This is a bug; please report it.".to_owned(),
    )
}
