//! What of a candidate's file is needed, and what in it can't be moved into another file.

use std::collections::{HashMap, HashSet};

use stitch_findings::Span;
use tree_sitter::Node;

use super::super::source::{Source, all, children, fields, is_name, undecorated};
use super::super::statements::targets_of;
use super::super::targets::decorators;

/// A name that an import binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) local: String,
    /// `torch.nn.functional`; for `from a import b`: `a.b`. For `import a.b`, which binds `a`: `a`, and the whole in `line`.
    pub(super) path: String,
    /// A statement that binds this name alone.
    pub(super) line: String,
}

/// The imports of a statement.
pub(super) fn imports(source: &Source<'_>, node: Node) -> Vec<Import> {
    let module = source.field(node, "module_name");
    let mut found = Vec::new();
    for name in fields(node, "name") {
        let alias = source.field(name, "alias");
        let plain =
            if name.kind() == "aliased_import" { source.field(name, "name") } else { source.of(name) };
        let part = if alias.is_empty() { plain.to_owned() } else { format!("{plain} as {alias}") };
        let (line, path) = match node.kind() {
            "import_from_statement" => (format!("from {module} import {part}"), format!("{module}.{plain}")),
            _ if alias.is_empty() => {
                (format!("import {part}"), plain.split('.').next().unwrap_or(plain).to_owned())
            }
            _ => (format!("import {part}"), plain.to_owned()),
        };
        let local = if !alias.is_empty() {
            alias
        } else if node.kind() == "import_from_statement" {
            plain
        } else {
            plain.split('.').next().unwrap_or(plain)
        };
        found.push(Import { local: local.to_owned(), path, line });
    }
    found
}

/// The names that a statement of the top level binds.
pub(super) fn bound(source: &Source<'_>, statement: Node) -> HashSet<String> {
    let mut names = HashSet::new();
    super::super::source::each(statement, |node| {
        match node.kind() {
            "function_definition" | "class_definition" => {
                names.insert(source.field(node, "name").to_owned());
                return false;
            }
            "import_statement" | "import_from_statement" => {
                names.extend(imports(source, node).into_iter().map(|import| import.local));
                return false;
            }
            "assignment" | "for_statement" | "augmented_assignment" => {
                let left = node.child_by_field_name("left");
                names.extend(left.into_iter().flat_map(|left| targets_of(source, left)));
            }
            "as_pattern_target" => names.extend(targets_of(source, node)),
            "lambda" => return false,
            _ => {}
        }
        true
    });
    names
}

/// The names that a statement uses anywhere in it; more than those of the top level.
fn used<'a>(source: &Source<'a>, statement: Node) -> HashSet<&'a str> {
    let names = all(statement, &["identifier"]).into_iter().filter(|node| is_name(*node));
    names.map(|node| source.of(node)).collect()
}

/// The statements of the top level that `name` needs, in order, imports included.
///
/// # Errors
/// Something that can't be moved, in one sentence.
pub(super) fn needed<'t>(source: &'t Source<'_>, name: &str) -> Result<Vec<Node<'t>>, String> {
    let statements: Vec<Node<'t>> =
        children(source.root()).into_iter().filter(|node| !is_left_out(source, *node)).collect();
    let mut binds: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, statement) in statements.iter().enumerate() {
        for bound in bound(source, *statement) {
            binds.entry(bound).or_default().push(index);
        }
    }
    let mut kept = HashSet::new();
    let mut todo = vec![name.to_owned()];
    let mut seen = HashSet::new();
    loop {
        while let Some(name) = todo.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            for index in binds.get(&name).into_iter().flatten() {
                if kept.insert(*index) {
                    todo.extend(used(source, statements[*index]).into_iter().map(str::to_owned));
                }
            }
        }
        // What is done for its effect stays if it is about names that stay: `os.environ[…] = …`, `lib.define(…)`.
        for (index, statement) in statements.iter().enumerate() {
            let effect = bound(source, *statement).is_empty() && statement.kind() != "import_from_statement";
            let about = used(source, *statement);
            if effect && about.iter().any(|name| seen.contains(*name)) && kept.insert(index) {
                todo.extend(about.into_iter().map(str::to_owned));
            }
        }
        if todo.is_empty() {
            break;
        }
    }
    let kept: Vec<_> = statements
        .iter()
        .enumerate()
        .filter(|(index, _)| kept.contains(index))
        .map(|(_, node)| *node)
        .collect();
    for statement in &kept {
        check(source, *statement)?;
    }
    if let Some(star) = all(source.root(), &["wildcard_import"]).first() {
        return Err(format!(
            "Line {} of the candidate imports everything of a module, which can't be kept apart from the file's names.",
            source.line(star.start_byte())
        ));
    }
    Ok(kept)
}

/// Statements that are about running the candidate's file by itself.
fn is_left_out(source: &Source<'_>, statement: Node) -> bool {
    match statement.kind() {
        "if_statement" => source.field(statement, "condition").contains("__name__"),
        "future_import_statement" => true,
        "expression_statement" => statement.named_child(0).is_some_and(|inner| match inner.kind() {
            "string" => true,
            "call" => source.field(inner, "function") == "print",
            _ => false,
        }),
        _ => false,
    }
}

/// What can't be moved.
fn check(source: &Source<'_>, statement: Node) -> Result<(), String> {
    let line = |node: Node| source.line(node.start_byte());
    for node in all(statement, &["global_statement", "call", "identifier", "assignment"]) {
        match node.kind() {
            "global_statement" => {
                return Err(format!(
                    "Line {} of the candidate sets a global name, which would be another one in this file.",
                    line(node)
                ));
            }
            "call" if matches!(source.field(node, "function"), "globals" | "locals" | "exec" | "eval") => {
                let what = source.field(node, "function");
                return Err(format!(
                    "Line {} of the candidate calls `{what}`, which depends on its file.",
                    line(node)
                ));
            }
            "identifier" if source.of(node) == "__file__" => {
                return Err(format!("Line {} of the candidate uses the path of its own file.", line(node)));
            }
            "assignment" => {
                let left = source.field(node, "left");
                if ["torch.backends", "torch.set_", "torch._"].iter().any(|start| left.starts_with(start)) {
                    return Err(format!(
                        "Line {} of the candidate sets `{left}` for the whole process.",
                        line(node)
                    ));
                }
            }
            _ => {}
        }
    }
    if let Some(call) = all(statement, &["call"])
        .into_iter()
        .find(|call| source.field(*call, "function").starts_with("torch.set_"))
    {
        return Err(format!("Line {} of the candidate changes a setting of the whole process.", line(call)));
    }
    Ok(())
}

/// Top-level names that kernels of Triton use, themselves included: its compiler looks them up among the file's globals.
pub(super) fn triton_names(source: &Source<'_>, kept: &[Node]) -> HashSet<String> {
    let known: HashSet<String> = kept.iter().flat_map(|statement| bound(source, *statement)).collect();
    let mut names = HashSet::new();
    for statement in kept {
        let inner = undecorated(*statement);
        let is_kernel = inner.kind() == "function_definition"
            && decorators(source, inner).iter().any(|text| text.ends_with(".jit") && !text.contains("torch"));
        if is_kernel {
            names.insert(source.field(inner, "name").to_owned());
            names.extend(
                used(source, *statement).into_iter().filter(|name| known.contains(*name)).map(str::to_owned),
            );
        }
    }
    names
}

/// The span of a statement with the comments above it.
pub(super) fn whole(source: &Source<'_>, node: Node) -> Span {
    Span::new(super::layout::with_comments(source, node), node.end_byte())
}
