//! What is known of an item, moved to its place in the file.

use stitch_findings::{Finding, Place, Span};

use crate::cuda::items::{Item, State};
use crate::outline::{Expression, Function, Launch};

pub(super) fn shift_item(item: &Item, old_end: usize, new_end: usize) -> Item {
    let shift = |at: usize| if at == usize::MAX { at } else { at - old_end + new_end };
    let span = |s: Span| Span::new(shift(s.start), shift(s.end));
    Item {
        span: span(item.span),
        kind: item.kind,
        blanks: item.blanks.iter().map(|b| span(*b)).collect(),
        state: item.state.clone(),
        looked_to: shift(item.looked_to),
    }
}

/// The scopes around an item, as the beginning of a qualified name.
pub(super) fn prefix(state: &State) -> String {
    state.scopes.iter().filter(|name| !name.is_empty()).map(|name| format!("{name}::")).collect()
}

pub(super) fn shift_function(function: &Function, by: usize, scope: &str) -> Function {
    let mut function = function.clone();
    function.qualified_name.insert_str(0, scope);
    function.span = function.span.shifted(by);
    function.name_span = function.name_span.shifted(by);
    function.body = function.body.map(|body| body.shifted(by));
    function.parameters.iter_mut().for_each(|p| p.span = p.span.shifted(by));
    if let Some(bounds) = &mut function.launch_bounds {
        bounds.max_threads.span = bounds.max_threads.span.shifted(by);
        [&mut bounds.min_blocks, &mut bounds.max_cluster].into_iter().for_each(|e| shift_expression(e, by));
    }
    function
}

fn shift_expression(expression: &mut Option<Expression>, by: usize) {
    if let Some(expression) = expression {
        expression.span = expression.span.shifted(by);
    }
}

pub(super) fn shift_launch(launch: &Launch, by: usize) -> Launch {
    let mut launch = launch.clone();
    launch.span = launch.span.shifted(by);
    launch.name_span = launch.name_span.shifted(by);
    for expression in [&mut launch.grid, &mut launch.block, &mut launch.shared, &mut launch.stream] {
        shift_expression(expression, by);
    }
    launch
}

pub(super) fn shift_finding(finding: &Finding, by: usize) -> Finding {
    let mut finding = finding.clone();
    finding.span = finding.span.shifted(by);
    for related in &mut finding.related {
        if let Place::Here(span) = &mut related.place {
            *span = span.shifted(by);
        }
    }
    finding
}
