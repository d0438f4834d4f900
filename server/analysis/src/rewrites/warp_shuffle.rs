//! `rewrite/warp-shuffle-tail`: the last five steps of a tree reduction in shared memory, by shuffles of one warp.
//!
//! At stride `s` the tree has `a[t] = a[t] op a[t + s]` for `t < s`. From stride 16 on, only the first 32 elements matter, which
//! the lanes of one warp can hold in registers: lane `t` takes what lane `t + s` holds. The lanes from `s` on compute something
//! that nobody reads, and the others combine the same values in the same order, so that the result is the same to the last bit.

use stitch_findings::{Code, Span};
use tree_sitter::Node;

use super::context::span;
use super::expression::unused_name;
use super::launched::{Launched, blocks, in_words, launches_of};
use super::statements::{bare, binary, condition, statements};
use super::threads::{is_builtin, value};
use super::uses::{nodes, uses};
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::kind::Kind;
use crate::rules::names::Storage;
use crate::rules::types::Type;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::WARP_SHUFFLE_TAIL,
    title: "Finish the block reduction with warp shuffles",
    finding: None,
    find,
};

/// Lanes of a warp.
pub const WARP: i64 = 32;

/// Operators and functions that a tree reduction is made with.
const OPERATORS: &[&str] = &["+", "*", "&", "|", "^"];
const FUNCTIONS: &[&str] = &["min", "max", "fmin", "fmax", "fminf", "fmaxf"];

/// The tree: `for (s = …; s > 0; s /= 2) { if (t < s) a[t] op= a[t + s]; __syncthreads(); }`.
struct Tree<'c> {
    node: Node<'c>,
    /// The loop's variable and what it starts as.
    stride: usize,
    start: Node<'c>,
    condition: Node<'c>,
    /// `a`, by its number.
    array: usize,
    /// `a[t] = a[t] op a[t + s]`.
    step: Node<'c>,
    /// `a[t]` and `a[t + s]` on its right side; the first is missing in `a[t] += …`.
    own: Option<Node<'c>>,
    other: Node<'c>,
}

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for kernel in context.kernels() {
        for node in nodes(kernel.node).filter(|node| Kind::of(*node) == Kind::For) {
            if let Some(tree) = tree(context, kernel, node).filter(|tree| !stops_early(context, kernel, tree))
            {
                let proposal = rewrite(context, kernel, &tree);
                let head = Span::new(node.start_byte(), tree.condition.end_byte());
                proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(head, reason)));
            }
        }
    }
    proposals.extend(super::warp_tail::find(context));
    proposals
}

/// The loop as a tree, if it is one that halves its stride.
fn tree<'c>(context: &Context<'c>, kernel: &Function<'c>, node: Node<'c>) -> Option<Tree<'c>> {
    let names = &kernel.walker().names;
    let initializer = node.child_by_field_name("initializer")?;
    let (name, start) = match Kind::of(initializer) {
        Kind::Declaration => {
            let declarator = initializer.child_by_field_name("declarator")?;
            (declarator.child_by_field_name("declarator")?, declarator.child_by_field_name("value")?)
        }
        Kind::Assignment => {
            (initializer.child_by_field_name("left")?, initializer.child_by_field_name("right")?)
        }
        _ => return None,
    };
    let asked = node.child_by_field_name("condition")?;
    let stride = names.resolve(context.text(name), asked.start_byte())?;
    let update = context.text(node.child_by_field_name("update")?).split_whitespace().collect::<String>();
    let name = names.variables[stride].name;
    let halves = [
        format!("{name}>>=1"),
        format!("{name}/=2"),
        format!("{name}={name}>>1"),
        format!("{name}={name}/2"),
    ];
    if !halves.contains(&update) {
        return None;
    }
    let list = statements(node.child_by_field_name("body")?);
    let is_barrier =
        |node: &Node| context.text(*node).split_whitespace().collect::<String>() == "__syncthreads();";
    if !list.iter().any(is_barrier) {
        return None;
    }
    let mut list: Vec<Node> = list.into_iter().filter(|node| !is_barrier(node)).collect();
    let branch = list.pop().filter(|branch| list.is_empty() && Kind::of(*branch) == Kind::If)?;
    let inner = statements(branch.child_by_field_name("consequence")?);
    let [statement] = inner.as_slice() else { return None };
    let (left, operator, right) = binary(condition(branch)?)?;
    let (thread, limit) = match operator {
        "<" => (left, right),
        ">" => (right, left),
        _ => return None,
    };
    if branch.child_by_field_name("alternative").is_some()
        || context.text(bare(limit)) != name
        || !is_builtin(context, kernel, thread, "threadIdx.x")
    {
        return None;
    }
    let step = statement.named_child(0).filter(|step| Kind::of(*step) == Kind::Assignment)?;
    let (array, _) = element(context, kernel, step.child_by_field_name("left")?, None)?;
    let (own, other) = operands(context, kernel, step, array, stride)?;
    Some(Tree { node, stride, start, condition: asked, array, step, own, other })
}

/// An element of an array at `threadIdx.x`, or at that and a stride: the array, and the stride's factor of one.
fn element<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    node: Node<'c>,
    stride: Option<usize>,
) -> Option<(usize, Node<'c>)> {
    let node = bare(node);
    if Kind::of(node) != Kind::Subscript {
        return None;
    }
    let names = &kernel.walker().names;
    let array = names.resolve(context.text(node.child_by_field_name("argument")?), node.start_byte())?;
    let index = bare(node.child_by_field_name("indices")?.named_child(0)?);
    let Some(stride) = stride else {
        return is_builtin(context, kernel, index, "threadIdx.x").then_some((array, node));
    };
    let (left, operator, right) = binary(index)?;
    let is_stride = |side: Node| {
        let side = bare(side);
        names.resolve(context.text(side), side.start_byte()) == Some(stride)
    };
    let fits = operator == "+"
        && (is_stride(right) && is_builtin(context, kernel, left, "threadIdx.x")
            || is_stride(left) && is_builtin(context, kernel, right, "threadIdx.x"));
    fits.then_some((array, node))
}

/// What a step combines: `a[t]` where it is written out, and `a[t + s]`.
fn operands<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    step: Node<'c>,
    array: usize,
    stride: usize,
) -> Option<(Option<Node<'c>>, Node<'c>)> {
    let right = bare(step.child_by_field_name("right")?);
    let is_own = |node: Node<'c>| element(context, kernel, node, None).is_some_and(|(id, _)| id == array);
    let other = |node: Node<'c>| {
        element(context, kernel, node, Some(stride)).filter(|(id, _)| *id == array).map(|(_, node)| node)
    };
    let operator = step.child_by_field_name("operator")?.kind();
    if let Some(combining) = operator.strip_suffix('=').filter(|combining| !combining.is_empty()) {
        return OPERATORS.contains(&combining).then(|| other(right))?.map(|other| (None, other));
    }
    let pair = match Kind::of(right) {
        Kind::Binary => {
            let (one, operator, two) = binary(right)?;
            OPERATORS.contains(&operator).then_some([one, two])?
        }
        Kind::Call => {
            let name = context.text(right.child_by_field_name("function")?);
            let arguments = right.child_by_field_name("arguments")?;
            let known = FUNCTIONS.contains(&name.trim_start_matches("std::").trim_start_matches("::"));
            (known && arguments.named_child_count() == 2 && !context.defines(name))
                .then_some([arguments.named_child(0)?, arguments.named_child(1)?])?
        }
        _ => return None,
    };
    match pair {
        [one, two] if is_own(one) => other(two).map(|two| (Some(bare(one)), two)),
        [one, two] if is_own(two) => other(one).map(|one| (Some(bare(two)), one)),
        _ => None,
    }
}

/// A type whose values a shuffle can move, as written; `None` for others.
pub fn shuffled_type(class: &str, ty: Type) -> Option<String> {
    let words: Vec<&str> = class.split_whitespace().filter(|w| !matches!(*w, "const" | "volatile")).collect();
    let single = Type { pointers: 0, ..ty };
    let fits = (single.is_float() || single.is_double() || single.is_integer())
        && matches!(single.bytes(), Some(4 | 8));
    fits.then(|| words.join(" "))
}

/// What the blocks of all launches have in common, for a reduction: one row of so many threads, whole warps, two at least.
pub fn row_of_warps(context: &Context, kernel: &Function, launched: &Launched) -> Result<Vec<i64>, String> {
    let blocks = blocks(context, launched)?;
    for [x, y, z] in &blocks {
        if *y != 1 || *z != 1 {
            return Err(format!("`{}` is launched with blocks of more than one row", kernel.outline.name));
        }
        if *x < 2 * WARP || x % WARP != 0 {
            return Err(format!("a block of {x} threads is not two whole warps or more"));
        }
    }
    Ok(blocks.into_iter().map(|[x, ..]| x).collect())
}

/// That all threads of the block reach `statement`: it stands in the kernel's own block or loops that all threads go through
/// alike, and no thread has left before.
pub fn all_arrive(context: &Context, kernel: &Function, statement: Node) -> Result<(), String> {
    if statement.parent().and_then(|parent| parent.parent()) != Some(kernel.node) {
        return Err("the reduction stands inside another branch or loop".to_owned());
    }
    let leaves = |node: &Node| Kind::of(*node) == Kind::Return && node.start_byte() < statement.start_byte();
    match nodes(kernel.node).find(leaves) {
        Some(node) => Err(format!("threads may leave at line {} before it", context.line(node.start_byte()))),
        None => Ok(()),
    }
}

/// Who reads the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Thread 0 alone, which has it.
    First,
    /// All threads.
    All,
}

/// Who reads the array after `place`: its first element alone, until all threads write the array anew.
///
/// # Errors
/// Where something else of it is read, or it is used in a way that can't be followed.
pub fn readers<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    array: usize,
    place: Span,
) -> Result<Readers, String> {
    let name = kernel.walker().names.variables[array].name;
    let is_element = |node: Node| {
        node.parent().is_some_and(|parent| {
            Kind::of(parent) == Kind::Subscript
                && parent.child_by_field_name("argument") == Some(node)
                && parent.parent().is_none_or(|outer| Kind::of(outer) != Kind::Pointer)
        })
    };
    let all = uses(context, kernel, array);
    let aliased = all.iter().find(|node| !is_element(**node) && !place.contains(span(**node)));
    if let Some(node) = aliased {
        let line = context.line(node.start_byte());
        return Err(format!("`{name}` is also used as a pointer at line {line}"));
    }
    let mut found = Readers::First;
    for access in all.iter().filter(|node| node.start_byte() >= place.end).filter_map(|node| node.parent()) {
        if is_written_by_all(context, kernel, access) {
            break;
        }
        let line = context.line(access.start_byte());
        let index = access.child_by_field_name("indices").and_then(|indices| indices.named_child(0));
        let is_zero = index.is_some_and(|index| value(context, kernel, index, None) == Some(0));
        let is_own = index.is_some_and(|index| is_builtin(context, kernel, index, "threadIdx.x"));
        let is_first = is_for_first(context, kernel, access);
        if !(is_zero || is_own && is_first) {
            return Err(format!("more of `{name}` than its first element is used at line {line}"));
        }
        if !is_first {
            found = Readers::All;
        }
    }
    Ok(found)
}

/// Whether `access` is the left side of `a[threadIdx.x] = …;` in the kernel's own block: from there on nothing is left of what the
/// reduction put into the first elements. (Its right side comes later in the text, and reads an element at most that was
/// looked at.)
fn is_written_by_all<'c>(context: &Context<'c>, kernel: &Function<'c>, access: Node<'c>) -> bool {
    let Some(assignment) = access.parent().filter(|parent| Kind::of(*parent) == Kind::Assignment) else {
        return false;
    };
    let is_plain = assignment.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "=")
        && assignment.child_by_field_name("left") == Some(access);
    let name = access.child_by_field_name("argument").map_or("", |name| context.text(name));
    let right = assignment.child_by_field_name("right");
    let reads_itself = right.is_none_or(|right| nodes(right).any(|node| context.text(node) == name));
    let index = access.child_by_field_name("indices").and_then(|indices| indices.named_child(0));
    let body = assignment.parent().and_then(|statement| statement.parent()).and_then(|block| block.parent());
    is_plain
        && !reads_itself
        && body == Some(kernel.node)
        && index.is_some_and(|index| is_builtin(context, kernel, index, "threadIdx.x"))
}

/// Whether all threads wait for each other between `from` and the first use of the array after it.
pub fn waits_before_use<'c>(context: &Context<'c>, kernel: &Function<'c>, array: usize, from: usize) -> bool {
    let first = uses(context, kernel, array).into_iter().map(|node| node.start_byte()).find(|at| *at >= from);
    super::statements::body(kernel).into_iter().any(|statement| {
        let text = context.text(statement).split_whitespace().collect::<String>();
        text == "__syncthreads();"
            && statement.start_byte() >= from
            && first.is_none_or(|first| statement.end_byte() <= first)
    })
}

/// Whether `node` stands in an `if` for `threadIdx.x == 0`.
fn is_for_first<'c>(context: &Context<'c>, kernel: &Function<'c>, node: Node<'c>) -> bool {
    let mut at = node;
    while let Some(parent) = at.parent() {
        if Kind::of(parent) == Kind::If
            && parent.child_by_field_name("consequence") == Some(at)
            && condition(parent).is_some_and(|asked| asks_for_first(context, kernel, asked))
        {
            return true;
        }
        at = parent;
    }
    false
}

fn asks_for_first<'c>(context: &Context<'c>, kernel: &Function<'c>, asked: Node<'c>) -> bool {
    let asked = bare(asked);
    let is_thread = |node: Node<'c>| is_builtin(context, kernel, node, "threadIdx.x");
    if Kind::of(asked) == Kind::Unary {
        let is_not = asked.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "!");
        return is_not && asked.child_by_field_name("argument").is_some_and(is_thread);
    }
    let number = |node: Node<'c>| value(context, kernel, node, None);
    match binary(asked) {
        Some((left, "&&", right)) => {
            asks_for_first(context, kernel, left) || asks_for_first(context, kernel, right)
        }
        Some((left, "==", right)) => {
            is_thread(left) && number(right) == Some(0) || is_thread(right) && number(left) == Some(0)
        }
        Some((left, "<", right)) => is_thread(left) && number(right) == Some(1),
        _ => false,
    }
}

/// The stride at which the loop ends, if its condition is one of those for "more than none".
fn goes_to_one<'c>(context: &Context<'c>, kernel: &Function<'c>, tree: &Tree<'c>) -> bool {
    let name = kernel.walker().names.variables[tree.stride].name;
    let is_stride = |node: Node| context.text(bare(node)) == name;
    let number = |node: Node<'c>| value(context, kernel, node, None);
    match binary(tree.condition) {
        Some((left, ">" | "!=", right)) => is_stride(left) && number(right) == Some(0),
        Some((left, ">=", right)) => is_stride(left) && number(right) == Some(1),
        _ => is_stride(tree.condition),
    }
}

/// Whether the loop leaves the last steps to something else: `s > 32`.
fn stops_early<'c>(context: &Context<'c>, kernel: &Function<'c>, tree: &Tree<'c>) -> bool {
    binary(tree.condition).is_some_and(|(_, _, right)| value(context, kernel, right, None) >= Some(WARP / 2))
}

fn rewrite<'c>(context: &Context<'c>, kernel: &Function<'c>, tree: &Tree<'c>) -> Result<Proposal, String> {
    context.is_whole(kernel)?;
    let names = &kernel.walker().names;
    let array = &names.variables[tree.array];
    let stride = &names.variables[tree.stride];
    if !goes_to_one(context, kernel, tree) {
        return Err(format!("`{}` does not go down to 1", stride.name));
    }
    if array.storage != Storage::Shared || array.dimensions.len() != 1 || stride.is_reference {
        return Err(format!("`{}` is no array in shared memory", array.name));
    }
    let launched = launches_of(context, kernel)?;
    let rows = row_of_warps(context, kernel, &launched)?;
    let Some(ty) = shuffled_type(array.class, array.ty) else {
        return Err(format!("the type of `{}` is not known to fit a shuffle", array.name));
    };
    for row in &rows {
        let first = value(context, kernel, tree.start, Some([*row, 1, 1]));
        let is_power = |start: i64| start >= WARP && start.count_ones() == 1;
        if !first.is_some_and(is_power) {
            return Err(format!(
                "with {row} threads the strides are not known to be powers of two from 32 on: `{}` starts as `{}`",
                stride.name,
                context.text(tree.start)
            ));
        }
    }
    all_arrive(context, kernel, tree.node)?;
    let readers = readers(context, kernel, tree.array, span(tree.node))?;
    let used_after =
        uses(context, kernel, tree.stride).into_iter().any(|node| node.start_byte() >= tree.node.end_byte());
    if used_after {
        return Err(format!("`{}` is used after the loop", stride.name));
    }
    let waits = waits_before_use(context, kernel, tree.array, tree.node.end_byte());
    let edits = edits(context, kernel, tree, &ty, readers == Readers::All && !waits);
    let title = format!("Finish the reduction of `{}` with warp shuffles", array.name);
    let gain = Gain::Instructions {
        words: "five barriers less for each reduction, and registers in place of shared memory in the last five steps"
            .to_owned(),
    };
    let place = Span::new(tree.node.start_byte(), tree.condition.end_byte());
    let mut rewrite = RULE.rewrite(place, title, edits, gain);
    let sizes: Vec<String> = rows.iter().map(i64::to_string).collect();
    rewrite.proven = vec![
        format!("{} has {} threads a block, in one row", in_words(context, &launched), sizes.join(" or ")),
        "all threads of the block reach the reduction, and so all 32 lanes of the first warp".to_owned(),
        format!("after it, no more of `{}` is read than its first element", array.name),
        "the same values are combined in the same order".to_owned(),
    ];
    rewrite.assumed = launched.assumed;
    Ok(Proposal::Rewrite(rewrite))
}

fn edits<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    tree: &Tree<'c>,
    ty: &str,
    wait: bool,
) -> Vec<Edit> {
    let names = &kernel.walker().names;
    let (array, stride) = (names.variables[tree.array].name, names.variables[tree.stride].name);
    let own = context.indentation(tree.node.start_byte());
    let unit = context.indentation_unit(kernel);
    let left = tree.step.child_by_field_name("left").map_or("", |left| context.text(left));
    let thread = left.split_once('[').map_or("threadIdx.x", |(_, rest)| rest.trim_end_matches(']').trim());
    let is_visible = thread.contains('.') || names.resolve(thread, tree.node.end_byte()).is_some();
    let thread = if is_visible { thread } else { "threadIdx.x" };
    let held = unused_name(context, kernel, "value");
    let offset = unused_name(context, kernel, "offset");
    let shuffle = format!("__shfl_down_sync(0xffffffffu, {held}, {offset})");
    let step = step_text(context, tree, &held, &shuffle);
    let mut lines = vec![
        String::new(),
        format!("{own}if ({thread} < {WARP}) {{"),
        format!("{own}{unit}{ty} {held} = {array}[{thread}];"),
        format!("{own}{unit}for (int {offset} = {}; {offset} > 0; {offset} /= 2) {{", WARP / 2),
        format!("{own}{unit}{unit}{step};"),
        format!("{own}{unit}}}"),
        format!("{own}{unit}if ({thread} == 0) {{"),
        format!("{own}{unit}{unit}{array}[0] = {held};"),
        format!("{own}{unit}}}"),
        format!("{own}}}"),
    ];
    if wait {
        lines.push(format!("{own}__syncthreads();"));
    }
    vec![
        Edit::replace(span(tree.condition), format!("{stride} >= {WARP}")),
        Edit::insert(tree.node.end_byte(), lines.join("\n")),
    ]
}

/// The step with registers in place of the array's elements.
fn step_text(context: &Context, tree: &Tree, held: &str, shuffle: &str) -> String {
    let right = tree.step.child_by_field_name("right");
    let Some(right) = right.filter(|_| tree.own.is_some()) else {
        let operator = tree.step.child_by_field_name("operator").map_or("+=", |operator| operator.kind());
        return format!("{held} {operator} {shuffle}");
    };
    let mut parts = [(span(tree.other), shuffle), (tree.own.map_or(span(tree.other), span), held)];
    parts.sort_by_key(|(place, _)| place.start);
    let text = context.text(right);
    let [(first, one), (second, two)] = parts;
    let at = |byte: usize| byte - right.start_byte();
    format!(
        "{held} = {}{one}{}{two}{}",
        &text[..at(first.start)],
        &text[at(first.end)..at(second.start)],
        &text[at(second.end)..]
    )
}
