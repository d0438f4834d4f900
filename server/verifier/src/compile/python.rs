//! The CUDA strings of a Python file. Each is a source of its own, whose findings are mapped to the file.

use std::path::Path;
use std::sync::Arc;

use stitch_analysis::{Analysis, Language, Unit, UnitRole};
use stitch_findings::{Finding, Place, Span};
use tokio_util::sync::CancellationToken;

use super::alone::{self, Source};
use super::{CompileReport, CompileRequest, FileReport, NotCompiled, Trouble, blocking, plan, saved_text};

/// Options of torch and cupy that nvcc takes as they are. Others are about the host compiler or the link.
const OPTIONS: [&str; 9] = [
    "-D",
    "-U",
    "-std=",
    "--std=",
    "--use_fast_math",
    "-use_fast_math",
    "--expt-",
    "-maxrregcount",
    "--maxrregcount",
];

/// Compiles the strings of a Python file one after the other, for each may take a whole core.
pub(super) async fn compile(
    request: &CompileRequest,
    cancel: &CancellationToken,
) -> Result<CompileReport, Trouble> {
    let path = crate::paths::canonical(&request.path);
    let text = saved_text(&path).await?;
    let source = text.clone();
    let analysis = blocking(move || Analysis::of(Language::Python, &source)).await?;
    let file =
        FileReport { path: path.clone(), text: text.clone(), findings: Vec::new(), measurements: Vec::new() };
    let mut report = CompileReport { files: vec![file], from_cache: true, ..CompileReport::default() };
    let mut compiled = 0;
    if *text != *request.text {
        report.notes.push(format!(
            "{} has changes that are not saved; it was compiled as it is saved",
            path.display()
        ));
    }
    let units = analysis.units();
    let mut first_trouble = None;
    for (index, unit) in units.iter().enumerate() {
        match compile_unit(request, &path, &text, units, index, cancel).await {
            Ok(Some(found)) => {
                report.merge(found);
                compiled += 1;
            }
            Ok(None) if unit.holes.is_empty() || !is_compiled(unit) => {}
            Ok(None) => report.leave_out(NotCompiled::by_nature(format!(
                "{} is put together when the program runs",
                title(unit)
            ))),
            Err(Trouble::Cancelled) => return Err(Trouble::Cancelled),
            // One text's trouble says nothing of the others.
            Err(trouble) => {
                let reason = format!("{}: {trouble}", title(unit));
                report.leave_out(NotCompiled { reason, lack: trouble.lack() });
                first_trouble.get_or_insert(trouble);
            }
        }
    }
    for source in analysis.unknown_sources() {
        let line = crate::locate::Lines::new(&text).line_of(source.span.start).0 + 1;
        report.leave_out(NotCompiled::by_nature(format!(
            "the source at line {line} is not known from this file ({})",
            source.reason
        )));
    }
    report.from_cache &= compiled > 0;
    match first_trouble.filter(|_| compiled == 0) {
        Some(trouble) => Err(trouble),
        None => Ok(report),
    }
}

fn title(unit: &Unit) -> String {
    if unit.name.is_empty() { "a CUDA string".to_owned() } else { format!("the CUDA string `{}`", unit.name) }
}

/// Whether a program gives a text to a compiler of CUDA, as far as data flow tells. Documentation and error messages show kernels
/// too.
pub fn is_compiled(unit: &Unit) -> bool {
    !matches!(unit.role, UnitRole::CppSource | UnitRole::Unknown)
}

/// Whether a Python file gives a compiler of CUDA anything, be it known from the file or not.
pub fn gives_source(analysis: &Analysis) -> bool {
    analysis.units().iter().any(is_compiled) || !analysis.unknown_sources().is_empty()
}

/// Compiles one unit. `None` for one that has no device code, whose text is not known, or that is given to no compiler.
async fn compile_unit(
    request: &CompileRequest,
    path: &Path,
    text: &Arc<str>,
    units: &[Unit],
    index: usize,
    cancel: &CancellationToken,
) -> Result<Option<CompileReport>, Trouble> {
    let unit = &units[index];
    if !is_compiled(unit) || !unit.holes.is_empty() {
        return Ok(None);
    }
    let Some(source) = source(unit, units, index, &plan::configured_flags(request)) else { return Ok(None) };
    let alone = alone::compile(request, path, source, cancel).await?;
    Ok(Some(to_file(alone.report, &alone.file, path, text, unit)))
}

/// A unit as it is given to nvcc. `None` for one without device code.
fn source(unit: &Unit, units: &[Unit], index: usize, configured: &[String]) -> Option<Source> {
    let options = unit.options.iter().filter(|option| OPTIONS.iter().any(|known| option.starts_with(known)));
    let flags: Vec<String> = options.chain(configured).cloned().collect();
    let others =
        units.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, other)| other.text.as_ref());
    let others = others.collect::<Vec<_>>().join("\n");
    if unit.needs_torch || unit.role == UnitRole::CudaSource {
        let source = Source::without_torch(&unit.text, unit.analysis.outline(), flags)?;
        return Some(source.among(others));
    }
    Some(Source::whole(&unit.text, flags).among(others))
}

/// The report on a unit, as one on the Python file. What is said of other files, which the unit includes, stays.
fn to_file(
    mut report: CompileReport,
    source: &Path,
    path: &Path,
    text: &Arc<str>,
    unit: &Unit,
) -> CompileReport {
    for file in report.files.iter_mut().filter(|file| file.path == source) {
        file.path = path.to_owned();
        file.text = text.clone();
        file.findings = std::mem::take(&mut file.findings)
            .into_iter()
            .filter_map(|finding| finding_to_file(finding, unit))
            .collect();
        file.measurements.retain_mut(|measurement| match unit.span_to_file(measurement.span) {
            Some(span) => {
                measurement.span = span;
                measurement.note = measurement
                    .note
                    .as_ref()
                    .map(|note| launch_lines(note, &|line| line_in_file(line, text, unit)));
                true
            }
            None => false,
        });
    }
    for kernel in &mut report.kernels {
        kernel.place = kernel.place.take().and_then(|(file, span)| {
            if file == source {
                unit.span_to_file(span).map(|span| (path.to_owned(), span))
            } else {
                Some((file, span))
            }
        });
        let lines = |from: &str| launch_lines(from, &|line| line_in_file(line, text, unit));
        kernel.block_from = lines(&kernel.block_from);
        for one in &mut kernel.configurations {
            one.from = lines(&one.from);
        }
    }
    report
}

/// A text with the number behind each `launch at line ` changed.
fn launch_lines(text: &str, change: &dyn Fn(usize) -> usize) -> String {
    const BEFORE: &str = "launch at line ";
    let mut parts = text.split(BEFORE);
    let mut changed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        changed.push_str(BEFORE);
        match part[..digits].parse() {
            Ok(line) => changed.push_str(&change(line).to_string()),
            Err(_) => changed.push_str(&part[..digits]),
        }
        changed.push_str(&part[digits..]);
    }
    changed
}

/// The file's line, from one, for a line of the unit.
fn line_in_file(line: usize, text: &str, unit: &Unit) -> usize {
    let start =
        crate::locate::Lines::new(&unit.text).span(line.saturating_sub(1)).map_or(0, |span| span.start);
    crate::locate::Lines::new(text).line_of(unit.to_file(start).min(text.len())).0 + 1
}

fn finding_to_file(mut finding: Finding, unit: &Unit) -> Option<Finding> {
    // Nothing behind the unit's own text is the user's.
    if finding.span.start > unit.text.len() {
        return None;
    }
    finding.span = unit.span_to_file(finding.span)?;
    finding.related.retain_mut(|related| match &mut related.place {
        Place::Here(span) => match Some(*span)
            .filter(|span: &Span| span.start <= unit.text.len())
            .and_then(|span| unit.span_to_file(span))
        {
            Some(mapped) => {
                *span = mapped;
                true
            }
            None => false,
        },
        Place::File { path, .. } => !path.ends_with(alone::PROLOGUE),
    });
    Some(finding)
}
