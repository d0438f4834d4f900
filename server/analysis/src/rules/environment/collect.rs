//! Collects a [`Piece`] from one item of a file.

use tree_sitter::Node;

use super::exact::{expanded, is_padded, is_rounding_name};
use super::local::LocalConstants;
use super::{GlobalKind, LaunchPiece, Piece, floating_text};
use crate::rules::call::callee;
use crate::rules::constants::{Token, Tokens, split_arguments};
use crate::rules::types::Type;

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
        rounding: Vec::new(),
        padded: Vec::new(),
        blocks: Vec::new(),
        locals: LocalConstants::default(),
        assigned: Vec::new(),
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
    /// Local names of the open function that stand for a number of blocks that was rounded up.
    rounding: Vec<&'t str>,
    /// Local names of the open function that stand for a size that was rounded up to whole blocks.
    padded: Vec<&'t str>,
    /// Local `dim3`s of the open function, as if written in place.
    blocks: Vec<(&'t str, String)>,
    /// Local constants of the open function.
    locals: LocalConstants<'t>,
    /// Local names of the open function that are set once, and to what.
    assigned: Vec<(&'t str, &'t str)>,
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
                false
            }
            "preproc_function_def" => {
                self.function_macro(node);
                false
            }
            "function_definition" => self.function(node),
            "type_definition" => {
                let (name, ty) = (self.field(node, "declarator"), self.field(node, "type"));
                self.named_type = node.child_by_field_name("type").map(|ty| (ty.id(), name));
                if !inside {
                    self.piece.aliases.push((name.to_owned(), ty.to_owned()));
                }
                true
            }
            "alias_declaration" if !inside => {
                let (name, ty) = (self.field(node, "name"), self.field(node, "type"));
                self.piece.aliases.push((name.to_owned(), ty.to_owned()));
                true
            }
            "declaration" | "field_declaration" if !inside => {
                self.declaration(node);
                true
            }
            "class_specifier" | "struct_specifier" => {
                let given = self.named_type.take().filter(|(ty, name)| *ty == node.id() && !name.is_empty());
                self.classes.push(given.map_or_else(|| self.field(node, "name"), |(_, name)| name));
                true
            }
            "enum_specifier" => {
                self.enumeration(node, inside);
                false
            }
            "compound_statement" if inside => {
                self.locals.open();
                true
            }
            "declaration" => {
                self.local_constants(node);
                self.blocks(node);
                true
            }
            "init_declarator" | "assignment_expression" if inside => {
                self.changed(self.field(node, "left"));
                self.local(node);
                let value = node.child_by_field_name("value").or_else(|| node.child_by_field_name("right"));
                let name =
                    node.child_by_field_name("declarator").or_else(|| node.child_by_field_name("left"));
                if let (Some(name), Some(value)) = (name, value)
                    && self.rounding.len() + self.padded.len() < MOST_NAMES
                {
                    if is_padded(self.text(value)) {
                        self.padded.push(self.text(name));
                    } else if self.rounds_up(self.text(value)) {
                        self.rounding.push(self.text(name));
                    }
                }
                true
            }
            // `dim3 grid(a, b)` may read as a function.
            "function_declarator" if inside => {
                if self.rounds_up(self.field(node, "parameters")) {
                    self.rounding.push(self.field(node, "declarator"));
                }
                true
            }
            "update_expression" if inside => {
                self.changed(self.field(node, "argument"));
                true
            }
            "call_expression" if inside => {
                self.call(node);
                true
            }
            _ => true,
        }
    }

    /// Remembers `const int name = …`, and what hides such a name.
    fn local_constants(&mut self, declaration: Node<'t>) {
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
                self.locals.declare(self.text(name), value);
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
                let text = self.locals.in_place(self.text(value));
                let bare = matches!(value.kind(), "argument_list" | "parameter_list");
                self.blocks.push((name, if bare { format!("dim3{text}") } else { text }));
            }
        }
    }

    /// Forgets a `dim3` that is set again, itself or a member.
    fn changed(&mut self, target: &str) {
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
    fn in_place(&self, grid: &str) -> String {
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
                self.rounding.clear();
                self.padded.clear();
                self.blocks.clear();
                self.locals = LocalConstants::default();
                self.assigned.clear();
            }
        }
    }

    /// `#define NAME(a, b) text`. What is longer than an index is not kept.
    fn function_macro(&mut self, node: Node<'t>) {
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

    fn macro_uses(&mut self, name: &str, value: &str) {
        let used: Vec<String> = Tokens::new(value)
            .filter_map(|(token, _)| match token {
                Token::Name(used) => Some(last_component(used).to_owned()),
                _ => None,
            })
            .collect();
        self.piece.uses.push((name.to_owned(), used));
    }

    /// Says whether the body is worth a look: device code launches nothing and checks nothing.
    fn function(&mut self, node: Node<'t>) -> bool {
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

    fn declaration(&mut self, node: Node<'t>) {
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
    fn enumeration(&mut self, node: Node<'t>, inside: bool) {
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
                self.locals.declare(name, Some(&value));
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

    fn call(&mut self, node: Node<'t>) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let Some(name) = callee(function).map(|name| self.text(name)) else { return };
        let configuration =
            (1..4).filter_map(|index| node.child(index)).find(|child| child.kind() == "kernel_call_syntax");
        if let Some(configuration) = configuration {
            let mut cursor = configuration.walk();
            let mut sizes =
                configuration.named_children(&mut cursor).filter(|child| child.kind() != "comment");
            let grid = sizes.next().map_or("", |grid| self.text(grid));
            let block = sizes.next().map_or("", |block| self.text(block));
            let local = self.blocks.iter().rev().find(|(name, _)| *name == block);
            let rounds_up = self.rounds_up(grid);
            let in_place = self.in_place(grid);
            self.piece.launches.push(LaunchPiece {
                kernel: name.to_owned(),
                block: local.map_or_else(|| self.locals.in_place(block), |(_, text)| text.clone()),
                rounds_up,
                divides: !rounds_up && in_place.contains('/'),
                grid: if rounds_up { in_place } else { String::new() },
                one_block: matches!(grid, "1" | "dim3(1)"),
                template_arguments: self.template_arguments(function),
            });
            return;
        }
        self.piece.wraps_calls |= self.is_wrapper(node, name);
        for (_, index) in &self.functions {
            if let Some((_, used)) = self.piece.uses.get_mut(*index) {
                used.push(name.to_owned());
            }
        }
    }

    /// Whether the first argument is a call of the runtime, so that its error goes somewhere.
    fn is_wrapper(&self, node: Node, name: &str) -> bool {
        let first = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
        let function = first.and_then(|first| first.child_by_field_name("function"));
        !name.starts_with("cuda") && function.is_some_and(|function| self.text(function).starts_with("cuda"))
    }

    /// The template arguments of `kernel<…>` or `detail::kernel<…>`, as written.
    fn template_arguments(&self, function: Node) -> Option<Vec<String>> {
        let named = function.child_by_field_name("name");
        let template =
            std::iter::once(function).chain(named).find(|node| node.kind() == "template_function")?;
        let list = template.child_by_field_name("arguments")?;
        if list.end_byte() - list.start_byte() > LONGEST_TEXT {
            // As many as there may be, none of them known.
            return Some(vec![String::new(); MOST_NAMES]);
        }
        let mut cursor = list.walk();
        let arguments = list.named_children(&mut cursor).filter(|child| child.kind() != "comment");
        Some(arguments.map(|argument| self.locals.in_place(self.text(argument))).collect())
    }

    /// Whether a number of blocks is rounded up to cover every element: `(n + 255) / 256`, `ceil_div(n, 256)`.
    fn rounds_up(&self, text: &str) -> bool {
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

/// The value of a constant that is declared a `ty`: a floating literal takes its type, and tells nothing where that is not known.
fn typed(value: &str, ty: &str) -> String {
    let is_double = floating_text(value).is_some_and(|(_, literal)| literal.is_double());
    match Type::parse(ty) {
        declared if !is_double || declared.is_double() || ty.contains("auto") => value.to_owned(),
        declared if declared.is_float() => format!("{value}f"),
        _ => String::new(),
    }
}

fn is_one_less_than_power(value: i64) -> bool {
    value > 0 && value.checked_add(1).is_some_and(|next| value & next == 0)
}

fn last_component(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
