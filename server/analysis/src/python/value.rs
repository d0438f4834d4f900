//! What a Python expression makes, as far as it makes text: literals, and the operations that put texts together.
//!
//! Plain data in offsets relative to a piece, so that it is kept while the piece is unchanged. What a name stands for is
//! asked later, when all pieces are known.

use stitch_findings::Span;
use tree_sitter::Node;

/// Operators and calls nested deeper are not followed; sums may be of any length.
const DEPTH: usize = 24;
/// Longer lists of texts are not followed.
const ITEMS: usize = 256;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    /// All of it.
    pub(super) span: Span,
    pub(super) kind: ValueKind,
}

/// A `{…}` of a formatted string.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hole {
    pub(super) span: Span,
    /// The name inside, where nothing else is.
    pub(super) name: Option<String>,
}

/// An argument, with its keyword.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Argument {
    pub(super) name: Option<String>,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueKind {
    /// A string literal.
    Literal { holes: Vec<Hole> },
    /// A number, as written.
    Number(String),
    /// A name with dots: `source`, `self.source`.
    Name(String),
    /// A call of something that is not one of the operations below.
    Call(String),
    /// A sum, or strings side by side.
    Concat(Vec<Value>),
    /// A list or tuple.
    List(Vec<Value>),
    /// `a if c else b`, `a or b`.
    Choice(Vec<Value>),
    /// `.strip()` and its kin, with the characters to strip.
    Strip { inner: Box<Value>, left: bool, right: bool, drop: Option<Box<Value>> },
    /// `textwrap.dedent(…)`.
    Dedent(Box<Value>),
    /// `.replace(from, to)`.
    Replace { inner: Box<Value>, from: Box<Value>, to: Box<Value> },
    /// `.format(…)`.
    Format { inner: Box<Value>, arguments: Vec<Argument> },
    /// `text % (…)`.
    Percent { inner: Box<Value>, arguments: Vec<Argument> },
    /// `template.substitute(…)` of `string.Template`.
    Substitute { inner: Box<Value>, arguments: Vec<Argument> },
    /// `separator.join(list)`.
    Join { separator: Box<Value>, list: Box<Value> },
    /// Anything else.
    Unknown,
}

/// The text of one piece as it was parsed.
#[derive(Clone, Copy)]
pub(super) struct PieceText<'a> {
    /// The piece's own text.
    pub(super) text: &'a str,
    /// How many bytes were put before it.
    pub(super) shift: usize,
}

impl<'a> PieceText<'a> {
    /// The node's span in the piece.
    pub(super) fn span(self, node: Node) -> Span {
        let length = self.text.len();
        let start = node.start_byte().saturating_sub(self.shift).min(length);
        Span::new(start, node.end_byte().saturating_sub(self.shift).min(length))
    }

    /// The node's text.
    pub(super) fn of(self, node: Node) -> &'a str {
        self.text.get(self.span(node).range()).unwrap_or_default()
    }

    /// A name with dots, if the node is one: `torch.nn.Linear`.
    pub(super) fn path(self, node: Node) -> Option<String> {
        let mut parts = Vec::new();
        let mut node = node;
        while node.kind() == "attribute" && parts.len() < DEPTH {
            parts.push(self.of(node.child_by_field_name("attribute")?));
            node = node.child_by_field_name("object")?;
        }
        (node.kind() == "identifier").then(|| {
            parts.push(self.of(node));
            parts.reverse();
            parts.join(".")
        })
    }

    /// Reads an expression.
    pub(super) fn value(self, node: Node) -> Value {
        self.value_at(node, DEPTH)
    }

    /// The arguments of a call, those that are unpacked left out.
    pub(super) fn arguments(self, call: Node) -> Vec<Argument> {
        self.arguments_at(call, DEPTH)
    }

    fn value_at(self, node: Node, depth: usize) -> Value {
        let (mut node, mut depth) = (node, depth);
        while depth > 0
            && let Some(inner) = self.transparent(node)
        {
            node = inner;
            depth -= 1;
        }
        let kind = if depth == 0 { ValueKind::Unknown } else { self.kind(node, depth - 1) };
        Value { span: self.span(node), kind }
    }

    fn kind(self, node: Node, depth: usize) -> ValueKind {
        match node.kind() {
            "string" => ValueKind::Literal { holes: self.holes(node) },
            "concatenated_string" => ValueKind::Concat(self.children(node, depth)),
            "integer" | "float" => ValueKind::Number(self.of(node).to_owned()),
            "identifier" | "attribute" => self.path(node).map_or(ValueKind::Unknown, ValueKind::Name),
            "list" | "tuple" => {
                let items = self.children(node, depth);
                let plain = |item: &Value| matches!(item.kind, ValueKind::Number(_) | ValueKind::Unknown);
                // Tables of numbers may be long, and are no text.
                if !items.is_empty() && items.iter().all(plain) {
                    ValueKind::Unknown
                } else {
                    ValueKind::List(items)
                }
            }
            "conditional_expression" => match (node.named_child(0), node.named_child(2)) {
                (Some(then), Some(other)) => {
                    ValueKind::Choice(vec![self.value_at(then, depth), self.value_at(other, depth)])
                }
                _ => ValueKind::Unknown,
            },
            "boolean_operator" => ValueKind::Choice(self.fields(node, ["left", "right"], depth)),
            "binary_operator" => self.operator(node, depth),
            "call" => self.call(node, depth),
            _ => ValueKind::Unknown,
        }
    }

    /// The expression that makes the same text as `node`: inside of brackets, `str(…)`, `.encode()` and their kin.
    fn transparent<'t>(self, node: Node<'t>) -> Option<Node<'t>> {
        match node.kind() {
            "parenthesized_expression" => {
                let mut cursor = node.walk();
                node.named_children(&mut cursor).find(|child| child.kind() != "comment")
            }
            "named_expression" => node.child_by_field_name("value"),
            "call" => {
                let function = node.child_by_field_name("function")?;
                let first = || {
                    let first = node.child_by_field_name("arguments")?.named_child(0)?;
                    (first.kind() != "keyword_argument").then_some(first)
                };
                if matches!(
                    self.of(function),
                    "str" | "bytes" | "str.encode" | "Template" | "string.Template"
                ) {
                    return first();
                }
                let method = function.child_by_field_name("attribute").map(|method| self.of(method));
                let codes = matches!(method, Some("encode" | "decode"));
                if codes { function.child_by_field_name("object") } else { None }
            }
            _ => None,
        }
    }

    fn children(self, node: Node, depth: usize) -> Vec<Value> {
        let mut cursor = node.walk();
        let children = node.named_children(&mut cursor).filter(|child| child.kind() != "comment");
        children.take(ITEMS).map(|child| self.value_at(child, depth)).collect()
    }

    fn fields(self, node: Node, names: [&str; 2], depth: usize) -> Vec<Value> {
        names
            .iter()
            .filter_map(|name| node.child_by_field_name(name))
            .map(|n| self.value_at(n, depth))
            .collect()
    }

    fn holes(self, node: Node) -> Vec<Hole> {
        let mut cursor = node.walk();
        let interpolations = node.named_children(&mut cursor).filter(|child| child.kind() == "interpolation");
        let hole = |node: Node| {
            let only = node.named_child_count() == 1;
            let name = node.named_child(0).filter(|_| only).and_then(|inner| self.path(inner));
            Hole { span: self.span(node), name }
        };
        interpolations.map(hole).collect()
    }

    /// A sum, whose operands lean to the left and may be many; or `%`.
    fn operator(self, node: Node, depth: usize) -> ValueKind {
        let operator = |node: Node| node.child_by_field_name("operator").map(|operator| self.of(operator));
        match operator(node) {
            Some("%") => {
                let (Some(left), Some(right)) =
                    (node.child_by_field_name("left"), node.child_by_field_name("right"))
                else {
                    return ValueKind::Unknown;
                };
                let inner = Box::new(self.value_at(left, depth));
                ValueKind::Percent { inner, arguments: self.percent_arguments(right, depth) }
            }
            Some("+") => {
                let mut operands = Vec::new();
                let mut left = node;
                while left.kind() == "binary_operator"
                    && operator(left) == Some("+")
                    && operands.len() < ITEMS
                {
                    let (Some(next), Some(right)) =
                        (left.child_by_field_name("left"), left.child_by_field_name("right"))
                    else {
                        return ValueKind::Unknown;
                    };
                    operands.push(self.value_at(right, depth));
                    left = next;
                }
                operands.push(self.value_at(left, depth));
                operands.reverse();
                ValueKind::Concat(operands)
            }
            _ => ValueKind::Unknown,
        }
    }

    /// The right side of `%`: a tuple, a dictionary, or the only value.
    fn percent_arguments(self, node: Node, depth: usize) -> Vec<Argument> {
        match node.kind() {
            "tuple" => {
                self.children(node, depth).into_iter().map(|value| Argument { name: None, value }).collect()
            }
            "dictionary" => {
                let mut cursor = node.walk();
                let pairs = node.named_children(&mut cursor).filter(|child| child.kind() == "pair");
                let argument = |pair: Node| {
                    let key = self.of(pair.child_by_field_name("key")?).trim_matches(['"', '\'']).to_owned();
                    let value = self.value_at(pair.child_by_field_name("value")?, depth);
                    Some(Argument { name: Some(key), value })
                };
                pairs.take(ITEMS).filter_map(argument).collect()
            }
            _ => vec![Argument { name: None, value: self.value_at(node, depth) }],
        }
    }

    fn arguments_at(self, call: Node, depth: usize) -> Vec<Argument> {
        let Some(list) = call.child_by_field_name("arguments") else { return Vec::new() };
        let mut cursor = list.walk();
        let argument = |node: Node| match node.kind() {
            "comment" | "dictionary_splat" | "list_splat" => None,
            "keyword_argument" => {
                let name = Some(self.of(node.child_by_field_name("name")?).to_owned());
                Some(Argument { name, value: self.value_at(node.child_by_field_name("value")?, depth) })
            }
            _ => Some(Argument { name: None, value: self.value_at(node, depth) }),
        };
        list.named_children(&mut cursor).take(ITEMS).filter_map(argument).collect()
    }

    /// A call: one of the operations on texts, or just a call.
    fn call(self, node: Node, depth: usize) -> ValueKind {
        let Some(function) = node.child_by_field_name("function") else { return ValueKind::Unknown };
        let arguments = self.arguments_at(node, depth);
        let path = self.path(function);
        if function.kind() == "attribute"
            && let Some(object) = function.child_by_field_name("object")
            && let Some(method) = function.child_by_field_name("attribute")
        {
            let inner = || Box::new(self.value_at(object, depth));
            if let Some(kind) = method_call(self.of(method), &arguments, inner) {
                return kind;
            }
        }
        let Some(path) = path else { return ValueKind::Unknown };
        match (path.rsplit('.').next().unwrap_or_default(), arguments.into_iter().next()) {
            ("dedent" | "cleandoc", Some(first)) => ValueKind::Dedent(Box::new(first.value)),
            _ => ValueKind::Call(path),
        }
    }
}

/// A method of texts called on `inner`.
fn method_call(method: &str, arguments: &[Argument], inner: impl Fn() -> Box<Value>) -> Option<ValueKind> {
    let argument = |index: usize| arguments.get(index).map(|argument| Box::new(argument.value.clone()));
    Some(match method {
        "strip" | "lstrip" | "rstrip" => ValueKind::Strip {
            inner: inner(),
            left: method != "rstrip",
            right: method != "lstrip",
            drop: argument(0),
        },
        "replace" => ValueKind::Replace { inner: inner(), from: argument(0)?, to: argument(1)? },
        "format" => ValueKind::Format { inner: inner(), arguments: arguments.to_vec() },
        "substitute" | "safe_substitute" => {
            ValueKind::Substitute { inner: inner(), arguments: arguments.to_vec() }
        }
        "join" => ValueKind::Join { separator: inner(), list: argument(0)? },
        _ => return None,
    })
}
