//! Code lenses: above each kernel what it needs, in a few words, and a way to more; and one that optimises it.

use serde_json::json;
use stitch_findings::AnchorState;
use tower_lsp::ls_types::{CodeLens, Command};

use crate::handlers::commands;
use crate::resources::Resources;
use crate::view::View;

/// The lenses of a document. Kernels are offered to be optimised where `can_optimize`.
pub fn lenses(view: &View, can_optimize: bool) -> Vec<CodeLens> {
    let all = Resources::of(view);
    view.kernels()
        .flat_map(|kernel| {
            let span = view.place(kernel.name_span);
            let known = all.iter().filter(|known| known.span == span && known.state != AnchorState::Stale);
            let summary = known.map(Resources::summary).find(|summary| !summary.is_empty());
            let launches = match view.launches_of(&kernel.name).count() {
                0 => "not launched here".to_owned(),
                1 => "1 launch".to_owned(),
                count => format!("{count} launches"),
            };
            let range = view.range_here(span);
            let optimize = (can_optimize && kernel.is_definition).then(|| CodeLens {
                range,
                command: Some(Command {
                    title: "Optimize".to_owned(),
                    command: commands::OPTIMIZE.to_owned(),
                    arguments: Some(vec![
                        json!({"uri": &*view.document.uri, "range": view.range(kernel.span)}),
                    ]),
                }),
                data: None,
            });
            let about = CodeLens {
                range,
                command: Some(Command {
                    title: summary.map_or(launches.clone(), |summary| format!("{summary} · {launches}")),
                    command: commands::SHOW_KERNEL.to_owned(),
                    arguments: Some(vec![json!({"uri": &*view.document.uri, "kernel": kernel.name})]),
                }),
                data: None,
            };
            std::iter::once(about).chain(optimize)
        })
        .collect()
}
