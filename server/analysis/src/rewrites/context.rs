//! What a rule may ask about the file at hand.

use std::cell::OnceCell;

use stitch_findings::Span;
use tree_sitter::Node;

use super::{Edit, Gain, Proposal, Refusal, Rewrite, Rule};
use crate::Analysis;
use crate::cuda::{Directives, Lexer, Reading, Token, TokenKind};
use crate::outline::{self, FunctionKind, Outline};
use crate::rules::types::Type;
use crate::rules::walk::{Walker, walk_keeping_types};
use crate::rules::{Environment, FunctionContext};

/// One file, parsed.
pub struct Context<'c> {
    /// Its text.
    pub source: &'c str,
    /// What it is made of.
    pub outline: &'c Outline,
    /// `\n` or `\r\n`: that of its first line.
    pub newline: &'static str,
    /// The function definitions whose tree was found, in the order of the text.
    pub functions: Vec<Function<'c>>,
    pub(crate) environment: &'c Environment,
    pub(crate) directives: &'c Directives,
    /// Every token, directives whole; comments are none.
    pub(crate) tokens: Vec<Token>,
    line_starts: Vec<usize>,
}

/// A function definition with its tree.
pub struct Function<'c> {
    /// What the outline says.
    pub outline: &'c outline::Function,
    /// The definition.
    pub node: Node<'c>,
    source: &'c str,
    environment: &'c Environment,
    walker: OnceCell<Walker<'c>>,
}

impl<'c> Context<'c> {
    pub(super) fn new(analysis: &'c Analysis, reading: &'c Reading) -> Self {
        let source: &str = analysis.source();
        let outline = analysis.outline();
        let definitions = outline.functions.iter().filter(|function| function.is_definition);
        let environment = reading.environment();
        let functions = definitions.filter_map(|function| {
            let node = reading.node_of(function)?;
            Some(Function { outline: function, node, source, environment, walker: OnceCell::new() })
        });
        let first = memchr::memchr(b'\n', source.as_bytes());
        let carriage = first.is_some_and(|at| source[..at].ends_with('\r'));
        let ends = memchr::memchr_iter(b'\n', source.as_bytes()).map(|at| at + 1);
        Self {
            source,
            outline,
            newline: if carriage { "\r\n" } else { "\n" },
            functions: functions.collect(),
            environment,
            directives: reading.directives(),
            tokens: Lexer::at(source, 0).collect(),
            line_starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Function<'c>> {
        self.functions.iter().filter(|function| function.outline.kind == FunctionKind::Kernel)
    }

    /// The functions that run on the device.
    pub fn device_functions(&self) -> impl Iterator<Item = &Function<'c>> {
        self.functions.iter().filter(|function| function.outline.kind != FunctionKind::Host)
    }

    /// The text of a node.
    pub fn text(&self, node: Node) -> &'c str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    /// The line of a byte, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// What stands before the first word of the line of `at`.
    pub fn indentation(&self, at: usize) -> &'c str {
        let start = self.line_starts[self.line(at) - 1];
        let line = &self.source[start..];
        let end = line.find(|c: char| c != ' ' && c != '\t').unwrap_or(line.len());
        &line[..end]
    }

    /// One level of indentation, as this function's body has it.
    pub fn indentation_unit(&self, function: &Function) -> &'c str {
        let outer = self.indentation(function.node.start_byte());
        let first = function.node.child_by_field_name("body").and_then(|body| body.named_child(0));
        let inner = first.map_or("", |statement| self.indentation(statement.start_byte()));
        inner.strip_prefix(outer).filter(|unit| !unit.is_empty()).unwrap_or("    ")
    }

    /// Whether anything of `span` stands under `#if`.
    pub fn is_conditional(&self, span: Span) -> bool {
        self.directives.conditional.iter().any(|region| region.start < span.end && span.start < region.end)
    }

    /// Why not all of the code of a function is seen, for rules that must see every use of a name.
    ///
    /// # Errors
    /// The reason.
    pub fn is_whole(&self, function: &Function) -> Result<(), String> {
        let name = &function.outline.name;
        if self.is_conditional(function.outline.span) {
            return Err(format!("`#if` changes the code of `{name}`"));
        }
        if function.node.has_error() {
            return Err(format!("not all of `{name}` could be read"));
        }
        Ok(())
    }

    /// The line of the first `#define` that is called `name`, or whose body means it: as something else than its own parameter.
    pub fn macro_that_mentions(&self, name: &str) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let is_name = |t: &Token| t.kind == TokenKind::Word && t.text(bytes) == name.as_bytes();
        let mentions = |line: &&Span| {
            let mut tokens = Lexer::within(self.source, line.start + 1, line.end).skip(1);
            let Some(defined) = tokens.next() else { return false };
            let takes_arguments = bytes.get(defined.end) == Some(&b'(');
            let is_parameter =
                takes_arguments && tokens.by_ref().take_while(|token| !token.is(b')')).any(|t| is_name(&t));
            is_name(&defined) || (!is_parameter && tokens.any(|token| is_name(&token)))
        };
        self.directives.lines.iter().find(mentions).map(|line| self.line(line.start))
    }

    /// Whether the file gives the name of a library function a meaning of its own: as a function or a macro.
    pub fn defines(&self, name: &str) -> bool {
        let bytes = self.source.as_bytes();
        let is_macro = |line: &Span| {
            let mut words = Lexer::within(self.source, line.start + 1, line.end).skip(1);
            words.next().is_some_and(|word| word.text(bytes) == name.as_bytes())
        };
        self.outline.functions.iter().any(|function| function.name == name)
            || self.directives.lines.iter().any(is_macro)
    }
}

impl<'c> Function<'c> {
    /// What is known of its names, types and accesses; made when it is first asked for.
    pub(crate) fn walker(&self) -> &Walker<'c> {
        self.walker.get_or_init(|| {
            let context = FunctionContext {
                source: self.source,
                node: self.node,
                function: self.outline,
                environment: self.environment,
            };
            walk_keeping_types(&context)
        })
    }
}

impl Function<'_> {
    /// The type of an expression, as far as it is known.
    pub(crate) fn type_of(&self, expression: Node) -> Type {
        let types = self.walker().types.as_ref();
        types.and_then(|types| types.get(&expression.id())).copied().unwrap_or(Type::UNKNOWN)
    }
}

impl Rule {
    /// A refusal of this rule.
    pub fn refuse(&'static self, place: Span, reason: impl Into<String>) -> Proposal {
        Proposal::Refused(Refusal { rule: self, place, reason: reason.into() })
    }

    /// A rewrite by this rule that proves and assumes nothing yet, and keeps the rounding.
    pub fn rewrite(&'static self, place: Span, title: String, edits: Vec<Edit>, expected: Gain) -> Rewrite {
        Rewrite {
            rule: self,
            place,
            title,
            edits,
            proven: Vec::new(),
            assumed: Vec::new(),
            changes_rounding: false,
            expected,
        }
    }
}

/// A node's bytes.
pub fn span(node: Node) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}
