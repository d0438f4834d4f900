//! `rewrite/tiled-transpose`: a copy whose loads or stores go down a column, through a shared tile.
//!
//! The kernel is `if (guard) out[p] = in[q];`, where each thread of a square block computes guard, `p` and `q` from its own
//! number. If the value crosses to the thread with x and y swapped by way of shared memory, that thread can do the strided
//! half, and does it along the row. That holds for any guard and any indices, since swapping x and y only renames the threads
//! of a square block; what the indices are decides only whether it is worthwhile.

use stitch_findings::{Code, Span};
use tree_sitter::Node;

use super::context::span;
use super::expression::has_no_effect;
use super::launched::{Launched, blocks, in_words, launches_of};
use super::statements::{body, condition, is_bare_return, negated, statements};
use super::threads::{is_known, names_builtin};
use super::tile_text::Writer;
use super::uses::nodes;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::facts::Access;
use crate::rules::index::Coefficient;
use crate::rules::kind::Kind;
use crate::rules::types::maths;
use crate::rules::value::Memory;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::TILED_TRANSPOSE,
    title: "Transpose through a shared tile",
    finding: Some(Code::ROW_MAJOR_SLOW_AXIS),
    find,
};

/// The smallest side of a block for which a tile is worth it: 8 words are one sector.
const LEAST_SIDE: i64 = 8;
/// The largest square of threads.
const MOST_SIDE: i64 = 32;
/// Bytes of static shared memory a block: CUDA C++ Programming Guide, "Compute Capabilities".
const MOST_SHARED: i64 = 48 << 10;

/// Which half of the copy is strided.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Strided {
    Load,
    Store,
}

/// What is rewritten.
pub(super) struct Copy<'c> {
    pub(super) store: Access<'c>,
    /// The load that crosses the tile where it is the strided half.
    pub(super) load: Access<'c>,
    pub(super) strided: Strided,
}

fn find(context: &Context) -> Vec<Proposal> {
    let kernels = context.kernels();
    kernels
        .filter_map(|kernel| {
            let copy = strided_copy(kernel)?;
            let place = span(statement_of(copy.store.node));
            let proposal = rewrite(context, kernel, &copy);
            Some(proposal.unwrap_or_else(|reason| RULE.refuse(place, reason)))
        })
        .collect()
}

/// Whether neighbouring threads go along a row, or down a column whose rows are the block's other axis.
fn along(access: &Access) -> Option<bool> {
    let one = Coefficient::Number(1);
    match (access.index.x, access.index.y) {
        (x, Coefficient::Symbol(_)) if x == one => Some(true),
        (x, Coefficient::Number(stride)) if x == one && stride >= LEAST_SIDE => Some(true),
        (Coefficient::Symbol(_), y) if y == one => Some(false),
        (Coefficient::Number(stride), y) if y == one && stride >= LEAST_SIDE => Some(false),
        _ => None,
    }
}

/// The copy in a kernel that stores one element of global memory: strided on one side, along the rows on the other.
fn strided_copy<'c>(kernel: &Function<'c>) -> Option<Copy<'c>> {
    let accesses = &kernel.walker().facts.accesses;
    let global = |access: &&Access| access.base.memory == Memory::Global;
    let mut stores = accesses.iter().filter(global).filter(|access| access.is_store);
    let store = stores.next().filter(|_| stores.next().is_none())?;
    let is_plain = store.node.parent()?;
    let operator = is_plain.child_by_field_name("operator").map_or("", |operator| operator.kind());
    if Kind::of(is_plain) != Kind::Assignment || operator != "=" {
        return None;
    }
    let loads: Vec<&Access> = accesses.iter().filter(global).filter(|access| !access.is_store).collect();
    let wanted = !along(store)?;
    let mut crossing = loads.iter().filter(|load| along(load) == Some(wanted));
    let load = **crossing.next()?;
    if crossing.next().is_some() {
        return None;
    }
    let strided = if wanted { Strided::Store } else { Strided::Load };
    // A load down a column beside the strided store would lose what the store wins.
    (strided == Strided::Load || loads.len() == 1).then_some(Copy { store: *store, load, strided })
}

fn statement_of(expression: Node) -> Node {
    let mut at = expression;
    while let Some(parent) = at.parent() {
        if matches!(Kind::of(at), Kind::ExpressionStatement | Kind::Declaration) {
            break;
        }
        at = parent;
    }
    at
}

/// The kernel as it must be: declarations and guards, then the copy.
pub(super) struct Shape<'c> {
    /// Declarations outside the guard.
    pub(super) outside: Vec<Node<'c>>,
    /// Declarations inside it.
    pub(super) inside: Vec<Node<'c>>,
    /// The conditions that all hold where the copy is made.
    pub(super) guards: Vec<String>,
    /// Their nodes, for what they mention.
    pub(super) conditions: Vec<Node<'c>>,
    /// Where the new code goes: from the first guard to the end of the last statement.
    pub(super) place: Span,
}

impl<'c> Shape<'c> {
    /// Takes an `if` for a guard. Returns what it guards, or `None` in place of that where it leaves the kernel; nothing where it is
    /// no guard.
    fn guard(&mut self, context: &Context<'c>, branch: Node<'c>) -> Option<Option<Node<'c>>> {
        let asked = condition(branch)?;
        let then = branch.child_by_field_name("consequence")?;
        if branch.child_by_field_name("alternative").is_some() || !has_no_effect(context, asked) {
            return None;
        }
        self.conditions.push(asked);
        if is_bare_return(then) {
            self.guards.push(negated(context, asked));
            return Some(None);
        }
        self.guards.push(context.text(asked).to_owned());
        Some(Some(then))
    }
}

fn shape<'c>(context: &Context<'c>, kernel: &Function<'c>, copy: &Copy<'c>) -> Result<Shape<'c>, String> {
    let target = statement_of(copy.store.node);
    let elsewhere = |node: Node| {
        let line = context.line(node.start_byte());
        format!("line {line} is more than an index, a guard or the copy")
    };
    let mut found = Shape {
        outside: Vec::new(),
        inside: Vec::new(),
        guards: Vec::new(),
        conditions: Vec::new(),
        place: Span::new(target.end_byte(), target.end_byte()),
    };
    let top = body(kernel);
    let mut open = top.clone();
    let mut is_inside = false;
    let mut done = false;
    while !open.is_empty() {
        let list = std::mem::take(&mut open);
        let mut rest = list.as_slice();
        while let [statement, after @ ..] = rest {
            rest = after;
            if done {
                return Err(elsewhere(*statement));
            }
            if *statement == target {
                done = true;
                if found.place.is_empty() {
                    found.place = span(*statement);
                }
                continue;
            }
            match Kind::of(*statement) {
                Kind::Declaration if is_inside => found.inside.push(*statement),
                Kind::Declaration => found.outside.push(*statement),
                Kind::If => {
                    if found.place.is_empty() {
                        found.place = span(*statement);
                    }
                    let then = found.guard(context, *statement).ok_or_else(|| elsewhere(*statement))?;
                    is_inside = true;
                    match (then, after) {
                        (None, _) => {}
                        (Some(then), []) => open = statements(then),
                        (Some(_), [next, ..]) => return Err(elsewhere(*next)),
                    }
                }
                _ => return Err(elsewhere(*statement)),
            }
        }
    }
    let end = top.last().map_or(found.place.end, |last| last.end_byte());
    found.place = Span::new(found.place.start, end);
    Ok(found)
}

/// The side of the square blocks of all launches.
fn side(context: &Context, kernel: &Function, launched: &Launched) -> Result<i64, String> {
    let blocks = blocks(context, launched)?;
    let [x, y, z] = blocks[0];
    if blocks.iter().any(|block| *block != blocks[0]) {
        return Err(format!("the launches of `{}` have different blocks", kernel.outline.name));
    }
    if x != y || z != 1 {
        return Err(format!("the block of {x} x {y} x {z} threads is no square"));
    }
    if !(LEAST_SIDE..=MOST_SIDE).contains(&x) {
        return Err(format!("a tile of {x} x {x} is too small or too large"));
    }
    Ok(x)
}

/// Why loads and stores may not change their order: they may be of the same memory.
fn apart(
    context: &Context,
    kernel: &Function,
    launched: &Launched,
    copy: &Copy,
) -> Result<Vec<String>, String> {
    let names = &kernel.walker().names;
    let name_of = |access: &Access| access.base.variable.map(|id| names.variables[id as usize].name);
    let (Some(input), Some(output)) = (name_of(&copy.load), name_of(&copy.store)) else {
        return Err("what is copied is no parameter of the kernel".to_owned());
    };
    if input == output {
        return Err(format!(
            "`{input}` is read and written: an element may be overwritten before it is read"
        ));
    }
    let at = |name: &str| kernel.outline.parameters.iter().position(|parameter| parameter.name == name);
    let (Some(from), Some(to)) = (at(input), at(output)) else {
        return Err("what is copied is no parameter of the kernel".to_owned());
    };
    for launch in &launched.launches {
        if launch.arguments.get(from) == launch.arguments.get(to) {
            let line = context.line(launch.span.start);
            return Err(format!("the launch at line {line} reads and writes the same memory"));
        }
    }
    Ok(vec![format!("`{input}` and `{output}` do not overlap")])
}

fn rewrite<'c>(context: &Context<'c>, kernel: &Function<'c>, copy: &Copy<'c>) -> Result<Proposal, String> {
    context.is_whole(kernel)?;
    let shape = shape(context, kernel, copy)?;
    let launched = launches_of(context, kernel)?;
    let side = side(context, kernel, &launched)?;
    if nodes(kernel.node).any(|node| node.kind() == "__shared__") {
        return Err("the kernel uses shared memory already".to_owned());
    }
    if names_builtin(context, kernel, "threadIdx.z") {
        return Err("the kernel uses `threadIdx.z`".to_owned());
    }
    plain(context, kernel, copy, &shape)?;
    let overlap = apart(context, kernel, &launched, copy)?;
    let moved = match copy.strided {
        Strided::Store => copy.store,
        Strided::Load => copy.load,
    };
    let (Some(element), Some(ty)) = (moved.element.bytes(), element_text(kernel, &moved)) else {
        return Err("the type of the elements is not known here".to_owned());
    };
    if element * side * (side + 1) > MOST_SHARED {
        return Err(format!("a tile of {side} x {} elements does not fit", side + 1));
    }
    let text = Writer { context, kernel, shape: &shape, copy, side, ty }.write()?;
    let title = format!("Transpose by tiles of {side} x {side} in shared memory");
    // A warp is `32 / side` rows of the block: down a column each row's element has a sector of its own, which the next row shares.
    let sectors = (32 / side) * ((side * element + 31) / 32);
    let number = |count: i64| u32::try_from(count).unwrap_or_default();
    let gain = Gain::Sectors { from: number(side), to: number(sectors) };
    let mut rewrite =
        RULE.rewrite(shape.place, title, vec![Edit::replace(shape.place, text.trim_start())], gain);
    rewrite.proven = vec![
        format!("{} has {side} x {side} threads a block", in_words(context, &launched)),
        "the kernel is one guarded copy: no other store, no shared memory, no barrier".to_owned(),
    ];
    rewrite.assumed = launched.assumed;
    rewrite.assumed.extend(overlap);
    Ok(Proposal::Rewrite(rewrite))
}

/// That every name is a variable, a constant or a parameter, so that swapping the threads is swapping these; and that nothing is
/// called but functions of the maths library.
fn plain<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    copy: &Copy<'c>,
    shape: &Shape<'c>,
) -> Result<(), String> {
    let assignment = copy.store.node.parent();
    let all = shape.outside.iter().chain(&shape.inside).chain(&shape.conditions).copied().chain(assignment);
    for node in all.flat_map(nodes) {
        let text = context.text(node);
        if Kind::of(node) == Kind::Call {
            let name = node.child_by_field_name("function").map_or("", |callee| context.text(callee));
            if maths(name).is_none() || context.defines(name) {
                return Err(format!("`{name}` is called"));
            }
        }
        let is_built_in = matches!(text, "threadIdx" | "blockIdx" | "blockDim" | "gridDim");
        if Kind::of(node) == Kind::Identifier
            && !is_built_in
            && node.parent().is_none_or(|parent| !is_declarator(parent, node))
            && kernel.walker().names.resolve(text, node.start_byte()).is_none()
            && maths(text).is_none()
            && !is_known(context, kernel, text)
        {
            return Err(format!("what `{text}` stands for is not known"));
        }
    }
    Ok(())
}

/// Whether a name stands where it is declared.
fn is_declarator(parent: Node, name: Node) -> bool {
    parent.child_by_field_name("declarator") == Some(name) || Kind::of(parent) == Kind::Declaration
}

/// The element type of a pointer parameter, as written.
fn element_text(kernel: &Function, access: &Access) -> Option<String> {
    let names = &kernel.walker().names;
    let variable = &names.variables[access.base.variable? as usize];
    let words = variable.class.split_whitespace().filter(|word| *word != "const").collect::<Vec<_>>();
    (variable.ty.pointers == 1 && variable.dimensions.is_empty() && !words.contains(&"volatile"))
        .then(|| words.join(" "))
}
