//! Expressions: whether one may be written twice or moved, and where its value goes.

use tree_sitter::Node;

use super::context::span;
use super::uses::nodes;
use super::{Context, Edit, Function};
use crate::cuda::{Lexer, TokenKind};
use crate::rules::kind::Kind;
use crate::rules::types::{Maths, Type, maths};

/// Whether evaluating an expression twice is the same as once: no call, no assignment, no step, no macro that may hide one.
pub fn has_no_effect(context: &Context, expression: Node) -> bool {
    nodes(expression).all(|node| match Kind::of(node) {
        // `float(x)` is a cast.
        Kind::Call => {
            node.child_by_field_name("function").is_some_and(|callee| callee.kind() == "primitive_type")
        }
        Kind::Assignment | Kind::Update | Kind::Lambda | Kind::KernelCall | Kind::CompoundLiteral => false,
        Kind::Identifier => !hides_an_effect(context, context.text(node)),
        _ => !matches!(node.kind(), "new_expression" | "delete_expression" | "co_await_expression" | "ERROR"),
    })
}

/// Whether the file has a macro of this name that does more than to stand for a value.
fn hides_an_effect(context: &Context, name: &str) -> bool {
    let bytes = context.source.as_bytes();
    context.directives.lines.iter().any(|line| {
        let mut tokens = Lexer::within(context.source, line.start + 1, line.end).skip(1);
        tokens.next().is_some_and(|token| token.text(bytes) == name.as_bytes())
            && tokens.any(|token| matches!(token.kind, TokenKind::Byte(b'(' | b'=' | b'+' | b'-')))
    })
}

/// Whether an expression is short and plain enough to be written several times: a name, a member, an element.
pub fn is_simple(context: &Context, expression: Node) -> bool {
    const MOST_NODES: usize = 12;
    let plain = |node: Node| {
        matches!(
            Kind::of(node),
            Kind::Identifier | Kind::Field | Kind::Subscript | Kind::Indices | Kind::Number
        ) || matches!(node.kind(), "field_identifier" | "this" | "[" | "]" | "." | "->")
    };
    nodes(expression).all(plain)
        && nodes(expression).count() <= MOST_NODES
        && has_no_effect(context, expression)
}

/// The text of an expression as an operand of another operator: in parentheses unless it is a name, a number, or the like. The
/// name of a macro that stands for an expression without parentheses gets some.
pub fn as_operand(context: &Context, expression: Node) -> String {
    let text = context.text(expression);
    let is_whole = match Kind::of(expression) {
        Kind::Number | Kind::Field | Kind::Parenthesized | Kind::Call | Kind::Subscript | Kind::Qualified => {
            true
        }
        Kind::Identifier => !is_bare_macro(context, text),
        _ => false,
    };
    if is_whole { text.to_owned() } else { format!("({text})") }
}

/// Whether a macro of this name stands for several tokens without parentheses around them.
fn is_bare_macro(context: &Context, name: &str) -> bool {
    let bytes = context.source.as_bytes();
    context.directives.lines.iter().any(|line| {
        let mut tokens = Lexer::within(context.source, line.start + 1, line.end).skip(1);
        let is_it = tokens.next().is_some_and(|token| token.text(bytes) == name.as_bytes());
        is_it && tokens.next().is_some_and(|first| !first.is(b'(')) && tokens.next().is_some()
    })
}

/// The macro among whose arguments `node` stands: one of the file, or a name in capitals.
pub fn macro_around<'c>(context: &Context<'c>, node: Node) -> Option<&'c str> {
    let mut at = node;
    while let Some(parent) = at.parent() {
        if Kind::of(parent) == Kind::Call
            && let Some(callee) = parent.child_by_field_name("function")
        {
            let name = context.text(callee);
            let is_loud = name.len() > 1 && !name.contains(|c: char| c.is_lowercase());
            if is_loud || context.environment.function_macro(name).is_some() {
                return Some(name);
            }
        }
        if Kind::of(parent) == Kind::Function {
            return None;
        }
        at = parent;
    }
    None
}

/// Whether a product in place of `node` must stand in parentheses, for what is around it.
pub fn needs_parentheses(node: Node) -> bool {
    let Some(parent) = node.parent() else { return true };
    match Kind::of(parent) {
        Kind::Parenthesized
        | Kind::Arguments
        | Kind::Indices
        | Kind::InitDeclarator
        | Kind::Return
        | Kind::InitializerList
        | Kind::ExpressionStatement => false,
        Kind::Assignment => parent.child_by_field_name("right") != Some(node),
        Kind::Binary => match parent.child_by_field_name("operator").map_or("", |operator| operator.kind()) {
            "+" | "-" | "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||" => false,
            // `x * x * y` is what `(x * x) * y` is.
            "*" | "/" => parent.child_by_field_name("left") != Some(node),
            _ => true,
        },
        _ => true,
    }
}

/// The type that the value of `node` is converted to as soon as it is computed: that of a variable it is assigned to or starts,
/// of what the function returns, of a cast, of the parameter of a function of the maths library.
pub fn goes_straight_to(context: &Context, function: &Function, node: Node) -> Type {
    let walker = function.walker();
    let mut at = node;
    while let Some(parent) = at.parent() {
        match Kind::of(parent) {
            Kind::Parenthesized => at = parent,
            Kind::InitDeclarator => {
                let mut name = parent;
                while let Some(inner) = name.child_by_field_name("declarator") {
                    name = inner;
                }
                let variable = walker.names.resolve(context.text(name), parent.end_byte());
                let variable = variable.map(|id| &walker.names.variables[id]);
                return variable
                    .filter(|v| !v.is_auto && v.dimensions.is_empty())
                    .map_or(Type::UNKNOWN, |v| v.ty);
            }
            Kind::Assignment => {
                let operator = parent.child_by_field_name("operator").map_or("", |operator| operator.kind());
                let left = parent.child_by_field_name("left").filter(|_| operator == "=");
                return left.map_or(Type::UNKNOWN, |left| function.type_of(left));
            }
            Kind::Return => {
                let is_lambda = std::iter::successors(Some(parent), |node| node.parent())
                    .any(|node| Kind::of(node) == Kind::Lambda);
                return if is_lambda { Type::UNKNOWN } else { walker.returns };
            }
            Kind::Cast => {
                let ty = parent.child_by_field_name("type");
                return ty.map_or(Type::UNKNOWN, |ty| context.environment.type_of(context.text(ty)));
            }
            Kind::Arguments => return parameter_type(context, parent, at),
            _ => return Type::UNKNOWN,
        }
    }
    Type::UNKNOWN
}

/// The type of the parameter that an argument goes to: of a float function of the maths library, or of the only function of its
/// name in the file.
fn parameter_type(context: &Context, arguments: Node, argument: Node) -> Type {
    let callee = arguments.parent().and_then(|call| call.child_by_field_name("function"));
    let Some(name) = callee.map(|callee| context.text(callee)) else { return Type::UNKNOWN };
    if maths(name) == Some(Maths::Float) && !context.defines(name) {
        return Type::FLOAT;
    }
    let mut cursor = arguments.walk();
    let at = arguments.named_children(&mut cursor).position(|other| other == argument);
    let mut functions = context.outline.functions.iter().filter(|f| f.name == name && f.is_definition);
    match (functions.next(), functions.next(), at) {
        (Some(function), None, Some(at)) if function.template_parameters.is_empty() => {
            let parameter = function.parameters.get(at);
            parameter.map_or(Type::UNKNOWN, |parameter| context.environment.type_of(&parameter.ty))
        }
        _ => Type::UNKNOWN,
    }
}

/// A name for a new variable of a function: `stem`, or `stem2` and so on where that is taken.
pub fn unused_name(context: &Context, function: &Function, stem: &str) -> String {
    let bytes = context.source.as_bytes();
    let is_taken = |name: &str| {
        let of_file = context.outline.functions.iter().any(|f| f.name == name);
        let body = function.outline.span;
        of_file
            || context.macro_that_mentions(name).is_some()
            || context.tokens.iter().any(|token| {
                body.start <= token.start && token.end <= body.end && token.text(bytes) == name.as_bytes()
            })
    };
    let numbered = (2..).map(|number| format!("{stem}{number}"));
    let mut names = std::iter::once(stem.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// The edit that declares `name` with the value of `expression` before the statement around it. `None` where the expression is
/// not surely evaluated there, once, before anything else that the statement does.
pub fn hoist(context: &Context, expression: Node, ty: &str, name: &str) -> Option<Edit> {
    let mut at = expression;
    let statement = loop {
        let parent = at.parent()?;
        match Kind::of(parent) {
            Kind::Compound => break at,
            Kind::Binary => {
                let operator = parent.child_by_field_name("operator")?.kind();
                if matches!(operator, "&&" | "||") {
                    return None;
                }
            }
            Kind::Parenthesized
            | Kind::Arguments
            | Kind::Call
            | Kind::Unary
            | Kind::Cast
            | Kind::Subscript
            | Kind::Indices
            | Kind::InitDeclarator
            | Kind::Declaration
            | Kind::Assignment
            | Kind::ExpressionStatement
            | Kind::Return => {}
            _ => return None,
        }
        at = parent;
    };
    let mut cursor = statement.walk();
    if statement.children_by_field_name("declarator", &mut cursor).count() > 1 {
        return None;
    }
    let top = statement.named_child(0).filter(|top| Kind::of(*top) == Kind::Assignment);
    let is_quiet = nodes(statement).all(|node| match Kind::of(node) {
        Kind::Assignment => Some(node) == top,
        Kind::Update | Kind::Lambda | Kind::Comma => false,
        Kind::Call => node.child_by_field_name("function").is_some_and(|callee| {
            let name = context.text(callee).rsplit("::").next().unwrap_or_default();
            callee.kind() == "primitive_type" || (maths(name).is_some() && !context.defines(name))
        }),
        Kind::Identifier => !hides_an_effect(context, context.text(node)),
        _ => true,
    });
    // A statement behind another on one line would be torn from it.
    let own_line = context.indentation(statement.start_byte());
    let line_start = context.source[..statement.start_byte()].rfind('\n').map_or(0, |at| at + 1);
    let begins_line = context.source.get(line_start..statement.start_byte()) == Some(own_line);
    let inside = (Kind::of(expression) == Kind::Parenthesized).then(|| expression.named_child(0)).flatten();
    let value = context.text(inside.unwrap_or(expression));
    let fits = is_quiet && begins_line && !value.contains(['\n', '#']) && !value.contains("//");
    fits.then(|| Edit::insert(span(statement).start, format!("const {ty} {name} = {value};\n{own_line}")))
}
