//! The report for a person: each finding with its lines, then what each kernel costs, then the sum.

use std::borrow::Cow;
use std::io::{self, Write};

use annotate_snippets::{Annotation, AnnotationKind, Level, Origin, Renderer, Snippet};
use stitch_analysis::Text;
use stitch_findings::{ReadText, Severity, Span};
use stitch_verifier::compile::Lack;

use super::report::{FileReport, FindingReport, Report, Summary};
use super::table;

/// Files that are named with the same reason.
const MOST_NAMED: usize = 8;
/// Lines shown before and after the finding's own.
const CONTEXT: u32 = 1;
/// Lines longer than this are not quoted: no person wrote them, and looking through them for each finding takes minutes.
const MOST_BYTES: usize = 4096;

/// Prints `report`.
///
/// # Errors
/// Writing to `out`.
pub fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    // Colours are taken out again by the stream where they do not belong (no terminal, NO_COLOR).
    let renderer = Renderer::styled();
    for file in &report.files {
        let path = file.path.display().to_string();
        for finding in &file.findings {
            print_finding(&renderer, &path, &file.text, finding, out)?;
        }
    }
    for file in report.files.iter().filter(|file| !file.kernels.is_empty()) {
        table::print(file, out)?;
    }
    not_compiled(report, out)?;
    writeln!(out, "{}", conclusion(report))
}

fn print_finding(
    renderer: &Renderer,
    path: &str,
    text: &Text,
    finding: &FindingReport,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = level(finding.severity).primary_title(&finding.message).id(finding.code.as_str());
    let window = window(finding, text);
    let source = if window.len() > MOST_BYTES { None } else { text.read(window) };
    let mut group = match source {
        Some(source) => title.element(excerpt(path, source, window, finding)),
        None => title.element(origin(path, finding.range.start_line, finding.range.start_column)),
    };
    for related in &finding.related {
        let place = related.path.as_ref().map_or(path.to_owned(), |path| path.display().to_string());
        group = group.element(Level::NOTE.message(&related.message)).element(origin(
            place,
            related.line,
            related.column,
        ));
    }
    if let Some(advice) = &finding.advice {
        group = group.element(Level::HELP.message(advice));
    }
    writeln!(out, "{}\n", renderer.render(&[group]))
}

/// The lines of a finding, with its span marked.
fn excerpt<'a>(
    path: &'a str,
    source: Cow<'a, str>,
    window: Span,
    finding: &FindingReport,
) -> Snippet<'a, Annotation<'a>> {
    let span = finding.range.bytes;
    let label = finding.subject.as_ref().map(|name| format!("in `{name}`"));
    let first_line = finding.range.start_line.saturating_sub(CONTEXT).max(1) as usize;
    let marked =
        AnnotationKind::Primary.span(span.start - window.start..span.end - window.start).label(label);
    Snippet::source(source).line_start(first_line).path(path).annotation(marked)
}

fn origin<'a>(path: impl Into<Cow<'a, str>>, line: u32, column: u32) -> Origin<'a> {
    Origin::path(path.into()).line(line as usize).char_column(column as usize)
}

/// The bytes of the lines to quote.
fn window(finding: &FindingReport, text: &Text) -> Span {
    let line = |number: u32| text.line_span(number as usize);
    let first = (finding.range.start_line - 1).saturating_sub(CONTEXT);
    let last = (finding.range.end_line - 1).saturating_add(CONTEXT);
    Span::new(line(first).start, line(last).end)
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Information => Level::INFO,
        Severity::Hint => Level::NOTE.with_name("hint"),
    }
}

/// What was not compiled, each reason once with its files.
fn not_compiled(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for file in &report.files {
        let path = file.path.display().to_string();
        for not in &file.not_compiled {
            match reasons.iter_mut().find(|(reason, _)| *reason == not.reason) {
                Some((_, files)) => files.push(path.clone()),
                None => reasons.push((&not.reason, vec![path.clone()])),
            }
        }
    }
    for (reason, files) in &reasons {
        let named = files.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = files.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(out, "not compiled: {named}{more}: {reason}.")?;
    }
    if reasons.is_empty() { Ok(()) } else { writeln!(out) }
}

/// The last line: how much was found in how many files.
fn conclusion(report: &Report) -> String {
    let files = count(report.files.len(), "file", "files");
    let Summary { errors, warnings, information, hints } = report.summary;
    let parts: Vec<String> = [
        (errors, "error", "errors"),
        (warnings, "warning", "warnings"),
        (information, "remark", "remarks"),
        (hints, "hint", "hints"),
    ]
    .into_iter()
    .filter(|(number, _, _)| *number > 0)
    .map(|(number, one, many)| count(number, one, many))
    .collect();
    let lacking = |file: &&FileReport| file.not_compiled.iter().any(|not| not.lack != Lack::Nothing);
    let files = match report.files.iter().filter(lacking).count() {
        0 => format!("{files} checked"),
        not => format!("{files} checked, {not} not wholly compiled"),
    };
    if parts.is_empty() {
        let nothing = if files.ends_with("compiled") { "nothing else" } else { "nothing" };
        format!("{files}: {nothing} found.")
    } else {
        format!("{files}: {}. `stitchcuda explain CODE` says more about a code.", parts.join(", "))
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
