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
    for (piece, facts) in names.facts.iter().enumerate() {
        let start = names.pieces[piece].span.start;
        for function in &facts.functions {
            outline.functions.push(self::function(
                function,
                names.level(piece, function.outer),
                start,
                names,
            ));
        }
    }
    outline.modules = modules(source, names);
    outline
}

fn function(fact: &FunctionFact, outer: Level, start: usize, names: &Names<'_>) -> Function {
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
        span: fact.span.shifted(start),
        name_span: fact.name_span.shifted(start),
        body: fact.body.map(|body| body.shifted(start)),
        unit: None,
    }
}

/// The modules in the order of the text.
fn modules(source: &str, names: &Names<'_>) -> Vec<Module> {
    let ends = class_ends(names);
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
            if names.pieces[piece].is_class && class.outer == 0 {
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
    for (piece, facts) in names.facts.iter().enumerate() {
        for function in &facts.functions {
            let level = names.level(piece, function.outer);
            if let Some(module) = places.get(&level).and_then(|index| modules.get_mut(*index)) {
                add_method(module, piece, function, source, names);
            }
        }
    }
    modules
}

/// Where the members of each class end, by the class's piece.
fn class_ends(names: &Names<'_>) -> Vec<usize> {
    let mut ends: Vec<_> = names.pieces.iter().map(|piece| piece.span.end).collect();
    for index in (0..names.pieces.len()).rev() {
        if let Some(class) = names.pieces[index].class {
            ends[class] = ends[class].max(ends[index]);
        }
    }
    ends
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

fn add_method(module: &mut Module, piece: usize, function: &FunctionFact, source: &str, names: &Names<'_>) {
    let start = names.pieces[piece].span.start;
    let text = |span: Span| source.get(span.shifted(start).range()).unwrap_or_default();
    let own = |index: usize, name: &str| index == 0 && matches!(name, "self" | "cls");
    let parameters = function.parameters.iter().enumerate().filter(|(index, p)| !own(*index, &p.name));
    module.methods.push(Method {
        name: function.name.clone(),
        parameters: parameters.map(|(_, parameter)| text(parameter.span).to_owned()).collect(),
        span: function.span.shifted(start),
        name_span: function.name_span.shifted(start),
    });
    if function.name != "__init__" {
        return;
    }
    let facts = &names.facts[piece];
    for assignment in facts.assignments.iter().filter(|a| a.scope == function.scope && !a.augmented) {
        let Some(name) = assignment.target.strip_prefix("self.") else { continue };
        let ty = made_by(assignment, text(assignment.value.span));
        let span = assignment.span.shifted(start);
        module.parts.push(ModulePart { name: name.to_owned(), ty, span });
    }
    for registration in facts.registrations.iter().filter(|r| r.scope == function.scope) {
        let span = registration.span.shifted(start);
        module.parts.push(ModulePart { name: registration.name.clone(), ty: registration.by.clone(), span });
    }
    module.parts.sort_by_key(|part| part.span);
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
