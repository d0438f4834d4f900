//! Collects a [`Piece`] from one item of a file.

mod calls;
mod declared;
mod locals;

use tree_sitter::Node;

use self::locals::Locals;
use super::Piece;

/// Longer expressions than a person writes are not looked into.
const LONGEST_TEXT: usize = 1000;

/// The longest text of a macro that computes an index.
const LONGEST_INDEX: usize = 200;

/// How many local names of one kind are remembered.
const MOST_NAMES: usize = 256;

/// What `item` tells.
pub fn collect(item: Node, source: &str) -> Piece {
    let mut collector = Collector {
        source,
        piece: Piece::default(),
        functions: Vec::new(),
        classes: Vec::new(),
        named_type: None,
        locals: Locals::new(source),
    };
    let mut cursor = item.walk();
    loop {
        let down = collector.enter(cursor.node()) && cursor.goto_first_child();
        if down {
            continue;
        }
        collector.leave(cursor.node());
        loop {
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return collector.piece;
            }
            collector.leave(cursor.node());
        }
    }
}

struct Collector<'t> {
    source: &'t str,
    piece: Piece,
    /// The open function definitions: where each starts, and its place in `uses`.
    functions: Vec<(usize, usize)>,
    /// The names of the open classes.
    classes: Vec<&'t str>,
    /// The type of the innermost `typedef`, by its node, and the name it gets: to ask a node for its parent is to go down from the root.
    named_type: Option<(usize, &'t str)>,
    /// The names of the open function.
    locals: Locals<'t>,
}

impl<'t> Collector<'t> {
    fn text(&self, node: Node) -> &'t str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    fn field(&self, node: Node, name: &str) -> &'t str {
        node.child_by_field_name(name).map_or("", |child| self.text(child))
    }

    /// Takes what a node tells; says whether to look into it.
    fn enter(&mut self, node: Node<'t>) -> bool {
        let inside = !self.functions.is_empty();
        match node.kind() {
            "preproc_def" => {
                let (name, value) = (self.field(node, "name"), self.field(node, "value"));
                self.piece.constants.push((name.to_owned(), value.to_owned()));
                self.macro_uses(name, value);
                return false;
            }
            "preproc_function_def" => {
                self.function_macro(node);
                return false;
            }
            "function_definition" => return self.function(node),
            "type_definition" => {
                let (name, ty) = (self.field(node, "declarator"), self.field(node, "type"));
                self.named_type = node.child_by_field_name("type").map(|ty| (ty.id(), name));
                if !inside {
                    self.piece.aliases.push((name.to_owned(), ty.to_owned()));
                }
            }
            "class_specifier" | "struct_specifier" => {
                let given = self.named_type.take().filter(|(ty, name)| *ty == node.id() && !name.is_empty());
                self.classes.push(given.map_or_else(|| self.field(node, "name"), |(_, name)| name));
            }
            "enum_specifier" => {
                self.enumeration(node, inside);
                return false;
            }
            kind if inside => self.enter_in_function(node, kind),
            "alias_declaration" => {
                let (name, ty) = (self.field(node, "name"), self.field(node, "type"));
                self.piece.aliases.push((name.to_owned(), ty.to_owned()));
            }
            "declaration" | "field_declaration" => self.declaration(node),
            _ => {}
        }
        true
    }

    /// Takes what a node inside of a function tells.
    fn enter_in_function(&mut self, node: Node<'t>, kind: &str) {
        match kind {
            "compound_statement" => self.locals.open(),
            "declaration" => self.locals.declaration(node),
            "init_declarator" | "assignment_expression" => self.locals.set(node),
            "function_declarator" => self.locals.constructed(node),
            "update_expression" => self.locals.stepped(node),
            "call_expression" => self.call(node),
            _ => {}
        }
    }

    fn leave(&mut self, node: Node) {
        if matches!(node.kind(), "class_specifier" | "struct_specifier") {
            self.classes.pop();
        }
        if node.kind() == "compound_statement" && !self.functions.is_empty() {
            self.locals.close();
        }
        if self.functions.last().is_some_and(|(start, _)| *start == node.start_byte())
            && node.kind() == "function_definition"
        {
            self.functions.pop();
            if self.functions.is_empty() {
                self.locals = Locals::new(self.source);
            }
        }
    }
}

fn last_component(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
