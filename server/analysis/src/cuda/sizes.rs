//! How much memory the names of a function stand for: `std::vector<float> in(w * h);`, `float table[N][4];`, `float* p;`.
//!
//! Read from tokens, like the function's constants. A vector has a size where it gets it once, and nothing between there and
//! the place that asks can give it another; what might is named, so that a person can be told.

mod changes;
mod objects;
mod spell;

use std::collections::BTreeMap;

pub use changes::Callees;
use objects::Object;
pub use spell::{Named, spelled};

use super::arguments::group_end;
use super::lexer::Token;
use super::locals::LocalsAt;

/// The objects of one function.
pub struct Sizes {
    objects: Vec<Object>,
    /// The bytes of the types that its texts name.
    types: BTreeMap<String, Option<i64>>,
}

/// What the parts of a text mean outside of the function.
pub struct Outside<'o> {
    /// The bytes of a type.
    pub bytes_of: &'o dyn Fn(&str) -> Option<i64>,
    /// What the functions of the file do to what is passed to them.
    pub callees: &'o dyn Callees,
}

impl Sizes {
    /// Reads the body `tokens` of the text `masked`, of a function with these parameters: name, type, and how many elements a
    /// vector has that its callers pass.
    pub fn read(
        tokens: &[Token],
        masked: &str,
        parameters: &[(&str, &str, Option<i64>)],
        outside: &Outside,
    ) -> Self {
        // What the body declares hides its parameters, so these come first.
        let mut objects: Vec<Object> = parameters
            .iter()
            .filter_map(|(name, ty, count)| objects::parameter(name, ty, *count, outside))
            .collect();
        objects.extend(objects::of(tokens, masked, outside));
        for object in objects.iter_mut().filter(|object| object.is_vector()) {
            object.changes = changes::of(tokens, masked, &object.name, object.visible, outside.callees);
        }
        let mut types = BTreeMap::new();
        for text in sized_types(tokens, masked) {
            let bytes = (outside.bytes_of)(&text);
            types.insert(text, bytes);
        }
        Self { objects, types }
    }

    fn find(&self, name: &str, at: usize) -> Option<&Object> {
        let sees =
            |object: &&Object| object.name == name && object.visible.start <= at && at < object.visible.end;
        self.objects.iter().rev().find(sees)
    }

    /// How many elements the vector `name` holds at the place of `scope`.
    pub fn count(&self, name: &str, scope: &LocalsAt) -> Option<i64> {
        self.find(name, scope.place())?.count(scope)
    }

    /// The bytes of the variable or the type `name`.
    pub fn bytes(&self, name: &str, scope: &LocalsAt) -> Option<i64> {
        match self.find(name, scope.place()) {
            Some(object) => object.storage(scope),
            None => self.types.get(name).copied().flatten(),
        }
    }

    /// The bytes of what `*name` or `name[0]` is.
    pub fn pointee(&self, name: &str, at: usize) -> Option<i64> {
        self.find(name, at)?.pointee()
    }

    /// Why the vector `name` has no size that is known at `at`, where it is one.
    pub fn unknown(&self, name: &str, at: usize) -> Option<String> {
        self.find(name, at)?.unknown()
    }
}

/// The texts between the brackets of `sizeof(…)`.
fn sized_types(tokens: &[Token], masked: &str) -> Vec<String> {
    let bytes = masked.as_bytes();
    let sized = tokens.iter().enumerate().filter(|(_, token)| token.text(bytes) == b"sizeof");
    let between = sized.filter_map(|(index, _)| {
        let open = tokens.get(index + 1).filter(|token| token.is(b'('))?;
        let close = tokens.get(group_end(tokens, index + 1)?)?;
        Some(masked.get(open.end..close.start)?.trim().to_owned())
    });
    between.collect()
}

#[cfg(test)]
mod tests;
