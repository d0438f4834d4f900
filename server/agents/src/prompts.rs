//! Renders the prompts of `prompts/`, one template a file, with what a brief knows. A name that a template uses and is not given is an
//! error, so that no prompt is ever sent with a hole in it.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use stitch_analysis::Language;
use stitch_findings::Finding;
use stitch_profiles::brief as profile;

use crate::edit::{Lines, Scope, line_diff};
use crate::engine::{Brief, EngineError, Feedback, Tried};
use crate::{Plan, Task};

/// More findings than this are noise to a model.
const MOST_FINDINGS: usize = 20;
/// As many attempts as are told of, the latest.
const MOST_TRIED: usize = 12;
/// So many tasks a plan should have at most.
const MOST_TASKS: usize = 6;

/// Tokens that the profile of the reference may take of a planner's prompt, by the estimate of [`profile::tokens`]. Five kernels with their limits and
/// worst lines take about as many; it is a tenth of the least that models of today read at once (16,384), and less than the code itself.
const PROFILE_TOKENS: u64 = 1_500;
/// The same of a coder's, who has a task and needs the numbers behind it.
const CODER_PROFILE_TOKENS: u64 = 500;

/// The templates by name.
const TEMPLATES: [(&str, &str); 9] = [
    ("system.md", include_str!("../../../prompts/system.md")),
    ("target.md", include_str!("../../../prompts/target.md")),
    ("task.md", include_str!("../../../prompts/task.md")),
    ("edits.md", include_str!("../../../prompts/edits.md")),
    ("planner.md", include_str!("../../../prompts/planner.md")),
    ("replanner.md", include_str!("../../../prompts/replanner.md")),
    ("coder.md", include_str!("../../../prompts/coder.md")),
    ("coder-feedback.md", include_str!("../../../prompts/coder-feedback.md")),
    ("repair.md", include_str!("../../../prompts/repair.md")),
];

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// A first plan.
    Plan,
    /// A plan after one that led no further, and why.
    Replan(&'a Plan, &'a str),
    /// Code for a task.
    Code(&'a Task),
    /// Code for a task, after a candidate that was not kept.
    CodeAgain(&'a Task, &'a Feedback),
}

impl Request<'_> {
    /// Who is asked.
    pub fn role(self) -> &'static str {
        match self {
            Self::Plan => "planner",
            Self::Replan(..) => "replanner",
            Self::Code(_) | Self::CodeAgain(..) => "coder",
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Plan => "planner.md",
            Self::Replan(..) => "replanner.md",
            Self::Code(_) => "coder.md",
            Self::CodeAgain(..) => "coder-feedback.md",
        }
    }

    fn is_plan(self) -> bool {
        matches!(self, Self::Plan | Self::Replan(..))
    }
}

/// How much of a brief is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// All.
    Full,
    /// Without measurements and history, for a model that can't read as much.
    Short,
}

/// The prompts, ready to be rendered.
pub struct Prompts(Environment<'static>);

impl Prompts {
    /// Those that are built in.
    ///
    /// # Errors
    /// A template is malformed, which a test rules out.
    pub fn new() -> Result<Self, EngineError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // A line that holds only a tag leaves none behind.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| broken("", &error))?);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        for (name, text) in TEMPLATES {
            environment.add_template(name, text).map_err(|error| broken(name, &error))?;
        }
        Ok(Self(environment))
    }

    /// What the system says, and what the user asks.
    ///
    /// # Errors
    /// A template uses what it is not given, which a test rules out.
    pub fn render(
        &self,
        request: Request<'_>,
        brief: &Brief,
        length: Length,
    ) -> Result<(String, String), EngineError> {
        let shown = Shown::of(request, brief, length);
        Ok((self.text("system.md", &shown)?, self.text(request.template(), &shown)?))
    }

    /// What is asked after an answer with a problem.
    ///
    /// # Errors
    /// As [`Prompts::render`].
    pub fn repair(&self, request: Request<'_>, brief: &Brief, problem: &str) -> Result<String, EngineError> {
        let kind = if request.is_plan() { "plan" } else { "code" };
        self.text("repair.md", &Repair { problem, kind, file: &brief.file })
    }

    fn text(&self, name: &str, values: &impl Serialize) -> Result<String, EngineError> {
        let template = self.0.get_template(name).map_err(|error| broken(name, &error))?;
        let text = template.render(Serde(values)).map_err(|error| broken(name, &error))?;
        Ok(without_gaps(&text))
    }
}

fn broken(name: &str, error: &minijinja::Error) -> EngineError {
    EngineError::Answer(format!("The prompt {name} could not be written: {error:#}."))
}

/// The text with at most one empty line between two others outside of code, and none at its ends.
fn without_gaps(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks >= open && line.len() == ticks => fence = None,
            _ => {}
        }
        let is_gap = line.trim().is_empty() && lines.last().is_none_or(|last| last.trim().is_empty());
        if fence.is_some() || !is_gap {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

#[derive(Serialize)]
struct Repair<'a> {
    problem: &'a str,
    kind: &'a str,
    file: &'a str,
}

/// All that the templates may use.
#[derive(Serialize)]
struct Shown<'a> {
    target: &'a str,
    file: &'a str,
    language: &'static str,
    device: &'a str,
    tolerance: Option<f64>,
    precision: Option<&'a str>,
    scope: String,
    reference_differs: bool,
    code: &'a str,
    numbered: bool,
    numbered_code: String,
    fence: String,
    findings: Vec<ShownFinding>,
    findings_left_out: usize,
    recorded: String,
    profile: &'a str,
    tried: &'a [Tried],
    most_tasks: usize,
    plan: Option<ShownPlan<'a>>,
    reason: &'a str,
    task: Option<ShownTask<'a>>,
    feedback: Option<ShownFeedback<'a>>,
}

impl<'a> Shown<'a> {
    fn of(request: Request<'a>, brief: &'a Brief, length: Length) -> Self {
        let is_full = length == Length::Full;
        let most = if is_full { MOST_FINDINGS } else { MOST_FINDINGS / 4 };
        let (plan, reason) = match request {
            Request::Replan(plan, reason) => (Some(ShownPlan::of(plan)), reason),
            _ => (None, ""),
        };
        let (task, feedback) = match request {
            Request::Code(task) => (Some(ShownTask::of(task)), None),
            Request::CodeAgain(task, feedback) => {
                (Some(ShownTask::of(task)), Some(ShownFeedback::of(brief, feedback, is_full)))
            }
            _ => (None, None),
        };
        let latest = brief.tried.len().saturating_sub(MOST_TRIED);
        Self {
            target: &brief.target,
            file: &brief.file,
            language: match Language::of_path(std::path::Path::new(&brief.file)) {
                Some(Language::Python) => "python",
                _ => "cuda",
            },
            device: &brief.device,
            tolerance: brief.tolerance,
            precision: brief.precision.as_deref(),
            scope: Scope::of(brief).named().to_owned(),
            reference_differs: brief.reference != brief.current,
            code: brief.current.trim_end(),
            numbered: request.is_plan(),
            numbered_code: numbered(&brief.current),
            fence: fence_for(&brief.current),
            findings: shown_findings(&brief.current, &brief.findings, most),
            findings_left_out: brief.findings.len().saturating_sub(most),
            recorded: if is_full { recorded(request, brief) } else { String::new() },
            profile: if is_full { brief.profile.trim() } else { "" },
            tried: if is_full { &brief.tried[latest..] } else { &[] },
            most_tasks: MOST_TASKS,
            plan,
            reason,
            task,
            feedback,
        }
    }
}

/// The profile of the reference as it is told. A Coder gets it while the lines are still those that were profiled.
fn recorded(request: Request<'_>, brief: &Brief) -> String {
    let is_current = brief.reference == brief.current;
    let budget = match (request.is_plan(), is_current) {
        (true, _) => PROFILE_TOKENS,
        (false, true) => CODER_PROFILE_TOKENS,
        (false, false) => return String::new(),
    };
    brief.recorded.as_ref().map(|recorded| profile::brief(recorded, budget)).unwrap_or_default()
}

#[derive(Serialize)]
struct ShownFinding {
    line: usize,
    subject: Option<String>,
    code: String,
    message: String,
    advice: Option<String>,
    text: String,
}

fn shown_findings(text: &str, findings: &[Finding], most: usize) -> Vec<ShownFinding> {
    let lines = Lines::of(text);
    let shown = findings.iter().take(most).map(|finding| {
        let line = lines.number_at(finding.span.start);
        ShownFinding {
            line,
            subject: finding.subject.clone(),
            code: finding.code.to_string(),
            message: finding.message.trim().to_owned(),
            advice: finding.advice.clone(),
            text: lines.text(line - 1).trim().to_owned(),
        }
    });
    shown.collect()
}

#[derive(Serialize)]
struct ShownPlan<'a> {
    summary: &'a str,
    tasks: Vec<ShownTask<'a>>,
}

impl<'a> ShownPlan<'a> {
    fn of(plan: &'a Plan) -> Self {
        Self { summary: &plan.summary, tasks: plan.tasks.iter().map(ShownTask::of).collect() }
    }
}

#[derive(Serialize)]
struct ShownTask<'a> {
    title: &'a str,
    description: &'a str,
    scope: &'a [String],
    expected_gain: &'a str,
    test: &'a str,
}

impl<'a> ShownTask<'a> {
    fn of(task: &'a Task) -> Self {
        Self {
            title: &task.title,
            description: &task.description,
            scope: &task.scope,
            expected_gain: &task.expected_gain,
            test: &task.test,
        }
    }
}

#[derive(Serialize)]
struct ShownFeedback<'a> {
    outcome: &'a str,
    candidate: String,
    is_diff: bool,
    fence: String,
    findings: Vec<ShownFinding>,
    profile: &'a str,
}

impl<'a> ShownFeedback<'a> {
    fn of(brief: &'a Brief, feedback: &'a Feedback, is_full: bool) -> Self {
        /// Texts that have less in common are no versions of each other; 1 for the same.
        const LEAST_ALIKE: f32 = 0.3;
        let diff = line_diff(&brief.current, &feedback.candidate);
        let is_diff = diff.ratio() >= LEAST_ALIKE;
        let candidate = if is_diff {
            diff.unified_diff().context_radius(3).to_string().trim_end().to_owned()
        } else {
            feedback.candidate.trim_end().to_owned()
        };
        Self {
            outcome: feedback.outcome.trim(),
            fence: fence_for(&candidate),
            candidate,
            is_diff,
            findings: shown_findings(&feedback.candidate, &feedback.findings, MOST_FINDINGS),
            profile: if is_full { feedback.profile.trim() } else { "" },
        }
    }
}

/// The text with `12 | ` before each line.
fn numbered(text: &str) -> String {
    let lines = Lines::of(text.trim_end());
    let width = lines.len().to_string().len();
    let numbered = lines.texts().enumerate().map(|(index, line)| format!("{:>width$} | {line}", index + 1));
    numbered.collect::<Vec<_>>().join("\n")
}

/// A fence that is longer than any in the text.
fn fence_for(text: &str) -> String {
    let runs = text.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((runs + 1).max(3))
}

#[cfg(test)]
mod tests;
