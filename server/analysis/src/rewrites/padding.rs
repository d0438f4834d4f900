//! `rewrite/pad-shared-tile`: one more element in each row of a shared tile that is read by column.

use stitch_findings::Code;
use tree_sitter::Node;

use super::context::span;
use super::expression::as_operand;
use super::uses::uses;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::constants::fold;
use crate::rules::index::{Coefficient, WARP};
use crate::rules::kind::Kind;
use crate::rules::names::{Storage, Variable};
use crate::rules::scope::Scope;
use crate::rules::types::Type;
use crate::rules::value::Memory;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::PAD_SHARED_TILE,
    title: "Pad a shared tile against bank conflicts",
    finding: Some(Code::SHARED_BANK_CONFLICT),
    find,
};

/// Shared memory has 32 banks of 4 bytes; addresses this many bytes apart share a bank (CUDA C++ Programming Guide, "Shared Memory").
const BANK_CYCLE: i64 = 128;

/// Most bytes of static shared memory of a block, on every device (CUDA C++ Programming Guide, technical specifications).
const MOST_STATIC: i64 = 48 << 10;

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for function in context.device_functions() {
        let walker = function.walker();
        if context.environment.has_one_column(&function.outline.name) {
            continue;
        }
        let mut conflicts: Vec<(usize, i64)> = Vec::new();
        for access in &walker.facts.accesses {
            let (Coefficient::Number(stride), Some(bytes), Some(id)) =
                (access.index.x, access.element.bytes(), access.base.variable)
            else {
                continue;
            };
            let distance = stride.saturating_mul(bytes).saturating_abs();
            let conflicts_there = access.base.memory == Memory::Shared
                && !access.by_few
                && distance != 0
                && distance % BANK_CYCLE == 0;
            if conflicts_there && !conflicts.iter().any(|(other, _)| *other == id as usize) {
                conflicts.push((id as usize, distance));
            }
        }
        for (id, distance) in conflicts {
            let place = declarator(function, id).map_or(span(function.node), span);
            let proposal = rewrite(context, function, id, distance);
            proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(place, reason)));
        }
    }
    proposals
}

/// The array's declarator: `tile[32][32]`.
fn declarator<'c>(function: &Function<'c>, id: usize) -> Option<Node<'c>> {
    let variable = &function.walker().names.variables[id];
    // It is visible from its end on.
    let end = variable.visible.start;
    let mut node = function.node.descendant_for_byte_range(end.checked_sub(1)?, end)?;
    while node.kind() != "array_declarator" || node.end_byte() != end {
        node = node.parent()?;
    }
    while let Some(parent) = node.parent().filter(|p| p.kind() == "array_declarator" && p.end_byte() == end) {
        node = parent;
    }
    Some(node)
}

fn rewrite(context: &Context, function: &Function, id: usize, distance: i64) -> Result<Proposal, String> {
    context.is_whole(function)?;
    let variable = &function.walker().names.variables[id];
    let name = variable.name;
    let declarator = own_array(context, function, id)?;
    plain_uses(context, function, id)?;
    let sizes =
        sizes(context, function, variable).ok_or_else(|| format!("the size of `{name}` is not known"))?;
    let element = element(variable);
    let bytes =
        element.bytes().ok_or_else(|| format!("the type of the elements of `{name}` is not known"))?;
    // Elements smaller than a bank are padded by a whole one.
    let padding = (4 / bytes).max(1);
    let (Some(inner), Some(row)) = (variable.dimensions.last().copied().flatten(), sizes.last().copied())
    else {
        return Err(format!("the size of `{name}` is not known"));
    };
    let rows: i64 = sizes.iter().rev().skip(1).product();
    let new_distance = distance / (row * bytes) * ((row + padding) * bytes);
    if distance % (row * bytes) != 0 || new_distance % BANK_CYCLE == 0 {
        return Err("the threads are a part of a row apart, where padding rows changes nothing".to_owned());
    }
    let total = shared_bytes(context, function)? + rows * padding * bytes;
    if total > MOST_STATIC {
        return Err(format!(
            "with it, {total} bytes of static shared memory are more than the 49152 there are"
        ));
    }
    let text = context.text(inner);
    let size = match text.parse::<i64>() {
        Ok(number) => (number + padding).to_string(),
        Err(_) => format!("{} + {padding}", as_operand(context, inner)),
    };
    let title = format!("Pad the rows of `{name}`: `[{size}]` in place of `[{text}]`");
    let lanes = WARP.min(rows);
    let after = greatest_common_divisor(new_distance / 4, WARP).max(bytes / 4).min(lanes);
    let wavefronts = |count: i64| u32::try_from(count.max(1)).unwrap_or(1);
    let gain = Gain::Wavefronts { from: wavefronts(lanes), to: wavefronts(after) };
    let mut rewrite = RULE.rewrite(span(declarator), title, vec![Edit::replace(span(inner), size)], gain);
    rewrite.proven.push(format!("every use of `{name}` is an element, `{name}[…]` with all its indices"));
    rewrite.proven.push(format!("the block has {total} bytes of static shared memory then, of 49152"));
    rewrite
        .assumed
        .push(format!("no index runs over the end of a row of `{name}`, which C++ does not allow"));
    Ok(Proposal::Rewrite(rewrite))
}

/// The declarator of an array whose rows can be padded: shared, declared here with its sizes, and in no macro.
fn own_array<'c>(context: &Context, function: &Function<'c>, id: usize) -> Result<Node<'c>, String> {
    let variable = &function.walker().names.variables[id];
    let name = variable.name;
    if variable.storage != Storage::Shared || variable.is_view || variable.is_reference {
        return Err(format!("`{name}` is another name for memory that is declared elsewhere"));
    }
    let declarator =
        declarator(function, id).ok_or_else(|| format!("`{name}` is no array of this function"))?;
    let declaration = declaration(declarator).ok_or("its declaration was not found")?;
    if context.text(declaration).split_whitespace().any(|word| word == "extern") {
        return Err(format!("`{name}` is declared `extern`: its size is given at the launch"));
    }
    if variable.dimensions.len() < 2 {
        return Err(format!("`{name}` has one dimension: every index would have to change"));
    }
    if let Some(line) = context.macro_that_mentions(name) {
        return Err(format!("the macro of line {line} mentions `{name}`"));
    }
    Ok(declarator)
}

/// The declaration around a declarator.
fn declaration(declarator: Node) -> Option<Node> {
    std::iter::successors(Some(declarator), |node| node.parent())
        .find(|node| Kind::of(*node) == Kind::Declaration)
}

/// Whether every use of the array has all its indices, and none takes an address but an atomic.
///
/// # Errors
/// The first use that is something else.
fn plain_uses(context: &Context, function: &Function, id: usize) -> Result<(), String> {
    let variable = &function.walker().names.variables[id];
    let (name, dimensions) = (variable.name, variable.dimensions.len());
    for used in uses(context, function, id) {
        let line = context.line(used.start_byte());
        let mut at = used;
        let mut indices = Vec::new();
        while let Some(parent) = at.parent().filter(|parent| {
            Kind::of(*parent) == Kind::Subscript && parent.child_by_field_name("argument") == Some(at)
        }) {
            indices.extend(parent.child_by_field_name("indices").and_then(|list| list.named_child(0)));
            at = parent;
        }
        if indices.len() != dimensions {
            return Err(format!("line {line} uses `{name}` other than element by element"));
        }
        let parent = at.parent();
        let is_address = parent.is_some_and(|parent| {
            Kind::of(parent) == Kind::Pointer && parent.child(0).is_some_and(|first| first.kind() == "&")
        });
        if is_address && !is_atomic(context, parent) {
            return Err(format!("line {line} takes the address of an element of `{name}`"));
        }
        let runs_on = indices.first().is_some_and(|first| context.text(*first) == "0")
            && indices.last().is_some_and(|last| Kind::of(*last) == Kind::Binary);
        if runs_on {
            return Err(format!("line {line} may go through all of `{name}` by its first row"));
        }
        if std::iter::successors(Some(at), |node| node.parent()).any(|node| Kind::of(node) == Kind::Sizeof) {
            return Err(format!("line {line} asks for the size of `{name}`"));
        }
    }
    Ok(())
}

/// Whether `&element` is handed to an atomic function.
fn is_atomic(context: &Context, address: Option<Node>) -> bool {
    let call = address.and_then(|address| address.parent()).and_then(|arguments| arguments.parent());
    let callee = call.and_then(|call| call.child_by_field_name("function"));
    callee.is_some_and(|callee| context.text(callee).starts_with("atomic"))
}

fn sizes(context: &Context, function: &Function, variable: &Variable) -> Option<Vec<i64>> {
    let walker = function.walker();
    let fold = |size: &Option<Node>| {
        let size = (*size)?;
        fold(size, context.source, &Scope::new(walker, size.start_byte())).filter(|size| *size > 0)
    };
    variable.dimensions.iter().map(fold).collect()
}

fn element(variable: &Variable) -> Type {
    let dimensions = u8::try_from(variable.dimensions.len()).unwrap_or(u8::MAX);
    Type { pointers: variable.ty.pointers.saturating_sub(dimensions), ..variable.ty }
}

/// The bytes of all static shared variables of a function.
///
/// # Errors
/// The first whose size is not known.
fn shared_bytes(context: &Context, function: &Function) -> Result<i64, String> {
    let walker = function.walker();
    let mut total = 0i64;
    for (id, variable) in walker.names.variables.iter().enumerate() {
        if variable.storage != Storage::Shared {
            continue;
        }
        let is_dynamic = declarator(function, id)
            .and_then(declaration)
            .is_some_and(|declaration| context.text(declaration).starts_with("extern"));
        if is_dynamic {
            continue;
        }
        let count = sizes(context, function, variable).map(|sizes| sizes.iter().product::<i64>());
        let bytes = count.and_then(|count| count.checked_mul(element(variable).bytes()?));
        total += bytes.ok_or_else(|| format!("the size of `{}` is not known", variable.name))?;
    }
    Ok(total)
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
