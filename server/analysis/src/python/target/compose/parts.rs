//! Parts of a module that are of the candidate's own classes: `self.block = FastBlock(...)` where the file has `self.block = Block(...)`.
//!
//! Such a part runs on the attributes of the file's part, as the candidate's module does on those of the file's module, so parameters keep
//! their names. The candidate's class takes the place of the file's class wherever both make the same attribute.

use std::collections::HashSet;

use tree_sitter::Node;

use super::super::source::{Source, all, children, undecorated};
use super::class::Made;

/// Modules of torch that hold others.
const HOLDERS: [&str; 3] = ["ModuleList", "ModuleDict", "Sequential"];

/// A class of the file, and the candidate's for it.
pub(super) type Pair<'t, 'n> = (Node<'t>, Node<'n>);

/// The classes of the top level that derive from `Module`, of torch or by way of each other.
fn module_classes<'t>(source: &'t Source<'_>) -> Vec<Node<'t>> {
    let classes: Vec<Node<'t>> = children(source.root())
        .into_iter()
        .map(undecorated)
        .filter(|node| node.kind() == "class_definition")
        .collect();
    let mut found: Vec<Node<'t>> = Vec::new();
    loop {
        let before = found.len();
        let names: HashSet<&str> = found.iter().map(|class| source.field(*class, "name")).collect();
        let is_module = |class: &Node<'t>| {
            let bases = class.child_by_field_name("superclasses").map(children).unwrap_or_default();
            let mut bases = bases.into_iter().map(|base| source.of(base));
            bases.any(|base| base.rsplit('.').next() == Some("Module") || names.contains(base))
        };
        let more: Vec<_> = classes
            .iter()
            .filter(|class| !names.contains(source.field(**class, "name")) && is_module(class))
            .copied()
            .collect();
        found.extend(more);
        if found.len() == before {
            return found;
        }
    }
}

/// The classes among `classes` that an expression names, each once, in order.
fn named<'t>(source: &Source<'_>, value: Node, classes: &[Node<'t>]) -> Vec<Node<'t>> {
    let mut found: Vec<Node<'t>> = Vec::new();
    for node in all(value, &["identifier"]) {
        let class = classes.iter().find(|class| source.field(**class, "name") == source.of(node));
        if let Some(class) = class.filter(|class| !found.iter().any(|one| one.id() == class.id())) {
            found.push(*class);
        }
    }
    found
}

/// The pairs of classes by which an attribute is made in the file and in the candidate; none where the candidate uses no class of its own.
///
/// # Errors
/// The two are not made in the same way, in one sentence.
pub(super) fn pairs<'t, 'n>(
    name: &str,
    (source, there): (&'t Source<'_>, &Made),
    (new, made): (&'n Source<'_>, &Made),
) -> Result<Vec<Pair<'t, 'n>>, String> {
    let own = named(new, made.value, &module_classes(new));
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let theirs = named(source, there.value, &module_classes(source));
    let callees = (made.callee.as_deref().unwrap_or_default(), there.callee.as_deref().unwrap_or_default());
    let direct = |classes: &[Node], source: &Source<'_>, callee: &str| {
        classes.first().is_some_and(|class| source.field(*class, "name") == callee)
    };
    let both_direct = direct(&own, new, callees.0) && direct(&theirs, source, callees.1);
    let both_hold = callees.0 == callees.1 && HOLDERS.contains(&callees.0);
    if own.len() != theirs.len() || !(both_direct || both_hold) {
        return Err(format!(
            "`self.{name}` is made of classes of the candidate's own, and in the file it is not made in the same way of as many."
        ));
    }
    Ok(theirs.into_iter().zip(own).collect())
}

/// The statement that has `self.name` be the file's part in the candidate's classes.
pub(super) fn shared(name: &str, pairs: &[Pair<'_, '_>], source: &Source<'_>, new: &Source<'_>) -> String {
    let classes = pairs.iter().map(|(old, own)| {
        format!("{}: {}", super::guard::quoted(source.field(*old, "name")), new.field(*own, "name"))
    });
    let classes = classes.collect::<Vec<_>>().join(", ");
    format!("object.__setattr__(self, \"{name}\", _Verified.share(self._modules[\"{name}\"], {{{classes}}}))")
}

/// Whether two classes have the same text, so that the file's own does.
pub(super) fn is_same(source: &Source<'_>, new: &Source<'_>, (old, own): &Pair<'_, '_>) -> bool {
    source.of(*old).replace("\r\n", "\n") == new.of(*own)
}
