//! What an engine is shown, gathered from a run.

use std::path::Path;
use std::sync::Arc;

use stitch_analysis::{Analysis, Language};
use stitch_findings::{Finding, Span};
use stitch_verifier::declared;

use crate::engine::{Brief, Feedback};
use crate::run::{self, Attempt, Entry, Run, RunError};

/// What is known of the run's current text.
///
/// # Errors
/// A text of the run can't be read.
pub fn brief(run: &Run, device: &str) -> Result<Brief, RunError> {
    let manifest = run.manifest();
    let current = run.current()?;
    let findings = findings(&current, &manifest.scope);
    let spent: u64 = run.history().iter().map(Entry::tokens).sum();
    Ok(Brief {
        target: manifest.target.clone(),
        file: manifest.file_name(),
        reference: run.reference().to_owned(),
        current,
        selection: manifest.selection,
        scope: manifest.scope.clone(),
        device: device.to_owned(),
        tolerance: manifest.tolerance,
        precision: manifest.precision.map(|precision| declared::name(precision).to_owned()),
        findings,
        profile: profile(run.history()),
        recorded: run.profile().map(Arc::new),
        tried: run::tried(run.history()),
        tokens_left: manifest.budget.tokens.map(|budget| budget.saturating_sub(spent)),
    })
}

/// What the Coder is told of a task's last candidate; `None` for a task that has none.
///
/// # Errors
/// The candidate can't be read.
pub fn feedback(run: &Run, plan: usize, task: usize) -> Result<Option<Feedback>, RunError> {
    let of_task = |attempt: &&Attempt| (attempt.plan, attempt.task) == (plan, task);
    let Some(last) = run::attempts(run.history()).filter(of_task).last() else { return Ok(None) };
    let verdict = last.verdict.iter().flat_map(|verdict| verdict.findings.clone());
    Ok(Some(Feedback {
        candidate: run.candidate(last.number)?,
        outcome: last.said.clone(),
        findings: verdict.chain(last.findings.clone()).collect(),
        profile: last.profile.clone(),
    }))
}

/// What the static rules find in the functions of the scope; in all of the text where that is empty.
fn findings(text: &str, scope: &[String]) -> Vec<Finding> {
    let analysis = Analysis::of(Language::Cuda, text);
    let spans: Vec<Span> = analysis
        .outline()
        .functions
        .iter()
        .filter(|function| scope.contains(&function.qualified_name) || scope.contains(&function.name))
        .map(|function| function.span)
        .collect();
    let inside = |finding: &&Finding| {
        scope.is_empty()
            || spans.iter().any(|span| span.start <= finding.span.start && finding.span.start < span.end)
    };
    analysis.findings().iter().filter(inside).cloned().collect()
}

/// The table of what costs least so far.
fn profile(history: &[Entry]) -> String {
    let of_best = run::best(history).map(|best| best.profile.clone());
    of_best.unwrap_or_else(|| {
        history
            .iter()
            .find_map(|entry| match entry {
                Entry::Baseline { profile, .. } => Some(profile.clone()),
                _ => None,
            })
            .unwrap_or_default()
    })
}

/// The text of a file as it is read everywhere else.
///
/// # Errors
/// It can't be read, or is UTF-16.
pub fn read(path: &Path) -> Result<String, std::io::Error> {
    let bytes = std::fs::read(path)?;
    let decoded = stitch_analysis::decode(&bytes)
        .ok_or_else(|| std::io::Error::other("it is UTF-16; save it as UTF-8"))?;
    Ok(decoded.text.to_string())
}
