//! Reads the nodes that the walk stops at.

use stitch_findings::Span;
use tree_sitter::{Node, TreeCursor};

use super::facts::{
    Assignment, ClassFact, Compilation, FunctionFact, Growth, Import, ItemCall, KernelText, Move, Origin,
    ParameterFact, RETURNED, Registration,
};
use super::sinks;
use super::value::{PieceText, Value, ValueKind};
use super::walk::Walk;

/// A string expression is looked for so many nodes above a string.
const CLIMB: usize = 32;
/// The longest text that a message quotes, in characters.
const QUOTED: usize = 48;

impl Walk {
    /// `import a.b`, `import a.b as c`.
    pub(super) fn import(&mut self, node: Node, piece: PieceText<'_>) {
        let mut cursor = node.walk();
        for name in node.children_by_field_name("name", &mut cursor) {
            let (path, local) = imported(name, piece);
            // `import a.b` binds `a`.
            let first = path.split('.').next().unwrap_or_default();
            let (local, path) = match local {
                Some(local) => (local, path),
                None => (first, first),
            };
            self.facts.imports.push(Import { local: local.to_owned(), path: path.to_owned() });
        }
    }

    /// `from a import b as c`, `from .a import *`.
    pub(super) fn import_from(&mut self, node: Node, piece: PieceText<'_>) {
        let module = node.child_by_field_name("module_name").map_or("", |module| piece.of(module));
        let mut cursor = node.walk();
        for name in node.children_by_field_name("name", &mut cursor) {
            let (path, local) = imported(name, piece);
            let local = local.unwrap_or(path).to_owned();
            self.facts.imports.push(Import { local, path: format!("{module}.{path}") });
        }
        let mut cursor = node.walk();
        if node.named_children(&mut cursor).any(|child| child.kind() == "wildcard_import") {
            self.facts.imports.push(Import { local: "*".to_owned(), path: module.to_owned() });
        }
    }

    pub(super) fn function(&mut self, node: Node, cursor: &TreeCursor, piece: PieceText<'_>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let outer = self.scope();
        let scope = self.enter_scope(piece.span(node), piece.of(name), false);
        let parameters = node.child_by_field_name("parameters").map(|list| parameters(list, piece));
        self.facts.functions.push(FunctionFact {
            name: piece.of(name).to_owned(),
            outer,
            scope,
            parameters: parameters.unwrap_or_default(),
            span: decorated(node, cursor, piece),
            name_span: piece.span(name),
            body: node.child_by_field_name("body").map(|body| piece.span(body)),
        });
    }

    pub(super) fn class(&mut self, node: Node, cursor: &TreeCursor, piece: PieceText<'_>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let outer = self.scope();
        let scope = self.enter_scope(piece.span(node), piece.of(name), true);
        let mut bases = Vec::new();
        if let Some(list) = node.child_by_field_name("superclasses") {
            let mut walker = list.walk();
            let plain = list.named_children(&mut walker).filter(|base| {
                !matches!(base.kind(), "keyword_argument" | "comment" | "dictionary_splat" | "list_splat")
            });
            bases.extend(plain.map(|base| piece.of(base).to_owned()));
        }
        self.facts.classes.push(ClassFact {
            name: piece.of(name).to_owned(),
            outer,
            scope,
            bases,
            span: decorated(node, cursor, piece),
            name_span: piece.span(name),
        });
    }

    /// The variables of `for a, b in c`.
    pub(super) fn loop_target(&mut self, node: Node, piece: PieceText<'_>) {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        let origin = piece.origin(right);
        for target in targets(left) {
            let value = Value { span: piece.span(right), kind: ValueKind::Unknown };
            self.assign(target, value, origin.clone(), false, piece.span(left), piece);
        }
    }

    pub(super) fn with(&mut self, node: Node, piece: PieceText<'_>) {
        let value = node.child_by_field_name("value");
        let call =
            value.map(|value| if value.kind() == "as_pattern" { value.named_child(0) } else { Some(value) });
        if let Some(call) = call.flatten()
            && call.kind() == "call"
            && call
                .child_by_field_name("function")
                .is_some_and(|function| piece.of(function) == "torch.device")
        {
            self.facts.default_device = true;
        }
    }

    /// `a = b = c`, `a, b = c, d`, `a: T = c`, `a += c`.
    pub(super) fn assignment(&mut self, node: Node, augmented: bool, piece: PieceText<'_>) {
        let (Some(left), Some(mut right)) =
            (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        while right.kind() == "assignment" {
            match right.child_by_field_name("right") {
                Some(next) => right = next,
                None => return,
            }
        }
        let span = piece.span(node);
        let targets = targets(left);
        let paired = targets.len() > 1
            && matches!(right.kind(), "expression_list" | "tuple" | "list")
            && right.named_child_count() == targets.len();
        for (index, target) in targets.into_iter().enumerate() {
            let right = if paired { right.named_child(index as u32).unwrap_or(right) } else { right };
            let value = match left.kind() {
                "pattern_list" | "tuple_pattern" | "list_pattern" if !paired => {
                    Value { span: piece.span(right), kind: ValueKind::Unknown }
                }
                _ => piece.value(right),
            };
            self.assign(target, value, piece.origin(right), augmented, span, piece);
        }
    }

    fn assign(
        &mut self,
        target: Node,
        value: Value,
        origin: Origin,
        augmented: bool,
        span: Span,
        piece: PieceText<'_>,
    ) {
        let Some(path) = piece.path(target) else { return };
        if path.split('.').count() <= 2 {
            let scope = self.scope();
            self.facts.assignments.push(Assignment { scope, target: path, value, origin, augmented, span });
        }
    }

    /// `return value`.
    pub(super) fn returned(&mut self, node: Node, piece: PieceText<'_>) {
        if let Some(value) = node.named_child(0).filter(|_| node.kind() == "return_statement") {
            let value = piece.value(value);
            if !matches!(value.kind, ValueKind::Unknown | ValueKind::Number(_)) {
                self.facts.assignments.push(Assignment {
                    scope: self.scope(),
                    target: RETURNED.to_owned(),
                    value,
                    origin: Origin::default(),
                    augmented: false,
                    span: piece.span(node),
                });
            }
        }
    }

    pub(super) fn call(&mut self, node: Node, piece: PieceText<'_>) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let (object, name) = match function.kind() {
            "identifier" => (None, piece.of(function)),
            "attribute" => (
                function.child_by_field_name("object"),
                function.child_by_field_name("attribute").map_or("", |name| piece.of(name)),
            ),
            _ => return,
        };
        match (name, object) {
            ("item", Some(object)) => self.item(node, object, piece),
            ("cuda" | "to", Some(object)) => self.moved(node, function, object, name, piece),
            ("register_buffer" | "register_parameter" | "register_module" | "add_module", Some(object))
                if piece.of(object) == "self" =>
            {
                self.registration(node, name, piece);
            }
            ("append" | "extend", Some(object)) if object.kind() == "identifier" => {
                self.growth(node, object, name, piece);
            }
            ("synchronize", _) => {
                let scope = self.scope();
                self.facts.waits.push(scope);
            }
            ("set_default_device" | "set_default_tensor_type", _) => self.facts.default_device = true,
            _ if sinks::may_compile(name) || is_given_source(node, piece) => {
                if let Some(function) = piece.path(function) {
                    let call =
                        Compilation { scope: self.scope(), function, arguments: piece.arguments(node) };
                    let compiles = sinks::may_compile(name);
                    let calls =
                        if compiles { &mut self.facts.compilations } else { &mut self.facts.source_calls };
                    calls.push(call);
                }
            }
            _ => {}
        }
    }

    /// `parts.append(text)`, where that may be a text.
    fn growth(&mut self, node: Node, list: Node, method: &str, piece: PieceText<'_>) {
        let Ok([argument]) = <[_; 1]>::try_from(piece.arguments(node)) else { return };
        let items = match argument.value.kind {
            ValueKind::List(items) if method == "extend" => items,
            ValueKind::Unknown | ValueKind::Number(_) | ValueKind::List(_) => return,
            _ if method == "append" && argument.name.is_none() => vec![argument.value],
            _ => return,
        };
        let (scope, span) = (self.scope(), piece.span(node));
        self.facts.growths.push(Growth { scope, target: piece.of(list).to_owned(), items, span });
    }

    fn item(&mut self, node: Node, object: Node, piece: PieceText<'_>) {
        let bare = node.child_by_field_name("arguments").is_some_and(|list| list.named_child_count() == 0);
        if bare && self.repeats(piece.span(node).start.max(piece.span(object).end.saturating_sub(1))) {
            let (scope, receiver) = (self.scope(), piece.origin(object));
            let text = quote(piece.of(object));
            self.facts.items.push(ItemCall { scope, span: piece.span(node), receiver, text });
        }
    }

    fn moved(&mut self, node: Node, function: Node, object: Node, name: &str, piece: PieceText<'_>) {
        let device = piece.device(node, name).or_else(|| self.device_of_parameter(node, name, piece));
        let Some(device) = device else { return };
        let receiver = piece.origin(object);
        if receiver.path.is_empty() || object.kind() == "binary_operator" {
            return;
        }
        let span = piece.span(node);
        let method = function.child_by_field_name("attribute").map_or(span, |method| piece.span(method));
        let text = quote(piece.text.get(method.start..span.end).unwrap_or_default());
        let scope = self.scope();
        let follows_assignment =
            assigned_before(node).is_some_and(|target| piece.of(target) == receiver.path);
        self.facts.moves.push(Move {
            scope,
            span,
            receiver,
            text,
            device: quote(&device),
            follows_assignment,
        });
    }

    /// The device that `.to(x)` moves to in a `forward` that gets the tensor `x`.
    fn device_of_parameter(&self, call: Node, method: &str, piece: PieceText<'_>) -> Option<String> {
        let list = call.child_by_field_name("arguments").filter(|list| list.named_child_count() == 1)?;
        let given = list.named_child(0).filter(|given| given.kind() == "identifier" && method == "to")?;
        let name = piece.of(given);
        let scope = self.scope();
        let function = self.facts.functions.iter().find(|function| function.scope == scope)?;
        let parameter = function.parameters.iter().find(|parameter| parameter.name == name)?;
        let is_type = |text: &str| text.to_ascii_lowercase().contains("type");
        (function.name == "forward" && !is_type(name) && !is_type(&parameter.ty))
            .then(|| format!("{name}.device"))
    }

    fn registration(&mut self, node: Node, by: &str, piece: PieceText<'_>) {
        let name = node.child_by_field_name("arguments").and_then(|list| {
            let mut cursor = list.walk();
            let first = list.named_children(&mut cursor).find(|argument| argument.kind() != "comment")?;
            let first =
                if first.kind() == "keyword_argument" { first.child_by_field_name("value")? } else { first };
            let text = piece.of(first);
            Some(if first.kind() == "string" { text.trim_matches(['"', '\'']) } else { text }.to_owned())
        });
        if let Some(name) = name {
            let (scope, span) = (self.scope(), piece.span(node));
            self.facts.registrations.push(Registration { scope, name, by: by.to_owned(), span });
        }
    }

    /// A string: if it holds a kernel, the whole expression that it is part of.
    pub(super) fn text(&mut self, node: Node, cursor: &TreeCursor, piece: PieceText<'_>) {
        if memchr::memmem::find(piece.of(node).as_bytes(), b"__global__").is_none() {
            return;
        }
        let mut up = cursor.clone();
        let mut whole = node;
        for _ in 0..CLIMB {
            let below = up.node();
            if !up.goto_parent() {
                break;
            }
            let parent = up.node();
            match parent.kind() {
                "concatenated_string" | "parenthesized_expression" | "binary_operator" => whole = parent,
                "attribute" if parent.child_by_field_name("object") == Some(below) => {}
                "call" if parent.child_by_field_name("function") == Some(below) => whole = parent,
                _ => break,
            }
        }
        let value = piece.value(whole);
        if self.facts.kernel_texts.last().is_none_or(|last| last.value.span != value.span) {
            let scope = self.scope();
            self.facts.kernel_texts.push(KernelText { scope, value });
        }
    }
}

/// Words in the names that people give to sources.
const SOURCE_WORDS: [&str; 5] = ["src", "source", "code", "kernel", "cuda"];

/// Whether a call is given a string with a kernel in it, or a name as people give to one. Most calls are not, and are not kept.
fn is_given_source(call: Node, piece: PieceText<'_>) -> bool {
    let Some(list) = call.child_by_field_name("arguments") else { return false };
    let mut cursor = list.walk();
    let is_source = |node: Node| {
        let value =
            if node.kind() == "keyword_argument" { node.child_by_field_name("value") } else { Some(node) };
        let Some(value) = value else { return false };
        let text = piece.of(value);
        match value.kind() {
            "string" | "concatenated_string" | "binary_operator" => {
                memchr::memmem::find(text.as_bytes(), b"__global__").is_some()
            }
            "identifier" | "attribute" => {
                let name = text.rsplit('.').next().unwrap_or(text).to_ascii_lowercase();
                let is_constant = text.len() > 1 && !text.bytes().any(|byte| byte.is_ascii_lowercase());
                is_constant || SOURCE_WORDS.iter().any(|word| name.contains(word))
            }
            _ => false,
        }
    };
    list.named_children(&mut cursor).any(is_source)
}

/// What the statement before the one around `node` assigns to, if that one assigns around `node`.
fn assigned_before(node: Node) -> Option<Node> {
    let mut statement = node;
    while statement.kind() != "expression_statement" {
        statement = statement.parent()?;
    }
    let mut before = statement.prev_named_sibling()?;
    while before.kind() == "comment" {
        before = before.prev_named_sibling()?;
    }
    let assignment = before.named_child(0).filter(|inner| inner.kind() == "assignment")?;
    assignment.child_by_field_name("left")
}

/// The path of an imported name, and the name it gets.
fn imported<'a>(node: Node, piece: PieceText<'a>) -> (&'a str, Option<&'a str>) {
    match (node.child_by_field_name("name"), node.child_by_field_name("alias")) {
        (Some(name), Some(alias)) => (piece.of(name), Some(piece.of(alias))),
        _ => (piece.of(node), None),
    }
}

/// The single targets of a left side, without stars and brackets; nested patterns one level deep.
fn targets(left: Node) -> Vec<Node> {
    match left.kind() {
        "pattern_list" | "tuple_pattern" | "list_pattern" => {
            let mut cursor = left.walk();
            left.named_children(&mut cursor).collect()
        }
        _ => vec![left],
    }
}

/// The span of a definition with its decorators.
fn decorated(node: Node, cursor: &TreeCursor, piece: PieceText<'_>) -> Span {
    let mut up = cursor.clone();
    let around = up.goto_parent().then(|| up.node()).filter(|parent| parent.kind() == "decorated_definition");
    piece.span(around.unwrap_or(node))
}

fn parameters(list: Node, piece: PieceText<'_>) -> Vec<ParameterFact> {
    let mut cursor = list.walk();
    let parameter = |node: Node| {
        let name = match node.kind() {
            "identifier" => node,
            "default_parameter" | "typed_default_parameter" => node.child_by_field_name("name")?,
            "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => {
                let inner = node.named_child(0)?;
                if inner.kind() == "identifier" { inner } else { inner.named_child(0)? }
            }
            _ => return None,
        };
        let ty = node.child_by_field_name("type").map_or("", |ty| piece.of(ty));
        Some(ParameterFact { name: piece.of(name).to_owned(), ty: ty.to_owned(), span: piece.span(node) })
    };
    list.named_children(&mut cursor).filter_map(parameter).collect()
}

/// `text` on one line and not too long.
fn quote(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.chars().count() > QUOTED {
            let cut: String = words.chars().take(QUOTED).collect();
            return cut + "…";
        }
    }
    words
}
