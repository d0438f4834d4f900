//! `rewrite/warp-aggregated-atomics`: one atomic for a warp in place of one for each lane, where all go to one address.
//!
//! Two kinds. A counter, `atomicAdd(&count, 1)`: the lanes that are there are counted, one of them adds the count, and each gets
//! its own number from what that one was told. A sum, `atomicAdd(out, v)` as the last thing a kernel does: the lanes of a warp
//! add their values by shuffles first. Both need only that the address is the same for all lanes, which is shown of what it is
//! made of.

use stitch_findings::Code;
use tree_sitter::Node;

use super::context::span;
use super::expression::{has_no_effect, macro_around, unused_name};
use super::launched::{blocks, in_words, launches_of};
use super::statements::{bare, body, condition, statements};
use super::threads::{is_uniform, names_builtin, value};
use super::uses::nodes;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::outline::FunctionKind;
use crate::rules::facts::Call;
use crate::rules::kind::Kind;
use crate::rules::types::Type;
use crate::rules::value::Memory;

/// The rule.
pub static RULE: Rule =
    Rule { code: Code::WARP_AGGREGATED_ATOMICS, title: "Do one atomic for a warp", finding: None, find };

/// Lanes of a warp.
const WARP: i64 = 32;

/// `atomicAdd(address, value)`.
struct Add<'c> {
    call: Node<'c>,
    address: Node<'c>,
    value: Node<'c>,
    /// What stands at the address.
    element: Type,
    /// Whether its result is dropped.
    is_statement: bool,
}

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for function in context.device_functions() {
        for call in function.walker().facts.calls.iter().filter(|call| call.name == "atomicAdd") {
            let Some(add) = add(context, function, call) else { continue };
            let is_counter = value(context, function, add.value, None) == Some(1);
            let result = if is_counter {
                count(context, function, &add)
            } else if add.is_statement && !is_for_few(context, function, call.node) {
                sum(context, function, &add)
            } else {
                continue;
            };
            proposals.push(result.unwrap_or_else(|reason| RULE.refuse(span(call.node), reason)));
        }
    }
    proposals
}

fn add<'c>(context: &Context<'c>, function: &Function<'c>, call: &Call<'c>) -> Option<Add<'c>> {
    let arguments = call.node.child_by_field_name("arguments")?;
    let (address, value) = (arguments.named_child(0)?, arguments.named_child(1)?);
    // A single thread, or the leader of a warp, adds: nothing is left to put together.
    if is_for_few(context, function, call.node) {
        return None;
    }
    let element = element(context, function, address);
    Some(Add { call: call.node, address, value, element, is_statement: call.is_statement })
}

/// The type of what an address points to.
fn element<'c>(context: &Context<'c>, function: &Function<'c>, address: Node<'c>) -> Type {
    let mut at = bare(address);
    let mut depth = 1i16;
    loop {
        let inner = match Kind::of(at) {
            Kind::Pointer => {
                depth += if at.child(0).is_some_and(|first| first.kind() == "&") { -1 } else { 1 };
                at.child_by_field_name("argument")
            }
            Kind::Subscript => {
                depth += 1;
                at.child_by_field_name("argument")
            }
            Kind::Binary => at.child_by_field_name("left"),
            _ => break,
        };
        match inner {
            Some(inner) => at = bare(inner),
            None => return Type::UNKNOWN,
        }
    }
    let walker = function.walker();
    let ty = match walker.names.resolve(context.text(at), at.start_byte()) {
        Some(id) => walker.names.variables[id].ty,
        None => context.environment.global(context.text(at)).map_or(Type::UNKNOWN, |global| global.ty),
    };
    if i16::from(ty.pointers) == depth { Type { pointers: 0, ..ty } } else { Type::UNKNOWN }
}

/// The type as CUDA's `atomicAdd` names it.
fn written(element: Type, text: &str) -> Option<&'static str> {
    let is_unsigned = text.contains("unsigned") || text.contains("uint") || text.contains("size_t");
    match (element.bytes(), element) {
        (Some(4), ty) if ty.is_float() => Some("float"),
        (Some(8), ty) if ty.is_double() => Some("double"),
        (Some(4), ty) if ty.is_integer() => Some(if is_unsigned { "unsigned int" } else { "int" }),
        (Some(8), ty) if ty.is_integer() && is_unsigned => Some("unsigned long long"),
        _ => None,
    }
}

/// The type as written of the variable that an address begins with.
fn class_of<'c>(context: &Context<'c>, function: &Function<'c>, address: Node<'c>) -> &'c str {
    let first = nodes(address).find(|node| Kind::of(*node) == Kind::Identifier);
    let Some(first) = first else { return "" };
    let names = &function.walker().names;
    if let Some(id) = names.resolve(context.text(first), first.start_byte()) {
        return names.variables[id].class;
    }
    let bytes = context.source.as_bytes();
    let name = context.text(first);
    let declared = context.tokens.iter().find(|token| token.text(bytes) == name.as_bytes());
    declared.map_or("", |token| {
        let start = context.source[..token.start].rfind([';', '}', '\n']).map_or(0, |at| at + 1);
        &context.source[start..token.start]
    })
}

/// Whether `node` is reached by few lanes of a warp: in an `if` that asks for one thread, or one lane.
fn is_for_few<'c>(context: &Context<'c>, function: &Function<'c>, node: Node<'c>) -> bool {
    let mut at = node;
    while let Some(parent) = at.parent() {
        if Kind::of(parent) == Kind::If && parent.child_by_field_name("consequence") == Some(at) {
            let few = condition(parent).is_some_and(|asked| {
                nodes(asked).any(|part| match Kind::of(part) {
                    Kind::Binary => {
                        part.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "==")
                            && [part.child_by_field_name("left"), part.child_by_field_name("right")]
                                .into_iter()
                                .flatten()
                                .any(|side| is_of_thread(context, function, side))
                    }
                    Kind::Unary => {
                        part.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "!")
                            && is_of_thread(context, function, part)
                    }
                    _ => false,
                })
            });
            if few {
                return true;
            }
        }
        if Kind::of(parent) == Kind::Function {
            return false;
        }
        at = parent;
    }
    false
}

/// Whether a value is made of the thread's number alone.
fn is_of_thread<'c>(context: &Context<'c>, function: &Function<'c>, node: Node<'c>) -> bool {
    let names = &function.walker().names;
    nodes(node).any(|node| {
        if Kind::of(node) != Kind::Identifier {
            return false;
        }
        let text = context.text(node);
        if text == "threadIdx" {
            return true;
        }
        let Some(id) = names.resolve(text, node.start_byte()) else { return false };
        let variable = &names.variables[id];
        variable.initial.is_some_and(|initial| nodes(initial).any(|part| context.text(part) == "threadIdx"))
            || text.to_ascii_lowercase().contains("lane")
    })
}

/// That an address is the same for all lanes, and what stands there.
fn address_is_shared<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    add: &Add<'c>,
) -> Result<(), String> {
    let text = context.text(add.address);
    let address = bare(add.address);
    let is_addressed =
        |node: Node| Kind::of(node) == Kind::Pointer && node.child(0).is_some_and(|o| o.kind() == "&");
    let mut same = is_addressed(address)
        && address.child_by_field_name("argument").is_some_and(|place| {
            let place = bare(place);
            match Kind::of(place) {
                Kind::Identifier => is_storage(context, function, place),
                Kind::Subscript => {
                    let parts = [
                        place.child_by_field_name("argument"),
                        place.child_by_field_name("indices").and_then(|indices| indices.named_child(0)),
                    ];
                    parts.into_iter().all(|part| part.is_some_and(|part| is_uniform(context, function, part)))
                }
                _ => false,
            }
        });
    same |= !is_addressed(address) && is_uniform(context, function, address);
    if !same || !has_no_effect(context, add.address) {
        return Err(format!("`{text}` may differ between the lanes of a warp"));
    }
    Ok(())
}

/// Whether a name is one variable for all threads of a block: in shared memory, or outside the kernel.
fn is_storage(context: &Context, function: &Function, name: Node) -> bool {
    let names = &function.walker().names;
    let text = context.text(name);
    match names.resolve(text, name.start_byte()) {
        Some(id) => names.variables[id].storage == crate::rules::names::Storage::Shared,
        None => context.environment.global(text).is_some_and(|global| global.memory == Memory::Global),
    }
}

/// What the checks for both kinds have in common.
fn ready<'c>(context: &Context<'c>, function: &Function<'c>, add: &Add<'c>) -> Result<&'static str, String> {
    context.is_whole(function)?;
    if context.defines("atomicAdd") {
        return Err("the file has an `atomicAdd` of its own".to_owned());
    }
    if let Some(name) = macro_around(context, add.call) {
        return Err(format!("it is an argument of `{name}`, which may be a macro"));
    }
    if function.outline.kind != FunctionKind::Kernel {
        let name = &function.outline.name;
        return Err(format!("`{name}` is no kernel, so that its arguments may differ between lanes"));
    }
    address_is_shared(context, function, add)?;
    written(add.element, class_of(context, function, add.address))
        .ok_or_else(|| format!("the type of what `{}` points to is not known", context.text(add.address)))
}

/// The lane of a thread: of a block of one row by its number, else by all three.
fn lane<'c>(context: &Context<'c>, function: &Function<'c>) -> String {
    let launched = launches_of(context, function).ok();
    let blocks = launched.and_then(|launched| blocks(context, &launched).ok());
    match blocks {
        Some(blocks) if blocks.iter().all(|[_, y, z]| *y == 1 && *z == 1) => "threadIdx.x % 32".to_owned(),
        _ => "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32".to_owned(),
    }
}

/// Where a helper goes: before the function, its template head and the comments directly above it.
fn helper_place(context: &Context, function: &Function) -> usize {
    let start = function.outline.span.start;
    let line = context.source[..start].rfind('\n').map_or(0, |at| at + 1);
    let mut at = line;
    while let Some(before) = context.source[..at].strip_suffix('\n') {
        let previous = before.rfind('\n').map_or(0, |at| at + 1);
        let text = context.source[previous..at].trim();
        let is_comment = text.starts_with("//") || (text.starts_with("/*") && text.ends_with("*/"));
        if !is_comment {
            break;
        }
        at = previous;
    }
    if context.source[line..start].trim().is_empty() { at } else { start }
}

fn count<'c>(context: &Context<'c>, function: &Function<'c>, add: &Add<'c>) -> Result<Proposal, String> {
    let ty = ready(context, function, add)?;
    if matches!(ty, "float" | "double") {
        return Err("a counter that is no integer may round".to_owned());
    }
    let unit = context.indentation_unit(function);
    let is_shared = is_shared_memory(context, function, add);
    let name = unused_name(context, function, "addOneForWarp");
    let own = context.indentation(function.outline.span.start);
    let mut lines = vec![
        format!("static __device__ {} {name}({ty} *counter) {{", if add.is_statement { "void" } else { ty }),
        format!("{unit}const unsigned int active = __activemask();"),
        format!("{unit}const unsigned int lane = {};", lane(context, function)),
        format!("{unit}const int leader = __ffs(active) - 1;"),
    ];
    if add.is_statement {
        lines.push(format!("{unit}if (lane == leader) {{"));
        lines.push(format!("{unit}{unit}atomicAdd(counter, ({ty})__popc(active));"));
        lines.push(format!("{unit}}}"));
    } else {
        lines.push(format!("{unit}{ty} first = 0;"));
        lines.push(format!("{unit}if (lane == leader) {{"));
        lines.push(format!("{unit}{unit}first = atomicAdd(counter, ({ty})__popc(active));"));
        lines.push(format!("{unit}}}"));
        lines.push(format!("{unit}first = __shfl_sync(active, first, leader);"));
        lines.push(format!("{unit}return first + __popc(active & ((1u << lane) - 1));"));
    }
    lines.push("}".to_owned());
    let mut text: String = lines.iter().map(|line| format!("{own}{line}\n")).collect();
    text.push('\n');
    let callee = add.call.child_by_field_name("function").ok_or("the call could not be read")?;
    let arguments = add.call.child_by_field_name("arguments").ok_or("the call could not be read")?;
    let edits = vec![
        Edit::insert(helper_place(context, function), text),
        Edit::replace(span(callee), name),
        Edit::replace(span(arguments), format!("({})", context.text(add.address))),
    ];
    let title = format!("Count with one atomic for a warp at `{}`", context.text(add.address));
    let words = format!(
        "one atomic for the active lanes of a warp in place of up to {WARP}; where the compiler sees that the address is the same for \
         all lanes it may do so itself{}",
        if is_shared { ", and shared atomics are cheap" } else { "" }
    );
    let mut rewrite = RULE.rewrite(span(add.call), title, edits, Gain::Atomics { words });
    rewrite.proven.push(format!("`{}` is the same for all lanes", context.text(add.address)));
    rewrite.proven.push("1 is added, and integers add up alike in any order".to_owned());
    if !add.is_statement {
        rewrite
            .assumed
            .push("nothing depends on which thread gets which number, which atomics leave open".to_owned());
    }
    Ok(Proposal::Rewrite(rewrite))
}

fn is_shared_memory(context: &Context, function: &Function, add: &Add) -> bool {
    let names = &function.walker().names;
    nodes(add.address).any(|node| {
        Kind::of(node) == Kind::Identifier
            && names
                .resolve(context.text(node), node.start_byte())
                .is_some_and(|id| names.variables[id].storage == crate::rules::names::Storage::Shared)
    })
}

/// The end of a kernel: declarations and other statements, then the addition, perhaps as the last one of an `if`.
struct End<'c> {
    /// The last statement of the kernel.
    last: Node<'c>,
    /// The addition's statement.
    statement: Node<'c>,
}

fn end<'c>(context: &Context<'c>, function: &Function<'c>, add: &Add<'c>) -> Result<End<'c>, String> {
    let statement = add.call.parent().filter(|parent| Kind::of(*parent) == Kind::ExpressionStatement);
    let statement = statement.ok_or("it is a part of another statement")?;
    let last = *body(function).last().ok_or("the kernel is empty")?;
    let mut at = last;
    while at != statement {
        if Kind::of(at) != Kind::If || at.child_by_field_name("alternative").is_some() {
            return Err("it is not the last thing that the kernel does".to_owned());
        }
        let inner = at.child_by_field_name("consequence").map_or_else(Vec::new, statements);
        at = *inner.last().ok_or("it is not the last thing that the kernel does")?;
    }
    if let Some(node) = nodes(function.node).find(|node| Kind::of(*node) == Kind::Return) {
        let line = context.line(node.start_byte());
        return Err(format!("threads may leave at line {line}, and a shuffle needs all lanes of the warp"));
    }
    Ok(End { last, statement })
}

/// That the address can be named outside the guards around the addition, and that these are about single threads: a zero is
/// added where they do not hold.
fn within_guards<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    add: &Add<'c>,
    end: &End<'c>,
) -> Result<(), String> {
    let names = &function.walker().names;
    let inner = nodes(add.address).filter(|node| Kind::of(*node) == Kind::Identifier).find(|node| {
        names.resolve(context.text(*node), node.start_byte()).is_some_and(|id| {
            let start = names.variables[id].visible.start;
            start > end.last.start_byte() && start < end.last.end_byte()
        })
    });
    if let Some(node) = inner {
        return Err(format!("`{}` is known only inside the guard", context.text(node)));
    }
    let mut at = end.statement;
    while at != end.last {
        let Some(parent) = at.parent() else { break };
        at = parent;
        if Kind::of(at) == Kind::If && condition(at).is_some_and(|asked| is_uniform(context, function, asked))
        {
            let line = context.line(at.start_byte());
            return Err(format!(
                "the branch at line {line} decides for whole blocks whether anything is added"
            ));
        }
    }
    Ok(())
}

fn sum<'c>(context: &Context<'c>, function: &Function<'c>, add: &Add<'c>) -> Result<Proposal, String> {
    let ty = ready(context, function, add)?;
    let end = end(context, function, add)?;
    if is_uniform(context, function, add.value) {
        return Err(format!("all lanes add the same `{}`", context.text(add.value)));
    }
    within_guards(context, function, add, &end)?;
    let launched = launches_of(context, function)?;
    let blocks = blocks(context, &launched)?;
    if let Some([x, y, z]) = blocks.iter().find(|block| block.iter().product::<i64>() % WARP != 0) {
        return Err(format!("the last warp of a block of {x} x {y} x {z} threads lacks lanes"));
    }
    let is_row = blocks.iter().all(|[_, y, z]| *y == 1 && *z == 1);
    let unit = context.indentation_unit(function);
    let own = context.indentation(end.last.start_byte());
    let held = unused_name(context, function, "sum");
    let offset = unused_name(context, function, "offset");
    let lane = if is_row {
        "threadIdx.x % 32".to_owned()
    } else if names_builtin(context, function, "threadIdx.z") || blocks.iter().any(|[.., z]| *z != 1) {
        "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32".to_owned()
    } else {
        "(threadIdx.x + blockDim.x * threadIdx.y) % 32".to_owned()
    };
    let lines = [
        String::new(),
        format!("{own}for (int {offset} = 16; {offset} > 0; {offset} /= 2) {{"),
        format!("{own}{unit}{held} += __shfl_down_sync(0xffffffffu, {held}, {offset});"),
        format!("{own}}}"),
        format!("{own}if ({lane} == 0) {{"),
        format!("{own}{unit}atomicAdd({}, {held});", context.text(add.address)),
        format!("{own}}}"),
    ];
    let value = context.text(add.value);
    let mut edits = Vec::new();
    if end.statement == end.last {
        edits.push(Edit::replace(span(end.statement), format!("{ty} {held} = {value};")));
    } else {
        edits.push(Edit::insert(end.last.start_byte(), format!("{ty} {held} = 0;\n{own}")));
        edits.push(Edit::replace(span(end.statement), format!("{held} = {value};")));
    }
    edits.push(Edit::insert(end.last.end_byte(), lines.join("\n")));
    let title = format!("Add up a warp before the atomic at `{}`", context.text(add.address));
    let words = format!("one atomic for a warp in place of {WARP}, after five shuffles");
    let mut rewrite = RULE.rewrite(span(add.call), title, edits, Gain::Atomics { words });
    rewrite.changes_rounding = matches!(ty, "float" | "double");
    rewrite.proven = vec![
        format!("`{}` is the same for all lanes", context.text(add.address)),
        format!("{} has whole warps", in_words(context, &launched)),
        "no thread leaves the kernel before its end".to_owned(),
    ];
    rewrite.assumed = launched.assumed;
    Ok(Proposal::Rewrite(rewrite))
}
