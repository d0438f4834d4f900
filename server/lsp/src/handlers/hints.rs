//! Inlay hints: what a kernel needs, at the end of its line. One hint a line, and only what still holds, unless asked for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stitch_findings::{AnchorState, Span};
use stitch_session::config::StaleHints;
use tower_lsp::ls_types::{InlayHint, InlayHintLabel, InlayHintTooltip, Range};

use crate::capabilities::ClientFeatures;
use crate::handlers::hover;
use crate::resources::Resources;
use crate::view::View;
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
    let mut hints = Vec::new();
    for (line, kernels) in lines {
        let end = view.document.text.line_span(line as usize).end;
        let label = label(&kernels);
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
            data: Some(data(view, kernels[0].span)),
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

/// The neediest instantiation, and how many there are beside it.
fn label(kernels: &[Resources]) -> String {
    let need = |kernel: &&Resources| {
        let registers = kernel.get(stitch_findings::Quantity::Registers).unwrap_or(0.0);
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
