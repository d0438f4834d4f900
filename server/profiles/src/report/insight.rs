//! What limits something, with what could be gained.

use serde::Serialize;

use super::words::{self, Span};
use crate::units;
use crate::{kernel, system};

/// One insight.
#[derive(Debug, Serialize)]
pub(super) struct InsightView {
    code: &'static str,
    severity: &'static str,
    place: Option<String>,
    text: Vec<Span>,
    advice: Vec<Span>,
    gain: Option<GainView>,
    also: Vec<String>,
    source: String,
    link: Option<String>,
}

/// What could be gained.
#[derive(Debug, Serialize)]
struct GainView {
    share: String,
    width: String,
    formula: String,
    at_most: bool,
}

fn severity(severity: stitch_findings::Severity) -> &'static str {
    match severity {
        stitch_findings::Severity::Error => "error",
        stitch_findings::Severity::Warning => "warning",
        stitch_findings::Severity::Information => "information",
        stitch_findings::Severity::Hint => "hint",
    }
}

/// A link that can be followed: rules have nothing else, a profile read from a file may.
fn link(link: &str) -> Option<String> {
    link.starts_with("https://").then(|| link.to_owned())
}

impl InsightView {
    /// About a launch.
    pub(super) fn of_kernel(insight: &kernel::Insight) -> Self {
        let also =
            |related: &kernel::RelatedLine| format!("{} {}", words::place(&related.place), related.what);
        Self {
            code: insight.code.as_str(),
            severity: severity(insight.severity),
            place: insight.place.as_ref().map(words::place),
            text: words::spans(&insight.limits),
            advice: words::spans(&insight.advice),
            gain: insight.gain.as_ref().map(|gain| gain_view(gain.share, &gain.formula, false)),
            also: insight.related.iter().map(also).collect(),
            source: insight.source.clone(),
            link: link(&insight.link),
        }
    }

    /// About the program.
    pub(super) fn of_program(insight: &system::Insight) -> Self {
        let place = |line: &system::SourceLine| format!("{}:{}", line.file, line.line);
        let also = |line: &system::SourceLine| format!("{} {}", place(line), line.what);
        Self {
            code: insight.code.as_str(),
            severity: severity(insight.severity),
            place: insight.lines.first().map(place),
            text: words::spans(&insight.limits),
            advice: words::spans(&insight.advice),
            gain: Some(gain_view(insight.gain.share, &insight.gain.formula, true)),
            also: insight.lines.iter().map(also).collect(),
            source: insight.source.clone(),
            link: link(&insight.link),
        }
    }
}

fn gain_view(share: f64, formula: &str, at_most: bool) -> GainView {
    GainView {
        share: units::percent(share),
        width: words::width(share),
        formula: formula.to_owned(),
        at_most,
    }
}
