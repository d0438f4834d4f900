//! Where a target's example inputs come from.
//!
//! In this order: comments of the person, KernelBench's `get_inputs` and `get_init_inputs`, functions of the file that are named after
//! the target. What is found here was written as inputs, and is used. Everything else is a guess, and is only proposed (`propose`).

use std::fmt;

use serde::Serialize;
use stitch_findings::Span;
use tree_sitter::Node;

use super::comments::{Declared, case_of, declared};
use super::propose::{Proposal, proposals, proposals_for_statements};
use super::source::{Kind, Source, children, parameters, span, undecorated};
use super::statements::Statements;
use super::targets::{Target, TargetKind, definition, method, targets};

/// Where arguments come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "lowercase")]
pub enum Given {
    /// A function of the file that takes nothing and returns them.
    Function {
        /// Its name.
        name: String,
        /// Its name in the text.
        span: Span,
    },
    /// An argument list.
    Expression {
        /// Its text.
        text: String,
        /// The comment; empty where it came from elsewhere.
        span: Span,
    },
    /// A file that `torch.save` wrote.
    File {
        /// Its path, relative to the Python file.
        path: String,
        /// The comment.
        span: Span,
    },
}

/// One set of inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GivenCase {
    /// Where they come from.
    pub inputs: Given,
    /// What floating-point inputs and parameters are turned into, by torch's name (`float16`); `None` leaves them as they are.
    pub dtype: Option<String>,
}

/// What a target is tried with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GivenInputs {
    /// What a module is made with; `None` where it takes nothing, and for functions.
    pub init: Option<Given>,
    /// Each set of inputs.
    pub cases: Vec<GivenCase>,
}

/// The inputs of a target, or what could be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "inputs", rename_all = "lowercase")]
pub enum Inputs {
    /// They are given.
    Given(GivenInputs),
    /// They are not.
    Missing {
        /// What is missing, in one sentence.
        what: String,
        /// What is given of it: a module may have inputs and lack what it is made with. The cases may be empty.
        given: GivenInputs,
        /// Whether it is not said what the module is made with.
        lacks_init: bool,
        /// Comments to insert, best first; may be empty.
        proposals: Vec<Proposal>,
    },
}

/// A comment that says nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputError {
    /// Where.
    pub span: Span,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl InputError {
    pub(super) fn new(span: Span, message: String) -> Self {
        Self { span, message }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl std::error::Error for InputError {}

/// The case that the text of an argument list gives, as it stands in `inputs(...)`: with `dtype=` or `file=`.
///
/// # Errors
/// What is wrong with the text; the span is empty.
pub fn case_of_text(list: &str) -> Result<GivenCase, InputError> {
    case_of(list)
}

/// The inputs of a module or function of `text`.
///
/// # Errors
/// A comment that can't be read.
pub fn inputs_of(text: &str, target: &Target) -> Result<Inputs, InputError> {
    let gone =
        || InputError::new(target.span, format!("`{}` can't be found in the file any more.", target.name));
    let source = Source::new(text).ok_or_else(gone)?;
    let node = definition(&source, target).ok_or_else(gone)?;
    let mut found = declared(&source, target.span, target.span.start)?;
    let functions = input_functions(&source);
    if found.cases.is_empty() {
        found.cases.extend(from_functions(text, target, &functions, "inputs"));
    }
    let is_module = target.kind == TargetKind::Module;
    if is_module && found.init.is_none() {
        found.init = from_functions(text, target, &functions, "init_inputs").map(|case| case.inputs);
    }
    let required = if is_module { required(&source, node) } else { Vec::new() };
    let Some(what) = missing(&found, target, &required) else {
        return Ok(Inputs::Given(GivenInputs { init: found.init, cases: found.cases }));
    };
    let proposals = proposals(&source, target, node, &found);
    let lacks_init = found.init.is_none() && !required.is_empty();
    let given = GivenInputs { init: found.init, cases: found.cases };
    Ok(Inputs::Missing { what, given, lacks_init, proposals })
}

/// The inputs of statements of `text`: only comments above or inside them count.
///
/// # Errors
/// A comment that can't be read.
pub fn inputs_of_statements(text: &str, statements: &Statements) -> Result<Inputs, InputError> {
    let Some(source) = Source::new(text) else {
        return Err(InputError::new(statements.span, "The file can't be parsed.".to_owned()));
    };
    let found = declared(&source, statements.span, statements.span.start)?;
    if !found.cases.is_empty() {
        return Ok(Inputs::Given(GivenInputs { init: None, cases: found.cases }));
    }
    let what = format!("No example inputs are given for {}.", statements.reads.join(", "));
    let given = GivenInputs { init: None, cases: Vec::new() };
    let proposals = proposals_for_statements(&source, statements);
    Ok(Inputs::Missing { what, given, lacks_init: false, proposals })
}

/// What is missing, in one sentence.
fn missing(found: &Declared, target: &Target, required: &[String]) -> Option<String> {
    let name = &target.name;
    let init = (found.init.is_none() && !required.is_empty())
        .then(|| format!("what `{name}` is made with ({})", required.join(", ")));
    match (found.cases.is_empty(), init) {
        (true, Some(init)) => Some(format!("No example inputs are given for `{name}`, nor {init}.")),
        (true, None) => Some(format!("No example inputs are given for `{name}`.")),
        (false, Some(init)) => Some(format!("It is not given {init}.")),
        (false, None) => None,
    }
}

/// The arguments that a module's `__init__` can't do without.
pub(super) fn required(source: &Source<'_>, class: Node) -> Vec<String> {
    let Some(init) = method(source, class, "__init__") else { return Vec::new() };
    let list = parameters(source, init).into_iter().skip(1);
    let required = list.filter(|p| p.default.is_none() && matches!(p.kind, Kind::Positional | Kind::Keyword));
    required.map(|p| p.name.to_owned()).collect()
}

/// Functions of the top level that take nothing, by name.
fn input_functions<'a>(source: &Source<'a>) -> Vec<(&'a str, Span)> {
    let functions = children(source.root()).into_iter().map(undecorated);
    let functions = functions.filter(|node| node.kind() == "function_definition");
    let functions = functions.filter(|node| parameters(source, *node).iter().all(|p| p.default.is_some()));
    let named = functions.filter_map(|node| node.child_by_field_name("name"));
    named.map(|name| (source.of(name), span(name))).collect()
}

/// The function of the file that gives a target's inputs. `what` is `inputs` or `init_inputs`.
fn from_functions(text: &str, target: &Target, functions: &[(&str, Span)], what: &str) -> Option<GivenCase> {
    let own = target.name.replace('.', "_");
    let snake = snake_case(&own);
    let mut wanted = Vec::new();
    for name in [own.as_str(), snake.as_str(), &own.to_lowercase()] {
        wanted.extend([format!("{name}_{what}"), format!("get_{name}_{what}"), format!("{name}_get_{what}")]);
        wanted.push(format!("make_{name}_{what}"));
    }
    let is_only = || {
        let all = targets(text);
        let modules: Vec<_> = all.iter().filter(|one| one.kind == TargetKind::Module).collect();
        match target.kind {
            TargetKind::Module => modules.len() == 1,
            TargetKind::Function => modules.is_empty() && all.len() == 1,
        }
    };
    let general = format!("get_{what}");
    let is_given = functions.iter().any(|(name, _)| *name == general);
    if is_given && (target.name == "Model" || target.name == "ModelNew" || is_only()) {
        wanted.push(general);
    }
    let found = wanted.iter().find_map(|wanted| functions.iter().find(|(name, _)| name == wanted))?;
    let inputs = Given::Function { name: found.0.to_owned(), span: found.1 };
    Some(GivenCase { inputs, dtype: None })
}

/// `SelfAttention` as `self_attention`.
pub(super) fn snake_case(name: &str) -> String {
    let mut text = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && before != '_' && !before.is_uppercase() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
        before = c;
    }
    text
}
