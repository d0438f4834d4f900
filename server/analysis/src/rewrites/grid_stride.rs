//! `rewrite/grid-stride-loop`: one element a thread becomes a loop over elements a grid apart.
//!
//! With a grid that has a thread for each element the loop runs once, so that nothing changes and nothing is won. It pays where a
//! thread or a block does something before or after its element that fewer of them would do less often: filling a table in shared
//! memory, adding a block's sum to the total. So only there the launch's grid is capped as well.

use stitch_findings::{Code, Span};
use tree_sitter::Node;

use super::context::span;
use super::cover::{covers, node_at};
use super::elementwise::{Elementwise, Form};
use super::launched::{Launched, blocks, launches_of};
use super::statements::{callees, deeper, is_collective, removal};
use super::threads::names_builtin;
use super::uses::nodes;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::kind::Kind;
use crate::rules::names::Storage;

/// The rule.
pub static RULE: Rule =
    Rule { code: Code::GRID_STRIDE_LOOP, title: "Loop over elements a grid apart", finding: None, find };

/// Blocks that a capped grid has: with 256 threads each, about as many as 128 multiprocessors of 2048 threads hold at once.
const CAP: i64 = 1024;

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for kernel in context.kernels() {
        let launched = launches_of(context, kernel);
        let block = launched.as_ref().ok().and_then(|launched| blocks(context, launched).ok());
        let block = block.and_then(|all| all.iter().all(|block| *block == all[0]).then_some(all[0]));
        let Some(element) = Elementwise::of(context, kernel, block) else { continue };
        let proposal = launched.and_then(|launched| rewrite(context, kernel, &element, &launched));
        let place = Span::new(element.declaration.start_byte(), element.declaration.end_byte());
        proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(place, reason)));
    }
    proposals
}

/// That what is done to one element may be done to several by one thread.
fn repeats<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
) -> Result<(), String> {
    let names = &kernel.walker().names;
    let place = element.inner_span().ok_or("the guard is around nothing")?;
    for node in element.inner.iter().flat_map(|statement| nodes(*statement)) {
        let line = context.line(node.start_byte());
        match Kind::of(node) {
            Kind::Return => return Err(format!("line {line} leaves the kernel from inside the guard")),
            Kind::Lambda => return Err(format!("line {line} has a function in it")),
            _ if matches!(
                node.kind(),
                "goto_statement" | "labeled_statement" | "asm_statement" | "gnu_asm_expression"
            ) =>
            {
                return Err(format!("line {line} jumps, or is assembly"));
            }
            _ => {}
        }
        if matches!(node.kind(), "__shared__" | "static") {
            return Err(format!("line {line} declares memory that outlives the element"));
        }
    }
    for statement in &element.inner {
        if let Some(name) = callees(context, *statement).into_iter().find(|name| is_collective(name)) {
            return Err(format!("`{name}` inside the guard needs its threads together"));
        }
    }
    let carried = names.variables.iter().find(|variable| {
        let is_outer = !(place.start <= variable.visible.start && variable.visible.start < place.end);
        is_outer
            && variable.storage != Storage::Shared
            && variable.ty.pointers.saturating_sub(u8::from(!variable.dimensions.is_empty())) == 0
            && is_changed(context, kernel, variable.name, place)
    });
    if let Some(line) = overwrites_shared(context, kernel, element) {
        return Err(format!(
            "line {line} would overwrite in shared memory what the element before left there"
        ));
    }
    match carried {
        Some(variable) => Err(format!("`{}` would be carried from one element to the next", variable.name)),
        None => changes_pointer(context, kernel, place),
    }
}

/// Whether a variable is written, or its address or a reference is taken, in `place`.
fn is_changed<'c>(context: &Context<'c>, kernel: &Function<'c>, name: &str, place: Span) -> bool {
    let inside = nodes(kernel.node).filter(|node| place.contains(span(*node)));
    let is_it = |node: Option<Node>| {
        node.is_some_and(|node| {
            let mut at = node;
            while let Kind::Field | Kind::Subscript | Kind::Parenthesized = Kind::of(at)
                && let Some(inner) = at.child_by_field_name("argument").or_else(|| at.named_child(0))
            {
                at = inner;
            }
            Kind::of(at) == Kind::Identifier && context.text(at) == name
        })
    };
    inside.into_iter().any(|node| match Kind::of(node) {
        Kind::Assignment => is_it(node.child_by_field_name("left")),
        Kind::Update => is_it(node.child_by_field_name("argument")),
        Kind::Pointer => {
            node.child(0).is_some_and(|o| o.kind() == "&") && is_it(node.child_by_field_name("argument"))
        }
        _ => false,
    })
}

/// The line that sets an element of shared memory, rather than adding to it.
fn overwrites_shared<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
) -> Option<usize> {
    let names = &kernel.walker().names;
    // A pointer of the thread's own may point into shared memory.
    let may_be_shared = |id: usize| {
        let variable = &names.variables[id];
        variable.storage == Storage::Shared || variable.storage == Storage::Local && variable.ty.pointers > 0
    };
    let is_shared = |target: Node<'c>| {
        nodes(target)
            .filter(|node| Kind::of(*node) == Kind::Identifier)
            .any(|node| names.resolve(context.text(node), node.start_byte()).is_some_and(may_be_shared))
    };
    let mut sets = element.inner.iter().flat_map(|statement| nodes(*statement)).filter(|node| {
        let operator = node.child_by_field_name("operator").map_or("", |operator| operator.kind());
        Kind::of(*node) == Kind::Assignment && operator == "="
    });
    let found = sets.find(|node| node.child_by_field_name("left").is_some_and(is_shared))?;
    Some(context.line(found.start_byte()))
}

/// That no pointer from outside is moved.
fn changes_pointer<'c>(context: &Context<'c>, kernel: &Function<'c>, place: Span) -> Result<(), String> {
    let inside = nodes(kernel.node).filter(|node| place.contains(span(*node)));
    for node in inside {
        let target = match Kind::of(node) {
            Kind::Assignment => node.child_by_field_name("left"),
            Kind::Update => node.child_by_field_name("argument"),
            _ => None,
        };
        let Some(target) = target.filter(|target| Kind::of(*target) == Kind::Identifier) else { continue };
        let names = &kernel.walker().names;
        let outer = names.resolve(context.text(target), target.start_byte()).is_some_and(|id| {
            let start = names.variables[id].visible.start;
            start < place.start || start >= place.end
        });
        if outer {
            return Err(format!("`{}` would be carried from one element to the next", context.text(target)));
        }
    }
    Ok(())
}

/// What every thread or block does besides its element, in words; `None` for nothing of weight.
fn set_up<'c>(context: &Context<'c>, element: &Elementwise<'c>) -> Option<String> {
    let weighs = |node: &Node<'c>| {
        nodes(*node).any(|part| {
            Kind::of(part).is_loop()
                || matches!(Kind::of(part), Kind::Call | Kind::Subscript)
                || part.kind() == "pointer_expression"
        })
    };
    let node = element.before.iter().chain(&element.after).find(|node| weighs(node))?;
    Some(format!("what is done at line {}", context.line(node.start_byte())))
}

fn rewrite<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
    launched: &Launched<'c>,
) -> Result<Proposal, String> {
    context.is_whole(kernel)?;
    element.index_is_free(context, kernel)?;
    repeats(context, kernel, element)?;
    blocks_are_alike(context, kernel, element)?;
    if names_builtin(context, kernel, "blockIdx.y") || names_builtin(context, kernel, "threadIdx.y") {
        return Err("the kernel has a second dimension".to_owned());
    }
    covers(context, kernel, launched, element.bound)?;
    let (name, bound) = (kernel.walker().names.variables[element.index].name, context.text(element.bound));
    let set_up = set_up(context, element);
    let capped = match set_up {
        Some(_) => caps(context, launched),
        None => Vec::new(),
    };
    let gain = match set_up.filter(|_| !capped.is_empty()) {
        Some(what) => {
            Gain::Instructions { words: format!("{what} is done by {CAP} blocks at most in place of all") }
        }
        None => Gain::Safety { words: "a grid of any size covers all elements".to_owned() },
    };
    let mut edits = kernel_edits(context, kernel, element);
    let has_cap = !capped.is_empty();
    edits.extend(capped);
    let title = if has_cap {
        format!("Loop over `{bound}` elements with at most {CAP} blocks")
    } else {
        format!("Loop over `{bound}` elements with any grid")
    };
    let mut rewrite = RULE.rewrite(span(element.declaration), title, edits, gain);
    rewrite.proven = vec![
        format!("every launch has a thread for each `{name}` below `{bound}`"),
        "inside the guard nothing waits, leaves, or is carried on".to_owned(),
    ];
    rewrite.assumed.clone_from(&launched.assumed);
    if element.ty.bytes() == Some(4) {
        rewrite.assumed.push(format!("`{bound}` and the threads of the grid together are less than 2^31"));
    }
    Ok(Proposal::Rewrite(rewrite))
}

/// Why a grid with fewer blocks would give something else: a block's number decides more than the index.
fn blocks_are_alike<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
) -> Result<(), String> {
    let names = &kernel.walker().names;
    // Names that stand for a block's number, directly or through others.
    let mut of_block: Vec<usize> = Vec::new();
    let means_block = |node: Node<'c>, of_block: &[usize]| {
        nodes(node).filter(|part| Kind::of(*part) == Kind::Identifier).any(|part| {
            let text = context.text(part);
            matches!(text, "blockIdx" | "gridDim")
                || names.resolve(text, part.start_byte()).is_some_and(|id| of_block.contains(&id))
        })
    };
    for (id, variable) in names.variables.iter().enumerate().filter(|(id, _)| *id != element.index) {
        if variable.initial.is_some_and(|initial| means_block(initial, &of_block)) {
            of_block.push(id);
        }
    }
    let mut harmless: Vec<Span> =
        of_block.iter().filter_map(|id| names.variables[*id].initial).map(span).collect();
    harmless.push(span(element.start));
    let other = nodes(kernel.node).filter(|node| Kind::of(*node) == Kind::Identifier).find(|node| {
        let is_declared =
            node.parent().is_some_and(|parent| parent.child_by_field_name("declarator") == Some(*node));
        !is_declared
            && !harmless.iter().any(|place| place.contains(span(*node)))
            && means_block(*node, &of_block)
    });
    match other {
        Some(node) => Err(format!(
            "line {} depends on the block, whose elements would be others with fewer blocks",
            context.line(node.start_byte())
        )),
        None => Ok(()),
    }
}

/// The edits that cap the grids of launches, where these are written as one plain number.
fn caps<'c>(context: &Context<'c>, launched: &Launched<'c>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for launch in &launched.launches {
        let Some(grid) = &launch.grid else { return Vec::new() };
        if grid.value.is_some_and(|[x, ..]| x <= CAP) {
            continue;
        }
        let caller = context.functions.iter().filter(|f| f.outline.span.contains(launch.span));
        let Some(caller) = caller.min_by_key(|f| f.outline.span.len()) else { return Vec::new() };
        let Some(node) = node_at(caller, grid.span) else { return Vec::new() };
        let names = &caller.walker().names;
        let is_plain = match names.resolve(context.text(node), node.start_byte()) {
            Some(id) => names.variables[id].ty.is_integer(),
            None => matches!(Kind::of(node), Kind::Binary | Kind::Parenthesized),
        };
        let is_float =
            nodes(node).any(|part| Kind::of(part) == Kind::Call || context.text(part).contains('.'));
        if !is_plain || is_float {
            return Vec::new();
        }
        let text = context.text(node);
        let text = if Kind::of(node) == Kind::Binary { format!("({text})") } else { text.to_owned() };
        edits.push(Edit::replace(grid.span, format!("{text} < {CAP} ? {text} : {CAP}")));
    }
    edits
}

fn kernel_edits<'c>(context: &Context<'c>, kernel: &Function<'c>, element: &Elementwise<'c>) -> Vec<Edit> {
    let declaration = context.text(element.declaration).trim_end_matches(';').trim_end();
    let declaration = declaration.strip_prefix("const ").unwrap_or(declaration).replace(" const ", " ");
    let (name, bound) = (kernel.walker().names.variables[element.index].name, context.text(element.bound));
    let head = format!("for ({declaration}; {name} < {bound}; {name} += blockDim.x * gridDim.x)");
    let mut edits = vec![removal(context, element.declaration)];
    let asked = element.guard.child_by_field_name("condition");
    match (element.form, asked, element.inner_span()) {
        (Form::Branch, Some(asked), _) => {
            let place = Span::new(element.guard.start_byte(), asked.end_byte());
            edits.push(Edit::replace(place, head));
        }
        (Form::Return, _, Some(inner)) => {
            let own = context.indentation(element.guard.start_byte());
            let unit = context.indentation_unit(kernel);
            edits.push(Edit::replace(span(element.guard), format!("{head} {{")));
            let line_end = context.source[inner.end..].find('\n').map_or(inner.end, |at| inner.end + at);
            let rest = context.source[inner.end..line_end].trim();
            // A comment behind the last statement stays with it.
            let end = if rest.starts_with("//") || rest.starts_with("/*") { line_end } else { inner.end };
            let end = if context.source[..end].ends_with('\r') { end - 1 } else { end };
            edits.extend(deeper(context, Span::new(element.guard.end_byte(), inner.end), unit));
            edits.push(Edit::insert(end, format!("\n{own}}}")));
        }
        _ => {}
    }
    edits
}
