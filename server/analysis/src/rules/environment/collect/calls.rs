//! What calls and launches tell.

use tree_sitter::Node;

use super::{Collector, LONGEST_TEXT, MOST_NAMES};
use crate::rules::call::callee;
use crate::rules::environment::LaunchPiece;

impl<'t> Collector<'t> {
    pub(super) fn call(&mut self, node: Node<'t>) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let Some(name) = callee(function).map(|name| self.text(name)) else { return };
        let configuration =
            (1..4).filter_map(|index| node.child(index)).find(|child| child.kind() == "kernel_call_syntax");
        if let Some(configuration) = configuration {
            let mut cursor = configuration.walk();
            let mut sizes =
                configuration.named_children(&mut cursor).filter(|child| child.kind() != "comment");
            let grid = sizes.next().map_or("", |grid| self.text(grid));
            let block = sizes.next().map_or("", |block| self.text(block));
            let rounds_up = self.locals.rounds_up(grid);
            let in_place = self.locals.in_place(grid);
            self.piece.launches.push(LaunchPiece {
                kernel: name.to_owned(),
                block: self.locals.block(block),
                rounds_up,
                divides: !rounds_up && in_place.contains('/'),
                grid: if rounds_up { in_place } else { String::new() },
                one_block: matches!(grid, "1" | "dim3(1)"),
                template_arguments: self.template_arguments(function),
            });
            return;
        }
        self.piece.wraps_calls |= self.is_wrapper(node, name);
        for (_, index) in &self.functions {
            if let Some((_, used)) = self.piece.uses.get_mut(*index) {
                used.push(name.to_owned());
            }
        }
    }

    /// Whether the first argument is a call of the runtime, so that its error goes somewhere.
    fn is_wrapper(&self, node: Node, name: &str) -> bool {
        let first = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
        let function = first.and_then(|first| first.child_by_field_name("function"));
        !name.starts_with("cuda") && function.is_some_and(|function| self.text(function).starts_with("cuda"))
    }

    /// The template arguments of `kernel<…>` or `detail::kernel<…>`, as written.
    fn template_arguments(&self, function: Node) -> Option<Vec<String>> {
        let named = function.child_by_field_name("name");
        let template =
            std::iter::once(function).chain(named).find(|node| node.kind() == "template_function")?;
        let list = template.child_by_field_name("arguments")?;
        if list.end_byte() - list.start_byte() > LONGEST_TEXT {
            // As many as there may be, none of them known.
            return Some(vec![String::new(); MOST_NAMES]);
        }
        let mut cursor = list.walk();
        let arguments = list.named_children(&mut cursor).filter(|child| child.kind() != "comment");
        Some(arguments.map(|argument| self.locals.with_constants(self.text(argument))).collect())
    }
}
