//! The report as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a change.

use std::path::Path;

use serde_json::{Value, json};
use stitch_findings::{CODES, CodeInfo, Severity};
use stitch_verifier::compile::Lack;

use super::report::{FileReport, FindingReport, Range, Report};
use crate::status::Status;

/// The log of one run.
pub fn log(report: &Report) -> Value {
    let results: Vec<Value> = report
        .files
        .iter()
        .flat_map(|file| file.findings.iter().map(move |finding| result(file, finding)))
        .collect();
    let complete = matches!(report.status(), Status::Good | Status::Bad);
    let configuration: Vec<Value> =
        report.warnings.iter().map(|warning| notification("warning", warning, None)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stitchcuda",
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
    json!({
        "id": info.code,
        "shortDescription": { "text": info.title },
        "help": { "text": info.page, "markdown": info.page },
        "defaultConfiguration": { "level": level(info.severity), "enabled": info.on_by_default },
    })
}

fn result(file: &FileReport, finding: &FindingReport) -> Value {
    let text = match &finding.advice {
        Some(advice) => format!("{} {advice}", finding.message),
        None => finding.message.clone(),
    };
    let related: Vec<Value> = finding
        .related
        .iter()
        .map(|related| {
            let path = related.path.as_deref().unwrap_or(&file.path);
            json!({
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
