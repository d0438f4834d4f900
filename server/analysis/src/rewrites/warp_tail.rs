//! The classic unrolled tail of a reduction, `v[t] += v[t + 32]; v[t] += v[t + 16]; …` by one warp without barriers, as shuffles.
//!
//! It was right while the lanes of a warp ran in step. Since Volta they need not, and `volatile` does not make them: without
//! `__syncwarp` between the steps, a lane may read what another has not written yet or has written already. With shuffles the lanes
//! meet at each step. In the order that was meant, lane 0 combines the same values, so that its result is the same to the last bit.

use stitch_findings::Span;
use tree_sitter::Node;

use super::context::span;
use super::expression::unused_name;
use super::launched::{in_words, launches_of};
use super::statements::{bare, binary, condition, fixed_value, statements};
use super::threads::{is_builtin, is_uniform, value};
use super::uses::nodes;
use super::warp_shuffle::{
    RULE, Readers, WARP, all_arrive, readers, row_of_warps, shuffled_type, waits_before_use,
};
use super::{Context, Edit, Function, Gain, Proposal};
use crate::outline::FunctionKind;
use crate::rules::kind::Kind;
use crate::rules::names::Storage;

/// `v[t] = v[t] op v[t + distance]`, perhaps under a condition that is the same for all threads.
struct Step<'c> {
    /// With its condition.
    statement: Node<'c>,
    assignment: Node<'c>,
    /// `v[t]` on the right side, where it is written out.
    own: Option<Node<'c>>,
    other: Node<'c>,
    distance: i64,
    /// `v` and `t`.
    array: usize,
    index: &'c str,
}

pub(super) fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for function in context.device_functions() {
        for block in nodes(function.node).filter(|node| Kind::of(*node) == Kind::Compound) {
            let Some(steps) = tail(context, function, block) else { continue };
            let place =
                Span::new(steps[0].statement.start_byte(), steps[steps.len() - 1].statement.end_byte());
            let proposal = rewrite(context, function, block, &steps);
            proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(place, reason)));
        }
    }
    proposals
}

/// The steps of a block from stride 32 or 16 down to 1, with nothing but `__syncwarp()` between them.
fn tail<'c>(context: &Context<'c>, function: &Function<'c>, block: Node<'c>) -> Option<Vec<Step<'c>>> {
    let is_wait = |node: &Node| context.text(*node).trim_end_matches(';').trim() == "__syncwarp()";
    let mut found: Vec<Step> = Vec::new();
    for statement in statements(block) {
        match step(context, function, statement) {
            Some(step) => {
                let follows = match found.last() {
                    None => matches!(step.distance, 16 | 32),
                    Some(last) => {
                        step.distance * 2 == last.distance
                            && (step.array, step.index) == (last.array, last.index)
                    }
                };
                if !follows {
                    return None;
                }
                found.push(step);
            }
            None if found.is_empty() || is_wait(&statement) => {}
            None => break,
        }
    }
    found.last().is_some_and(|last| last.distance == 1).then_some(found)
}

fn step<'c>(context: &Context<'c>, function: &Function<'c>, statement: Node<'c>) -> Option<Step<'c>> {
    let mut inner = statement;
    if Kind::of(statement) == Kind::If {
        let asked = condition(statement)?;
        let list = statements(statement.child_by_field_name("consequence")?);
        let is_same =
            is_uniform(context, function, asked) && statement.child_by_field_name("alternative").is_none();
        inner = *list.first().filter(|_| is_same && list.len() == 1)?;
    }
    let assignment = inner.named_child(0).filter(|node| Kind::of(*node) == Kind::Assignment)?;
    let left = assignment.child_by_field_name("left")?;
    let (array, index, 0) = element(context, function, left)? else { return None };
    let right = bare(assignment.child_by_field_name("right")?);
    let same =
        |node: Node<'c>| element(context, function, node).filter(|(a, i, _)| (*a, *i) == (array, index));
    let operator = assignment.child_by_field_name("operator")?.kind();
    let combines = |operator: &str| matches!(operator, "+" | "*" | "&" | "|" | "^");
    let (own, other) = if operator != "=" {
        combines(operator.strip_suffix('=')?).then_some((None, right))?
    } else {
        let (one, two) = match Kind::of(right) {
            Kind::Binary => {
                let (one, operator, two) = binary(right)?;
                combines(operator).then_some((one, two))?
            }
            Kind::Call => {
                let name = context.text(right.child_by_field_name("function")?);
                let arguments = right.child_by_field_name("arguments")?;
                let known = matches!(name, "min" | "max" | "fminf" | "fmaxf" | "fmin" | "fmax");
                (known && arguments.named_child_count() == 2 && !context.defines(name))
                    .then_some((arguments.named_child(0)?, arguments.named_child(1)?))?
            }
            _ => return None,
        };
        if same(one)?.2 == 0 { (Some(one), two) } else { (Some(two), one) }
    };
    let distance = same(other)?.2;
    let is_own = own.is_none_or(|own| same(own).is_some_and(|(.., distance)| distance == 0));
    (is_own && distance > 0).then_some(Step { statement, assignment, own, other, distance, array, index })
}

/// `v[t]` or `v[t + number]`: the array, the text of `t`, and the number.
fn element<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    node: Node<'c>,
) -> Option<(usize, &'c str, i64)> {
    let node = bare(node);
    if Kind::of(node) != Kind::Subscript {
        return None;
    }
    let names = &function.walker().names;
    let array = names.resolve(context.text(node.child_by_field_name("argument")?), node.start_byte())?;
    let index = bare(node.child_by_field_name("indices")?.named_child(0)?);
    if let Some((left, "+", right)) = binary(index) {
        return match (value(context, function, left, None), value(context, function, right, None)) {
            (None, Some(number)) => Some((array, context.text(bare(left)), number)),
            (Some(number), None) => Some((array, context.text(bare(right)), number)),
            _ => None,
        };
    }
    let is_name = matches!(Kind::of(index), Kind::Identifier | Kind::Field);
    is_name.then(|| (array, context.text(index), 0))
}

/// What was shown about the kernel in which the tail runs.
type Shown = (Vec<String>, Vec<String>);

fn rewrite<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    block: Node<'c>,
    steps: &[Step<'c>],
) -> Result<Proposal, String> {
    context.is_whole(function)?;
    let variable = &function.walker().names.variables[steps[0].array];
    let Some(ty) = shuffled_type(variable.class, variable.ty) else {
        return Err(format!("the type of `{}` is not known to fit a shuffle", variable.name));
    };
    let (proven, assumed) = if function.outline.kind == FunctionKind::Kernel {
        in_kernel(context, function, block, steps)?
    } else {
        in_callers(context, function, block, steps)?
    };
    let place = Span::new(steps[0].statement.start_byte(), steps[steps.len() - 1].statement.end_byte());
    let title = format!("Finish the reduction of `{}` with warp shuffles", variable.name);
    let words = "registers in place of shared memory for the last steps, which without `__syncwarp` are a race since Volta";
    let gain = Gain::Instructions { words: words.to_owned() };
    let mut rewrite = RULE.rewrite(place, title, edits(context, function, steps, &ty), gain);
    rewrite.proven = proven;
    rewrite.assumed = assumed;
    Ok(Proposal::Rewrite(rewrite))
}

/// The tail stands in a kernel, in `if (t < 32) { … }`.
fn in_kernel<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    block: Node<'c>,
    steps: &[Step<'c>],
) -> Result<Shown, String> {
    let names = &kernel.walker().names;
    let branch = block.parent().filter(|parent| Kind::of(*parent) == Kind::If);
    let branch = branch.ok_or("the steps are not those of the first warp alone")?;
    let first = steps[0].assignment.child_by_field_name("left").ok_or("the steps could not be read")?;
    let index = first.child_by_field_name("indices").and_then(|indices| indices.named_child(0));
    if !index.is_some_and(|index| is_builtin(context, kernel, index, "threadIdx.x")) {
        return Err(format!("`{}` is not `threadIdx.x`", steps[0].index));
    }
    let mut array = steps[0].array;
    if names.variables[array].storage == Storage::Local {
        let argument = first.child_by_field_name("argument").ok_or("the steps could not be read")?;
        let target = fixed_value(context, kernel, argument).map(bare);
        let target = target.and_then(|target| names.resolve(context.text(target), target.start_byte()));
        array =
            target.ok_or_else(|| format!("what `{}` points to is not known", names.variables[array].name))?;
    }
    shown(context, kernel, branch, array)
}

/// That the branch is that of the first warp of a block whose result thread 0 alone reads.
fn shown<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    branch: Node<'c>,
    array: usize,
) -> Result<Shown, String> {
    context.is_whole(kernel)?;
    let line = context.line(branch.start_byte());
    let asked = condition(branch).ok_or("the branch around the steps could not be read")?;
    let is_first_warp = match binary(asked) {
        Some((left, "<", right)) => {
            is_builtin(context, kernel, left, "threadIdx.x")
                && value(context, kernel, right, None) == Some(WARP)
        }
        Some((left, "<=", right)) => {
            is_builtin(context, kernel, left, "threadIdx.x")
                && value(context, kernel, right, None) == Some(WARP - 1)
        }
        _ => false,
    };
    if !is_first_warp || branch.child_by_field_name("alternative").is_some() {
        return Err(format!("the branch at line {line} is not for the first {WARP} threads"));
    }
    let variable = &kernel.walker().names.variables[array];
    if variable.storage != Storage::Shared || variable.dimensions.len() != 1 {
        return Err(format!("`{}` is no array in shared memory", variable.name));
    }
    all_arrive(context, kernel, branch)?;
    let launched = launches_of(context, kernel)?;
    let rows = row_of_warps(context, kernel, &launched)?;
    if readers(context, kernel, array, span(branch))? == Readers::All
        && !waits_before_use(context, kernel, array, branch.end_byte())
    {
        return Err(format!("`{}` is read by other threads than the first without a barrier", variable.name));
    }
    let sizes: Vec<String> = rows.iter().map(i64::to_string).collect();
    let proven = vec![
        format!("{} has {} threads a block, in one row", in_words(context, &launched), sizes.join(" or ")),
        format!("the branch at line {line} is taken by all 32 lanes of the first warp, and by no others"),
        format!("after it, no more of `{}` is read than its first element", variable.name),
    ];
    Ok((proven, launched.assumed))
}

/// The tail is a function of its own, `warpReduce(v, t)`.
fn in_callers<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    block: Node<'c>,
    steps: &[Step<'c>],
) -> Result<Shown, String> {
    let name = function.outline.name.as_str();
    let at = |wanted: &str| function.outline.parameters.iter().position(|parameter| parameter.name == wanted);
    let array_name = function.walker().names.variables[steps[0].array].name;
    let (Some(array), Some(index)) = (at(array_name), at(steps[0].index)) else {
        return Err(format!("`{name}` takes its array or its index from elsewhere"));
    };
    let is_all = block.parent() == Some(function.node) && statements(block).len() >= steps.len();
    let others = statements(block).into_iter().filter(|node| !steps.iter().any(|s| s.statement == *node));
    let are_waits = others.into_iter().all(|node| context.text(node).contains("__syncwarp"));
    let written =
        function.walker().names.variables.iter().any(|v| v.name == steps[0].index && !v.writes.is_empty());
    if !is_all || !are_waits || written {
        return Err(format!("`{name}` does more than these steps"));
    }
    let same = |f: &&crate::Function| f.name == name && f.is_definition;
    if context.outline.functions.iter().filter(same).count() != 1 {
        return Err(format!("more than one function is called `{name}`"));
    }
    if context.directives.is_header {
        return Err(format!("this is a header: other files may call `{name}`"));
    }
    let bytes = context.source.as_bytes();
    let mut mentions = context.tokens.iter().filter(|token| token.text(bytes) == name.as_bytes()).count();
    mentions -= context.outline.functions.iter().filter(|f| f.name == name).count().min(mentions);
    let (mut proven, mut assumed) = (Vec::new(), Vec::new());
    let mut calls = 0;
    for kernel in context.kernels() {
        for call in nodes(kernel.node).filter(|node| Kind::of(*node) == Kind::Call) {
            let callee = call.child_by_field_name("function").map_or("", |callee| context.text(callee));
            if callee.split('<').next().map(str::trim) != Some(name) {
                continue;
            }
            calls += 1;
            let (more, also) = at_call(context, kernel, call, [array, index])?;
            proven.extend(more);
            assumed.extend(also);
        }
    }
    if calls == 0 || calls != mentions {
        return Err(format!("not all uses of `{name}` are calls by kernels of this file"));
    }
    assumed.dedup();
    Ok((proven, assumed))
}

fn at_call<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    call: Node<'c>,
    [array, index]: [usize; 2],
) -> Result<Shown, String> {
    let line = context.line(call.start_byte());
    let arguments = call.child_by_field_name("arguments");
    let argument = |at: usize| arguments.and_then(|arguments| arguments.named_child(u32::try_from(at).ok()?));
    let (Some(array), Some(index)) = (argument(array), argument(index)) else {
        return Err(format!("the arguments of the call at line {line} could not be read"));
    };
    if !is_builtin(context, kernel, index, "threadIdx.x") {
        return Err(format!("the call at line {line} is not with `threadIdx.x`"));
    }
    let array = kernel.walker().names.resolve(context.text(bare(array)), array.start_byte());
    let array = array.ok_or_else(|| format!("the call at line {line} is not with an array of the kernel"))?;
    let statement = call.parent().filter(|parent| Kind::of(*parent) == Kind::ExpressionStatement);
    let mut branch = statement.and_then(|statement| statement.parent());
    if let Some(block) =
        branch.filter(|block| Kind::of(*block) == Kind::Compound && statements(*block).len() == 1)
    {
        branch = block.parent();
    }
    let branch = branch.filter(|branch| Kind::of(*branch) == Kind::If);
    let branch = branch.ok_or_else(|| format!("the call at line {line} is not for the first warp alone"))?;
    shown(context, kernel, branch, array)
}

fn edits<'c>(context: &Context<'c>, function: &Function<'c>, steps: &[Step<'c>], ty: &str) -> Vec<Edit> {
    let array = function.walker().names.variables[steps[0].array].name;
    let index = steps[0].index;
    let held = unused_name(context, function, "value");
    let own = context.indentation(steps[0].statement.start_byte());
    let first = steps[0].statement.start_byte();
    let mut edits = vec![Edit::insert(first, format!("{ty} {held} = {array}[{index}];\n{own}"))];
    for step in steps {
        let other = match step.distance {
            WARP => context.text(step.other).to_owned(),
            distance => format!("__shfl_down_sync(0xffffffffu, {held}, {distance})"),
        };
        if let Some(left) = step.assignment.child_by_field_name("left") {
            edits.push(Edit::replace(span(left), held.clone()));
        }
        edits.extend(step.own.map(|own| Edit::replace(span(own), held.clone())));
        if step.distance != WARP {
            edits.push(Edit::replace(span(step.other), other));
        }
    }
    let last = steps[steps.len() - 1].statement.end_byte();
    edits.push(Edit::insert(last, format!("\n{own}if ({index} == 0) {array}[0] = {held};")));
    edits
}
