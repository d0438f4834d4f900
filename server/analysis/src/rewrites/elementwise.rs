//! Kernels of one element a thread: an index, a guard, and what is done to the element.

use stitch_findings::Span;
use tree_sitter::Node;

use super::context::span;
use super::expression::has_no_effect;
use super::statements::{bare, binary, body, condition, declared, is_bare_return, mentions, statements};
use super::threads::{is_global_x, is_uniform};
use super::uses::uses;
use super::{Context, Function};
use crate::rules::kind::Kind;
use crate::rules::types::Type;

/// How the guard is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `if (i < n) { … }`
    Branch,
    /// `if (i >= n) return; …`
    Return,
}

/// `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { … }`.
pub struct Elementwise<'c> {
    /// `i`, by its number.
    pub index: usize,
    /// Its declaration.
    pub declaration: Node<'c>,
    /// What it starts as.
    pub start: Node<'c>,
    /// Its type.
    pub ty: Type,
    /// The `if`.
    pub guard: Node<'c>,
    /// `n`.
    pub bound: Node<'c>,
    /// How it is written.
    pub form: Form,
    /// The kernel's other statements before the guard.
    pub before: Vec<Node<'c>>,
    /// What is done to the element.
    pub inner: Vec<Node<'c>>,
    /// What follows the `if`.
    pub after: Vec<Node<'c>>,
}

impl<'c> Elementwise<'c> {
    /// The kernel as one of this kind; `None` where it is none.
    pub fn of(context: &Context<'c>, kernel: &Function<'c>, block: Option<[i64; 3]>) -> Option<Self> {
        let all = body(kernel);
        let names = &kernel.walker().names;
        let (at, declaration, index, start) = all.iter().enumerate().find_map(|(at, statement)| {
            let (id, value) = declared(context, kernel, *statement)?;
            is_global_x(context, kernel, value, block).then_some((at, *statement, id, value))
        })?;
        let is_index = |node: Node| names.resolve(context.text(bare(node)), node.start_byte()) == Some(index);
        let (guard_at, guard, bound, form) =
            all.iter().enumerate().skip(at + 1).find_map(|(at, statement)| {
                if Kind::of(*statement) != Kind::If || statement.child_by_field_name("alternative").is_some()
                {
                    return None;
                }
                let returns = is_bare_return(statement.child_by_field_name("consequence")?);
                let (left, operator, right) = binary(condition(*statement)?)?;
                let (bound, form) = match (operator, returns) {
                    ("<", false) if is_index(left) => (right, Form::Branch),
                    (">", false) if is_index(right) => (left, Form::Branch),
                    (">=", true) if is_index(left) => (right, Form::Return),
                    ("<=", true) if is_index(right) => (left, Form::Return),
                    _ => return None,
                };
                Some((at, *statement, bound, form))
            })?;
        let inner = match form {
            Form::Branch => statements(guard.child_by_field_name("consequence")?),
            Form::Return => all[guard_at + 1..].to_vec(),
        };
        Some(Self {
            index,
            declaration,
            start,
            ty: names.variables[index].ty,
            guard,
            bound,
            form,
            before: all[..guard_at].iter().filter(|node| **node != declaration).copied().collect(),
            inner,
            after: if form == Form::Branch { all[guard_at + 1..].to_vec() } else { Vec::new() },
        })
    }

    /// The bytes of what is done to the element.
    pub fn inner_span(&self) -> Option<Span> {
        Some(Span::new(self.inner.first()?.start_byte(), self.inner.last()?.end_byte()))
    }

    /// Why the index can't be made to go on to other elements.
    pub fn index_is_free(&self, context: &Context<'c>, kernel: &Function<'c>) -> Result<(), String> {
        let names = &kernel.walker().names;
        let variable = &names.variables[self.index];
        let name = variable.name;
        if !variable.writes.is_empty() || variable.is_reference {
            return Err(format!("`{name}` is changed, or its address is taken"));
        }
        if !variable.ty.is_integer() || !matches!(variable.ty.bytes(), Some(4 | 8)) || variable.is_auto {
            return Err(format!("`{name}` is no plain integer of 32 bits or more"));
        }
        if !is_uniform(context, kernel, self.bound) || !has_no_effect(context, self.bound) {
            return Err(format!("`{}` may differ between threads", context.text(self.bound)));
        }
        let early = self.before.iter().find(|node| mentions(context, kernel, **node, self.index));
        if let Some(node) = early {
            let line = context.line(node.start_byte());
            return Err(format!("line {line} uses `{name}` before the guard"));
        }
        let late = uses(context, kernel, self.index)
            .into_iter()
            .find(|node| self.after.iter().any(|statement| span(*statement).contains(span(*node))));
        match late {
            Some(node) => {
                Err(format!("line {} uses `{name}` after the guard", context.line(node.start_byte())))
            }
            None => Ok(()),
        }
    }
}
