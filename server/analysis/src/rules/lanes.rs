//! For how many lanes of a warp a condition holds: `threadIdx.x % 32 < 16` for 16.

use tree_sitter::Node;

use super::index::{Coefficient, WARP};
use super::kind::Kind;
use super::operators::Operand;
use super::walk::Walker;

/// The lanes of a warp.
pub const ALL: u8 = WARP as u8;

/// How many definitions a name is followed through.
const MOST_STEPS: usize = 16;

/// The most lanes of any warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// For which it holds.
    pub holds: u8,
    /// For which it does not.
    pub fails: u8,
}

impl Lanes {
    /// Any number of them.
    pub const ANY: Self = Self { holds: ALL, fails: ALL };

    /// Of the negation.
    pub fn otherwise(self) -> Self {
        Self { holds: self.fails, fails: self.holds }
    }

    /// Of both conditions together.
    pub fn and(self, other: Self) -> Self {
        Self { holds: self.holds.min(other.holds), fails: self.fails.saturating_add(other.fails).min(ALL) }
    }

    /// Of either.
    pub fn or(self, other: Self) -> Self {
        self.otherwise().and(other.otherwise()).otherwise()
    }

    /// Of a thread's number that is below `count`.
    fn below(count: i64) -> Self {
        Self { holds: u8::try_from(count.clamp(0, WARP)).unwrap_or(ALL), fails: ALL }
    }
}

impl<'t> Walker<'t> {
    /// Of a comparison of a thread's number with a constant.
    pub(super) fn lanes_of(&self, operator: &str, left: Operand<'t>, right: Operand<'t>) -> Lanes {
        let (operator, (node, value), limit) = match (left.1.constant, right.1.constant) {
            (None, Some(limit)) => (operator, left, limit),
            (Some(limit), None) => (mirrored(operator), right, limit),
            _ => return Lanes::ANY,
        };
        let index = value.index;
        let by_x =
            index.x == Coefficient::Number(1) && index.y == Coefficient::ZERO && index.z == Coefficient::ZERO;
        if !by_x || !self.is_thread(node) {
            return Lanes::ANY;
        }
        match operator {
            "<" => Lanes::below(limit),
            "<=" => Lanes::below(limit.saturating_add(1)),
            ">=" => Lanes::below(limit).otherwise(),
            ">" => Lanes::below(limit.saturating_add(1)).otherwise(),
            _ => Lanes::ANY,
        }
    }

    /// Whether an expression is `threadIdx.x`, or that modulo whole warps, as far as its dependence on `threadIdx.x` does not tell
    /// yet: nothing is added to it.
    fn is_thread(&self, node: Node<'t>) -> bool {
        let mut node = node;
        for _ in 0..MOST_STEPS {
            let inner = match Kind::of(node) {
                Kind::Field => return self.text(node) == "threadIdx.x",
                Kind::Parenthesized => node.named_child(0),
                Kind::Cast => node.child_by_field_name("value"),
                Kind::Binary => {
                    node.child_by_field_name("left").filter(|_| matches!(operator_of(node), "%" | "&"))
                }
                Kind::Identifier => self
                    .names
                    .resolve(self.text(node), node.start_byte())
                    .map(|id| &self.names.variables[id])
                    .filter(|variable| variable.writes.is_empty())
                    .and_then(|variable| variable.initial),
                _ => None,
            };
            match inner {
                Some(inner) => node = inner,
                None => return false,
            }
        }
        false
    }
}

fn operator_of<'t>(node: Node<'t>) -> &'t str {
    node.child_by_field_name("operator").map_or("", |operator| operator.kind())
}

/// The operator with its operands exchanged.
fn mirrored(operator: &str) -> &str {
    match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_combine_as_sets_do() {
        let (eight, twenty) = (Lanes::below(8), Lanes::below(20));
        assert_eq!(eight, Lanes { holds: 8, fails: ALL });
        assert_eq!(eight.and(twenty), Lanes { holds: 8, fails: ALL });
        assert_eq!(eight.or(twenty), Lanes { holds: 28, fails: ALL });
        assert_eq!(twenty.or(twenty).holds, ALL);
        let left = eight.otherwise().and(twenty.otherwise());
        assert_eq!(left, Lanes { holds: ALL, fails: 28 });
        assert_eq!(eight.otherwise().or(twenty.otherwise()), Lanes { holds: ALL, fails: 8 });
        assert_eq!((Lanes::below(-3).holds, Lanes::below(i64::MAX).holds), (0, ALL));
    }
}
