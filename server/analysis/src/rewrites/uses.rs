//! The nodes of a function, and the uses of a name in it.

use tree_sitter::Node;

use super::{Context, Function};
use crate::rules::kind::Kind;

/// All nodes at and below `root`, in the order of the text, without recursion.
pub fn nodes(root: Node) -> impl Iterator<Item = Node> {
    let mut cursor = root.walk();
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let node = cursor.node();
        if !cursor.goto_first_child() {
            loop {
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    done = true;
                    break;
                }
            }
        }
        Some(node)
    })
}

/// Where the variable with this number is named, its declaration left out.
pub fn uses<'c>(context: &Context, function: &Function<'c>, variable: usize) -> Vec<Node<'c>> {
    let walker = function.walker();
    let name = walker.names.variables[variable].name;
    nodes(function.node)
        .filter(|node| Kind::of(*node) == Kind::Identifier && context.text(*node) == name)
        .filter(|node| walker.names.resolve(name, node.start_byte()) == Some(variable))
        .collect()
}

/// Whether `inner` is `outer` or stands in it.
pub fn is_within(inner: Node, outer: Node) -> bool {
    outer.start_byte() <= inner.start_byte() && inner.end_byte() <= outer.end_byte()
}
