//! What changes at the target itself: a method, a function, or statements.

use std::collections::BTreeSet;

use stitch_findings::{Span, VerifiedCall};
use tree_sitter::Node;

use super::super::source::{
    Kind, Parameter, Source, children, decorated, docstring, parameters, undecorated,
};
use super::super::statements::Statements;
use super::super::targets::{Target, decorators, enclosing, is_static, method};
use super::candidate::bound;
use super::class;

use super::guard::{self, Verified};
use super::layout::{free, moved, names, with_comments};
use super::new_code::{Guarded, New, before};

type Edits = Vec<(Span, String)>;
type Candidate<'s, 'a> = (&'s Source<'a>, &'s str);

/// Functions of a candidate that could be what is meant: those of the top level that no other statement of it uses.
pub(super) fn functions(source: &Source<'_>) -> Vec<String> {
    let all: Vec<_> = children(source.root());
    let defined =
        all.iter().map(|node| undecorated(*node)).filter(|node| node.kind() == "function_definition");
    let defined: Vec<_> = defined.map(|node| source.field(node, "name").to_owned()).collect();
    let is_used = |name: &str| {
        all.iter().filter(|node| source.field(undecorated(**node), "name") != name).any(|statement| {
            let names = super::super::source::all(*statement, &["identifier"]);
            names.into_iter().any(|node| source.of(node) == name)
        })
    };
    let inputs = |name: &str| name.ends_with("inputs");
    let free: Vec<_> = defined.iter().filter(|name| !inputs(name) && !is_used(name)).cloned().collect();
    if free.is_empty() { defined } else { free }
}

/// The edits for a module.
pub(super) fn module(
    source: &Source<'_>,
    target: &Target,
    node: Node,
    (new, name): Candidate<'_, '_>,
    verified: &Verified,
) -> Result<Edits, String> {
    let short = source.field(node, "name");
    let forward = method(source, node, "forward")
        .ok_or_else(|| format!("`{short}` inherits its `forward`; point at the class that defines it."))?;
    let renamed = format!("_reference_forward_{short}");
    if method(source, node, &renamed).is_some() {
        return Err(format!("`{short}` has verified code already; take that out first."));
    }
    if verified.training.is_empty() {
        return Err("It is not said in which mode the module was verified.".to_owned());
    }
    let class = class_of(new, name)?;
    let own =
        method(new, class, "forward").ok_or_else(|| format!("The candidate's `{name}` has no `forward`."))?;
    let list = parameters(source, forward);
    let (Some(receiver), rest) = (list.first().map(|first| first.name), list.get(1..).unwrap_or_default())
    else {
        return Err(format!("`{short}.forward` takes no `self`."));
    };
    same_signature(rest, parameters(new, own).get(1..).unwrap_or_default())?;
    check_kind(source, forward, &format!("{short}.forward"))?;
    let set_up = class::set_up((source, node), (new, class))?;
    let mut changes = class::edits(new, class, &set_up);
    for (part, set_up) in class::set_up_parts((source, new), &set_up)? {
        changes.extend(class::edits(new, part, &set_up));
    }
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    let candidate = New { source: new, name, edits: changes };
    let mut needs: BTreeSet<String> = set_up.needs.clone();
    let attribute = |line: &String| Some(line.strip_prefix("self.")?.split(' ').next()?.to_owned());
    let added: Vec<String> = set_up.added.iter().filter_map(attribute).collect();
    needs.extend(added.iter().cloned());
    let guarded = Guarded { added, ..guarded(target, verified, rest, true, needs)? };
    let (mut edits, guard) = before(source, top_start(source, node), &candidate, &guarded)?;
    let call = format!("{receiver}.{renamed}");
    edits.extend(dispatch(source, forward, &guard, receiver, rest, &renamed, &call));
    edits.extend(into_init(source, node, &set_up.added)?);
    Ok(edits)
}

/// The class of the candidate.
fn class_of<'t>(new: &'t Source<'_>, name: &str) -> Result<Node<'t>, String> {
    let mut classes = children(new.root()).into_iter().map(undecorated);
    let found = classes.rfind(|node| node.kind() == "class_definition" && new.field(*node, "name") == name);
    found.ok_or_else(|| format!("The candidate's `{name}` does not stand at its top level."))
}

/// The edits for a function.
pub(super) fn function(
    source: &Source<'_>,
    target: &Target,
    node: Node,
    (new, name): Candidate<'_, '_>,
    verified: &Verified,
) -> Result<Edits, String> {
    let short = source.field(node, "name");
    let renamed = format!("_reference_{short}");
    if names(source).contains(&renamed) {
        return Err(format!("`{short}` has verified code already; take that out first."));
    }
    let own = function_of(new, name)?;
    let list = parameters(source, node);
    same_signature(&list, &parameters(new, own))?;
    check_kind(source, node, short)?;
    let candidate = New { source: new, name, edits: Vec::new() };
    let guarded = guarded(target, verified, &list, false, BTreeSet::new())?;
    let (mut edits, guard) = before(source, top_start(source, node), &candidate, &guarded)?;
    let class = enclosing(node).map(|class| super::super::targets::qualified(source, class));
    let call = class.map_or_else(|| renamed.clone(), |class| format!("{class}.{renamed}"));
    edits.extend(dispatch(source, node, &guard, "None", &list, &renamed, &call));
    Ok(edits)
}

fn function_of<'t>(new: &'t Source<'_>, name: &str) -> Result<Node<'t>, String> {
    let mut functions = children(new.root()).into_iter().map(undecorated);
    let found =
        functions.rfind(|node| node.kind() == "function_definition" && new.field(*node, "name") == name);
    found.ok_or_else(|| format!("The candidate's `{name}` does not stand at its top level."))
}

/// The edits for statements.
pub(super) fn statements(
    source: &Source<'_>,
    statements: &Statements,
    (new, name): Candidate<'_, '_>,
    verified: &Verified,
) -> Result<Edits, String> {
    let own = function_of(new, name)?;
    let count = parameters(new, own).len();
    if count != statements.reads.len() {
        let reads = statements.reads.join(", ");
        return Err(format!(
            "The candidate's `{name}` takes {count} arguments; the statements read {reads}."
        ));
    }
    let span = statements.span;
    let node =
        source.root().descendant_for_byte_range(span.start, span.start).unwrap_or_else(|| source.root());
    let title = statements.function.clone().unwrap_or_else(|| "file".to_owned());
    let target = Target {
        kind: super::super::targets::TargetKind::Function,
        name: format!("{title}.{}", statements.sets.join("_")),
        span,
        name_span: span,
    };
    let list: Vec<Parameter<'_>> = statements
        .reads
        .iter()
        .map(|name| Parameter { name, annotation: None, default: None, kind: Kind::Positional, span })
        .collect();
    let candidate = New { source: new, name, edits: Vec::new() };
    let guarded = guarded(&target, verified, &list, false, BTreeSet::new())?;
    let (mut edits, guard) = before(source, top_start(source, node), &candidate, &guarded)?;
    let result = free("_verified_result", &mut names(source));
    let (indent, step, newline) = (source.indent(span.start), source.step(), source.newline());
    let arguments = statements.reads.join(", ");
    let mut text = format!("{result} = {guard}(None, {arguments})\n");
    text.push_str(&format!("{indent}if {result} is not NotImplemented:\n"));
    text.push_str(&format!("{indent}{step}{} = {result}\n", statements.sets.join(", ")));
    text.push_str(&format!("{indent}else:\n"));
    let deeper = format!("{indent}{step}");
    let body = moved(source, span.start, span.end, indent, &deeper, (&step, &step));
    text.push_str(&body.replace("\r\n", "\n"));
    edits.push((span, if newline == "\n" { text } else { text.replace('\n', newline) }));
    Ok(edits)
}

/// Refuses functions whose calls can't be looked up.
fn check_kind(source: &Source<'_>, node: Node, name: &str) -> Result<(), String> {
    if source.of(node).starts_with("async") {
        return Err(format!("`{name}` is asynchronous."));
    }
    let scripted = decorators(source, node)
        .into_iter()
        .find(|text| text.contains("jit.script") || text.contains("overload"));
    match scripted {
        Some(decorator) => {
            Err(format!("`{name}` is decorated with `@{decorator}`, which would compile the guard as well."))
        }
        None => Ok(()),
    }
}

/// Refuses a candidate that takes other arguments.
fn same_signature(original: &[Parameter<'_>], candidate: &[Parameter<'_>]) -> Result<(), String> {
    let kinds = |list: &[Parameter<'_>]| list.iter().map(|parameter| parameter.kind).collect::<Vec<_>>();
    let by_name = |list: &[Parameter<'_>]| {
        let named = list.iter().filter(|parameter| parameter.kind == Kind::Keyword);
        named.map(|parameter| parameter.name.to_owned()).collect::<BTreeSet<_>>()
    };
    let plain = |list: &[Parameter<'_>]| {
        let shown = list.iter().map(|parameter| match parameter.kind {
            Kind::Rest => format!("*{}", parameter.name),
            Kind::Keywords => format!("**{}", parameter.name),
            _ => parameter.name.to_owned(),
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    if kinds(original) != kinds(candidate) || by_name(original) != by_name(candidate) {
        return Err(format!(
            "The candidate takes `({})` and the file's code `({})`.",
            plain(candidate),
            plain(original)
        ));
    }
    Ok(())
}

/// The calls as the guard sees them.
fn guarded<'s>(
    target: &'s Target,
    verified: &'s Verified,
    list: &[Parameter<'_>],
    is_module: bool,
    needs: BTreeSet<String>,
) -> Result<Guarded<'s>, String> {
    let calls = verified.calls.iter().map(|call| bind(call, list)).collect::<Result<Vec<_>, _>>()?;
    let by_name = list.iter().filter(|parameter| parameter.kind == Kind::Keyword);
    let keywords = by_name.map(|parameter| parameter.name.to_owned()).collect();
    Ok(Guarded { target: &target.name, verified, calls, keywords, is_module, needs, added: Vec::new() })
}

/// The arguments of a verified call in the order in which the guard is given them.
fn bind(call: &VerifiedCall, list: &[Parameter<'_>]) -> Result<String, String> {
    let mut given = call.arguments.iter();
    let mut seen = Vec::new();
    let mut last = Vec::new();
    for parameter in list {
        match parameter.kind {
            Kind::Rest => seen.extend(given.by_ref().map(guard::seen)),
            Kind::Keywords => {}
            Kind::Positional | Kind::Keyword => {
                let by_place = if parameter.kind == Kind::Positional { given.next() } else { None };
                let by_name =
                    call.keywords.iter().find(|(name, _)| name == parameter.name).map(|(_, value)| value);
                let default = parameter.default.and_then(guard::literal);
                let value = by_place.or(by_name).or(default.as_ref()).ok_or_else(|| {
                    format!(
                        "A verified call does not give `{}`, and its default is no plain value.",
                        parameter.name
                    )
                })?;
                if parameter.kind == Kind::Keyword {
                    last.push(guard::seen(value))
                } else {
                    seen.push(guard::seen(value))
                }
            }
        }
    }
    if given.next().is_some() {
        return Err("A verified call gives more arguments than there are parameters.".to_owned());
    }
    seen.extend(last);
    Ok(super::guard::tuple(seen.iter()))
}

/// Where the statement of the top level that a node is in begins, with the comments above it.
fn top_start(source: &Source<'_>, node: Node) -> usize {
    let mut top = decorated(node);
    while let Some(parent) = top.parent().filter(|parent| parent.kind() != "module") {
        top = parent;
    }
    with_comments(source, top)
}

/// The old name with the guard, before the original code under its new name. The header, docstring and decorators are those of the original.
fn dispatch(
    source: &Source<'_>,
    node: Node,
    guard: &str,
    owner: &str,
    list: &[Parameter<'_>],
    renamed: &str,
    call: &str,
) -> Edits {
    let (Some(name), Some(body)) = (node.child_by_field_name("name"), node.child_by_field_name("body"))
    else {
        return Vec::new();
    };
    let whole = decorated(node);
    let (indent, newline) = (source.indent(whole.start_byte()), source.newline());
    let inner = format!("{indent}{}", source.step());
    let step = source.step();
    // The header ends with its colon; a comment behind it stays with it.
    let header_end = source.text[node.start_byte()..body.start_byte()]
        .rfind(':')
        .map_or(body.start_byte(), |at| node.start_byte() + at + 1);
    let doc = docstring(body);
    let colon = colon_of(node, body).unwrap_or(header_end);
    let mut text = source.text[whole.start_byte()..colon].to_owned();
    text.push_str(newline);
    if let Some(doc) = doc {
        text.push_str(&format!("{inner}{}{newline}", source.of(doc)));
    }
    let (given, again, condition) = arguments(list);
    text.push_str(&format!("{inner}if {condition}not torch.jit.is_scripting():{newline}"));
    text.push_str(&format!("{inner}{step}result = {guard}({owner}{given}){newline}"));
    text.push_str(&format!("{inner}{step}if result is not NotImplemented:{newline}"));
    text.push_str(&format!("{inner}{step}{step}return result{newline}"));
    text.push_str(&format!("{inner}return {call}({again}){newline}{newline}"));
    if enclosing(node).is_none() {
        text.push_str(newline);
    }
    if is_static(source, node) {
        text.push_str(&format!("{indent}@staticmethod{newline}{indent}"));
    } else {
        text.push_str(indent);
    }
    text.push_str(&format!("def {renamed}"));
    let mut edits = vec![(Span::new(whole.start_byte(), name.end_byte()), text)];
    // The docstring moved, unless it is all that the body has.
    if let Some(doc) = doc.filter(|_| children(body).len() > 1) {
        let own_line = source.text[source.line_start(doc.start_byte())..doc.start_byte()].trim().is_empty();
        let end = source.line_end(doc.end_byte());
        if own_line && source.text[doc.end_byte()..end].trim().is_empty() {
            edits.push((Span::new(source.line_start(doc.start_byte()), end), String::new()));
        }
    }
    edits
}

/// Behind the colon that ends the header of a function.
fn colon_of(node: Node, body: Node) -> Option<usize> {
    let mut cursor = node.walk();
    let colon = node
        .children(&mut cursor)
        .filter(|child| child.kind() == ":" && child.end_byte() <= body.start_byte())
        .last()?;
    Some(colon.end_byte())
}

/// How the parameters are given to the guard and to the original, and what must hold for the guard to see all of them.
fn arguments(list: &[Parameter<'_>]) -> (String, String, String) {
    let mut given = String::new();
    let mut by_name = String::new();
    let mut again = Vec::new();
    let mut condition = String::new();
    for parameter in list {
        let name = parameter.name;
        match parameter.kind {
            Kind::Positional => {
                given.push_str(&format!(", {name}"));
                again.push(name.to_owned());
            }
            Kind::Rest => {
                given.push_str(&format!(", *{name}"));
                again.push(format!("*{name}"));
            }
            Kind::Keyword => {
                by_name.push_str(&format!(", {name}"));
                again.push(format!("{name}={name}"));
            }
            Kind::Keywords => {
                condition = format!("not {name} and ");
                again.push(format!("**{name}"));
            }
        }
    }
    (given + &by_name, again.join(", "), condition)
}

/// Statements at the end of a class's `__init__`.
fn into_init(source: &Source<'_>, class: Node, added: &[String]) -> Result<Edits, String> {
    if added.is_empty() {
        return Ok(Vec::new());
    }
    let init = method(source, class, "__init__").and_then(|init| init.child_by_field_name("body"));
    let last = init.map(children).and_then(|body| body.last().copied());
    let (Some(body), Some(last)) = (init, last) else {
        return Err("The class has no `__init__` that could keep what the candidate needs.".to_owned());
    };
    if last.kind() == "return_statement" || bound(source, last).contains("__init__") {
        return Err("The class's `__init__` ends with `return`.".to_owned());
    }
    let (indent, newline) = (source.indent(body.start_byte()), source.newline());
    let end = last.end_byte();
    let text: String = added.iter().map(|line| format!("{newline}{indent}{line}")).collect();
    // Behind a comment on the same line.
    let line = source.line_end(end);
    let at = source.text[..line].trim_end_matches(['\n', '\r']).len().max(end);
    Ok(vec![(Span::new(at, at), text)])
}
