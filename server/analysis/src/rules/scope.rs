//! The constants that are visible at a place in a function: its own, then those of the file.

use tree_sitter::Node;

use super::constants::{Constants, Token, Tokens, fold_dimensions, fold_text, split_arguments};
use super::kind::Kind;
use super::names::{Variable, Write};
use super::walk::Walker;

/// What is constant at a place.
pub struct Scope<'w, 't> {
    walker: &'w Walker<'t>,
    at: usize,
}

impl<'w, 't> Scope<'w, 't> {
    /// What is constant at the byte `at`.
    pub fn new(walker: &'w Walker<'t>, at: usize) -> Self {
        Self { walker, at }
    }
}

impl Constants for Scope<'_, '_> {
    fn value(&self, name: &str) -> Option<i64> {
        let walker = self.walker;
        if let Some(id) = walker.names.resolve(name, self.at) {
            return walker.settled[id]?.constant;
        }
        if walker.function.template_parameters.iter().any(|parameter| parameter.name == name) {
            return walker.template_value(name);
        }
        walker.environment.value(name)
    }

    fn dimensions(&self, name: &str) -> Option<[i64; 3]> {
        let id = self.walker.names.resolve(name, self.at)?;
        let variable = &self.walker.names.variables[id];
        if variable.writes.is_empty() {
            return dimensions_of(variable, self, 0);
        }
        if variable.class != "dim3" {
            return None;
        }
        let mut sizes = match variable.initial {
            Some(_) => dimensions_of(variable, self, 0)?,
            None => [1; 3],
        };
        let mut set = [false; 3];
        for write in &variable.writes {
            let Write::Member(member, value) = write else { return None };
            let axis = ["x", "y", "z"].iter().position(|axis| axis == member)?;
            if set[axis] || !self.is_set_before(variable, *value) {
                return None;
            }
            set[axis] = true;
            let text = self.walker.source.get(value.byte_range())?;
            sizes[axis] = fold_text(text, &Integers(self))?;
        }
        Some(sizes)
    }
}

impl Scope<'_, '_> {
    /// Whether `variable.member = value;` surely runs once before this place: it stands in the block that declares the variable.
    fn is_set_before(&self, variable: &Variable, value: Node) -> bool {
        let block = value.parent().and_then(|set| set.parent()).and_then(|statement| statement.parent());
        value.end_byte() <= self.at
            && block.is_some_and(|block| {
                Kind::of(block) == Kind::Compound && block.end_byte() == variable.visible.end
            })
    }
}

/// A text in which members of constant `dim3`s, as `block.x`, are replaced by their values.
fn with_members(text: &str, scope: &Scope, depth: usize) -> String {
    let words: Vec<_> = Tokens::new(text).collect();
    let mut out = String::new();
    let mut copied = 0;
    for pair in words.windows(3) {
        let [(Token::Name(name), at), (_, dot), (Token::Name(member), end)] = pair else { continue };
        let axis = ["x", "y", "z"].iter().position(|axis| axis == member);
        let Some(axis) = axis.filter(|_| &text[dot.clone()] == "." && at.start >= copied) else { continue };
        let variable = scope.walker.names.resolve(name, scope.at).map(|id| &scope.walker.names.variables[id]);
        let unchanged = variable.filter(|variable| variable.writes.is_empty());
        if let Some(sizes) = unchanged.and_then(|variable| dimensions_of(variable, scope, depth + 1)) {
            out.push_str(&text[copied..at.start]);
            out.push_str(&sizes[axis].to_string());
            copied = end.end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// A grid is made of a block, which is made of numbers; what is made of more than that is not followed.
const DEEPEST: usize = 2;

/// The sizes that a `dim3` starts with.
fn dimensions_of(variable: &Variable, from: &Scope, depth: usize) -> Option<[i64; 3]> {
    let scope = &Integers(from);
    let initial: Node = variable.initial.filter(|_| depth < DEEPEST)?;
    let text = from.walker.source.get(initial.byte_range())?;
    let text = &with_members(text, from, depth);
    if !matches!(initial.kind(), "argument_list" | "parameter_list") {
        return fold_dimensions(text, scope);
    }
    let mut sizes = [1; 3];
    let parts = split_arguments(text.strip_prefix('(')?.strip_suffix(')')?)?;
    for (index, part) in parts.iter().enumerate() {
        *sizes.get_mut(index)? = fold_text(part, scope)?;
    }
    Some(sizes)
}

/// A scope without its `dim3`s, so that one that is made from another is not followed any further.
struct Integers<'s, 'w, 't>(&'s Scope<'w, 't>);

impl Constants for Integers<'_, '_, '_> {
    fn value(&self, name: &str) -> Option<i64> {
        self.0.value(name)
    }
}
