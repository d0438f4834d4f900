//! `rewrite/sequential-addressing`: a reduction tree by doubling strides, turned round.
//!
//! ```text
//! for (s = 1; s < blockDim.x; s *= 2) if (tid % (2 * s) == 0) a[tid] += a[tid + s];      threads 0, 2, 4, … work
//! for (s = blockDim.x / 2; s > 0; s /= 2) if (tid < s) a[tid] += a[tid + s];             threads 0, 1, 2, … work
//! ```
//!
//! Both leave the same in `a[0]` for an operation that is associative and commutative and a block of a power of two, and something
//! else in all other elements. `step` reads the loop; here is what must hold around it.

use stitch_findings::Code;
use tree_sitter::Node;

use super::context::span;
use super::expression::as_operand;
use super::launched::{blocks, in_words, launches_of};
use super::step::{Step, read_step};
use super::uses::{nodes, uses};
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::constants::fold;
use crate::rules::kind::Kind;
use crate::rules::names::Storage;
use crate::rules::scope::Scope;
use crate::rules::types::Type;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::SEQUENTIAL_ADDRESSING,
    title: "Keep the working threads of a reduction together",
    finding: Some(Code::DIVERGENT_REDUCTION),
    find,
};

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for function in context.device_functions() {
        for node in nodes(function.node).filter(|node| Kind::of(*node) == Kind::For) {
            let proposal = match read_step(context, node) {
                Ok(None) => continue,
                Ok(Some(step)) => rewrite(context, function, node, &step),
                Err(reason) => Err(reason),
            };
            let header = node.child_by_field_name("condition").unwrap_or(node);
            proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(span(header), reason)));
        }
    }
    proposals
}

fn rewrite(context: &Context, function: &Function, around: Node, step: &Step) -> Result<Proposal, String> {
    context.is_whole(function)?;
    for name in [step.array, step.thread, step.stride] {
        if let Some(line) = context.macro_that_mentions(name) {
            return Err(format!("the macro of line {line} mentions `{name}`"));
        }
    }
    is_thread(context, function, step, around)?;
    let launched = launches_of(context, function)?;
    let sizes = blocks(context, &launched)?;
    for ([x, y, z], launch) in sizes.iter().zip(&launched.launches) {
        let line = context.line(launch.span.start);
        if *y != 1 || *z != 1 {
            return Err(format!("the block of the launch at line {line} has more than one row of threads"));
        }
        if x.count_ones() != 1 {
            return Err(format!("the block of the launch at line {line} has {x} threads, no power of two"));
        }
        bound_is(context, function, step, *x)?;
    }
    let element = array(function, step)?;
    let changes_rounding = element.is_float() || element.is_double();
    if !changes_rounding && !element.is_integer() {
        return Err(format!("the type of the elements of `{}` is not known", step.array));
    }
    only_first_is_read(context, function, around, step)?;
    all_threads_come(context, function, around, step)?;
    let title = format!("Halve `{}` instead of doubling it, and let the first threads work", step.stride);
    let words = "whole warps drop out of the steps, and no remainder is computed".to_owned();
    let mut rewrite = RULE.rewrite(span(around), title, edits(context, step), Gain::Instructions { words });
    rewrite.changes_rounding =
        changes_rounding && !matches!(step.operation, "min" | "max" | "fminf" | "fmaxf" | "fmin" | "fmax");
    let mut counts: Vec<i64> = sizes.iter().map(|[x, ..]| *x).collect();
    counts.sort_unstable();
    counts.dedup();
    let counts: Vec<String> = counts.iter().map(i64::to_string).collect();
    let which = in_words(context, &launched);
    let have = if launched.launches.len() == 1 { "has" } else { "have" };
    rewrite.proven.push(format!("{which} {have} {} threads a block, a power of two", counts.join(" or ")));
    rewrite.proven.push(format!(
        "`{}` of what is left in shared memory, only `{}[0]` is read",
        step.operation, step.array
    ));
    rewrite.assumed = launched.assumed;
    Ok(Proposal::Rewrite(rewrite))
}

fn edits(context: &Context, step: &Step) -> Vec<Edit> {
    let half = format!("{} / 2", as_operand(context, step.bound));
    let stride = step.stride;
    let halves = match context.text(step.update).contains("<<") {
        true => format!("{stride} >>= 1"),
        false => format!("{stride} /= 2"),
    };
    let mut edits = vec![
        Edit::replace(span(step.start), half),
        Edit::replace(span(step.condition), format!("{stride} > 0")),
        Edit::replace(span(step.update), halves),
        Edit::replace(span(step.test), format!("{} < {stride}", step.thread)),
    ];
    if let Some((declaration, names)) = &step.index {
        edits.push(without_line(context, *declaration));
        edits.extend(names.iter().map(|name| Edit::replace(span(*name), step.thread)));
    }
    edits
}

/// Takes a statement out, with its line if nothing else is on it.
fn without_line(context: &Context, statement: Node) -> Edit {
    let (start, end) = (statement.start_byte(), statement.end_byte());
    let line = start - context.source[..start].rsplit('\n').next().map_or(0, str::len);
    let rest = &context.source[end..];
    let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    let is_alone = context.source[line..start].trim().is_empty() && rest[blank..].starts_with('\n');
    match is_alone {
        true => Edit::replace((line..end + blank + 1).into(), ""),
        false => Edit::replace(span(statement), ""),
    }
}

/// Whether the name that picks the threads is `threadIdx.x`.
fn is_thread(context: &Context, function: &Function, step: &Step, around: Node) -> Result<(), String> {
    if step.thread == "threadIdx.x" {
        return Ok(());
    }
    let walker = function.walker();
    let variable =
        walker.names.resolve(step.thread, around.start_byte()).map(|id| &walker.names.variables[id]);
    let is_it = variable.is_some_and(|variable| {
        let initial = variable.initial.map(|initial| context.text(initial).trim_matches(['(', ')', ' ']));
        variable.writes.is_empty() && !variable.is_reference && initial == Some("threadIdx.x")
    });
    match is_it {
        true => Ok(()),
        false => Err(format!("`{}` is not known to be `threadIdx.x`", step.thread)),
    }
}

/// Whether the loop goes up to the number of threads.
fn bound_is(context: &Context, function: &Function, step: &Step, threads: i64) -> Result<(), String> {
    let text = context.text(step.bound);
    let walker = function.walker();
    let at = step.bound.start_byte();
    let named = walker.names.resolve(text, at).map(|id| &walker.names.variables[id]);
    let initial = named.filter(|v| v.writes.is_empty()).and_then(|v| v.initial);
    if text == "blockDim.x" || initial.is_some_and(|initial| context.text(initial) == "blockDim.x") {
        return Ok(());
    }
    match fold(step.bound, context.source, &Scope::new(walker, at)) {
        Some(value) if value == threads => Ok(()),
        Some(value) => Err(format!("the loop goes to {value}, and the block has {threads} threads")),
        None => Err(format!("`{text}` is not known to be the number of threads")),
    }
}

/// The type of the array's elements, if it is shared.
fn array(function: &Function, step: &Step) -> Result<Type, String> {
    let walker = function.walker();
    let variable =
        walker.names.resolve(step.array, step.test.start_byte()).map(|id| &walker.names.variables[id]);
    match variable {
        Some(variable) if variable.storage == Storage::Shared && variable.dimensions.len() == 1 => {
            Ok(variable.ty.pointee())
        }
        Some(_) => Err(format!("`{}` is no shared array of one dimension", step.array)),
        None => Err(format!("`{}` is not declared here", step.array)),
    }
}

/// Whether of the array's elements only the first is used once the loop is done, until they are set anew.
fn only_first_is_read(
    context: &Context,
    function: &Function,
    around: Node,
    step: &Step,
) -> Result<(), String> {
    let walker = function.walker();
    let Some(id) = walker.names.resolve(step.array, step.test.start_byte()) else {
        return Err(format!("`{}` is not declared here", step.array));
    };
    let outermost = std::iter::successors(around.parent(), |node| node.parent())
        .filter(|node| Kind::of(*node).is_loop())
        .last();
    for used in uses(context, function, id) {
        let at = used.start_byte();
        let line = context.line(at);
        if around.byte_range().contains(&at) {
            continue;
        }
        let element = used.parent().filter(|parent| Kind::of(*parent) == Kind::Subscript);
        let Some(element) = element else {
            return Err(format!("line {line} uses `{}` other than element by element", step.array));
        };
        let index = element.child_by_field_name("indices").and_then(|list| list.named_child(0));
        let index = index.map_or("", |index| context.text(index));
        let sets = element.parent().is_some_and(|parent| {
            Kind::of(parent) == Kind::Assignment
                && parent.child_by_field_name("left") == Some(element)
                && parent.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "=")
        });
        let is_own = index == step.thread || index == "threadIdx.x";
        let is_after = at >= around.end_byte();
        let comes_again = outermost.is_some_and(|outer| outer.byte_range().contains(&at));
        if index == "0" && !sets || sets && is_own || !is_after && !comes_again {
            continue;
        }
        return Err(format!("line {line} uses `{}[{index}]`, which differs after the loop", step.array));
    }
    Ok(())
}

/// Whether all threads of the block come to the loop, after a barrier behind the last store.
fn all_threads_come(context: &Context, function: &Function, around: Node, step: &Step) -> Result<(), String> {
    let mut last_store = None;
    let mut last_barrier = None;
    for node in nodes(function.node).take_while(|node| node.start_byte() < around.start_byte()) {
        match Kind::of(node) {
            Kind::Return => {
                let line = context.line(node.start_byte());
                return Err(format!("some threads may be gone by line {line}"));
            }
            Kind::Call if context.text(node).starts_with("__syncthreads") => {
                last_barrier = Some(node.start_byte())
            }
            Kind::Subscript
                if node
                    .child_by_field_name("argument")
                    .is_some_and(|name| context.text(name) == step.array) =>
            {
                last_store = Some(node.start_byte());
            }
            _ => {}
        }
    }
    let is_ready = step.begins_with_barrier || last_store < last_barrier;
    if !is_ready {
        return Err(format!("no barrier is between the stores to `{}` and the loop", step.array));
    }
    let mut at = around;
    while let Some(parent) = at.parent() {
        if matches!(Kind::of(parent), Kind::If | Kind::Switch | Kind::Else | Kind::Lambda) {
            return Err(format!("the loop stands in a branch, line {}", context.line(parent.start_byte())));
        }
        at = parent;
    }
    // Names that the loop leaves behind.
    let walker = function.walker();
    let stride = walker.names.resolve(step.stride, step.test.start_byte());
    let escapes = stride.is_some_and(|id| {
        let own = step.declares_stride;
        !own && uses(context, function, id).iter().any(|used| used.start_byte() >= around.end_byte())
    });
    match escapes {
        true => Err(format!("`{}` is used after the loop", step.stride)),
        false => Ok(()),
    }
}
