//! Inlay hints: what a kernel needs and what a line takes, at the end of the line. One hint a line, and only what still holds, unless asked for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stitch_findings::{AnchorState, Measurement, Quantity, Span};
use stitch_profiles::units;
use stitch_session::config::{InlayHints, StaleHints};
use tower_lsp::ls_types::{InlayHint, InlayHintLabel, InlayHintTooltip, Range};

use crate::capabilities::ClientFeatures;
use crate::handlers::hover;
use crate::resources::Resources;
use crate::view::{Placed, View};
use crate::{from_proto, to_proto};

/// The hints in a range. The tooltip comes with them unless the client asks for it later.
pub fn hints(view: &View, range: Range, config: &InlayHints, client: &ClientFeatures) -> Vec<InlayHint> {
    let stale = config.stale;
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
    for (line, measured) in worst(view, config.threshold) {
        let is_shown = measured.state != AnchorState::Stale || stale != StaleHints::Hide;
        if let Some(label) = taken(measured).filter(|_| is_shown) {
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
    let Some(offset) = field("offset").and_then(|offset| usize::try_from(offset).ok()) else { return hint };
    let about = match view.kernel_name_at(offset) {
        Some((name, _)) => Some(hover::about_kernel(view, name)),
        None => hover::about_line(view, offset),
    };
    hint.tooltip = about.map(|text| InlayHintTooltip::MarkupContent(to_proto::markup(text, client)));
    hint
}

fn data(view: &View, span: Span) -> Value {
    json!({"uri": &*view.document.uri, "revision": view.document.revision, "offset": span.start})
}

fn touches(wanted: Span, line: Span) -> bool {
    wanted.start <= line.end && line.start <= wanted.end
}

/// What is told of each line: of several numbers of one kind, which several launches have, the largest. Nothing below `threshold`.
fn worst(view: &View, threshold: f64) -> BTreeMap<u32, &Placed<Measurement>> {
    let all_time = view.profile.as_ref().and_then(|profile| profile.recorded().python.as_ref());
    let all_time = all_time.map_or(0.0, |python| python.kernel_ns as f64 / 1e9);
    let is_enough = |measured: &Measurement| match measured.quantity {
        Quantity::GpuTime => measured.value >= threshold * all_time,
        Quantity::SampleShare => measured.value >= threshold,
        quantity => quantity.is_of_a_line(),
    };
    let mut worst: BTreeMap<u32, &Placed<Measurement>> = BTreeMap::new();
    for measured in view.measurements.iter().filter(|found| is_enough(&found.item)) {
        let line = view.range_here(measured.span).start.line;
        let known = worst.entry(line).or_insert(measured);
        if known.item.quantity == measured.item.quantity && known.item.value < measured.item.value {
            *known = measured;
        }
    }
    worst
}

/// What a line takes: `3.20 ms · 41% · 3 kernels · memory-bound`, `18% of the samples · 8.0 times the sectors`.
fn taken(measured: &Placed<Measurement>) -> Option<String> {
    let Measurement { quantity, value, note, .. } = &measured.item;
    let beside = note.as_ref().map(|note| format!(" · {note}")).unwrap_or_default();
    let label = match quantity {
        Quantity::GpuTime => format!("{}{beside}", units::time((value * 1e9).round() as u64)),
        Quantity::SampleShare => format!("{} of the samples{beside}", units::percent(*value)),
        Quantity::AccessExcess => note.clone()?,
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
