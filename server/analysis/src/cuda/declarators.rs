//! Finds the name in a declarator, which C++ wraps in pointers, references, parentheses, scopes and template arguments.

use stitch_findings::Span;
use tree_sitter::Node;

/// A function's name.
pub struct Name {
    /// Without scopes and template arguments.
    pub name: String,
    /// The scopes written before it.
    pub scopes: Vec<String>,
    /// Where the bare name is.
    pub span: Span,
}

/// The next declarator inside `node`.
fn inner(node: Node) -> Option<Node> {
    node.child_by_field_name("declarator").or_else(|| match node.kind() {
        "reference_declarator"
        | "parenthesized_declarator"
        | "variadic_declarator"
        | "attributed_declarator"
        | "ref_qualifier"
        | "init_declarator" => {
            let mut cursor = node.walk();
            node.named_children(&mut cursor).find(|child| is_declarator(child.kind()))
        }
        _ => None,
    })
}

fn is_declarator(kind: &str) -> bool {
    kind.ends_with("declarator")
        || kind.ends_with("identifier")
        || matches!(kind, "operator_name" | "destructor_name")
        || matches!(kind, "template_function" | "template_method" | "operator_cast")
}

/// The braces of the function that `node` defines. `void f() {};` in a class, with nothing in the braces, reads as a member with a
/// value.
pub fn body(node: Node) -> Option<Node> {
    let braces = |node: &Node| node.kind() == "initializer_list";
    let value = || node.child_by_field_name("default_value").filter(braces);
    let declared = || node.child_by_field_name("declarator")?.child_by_field_name("value").filter(braces);
    let body = node.child_by_field_name("body").or_else(value).or_else(declared);
    body.filter(|body| body.end_byte() > body.start_byte())
}

/// The declarator of the function that `node`, a definition or declaration, declares.
pub fn function_declarator(node: Node) -> Option<Node> {
    let mut current = node.child_by_field_name("declarator")?;
    loop {
        match current.kind() {
            "operator_cast" => return Some(current),
            "qualified_identifier" => {
                // `A::operator int()`
                current = current.child_by_field_name("name")?;
            }
            "function_declarator" => {
                let name = current.child_by_field_name("declarator")?;
                if name.kind() != "parenthesized_declarator" {
                    return Some(current);
                }
                // A pointer to a function, or a function that returns one.
                current = inner(name)?;
            }
            _ => current = inner(current)?,
        }
    }
}

/// The name that a function's declarator holds.
pub fn name(declarator: Node, text: &str) -> Option<Name> {
    let mut scopes = Vec::new();
    let mut node = if declarator.kind() == "operator_cast" {
        declarator
    } else {
        declarator.child_by_field_name("declarator")?
    };
    loop {
        match node.kind() {
            "qualified_identifier" => {
                if let Some(scope) = node.child_by_field_name("scope") {
                    scopes.push(class_name(scope, text));
                }
                node = node.child_by_field_name("name")?;
            }
            "template_function" | "template_method" | "template_type" => {
                node = node.child_by_field_name("name")?
            }
            "dependent_name" => node = node.named_child(0)?,
            "pointer_declarator" | "reference_declarator" => node = inner(node)?,
            "operator_cast" => {
                let end = node.child_by_field_name("declarator").map_or(node.end_byte(), |d| d.start_byte());
                let span = Span::new(node.start_byte(), end);
                return Some(Name { name: super::tidy::tidy(text.get(span.range())?), scopes, span });
            }
            "identifier" | "field_identifier" | "type_identifier" | "operator_name" | "destructor_name" => {
                let span = Span::new(node.start_byte(), node.end_byte());
                let written = text.get(span.range())?;
                let name = match written.strip_prefix("operator") {
                    Some(rest) if node.kind() == "operator_name" => operator_name(rest),
                    _ => written.to_owned(),
                };
                return Some(Name { name, scopes, span });
            }
            _ => return None,
        }
    }
}

fn operator_name(rest: &str) -> String {
    let symbol = super::tidy::tidy(rest);
    let word = symbol.starts_with(|c: char| c.is_alphabetic());
    format!("operator{}{}", if word { " " } else { "" }, if word { symbol } else { symbol.replace(' ', "") })
}

/// The name of a class or scope, without template arguments.
pub fn class_name(node: Node, text: &str) -> String {
    let mut node = node;
    let mut prefix = String::new();
    loop {
        match node.kind() {
            "template_type" | "template_function" => match node.child_by_field_name("name") {
                Some(name) => node = name,
                None => break,
            },
            "qualified_identifier" => {
                if let Some(scope) = node.child_by_field_name("scope") {
                    let scope = scope.child_by_field_name("name").unwrap_or(scope);
                    prefix.push_str(text.get(scope.byte_range()).unwrap_or_default());
                    prefix.push_str("::");
                }
                match node.child_by_field_name("name") {
                    Some(name) => node = name,
                    None => break,
                }
            }
            _ => break,
        }
    }
    prefix + text.get(node.byte_range()).unwrap_or_default()
}

/// The parameter list of a function's declarator.
pub fn parameter_list(declarator: Node) -> Option<Node> {
    declarator
        .child_by_field_name("parameters")
        .or_else(|| declarator.child_by_field_name("declarator")?.child_by_field_name("parameters"))
}

/// Where the name of a parameter is, if it has one.
pub fn parameter_name(parameter: Node) -> Option<Span> {
    let mut node = parameter.child_by_field_name("declarator")?;
    loop {
        if node.kind() == "identifier" {
            return Some(Span::new(node.start_byte(), node.end_byte()));
        }
        node = inner(node)?;
    }
}

/// Where the name of a template parameter without a `name` field is.
pub fn template_parameter_name(node: Node) -> Option<Span> {
    if let Some(name) = parameter_name(node) {
        return Some(name);
    }
    let mut node = node;
    loop {
        let mut cursor = node.walk();
        let last = node
            .named_children(&mut cursor)
            .filter(|c| {
                matches!(c.kind(), "type_identifier" | "identifier")
                    || c.kind().ends_with("parameter_declaration")
            })
            .last()?;
        if last.kind().ends_with("identifier") {
            let is_type = node.child_by_field_name("type").is_some_and(|ty| ty.id() == last.id());
            let is_default = ["default_type", "default_value"]
                .iter()
                .any(|field| node.child_by_field_name(field).is_some_and(|d| d.id() == last.id()));
            return (!is_type && !is_default).then(|| Span::new(last.start_byte(), last.end_byte()));
        }
        node = last;
    }
}
