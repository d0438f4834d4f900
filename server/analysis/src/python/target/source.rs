//! A whole Python file as a tree, and the few questions that everything here asks of it.
//!
//! Offsets are those of the file. Expressions are walked in the order of the text without recursion; blocks nest at most as deep as the
//! parser lets them (200).

use stitch_findings::Span;
use tree_sitter::{Node, Tree};

use crate::python::parse::{PieceParser, Prepared};

/// A file and its tree.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    tree: Tree,
}

impl<'a> Source<'a> {
    /// `None` for a text that is too long, too deep, or takes too long to parse.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        // The grammar knows no byte order mark. Blank lines are as long, and change no offset.
        let shown = match text.strip_prefix('\u{feff}') {
            Some(rest) => std::borrow::Cow::Owned(format!("\n\n\n{rest}")),
            None => std::borrow::Cow::Borrowed(text),
        };
        let prepared = Prepared::new(&shown, false)?;
        let parsed = PieceParser::new().parse(&prepared, &|| true).ok()??;
        Some(Self { text, tree: parsed.tree })
    }

    pub(super) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// The text of a node.
    pub(super) fn of(&self, node: Node) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The text of a field of a node; empty where it has none.
    pub(super) fn field(&self, node: Node, field: &str) -> &'a str {
        node.child_by_field_name(field).map_or("", |child| self.of(child))
    }

    /// Where the line that `at` is in begins.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(self.text);
        before.rfind(['\n', '\r']).map_or(0, |end| end + 1)
    }

    /// The white space before the first word of the line that `at` is in.
    pub(super) fn indent(&self, at: usize) -> &'a str {
        let line = self.text.get(self.line_start(at)..).unwrap_or_default();
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// Behind the line end of the line that `at` is in.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        match rest.find(['\n', '\r']) {
            Some(end) => at + end + if rest[end..].starts_with("\r\n") { 2 } else { 1 },
            None => self.text.len(),
        }
    }

    /// The number of the line that `at` is in, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        let ends = |(index, byte): (usize, &u8)| match byte {
            b'\n' => true,
            b'\r' => self.text.as_bytes().get(index + 1) != Some(&b'\n'),
            _ => false,
        };
        before.iter().enumerate().filter(|pair| ends(*pair)).count() + 1
    }

    /// The line end that the file uses.
    pub(super) fn newline(&self) -> &'static str {
        match self.text.find(['\n', '\r']) {
            Some(at) if self.text[at..].starts_with("\r\n") => "\r\n",
            Some(at) if self.text[at..].starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// One step of indentation, as the first indented block of the file has it.
    pub(super) fn step(&self) -> String {
        let mut step = None;
        each(self.root(), |node| {
            if node.kind() == "block" && step.is_none() {
                let outer = node.parent().map_or("", |parent| self.indent(parent.start_byte()));
                let own = self.indent(node.start_byte());
                let deeper = own.strip_prefix(outer).filter(|deeper| !deeper.is_empty());
                step = deeper.map(str::to_owned);
            }
            step.is_none()
        });
        step.unwrap_or_else(|| "    ".to_owned())
    }
}

/// The span of a node.
pub(super) fn span(node: Node) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}

/// The named children of a node, comments left out.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

/// The children of a node in a field.
pub(super) fn fields<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(field, &mut cursor).collect()
}

/// Visits a node and all named ones below it in the order of the text; `visit` says whether to go into a node.
pub(super) fn each<'t>(node: Node<'t>, mut visit: impl FnMut(Node<'t>) -> bool) {
    let mut cursor = node.walk();
    let mut depth = 0usize;
    loop {
        let here = cursor.node();
        let enter = here.is_named() && visit(here);
        if enter && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        loop {
            if depth == 0 {
                return;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            cursor.goto_parent();
            depth -= 1;
        }
    }
}

/// The nodes of a kind in a node, in the order of the text.
pub(super) fn all<'t>(node: Node<'t>, kinds: &[&str]) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    each(node, |node| {
        if kinds.contains(&node.kind()) {
            found.push(node);
        }
        true
    });
    found
}

/// A definition without its decorators.
pub(super) fn undecorated(node: Node<'_>) -> Node<'_> {
    if node.kind() == "decorated_definition" {
        node.child_by_field_name("definition").unwrap_or(node)
    } else {
        node
    }
}

/// A definition with its decorators.
pub(super) fn decorated(node: Node<'_>) -> Node<'_> {
    node.parent().filter(|parent| parent.kind() == "decorated_definition").unwrap_or(node)
}

/// Whether an identifier is a name that is read or set, and no attribute, keyword or parameter's name.
pub(super) fn is_name(node: Node) -> bool {
    if node.kind() != "identifier" {
        return false;
    }
    let Some(parent) = node.parent() else { return true };
    let is = |field: &str| parent.child_by_field_name(field).is_some_and(|child| child.id() == node.id());
    match parent.kind() {
        "attribute" => !is("attribute"),
        "keyword_argument" => !is("name"),
        _ => true,
    }
}

/// How a parameter takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By its place, perhaps also by its name.
    Positional,
    /// By its name only.
    Keyword,
    /// `*args`.
    Rest,
    /// `**kwargs`.
    Keywords,
}

/// A parameter of a Python function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    pub(super) annotation: Option<&'a str>,
    pub(super) default: Option<&'a str>,
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// The parameters of a function definition, `self` included.
pub(super) fn parameters<'a>(source: &Source<'a>, function: Node) -> Vec<Parameter<'a>> {
    let Some(list) = function.child_by_field_name("parameters") else { return Vec::new() };
    let mut found = Vec::new();
    let mut kind = Kind::Positional;
    for node in children(list) {
        let mut name = node;
        let mut own = kind;
        match node.kind() {
            "keyword_separator" => {
                kind = Kind::Keyword;
                continue;
            }
            "typed_parameter" => name = node.named_child(0).unwrap_or(node),
            "default_parameter" | "typed_default_parameter" => {
                name = node.child_by_field_name("name").unwrap_or(node);
            }
            "identifier" | "list_splat_pattern" | "dictionary_splat_pattern" => {}
            _ => continue,
        }
        match name.kind() {
            "list_splat_pattern" => {
                own = Kind::Rest;
                kind = Kind::Keyword;
            }
            "dictionary_splat_pattern" => own = Kind::Keywords,
            _ => {}
        }
        let text = |field| node.child_by_field_name(field).map(|child| source.of(child));
        found.push(Parameter {
            name: source.of(name).trim_start_matches('*'),
            annotation: text("type"),
            default: text("value"),
            kind: own,
            span: span(node),
        });
    }
    found
}

/// The docstring of a function, class or file: the node of the string.
pub(super) fn docstring(block: Node<'_>) -> Option<Node<'_>> {
    let first = children(block).into_iter().next()?;
    let string = first.named_child(0).filter(|_| first.kind() == "expression_statement")?;
    (string.kind() == "string" || string.kind() == "concatenated_string").then_some(string)
}
