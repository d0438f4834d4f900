//! `rewrite/const-restrict`: `const` on what a kernel only reads, `__restrict__` on all its pointers.
//!
//! `__restrict__` is a promise that no memory written through one pointer is reached through another. It is made only where every
//! launch is seen, and each hands over memory of allocations of its own (`allocated`).

use stitch_findings::Code;
use tree_sitter::Node;

use super::allocated::check_arguments;
use super::launched::{in_words, launches_of};
use super::uses::uses;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::kind::Kind;
use crate::rules::names::{Storage, Variable, Write};
use crate::rules::types::{Scalar, Type};

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::CONST_RESTRICT,
    title: "Add `const` and `__restrict__` to a kernel's pointers",
    finding: None,
    find,
};

fn find(context: &Context) -> Vec<Proposal> {
    let kernels = context.kernels().filter(|kernel| {
        let pointers = kernel.outline.parameters.iter().filter(|parameter| is_pointer(&parameter.ty));
        // One pointer alone has no other to be told apart from.
        // An array, `float x[]`, has no place for the word.
        let open = pointers.clone().filter(|p| p.ty.contains('*') && !is_restricted(&p.ty)).count();
        pointers.count() > 1 && open > 0
    });
    kernels
        .map(|kernel| {
            rewrite(context, kernel).unwrap_or_else(|reason| RULE.refuse(kernel.outline.name_span, reason))
        })
        .collect()
}

fn is_pointer(ty: &str) -> bool {
    ty.contains('*') || ty.contains('[')
}

fn is_restricted(ty: &str) -> bool {
    ty.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|word| word.to_ascii_lowercase().contains("restrict"))
}

/// A pointer parameter of a kernel.
pub struct Pointer<'c> {
    /// Its name.
    pub name: &'c str,
    /// Its place in the list.
    pub index: usize,
    /// Whether memory may be written through it.
    pub is_written: bool,
}

fn rewrite(context: &Context, kernel: &Function) -> Result<Proposal, String> {
    let launched = launches_of(context, kernel)?;
    context.is_whole(kernel)?;
    let name = &kernel.outline.name;
    let declared = |f: &&crate::Function| f.name == *name && !f.is_definition;
    if let Some(other) = context.outline.functions.iter().find(declared) {
        return Err(format!("`{name}` is also declared at line {}", context.line(other.span.start)));
    }
    let mut pointers = Vec::new();
    let mut edits = Vec::new();
    for (index, parameter) in kernel.outline.parameters.iter().enumerate() {
        if !is_pointer(&parameter.ty) {
            plain_value(context, &parameter.name, &parameter.ty)?;
            continue;
        }
        if let Some(line) = context.macro_that_mentions(&parameter.name) {
            return Err(format!("the macro of line {line} mentions `{}`", parameter.name));
        }
        let (pointer, can_be_const) = pointer(context, kernel, index)?;
        edits.extend(marks(context, parameter, can_be_const && !pointer.is_written));
        pointers.push(pointer);
    }
    let allocations = check_arguments(context, &launched, &pointers)?;
    let title = format!("Add `const` and `__restrict__` to the pointers of `{name}`");
    let gain = Gain::Instructions {
        words: "loads through the read-only path that need not wait for stores".to_owned(),
    };
    let mut rewrite = RULE.rewrite(kernel.outline.name_span, title, edits, gain);
    let pass = if launched.launches.len() == 1 { "passes" } else { "pass" };
    rewrite.proven.push(format!("{} {pass} {allocations}", in_words(context, &launched)));
    let read: Vec<_> = pointers.iter().filter(|p| !p.is_written).map(|p| format!("`{}`", p.name)).collect();
    if !read.is_empty() {
        rewrite.proven.push(format!("nothing is written through {}", read.join(", ")));
    }
    rewrite.assumed = launched.assumed;
    Ok(Proposal::Rewrite(rewrite))
}

/// Whether a parameter that is no pointer holds none either.
fn plain_value(context: &Context, name: &str, ty: &str) -> Result<(), String> {
    let known = context.environment.type_of(ty);
    if ty.contains('&') || known.scalar == Scalar::Unknown || known.pointers > 0 {
        return Err(format!("the parameter `{name}` of type `{ty}` may hold a pointer"));
    }
    Ok(())
}

/// A pointer parameter, and whether `const` can stand before what it points to.
fn pointer<'c>(
    context: &Context,
    kernel: &Function<'c>,
    index: usize,
) -> Result<(Pointer<'c>, bool), String> {
    let parameter = &kernel.outline.parameters[index];
    let name = parameter.name.as_str();
    let stars = parameter.ty.matches(['*', '[']).count();
    let known = context.environment.type_of(&parameter.ty);
    if stars != 1 || known.pointers > 1 {
        return Err(format!("`{name}` points to pointers"));
    }
    if parameter.ty.contains("volatile") || parameter.ty.contains('&') {
        return Err(format!("`{name}` is `{}`", parameter.ty));
    }
    let walker = kernel.walker();
    let id = walker.names.variables.iter().position(|v| v.storage == Storage::Parameter && v.name == name);
    let Some(id) = id else { return Err(format!("the uses of `{name}` were not found")) };
    stays(&walker.names.variables[id])?;
    let mut is_written = false;
    let mut can_be_const = true;
    for used in uses(context, kernel, id) {
        match usage(context, used, known)? {
            Usage::Read => {}
            Usage::Write => is_written = true,
            Usage::Other => can_be_const = false,
        }
    }
    let is_const =
        parameter.ty.split_whitespace().any(|word| word == "const") && !parameter.ty.ends_with("const");
    is_written |= !can_be_const && !is_const;
    Ok((Pointer { name, index, is_written }, can_be_const))
}

/// Whether a pointer is only moved along, never set to something else.
fn stays(variable: &Variable) -> Result<(), String> {
    let is_moved = |write: &Write| matches!(write, Write::Add(_) | Write::Step);
    match variable.writes.iter().all(is_moved) {
        true => Ok(()),
        false => Err(format!("`{}` is set to another pointer", variable.name)),
    }
}

enum Usage {
    /// An element is read.
    Read,
    /// An element is written.
    Write,
    /// Another pointer is made of it.
    Other,
}

/// What a use of a pointer does.
fn usage(context: &Context, used: Node, ty: Type) -> Result<Usage, String> {
    let Some(mut element) = element(used) else { return Ok(Usage::Other) };
    // `(p[i])` and `c ? p[i] : p[j]` are places as `p[i]` is.
    let parent = loop {
        let Some(parent) = element.parent() else { return Ok(Usage::Other) };
        let is_arm =
            Kind::of(parent) == Kind::Conditional && parent.child_by_field_name("condition") != Some(element);
        match Kind::of(parent) {
            Kind::Parenthesized => element = parent,
            _ if is_arm => element = parent,
            _ => break parent,
        }
    };
    Ok(match Kind::of(parent) {
        Kind::Assignment if parent.child_by_field_name("left") == Some(element) => Usage::Write,
        Kind::Update => Usage::Write,
        Kind::Field | Kind::Subscript | Kind::Pointer if ty.scalar == Scalar::Unknown => {
            let line = context.line(used.start_byte());
            return Err(format!("what an element of line {line} holds is not known"));
        }
        Kind::Field => member(parent),
        Kind::Arguments => argument(context, parent),
        // `float& r = p[i]` is another name for it.
        Kind::InitDeclarator if context.text(parent).starts_with('&') => Usage::Other,
        Kind::InitDeclarator
        | Kind::Assignment
        | Kind::Binary
        | Kind::Unary
        | Kind::Cast
        | Kind::Conditional
        | Kind::ConditionClause
        | Kind::Indices
        | Kind::InitializerList
        | Kind::Return
        | Kind::ExpressionStatement
        | Kind::While
        | Kind::For
        | Kind::Sizeof => Usage::Read,
        _ => Usage::Other,
    })
}

/// The element that a pointer is used for: `p[i]`, `*p`, `*(p + i)`.
fn element(used: Node) -> Option<Node> {
    let mut at = used;
    loop {
        let parent = at.parent()?;
        match Kind::of(parent) {
            Kind::Subscript if parent.child_by_field_name("argument") == Some(at) => return Some(parent),
            Kind::Pointer if parent.child(0)?.kind() == "*" => return Some(parent),
            Kind::Parenthesized => at = parent,
            Kind::Binary if matches!(parent.child_by_field_name("operator")?.kind(), "+" | "-") => {
                at = parent
            }
            _ => return None,
        }
    }
}

/// `p[i].x`, read or written. A method may do anything.
fn member(field: Node) -> Usage {
    let Some(parent) = field.parent() else { return Usage::Other };
    match Kind::of(parent) {
        Kind::Assignment if parent.child_by_field_name("left") == Some(field) => Usage::Write,
        Kind::Update => Usage::Write,
        Kind::Call | Kind::Pointer | Kind::Field => Usage::Other,
        _ => Usage::Read,
    }
}

/// An element that is handed to a function: a copy, unless the function takes a reference.
fn argument(context: &Context, arguments: Node) -> Usage {
    let callee = arguments.parent().and_then(|call| call.child_by_field_name("function"));
    let name = callee.map_or("", |callee| context.text(callee));
    let plain = name.rsplit("::").next().unwrap_or_default();
    let is_known =
        crate::rules::types::maths(plain).is_some() || plain.starts_with("__") || plain == "printf";
    let mut functions = context.outline.functions.iter().filter(|f| f.name == plain).peekable();
    let by_value = functions.peek().is_some()
        && functions.all(|f| f.parameters.iter().all(|parameter| !parameter.ty.contains('&')));
    if is_known || by_value { Usage::Read } else { Usage::Other }
}

/// The edits that mark a parameter.
fn marks(context: &Context, parameter: &crate::Parameter, is_read: bool) -> Vec<Edit> {
    let text = context.source.get(parameter.span.range()).unwrap_or("");
    let mut edits = Vec::new();
    let Some(star) = text.find('*') else { return edits };
    if is_read && !text[..star].split_whitespace().any(|word| word == "const") {
        edits.push(Edit::insert(parameter.span.start, "const "));
    }
    if !is_restricted(&parameter.ty) {
        let after = &text[star + 1..];
        let marked = if after.starts_with(char::is_whitespace) { " __restrict__" } else { "__restrict__ " };
        edits.push(Edit::insert(parameter.span.start + star + 1, marked));
    }
    edits
}
