//! Statements: those of a block, guards around and before them, and edits that move or remove whole lines.

use stitch_findings::Span;
use tree_sitter::Node;

use super::context::span;
use super::uses::nodes;
use super::{Context, Edit, Function};
use crate::rules::kind::Kind;
use crate::rules::names::Storage;

/// The statements of a block; a statement that is no block is its own only one. Comments are none.
pub fn statements(block: Node) -> Vec<Node> {
    if Kind::of(block) != Kind::Compound {
        return vec![block];
    }
    let mut cursor = block.walk();
    block.named_children(&mut cursor).filter(|node| Kind::of(*node) != Kind::Comment).collect()
}

/// The statements of a function's body.
pub fn body<'c>(function: &Function<'c>) -> Vec<Node<'c>> {
    function.node.child_by_field_name("body").map_or_else(Vec::new, statements)
}

/// Whether a statement is `return;`, braces around it or not.
pub fn is_bare_return(statement: Node) -> bool {
    matches!(statements(statement).as_slice(),
        [only] if Kind::of(*only) == Kind::Return && only.named_child_count() == 0)
}

/// An expression without the parentheses around it.
pub fn bare(expression: Node) -> Node {
    let mut at = expression;
    while Kind::of(at) == Kind::Parenthesized
        && let Some(inner) = at.named_child(0)
    {
        at = inner;
    }
    at
}

/// What an `if` asks.
pub fn condition(branch: Node) -> Option<Node> {
    branch.child_by_field_name("condition")?.child_by_field_name("value")
}

/// A binary expression's operator and its two sides.
pub fn binary<'t>(expression: Node<'t>) -> Option<(Node<'t>, &'t str, Node<'t>)> {
    let expression = bare(expression);
    if Kind::of(expression) != Kind::Binary {
        return None;
    }
    let operator = expression.child_by_field_name("operator")?.kind();
    Some((expression.child_by_field_name("left")?, operator, expression.child_by_field_name("right")?))
}

/// Comparisons, each with the one that holds where it does not.
const OPPOSITES: &[(&str, &str)] =
    &[("<", ">="), (">=", "<"), (">", "<="), ("<=", ">"), ("==", "!="), ("!=", "==")];

/// The text of the condition that holds where this one does not. Of floats that may be NaN it would be wrong, so it is for
/// indices only.
pub fn negated(context: &Context, condition: Node) -> String {
    let Some((left, operator, right)) = binary(condition) else {
        return format!("!({})", context.text(condition));
    };
    let part = |side: Node| {
        let text = negated(context, side);
        // `a || b` becomes `!a && !b`, in which an `||` of a part must stand in parentheses.
        if binary(side).is_some_and(|(_, operator, _)| operator == "&&") { format!("({text})") } else { text }
    };
    match operator {
        "||" => format!("{} && {}", part(left), part(right)),
        "&&" => format!("{} || {}", part(left), part(right)),
        _ => match OPPOSITES.iter().find(|(one, _)| *one == operator) {
            Some((_, opposite)) => format!("{} {opposite} {}", context.text(left), context.text(right)),
            None => format!("!({})", context.text(condition)),
        },
    }
}

/// The variable that a statement declares and starts with a value, where it declares no other.
pub fn declared<'c>(
    context: &Context<'c>,
    function: &Function<'c>,
    statement: Node<'c>,
) -> Option<(usize, Node<'c>)> {
    if Kind::of(statement) != Kind::Declaration {
        return None;
    }
    let mut cursor = statement.walk();
    let declarators: Vec<Node> = statement.children_by_field_name("declarator", &mut cursor).collect();
    let [only] = declarators.as_slice() else { return None };
    let value = only.child_by_field_name("value")?;
    let name = only.child_by_field_name("declarator").filter(|name| Kind::of(*name) == Kind::Identifier)?;
    let id = function.walker().names.resolve(context.text(name), only.end_byte())?;
    (!matches!(Kind::of(value), Kind::Arguments | Kind::InitializerList)).then_some((id, value))
}

/// What a local variable that is never written again starts as; `None` for all other names.
pub fn fixed_value<'c>(context: &Context<'c>, function: &Function<'c>, name: Node) -> Option<Node<'c>> {
    let names = &function.walker().names;
    let variable = &names.variables[names.resolve(context.text(name), name.start_byte())?];
    let is_plain = variable.storage == Storage::Local
        && variable.writes.is_empty()
        && variable.dimensions.is_empty()
        && !variable.is_reference;
    variable
        .initial
        .filter(|_| is_plain)
        .filter(|initial| !matches!(Kind::of(*initial), Kind::Arguments | Kind::InitializerList))
}

/// Whether a name is a variable of the function that a value other than its first may be in.
pub fn is_written(function: &Function, name: &str, at: usize) -> bool {
    let names = &function.walker().names;
    names.resolve(name, at).is_some_and(|id| !names.variables[id].writes.is_empty())
}

/// Whether `node` mentions the variable.
pub fn mentions(context: &Context, function: &Function, node: Node, variable: usize) -> bool {
    let names = &function.walker().names;
    let name = names.variables[variable].name;
    nodes(node).any(|node| {
        Kind::of(node) == Kind::Identifier
            && context.text(node) == name
            && names.resolve(name, node.start_byte()) == Some(variable)
    })
}

/// The names of the functions called in `node`, scopes and template arguments left out.
pub fn callees<'c>(context: &Context<'c>, node: Node<'c>) -> Vec<&'c str> {
    let calls = nodes(node).filter(|node| Kind::of(*node) == Kind::Call);
    calls
        .filter_map(|call| call.child_by_field_name("function"))
        .map(|callee| {
            let text = context.text(callee).split('<').next().unwrap_or_default();
            text.rsplit("::").next().unwrap_or_default().trim()
        })
        .collect()
}

/// Whether threads of a block may wait for each other, or exchange values, by a call of this name.
pub fn is_collective(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "sync",
        "shfl",
        "ballot",
        "__any",
        "__all",
        "vote",
        "activemask",
        "barrier",
        "match_any",
        "match_all",
        "reduce",
        "wait",
        "arrive",
    ];
    let lower = name.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// The edit that removes a statement, with its line where nothing else stands in it.
pub fn removal(context: &Context, statement: Node) -> Edit {
    let place = span(statement);
    let source = context.source;
    let line_start = source[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = source[place.end..].find('\n').map_or(source.len(), |at| place.end + at + 1);
    let alone =
        source[line_start..place.start].trim().is_empty() && source[place.end..line_end].trim().is_empty();
    // The blanks behind it go too: what follows is a comment or another statement.
    let blanks = source[place.end..].len() - source[place.end..].trim_start_matches(' ').len();
    let place =
        if alone { Span::new(line_start, line_end) } else { Span::new(place.start, place.end + blanks) };
    Edit::replace(place, "")
}

/// The edits that put every line of `place` one level deeper, its first line included if the place begins it.
pub fn deeper(context: &Context, place: Span, unit: &str) -> Vec<Edit> {
    let source = context.source;
    let before = source[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let first = if source[before..place.start].trim().is_empty() { Some(before) } else { None };
    let breaks = memchr::memchr_iter(b'\n', &source.as_bytes()[place.range()]).map(|at| place.start + at + 1);
    first
        .into_iter()
        .chain(breaks)
        .filter(|start| {
            let line = source[*start..].lines().next().unwrap_or_default().trim();
            *start < place.end && !line.is_empty() && !line.starts_with('#')
        })
        .map(|start| Edit::insert(start, unit))
        .collect()
}
