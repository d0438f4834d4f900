//! What of a Python file can be optimised by name: modules and functions of tensors.

use std::collections::HashSet;

use serde::Serialize;
use stitch_findings::Span;
use tree_sitter::Node;

use super::source::{Source, all, children, decorated, each, is_name, parameters, span, undecorated};
use crate::{Analysis, Language, Module};

/// What kind of part of a file a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A class that derives from `torch.nn.Module`.
    Module,
    /// A function of the file's top level, or a static method.
    Function,
}

/// A part of a file that has a name and can be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// What it is.
    pub kind: TargetKind,
    /// Its name, with the classes around it: `Net`, `Net.normalise`.
    pub name: String,
    /// All of it, decorators included.
    pub span: Span,
    /// Its name in the text.
    pub name_span: Span,
}

/// The targets of a file in the order of the text, modules and functions together.
///
/// A function is listed where it seems to compute on tensors: a parameter is annotated as one, or its body calls something of torch. Any
/// other can still be pointed at by its name. A file that can't be parsed has none.
pub fn targets(text: &str) -> Vec<Target> {
    let Some(source) = Source::new(text) else { return Vec::new() };
    let analysis = Analysis::of(Language::Python, text);
    let torch = torch_names(&source);
    let mut found = Vec::new();
    let modules = &analysis.outline().modules;
    each(source.root(), |node| match node.kind() {
        "class_definition" => {
            found.extend(module(&source, node, modules));
            true
        }
        "function_definition" => {
            found.extend(function(&source, node).filter(|_| of_tensors(&source, node, &torch)));
            false
        }
        _ => true,
    });
    found
}

/// The target of this name, `Class.method` of a static one included. Unlike [`targets`], any function that can be called will do.
///
/// # Errors
/// Why it is none, in one sentence; a name that does not exist gives the names that do.
pub fn named(text: &str, name: &str) -> Result<Target, String> {
    let source = Source::new(text).ok_or("The file is too long or too deeply nested to be parsed.")?;
    let mut candidates = Vec::new();
    each(source.root(), |node| {
        if matches!(node.kind(), "class_definition" | "function_definition")
            && qualified(&source, node) == name
        {
            candidates.push(node);
        }
        true
    });
    // Python's last definition is the one that counts.
    let Some(node) = candidates.pop() else {
        let names: Vec<_> = targets(text).into_iter().map(|target| target.name).collect();
        let names = if names.is_empty() { "none that can be optimised".to_owned() } else { names.join(", ") };
        return Err(format!("No class or function is named `{name}`; the file has {names}."));
    };
    of_definition(&source, node, text)
}

/// The target that a class or function is.
pub(super) fn of_definition(source: &Source<'_>, node: Node, text: &str) -> Result<Target, String> {
    let name = qualified(source, node);
    if node.kind() == "class_definition" {
        let analysis = Analysis::of(Language::Python, text);
        return match module(source, node, &analysis.outline().modules) {
            Some(target) => Ok(target),
            None if analysis.outline().modules.iter().any(|module| module.name == name) => {
                Err(format!("`{name}` has no `forward` in this file, so it can't be called."))
            }
            None => Err(format!(
                "The class `{name}` does not derive from `torch.nn.Module`, as far as this file tells."
            )),
        };
    }
    why_no_function(source, node).map_or_else(
        || function(source, node).ok_or_else(|| format!("`{name}` can't be called from outside.")),
        |why| Err(format!("`{name}` {why}.")),
    )
}

/// The module that a class is, if it or a class of the file that it derives from has a `forward`.
fn module(source: &Source<'_>, class: Node, modules: &[Module]) -> Option<Target> {
    let name = class.child_by_field_name("name")?;
    let own = modules.iter().find(|module| module.name_span == span(name))?;
    if enclosing(class).is_some_and(|outer| outer.kind() == "function_definition")
        || !has_forward(own, modules)
    {
        return None;
    }
    let kind = TargetKind::Module;
    Some(Target { kind, name: qualified(source, class), span: span(decorated(class)), name_span: span(name) })
}

fn has_forward(module: &Module, modules: &[Module]) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![module];
    while let Some(module) = todo.pop() {
        if !seen.insert(&module.name) {
            continue;
        }
        if module.methods.iter().any(|method| method.name == "forward") {
            return true;
        }
        let is_base = |other: &&Module| module.bases.iter().any(|base| base == &other.name);
        todo.extend(modules.iter().filter(is_base));
    }
    false
}

/// A function of the top level, or a static method.
fn function(source: &Source<'_>, node: Node) -> Option<Target> {
    if why_no_function(source, node).is_some() {
        return None;
    }
    let name = node.child_by_field_name("name")?;
    let kind = TargetKind::Function;
    Some(Target { kind, name: qualified(source, node), span: span(decorated(node)), name_span: span(name) })
}

/// Why a function can't be a target, to stand behind its name.
fn why_no_function(source: &Source<'_>, node: Node) -> Option<&'static str> {
    let outer = enclosing(node);
    match outer.map(|outer| outer.kind()) {
        Some("function_definition") => {
            return Some("is defined inside a function and can't be called from outside");
        }
        Some("class_definition") if !is_static(source, node) => {
            return Some("is a method: point at its class, or at statements of it");
        }
        _ => {}
    }
    if source.of(node).starts_with("async") {
        return Some("is asynchronous");
    }
    if yields(node) {
        return Some("is a generator");
    }
    if parameters(source, node).is_empty() {
        return Some("takes no arguments, so there is nothing to compare it by");
    }
    None
}

/// Whether a function has a decorator `staticmethod`.
pub(super) fn is_static(source: &Source<'_>, function: Node) -> bool {
    decorators(source, function).iter().any(|text| text == "staticmethod")
}

/// The decorators of a definition, without `@`.
pub(super) fn decorators(source: &Source<'_>, definition: Node) -> Vec<String> {
    let whole = decorated(definition);
    let own = children(whole).into_iter().filter(|child| child.kind() == "decorator");
    own.map(|node| source.of(node).trim_start_matches('@').trim().to_owned()).collect()
}

/// Whether a function yields, functions inside left out.
fn yields(function: Node) -> bool {
    let mut found = false;
    each(function, |node| {
        found |= node.kind() == "yield";
        node.id() == function.id() || !matches!(node.kind(), "function_definition" | "lambda")
    });
    found
}

/// Local names of things of torch: `torch`, `nn`, `F`, `Tensor`.
fn torch_names<'a>(source: &Source<'a>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for node in all(source.root(), &["import_statement", "import_from_statement"]) {
        let from = source.field(node, "module_name");
        for name in super::source::fields(node, "name") {
            let path =
                if name.kind() == "aliased_import" { source.field(name, "name") } else { source.of(name) };
            let whole = if from.is_empty() { path } else { from };
            if whole == "torch" || whole.starts_with("torch.") {
                let plain = if from.is_empty() { path.split('.').next().unwrap_or(path) } else { path };
                let alias = source.field(name, "alias");
                names.insert(if alias.is_empty() { plain } else { alias });
            }
        }
    }
    names
}

/// Whether a function seems to compute on tensors.
fn of_tensors(source: &Source<'_>, function: Node, torch: &HashSet<&str>) -> bool {
    let list = parameters(source, function);
    if list.iter().any(|parameter| parameter.annotation.is_some_and(|text| text.contains("Tensor"))) {
        return true;
    }
    let name = source.field(function, "name");
    let is_input = name.ends_with("_inputs") || name == "main" || name.starts_with("test_");
    let Some(body) = function.child_by_field_name("body").filter(|_| !is_input) else { return false };
    // One of torch's functions is given a parameter, and the result is returned.
    let is_parameter = |name: &str| list.iter().any(|parameter| parameter.name == name);
    let returns = all(body, &["return_statement"]).iter().any(|node| node.named_child_count() > 0);
    returns
        && all(body, &["call"]).into_iter().any(|call| {
            let Some(callee) = call.child_by_field_name("function") else { return false };
            let first = source.of(callee).split('.').next().unwrap_or_default();
            let Some(given) = call.child_by_field_name("arguments") else { return false };
            let of_torch = torch.contains(first)
                && callee.kind() == "attribute"
                && !source.of(callee).contains(".nn.Module");
            of_torch
                && children(given).into_iter().any(|argument| {
                    argument.kind() == "identifier" && is_name(argument) && is_parameter(source.of(argument))
                })
        })
}

/// The innermost class or function around a definition.
pub(super) fn enclosing(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.parent();
    while let Some(outer) = at {
        if matches!(outer.kind(), "class_definition" | "function_definition") {
            return Some(outer);
        }
        at = outer.parent();
    }
    None
}

/// The name of a definition with those around it.
pub(super) fn qualified(source: &Source<'_>, node: Node) -> String {
    let mut parts = vec![source.field(node, "name")];
    let mut at = enclosing(node);
    while let Some(outer) = at {
        parts.push(source.field(outer, "name"));
        at = enclosing(outer);
    }
    parts.reverse();
    parts.join(".")
}

/// The definition of a target in a tree.
pub(super) fn definition<'t>(source: &'t Source<'_>, target: &Target) -> Option<Node<'t>> {
    let name = source.root().descendant_for_byte_range(target.name_span.start, target.name_span.end)?;
    let definition = name.parent()?;
    matches!(definition.kind(), "class_definition" | "function_definition").then(|| undecorated(definition))
}

/// The method of a class.
pub(super) fn method<'t>(source: &Source<'_>, class: Node<'t>, name: &str) -> Option<Node<'t>> {
    let body = class.child_by_field_name("body")?;
    let mut methods = children(body).into_iter().map(undecorated);
    methods.rfind(|node| node.kind() == "function_definition" && source.field(*node, "name") == name)
}
