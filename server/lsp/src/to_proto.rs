//! Our own terms turned into those of the protocol.

use serde::Serialize;
use stitch_analysis::{Encoding, Text};
use stitch_findings::{AnchorState, Anchored, Finding, Place, ReadText, Severity, Span};
use tower_lsp::ls_types::{self, DiagnosticSeverity, Position, Range};

use crate::capabilities::ClientFeatures;
use crate::{plain, uri};

/// The name under which our diagnostics appear. Another server on the same file has another, and each leaves the other's alone.
pub const SOURCE: &str = "stitchcuda";

/// A diagnostic. Of our own, since the library's can't hold every URI that a client may spell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Where.
    pub range: Range,
    /// How severe.
    pub severity: DiagnosticSeverity,
    /// The finding's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Where its subject is documented, for clients that show a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_description: Option<CodeDescription>,
    /// Always [`SOURCE`].
    pub source: &'static str,
    /// What was found, and what to do.
    pub message: String,
    /// Other places, for clients that show them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_information: Vec<Related>,
    /// What a later request about it needs, for clients that keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

/// A link about a code.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodeDescription {
    href: &'static str,
}

/// A place that explains a diagnostic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Related {
    location: Location,
    message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Location {
    uri: String,
    range: Range,
}

/// What comes back with a diagnostic in a request for code actions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Data {
    code: &'static str,
    /// Of the text that the finding covers.
    hash: String,
}

/// `textDocument/publishDiagnostics`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Publish {
    /// As the client spells it.
    pub uri: String,
    /// The version that the places are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    /// All there are.
    pub diagnostics: Vec<Diagnostic>,
}

/// The document that places are turned into positions of.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its spelling.
    pub uri: &'a str,
    /// Its text.
    pub text: &'a Text,
    /// What columns count.
    pub encoding: Encoding,
}

/// A position in a text.
pub fn position(byte: usize, text: &Text, encoding: Encoding) -> Position {
    let position = text.position(byte, encoding);
    Position { line: position.line, character: position.character }
}

/// A range of a text. Every place is clamped to its line and to the text.
pub fn range(span: Span, text: &Text, encoding: Encoding) -> Range {
    Range { start: position(span.start, text, encoding), end: position(span.end, text, encoding) }
}

/// A finding where it is now. One whose function changed since is a hint, and says so.
pub fn diagnostic(
    anchored: &Anchored<'_, Finding>,
    severity: Severity,
    target: Target<'_>,
    client: &ClientFeatures,
) -> Diagnostic {
    let finding = anchored.item;
    let mut message = finding.message.clone();
    if let Some(advice) = &finding.advice {
        message = format!("{message}\n{advice}");
    }
    let is_stale = anchored.state == AnchorState::Stale;
    if is_stale {
        message.push_str("\n(Found before your last edit.)");
    }
    let related_information = match client.related_information {
        true => finding
            .related
            .iter()
            .filter_map(|related| place(&related.place, &related.message, anchored, target))
            .collect(),
        false => Vec::new(),
    };
    let hash = |text: &str| format!("{:016x}", text.content_hash());
    Diagnostic {
        range: range(anchored.span, target.text, target.encoding),
        severity: if is_stale { DiagnosticSeverity::HINT } else { severity_of(severity) },
        code: Some(finding.code.as_str()),
        code_description: finding
            .code
            .link()
            .filter(|_| client.code_description)
            .map(|href| CodeDescription { href }),
        source: SOURCE,
        message,
        related_information,
        data: client.diagnostic_data.then(|| Data {
            code: finding.code.as_str(),
            hash: hash(&target.text.read(anchored.span).unwrap_or_default()),
        }),
    }
}

/// What stands for findings at `places` that are not sent; `None` for none.
pub fn more(places: &[Span], target: Target<'_>) -> Option<Diagnostic> {
    let first = places.first()?;
    let message = format!(
        "{} more findings are not shown, from here on. Turn a code off with `stitchcuda.diagnostics.severity`, or read all of them with `stitchcuda check`.",
        places.len()
    );
    Some(Diagnostic {
        range: range(*first, target.text, target.encoding),
        severity: DiagnosticSeverity::INFORMATION,
        code: None,
        code_description: None,
        source: SOURCE,
        message,
        related_information: Vec::new(),
        data: None,
    })
}

/// A related place. In the same text it moves with the finding: both are in one function, or nearly.
fn place(
    place: &Place,
    message: &str,
    anchored: &Anchored<'_, Finding>,
    target: Target<'_>,
) -> Option<Related> {
    let (uri, range) = match place {
        Place::Here(span) => {
            let moved = |at: usize| (at + anchored.span.start).checked_sub(anchored.item.span.start);
            (
                target.uri.to_owned(),
                range(Span::new(moved(span.start)?, moved(span.end)?), target.text, target.encoding),
            )
        }
        Place::File { path, line, column, .. } => {
            let position = Position { line: *line, character: *column };
            (uri::from_path(path), Range { start: position, end: position })
        }
    };
    Some(Related { location: Location { uri, range }, message: message.to_owned() })
}

fn severity_of(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Information => DiagnosticSeverity::INFORMATION,
        Severity::Hint => DiagnosticSeverity::HINT,
    }
}

/// Markdown, or the same as plain text for clients that show it as it is.
pub fn markup(markdown: String, client: &ClientFeatures) -> ls_types::MarkupContent {
    match client.markdown {
        true => ls_types::MarkupContent { kind: ls_types::MarkupKind::Markdown, value: markdown },
        false => {
            ls_types::MarkupContent { kind: ls_types::MarkupKind::PlainText, value: plain::text(&markdown) }
        }
    }
}
