//! What a cursor or a selection in a Python file denotes.
//!
//! The rule: a cursor, a selection that cuts through a statement, or one that holds a whole definition or its whole body denotes the
//! innermost module or function around it; a selection of whole statements inside a function, or of statements at the top level,
//! denotes these statements. A method of a module, `forward` too, denotes the module.

use serde::Serialize;
use stitch_findings::Span;
use tree_sitter::Node;

use super::inputs::{Inputs, inputs_of, inputs_of_statements};
use super::source::{Source, children, decorated, span, undecorated};
use super::statements::{self, Statements};
use super::targets::{Target, enclosing, of_definition};

/// What a place in a file denotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "denotes", rename_all = "lowercase")]
pub enum Denoted {
    /// A module or a function.
    Target(Target),
    /// Statements that can become a function.
    Statements(Statements),
}

impl Denoted {
    /// What it is called in a menu or a message: `Net`, `lines 12 to 14 of Net.forward`.
    pub fn title(&self) -> String {
        match self {
            Self::Target(target) => target.name.clone(),
            Self::Statements(statements) => {
                let [first, last] = statements.lines;
                let lines =
                    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
                match &statements.function {
                    Some(function) => format!("{lines} of {function}"),
                    None => lines,
                }
            }
        }
    }
}

/// What a selection, or a cursor as an empty one, denotes.
///
/// # Errors
/// Why it denotes nothing that can be optimised, in one sentence for a menu.
pub fn denoted(text: &str, selection: Span) -> Result<Denoted, String> {
    let source = Source::new(text).ok_or("The file is too long or too deeply nested to be parsed.")?;
    if let Some(nodes) = statements::selected(&source, selection) {
        if let [only] = nodes[..]
            && matches!(undecorated(only).kind(), "class_definition" | "function_definition")
        {
            return definition(&source, undecorated(only), text);
        }
        if !is_whole_body(&nodes) {
            return statements::of_nodes(&source, &nodes).map(Denoted::Statements);
        }
    }
    let trimmed = text.get(selection.range()).unwrap_or_default();
    let at = selection.start + (trimmed.len() - trimmed.trim_start().len());
    let at = if trimmed.trim().is_empty() { selection.start } else { at };
    match around(&source, at) {
        Some(node) => definition(&source, node, text),
        None => {
            Err("There is no module and no function here; put the cursor into one, or select statements."
                .to_owned())
        }
    }
}

/// Whether statements are all that a function or class does.
fn is_whole_body(nodes: &[Node]) -> bool {
    let Some(block) = nodes.first().and_then(|first| first.parent()) else { return false };
    let owner = block
        .parent()
        .is_some_and(|owner| matches!(owner.kind(), "function_definition" | "class_definition"));
    let body: Vec<_> = children(block);
    let docstring = usize::from(super::source::docstring(block).is_some());
    owner && nodes.len() + docstring >= body.len()
}

/// The innermost definition around an offset, its decorators included.
fn around<'t>(source: &'t Source<'_>, at: usize) -> Option<Node<'t>> {
    let mut node = source.root().descendant_for_byte_range(at, at)?;
    // A cursor behind the last character of a line, or on its indentation, is still in the block of that line.
    if node.parent().is_none() || node.kind() == "block" {
        let start = source.line_start(at);
        let first = start + source.indent(at).len();
        node = source.root().descendant_for_byte_range(first, first)?;
    }
    loop {
        let inner = undecorated(node);
        if matches!(inner.kind(), "class_definition" | "function_definition")
            && span(decorated(inner)).touches(at)
        {
            return Some(inner);
        }
        node = node.parent()?;
    }
}

/// What a definition denotes: itself, or the module or function that it belongs to.
fn definition(source: &Source<'_>, node: Node, text: &str) -> Result<Denoted, String> {
    let mut first = None;
    let mut at = Some(node);
    while let Some(here) = at {
        match of_definition(source, here, text) {
            Ok(target) => return Ok(Denoted::Target(target)),
            Err(why) => first.get_or_insert(why),
        };
        at = enclosing(here);
    }
    Err(first.unwrap_or_default())
}

/// Whether Optimize is possible for a selection, for a menu that shows a disabled entry with its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Offer {
    /// It is, with these inputs.
    Ready {
        /// What would be optimised.
        denoted: Denoted,
    },
    /// Inputs are missing; each proposal is a comment that the person can have inserted.
    NeedsInputs {
        /// What would be optimised.
        denoted: Denoted,
        /// Why they are missing, in one sentence.
        reason: String,
        /// The comments, best first; may be empty.
        proposals: Vec<super::propose::Proposal>,
    },
    /// It is not.
    Disabled {
        /// Why, in one sentence.
        reason: String,
    },
}

/// Says for a selection in a Python file whether Optimize is possible, and if not, why. Pure, and quick enough for each move of a cursor
/// in files of usual length (one parse).
pub fn offer(text: &str, selection: Span) -> Offer {
    let denoted = match denoted(text, selection) {
        Ok(denoted) => denoted,
        Err(reason) => return Offer::Disabled { reason },
    };
    let inputs = match &denoted {
        Denoted::Target(target) => inputs_of(text, target),
        Denoted::Statements(statements) => inputs_of_statements(text, statements),
    };
    match inputs {
        Ok(Inputs::Given(_)) => Offer::Ready { denoted },
        Ok(Inputs::Missing { what, proposals, .. }) => {
            Offer::NeedsInputs { denoted, reason: what, proposals }
        }
        Err(error) => Offer::Disabled { reason: error.to_string() },
    }
}
