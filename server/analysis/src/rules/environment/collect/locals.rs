//! What the names of the open function stand for, as far as its launches may use them.

use tree_sitter::Node;

use super::{LONGEST_INDEX, LONGEST_TEXT, MOST_NAMES};
use crate::rules::constants::{Token, Tokens, split_arguments};
use crate::rules::environment::exact::{expanded, is_padded, is_rounding_name};
use crate::rules::environment::local::LocalConstants;

/// The local names of one function.
#[derive(Default)]
pub(super) struct Locals<'t> {
    source: &'t str,
    /// Those that stand for a number of blocks that was rounded up.
    rounding: Vec<&'t str>,
    /// Those that stand for a size that was rounded up to whole blocks.
    padded: Vec<&'t str>,
    /// `dim3`s, as if written in place.
    blocks: Vec<(&'t str, String)>,
    /// Constants.
    constants: LocalConstants<'t>,
    /// Those that are set once, and to what.
    assigned: Vec<(&'t str, &'t str)>,
}

impl<'t> Locals<'t> {
    /// None yet.
    pub(super) fn new(source: &'t str) -> Self {
        Self { source, ..Self::default() }
    }

    fn text(&self, node: Node) -> &'t str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    fn field(&self, node: Node, name: &str) -> &'t str {
        node.child_by_field_name(name).map_or("", |child| self.text(child))
    }

    /// Opens a block.
    pub(super) fn open(&mut self) {
        self.constants.open();
    }

    /// Closes the innermost block.
    pub(super) fn close(&mut self) {
        self.constants.close();
    }

    /// Takes a name of an enumeration.
    pub(super) fn enumerator(&mut self, name: &'t str, value: &str) {
        self.constants.declare(name, Some(value));
    }

    /// Takes a declaration.
    pub(super) fn declaration(&mut self, declaration: Node<'t>) {
        self.constants(declaration);
        self.blocks(declaration);
    }

    /// Takes `name = value`, with a type or without.
    pub(super) fn set(&mut self, node: Node<'t>) {
        self.forget(self.field(node, "left"));
        self.local(node);
        let value = node.child_by_field_name("value").or_else(|| node.child_by_field_name("right"));
        let name = node.child_by_field_name("declarator").or_else(|| node.child_by_field_name("left"));
        if let (Some(name), Some(value)) = (name, value)
            && self.rounding.len() + self.padded.len() < MOST_NAMES
        {
            if is_padded(self.text(value)) {
                self.padded.push(self.text(name));
            } else if self.rounds_up(self.text(value)) {
                self.rounding.push(self.text(name));
            }
        }
    }

    /// Takes `dim3 grid(a, b)` where it reads as a function.
    pub(super) fn constructed(&mut self, node: Node<'t>) {
        if self.rounds_up(self.field(node, "parameters")) {
            self.rounding.push(self.field(node, "declarator"));
        }
    }

    /// Takes `name++`.
    pub(super) fn stepped(&mut self, node: Node<'t>) {
        self.forget(self.field(node, "argument"));
    }

    /// The size of a block, `dim3`s and constants replaced.
    pub(super) fn block(&self, block: &str) -> String {
        let local = self.blocks.iter().rev().find(|(name, _)| *name == block);
        local.map_or_else(|| self.constants.in_place(block), |(_, text)| text.clone())
    }

    /// A text with constants replaced.
    pub(super) fn with_constants(&self, text: &str) -> String {
        self.constants.in_place(text)
    }

    /// Remembers `const int name = …`, and what hides such a name.
    fn constants(&mut self, declaration: Node<'t>) {
        let mut cursor = declaration.walk();
        let is_constant = declaration.children(&mut cursor).any(|child| {
            child.kind() == "type_qualifier" && matches!(self.text(child), "const" | "constexpr")
        });
        for declarator in declaration.children_by_field_name("declarator", &mut cursor) {
            let (name, value) = match declarator.kind() {
                "identifier" => (declarator, None),
                _ => match declarator.child_by_field_name("declarator") {
                    Some(name) => (name, declarator.child_by_field_name("value")),
                    None => continue,
                },
            };
            if name.kind() == "identifier" {
                let value = value.filter(|_| is_constant).map(|value| self.text(value));
                let value = value.map(|text| text.trim_start_matches('{').trim_end_matches('}'));
                self.constants.declare(self.text(name), value);
            }
        }
    }

    /// Remembers `dim3 name(…)` and `dim3 name = …`.
    fn blocks(&mut self, declaration: Node<'t>) {
        if self.field(declaration, "type") != "dim3" {
            return;
        }
        let mut cursor = declaration.walk();
        for declarator in declaration.children_by_field_name("declarator", &mut cursor) {
            let name = self.field(declarator, "declarator");
            let value = declarator
                .child_by_field_name("value")
                .or_else(|| declarator.child_by_field_name("parameters"));
            self.blocks.retain(|(known, _)| *known != name);
            if let Some(value) = value.filter(|value| value.end_byte() - value.start_byte() <= LONGEST_TEXT)
                && self.blocks.len() < MOST_NAMES
            {
                let text = self.constants.in_place(self.text(value));
                let bare = matches!(value.kind(), "argument_list" | "parameter_list");
                self.blocks.push((name, if bare { format!("dim3{text}") } else { text }));
            }
        }
    }

    /// Forgets a `dim3` that is set again, itself or a member.
    fn forget(&mut self, target: &str) {
        let name = target.split('.').next().unwrap_or(target).trim();
        self.blocks.retain(|(known, _)| *known != name);
        self.assigned.retain(|(known, _)| *known != name);
    }

    /// Remembers `type name = value`.
    fn local(&mut self, declarator: Node<'t>) {
        // What a constructor is given is no value.
        let value = declarator.child_by_field_name("value").filter(|value| !value.kind().ends_with("_list"));
        let (name, value) =
            (self.field(declarator, "declarator"), value.map_or("", |value| self.text(value)));
        let is_short = !value.is_empty() && value.len() <= LONGEST_INDEX && self.assigned.len() < MOST_NAMES;
        self.assigned.retain(|(known, _)| *known != name);
        if is_short && !name.is_empty() {
            self.assigned.push((name, value));
        }
    }

    /// A grid with local names replaced.
    pub(super) fn in_place(&self, grid: &str) -> String {
        expanded(grid, |name, member| {
            let block =
                || self.blocks.iter().rev().find(|(known, _)| *known == name).map(|(_, text)| text.as_str());
            let Some(member) = member else {
                let local = self.assigned.iter().rev().find(|(known, _)| *known == name);
                return local.map(|(_, text)| *text).or_else(block);
            };
            let axis = ["x", "y", "z"].iter().position(|axis| *axis == member)?;
            let sizes = block()?.trim_start_matches("dim3").trim();
            let sizes = sizes.get(1..sizes.len().checked_sub(1)?)?;
            Some(split_arguments(sizes)?.get(axis).copied().unwrap_or("1"))
        })
    }

    /// Whether a number of blocks is rounded up to cover every element: `(n + 255) / 256`, `ceil_div(n, 256)`.
    pub(super) fn rounds_up(&self, text: &str) -> bool {
        if text.len() > LONGEST_TEXT {
            return false;
        }
        let mut divides = false;
        let mut adds = false;
        let mut subtracts = false;
        let mut names_one = false;
        let mut rounds = false;
        let mut depth = 0usize;
        for (token, _) in Tokens::new(text) {
            match token {
                Token::Symbol("(") => depth += 1,
                Token::Symbol(")") => depth = depth.saturating_sub(1),
                // `(n + 31) / 32 * 32` pads a size, and what is divided by it then is exact.
                Token::Symbol("*") if depth == 0 && divides => return false,
                Token::Symbol("/") => divides = true,
                Token::Symbol("+") => adds = true,
                Token::Symbol("-") => subtracts = true,
                // `n / 256 + 1` has one more block in any case.
                Token::Literal(Some(1)) if adds && divides && depth == 0 => subtracts = true,
                Token::Literal(Some(value)) if adds && is_one_less_than_power(value) => subtracts = true,
                // Blocks of a size that was rounded up to whole blocks cover it exactly.
                Token::Name(name) if self.padded.contains(&name) => return false,
                Token::Name(name) if is_rounding_name(name) => rounds = true,
                Token::Name(name) => names_one |= self.rounding.contains(&name),
                _ => {}
            }
        }
        rounds || divides && adds && subtracts || names_one && !divides
    }
}

fn is_one_less_than_power(value: i64) -> bool {
    value > 0 && value.checked_add(1).is_some_and(|next| value & next == 0)
}
