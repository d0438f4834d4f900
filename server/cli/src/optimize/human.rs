//! A run for a person.

use std::io::{self, Write};

use stitch_agents::run::{Attempt, Conclusion, Entry, Manifest, Record, Run, Why};
use stitch_verifier::declared;

/// That a run was begun, or taken up again.
pub(super) fn begun(run: &Run) -> String {
    let manifest = run.manifest();
    let again = if run.history().is_empty() { "" } else { ", taken up again" };
    format!("Run {}{again}\n{}", manifest.id, what(manifest))
}

fn what(manifest: &Manifest) -> String {
    let mut text = format!("{} on {} by the {} engine", manifest.target, manifest.device, manifest.engine);
    if let Some(model) = &manifest.model {
        text.push_str(&format!(" ({model})"));
    }
    if !manifest.scope.is_empty() {
        text.push_str(&format!("; may change {}", manifest.scope.join(", ")));
    }
    if let Some(tolerance) = manifest.tolerance {
        text.push_str(&format!("; tolerance {tolerance}"));
    }
    if let Some(precision) = manifest.precision {
        text.push_str(&format!("; at least {}", declared::name(precision)));
    }
    text
}

/// Something that happened.
pub(super) fn happened(entry: &Entry) -> String {
    match entry {
        Entry::Baseline { profile, recorded, .. } => {
            format!("\nThe reference\n{}", indented(&format!("{}\n{recorded}", profile.trim_end())))
        }
        Entry::Plan { plan, reason, .. } => {
            let again = reason.as_ref().map(|reason| format!(" again, since {reason}")).unwrap_or_default();
            let mut text = format!("\nThe plan{again}\n  {}", plan.summary);
            for (index, task) in plan.tasks.iter().enumerate() {
                text.push_str(&format!("\n  {}. {}", index + 1, task.title));
                if !task.expected_gain.is_empty() {
                    text.push_str(&format!("\n     expected: {}", task.expected_gain));
                }
            }
            if !plan.tasks.is_empty() {
                text.push('\n');
            }
            text
        }
        Entry::Attempt(attempt) => of_attempt(attempt),
        Entry::Conclusion(_) => String::new(),
    }
}

fn of_attempt(attempt: &Attempt) -> String {
    let mut text = format!("Attempt {}: {}\n  {}", attempt.number, attempt.title, attempt.said);
    if !attempt.explanation.is_empty() {
        text.push_str(&format!("\n  {}", attempt.explanation));
    }
    if let Some(verdict) = &attempt.verdict {
        text.push_str(&format!("\n  verdict: {}", verdict.summary()));
    }
    text
}

/// How a run ended.
///
/// # Errors
/// Writing to `out`.
pub(super) fn finished(
    run: &Run,
    conclusion: &Conclusion,
    patch: Option<&str>,
    out: &mut impl Write,
) -> io::Result<()> {
    end(&run.manifest().id, conclusion, patch, out)
}

fn end(id: &str, conclusion: &Conclusion, patch: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{}", conclusion.said)?;
    if let Some(patch) = patch {
        writeln!(out, "\n{}", patch.trim_end())?;
    }
    if conclusion.why == Why::Planned {
        return writeln!(out, "\nThe run is kept: `stitchcuda runs resume {id}` tries what is planned.");
    }
    writeln!(out, "\nAll of it: `stitchcuda runs show {id}`; the patch: `stitchcuda runs diff {id}`.")
}

/// Prints a run as its folder shows it.
///
/// # Errors
/// Writing to `out`.
pub fn print_record(record: &Record, patch: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "Run {}, begun {}\n{}",
        record.manifest.id,
        record.manifest.started,
        what(&record.manifest)
    )?;
    for entry in &record.history {
        let text = happened(entry);
        if !text.is_empty() {
            writeln!(out, "{text}")?;
        }
    }
    match record.conclusion() {
        Some(conclusion) => end(&record.manifest.id, conclusion, patch, out),
        None => writeln!(
            out,
            "\nNot at its end: `stitchcuda runs resume {}` goes on with it.",
            record.manifest.id
        ),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
