//! The function around a launch or a call, with its constants and sizes.

use std::collections::BTreeMap;

use stitch_findings::Span;

use super::super::allocations::{self, Allocation};
use super::super::lexer::{Kind, Lexer, Token};
use super::super::locals::Locals;
use super::super::sizes::{Outside, Sizes};
use super::callers::File;
use super::divisions::rewritten;
use super::globals::Globals;
use crate::outline::{ArgumentFacts, Function};

/// What the calls of a function say of its parameters, where all agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// The values of integers.
    pub values: BTreeMap<String, i64>,
    /// The bytes that pointers point to.
    pub bytes: BTreeMap<String, i64>,
    /// How many elements vectors have.
    pub counts: BTreeMap<String, i64>,
}

/// A function's body, with divisions written out, and a place in it.
pub struct Body<'f> {
    /// The function.
    pub function: &'f Function,
    /// The place, in `text`.
    pub at: usize,
    text: String,
    tokens: Vec<Token>,
    allocations: Vec<Allocation>,
}

impl<'f> Body<'f> {
    /// The body around `span` of the file.
    pub fn around(file: &File<'f>, span: Span) -> Option<Self> {
        let around = |function: &&Function| function.body.is_some_and(|body| body.contains(span));
        let function =
            file.outline.functions.iter().filter(around).min_by_key(|function| function.span.len())?;
        let body = function.body?;
        let part = |start: usize, end: usize| rewritten(file.source.get(start..end).unwrap_or_default());
        let before = part(body.start, span.start);
        let at = before.len();
        let text = before + &part(span.start, body.end);
        let tokens: Vec<Token> = Lexer::at(&text, 0).filter(|token| token.kind != Kind::Directive).collect();
        let allocations = allocations::of(&tokens, &text);
        Some(Self { function, at, text, tokens, allocations })
    }

    /// Its constants, vectors and arrays.
    pub fn locals<'g>(&self, file: &File, globals: &'g Globals<'g>, called: &Called) -> Locals<'g>
    where
        'f: 'g,
    {
        let bytes_of = |text: &str| file.environment.type_of(text).bytes();
        let outside = Outside { bytes_of: &bytes_of, callees: file };
        let parameters: Vec<_> = self
            .function
            .parameters
            .iter()
            .map(|p| (p.name.as_str(), p.ty.as_str(), called.counts.get(&p.name).copied()))
            .collect();
        let sizes = Sizes::read(&self.tokens, &self.text, &parameters, &outside);
        Locals::read(&self.tokens, &self.text, &self.function.template_parameters, globals)
            .assuming(file.values.clone())
            .called_with(&called.values)
            .knowing(sizes)
    }

    /// What is known of the arguments at the place, and why the size of each's allocation is not.
    pub fn facts(
        &self,
        arguments: &[String],
        locals: &Locals,
        called: &Called,
    ) -> (Vec<ArgumentFacts>, Vec<Option<String>>) {
        let mut facts = allocations::facts(arguments, self.at, locals, &self.allocations);
        let mut reasons = allocations::reasons(arguments, self.at, locals, &self.allocations);
        for ((argument, fact), reason) in arguments.iter().zip(&mut facts).zip(&mut reasons) {
            let allocated = self.allocations.iter().any(|own| own.sets(argument));
            if !allocated && let Some(bytes) = called.bytes.get(argument.trim()) {
                fact.bytes = Some(*bytes);
                *reason = None;
            }
        }
        (facts, reasons)
    }
}
