//! What the calls of a function say of its parameters, and what the functions of a file do to what they are passed.

use std::collections::BTreeMap;

use stitch_findings::Span;

use super::super::arguments::{group_end, split_tokens};
use super::super::lexer::{Kind, Lexer, Token};
use super::super::sizes::Callees;
use super::super::tidy::tidy;
use super::body::{Body, Called};
use super::divisions::rewritten;
use super::globals::Globals;
use crate::outline::{Function, Outline};
use crate::rules::Environment;

/// A file, and what a person says of it.
pub struct File<'f> {
    /// Its text.
    pub source: &'f str,
    /// What it is made of.
    pub outline: &'f Outline,
    /// Its constants and types.
    pub environment: &'f Environment,
    /// What a person says its names stand for.
    pub values: &'f BTreeMap<String, i64>,
}

impl<'f> File<'f> {
    /// The names outside of functions.
    pub fn globals(&self) -> Globals<'f> {
        Globals { source: self.source, values: self.values, environment: self.environment }
    }
}

impl Callees for File<'_> {
    fn keep_size(&self, function: &str, index: usize) -> bool {
        let mut named = self.outline.functions.iter().filter(|known| known.name == function).peekable();
        // Of a parameter that is a copy or constant, the function can do what it likes.
        named.peek().is_some()
            && named.all(|known| {
                let ty = known.parameters.get(index).map(|parameter| parameter.ty.trim());
                ty.is_some_and(|ty| !ty.contains('&') || ty.starts_with("const ") || ty.contains(" const"))
            })
    }
}

/// Calls of calls further up than this are not followed.
const DEEPEST: usize = 3;
/// A function that is called more often is not looked at.
const MOST_CALLS: usize = 6;

/// What the calls of `function` in the file say of its parameters, where all of them say the same.
pub fn of(file: &File, function: &Function, depth: usize) -> Called {
    let is_definition = |known: &&Function| known.name == function.name && known.is_definition;
    let is_plain = function.template_parameters.is_empty() && function.name != "main";
    if depth >= DEEPEST || !is_plain || file.outline.functions.iter().filter(is_definition).count() != 1 {
        return Called::default();
    }
    let Some(calls) = calls(file, function) else { return Called::default() };
    let mut agreed: Option<Called> = None;
    for (span, arguments) in calls {
        let Some(said) = said_by(file, function, span, &arguments, depth) else { return Called::default() };
        agreed = Some(match agreed {
            None => said,
            Some(before) => common(before, &said),
        });
    }
    agreed.unwrap_or_default()
}

/// Calls of `function`, and their arguments as written; `None` where it may be called in a way that is not seen.
fn calls(file: &File, function: &Function) -> Option<Vec<(Span, Vec<String>)>> {
    let bytes = file.source.as_bytes();
    let (directives, tokens): (Vec<Token>, Vec<Token>) =
        Lexer::at(file.source, 0).partition(|token| token.kind == Kind::Directive);
    // A macro may call it with anything.
    if directives
        .iter()
        .any(|line| memchr::memmem::find(line.text(bytes), function.name.as_bytes()).is_some())
    {
        return None;
    }
    let mut found = Vec::new();
    let heads: Vec<Span> = file
        .outline
        .functions
        .iter()
        .filter(|known| known.name == function.name)
        .map(|known| known.name_span)
        .collect();
    for (index, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Word || token.text(bytes) != function.name.as_bytes() {
            continue;
        }
        if heads.iter().any(|head| head.contains(Span::new(token.start, token.end))) {
            continue;
        }
        let open = tokens.get(index + 1).filter(|next| next.is(b'('));
        // Its address may be taken, and another object's member may be called so.
        open?;
        let close = group_end(&tokens, index + 1)?;
        let arguments = split_tokens(&tokens[index + 2..close]);
        let text = |span: &Span| tidy(file.source.get(span.range()).unwrap_or_default());
        found.push((Span::new(token.start, tokens[close].end), arguments.iter().map(text).collect()));
    }
    (found.len() <= MOST_CALLS).then_some(found)
}

/// What one call says.
fn said_by(
    file: &File,
    function: &Function,
    span: Span,
    arguments: &[String],
    depth: usize,
) -> Option<Called> {
    let body = Body::around(file, span).filter(|body| body.function.name != function.name)?;
    let above = of(file, body.function, depth + 1);
    let globals = file.globals();
    let locals = body.locals(file, &globals, &above);
    let scope = locals.at(body.at);
    let (facts, _) = body.facts(arguments, &locals, &above);
    let mut said = Called::default();
    for ((parameter, argument), fact) in function.parameters.iter().zip(arguments).zip(facts) {
        let name = || parameter.name.clone();
        // A name that is passed by reference may be changed by what is called.
        let integer = !parameter.ty.contains(['&', '*', '[']) && !is_floating(&parameter.ty);
        if let Some(value) = scope.fold(&rewritten(argument)).filter(|_| integer) {
            said.values.insert(name(), value);
        }
        if let Some(bytes) = fact.bytes {
            said.bytes.insert(name(), bytes);
        }
        if let Some(count) = scope.count(argument.trim()) {
            said.counts.insert(name(), count);
        }
    }
    Some(said)
}

/// Whether an integer that is passed does not stay one.
fn is_floating(ty: &str) -> bool {
    ty.contains("float") || ty.contains("double")
}

/// What both say.
fn common(mut before: Called, other: &Called) -> Called {
    before.values.retain(|name, value| other.values.get(name) == Some(value));
    before.bytes.retain(|name, bytes| other.bytes.get(name) == Some(bytes));
    before.counts.retain(|name, count| other.counts.get(name) == Some(count));
    before
}
