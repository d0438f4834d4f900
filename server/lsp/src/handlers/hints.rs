//! Inlay hints: what a kernel needs and what a line takes, at the end of the line. One hint a line, and only what still holds, unless asked for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stitch_findings::{AnchorState, Measurement, Quantity, Span};
use stitch_profiles::units;
use stitch_session::config::StaleHints;
use tower_lsp::ls_types::{InlayHint, InlayHintLabel, InlayHintTooltip, Range};

use crate::capabilities::ClientFeatures;
use crate::handlers::hover;
use crate::resources::Resources;
use crate::view::{Placed, View};
use crate::{from_proto, to_proto};

/// The hints in a range. The tooltip comes with them unless the client asks for it later.
pub fn hints(view: &View, range: Range, stale: StaleHints, client: &ClientFeatures) -> Vec<InlayHint> {
    let wanted = from_proto::request_span(range, &view.document.text, view.encoding);
    let mut lines: BTreeMap<u32, Vec<Resources>> = BTreeMap::new();
    for kernel in Resources::of(view) {
        if kernel.state == AnchorState::Stale && stale == StaleHints::Hide {
            continue;
        }
        lines.entry(view.range_here(kernel.span).start.line).or_default().push(kernel);
    }
    let mut labels: BTreeMap<u32, (String, Span)> =
        lines.into_iter().map(|(line, kernels)| (line, (label(&kernels), kernels[0].span))).collect();
    for measured in view.measurements.iter().filter(|found| found.item.quantity.is_of_a_line()) {
        let is_shown = measured.state != AnchorState::Stale || stale != StaleHints::Hide;
        if let Some(label) = taken(measured).filter(|_| is_shown) {
            let line = view.range_here(measured.span).start.line;
            labels.entry(line).or_insert((label, measured.span));
        }
    }
    let mut hints = Vec::new();
    for (line, (label, span)) in labels {
        let end = view.document.text.line_span(line as usize).end;
        // A range that ends in the middle of the line still shows the line.
        if label.is_empty() || !touches(wanted, view.document.text.line_span(line as usize)) {
            continue;
        }
        let hint = InlayHint {
            position: to_proto::position(end, &view.document.text, view.encoding),
            label: InlayHintLabel::String(label),
            kind: None,
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: Some(data(view, span)),
        };
        hints.push(if client.inlay_hint_tooltip { hint } else { resolve(view, hint, client) });
    }
    hints
}

/// Adds the tooltip. A hint of another version stays as it is: its kernel may be elsewhere.
pub fn resolve(view: &View, mut hint: InlayHint, client: &ClientFeatures) -> InlayHint {
    let field = |name: &str| hint.data.as_ref().and_then(|data| data.get(name)).and_then(Value::as_u64);
    if field("revision") != Some(view.document.revision) {
        return hint;
    }
    let offset = field("offset").and_then(|offset| usize::try_from(offset).ok());
    if let Some((name, _)) = offset.and_then(|offset| view.kernel_name_at(offset)) {
        hint.tooltip =
            Some(InlayHintTooltip::MarkupContent(to_proto::markup(hover::about_kernel(view, name), client)));
    }
    hint
}

fn data(view: &View, span: Span) -> Value {
    json!({"uri": &*view.document.uri, "revision": view.document.revision, "offset": span.start})
}

fn touches(wanted: Span, line: Span) -> bool {
    wanted.start <= line.end && line.start <= wanted.end
}

/// A line's part of a kernel's samples below which nothing is said. Source: ours; a hint on every line is one on none.
const LEAST_SHARE: f64 = 0.02;

/// What a line takes: `3.20 ms · 41% · 3 kernels`, `18% of the samples`.
fn taken(measured: &Placed<Measurement>) -> Option<String> {
    let Measurement { quantity, value, note, .. } = &measured.item;
    let label = match quantity {
        Quantity::GpuTime => {
            let note = note.as_ref().map(|note| format!(" · {note}")).unwrap_or_default();
            format!("{}{note}", units::time((value * 1e9).round() as u64))
        }
        Quantity::SampleShare if *value >= LEAST_SHARE => {
            format!("{} of the samples", units::percent(*value))
        }
        _ => return None,
    };
    Some(if measured.state == AnchorState::Stale { format!("~{label} (before edit)") } else { label })
}

/// The neediest instantiation, and how many there are beside it.
fn label(kernels: &[Resources]) -> String {
    let need = |kernel: &&Resources| {
        let registers = kernel.get(Quantity::Registers).unwrap_or(0.0);
        (kernel.spills(), registers)
    };
    let worst =
        kernels.iter().max_by(|a, b| need(a).partial_cmp(&need(b)).unwrap_or(std::cmp::Ordering::Equal));
    let Some(worst) = worst else { return String::new() };
    let mut label = worst.summary();
    if kernels.len() > 1 && !label.is_empty() {
        label.push_str(&format!(" (and {} more)", kernels.len() - 1));
    }
    if worst.state == AnchorState::Stale && !label.is_empty() {
        label = format!("~{label} (before edit)");
    }
    label
}
