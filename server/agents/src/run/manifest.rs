//! What a run was asked for: enough to take it up again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stitch_findings::Span;
use stitch_session::config::Precision;
use stitch_verifier::harness::Answers;

/// What may be spent on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Candidates; 0 for a plan and no more.
    pub attempts: u32,
    /// Wall time in seconds, over all sittings.
    pub seconds: u64,
    /// Tokens of the model, both ways; `None` for as many as it takes.
    pub tokens: Option<u64>,
    /// Candidates for one task.
    pub attempts_of_task: u32,
    /// Plans after the first.
    pub replans: u32,
}

impl Budget {
    /// What the builtin engine gets: it never does better at the second try, nor plans better.
    pub const BUILTIN: Self =
        Self { attempts: 40, seconds: 1_800, tokens: None, attempts_of_task: 1, replans: 2 };
    /// The same with nothing for attempts: the target is measured, the plan is written, and that is the end.
    #[must_use]
    pub fn only_plan(self) -> Self {
        Self { attempts: 0, ..self }
    }

    /// Whether a plan is all that is asked for.
    pub fn is_only_plan(&self) -> bool {
        self.attempts == 0
    }

    /// What a model gets.
    pub const MODEL: Self =
        Self { attempts: 15, seconds: 3_600, tokens: Some(1_000_000), attempts_of_task: 3, replans: 3 };
}

/// What a run was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// `stitchcuda.run/1`.
    pub schema: String,
    /// Its name, which is that of its folder.
    pub id: String,
    /// When it was begun: `2026-11-29T20:16:50Z`.
    pub started: String,
    /// The target as it was named.
    pub target: String,
    /// The folder in which it was named, absolute.
    pub folder: PathBuf,
    /// The file of the target, absolute.
    pub file: PathBuf,
    /// The kernel of a target that has no `main`.
    pub kernel: Option<String>,
    /// Further sources of the program.
    pub with: Vec<PathBuf>,
    /// What the person selected, in bytes of the reference.
    pub selection: Option<Span>,
    /// The kernels and functions that may be changed; all of the file where it is empty.
    pub scope: Vec<String>,
    /// Where candidates run: `sim:h200`.
    pub device: String,
    /// `builtin` or `llm`.
    pub engine: String,
    /// The model, for the latter.
    pub model: Option<String>,
    /// How far a number may be off, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where it was said.
    pub precision: Option<Precision>,
    /// Arguments for the program.
    pub arguments: Vec<String>,
    /// What was said of a kernel.
    pub answers: Answers,
    /// Of PyTorch code: what it is called with, where that was said, each the text of an argument list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Of a module: what it is made with, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
    /// Of a module: whether it is verified in training mode or in evaluation mode, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<bool>,
    /// The interpreter, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PathBuf>,
    /// How long one run of the program, or one request to a process, may take, in seconds.
    pub time_limit_seconds: u64,
    /// What may be spent.
    pub budget: Budget,
}

impl Manifest {
    /// The schema of this version.
    pub const SCHEMA: &'static str = "stitchcuda.run/1";

    /// The name of the target's file.
    pub fn file_name(&self) -> String {
        self.file
            .file_name()
            .map_or_else(|| "target.cu".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// A name for the run that sorts by time and says what it is of: `20261129-201650-transpose`.
    pub(super) fn proposed_id(&self) -> String {
        let time: String = self.started.chars().filter(char::is_ascii_digit).take(14).collect();
        let (day, clock) = time.split_at_checked(8).unwrap_or((&time, ""));
        let of =
            self.kernel.as_deref().or_else(|| Path::new(&self.file).file_stem()?.to_str()).unwrap_or("run");
        let of: String =
            of.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        format!("{day}-{clock}-{of}")
    }

    /// Now, as it is written in [`Manifest::started`].
    pub fn now() -> String {
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
