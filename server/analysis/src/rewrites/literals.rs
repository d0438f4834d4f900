//! `rewrite/float-literals`: double literals among floats, made floats.
//!
//! All of an expression is looked at: `x * 1.7 + 0.3` changes as a whole or not at all. Each of its operands must be known to
//! be a float, an integer or a literal, and the result must go to a float or a comparison.

use stitch_findings::Code;
use tree_sitter::Node;

use super::context::span;
use super::expression::{goes_straight_to, macro_around};
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::kind::Kind;
use crate::rules::types::{Maths, Type, floating_literal, maths};

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::FLOAT_LITERALS,
    title: "Make the literals among floats floats",
    finding: Some(Code::DOUBLE_LITERAL),
    find,
};

/// More operands than this are no expression that a person wrote.
const MOST_OPERANDS: usize = 256;

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    let mut seen: Vec<usize> = Vec::new();
    for function in context.device_functions() {
        for used in function.walker().facts.doubles.iter().filter(|used| !used.is_foldable && !used.is_wanted)
        {
            let root = root(context, used.node);
            if seen.contains(&root.id()) {
                continue;
            }
            seen.push(root.id());
            let proposal = rewrite(context, function, root);
            proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(span(root), reason)));
        }
    }
    proposals
}

/// The whole expression that `node` is an operand of: as long as its type follows from that of its operands.
fn root<'t>(context: &Context, node: Node<'t>) -> Node<'t> {
    let mut at = node;
    while let Some(parent) = at.parent() {
        let goes_on = match Kind::of(parent) {
            Kind::Parenthesized | Kind::Unary => true,
            Kind::Binary => is_arithmetic(parent) || is_comparison(parent),
            Kind::Conditional => parent.child_by_field_name("condition") != Some(at),
            Kind::Arguments => parent.parent().is_some_and(|call| overloaded(context, call).is_some()),
            Kind::Call => true,
            _ => false,
        };
        if !goes_on {
            break;
        }
        at = parent;
    }
    at
}

fn operator<'t>(node: Node<'t>) -> &'t str {
    node.child_by_field_name("operator").map_or("", |operator| operator.kind())
}

fn is_arithmetic(node: Node) -> bool {
    matches!(operator(node), "+" | "-" | "*" | "/")
}

fn is_comparison(node: Node) -> bool {
    matches!(operator(node), "<" | ">" | "<=" | ">=" | "==" | "!=")
}

/// The name of the function of the maths library that `call` calls, if the type of its arguments decides which.
fn overloaded<'c>(context: &Context<'c>, call: Node) -> Option<&'c str> {
    let callee = context.text(call.child_by_field_name("function")?);
    let name = callee.strip_prefix("std::").unwrap_or(callee);
    (maths(name) == Some(Maths::Overloaded) && name != "abs" && !context.defines(name)).then_some(name)
}

/// What an expression is made of.
#[derive(Default)]
struct Operands<'t> {
    /// Double literals and names of double constants, with their values.
    doubles: Vec<(Node<'t>, f64)>,
    /// A float among them.
    float: Option<Node<'t>>,
    /// How many operations lie between the operands.
    operations: usize,
    /// Whether it has a comparison.
    compares: bool,
}

fn rewrite(context: &Context, function: &Function, root: Node) -> Result<Proposal, String> {
    if let Some(name) = macro_around(context, root) {
        return Err(format!("it is an argument of `{name}`, which may be a macro"));
    }
    let operands = operands(context, function, root)?;
    let Some(float) = operands.float else { return Err("no operand is known to be a float".to_owned()) };
    if !operands.compares {
        goes_to_a_float(context, function, root)?;
    }
    let mut edits = Vec::new();
    let mut is_exact = true;
    for (literal, value) in &operands.doubles {
        let text = context.text(*literal);
        // The cast is the conversion that is asked about.
        let single = f64::from(*value as f32);
        is_exact &= single == *value;
        if !single.is_finite() || (single.abs() < f64::from(f32::MIN_POSITIVE) && *value != 0.0) {
            return Err(format!("`{text}` is out of the range of a float"));
        }
        if single != *value && is_compared_as_it_is(*literal) {
            return Err(format!("`{text}` is no float exactly, and something is compared with it"));
        }
        edits.push(match Kind::of(*literal) {
            Kind::Number => Edit::insert(literal.end_byte(), "f"),
            _ => Edit::replace(span(*literal), format!("(float){text}")),
        });
    }
    if edits.is_empty() {
        return Err("its double is no literal".to_owned());
    }
    let quoted: Vec<&str> = operands.doubles.iter().map(|(literal, _)| context.text(*literal)).collect();
    let title = format!("Make `{}` float", quoted.join("`, `"));
    let gain =
        Gain::Instructions { words: "float instead of double arithmetic, and no conversions".to_owned() };
    let mut rewrite = RULE.rewrite(span(root), title, edits, gain);
    // One operation on floats, done in double and rounded to float, is what it is done in float (Figueroa, 1995).
    rewrite.changes_rounding = !(is_exact && operands.operations <= 1);
    rewrite.proven.push(format!(
        "`{}` is a float, no operand is a double, and no double is wanted",
        context.text(float)
    ));
    if operands.operations > 1 {
        rewrite.assumed.push(IN_RANGE.to_owned());
    }
    Ok(Proposal::Rewrite(rewrite))
}

/// Assumed where more than one operation is done in float in place of double.
pub const IN_RANGE: &str = "no value on the way is beyond the range of a float, 3.4e38";

/// Whether the expression around `node` has floats, integers and literals for operands, and becomes a float at once.
pub fn ends_as_a_float(context: &Context, function: &Function, node: Node) -> bool {
    let root = root(context, node);
    macro_around(context, root).is_none()
        && operands(context, function, root).is_ok_and(|found| found.float.is_some() && !found.compares)
        && goes_to_a_float(context, function, root).is_ok()
}

/// The operands of an expression.
///
/// # Errors
/// The first operand that is a double or of a type that is not known.
fn operands<'t>(context: &Context, function: &Function, root: Node<'t>) -> Result<Operands<'t>, String> {
    let mut found = Operands::default();
    let mut open = vec![root];
    let mut seen = 0;
    while let Some(node) = open.pop() {
        seen += 1;
        if seen > MOST_OPERANDS {
            return Err("the expression is too long".to_owned());
        }
        let text = context.text(node);
        let ty = function.type_of(node);
        let named = || context.environment.floating(text).filter(|(_, ty)| ty.is_double());
        match Kind::of(node) {
            Kind::Comment => {}
            Kind::Number => match floating_literal(text) {
                Some((value, ty)) if ty.is_double() => found.doubles.push((node, value)),
                Some((_, ty)) if !ty.is_float() => return Err(format!("the type of `{text}` is not known")),
                _ => {}
            },
            Kind::Identifier if ty.is_double() && is_constant(function, node, text) && named().is_some() => {
                found.doubles.extend(named().map(|(value, _)| (node, value)));
            }
            // What is a float or an integer already may be whatever it is made of.
            _ if ty.is_float() => found.float = Some(node),
            _ if ty.is_integer() && !(Kind::of(node) == Kind::Binary && is_comparison(node)) => {
                if !has_double_inside(function, node) {
                    continue;
                }
                return Err(format!("`{text}` makes an integer of a double"));
            }
            Kind::Parenthesized | Kind::Unary | Kind::Binary | Kind::Conditional | Kind::Call => {
                found.operations += usize::from(matches!(Kind::of(node), Kind::Binary | Kind::Call));
                found.compares |= Kind::of(node) == Kind::Binary && is_comparison(node);
                parts(context, node, text, ty, &mut open)?;
            }
            _ if ty.is_double() => return Err(format!("`{text}` is a double")),
            _ => return Err(format!("the type of `{text}` is not known")),
        }
    }
    found.doubles.sort_by_key(|(literal, _)| literal.start_byte());
    Ok(found)
}

/// Puts the operands of `node` on the list.
fn parts<'t>(
    context: &Context,
    node: Node<'t>,
    text: &str,
    ty: Type,
    open: &mut Vec<Node<'t>>,
) -> Result<(), String> {
    let mut cursor = node.walk();
    match Kind::of(node) {
        Kind::Call => {
            if overloaded(context, node).is_none() {
                let what = if ty.is_double() { "is a double" } else { "is of a type that is not known" };
                return Err(format!("`{text}` {what}"));
            }
            if let Some(arguments) = node.child_by_field_name("arguments") {
                open.extend(arguments.named_children(&mut cursor));
            }
        }
        Kind::Binary if !is_arithmetic(node) && !is_comparison(node) => {
            return Err(format!("`{text}` is no arithmetic"));
        }
        Kind::Conditional => {
            let arms = ["consequence", "alternative"].map(|arm| node.child_by_field_name(arm));
            open.extend(arms.into_iter().flatten());
        }
        _ => open.extend(node.named_children(&mut cursor)),
    }
    Ok(())
}

/// Whether a name is that of a constant of the file or the library, not of a variable of the function.
fn is_constant(function: &Function, node: Node, name: &str) -> bool {
    function.walker().names.resolve(name, node.start_byte()).is_none()
}

/// Whether some part of an expression is computed in double.
fn has_double_inside(function: &Function, node: Node) -> bool {
    super::uses::nodes(node).any(|inner| function.type_of(inner).is_double())
}

/// Whether a literal is one side of a comparison, be it with a sign.
fn is_compared_as_it_is(literal: Node) -> bool {
    let mut at = literal;
    while let Some(parent) = at.parent() {
        match Kind::of(parent) {
            Kind::Parenthesized | Kind::Unary => at = parent,
            Kind::Binary => return is_comparison(parent),
            _ => return false,
        }
    }
    false
}

/// Whether the value of `root` becomes a float at once.
///
/// # Errors
/// What it becomes.
fn goes_to_a_float(context: &Context, function: &Function, root: Node) -> Result<(), String> {
    let target = match root.parent().filter(|parent| Kind::of(*parent) == Kind::Assignment) {
        // `x += …` is `x = x + …`, of which one more operand is a float.
        Some(parent) if matches!(operator(parent), "+=" | "-=" | "*=" | "/=") => {
            parent.child_by_field_name("left").map_or(Type::UNKNOWN, |left| function.type_of(left))
        }
        _ => goes_straight_to(context, function, root),
    };
    match target {
        ty if ty.is_float() => Ok(()),
        ty if ty.is_double() => Err("a double is wanted".to_owned()),
        ty if ty.is_integer() => Err("the result is cut to an integer, which may be another one".to_owned()),
        _ => Err("what the result goes to is not known to be a float".to_owned()),
    }
}
