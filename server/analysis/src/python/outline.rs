//! The outline of a Python file: its functions, and its classes derived from `torch.nn.Module`.

use std::collections::{HashMap, HashSet};

use stitch_findings::Span;

use super::facts::{Assignment, ClassFact, FunctionFact};
use super::names::{Level, Names};
use super::value::ValueKind;
use crate::{Function, FunctionKind, Method, Module, ModulePart, Outline, Parameter};

/// The longest text of an expression that names what a part is made by, in characters.
const LONGEST: usize = 80;
/// Classes from elsewhere that are modules, by the ends of their paths.
const MODULES: &[&str] = &["nn.Module", "jit.ScriptModule", ".LightningModule", ".PreTrainedModel"];

/// Reads the outline off the facts of all pieces.
pub(super) fn outline(source: &str, names: &Names<'_>) -> Outline {
    let mut outline = Outline::default();
    let ends = names.ends();
    for (piece, facts) in names.facts.iter().enumerate() {
        let start = names.pieces[piece].span.start;
        for function in &facts.functions {
            let end = end_of(function, piece, &ends, names);
            let outer = names.level(piece, function.outer);
            outline.functions.push(self::function(function, outer, start, end, names));
        }
    }
    outline.modules = modules(source, &ends, names);
    outline
}

/// Where a function ends: behind its statements, if it was cut into them.
fn end_of(function: &FunctionFact, piece: usize, ends: &[usize], names: &Names<'_>) -> usize {
    let whole = names.pieces[piece].is_head && function.outer == 0;
    if whole { ends[piece] } else { function.span.end + names.pieces[piece].span.start }
}

fn function(fact: &FunctionFact, outer: Level, start: usize, end: usize, names: &Names<'_>) -> Function {
    let parameter = |parameter: &super::facts::ParameterFact| Parameter {
        name: parameter.name.clone(),
        ty: parameter.ty.clone(),
        span: parameter.span.shifted(start),
    };
    Function {
        name: fact.name.clone(),
        qualified_name: names.qualified(outer, &fact.name),
        kind: FunctionKind::Host,
        is_definition: true,
        template_parameters: Vec::new(),
        parameters: fact.parameters.iter().map(parameter).collect(),
        launch_bounds: None,
        span: Span::new(fact.span.start + start, end),
        name_span: fact.name_span.shifted(start),
        body: fact.body.map(|body| Span::new(body.start + start, end)),
        unit: None,
    }
}

/// The modules in the order of the text.
fn modules(source: &str, ends: &[usize], names: &Names<'_>) -> Vec<Module> {
    let mut modules = Vec::new();
    let mut places = HashMap::new();
    let mut known = HashMap::new();
    for (piece, facts) in names.facts.iter().enumerate() {
        let start = names.pieces[piece].span.start;
        for class in &facts.classes {
            if !is_module(class, names, &mut known) {
                continue;
            }
            let mut span = class.span.shifted(start);
            if names.pieces[piece].is_head && class.outer == 0 {
                span.end = span.end.max(ends[piece]);
            }
            places.insert(names.level(piece, class.scope), modules.len());
            modules.push(Module {
                name: class.name.clone(),
                bases: class.bases.clone(),
                span,
                name_span: class.name_span.shifted(start),
                parts: Vec::new(),
                methods: Vec::new(),
            });
        }
    }
    let mut constructors = HashMap::new();
    for (piece, facts) in names.facts.iter().enumerate() {
        for function in &facts.functions {
            let Some(index) = places.get(&names.level(piece, function.outer)) else { continue };
            modules[*index].methods.push(method(
                piece,
                function,
                end_of(function, piece, ends, names),
                source,
                names,
            ));
            if function.name == "__init__" {
                constructors.insert(names.level(piece, function.scope), *index);
            }
        }
    }
    add_parts(&mut modules, &constructors, source, names);
    modules
}

/// Whether a class derives from `torch.nn.Module`, also through other classes of the file.
fn is_module<'a>(class: &'a ClassFact, names: &Names<'a>, known: &mut HashMap<String, bool>) -> bool {
    // Names of classes still to look at: inheritance may be long, or turn in a circle.
    let mut seen = HashSet::new();
    let mut todo: Vec<String> = class.bases.iter().map(|base| plain(base).to_owned()).collect();
    let mut found = false;
    while let Some(base) = todo.pop() {
        if !seen.insert(base.clone()) {
            continue;
        }
        let verdict = known.get(&base).copied();
        if verdict == Some(true) || verdict.is_none() && is_torch_module(&names.resolve(&base), names) {
            found = true;
            known.insert(base, true);
            break;
        }
        let short = base.rsplit('.').next().unwrap_or(&base);
        todo.extend(names.bases(short).map(|base| plain(base).to_owned()));
    }
    found
}

/// A base class without its subscript: `Base[T]` is `Base`.
fn plain(base: &str) -> &str {
    base.split_once('[').map_or(base, |(name, _)| name).trim()
}

/// Whether a full path names a class of torch that is a module. All classes of `torch.nn` are, but for these.
fn is_torch_module(path: &str, names: &Names<'_>) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    if MODULES.iter().any(|end| path.ends_with(end)) {
        return true;
    }
    let is_class = last.starts_with(|c: char| c.is_ascii_uppercase());
    let not_modules = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"];
    if path.starts_with("torch.nn.")
        && is_class
        && !not_modules.contains(&last)
        && !path.contains(".parameter.")
    {
        return true;
    }
    path == "Module" && names.star_of("torch.nn") && names.class("Module").is_none()
}

fn method(piece: usize, function: &FunctionFact, end: usize, source: &str, names: &Names<'_>) -> Method {
    let start = names.pieces[piece].span.start;
    let text = |span: Span| source.get(span.shifted(start).range()).unwrap_or_default();
    let own = |index: usize, name: &str| index == 0 && matches!(name, "self" | "cls");
    let parameters = function.parameters.iter().enumerate().filter(|(index, p)| !own(*index, &p.name));
    Method {
        name: function.name.clone(),
        parameters: parameters.map(|(_, parameter)| text(parameter.span).to_owned()).collect(),
        span: Span::new(function.span.start + start, end),
        name_span: function.name_span.shifted(start),
    }
}

/// Adds what the constructors assign to `self`; each constructor with the module that it is of.
fn add_parts(modules: &mut [Module], constructors: &HashMap<Level, usize>, source: &str, names: &Names<'_>) {
    for (piece, facts) in names.facts.iter().enumerate() {
        let start = names.pieces[piece].span.start;
        let text = |span: Span| source.get(span.shifted(start).range()).unwrap_or_default();
        let module = |scope| constructors.get(&names.level(piece, scope)).copied();
        for assignment in facts.assignments.iter().filter(|assignment| !assignment.augmented) {
            let Some(name) = assignment.target.strip_prefix("self.") else { continue };
            let Some(index) = module(assignment.scope) else { continue };
            let ty = made_by(assignment, text(assignment.value.span));
            let span = assignment.span.shifted(start);
            modules[index].parts.push(ModulePart { name: name.to_owned(), ty, span });
        }
        for registration in &facts.registrations {
            let Some(index) = module(registration.scope) else { continue };
            let span = registration.span.shifted(start);
            let (name, ty) = (registration.name.clone(), registration.by.clone());
            modules[index].parts.push(ModulePart { name, ty, span });
        }
    }
    modules.iter_mut().for_each(|module| module.parts.sort_by_key(|part| part.span));
}

/// What makes a part: the function that is called, or the expression.
fn made_by(assignment: &Assignment, text: &str) -> String {
    if let ValueKind::Call(path) = &assignment.value.kind {
        return path.clone();
    }
    let origin = &assignment.origin;
    if origin.called && text.starts_with(&origin.path) && text.ends_with(')') {
        return origin.path.clone();
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > LONGEST {
        words.chars().take(LONGEST).collect::<String>() + "…"
    } else {
        words
    }
}
