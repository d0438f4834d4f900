//! Reads one item: masks and parses it, finds its functions and launches, and has the rules check it.
//!
//! Reading depends on the item's text and the attribute macros; checking on the rest of the file too. So both are kept
//! apart, and an item is read again only when its own text changes. All positions are the item's own.

use stitch_findings::{Finding, Span};
use tree_sitter::Tree;

use super::allocations::{self, Allocation};
use super::functions::{Found, functions};
use super::items::ItemKind;
use super::kernels::{self, Scan};
use super::launches;
use super::lexer::{Kind, Lexer, Token};
use super::locals::Locals;
use super::macros::Macros;
use super::mask::{Mark, Masked, mask};
use super::parse::{ItemParser, KeepGoing};
use crate::outline::{Expression, Function, FunctionKind, Launch};
use crate::rules::constants::{Constants, fold_dimensions, fold_text};
use crate::rules::{Environment, FunctionContext, Piece, check_cuda_function};

/// An item as it was read.
pub struct Read {
    masked: Masked,
    tree: Tree,
    /// The item with an empty body, where the body has errors.
    skeleton: Option<(Masked, Tree)>,
    /// What it tells the rest of the file.
    pub piece: Piece,
}

/// What is known of an item in its file.
#[derive(Debug, Default)]
pub struct Checked {
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its launches.
    pub launches: Vec<Launch>,
    /// What the rules found.
    pub findings: Vec<Finding>,
}

/// Masks and parses an item. `None` when it was cut off.
pub fn read(
    parser: &mut ItemParser,
    source: &str,
    blanks: &[Span],
    macros: &Macros,
    keep_going: KeepGoing,
) -> Option<Read> {
    let masked = mask(source, blanks, macros);
    let tree = parser.parse(&masked.text, keep_going)?;
    let mut piece = Piece::of(tree.root_node(), source);
    let mut skeleton = None;
    if tree.root_node().has_error()
        && let Some(text) = without_body(&masked.text)
    {
        let tree = parser.parse(&text, &|| true)?;
        piece = Piece::of(tree.root_node(), &text).with_body(piece);
        skeleton = Some((Masked { text, marks: masked.marks.clone() }, tree));
    }
    Some(Read { masked, tree, skeleton, piece })
}

/// Finds what is in an item, with the values that `environment` gives, and checks it.
pub fn check(
    read: &Read,
    source: &str,
    kind: ItemKind,
    macros: &Macros,
    environment: &Environment,
) -> Checked {
    if kind == ItemKind::Definition {
        return check_definition(source, macros, environment);
    }
    let mut found = functions(read.tree.root_node(), source, &read.masked);
    for one in &mut found {
        fold_launch_bounds(&mut one.function, environment);
    }
    let findings = found.iter().flat_map(|one| findings_of(one, source, environment)).collect();
    let mut known: Vec<Function> = found.into_iter().map(|one| one.function).collect();
    if let Some((masked, tree)) = &read.skeleton {
        let whole = functions(tree.root_node(), source, masked).into_iter().map(|one| one.function);
        for mut function in whole.filter(|f| f.is_definition) {
            if !known.iter().any(|k| k.name_span == function.name_span) {
                fold_launch_bounds(&mut function, environment);
                known.retain(|k| {
                    !function.span.contains(k.name_span) || k.name_span.end <= function.name_span.start
                });
                known.push(function);
            }
        }
    }
    let mut checked = look(&read.masked, source, known, environment);
    checked.findings = findings;
    checked.findings.sort_by_key(|finding| finding.span);
    checked
}

/// An item that is one function, with nothing in its body. `None` if it is something else.
fn without_body(masked: &str) -> Option<String> {
    let mut parentheses = 0u32;
    let mut parameters = false;
    let mut last: Option<&[u8]> = None;
    // The brackets of `template <…>`, in which defaults may stand.
    let mut angles = 0u32;
    for token in Lexer::at(masked, 0) {
        match token.kind {
            Kind::Byte(b'(') => parentheses += 1,
            Kind::Byte(b')') => {
                parentheses = parentheses.checked_sub(1)?;
                parameters = true;
            }
            Kind::Byte(b'{') if parentheses == 0 => {
                let end = masked.trim_end().len();
                if !parameters || end <= token.end {
                    return None;
                }
                let mut bytes = masked.as_bytes()[..token.end].to_vec();
                bytes.resize(end - 1, b' ');
                bytes.push(b'}');
                bytes.resize(masked.len(), b' ');
                return String::from_utf8(bytes).ok();
            }
            Kind::Byte(b'<') if parentheses == 0 && (angles > 0 || last == Some(b"template")) => angles += 1,
            Kind::Byte(b'>') if parentheses == 0 && last != Some(b"-") => angles = angles.saturating_sub(1),
            Kind::Byte(b';') => return None,
            Kind::Byte(b'=') if parentheses == 0 && angles == 0 && last != Some(b"operator") => return None,
            Kind::Word if matches!(token.text(masked.as_bytes()), b"namespace" | b"enum") => return None,
            _ => {}
        }
        last = Some(token.text(masked.as_bytes()));
    }
    None
}

fn findings_of(found: &Found, source: &str, environment: &Environment) -> Vec<Finding> {
    if !found.function.is_definition {
        return Vec::new();
    }
    check_cuda_function(&FunctionContext { source, node: found.node, function: &found.function, environment })
}

/// Adds to the functions of the tree what is found on tokens: missed kernels, and launches.
fn look(masked: &Masked, source: &str, mut functions: Vec<Function>, environment: &Environment) -> Checked {
    let has_kernels = masked.marks.iter().any(|mark| mark.runs.kernel);
    let has_launches = launches::may_launch(&masked.text);
    if !has_kernels && !has_launches {
        return Checked { functions, ..Checked::default() };
    }
    let tokens: Vec<Token> =
        Lexer::at(&masked.text, 0).filter(|token| token.kind != Kind::Directive).collect();
    if has_kernels {
        let known: Vec<&Function> = functions.iter().collect();
        let scan = Scan { tokens: &tokens, masked: &masked.text, source, marks: &masked.marks };
        let mut missed = kernels::missed(&scan, &known);
        missed.iter_mut().for_each(|function| fold_launch_bounds(function, environment));
        functions.extend(missed);
        functions.sort_by_key(|f| (f.span.start, std::cmp::Reverse(f.span.end)));
    }
    let mut launches =
        if has_launches { launches::launches(&tokens, &masked.text, source) } else { Vec::new() };
    fold_launches(&mut launches, &functions, &tokens, &masked.text, environment);
    Checked { functions, launches, findings: Vec::new() }
}

/// Gives launches their callers and values.
fn fold_launches(
    launches: &mut [Launch],
    functions: &[Function],
    tokens: &[Token],
    masked: &str,
    environment: &Environment,
) {
    let mut current: Option<(usize, Locals, Vec<Allocation>)> = None;
    for launch in launches {
        let around = functions
            .iter()
            .enumerate()
            .filter(|(_, f)| f.body.is_some_and(|body| body.contains(launch.span)))
            .min_by_key(|(_, f)| f.span.len());
        let Some((index, function)) = around else {
            fold_launch(launch, environment);
            continue;
        };
        launch.caller = Some(function.name.clone());
        let body = function.body.unwrap_or_default();
        if current.as_ref().is_none_or(|(of, ..)| *of != index) {
            let first = tokens.partition_point(|t| t.start < body.start);
            let end = tokens.partition_point(|t| t.start < body.end);
            let body = &tokens[first..end];
            let locals = Locals::read(body, masked, &function.template_parameters, environment);
            current = Some((index, locals, allocations::of(body, masked)));
        }
        if let Some((_, locals, allocations)) = &current {
            fold_launch(launch, &locals.at(launch.span.start));
            launch.argument_facts =
                allocations::facts(&launch.arguments, launch.span.start, locals, allocations);
        }
    }
}

fn fold_launch(launch: &mut Launch, scope: &dyn Constants) {
    for expression in [&mut launch.grid, &mut launch.block].into_iter().flatten() {
        expression.value = fold_dimensions(&expression.text, scope);
    }
    if let Some(shared) = &mut launch.shared {
        fold(shared, scope);
    }
}

fn fold(expression: &mut Expression, scope: &dyn Constants) {
    expression.value = fold_text(&expression.text, scope).map(|value| [value, 1, 1]);
}

/// The defaults of template parameters, then the file.
struct Defaults<'f> {
    function: &'f [crate::outline::TemplateParameter],
    environment: &'f Environment,
}

impl Constants for Defaults<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        match self.function.iter().find(|parameter| parameter.name == name) {
            Some(parameter) => fold_text(parameter.default.as_deref()?, self.environment),
            None => self.environment.value(name),
        }
    }
}

fn fold_launch_bounds(function: &mut Function, environment: &Environment) {
    let scope = Defaults { function: &function.template_parameters, environment };
    if let Some(bounds) = &mut function.launch_bounds {
        fold(&mut bounds.max_threads, &scope);
        for expression in [&mut bounds.min_blocks, &mut bounds.max_cluster].into_iter().flatten() {
            fold(expression, &scope);
        }
    }
}

/// What a macro's body holds: kernels and launches, found on tokens.
fn check_definition(source: &str, macros: &Macros, environment: &Environment) -> Checked {
    let bytes = source.as_bytes();
    let kernels = memchr::memmem::find(bytes, b"(").is_some();
    if !kernels && !launches::may_launch(source) {
        return Checked::default();
    }
    let mut tokens = Lexer::within(source, 1, source.len()).skip(1);
    let Some(name) = tokens.next() else { return Checked::default() };
    let mut start = name.end;
    if bytes.get(start) == Some(&b'(') {
        start = memchr::memchr(b')', &bytes[start..]).map_or(source.len(), |at| start + at + 1);
    }
    let body: Vec<Token> = Lexer::within(source, start, source.len()).collect();
    let marks = marks_of(&body, bytes, macros);
    if !marks.iter().any(|mark| mark.runs.kernel) && !launches::may_launch(source) {
        return Checked::default();
    }
    // Attributes are taken out, since nothing masks a macro's body.
    let body: Vec<Token> = body
        .into_iter()
        .filter(|t| !marks.iter().any(|m| m.bounds.is_some() && m.span.contains(Span::new(t.start, t.end))))
        .collect();
    let scan = Scan { tokens: &body, masked: source, source, marks: &marks };
    let mut functions = kernels::missed(&scan, &[]);
    functions.iter_mut().for_each(|function| fold_launch_bounds(function, environment));
    let mut launches = launches::launches(&body, source, source);
    fold_launches(&mut launches, &functions, &body, source, environment);
    Checked { functions, launches, findings: Vec::new() }
}

fn marks_of(tokens: &[Token], bytes: &[u8], macros: &Macros) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word) {
        let word = token.text(bytes);
        let attribute = macros.get(word);
        let runs = super::macros::Runs::of_keyword(word).and(attribute.map(|a| a.runs).unwrap_or_default());
        let mut span = Span::new(token.start, token.end);
        let mut bounds = None;
        if attribute.is_some_and(|a| a.call)
            && tokens.get(index + 1).is_some_and(|t| t.is(b'('))
            && let Some(end) = super::arguments::group_end(tokens, index + 1)
        {
            bounds = Some(Span::new(tokens[index + 1].end, tokens[end].start));
            span.end = tokens[end].end;
        }
        if runs.kind() != FunctionKind::Host || bounds.is_some() {
            marks.push(Mark { span, runs, bounds, dropped: false });
        }
    }
    marks
}
