//! Example inputs that are proposed to a person: each is the exact comment to insert above the target.
//!
//! What is known comes from calls in the file first, since somebody ran them, then from annotations, docstrings, checks and the first
//! layers of a module; sizes that nothing tells are from a table of usual names. Nothing of this is used before the person confirms it.

mod calls;
mod shapes;
mod sizes;

use serde::Serialize;
use stitch_findings::Span;
use tree_sitter::Node;

use super::comments::{Declared, arguments, keyword};
use super::inputs::{Given, required};
use super::source::{Kind, Parameter, Source, all, parameters, span};
use super::statements::Statements;
use super::targets::{Target, TargetKind, enclosing, is_static, method};
use calls::{Tracer, made};
use shapes::{Element, Shape, shape};
use sizes::Sizes;

/// So many proposals are made; more are no help.
const MOST: usize = 4;

/// Inputs that a target could be tried with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The comment, one line or two, without indentation: `# stitchcuda: init(64)`, `# stitchcuda: inputs(randn(8, 64))`.
    pub comment: String,
    /// Where it is to be inserted: the beginning of the target's first line.
    pub insert_at: usize,
    /// What is to be inserted there: the comment with its indentation and line ends.
    pub insert: String,
    /// Where it comes from, as a phrase: "the call on line 12".
    pub origin: String,
    /// The places in the text that it comes from.
    pub places: Vec<Span>,
}

/// A part of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    text: String,
    origin: String,
    places: Vec<Span>,
}

/// What could be given to a module or function, best first.
pub(super) fn proposals(source: &Source<'_>, target: &Target, node: Node, found: &Declared) -> Vec<Proposal> {
    let is_module = target.kind == TargetKind::Module;
    let short = target.name.rsplit('.').next().unwrap_or_default();
    let tracer = Tracer::new(source);
    let constructed = if is_module { constructions(source, &tracer, target, short) } else { Vec::new() };
    let needs_init = is_module && found.init.is_none();
    let given_init = found.init.as_ref().and_then(|given| match given {
        Given::Expression { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let mut all = Vec::new();
    // Someone ran these together.
    for (init, inputs) in run_together(source, &tracer, target, short) {
        all.push((init.filter(|_| needs_init), Some(inputs)));
    }
    let init = constructed.first().cloned().or_else(|| from_signature(source, node).filter(|_| is_module));
    let function = if is_module { method(source, node, "forward") } else { Some(node) };
    if let Some(function) = function {
        let mut sizes = Sizes::default();
        if is_module {
            let text = given_init.or(init.as_ref().map(|init| init.text.as_str())).unwrap_or_default();
            learn(source, node, text, &mut sizes);
        }
        let skip = usize::from(is_module || enclosing(function).is_some() && !is_static(source, function));
        let inputs = from_shapes(source, function, is_module.then_some(node), skip, &sizes);
        all.push((init.filter(|_| needs_init), inputs));
    }
    let has_cases = !found.cases.is_empty();
    let required = if needs_init { required(source, node).len() } else { 0 };
    let mut made: Vec<Proposal> = Vec::new();
    for (init, inputs) in all {
        let inputs = inputs.filter(|_| !has_cases);
        // Half of what is needed is no proposal.
        if (required > 0 && init.is_none()) || (!has_cases && inputs.is_none()) {
            continue;
        }
        let init = init.filter(|init| !init.text.is_empty());
        let proposal = assemble(source, target.span.start, init, inputs);
        if !made.iter().any(|other| other.comment == proposal.comment) && made.len() < MOST {
            made.push(proposal);
        }
    }
    made
}

/// What could be given to statements: nothing is known of their names but how the function around takes them.
pub(super) fn proposals_for_statements(source: &Source<'_>, statements: &Statements) -> Vec<Proposal> {
    let Some(node) = source.root().descendant_for_byte_range(statements.span.start, statements.span.start)
    else {
        return Vec::new();
    };
    let function = enclosing(node);
    let class = function.and_then(enclosing).filter(|outer| outer.kind() == "class_definition");
    let known = function.map(|function| parameters(source, function)).unwrap_or_default();
    let sizes = Sizes::default();
    let mut parts = Vec::new();
    let mut origins = Vec::new();
    for name in &statements.reads {
        let parameter = known.iter().find(|parameter| parameter.name == name);
        let told = parameter
            .zip(function)
            .and_then(|(p, function)| shape(source, function, class, p, known.len() <= 2));
        parts.push(told.as_ref().map_or_else(|| "randn(8, 64)".to_owned(), |shape| shape.call(&sizes)));
        origins.push(told.map_or_else(
            || format!("a guess at `{name}`, of whose shape nothing is told"),
            |shape| shape.origin,
        ));
    }
    origins.dedup();
    let inputs = Part { text: parts.join(", "), origin: origins.join("; "), places: Vec::new() };
    vec![assemble(source, statements.span.start, None, Some(inputs))]
}

/// The comment and where it goes.
fn assemble(source: &Source<'_>, start: usize, init: Option<Part>, inputs: Option<Part>) -> Proposal {
    let mut lines = Vec::new();
    let mut origins: Vec<String> = Vec::new();
    let mut places = Vec::new();
    for (word, part) in [("init", init), ("inputs", inputs)] {
        let Some(part) = part else { continue };
        lines.push(format!("# stitchcuda: {word}({})", part.text));
        if !origins.contains(&part.origin) {
            origins.push(part.origin);
        }
        places.extend(part.places);
    }
    let insert_at = source.line_start(start);
    let (indent, newline) = (source.indent(start), source.newline());
    let insert = lines.iter().map(|line| format!("{indent}{line}{newline}")).collect();
    Proposal { comment: lines.join("\n"), insert_at, insert, origin: origins.join("; "), places }
}

/// Calls that make the module, outside of it, whose arguments can be evaluated elsewhere.
fn constructions(source: &Source<'_>, tracer: &Tracer<'_, '_>, target: &Target, class: &str) -> Vec<Part> {
    let calls = all(source.root(), &["call"]).into_iter();
    let calls = calls.filter(|call| !target.span.contains(span(*call)) && is_call_of(source, *call, class));
    calls
        .filter_map(|call| {
            let origin = format!("the call on line {}", source.line(call.start_byte()));
            Some(Part { text: tracer.arguments(call)?, origin, places: vec![span(call)] })
        })
        .collect()
}

fn is_call_of(source: &Source<'_>, call: Node, name: &str) -> bool {
    source.field(call, "function").rsplit('.').next() == Some(name)
}

/// Calls of the target with the call that made it, for a module: `Net(3)(x)`, or `net = Net(3)` and `net(x)`.
fn run_together(
    source: &Source<'_>,
    tracer: &Tracer<'_, '_>,
    target: &Target,
    name: &str,
) -> Vec<(Option<Part>, Part)> {
    let mut found = Vec::new();
    for call in all(source.root(), &["call"]) {
        if target.span.contains(span(call)) {
            continue;
        }
        let Some(callee) = call.child_by_field_name("function") else { continue };
        let line = source.line(call.start_byte());
        let part = |text, line, node| Part {
            text,
            origin: format!("the call on line {line}"),
            places: vec![span(node)],
        };
        if target.kind == TargetKind::Function {
            let text = is_call_of(source, call, name).then(|| tracer.arguments(call)).flatten();
            found.extend(text.filter(|text| !text.is_empty()).map(|text| (None, part(text, line, call))));
            continue;
        }
        let making =
            if callee.kind() == "call" { made(source, callee, name) } else { instance(source, callee, name) };
        let Some(making) = making else { continue };
        let Some(text) = tracer.arguments(call).filter(|text| !text.is_empty()) else { continue };
        let init = tracer.arguments(making);
        let init = init.map(|text| part(text, source.line(making.start_byte()), making));
        if let Some(init) = init {
            found.push((Some(init), part(text, line, call)));
        }
    }
    found
}

/// For a name that an instance was assigned to before: the call that made it.
fn instance<'t>(source: &'t Source<'_>, callee: Node<'t>, class: &str) -> Option<Node<'t>> {
    if callee.kind() != "identifier" {
        return None;
    }
    let name = source.of(callee);
    let scope = enclosing(callee).unwrap_or_else(|| source.root());
    let in_scope = all(scope, &["assignment"]).into_iter();
    let mut assigned =
        in_scope.filter(|node| node.end_byte() <= callee.start_byte() && source.field(*node, "left") == name);
    made(source, assigned.next_back()?.child_by_field_name("right")?, class)
}

/// What a module could be made with, from the names and annotations of what it needs.
fn from_signature(source: &Source<'_>, class: Node) -> Option<Part> {
    let init = method(source, class, "__init__")?;
    let sizes = Sizes::default();
    let mut parts = Vec::new();
    for parameter in parameters(source, init).iter().skip(1) {
        if parameter.default.is_some() || matches!(parameter.kind, Kind::Rest | Kind::Keywords) {
            continue;
        }
        let value = sizes.argument(parameter.name, parameter.annotation)?;
        parts.push(if parameter.kind == Kind::Keyword {
            format!("{}={value}", parameter.name)
        } else {
            value
        });
    }
    let origin = "usual values for the names of its arguments".to_owned();
    Some(Part { text: parts.join(", "), origin, places: Vec::new() })
}

/// What the names of a module's arguments and attributes stand for when it is made with `list`.
fn learn(source: &Source<'_>, class: Node, list: &str, sizes: &mut Sizes) {
    let Some(init) = method(source, class, "__init__") else { return };
    let known = parameters(source, init);
    for parameter in &known {
        if let Some(default) = parameter.default.filter(|text| text.parse::<u64>().is_ok()) {
            sizes.learn(parameter.name, default);
        }
    }
    for (place, argument) in arguments(list).into_iter().enumerate() {
        match keyword(argument) {
            (Some(name), value) => sizes.learn(name, value),
            (None, value) => {
                if let Some(parameter) = known.get(place + 1) {
                    sizes.learn(parameter.name, value);
                }
            }
        }
    }
    // `self.dim = dim`.
    for assignment in all(init, &["assignment"]) {
        let attribute = source.field(assignment, "left").strip_prefix("self.");
        let right = source.field(assignment, "right");
        if let Some(attribute) = attribute.filter(|_| known.iter().any(|parameter| parameter.name == right)) {
            let value = sizes.of(right);
            sizes.learn(attribute, &value);
        }
    }
}

/// Inputs put together from what is told of each parameter.
fn from_shapes(
    source: &Source<'_>,
    function: Node,
    class: Option<Node>,
    skip: usize,
    sizes: &Sizes,
) -> Option<Part> {
    let all = parameters(source, function);
    let needed: Vec<&Parameter<'_>> = all
        .iter()
        .skip(skip)
        .filter(|p| p.default.is_none() && matches!(p.kind, Kind::Positional | Kind::Keyword))
        .collect();
    if needed.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    let mut origins: Vec<String> = Vec::new();
    let mut places = Vec::new();
    let mut last: Option<Shape> = None;
    for parameter in &needed {
        let (text, origin) = if let Some(told) = shape(source, function, class, parameter, needed.len() == 1)
        {
            places.push(told.place);
            last = Some(told.clone());
            (told.call(sizes), told.origin)
        } else {
            let plain = parameter.annotation.filter(|text| !text.contains("Tensor"));
            match plain.and_then(|annotation| sizes.argument(parameter.name, Some(annotation))) {
                Some(value) => (value, format!("the annotation of `{}`", parameter.name)),
                // A type of which nothing is known.
                None if plain.is_some_and(|text| text != "Any") => return None,
                None if class.is_none() && plain.is_none() && Sizes::number(parameter.name).is_some() => {
                    let value = Sizes::number(parameter.name).unwrap_or_default();
                    (value, format!("a usual value for the name `{}`", parameter.name))
                }
                None => guess(source, class, parameter.name, last.as_ref(), sizes),
            }
        };
        parts.push(if parameter.kind == Kind::Keyword { format!("{}={text}", parameter.name) } else { text });
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    Some(Part { text: parts.join(", "), origin: origins.join("; "), places })
}

/// A tensor of which only the name is known: as the one before it, as the name of the module says, or two dimensions.
fn guess(
    source: &Source<'_>,
    class: Option<Node>,
    name: &str,
    last: Option<&Shape>,
    sizes: &Sizes,
) -> (String, String) {
    let like = last.filter(|shape| shape.kind == Element::Float);
    let module = class.map_or("", |class| source.field(class, "name"));
    let rank = [("1d", 3), ("2d", 4), ("3d", 5)].iter().find(|(end, _)| module.to_lowercase().contains(end));
    let dims = match (like, rank) {
        (Some(shape), _) => shape.dims.clone(),
        (None, Some((_, rank))) => shapes::usual_dims(*rank).unwrap_or_default(),
        (None, None) => vec!["batch".to_owned(), "dim".to_owned()],
    };
    let shape = Shape { dims, kind: Element::Float, origin: String::new(), place: Span::default() };
    (shape.call(sizes), format!("a guess at `{name}`, of whose shape nothing is told"))
}
