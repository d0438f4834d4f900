//! Whether a loop can run more than once, as far as constants and its last statement tell.

use tree_sitter::Node;

use super::constants::{Constants, fold_text};
use super::environment::Environment;
use super::kind::Kind;
use super::names::Names;

/// Constants that stand for others deeper than this are not followed.
const DEEPEST: u32 = 8;

/// What is known of the names at a loop.
pub struct Around<'w, 't> {
    /// The text of the file.
    pub source: &'t str,
    /// The function's own names, which hide those of the file.
    pub names: &'w Names<'t>,
    /// The file's.
    pub environment: &'t Environment,
}

/// Whether the loop `node` runs at most once: `do { … } while (0)`, `for (i = 0; i < 1; ++i)`, a body that ends by leaving.
pub fn runs_once(node: Node, kind: Kind, around: &Around) -> bool {
    if leaves_at_its_end(node, around.source) {
        return true;
    }
    match kind {
        Kind::Do => node
            .child_by_field_name("condition")
            .and_then(|condition| around.fold(condition))
            .is_some_and(|value| value == 0),
        Kind::For => counts_to_one(node, around).unwrap_or(false),
        _ => false,
    }
}

/// Whether the last statement of the body leaves the loop, and none goes on with the next pass.
fn leaves_at_its_end(node: Node, source: &str) -> bool {
    let Some(body) = node.child_by_field_name("body") else { return false };
    let Some(mut last) = (body.named_child_count() as u32).checked_sub(1).and_then(|at| body.named_child(at))
    else {
        return false;
    };
    while last.kind() == "comment" {
        let Some(before) = last.prev_named_sibling() else { return false };
        last = before;
    }
    body.kind() == "compound_statement"
        && matches!(last.kind(), "break_statement" | "return_statement" | "throw_statement")
        && !source.get(body.byte_range()).unwrap_or("continue").contains("continue")
}

/// Whether the counter of a `for` loop is past its bound at the second pass, if not at the first.
fn counts_to_one(node: Node, around: &Around) -> Option<bool> {
    let initializer = node.child_by_field_name("initializer")?;
    let (counter, first) = match initializer.kind() {
        "declaration" => {
            let declarator = initializer.child_by_field_name("declarator")?;
            (declarator.child_by_field_name("declarator")?, declarator.child_by_field_name("value")?)
        }
        _ => (initializer.child_by_field_name("left")?, initializer.child_by_field_name("right")?),
    };
    let condition = node.child_by_field_name("condition")?;
    let update = node.child_by_field_name("update")?;
    let counter = around.text(counter);
    if around.text(condition.child_by_field_name("left")?) != counter {
        return None;
    }
    let first = around.fold(first)?;
    let bound = around.fold(condition.child_by_field_name("right")?)?;
    let operator = around.text(condition.child_by_field_name("operator")?);
    let second = next(update, counter, first, around)?;
    Some(!holds(first, operator, bound)? || !holds(second, operator, bound)?)
}

fn holds(value: i64, operator: &str, bound: i64) -> Option<bool> {
    Some(match operator {
        "<" => value < bound,
        "<=" => value <= bound,
        ">" => value > bound,
        ">=" => value >= bound,
        "!=" => value != bound,
        _ => return None,
    })
}

/// What the counter is after `update`.
fn next(update: Node, counter: &str, value: i64, around: &Around) -> Option<i64> {
    let operator = around.text(update.child_by_field_name("operator")?);
    let target = update.child_by_field_name("argument").or_else(|| update.child_by_field_name("left"))?;
    if around.text(target) != counter {
        return None;
    }
    let by = || update.child_by_field_name("right").and_then(|right| around.fold(right));
    match operator {
        "++" => value.checked_add(1),
        "--" => value.checked_sub(1),
        "+=" => value.checked_add(by()?),
        "-=" => value.checked_sub(by()?),
        "*=" => value.checked_mul(by()?),
        "/=" => value.checked_div(by()?),
        _ => None,
    }
}

impl Around<'_, '_> {
    fn text(&self, node: Node) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn fold(&self, node: Node) -> Option<i64> {
        match self.text(node) {
            "(false)" => Some(0),
            text => fold_text(text, &At { around: self, at: node.start_byte(), depth: 0 }),
        }
    }
}

/// The constants at one place of a function.
struct At<'a, 'w, 't> {
    around: &'a Around<'w, 't>,
    at: usize,
    depth: u32,
}

impl Constants for At<'_, '_, '_> {
    fn value(&self, name: &str) -> Option<i64> {
        let Some(id) = self.around.names.resolve(name, self.at) else {
            return self.around.environment.value(name);
        };
        let variable = &self.around.names.variables[id];
        let initial = variable.initial.filter(|_| variable.writes.is_empty() && self.depth < DEEPEST)?;
        let within = Self { around: self.around, at: initial.start_byte(), depth: self.depth + 1 };
        fold_text(self.around.text(initial), &within)
    }
}
