//! The report as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a change.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use stitch_analysis::rewrites::{self, Rewrite};
use stitch_analysis::{Analysis, Language, Workspace};
use stitch_findings::{CODES, CodeInfo, Producer, ReadText, Severity};
use stitch_verifier::compile::Lack;

use super::report::{FileReport, FindingReport, Range, Report};
use crate::status::Status;

/// The log of one run.
pub fn log(report: &Report) -> Value {
    let results: Vec<Value> = report.files.iter().flat_map(results).collect();
    let complete = matches!(report.status(), Status::Good | Status::Bad);
    let configuration: Vec<Value> =
        report.warnings.iter().map(|warning| notification("warning", warning, None)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stitchcuda",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": CODES.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "invocations": [{
                "executionSuccessful": complete,
                "exitCode": report.exit_status,
                "toolExecutionNotifications": notifications(report),
                "toolConfigurationNotifications": configuration,
            }],
            "results": results,
        }],
    })
}

/// What was not done, the worst first, and what else a person should know.
fn notifications(report: &Report) -> Vec<Value> {
    let problems = report.problems.iter().map(|problem| {
        let text = format!("{}: {}", problem.path.display(), problem.message);
        notification("error", &text, Some(&problem.path))
    });
    let left_out = report.files.iter().flat_map(|file| {
        file.not_compiled.iter().map(|not| {
            let level = if not.lack == Lack::Nothing { "note" } else { "error" };
            let text = format!("{} was not compiled: {}.", file.path.display(), not.reason);
            notification(level, &text, Some(&file.path))
        })
    });
    let notes = report.notes.iter().map(|note| notification("note", note, None));
    problems.chain(left_out).chain(notes).collect()
}

fn notification(level: &str, text: &str, path: Option<&Path>) -> Value {
    let mut notification = json!({ "level": level, "message": { "text": text } });
    if let Some(path) = path {
        notification["locations"] =
            json!([{ "physicalLocation": { "artifactLocation": { "uri": uri(path) } } }]);
    }
    notification
}

fn rule(info: &CodeInfo) -> Value {
    let mut rule = json!({
        "id": info.code,
        "name": name(info.code.as_str()),
        "shortDescription": { "text": info.title },
        "fullDescription": { "text": first_paragraph(info.page) },
        "help": { "text": info.page, "markdown": info.page },
        "defaultConfiguration": { "level": level(info.severity), "enabled": info.on_by_default },
        "properties": { "tags": [kind(info), info.producer.as_str()] },
    });
    if let Some(link) = info.code.link() {
        rule["helpUri"] = link.into();
    }
    rule
}

/// `UncoalescedAccess` for `static/uncoalesced-access`: SARIF wants an identifier in Pascal case.
fn name(code: &str) -> String {
    let slug = code.rsplit('/').next().unwrap_or(code);
    slug.split('-').filter_map(|word| Some(word.get(..1)?.to_uppercase() + word.get(1..)?)).collect()
}

/// What a page says first, below its headings.
fn first_paragraph(page: &str) -> String {
    let lines = page.lines().skip_while(|line| line.is_empty() || line.starts_with('#'));
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What a finding of this code is about.
fn kind(info: &CodeInfo) -> &'static str {
    match (info.producer, info.severity) {
        (Producer::Ncu | Producer::Nsys | Producer::Ptxas, _) => "performance",
        (Producer::Static, Severity::Information) => "performance",
        _ => "correctness",
    }
}

/// The results of one file.
fn results(file: &FileReport) -> Vec<Value> {
    let mut same: HashMap<String, usize> = HashMap::new();
    let analysis = analysed(file);
    let result = |finding: &FindingReport| {
        let line = line(file, finding);
        let about = format!("{}\n{}\n{line}", finding.code, finding.subject.as_deref().unwrap_or_default());
        let count = same.entry(about.clone()).or_default();
        *count += 1;
        let mut result = result(file, finding);
        // The line's text and not its number, so that a result stays the same one while others lines come and go.
        result["partialFingerprints"] = json!({ "stitchcuda/v1": format!("{:016x}", format!("{about}\n{count}").as_str().content_hash()) });
        let fixes: Vec<Value> = analysis.iter().flat_map(|analysis| fixes(file, finding, analysis)).collect();
        if !fixes.is_empty() {
            result["fixes"] = fixes.into();
        }
        result
    };
    file.findings.iter().map(result).collect()
}

/// The text of the line at which a finding begins, without what stands around it.
fn line(file: &FileReport, finding: &FindingReport) -> String {
    let span = file.text.line_span(finding.range.start_line.saturating_sub(1) as usize);
    file.text.read(span).unwrap_or_default().trim().to_owned()
}

/// The analysis of a CUDA file of which a finding may have an answer.
fn analysed(file: &FileReport) -> Option<Analysis> {
    let is_cuda = file.path.extension().is_some_and(|extension| extension != "py");
    let has_answers = file.findings.iter().any(|finding| rewrites::answering(finding.code).next().is_some());
    (is_cuda && has_answers).then(|| Analysis::of(Language::Cuda, &file.text.to_source()))
}

/// The rewrites that answer a finding. Nobody has compiled or run them, which the description says.
fn fixes(file: &FileReport, finding: &FindingReport, analysis: &Analysis) -> Vec<Value> {
    let fix = |rewrite: Rewrite| {
        let replacement = |edit: &rewrites::Edit| {
            json!({
                "deletedRegion": region(Range::of(edit.span, &file.text)),
                "insertedContent": { "text": edit.text },
            })
        };
        json!({
            "description": { "text": format!("{} (not verified)", rewrite.title) },
            "artifactChanges": [{
                "artifactLocation": { "uri": uri(&file.path) },
                "replacements": rewrite.edits.iter().map(replacement).collect::<Vec<_>>(),
            }],
        })
    };
    let found = rewrites::answers(finding.code, finding.range.bytes, analysis, &Workspace::default());
    found.into_iter().map(fix).collect()
}

fn result(file: &FileReport, finding: &FindingReport) -> Value {
    let text = match &finding.advice {
        Some(advice) => format!("{} {advice}", finding.message),
        None => finding.message.clone(),
    };
    let related: Vec<Value> = finding
        .related
        .iter()
        .enumerate()
        .map(|(at, related)| {
            let path = related.path.as_deref().unwrap_or(&file.path);
            json!({
                "id": at + 1,
                "message": { "text": related.message },
                "physicalLocation": {
                    "artifactLocation": { "uri": uri(path) },
                    "region": { "startLine": related.line, "startColumn": related.column },
                },
            })
        })
        .collect();
    json!({
        "ruleId": finding.code,
        "ruleIndex": CODES.iter().position(|info| info.code == finding.code),
        "level": level(finding.severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&file.path) },
            "region": region(finding.range),
        }}],
        "relatedLocations": related,
    })
}

fn region(range: Range) -> Value {
    json!({
        "startLine": range.start_line,
        "startColumn": range.start_column,
        "endLine": range.end_line,
        "endColumn": range.end_column,
        "byteOffset": range.bytes.start,
        "byteLength": range.bytes.len(),
    })
}

/// SARIF knows no level below `note`.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information | Severity::Hint => "note",
    }
}

/// A path as a relative or `file:` URI reference, with everything encoded that is not allowed in one.
fn uri(path: &Path) -> String {
    let text = bytes(path);
    let mut uri = String::with_capacity(text.len());
    if path.is_absolute() {
        uri.push_str(if text.starts_with(b"/") { "file://" } else { "file:///" });
    }
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                uri.push(byte as char)
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    // A colon in the first segment of a relative reference would read as a scheme.
    if !path.is_absolute() && uri.split('/').next().is_some_and(|segment| segment.contains(':')) {
        uri.insert_str(0, "./");
    }
    uri
}

/// The bytes of a path, with slashes; on Unix also those that are no UTF-8.
fn bytes(path: &Path) -> Vec<u8> {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec();
    #[cfg(not(unix))]
    path.to_string_lossy().replace('\\', "/").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names_and_say_what_they_are() {
        assert_eq!(name("static/uncoalesced-access"), "UncoalescedAccess");
        for info in CODES {
            let rule = rule(info);
            assert!(!rule["fullDescription"]["text"].as_str().unwrap().is_empty(), "{rule}");
            assert!(["performance", "correctness"].contains(&kind(info)), "{rule}");
        }
    }

    #[test]
    fn paths_become_references_that_viewers_resolve() {
        let of = |path: &str| uri(std::path::Path::new(path));
        assert_eq!(of("src/my kernel+1.cu"), "src/my%20kernel%2B1.cu");
        assert_eq!(of("/tmp/é.cu"), "file:///tmp/%C3%A9.cu");
        assert_eq!(of("a:b.cu"), "./a:b.cu");
        #[cfg(unix)]
        {
            let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff\n.cu");
            assert_eq!(uri(Path::new(name)), "a%FF%0A.cu");
        }
    }
}
