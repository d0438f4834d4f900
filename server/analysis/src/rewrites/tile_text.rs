//! The text of a copy through a shared tile: each half of it by the thread itself or by the one with x and y swapped.

use tree_sitter::Node;

use super::context::span;
use super::expression::{has_no_effect, unused_name};
use super::statements::declared;
use super::threads::is_uniform;
use super::tiled_transpose::{Copy, Shape, Strided};
use super::uses::nodes;
use super::{Context, Function};
use crate::rules::kind::Kind;
use crate::rules::names::Storage;

/// What it is written from.
pub(super) struct Writer<'w, 'c> {
    pub(super) context: &'w Context<'c>,
    pub(super) kernel: &'w Function<'c>,
    pub(super) shape: &'w Shape<'c>,
    pub(super) copy: &'w Copy<'c>,
    pub(super) side: i64,
    pub(super) ty: String,
}

impl<'c> Writer<'_, 'c> {
    /// The lines from the tile's declaration to the store, the first one indented too.
    ///
    /// # Errors
    /// What an index is made of that can't be computed for another thread.
    pub(super) fn write(&self) -> Result<String, String> {
        let tile = unused_name(self.context, self.kernel, "tile");
        let own = self.context.indentation(self.shape.place.start);
        let unit = self.context.indentation_unit(self.kernel);
        let assignment = self.copy.store.node.parent();
        let value = assignment.and_then(|node| node.child_by_field_name("right"));
        let value = value.ok_or("the copy could not be read")?;
        let here = format!("{tile}[threadIdx.y][threadIdx.x]");
        let across = format!("{tile}[threadIdx.x][threadIdx.y]");
        let store = self.context.text(self.copy.store.node);
        let (first, second) = match self.copy.strided {
            // The value crosses, and the store is the other thread's.
            Strided::Store => {
                let first = self.half(&format!("{here} = {};", self.context.text(value)), &[value], false)?;
                let other = self.renamed(self.copy.store.node, &self.renames(&[self.copy.store.node])?);
                (first, self.half(&format!("{other} = {across};"), &[self.copy.store.node], true)?)
            }
            Strided::Load => {
                let other = self.renamed(self.copy.load.node, &self.renames(&[self.copy.load.node])?);
                let first = self.half(&format!("{here} = {other};"), &[self.copy.load.node], true)?;
                let (load, from) = (span(self.copy.load.node), value.start_byte());
                let text = self.context.text(value);
                let rest = format!("{}{across}{}", &text[..load.start - from], &text[load.end - from..]);
                (first, self.half(&format!("{store} = {rest};"), &[value, self.copy.store.node], false)?)
            }
        };
        let mut text = format!("{own}__shared__ {} {tile}[{}][{}];\n", self.ty, self.side, self.side + 1);
        for comment in nodes(self.kernel.node).filter(|node| Kind::of(*node) == Kind::Comment) {
            if self.shape.place.contains(span(comment)) {
                text += &format!("{own}{}\n", self.context.text(comment).trim_end());
            }
        }
        for (index, half) in [first, second].iter().enumerate() {
            let Half { outer, guard, inner } = half;
            outer.iter().for_each(|line| text += &format!("{own}{line}\n"));
            match guard {
                Some(guard) => {
                    text += &format!("{own}if ({guard}) {{\n");
                    inner.iter().for_each(|line| text += &format!("{own}{unit}{line}\n"));
                    text += &format!("{own}}}\n");
                }
                None => inner.iter().for_each(|line| text += &format!("{own}{line}\n")),
            }
            if index == 0 {
                text += &format!("{own}__syncthreads();\n");
            }
        }
        Ok(text.trim_end().to_owned())
    }

    /// One half of the copy, by the thread itself or by the one with x and y swapped.
    fn half(&self, statement: &str, uses: &[Node<'c>], is_swapped: bool) -> Result<Half, String> {
        let mut all = uses.to_vec();
        all.extend(&self.shape.conditions);
        let needed = self.needed(&all)?;
        let renames = if is_swapped { self.renames(&all)? } else { Vec::new() };
        let mut half = Half { outer: Vec::new(), guard: self.guard(&renames), inner: Vec::new() };
        for declaration in &needed {
            let is_inside = self.shape.inside.contains(declaration);
            if !is_inside && !is_swapped {
                continue;
            }
            let line = if is_swapped {
                self.renamed(*declaration, &renames)
            } else {
                self.context.text(*declaration).to_owned()
            };
            // Indices that a guard inside early returns needs are computed before it, all being free of effects.
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            half.outer.push(line);
        }
        half.inner.push(statement.to_owned());
        Ok(half)
    }

    fn guard(&self, renames: &[(String, String)]) -> Option<String> {
        let guards: Vec<String> = self
            .shape
            .guards
            .iter()
            .map(|guard| {
                let text = rename_words(guard, renames);
                if self.shape.guards.len() > 1 && text.contains("||") { format!("({text})") } else { text }
            })
            .collect();
        (!guards.is_empty()).then(|| guards.join(" && "))
    }

    /// The declarations that these expressions need, in the order of the text.
    fn needed(&self, uses: &[Node<'c>]) -> Result<Vec<Node<'c>>, String> {
        let names = &self.kernel.walker().names;
        let mut open = uses.to_vec();
        let mut found: Vec<Node> = Vec::new();
        while let Some(next) = open.pop() {
            for name in nodes(next).filter(|node| Kind::of(*node) == Kind::Identifier) {
                let Some(id) = names.resolve(self.context.text(name), name.start_byte()) else { continue };
                let variable = &names.variables[id];
                if variable.storage == Storage::Parameter {
                    if !variable.writes.is_empty() {
                        return Err(format!("`{}` is changed", variable.name));
                    }
                    continue;
                }
                let all = self.shape.outside.iter().chain(&self.shape.inside);
                let mut all =
                    all.filter(|node| names_declared(self.context, **node).contains(&variable.name));
                let declaration = all.next().ok_or_else(|| format!("`{}` is changed", variable.name))?;
                if !variable.writes.is_empty() || !has_no_effect(self.context, *declaration) {
                    return Err(format!("`{}` is more than an index", variable.name));
                }
                if !found.contains(declaration) {
                    found.push(*declaration);
                    open.push(*declaration);
                }
            }
        }
        found.retain(|node| {
            !is_self_uniform(self.context, self.kernel, *node) || self.shape.inside.contains(node)
        });
        if let Some(node) = found.iter().find(|node| nodes(**node).any(|n| Kind::of(n) == Kind::Subscript)) {
            let line = self.context.line(node.start_byte());
            return Err(format!("line {line} reads memory to compute an index"));
        }
        found.sort_by_key(|node| node.start_byte());
        Ok(found)
    }

    /// New names for what the swapped thread computes, and its own coordinates.
    fn renames(&self, uses: &[Node<'c>]) -> Result<Vec<(String, String)>, String> {
        let mut renames = vec![
            ("threadIdx.x".to_owned(), "threadIdx.y".to_owned()),
            ("threadIdx.y".to_owned(), "threadIdx.x".to_owned()),
        ];
        let mut all = uses.to_vec();
        all.extend(&self.shape.conditions);
        for declaration in self.needed(&all)? {
            for name in names_declared(self.context, declaration) {
                let word = if name.contains('_') { "_across" } else { "Across" };
                let new = unused_name(self.context, self.kernel, &format!("{name}{word}"));
                renames.push((name.to_owned(), new));
            }
        }
        Ok(renames)
    }

    fn renamed(&self, node: Node, renames: &[(String, String)]) -> String {
        rename_words(self.context.text(node), renames)
    }
}

struct Half {
    outer: Vec<String>,
    guard: Option<String>,
    inner: Vec<String>,
}

/// Whether a declaration's values are the same for all threads, so that no other thread's are needed.
fn is_self_uniform<'c>(context: &Context<'c>, kernel: &Function<'c>, declaration: Node<'c>) -> bool {
    declared(context, kernel, declaration).is_some_and(|(_, value)| is_uniform(context, kernel, value))
}

/// The names that a declaration declares.
fn names_declared<'c>(context: &Context<'c>, declaration: Node<'c>) -> Vec<&'c str> {
    let mut cursor = declaration.walk();
    let declarators = declaration.children_by_field_name("declarator", &mut cursor);
    declarators
        .map(|declarator| context.text(declarator.child_by_field_name("declarator").unwrap_or(declarator)))
        .collect()
}

/// A text with whole words, or `threadIdx.` with its member, replaced.
fn rename_words(text: &str, renames: &[(String, String)]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !is_word(first) {
            result.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let mut end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if &rest[..end] == "threadIdx" && rest[end..].starts_with('.') {
            end = rest[end + 1..].find(|c| !is_word(c)).map_or(rest.len(), |at| end + 1 + at);
        }
        let word = &rest[..end];
        let is_member = result.ends_with('.') || result.ends_with("->");
        let new = renames.iter().find(|(old, _)| old == word && !is_member);
        result.push_str(new.map_or(word, |(_, new)| new.as_str()));
        rest = &rest[end..];
    }
    result
}
