//! `rewrite/launch-error-check`: asks for the error of a launch, in the way of the file.
//!
//! A file that wraps its calls in a macro or a function (`CHECK(cudaMalloc(…))`) gets that; any other a message on the standard
//! error stream, which changes nothing of a program that works.

use std::collections::BTreeMap;

use stitch_findings::Code;
use tree_sitter::Node;

use super::context::span;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::cuda::{Lexer, Token, TokenKind};
use crate::outline::FunctionKind;
use crate::rules::checks::Checks;
use crate::rules::facts::LaunchSite;
use crate::rules::kind::Kind;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::LAUNCH_ERROR_CHECK,
    title: "Check the launch for errors",
    finding: Some(Code::UNCHECKED_LAUNCH),
    find,
};

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for function in context.functions.iter().filter(|f| f.outline.kind == FunctionKind::Host) {
        let walker = function.walker();
        if walker.facts.launches.is_empty() {
            continue;
        }
        let checks = Checks::of(walker);
        let unchecked =
            walker.facts.launches.iter().filter(|launch| launch.is_statement && !checks.follow(launch.node));
        for launch in unchecked {
            let proposal = rewrite(context, function, launch);
            proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(span(launch.node), reason)));
        }
    }
    proposals
}

fn rewrite(context: &Context, function: &Function, launch: &LaunchSite) -> Result<Proposal, String> {
    let statement = launch.node.parent().unwrap_or(launch.node);
    if context.is_conditional(span(statement)) {
        return Err(format!("line {} stands under `#if`", context.line(statement.start_byte())));
    }
    let block = statement.parent().map(|block| (Kind::of(block), block));
    match block {
        Some((Kind::Compound | Kind::Case, _)) => {}
        _ => return Err("the launch is the whole of a branch or a loop without braces".to_owned()),
    }
    if let Some(name) = super::expression::macro_around(context, launch.node) {
        return Err(format!("it is an argument of `{name}`, which may be a macro"));
    }
    let indentation = context.indentation(statement.start_byte());
    let mut edits = Vec::new();
    let (check, how) = match wrapper(context, function, launch.node) {
        Some(name) => {
            (format!("{name}(cudaGetLastError());"), format!("`{name}` is how this file checks its calls"))
        }
        None => {
            let unit = context.indentation_unit(function);
            let name = name_of_error(context, function);
            let brace = if opens_on_own_line(context, function) {
                format!("\n{indentation}{{")
            } else {
                " {".to_owned()
            };
            edits.extend(include(context));
            (
                format!(
                    "if (cudaError_t {name} = cudaGetLastError()){brace}\n{indentation}{unit}fprintf(stderr, \"{}: %s\\n\", \
                     cudaGetErrorString({name}));\n{indentation}}}",
                    launch.kernel
                ),
                "the file has no way of its own to check a call; on success nothing is printed".to_owned(),
            )
        }
    };
    edits.push(Edit::insert(after(context, statement), format!("\n{indentation}{check}")));
    let title = format!("Check the launch of `{}` for errors", launch.kernel);
    let gain = Gain::Safety { words: "a launch that fails is told of".to_owned() };
    let mut rewrite = RULE.rewrite(span(launch.node), title, edits, gain);
    rewrite.proven.push(how);
    rewrite.proven.push(format!("`{}` does not ask for an error after it", function.outline.name));
    Ok(Proposal::Rewrite(rewrite))
}

/// A name for the error: the same for each launch of a function, since each is seen in its own `if` only.
fn name_of_error(context: &Context, function: &Function) -> String {
    const NAME: &str = "launchError";
    let text = context.text(function.node);
    let own = text.matches("if (cudaError_t launchError = cudaGetLastError())").count();
    // Declared once and printed once.
    if own > 0 && text.matches(NAME).count() == 2 * own {
        return NAME.to_owned();
    }
    super::expression::unused_name(context, function, NAME)
}

/// Where the next line begins to be written: behind a comment that ends the statement's line, else behind the statement.
fn after(context: &Context, statement: Node) -> usize {
    let end = statement.end_byte();
    let rest = &context.source[end..];
    let line = &rest[..rest.find(['\r', '\n']).unwrap_or(rest.len())];
    let words = line.trim_start();
    let is_comment = words.starts_with("//") || (words.starts_with("/*") && words.trim_end().ends_with("*/"));
    let ends = words.is_empty() || (is_comment && !line.ends_with('\\'));
    if ends { end + line.trim_end().len() } else { end }
}

/// Whether the braces of this function's statements stand on lines of their own.
fn opens_on_own_line(context: &Context, function: &Function) -> bool {
    let body = function.outline.body.unwrap_or_default();
    let inner = super::uses::nodes(function.node)
        .filter(|node| Kind::of(*node) == Kind::Compound && node.start_byte() > body.start)
        .map(|node| node.start_byte());
    let brace = inner.into_iter().next().unwrap_or(body.start);
    let line = context.source[..brace].rsplit('\n').next().unwrap_or("");
    line.trim().is_empty()
}

/// What this file hands most of its CUDA calls to, if that takes the call alone: a macro or a function.
fn wrapper<'c>(context: &Context<'c>, function: &Function, launch: Node) -> Option<&'c str> {
    let bytes = context.source.as_bytes();
    let tokens = &context.tokens;
    let mut counts: BTreeMap<&[u8], (usize, bool)> = BTreeMap::new();
    for window in tokens.windows(4) {
        let [name, open, call, second] = window else { continue };
        let is_call = name.kind == TokenKind::Word
            && open.is(b'(')
            && second.is(b'(')
            && call.text(bytes).starts_with(b"cuda")
            && !matches!(call.text(bytes), b"cudaGetErrorString" | b"cudaGetErrorName")
            && !matches!(name.text(bytes), b"if" | b"while" | b"return" | b"switch" | b"assert" | b"sizeof");
        if is_call && wraps_alone(tokens, *second) {
            let here = function.outline.span.touches(name.start);
            let (count, also_here) = counts.entry(name.text(bytes)).or_default();
            (*count, *also_here) = (*count + 1, *also_here || here);
        }
    }
    let mut best: Vec<(usize, &[u8], bool)> =
        counts.into_iter().map(|(name, (n, here))| (n, name, here)).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    best.into_iter().find_map(|(_, name, here)| {
        let name = tokens.iter().find_map(|token| {
            let text = context.source.get(token.start..token.end)?;
            (token.text(bytes) == name).then_some(text)
        })?;
        fits(context, name, here, launch.start_byte()).then_some(name)
    })
}

/// Whether the call whose parenthesis `open` is stands alone between the parentheses of another, which is a statement.
fn wraps_alone(tokens: &[Token], open: Token) -> bool {
    let first = tokens.partition_point(|token| token.start < open.start);
    let mut depth = 0u32;
    for (index, token) in tokens.iter().enumerate().skip(first) {
        match token.kind {
            TokenKind::Byte(b'(') => depth += 1,
            TokenKind::Byte(b')') => depth -= 1,
            TokenKind::Directive => return false,
            _ => {}
        }
        if depth == 0 {
            let next = |by: usize| tokens.get(index + by);
            return next(1).is_some_and(|t| t.is(b')')) && next(2).is_some_and(|t| t.is(b';'));
        }
    }
    false
}

/// Whether a wrapper can stand at `at`: it is declared by then, takes one argument, does not print a call's name as a cast would,
/// and does not return from a function that it is not used in yet.
fn fits(context: &Context, name: &str, is_used_here: bool, at: usize) -> bool {
    let bytes = context.source.as_bytes();
    let name_bytes = name.as_bytes();
    for line in &context.directives.lines {
        let mut words = Lexer::within(context.source, line.start + 1, line.end).skip(1);
        if words.next().is_none_or(|word| word.text(bytes) != name_bytes) {
            continue;
        }
        let returns = words.any(|word| word.text(bytes) == b"return");
        return line.end < at && !context.is_conditional(*line) && (is_used_here || !returns);
    }
    let mut functions = context.outline.functions.iter().filter(|function| function.name == name);
    match functions.next() {
        Some(function) => {
            let takes_errors = function.parameters.first().is_some_and(|p| p.ty.contains("cudaError_t"));
            function.span.start < at && (takes_errors || is_used_here)
        }
        // From a header: then what it takes is what it is given elsewhere in this file.
        None => !name.starts_with("cuda") && name != "static_cast" && name != "void",
    }
}

/// The edit that includes `<cstdio>`, where the file prints nothing yet and includes nothing to print with.
fn include(context: &Context) -> Option<Edit> {
    let bytes = context.source.as_bytes();
    let prints = context.tokens.iter().any(|t| matches!(t.text(bytes), b"fprintf" | b"printf" | b"stderr"));
    let mut last = None;
    for token in context.tokens.iter().filter(|token| token.kind == TokenKind::Directive) {
        let mut words = Lexer::within(context.source, token.start + 1, token.end);
        if words.next().is_none_or(|word| word.text(bytes) != b"include") {
            continue;
        }
        let line = context.source.get(token.start..token.end)?;
        if line.contains("stdio") {
            return None;
        }
        if !context.is_conditional(span_of(*token)) {
            last = Some(token.end);
        }
    }
    if prints {
        return None;
    }
    Some(match last {
        Some(end) => Edit::insert(end, "\n#include <cstdio>"),
        None => Edit::insert(0, "#include <cstdio>\n"),
    })
}

fn span_of(token: Token) -> stitch_findings::Span {
    stitch_findings::Span::new(token.start, token.end)
}
