//! The CUDA strings of a Python file. Each is a source of its own, whose findings are mapped to the file.

use std::path::Path;
use std::sync::Arc;

use stitch_analysis::{Analysis, Language, Unit, UnitRole};
use stitch_findings::{Finding, Place, Span};
use tokio_util::sync::CancellationToken;

use super::alone::{self, Source};
use super::{CompileReport, CompileRequest, FileReport, Trouble, blocking, saved_text};

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
    for (index, unit) in units.iter().enumerate() {
        if let Some(found) = compile_unit(request, &path, &text, units, index, cancel).await? {
            report.merge(found);
            compiled += 1;
        } else if !unit.holes.is_empty() {
            report.notes.push(format!(
                "{} is put together when the program runs, so it was not compiled",
                title(unit)
            ));
        }
    }
    report.from_cache &= compiled > 0;
    Ok(report)
}

fn title(unit: &Unit) -> String {
    if unit.name.is_empty() { "a CUDA string".to_owned() } else { format!("the CUDA string `{}`", unit.name) }
}

/// Compiles one unit. `None` for one that has no device code, or whose text is not known.
async fn compile_unit(
    request: &CompileRequest,
    path: &Path,
    text: &Arc<str>,
    units: &[Unit],
    index: usize,
    cancel: &CancellationToken,
) -> Result<Option<CompileReport>, Trouble> {
    let unit = &units[index];
    if unit.role == UnitRole::CppSource || !unit.holes.is_empty() {
        return Ok(None);
    }
    let Some(source) = source(unit, units, index, &request.flags) else { return Ok(None) };
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
    let unknown_use = unit.role == UnitRole::Unknown;
    if unit.needs_torch || unit.role == UnitRole::CudaSource {
        let source = Source::without_torch(&unit.text, unit.analysis.outline(), flags)?;
        return Some(source.among(others, unknown_use));
    }
    Some(Source::whole(&unit.text, flags).among(others, unknown_use))
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
                measurement.note = measurement
                    .note
                    .as_ref()
                    .map(|note| launch_lines(note, &|line| line_in_file(line, text, unit)));
    report
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

                *span = mapped;
                true
            }
            None => false,
        },
        Place::File { path, .. } => !path.ends_with(alone::PROLOGUE),
    });
    Some(finding)
}
