//! What annotations, docstrings, checks and first layers tell of the shape of a parameter.

use stitch_findings::Span;
use tree_sitter::Node;

use super::super::comments::arguments;
use super::super::source::{Parameter, Source, all, children, docstring, span};
use super::super::targets::method;
use super::sizes::Sizes;

/// What is known of a tensor that a function takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Names or numbers, one a dimension.
    pub(super) dims: Vec<String>,
    pub(super) kind: Element,
    /// Where it is told: "the annotation of `x`".
    pub(super) origin: String,
    pub(super) place: Span,
}

/// What the elements of a tensor are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Float,
    /// Integers from 0 to below a name or number.
    Index(String),
    Bool,
}

/// Parameters that hold indices, by the parts of usual names.
const INDICES: &[&str] = &["indices", "index", "idx", "ids", "tokens", "target", "label"];

impl Shape {
    /// The call that makes such a tensor.
    pub(super) fn call(&self, sizes: &Sizes) -> String {
        let dims: Vec<_> = self.dims.iter().map(|dim| sizes.of(dim)).collect();
        let list = dims.join(", ");
        match &self.kind {
            Element::Float => format!("randn({list})"),
            Element::Index(below) if dims.len() == 1 => format!("randint(0, {}, ({list},))", sizes.of(below)),
            Element::Index(below) => format!("randint(0, {}, ({list}))", sizes.of(below)),
            Element::Bool => format!("ones({list}, dtype=torch.bool)"),
        }
    }
}

/// The best that is told of a parameter. `class` is the module, for a `forward`.
pub(super) fn shape(
    source: &Source<'_>,
    function: Node,
    class: Option<Node>,
    parameter: &Parameter<'_>,
    alone: bool,
) -> Option<Shape> {
    let mut found = annotation(parameter)
        .or_else(|| from_docstrings(source, function, class, parameter, alone))
        .or_else(|| checked(source, function, parameter))
        .or_else(|| class.and_then(|class| first_layer(source, function, class, parameter)))?;
    let name = parameter.name.to_lowercase();
    if found.kind == Element::Float {
        if INDICES.iter().any(|part| name.contains(part)) {
            found.kind = Element::Index("num_classes".to_owned());
        } else if name.ends_with("mask") {
            found.kind = Element::Bool;
        }
    }
    Some(found)
}

/// `Float[Tensor, "batch dim"]` of jaxtyping, `TensorType["batch", 3]` of torchtyping.
fn annotation(parameter: &Parameter<'_>) -> Option<Shape> {
    let text = parameter.annotation?;
    let (kind, rest) = text.split_once('[')?;
    let inner = rest.rsplit_once(']')?.0;
    let short = kind.trim().rsplit('.').next().unwrap_or_default();
    let parts = arguments(inner);
    let element = match short {
        _ if short.starts_with("Int") || short.starts_with("UInt") || short == "Integer" => {
            Element::Index("num_classes".to_owned())
        }
        "Bool" => Element::Bool,
        "Float" | "Float16" | "Float32" | "Float64" | "BFloat16" | "Shaped" | "Num" | "Inexact" | "Real"
        | "TensorType" => Element::Float,
        _ => return None,
    };
    let dims: Vec<String> = if short == "TensorType" {
        parts
            .iter()
            .map(|part| part.trim_matches(['"', '\'']).to_owned())
            .filter(|dim| !dim.contains("float"))
            .collect()
    } else {
        let shape = parts.get(1)?.trim_matches(['"', '\'']);
        shape.split_whitespace().map(str::to_owned).collect()
    };
    let dims = dims.iter().filter_map(|dim| plain_dim(dim)).collect::<Vec<_>>();
    let origin = format!("the annotation of `{}`", parameter.name);
    (!dims.is_empty()).then_some(Shape { dims, kind: element, origin, place: parameter.span })
}

/// One dimension of jaxtyping or of a docstring as a name or a number; `None` for `...` and what stands for any number of them.
fn plain_dim(dim: &str) -> Option<String> {
    let dim = dim.trim().trim_start_matches(['*', '#', '?', '_']).replace(['{', '}', '`', '$', '\\'], "");
    let dim = dim.split_once('=').map_or(dim.as_str(), |(_, size)| size).trim().to_owned();
    if dim.is_empty() || dim == "..." || dim == "…" { None } else { Some(dim) }
}

/// Shapes such as `(N, C, H, W)`, `[batch, dim]` and `B x N x D` in the docstrings of the function and its class.
fn from_docstrings(
    source: &Source<'_>,
    function: Node,
    class: Option<Node>,
    parameter: &Parameter<'_>,
    alone: bool,
) -> Option<Shape> {
    let bodies =
        [Some(function), class].into_iter().flatten().filter_map(|node| node.child_by_field_name("body"));
    for string in bodies.filter_map(docstring) {
        let text = source.of(string);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(rest) = described(line, parameter.name, alone) else { continue };
            let next = lines.get(index + 1).filter(|next| is_continued(line, next));
            let dims = written_shape(rest).or_else(|| written_shape(next?))?;
            let kind = if rest.contains("LongTensor") || rest.contains("indices") {
                Element::Index("num_classes".to_owned())
            } else {
                Element::Float
            };
            let origin = format!("the docstring, about `{}`", parameter.name);
            return Some(Shape { dims, kind, origin, place: span(string) });
        }
    }
    None
}

/// What a line of a docstring says of a parameter: behind `x:`, `x (Tensor):`, `:param x:`, `- Input:`.
fn described<'l>(line: &'l str, name: &str, alone: bool) -> Option<&'l str> {
    let text = line.trim_start_matches(['"', '\'', 'r', ' ', '\t', '-', '*', '`']);
    let text = ["param Tensor ", ":param torch.Tensor ", ":param "]
        .iter()
        .find_map(|p| text.strip_prefix(p))
        .unwrap_or(text);
    let rest = match text.strip_prefix(name) {
        Some(rest) => rest,
        None if alone => {
            ["Input", "input", "inputs", "Inputs"].iter().find_map(|word| text.strip_prefix(word))?
        }
        None => return None,
    };
    let rest = rest.trim_start_matches('`');
    rest.starts_with([':', ' ', '(', ',']).then_some(rest)
}

/// Whether the next line goes on with the description: it is indented deeper.
fn is_continued(line: &str, next: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    !next.trim().is_empty() && indent(next) > indent(line)
}

/// The first shape that a text writes out.
fn written_shape(text: &str) -> Option<Vec<String>> {
    let is_word = |word: &str| {
        let word = word.replace(['{', '}', '_', '`', '\'', '*', '\\'], "");
        !word.is_empty() && word.len() < 20 && word.chars().all(|c| c.is_alphanumeric()) || word.is_empty()
    };
    let types =
        ["tensor", "optional", "int", "float", "bool", "list", "tuple", "default", "none", "str", "torch"];
    for (start, open) in text.match_indices(['(', '[']) {
        let close = if open == "(" { ')' } else { ']' };
        let Some(end) = text[start..].find(close) else { continue };
        let inner = &text[start + 1..start + end];
        let parts: Vec<&str> = inner.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        let is_type = |part: &&str| types.iter().any(|ty| part.to_lowercase().contains(ty));
        let told =
            text[..start].trim_end().to_lowercase().ends_with("shape") || inner.trim_end().ends_with(',');
        if (parts.len() < 2 && !told) || parts.iter().any(is_type) || !parts.iter().all(|part| is_word(part))
        {
            continue;
        }
        let dims: Vec<_> = parts.iter().filter_map(|part| plain_dim(part)).collect();
        if !dims.is_empty() {
            return Some(dims);
        }
    }
    // `B x N x D`.
    let words: Vec<&str> =
        text.split_whitespace().map(|word| word.trim_matches(['.', ',', ':', '(', ')', '[', ']'])).collect();
    let first =
        words.windows(3).position(|three| three[1] == "x" && is_word(three[0]) && is_word(three[2]))?;
    let mut dims = vec![words[first].to_owned()];
    let mut at = first + 1;
    while words.get(at) == Some(&"x") && words.get(at + 1).is_some() {
        dims.push(words[at + 1].to_owned());
        at += 2;
    }
    Some(dims)
}

/// `b, c, h, w = x.shape`, `assert x.dim() == 4`, `x.ndim == 3`.
fn checked(source: &Source<'_>, function: Node, parameter: &Parameter<'_>) -> Option<Shape> {
    let body = function.child_by_field_name("body")?;
    let name = parameter.name;
    let shapes = [format!("{name}.shape"), format!("{name}.size()")];
    let ranks = [
        format!("{name}.dim()"),
        format!("{name}.ndim"),
        format!("len({name}.shape)"),
        format!("{name}.ndimension()"),
    ];
    for node in all(body, &["assignment", "comparison_operator"]) {
        let place = span(node);
        if node.kind() == "assignment" {
            let left = node.child_by_field_name("left")?;
            let names = children(left);
            let plain = names.iter().all(|name| name.kind() == "identifier");
            let right = source.field(node, "right");
            if left.kind() == "pattern_list" && plain && shapes.iter().any(|shape| shape == right) {
                let dim = |(index, name): (usize, &Node)| match source.of(*name) {
                    "_" => format!("dim{index}"),
                    name => name.to_owned(),
                };
                let dims = names.iter().enumerate().map(dim).collect();
                let origin = format!("line {}, which takes `{name}.shape` apart", source.line(place.start));
                return Some(Shape { dims, kind: Element::Float, origin, place });
            }
            continue;
        }
        let text = source.of(node);
        let is_assert = node.parent().is_some_and(|parent| parent.kind() == "assert_statement");
        let Some((left, right)) = text.split_once("==").filter(|_| is_assert) else { continue };
        let (left, right) = (left.trim(), right.trim());
        let origin = format!("the check on line {}", source.line(place.start));
        if let Some(rank) =
            ranks.iter().any(|rank| rank == left).then(|| right.parse::<usize>().ok()).flatten()
        {
            return Some(Shape { dims: usual_dims(rank)?, kind: Element::Float, origin, place });
        }
        if shapes.iter().any(|shape| shape == left) && right.starts_with(['(', '[']) {
            return Some(Shape { dims: written_shape(right)?, kind: Element::Float, origin, place });
        }
    }
    None
}

/// Names of the dimensions of a tensor of this rank, as convolutions and sequences have them.
pub(super) fn usual_dims(rank: usize) -> Option<Vec<String>> {
    let names: &[&str] = match rank {
        1 => &["dim"],
        2 => &["batch", "dim"],
        3 => &["batch", "seq", "dim"],
        4 => &["batch", "channels", "height", "width"],
        5 => &["batch", "channels", "8", "height", "width"],
        _ => return None,
    };
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// The shape that torch's layers take: `%` stands for their first argument. From the documentation of each class.
const LAYERS: &[(&[&str], &[&str])] = &[
    (&["Conv1d", "ConvTranspose1d", "BatchNorm1d", "InstanceNorm1d"], &["batch", "%", "seq"]),
    (&["Conv2d", "ConvTranspose2d", "BatchNorm2d", "InstanceNorm2d"], &["batch", "%", "height", "width"]),
    (
        &["Conv3d", "ConvTranspose3d", "BatchNorm3d", "InstanceNorm3d"],
        &["batch", "%", "8", "height", "width"],
    ),
    (
        &["MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "Upsample", "PixelShuffle"],
        &["batch", "channels", "height", "width"],
    ),
    (&["MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d"], &["batch", "channels", "seq"]),
    (&["MaxPool3d", "AvgPool3d", "AdaptiveAvgPool3d"], &["batch", "channels", "8", "height", "width"]),
    (&["Linear", "LayerNorm", "RMSNorm"], &["batch", "%"]),
    (&["LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer"], &["seq", "batch", "%"]),
    (&["Embedding"], &["batch", "seq"]),
];

/// What the first layer of the module that is given the parameter takes.
fn first_layer(source: &Source<'_>, forward: Node, class: Node, parameter: &Parameter<'_>) -> Option<Shape> {
    let body = forward.child_by_field_name("body")?;
    let init = method(source, class, "__init__")?;
    let takes = |call: &Node| {
        let first = call.child_by_field_name("arguments").and_then(|list| list.named_child(0));
        source.field(*call, "function").starts_with("self.")
            && first.is_some_and(|first| first.kind() == "identifier" && source.of(first) == parameter.name)
    };
    // In the order in which they run: the inner call of `relu(self.conv(x))` comes after the outer one in the text.
    for call in all(body, &["call"]).iter().filter(|call| takes(call)) {
        let attribute = source.field(*call, "function");
        let made =
            all(init, &["assignment"]).into_iter().find(|node| source.field(*node, "left") == attribute);
        let Some(mut layer) = made.and_then(|node| node.child_by_field_name("right")) else { continue };
        // `nn.Sequential(nn.Conv2d(…), …)` takes what its first part takes.
        for _ in 0..4 {
            let is_sequence = source.field(layer, "function").ends_with("Sequential");
            let first = layer.child_by_field_name("arguments").and_then(|list| list.named_child(0));
            match first.filter(|_| is_sequence) {
                Some(first) => layer = first,
                None => break,
            }
        }
        let class = source.field(layer, "function").rsplit('.').next().unwrap_or_default();
        let Some((_, dims)) = LAYERS.iter().find(|(classes, _)| classes.contains(&class)) else { continue };
        let list = layer.child_by_field_name("arguments").map(children).unwrap_or_default();
        let first = list.first().map_or("dim", |first| match first.kind() {
            "keyword_argument" => source.field(*first, "value"),
            _ => source.of(*first),
        });
        let batch_first = source.of(layer).contains("batch_first=True");
        let mut dims: Vec<String> = dims.iter().map(|dim| dim.replace('%', first)).collect();
        if batch_first {
            dims.swap(0, 1);
        }
        let kind = if class == "Embedding" { Element::Index(first.to_owned()) } else { Element::Float };
        let origin = format!("`{attribute}`, a `{class}` that is given `{}`", parameter.name);
        return Some(Shape { dims, kind, origin, place: span(*call) });
    }
    None
}
