//! Arguments of calls in the file, as expressions that can be evaluated outside of where they stand.
//!
//! A name of the file's top level is known to the runner as well and stays. Any other is replaced by what was assigned to it last
//! before the call, where that is one plain assignment. Devices are left out: the Verifier chooses them.

use std::collections::HashSet;

use tree_sitter::Node;

use super::super::source::{Source, all, children, each, fields, is_name, parameters};
use super::super::statements::targets_of;
use super::super::targets::enclosing;

/// Names are replaced so many levels deep.
const DEEPEST: usize = 8;
/// Longer expressions are no proposal that a person would read, in bytes.
const LONGEST: usize = 300;
/// Builtin names that an expression may hold.
const BUILTINS: &[&str] = &[
    "abs", "bool", "dict", "float", "int", "len", "list", "max", "min", "range", "round", "set", "sum",
    "tuple", "zip",
];
/// Arguments that are about devices and gradients.
const DROPPED: &[&str] = &["device", "requires_grad", "pin_memory"];

/// Reads arguments of calls.
pub(super) struct Tracer<'s, 'a> {
    source: &'s Source<'a>,
    top: HashSet<String>,
}

impl<'s, 'a> Tracer<'s, 'a> {
    pub(super) fn new(source: &'s Source<'a>) -> Self {
        let mut top: HashSet<String> = HashSet::new();
        for statement in children(source.root()) {
            let inner = super::super::source::undecorated(statement);
            match inner.kind() {
                "class_definition" | "function_definition" => {
                    top.insert(source.field(inner, "name").to_owned());
                }
                "import_statement" | "import_from_statement" => {
                    for name in fields(inner, "name") {
                        let alias = source.field(name, "alias");
                        let plain = source.of(name).split('.').next().unwrap_or_default();
                        top.insert(if alias.is_empty() { plain } else { alias }.to_owned());
                    }
                }
                "expression_statement" => {
                    let left = inner.named_child(0).and_then(|node| node.child_by_field_name("left"));
                    top.extend(left.into_iter().flat_map(|left| targets_of(source, left)));
                }
                _ => {}
            }
        }
        Self { source, top }
    }

    /// The argument list of a call; `None` where it can't be evaluated elsewhere.
    pub(super) fn arguments(&self, call: Node) -> Option<String> {
        let list = call.child_by_field_name("arguments").filter(|list| list.kind() == "argument_list")?;
        let mut parts = Vec::new();
        for argument in children(list) {
            match argument.kind() {
                "keyword_argument" => {
                    let name = self.source.field(argument, "name");
                    if !DROPPED.contains(&name) {
                        let value = self.portable(argument.child_by_field_name("value")?, 0)?;
                        parts.push(format!("{name}={value}"));
                    }
                }
                "list_splat" | "dictionary_splat" => return None,
                _ => parts.push(self.portable(argument, 0)?),
            }
        }
        let text = parts.join(", ");
        (text.len() <= LONGEST).then_some(text)
    }

    /// An expression whose names are all known at the top level.
    pub(super) fn portable(&self, node: Node, depth: usize) -> Option<String> {
        if depth > DEEPEST {
            return None;
        }
        let mut edits: Vec<(usize, usize, String)> = Vec::new();
        let mut good = true;
        each(node, |inner| {
            if !good || edits.last().is_some_and(|(_, end, _)| inner.end_byte() <= *end) {
                return false;
            }
            if let Some(object) = self.moved(inner) {
                match self.portable(object, depth + 1) {
                    Some(text) => edits.push((inner.start_byte(), inner.end_byte(), text)),
                    None => good = false,
                }
                return false;
            }
            match inner.kind() {
                "keyword_argument" if DROPPED.contains(&self.source.field(inner, "name")) => {
                    // With the comma before it.
                    let before = self.source.text[..inner.start_byte()].trim_end();
                    let start = before.strip_suffix(',').map_or(inner.start_byte(), str::len);
                    edits.push((start, inner.end_byte(), String::new()));
                    return false;
                }
                "lambda"
                | "await"
                | "yield"
                | "list_comprehension"
                | "generator_expression"
                | "named_expression"
                | "dictionary_comprehension"
                | "set_comprehension" => good = false,
                "identifier" if is_name(inner) => match self.name(inner, depth) {
                    Some(None) => {}
                    Some(Some(text)) => edits.push((inner.start_byte(), inner.end_byte(), text)),
                    None => good = false,
                },
                "attribute" if self.source.of(inner) == "torch.empty" => {
                    edits.push((inner.start_byte(), inner.end_byte(), "torch.randn".to_owned()));
                    return false;
                }
                _ => {}
            }
            good
        });
        let text = good.then(|| splice(self.source.text, node, &edits))??;
        let text =
            text.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(" )", ")");
        (text.len() <= LONGEST).then_some(text)
    }

    /// For `x.cuda()`, `x.to(device)` and the like: `x`.
    fn moved<'t>(&self, call: Node<'t>) -> Option<Node<'t>> {
        if call.kind() != "call" {
            return None;
        }
        let function =
            call.child_by_field_name("function").filter(|function| function.kind() == "attribute")?;
        let list = self.source.field(call, "arguments");
        let moves = match self.source.field(function, "attribute") {
            "cuda" | "cpu" | "requires_grad_" | "eval" | "detach" => true,
            "to" => list.contains("device") || list.contains("cuda") || list.contains("cpu"),
            _ => false,
        };
        moves.then(|| function.child_by_field_name("object")).flatten()
    }

    /// `Some(None)` for a name that stays, the text for one that is replaced, `None` for one that is not known.
    #[expect(clippy::option_option, reason = "a name may stay, be replaced, or be unknown")]
    fn name(&self, node: Node, depth: usize) -> Option<Option<String>> {
        let name = self.source.of(node);
        if let Some(text) = self.assigned(node, depth) {
            return text.map(Some);
        }
        (self.top.contains(name) || BUILTINS.contains(&name)).then_some(None)
    }

    /// What was assigned last, before the name is read, in the function or block around it. Outer `None`: it is no name of these.
    #[expect(
        clippy::option_option,
        reason = "a name that is local but not traced is not the same as one that is not local"
    )]
    fn assigned(&self, node: Node, depth: usize) -> Option<Option<String>> {
        let name = self.source.of(node);
        let function = enclosing(node).filter(|outer| outer.kind() == "function_definition");
        let scope = function
            .and_then(|function| function.child_by_field_name("body"))
            .unwrap_or_else(|| self.source.root());
        let mut last = None;
        let mut local = false;
        each(scope, |inner| {
            let left = match inner.kind() {
                "assignment" | "for_statement" | "augmented_assignment" => inner.child_by_field_name("left"),
                "as_pattern_target" => Some(inner),
                _ => None,
            };
            if left.is_some_and(|left| targets_of(self.source, left).iter().any(|target| target == name)) {
                local = true;
                if inner.end_byte() <= node.start_byte()
                    || inner.kind() == "for_statement" && inner.start_byte() < node.start_byte()
                {
                    last = Some(inner);
                }
            }
            !matches!(inner.kind(), "function_definition" | "class_definition" | "lambda")
        });
        let at_top = |assignment: Node| {
            assignment.parent().and_then(|s| s.parent()).is_some_and(|b| b.kind() == "module")
        };
        if let Some(function) = function {
            let parameter =
                parameters(self.source, function).into_iter().find(|parameter| parameter.name == name);
            if let (None, Some(parameter)) = (last, &parameter) {
                let default = parameter
                    .default
                    .filter(|text| text.parse::<f64>().is_ok() || matches!(*text, "True" | "False"));
                return Some(default.map(str::to_owned));
            }
        } else if last.is_some_and(at_top) {
            // Of the top level: it stays what it is.
            return None;
        }
        let Some(assignment) = last else { return local.then_some(None) };
        let plain = assignment.kind() == "assignment"
            && assignment.child_by_field_name("left").is_some_and(|left| left.kind() == "identifier");
        let value = assignment.child_by_field_name("right").filter(|_| plain);
        Some(value.and_then(|value| self.portable(value, depth + 1)).map(|text| {
            let simple = text.chars().all(|c| c.is_alphanumeric() || "._".contains(c));
            let is_call =
                value.is_some_and(|value| matches!(value.kind(), "call" | "tuple" | "list" | "string"));
            if simple || is_call { text } else { format!("({text})") }
        }))
    }
}

/// The text of a node with parts replaced.
fn splice(text: &str, node: Node, edits: &[(usize, usize, String)]) -> Option<String> {
    let mut result = String::new();
    let mut at = node.start_byte();
    for (start, end, new) in edits {
        result.push_str(text.get(at..*start)?);
        result.push_str(new);
        at = *end;
    }
    result.push_str(text.get(at..node.end_byte())?);
    Some(result)
}

/// The class that an expression makes an instance of: `Net(…)`, `Net(…).to(device)`, `nn.DataParallel(Net(…))`.
pub(super) fn made<'t>(source: &Source<'_>, node: Node<'t>, class: &str) -> Option<Node<'t>> {
    let calls = all(node, &["call"]);
    calls.into_iter().find(|call| source.field(*call, "function").rsplit('.').next() == Some(class))
}
