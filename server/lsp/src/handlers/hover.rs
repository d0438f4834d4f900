//! Hover: what is known of a kernel, and the page of a finding's code.

use std::fmt::Write;

use stitch_analysis::Launch;
use stitch_findings::AnchorState;
use tower_lsp::ls_types::{Hover, HoverContents, Position};

use crate::capabilities::ClientFeatures;
use crate::resources::{Resources, table};
use crate::view::View;
use crate::{from_proto, to_proto};

/// Launches listed for one kernel.
const MOST_LAUNCHES: usize = 8;

/// What to show at a position.
pub fn hover(view: &View, position: Position, client: &ClientFeatures) -> Option<Hover> {
    let offset = from_proto::offset(position, &view.document.text, view.encoding);
    let kernel = view.kernel_name_at(offset);
    let finding = view
        .findings
        .iter()
        .filter(|placed| placed.span.touches(offset))
        .min_by_key(|placed| placed.span.len());
    let mut parts = Vec::new();
    let mut range = None;
    if let Some((name, span)) = kernel {
        parts.push(about_kernel(view, name));
        range = Some(view.range(span));
    }
    if kernel.is_none() {
        // A kernel that a macro makes has no name here, only its numbers.
        let all = Resources::of(view);
        let here = |known: &&Resources| known.span.touches(offset) && known.state != AnchorState::Stale;
        let made: Vec<_> = all.iter().filter(here).collect();
        if let Some(first) = made.first() {
            parts.push(format!("{}\n{}", table(&made), first.origin()));
            range = Some(view.range_here(first.span));
        }
    }
    if let Some(placed) = finding {
        let advice = placed.item.advice.as_deref().unwrap_or_default();
        parts.push(format!("**{}** {advice}\n\n{}", placed.item.message, placed.item.code.info().page));
        range = range.or_else(|| Some(view.range_here(placed.span)));
    }
    (!parts.is_empty()).then(|| Hover {
        contents: HoverContents::Markup(to_proto::markup(parts.join("\n\n---\n\n"), client)),
        range,
    })
}

/// A kernel's page: what the compiler says of it, and who launches it.
pub fn about_kernel(view: &View, name: &str) -> String {
    let mut text = format!("**`{name}`** kernel\n\n");
    let all = Resources::of(view);
    let spans: Vec<_> = view
        .kernels()
        .filter(|kernel| kernel.name == name)
        .map(|kernel| view.place(kernel.name_span))
        .collect();
    let (stale, ours): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|known| spans.contains(&known.span))
        .partition(|known| known.state == AnchorState::Stale);
    if let Some(first) = ours.first() {
        let _ = writeln!(text, "{}\n{}", table(&ours), first.origin());
    } else if !stale.is_empty() {
        text.push_str("The kernel has changed since it was compiled. Save the file to see its numbers.\n");
    } else if view.document.path.is_some() && !spans.is_empty() {
        text.push_str("Save the file to have it compiled and see its registers and occupancy.\n");
    }
    let launches: Vec<_> = view.launches_of(name).collect();
    for launch in launches.iter().take(MOST_LAUNCHES) {
        let _ = writeln!(text, "\n- {}", about_launch(view, launch));
    }
    if launches.len() > MOST_LAUNCHES {
        let _ = writeln!(text, "\n- and {} more launches", launches.len() - MOST_LAUNCHES);
    }
    text
}

/// `launched in `main`, line 12: grid `n / 256`, block `256` (256 threads)`.
fn about_launch(view: &View, launch: &Launch) -> String {
    let line = view.range(launch.span).start.line + 1;
    let mut text = match &launch.caller {
        Some(caller) => format!("launched in `{caller}`, line {line}"),
        None => format!("launched in line {line}"),
    };
    let parts = [
        ("grid", &launch.grid),
        ("block", &launch.block),
        ("shared", &launch.shared),
        ("stream", &launch.stream),
    ];
    let mut separator = ": ";
    for (name, expression) in parts {
        let Some(expression) = expression else { continue };
        let _ = write!(text, "{separator}{name} `{}`", expression.text);
        separator = ", ";
        if let (Some([x, y, z]), "block") = (expression.value, name) {
            let threads = x.saturating_mul(y).saturating_mul(z);
            let _ = write!(text, " ({threads} threads)");
        }
    }
    text
}
