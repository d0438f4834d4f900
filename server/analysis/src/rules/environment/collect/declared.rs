//! What declarations, definitions and macros tell.

use tree_sitter::Node;

use super::{Collector, LONGEST_INDEX, last_component};
use crate::rules::constants::{Token, Tokens};
use crate::rules::environment::{GlobalKind, floating_text};
use crate::rules::types::Type;

impl<'t> Collector<'t> {
    /// `#define NAME(a, b) text`. What is longer than an index is not kept.
    pub(super) fn function_macro(&mut self, node: Node<'t>) {
        let (name, value) = (self.field(node, "name"), self.field(node, "value"));
        self.macro_uses(name, value);
        let Some(list) = node.child_by_field_name("parameters") else { return };
        let mut cursor = list.walk();
        let parameters: Vec<String> =
            list.named_children(&mut cursor).map(|parameter| self.text(parameter).to_owned()).collect();
        // `(reinterpret_cast<float4*>(&(x))[0])` is kept for what it takes the address of.
        let is_plain = !value.contains(['{', ';']) && (!value.contains('[') || value.contains('&'));
        if value.len() <= LONGEST_INDEX && !parameters.is_empty() && is_plain {
            self.piece.macros.push((name.to_owned(), parameters, value.trim().to_owned()));
        }
    }

    pub(super) fn macro_uses(&mut self, name: &str, value: &str) {
        let used: Vec<String> = Tokens::new(value)
            .filter_map(|(token, _)| match token {
                Token::Name(used) => Some(last_component(used).to_owned()),
                _ => None,
            })
            .collect();
        self.piece.uses.push((name.to_owned(), used));
    }

    /// Says whether the body is worth a look: device code launches nothing and checks nothing.
    pub(super) fn function(&mut self, node: Node<'t>) -> bool {
        let Some(declarator) = node.child_by_field_name("declarator") else { return true };
        let name = self.function_name(declarator, node.child_by_field_name("type"));
        let mut cursor = node.walk();
        let body_start = node.child_by_field_name("body").map_or(node.end_byte(), |body| body.start_byte());
        let is_device = node
            .children(&mut cursor)
            .take_while(|child| child.start_byte() < body_start)
            .any(|child| matches!(self.text(child), "__global__" | "__device__"));
        if is_device {
            self.kernel(name.unwrap_or(""), self.field(node, "body"));
            return false;
        }
        self.piece.uses.push((name.unwrap_or("").to_owned(), Vec::new()));
        self.functions.push((node.start_byte(), self.piece.uses.len() - 1));
        true
    }

    /// What a kernel's body tells whoever launches it.
    fn kernel(&mut self, name: &str, body: &str) {
        let is_empty = body.trim_matches(['{', '}', ' ', '\n', '\t', '\r']).is_empty();
        if is_empty || body.contains("printf") {
            self.piece.showing.push(name.to_owned());
        }
        if body.contains("threadIdx") && !body.contains("blockIdx") {
            self.piece.lone.push(name.to_owned());
        }
    }

    /// Notes the signature and returns the function's name.
    fn function_name(&mut self, declarator: Node<'t>, ty: Option<Node<'t>>) -> Option<&'t str> {
        let mut node = declarator;
        let mut pointers = 0;
        while node.kind() != "function_declarator" {
            pointers += usize::from(node.kind() == "pointer_declarator");
            node = node.child_by_field_name("declarator").or_else(|| node.named_child(0))?;
        }
        let name = last_component(self.field(node, "declarator"));
        if let Some(ty) = ty {
            let text = format!("{}{}", self.text(ty), "*".repeat(pointers));
            self.piece.signatures.push((name.to_owned(), text));
        }
        Some(name)
    }

    pub(super) fn declaration(&mut self, node: Node<'t>) {
        let mut cursor = node.walk();
        let (mut is_constant, mut kind) = (false, None);
        for child in node.children(&mut cursor) {
            match self.text(child) {
                "const" | "constexpr" => is_constant = true,
                "__constant__" => kind = Some(GlobalKind::Constant),
                "__device__" => kind = kind.or(Some(GlobalKind::Device)),
                _ => {}
            }
        }
        let ty = node.child_by_field_name("type");
        let declarators: Vec<Node> = node.children_by_field_name("declarator", &mut cursor).collect();
        for declarator in declarators {
            let value =
                declarator.child_by_field_name("value").or_else(|| node.child_by_field_name("default_value"));
            let mut name = declarator;
            let mut suffix = String::new();
            while let Some(inner) = name.child_by_field_name("declarator") {
                match name.kind() {
                    "pointer_declarator" | "array_declarator" => suffix.push('*'),
                    "function_declarator" => {
                        self.function_name(declarator, ty);
                    }
                    _ => {}
                }
                name = inner;
            }
            let text = self.text(name);
            if is_constant
                && suffix.is_empty()
                && let Some(value) = value
            {
                let value = self.text(value).trim_start_matches('{').trim_end_matches('}');
                self.constant(node, text, &typed(value, ty.map_or("", |ty| self.text(ty))));
            }
            if let Some(class) = self.classes.last().filter(|_| node.kind() == "field_declaration") {
                let ty = format!("{}{suffix}", ty.map_or("", |ty| self.text(ty)));
                self.piece.members.push(((*class).to_owned(), text.to_owned(), ty));
            }
            if let Some(kind) = kind {
                let ty = format!("{}{suffix}", ty.map_or("", |ty| self.text(ty)));
                self.piece.globals.push((text.to_owned(), ty, kind));
            }
        }
    }

    /// A constant, also by the name of the class it stands in.
    fn constant(&mut self, node: Node, name: &str, value: &str) {
        self.piece.constants.push((name.to_owned(), value.to_owned()));
        if let Some(class) = self.classes.last().filter(|_| node.kind() == "field_declaration") {
            self.piece.constants.push((format!("{class}::{name}"), value.to_owned()));
        }
    }

    /// The names of an enumeration; `inside` a function they are its own.
    pub(super) fn enumeration(&mut self, node: Node<'t>, inside: bool) {
        let Some(body) = node.child_by_field_name("body") else { return };
        let owner = self.field(node, "name");
        let mut next = "0".to_owned();
        let mut cursor = body.walk();
        for enumerator in body.named_children(&mut cursor).filter(|child| child.kind() == "enumerator") {
            let name = self.field(enumerator, "name");
            let value = match self.field(enumerator, "value") {
                "" => next,
                value => value.to_owned(),
            };
            next = format!("{name} + 1");
            if inside {
                self.locals.enumerator(name, &value);
                continue;
            }
            let name = name.to_owned();
            if let Some(class) = self.classes.last().filter(|class| !class.is_empty()) {
                self.piece.constants.push((format!("{class}::{name}"), value.clone()));
            }
            if !owner.is_empty() {
                self.piece.constants.push((format!("{owner}::{name}"), value.clone()));
            }
            self.piece.constants.push((name, value));
        }
    }
}

/// The value of a constant that is declared a `ty`: a floating literal takes its type, and tells nothing where that is not known.
fn typed(value: &str, ty: &str) -> String {
    let is_double = floating_text(value).is_some_and(|(_, literal)| literal.is_double());
    match Type::parse(ty) {
        declared if !is_double || declared.is_double() || ty.contains("auto") => value.to_owned(),
        declared if declared.is_float() => format!("{value}f"),
        _ => String::new(),
    }
}
