//! Where the value of an expression comes from, and whether a call moves a tensor to a device.

use tree_sitter::Node;

use super::facts::Origin;
use super::value::PieceText;

/// Longer chains of calls are not followed.
const STEPS: usize = 64;
/// Functions whose result comes from their first argument.
const TRANSPARENT: &[&str] = &[
    "abs",
    "enumerate",
    "float",
    "int",
    "iter",
    "list",
    "max",
    "min",
    "reversed",
    "round",
    "sorted",
    "sum",
    "tqdm",
    "tuple",
    "zip",
];
/// Keywords that say where a factory makes its tensor, or bind it to the CPU for a reason.
const PLACING: &[&str] = &["device", "generator", "out", "pin_memory"];
/// In [`Origin::then`]: moved to a device.
pub(super) const MOVED: &str = ".to(device)";
/// In [`Origin::then`]: an index.
pub(super) const INDEXED: &str = "[]";

impl PieceText<'_> {
    /// Follows `node` to the name that it starts from.
    pub(super) fn origin(self, node: Node) -> Origin {
        let mut origin = Origin::default();
        let mut node = node;
        for _ in 0..STEPS {
            if let Some(path) = self.path(node) {
                origin.path = path;
                return origin;
            }
            // `device = "cpu"`
            origin.on_cpu |= node.kind() == "string" && self.of(node).contains("cpu");
            let next = if node.kind() == "call" {
                match self.through_call(node, &mut origin) {
                    Some(next) => next,
                    None => return origin,
                }
            } else {
                through(node, &mut origin)
            };
            match next {
                Some(next) => node = next,
                None => return origin,
            }
        }
        Origin::default()
    }

    /// What a call's result comes from. `None` when the call itself is the origin, which is noted then.
    fn through_call<'t>(self, call: Node<'t>, origin: &mut Origin) -> Option<Option<Node<'t>>> {
        let function = call.child_by_field_name("function")?;
        if let Some(path) = self.path(function) {
            if TRANSPARENT.contains(&path.as_str())
                && let Some(first) =
                    call.child_by_field_name("arguments").and_then(|list| list.named_child(0))
            {
                return Some(Some(first));
            }
            origin.path = path;
            origin.called = true;
            self.place(call, origin);
            return None;
        }
        if function.kind() != "attribute" {
            return Some(Some(function));
        }
        let method = function.child_by_field_name("attribute").map_or("", |method| self.of(method));
        let moved = self.device(call, method).is_some();
        origin.then.push(if moved { MOVED } else { method }.to_owned());
        Some(function.child_by_field_name("object"))
    }

    /// Notes whether the arguments of a factory say where to make the tensor.
    fn place(self, call: Node, origin: &mut Origin) {
        let Some(list) = call.child_by_field_name("arguments") else { return };
        let mut cursor = list.walk();
        for argument in list.named_children(&mut cursor) {
            match argument.kind() {
                "keyword_argument" => {
                    let name = argument.child_by_field_name("name").map_or("", |name| self.of(name));
                    let value = argument.child_by_field_name("value").map_or("", |value| self.of(value));
                    origin.placed |= PLACING.contains(&name);
                    origin.on_cpu |= name == "device" && value.contains("cpu");
                }
                "string" => origin.on_cpu |= self.of(argument).contains("cpu"),
                // `**options` may hold a device.
                "dictionary_splat" => origin.placed = true,
                _ => {}
            }
        }
    }

    /// The device, as written, that a call of `method` moves its object to; `None` where it moves nothing, or to the CPU.
    pub(super) fn device(self, call: Node, method: &str) -> Option<String> {
        let list = call.child_by_field_name("arguments")?;
        let mut cursor = list.walk();
        let mut arguments = list.named_children(&mut cursor).filter(|argument| argument.kind() != "comment");
        let first = arguments.next();
        let value = |node: Node<'_>| self.device_argument(node);
        match (method, first) {
            ("cuda", None) => Some("\"cuda\"".to_owned()),
            ("cuda", Some(first)) if first.kind() != "keyword_argument" => Some(self.of(first).to_owned()),
            ("cuda", Some(_)) => Some("\"cuda\"".to_owned()),
            ("to", Some(first)) if first.kind() != "keyword_argument" => value(first),
            ("to", Some(first)) => std::iter::once(first).chain(arguments).find_map(|argument| {
                let name = argument.child_by_field_name("name")?;
                let given = argument.child_by_field_name("value")?;
                (self.of(name) == "device").then(|| value(given)).flatten()
            }),
            _ => None,
        }
    }

    /// Whether an argument of `.to` is a device that is not the CPU.
    fn device_argument(self, node: Node) -> Option<String> {
        let text = self.of(node);
        let says_device = |name: &str| {
            let name = name.to_ascii_lowercase();
            !name.contains("cpu")
                && (name.contains("device")
                    || matches!(name.as_str(), "cuda" | "dev" | "gpu" | "rank" | "local_rank"))
        };
        let is_device = match node.kind() {
            "integer" => true,
            "string" => {
                let body = text
                    .trim_start_matches(|c: char| c.is_ascii_alphabetic())
                    .trim_start_matches(['"', '\'']);
                body.starts_with("cuda")
            }
            "identifier" => says_device(text),
            "attribute" => {
                node.child_by_field_name("attribute").is_some_and(|name| says_device(self.of(name)))
            }
            "call" => {
                let function = node.child_by_field_name("function").map_or("", |function| self.of(function));
                says_device(function.rsplit('.').next().unwrap_or_default()) && !text.contains("cpu")
            }
            _ => false,
        };
        is_device.then(|| text.to_owned())
    }
}

/// The operand that an operator's result comes from; numbers are passed over.
fn through<'t>(node: Node<'t>, origin: &mut Origin) -> Option<Node<'t>> {
    let field = |name: &str| node.child_by_field_name(name);
    match node.kind() {
        // The object of a name with dots that starts with a call or an index.
        "attribute" => field("object"),
        "subscript" => {
            origin.then.push(INDEXED.to_owned());
            field("value")
        }
        "binary_operator" | "boolean_operator" => {
            let left = field("left")?;
            if matches!(left.kind(), "integer" | "float") { field("right") } else { Some(left) }
        }
        "unary_operator" | "not_operator" => field("argument"),
        "named_expression" => field("value"),
        "parenthesized_expression"
        | "await"
        | "comparison_operator"
        | "conditional_expression"
        | "list"
        | "tuple" => node.named_child(0),
        _ => None,
    }
}
