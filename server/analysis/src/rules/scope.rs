//! The constants that are visible at a place in a function: its own, then those of the file.

use tree_sitter::Node;

use super::constants::{Constants, fold_dimensions, fold_text, split_arguments};
use super::names::Variable;
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
        let parameter = walker.function.template_parameters.iter().find(|parameter| parameter.name == name);
        match parameter {
            Some(_) if walker.environment.is_instantiated(&walker.function.name) => None,
            Some(parameter) => fold_text(parameter.default.as_deref()?, walker.environment),
            None => walker.environment.value(name),
        }
    }

    fn dimensions(&self, name: &str) -> Option<[i64; 3]> {
        let id = self.walker.names.resolve(name, self.at)?;
        let variable = &self.walker.names.variables[id];
        if !variable.writes.is_empty() {
            return None;
        }
        dimensions_of(variable, self.walker.source, &Integers(self))
    }
}

/// The sizes that a `dim3` starts with.
fn dimensions_of(variable: &Variable, source: &str, scope: &dyn Constants) -> Option<[i64; 3]> {
    let initial: Node = variable.initial?;
    let text = source.get(initial.byte_range())?;
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
