//! Which thread an expression names: `threadIdx.x`, the thread's number in the grid, whether it is the same for all.

use tree_sitter::Node;

use super::statements::{bare, binary, fixed_value};
use super::uses::nodes;
use super::{Context, Function};
use crate::rules::constants::{Constants, fold_text};
use crate::rules::kind::Kind;
use crate::rules::names::Storage;

/// How many names are followed to what they stand for.
const MOST_NAMES: u32 = 16;

/// An expression without parentheses, casts between integers, and names that stand for another expression.
pub fn resolved<'c>(context: &Context<'c>, function: &Function<'c>, expression: Node<'c>) -> Node<'c> {
    let mut at = bare(expression);
    for _ in 0..MOST_NAMES {
        let next = match Kind::of(at) {
            Kind::Identifier => fixed_value(context, function, at),
            Kind::Cast => {
                let ty = at.child_by_field_name("type").map_or("", |ty| context.text(ty));
                let is_wide = matches!(context.environment.type_of(ty).bytes(), Some(4 | 8));
                at.child_by_field_name("value")
                    .filter(|_| is_wide && context.environment.type_of(ty).is_integer())
            }
            _ => None,
        };
        match next {
            Some(next) => at = bare(next),
            None => break,
        }
    }
    at
}

/// The terms of a sum, or the factors of a product, names followed.
fn parts<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    node: Node<'c>,
    operator: &str,
) -> Vec<Node<'c>> {
    let mut open = vec![node];
    let mut found = Vec::new();
    while let Some(next) = open.pop() {
        let next = resolved(context, function, next);
        match binary(next) {
            Some((left, found, right)) if found == operator => open.extend([right, left]),
            _ => found.push(next),
        }
    }
    found
}

/// Whether an expression is the built-in `name`, such as `threadIdx.x`.
pub fn is_builtin<'c>(context: &Context<'c>, function: &Function<'c>, node: Node<'c>, name: &str) -> bool {
    let node = resolved(context, function, node);
    Kind::of(node) == Kind::Field && context.text(node).split_whitespace().collect::<String>() == name
}

/// The value of an integer expression in a kernel whose blocks are `block`. `None` where it is not constant.
pub fn value<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    node: Node<'c>,
    block: Option<[i64; 3]>,
) -> Option<i64> {
    let mut text = String::new();
    written(context, function, node, block, &mut text, &mut 0)?;
    fold_text(&text, context.environment)
}

/// Writes an expression with everything put in that is known.
fn written<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    node: Node<'c>,
    block: Option<[i64; 3]>,
    text: &mut String,
    depth: &mut u32,
) -> Option<()> {
    *depth += 1;
    if *depth > 200 {
        return None;
    }
    match Kind::of(node) {
        Kind::Number => text.push_str(context.text(node)),
        Kind::Parenthesized | Kind::Binary | Kind::Unary | Kind::Cast => {
            text.push('(');
            if let Some((left, operator, right)) = binary(node) {
                written(context, function, left, block, text, depth)?;
                text.push_str(operator);
                written(context, function, right, block, text, depth)?;
            } else if Kind::of(node) == Kind::Unary {
                text.push_str(node.child_by_field_name("operator")?.kind());
                written(context, function, node.child_by_field_name("argument")?, block, text, depth)?;
            } else if Kind::of(node) == Kind::Cast {
                let ty = context.text(node.child_by_field_name("type")?);
                context.environment.type_of(ty).is_integer().then_some(())?;
                written(context, function, node.child_by_field_name("value")?, block, text, depth)?;
            } else {
                written(context, function, node.named_child(0)?, block, text, depth)?;
            }
            text.push(')');
        }
        Kind::Field => {
            let axis = ["blockDim.x", "blockDim.y", "blockDim.z"]
                .iter()
                .position(|name| context.text(node) == *name)?;
            text.push_str(&block?[axis].to_string());
        }
        Kind::Identifier => match fixed_value(context, function, node) {
            Some(initial) => {
                text.push('(');
                written(context, function, initial, block, text, depth)?;
                text.push(')');
            }
            None => {
                let name = context.text(node);
                function.walker().names.resolve(name, node.start_byte()).is_none().then_some(())?;
                let is_parameter = |p: &crate::TemplateParameter| p.name == name;
                (!function.outline.template_parameters.iter().any(is_parameter)).then_some(())?;
                if name == "warpSize" {
                    text.push_str("32");
                } else {
                    text.push_str(&context.environment.value(name)?.to_string());
                }
            }
        },
        _ => return None,
    }
    Some(())
}

/// Whether an expression is `blockIdx.x * blockDim.x + threadIdx.x`, in any order and through any names; a constant in place of
/// `blockDim.x` must be the size of the `block`.
pub fn is_global_x<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    node: Node<'c>,
    block: Option<[i64; 3]>,
) -> bool {
    let terms = parts(context, function, node, "+");
    let [one, other] = terms.as_slice() else { return false };
    let is_block_start = |term: Node<'c>| {
        let factors = parts(context, function, term, "*");
        let is_size = |factor: Node<'c>| {
            is_builtin(context, function, factor, "blockDim.x")
                || block.is_some_and(|block| value(context, function, factor, None) == Some(block[0]))
        };
        matches!(factors.as_slice(), [a, b]
            if is_builtin(context, function, *a, "blockIdx.x") && is_size(*b)
                || is_builtin(context, function, *b, "blockIdx.x") && is_size(*a))
    };
    let is_thread = |term: Node<'c>| is_builtin(context, function, term, "threadIdx.x");
    is_thread(*one) && is_block_start(*other) || is_thread(*other) && is_block_start(*one)
}

/// Whether an expression is surely the same for all threads of a block at any one time: made of parameters of the kernel that
/// are never written, names from outside, constants, and names that stand for such.
pub fn is_uniform<'c>(context: &Context<'c>, function: &Function<'c>, node: Node<'c>) -> bool {
    let mut open = vec![node];
    let mut seen = 0u32;
    while let Some(next) = open.pop() {
        seen += 1;
        if seen > 200 {
            return false;
        }
        match Kind::of(next) {
            Kind::Number | Kind::Sizeof => continue,
            Kind::Identifier => match uniform_name(context, function, next) {
                Some(Some(initial)) => open.push(initial),
                Some(None) => {}
                None => return false,
            },
            Kind::Field => {
                let argument = next.child_by_field_name("argument").map_or("", |node| context.text(node));
                if matches!(argument, "blockIdx" | "blockDim" | "gridDim") {
                    continue;
                }
                if argument == "threadIdx"
                    || next.child_by_field_name("operator").is_none_or(|o| o.kind() != ".")
                {
                    return false;
                }
                open.extend(next.child_by_field_name("argument"));
            }
            Kind::Binary | Kind::Unary | Kind::Parenthesized | Kind::Cast | Kind::Indices => {
                let mut cursor = next.walk();
                open.extend(next.named_children(&mut cursor).filter(|n| n.kind() != "type_descriptor"));
            }
            _ => return false,
        }
    }
    true
}

/// For a name that is the same for all threads: what it stands for, if it is a local one.
fn uniform_name<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    name: Node<'c>,
) -> Option<Option<Node<'c>>> {
    let names = &function.walker().names;
    let text = context.text(name);
    let Some(id) = names.resolve(text, name.start_byte()) else {
        return is_known(context, function, text).then_some(None);
    };
    let variable = &names.variables[id];
    match variable.storage {
        // A shared array's name is its address.
        Storage::Shared | Storage::Static => (!variable.dimensions.is_empty()).then_some(None),
        Storage::Parameter if function.outline.kind == crate::FunctionKind::Kernel => {
            (variable.writes.is_empty() && !variable.is_reference).then_some(None)
        }
        Storage::Local => fixed_value(context, function, name).map(Some),
        Storage::Parameter => None,
    }
}

/// Whether a name that is no variable of the function stands for a value or a variable that the file shows. One from another file
/// may be a macro for anything, `threadIdx.x` included.
pub fn is_known(context: &Context, function: &Function, name: &str) -> bool {
    matches!(name, "warpSize" | "true" | "false" | "NULL")
        || context.environment.value(name).is_some()
        || context.environment.floating(name).is_some()
        || context.environment.global(name).is_some() && !context.defines(name)
        || function.outline.template_parameters.iter().any(|parameter| parameter.name == name)
}

/// Whether the function names the built-in anywhere.
pub fn names_builtin(context: &Context, function: &Function, name: &str) -> bool {
    nodes(function.node).any(|node| Kind::of(node) == Kind::Field && context.text(node) == name)
}
