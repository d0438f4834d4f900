//! Hover: what is known of a kernel, a line and a module, and the page of a finding's code.

use std::fmt::Write;

use stitch_analysis::Launch;
use stitch_findings::{AnchorState, Code, ReadText, Span};
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
        if let Some((said, span)) = measured(view, offset, &told(view, offset, client)) {
            parts.push(said);
            range = range.or_else(|| Some(view.range_here(span)));
        }
    }
    if let Some(placed) = finding {
        let page = placed.item.code.info().page;
        // Some editors show findings beside the hover of their place; then only the page is new.
        parts.push(match client.plugin.diagnostics_in_hover {
            true => page.to_owned(),
            false => {
                let advice = placed.item.advice.as_deref().unwrap_or_default();
                format!("**{}** {advice}\n\n{page}", placed.item.message)
            }
        });
        range = range.or_else(|| Some(view.range_here(placed.span)));
    }
    (!parts.is_empty()).then(|| Hover {
        contents: HoverContents::Markup(to_proto::markup(parts.join("\n\n---\n\n"), client)),
        range,
    })
}

/// The codes of the findings that the editor itself shows beside the hover of this place.
fn told(view: &View, offset: usize, client: &ClientFeatures) -> Vec<Code> {
    if !client.plugin.diagnostics_in_hover {
        return Vec::new();
    }
    let here = view.findings.iter().filter(|placed| placed.span.touches(offset));
    here.map(|placed| placed.item.code).collect()
}

/// What profilers measured of the line, or of the module, at an offset, and where that is; without what findings of these codes say.
fn measured(view: &View, offset: usize, told: &[Code]) -> Option<(String, Span)> {
    let profile = view.profile.as_ref()?;
    let mut parts = Vec::new();
    let mut span = None;
    if let Some((name, at)) = module_name_at(view, offset) {
        parts.extend(profile.modules(name, at).map(|said| said.markdown()));
        span = Some(at).filter(|_| !parts.is_empty());
    }
    let line = line_at(view, offset);
    if let Some(said) = profile.line(line, told) {
        parts.push(said.markdown());
        span = span.or(Some(line));
    }
    Some((parts.join("\n"), span?))
}

/// The module whose class's name, or whose making, is at an offset.
fn module_name_at(view: &View, offset: usize) -> Option<(&str, Span)> {
    view.analysis()?.outline().modules.iter().find_map(|module| {
        let class = view.place(module.name_span);
        if class.touches(offset) {
            return Some((module.name.as_str(), class));
        }
        let part = module.parts.iter().find(|part| view.place(part.span).touches(offset))?;
        Some((part.name.as_str(), view.place(part.span)))
    })
}

/// What profilers measured of the line at an offset: the table behind its hint.
pub fn about_line(view: &View, offset: usize) -> Option<String> {
    let said = view.profile.as_ref()?.line(line_at(view, offset), &[])?;
    Some(said.markdown())
}

/// The text of the line at an offset, without its indentation and its end.
fn line_at(view: &View, offset: usize) -> Span {
    let text = &view.document.text;
    let position = text.position(offset, view.encoding);
    let line = text.line_span(position.line as usize);
    let written = text.read(line).unwrap_or_default();
    let indent = written.len() - written.trim_start().len();
    Span::new(line.start + indent, line.start + indent.max(written.trim_end().len()))
}

/// A kernel's page: what the compiler says of it, what profilers measured, and who launches it.
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
    if let Some(said) = view.profile.as_ref().and_then(|profile| profile.kernel(name, spans.first().copied()))
    {
        let _ = writeln!(text, "\n{}", said.markdown());
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
