//! Whether a thread takes all of the elements that lie between it and its neighbour.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;
use tree_sitter::Node;

use super::facts::Access;
use super::index::{Coefficient, Step};
use super::kind::Kind;
use super::value::Memory;
use super::walk::Walker;

/// How many nodes of an index, and of what its local names stand for, are looked at.
const MOST_NODES: usize = 256;

/// A variable, its stride, and whether it is written.
type Key = (Option<u32>, Coefficient, bool);

/// What the function adds to each strided index.
pub struct Reach<'w, 't> {
    walker: &'w Walker<'t>,
    offsets: HashMap<Key, HashSet<i64>>,
}

fn key(access: &Access) -> Key {
    (access.base.variable, access.index.x, access.is_store)
}

impl<'w, 't> Reach<'w, 't> {
    /// Looks at all accesses to global memory.
    pub fn of(walker: &'w Walker<'t>) -> Self {
        let mut offsets: HashMap<Key, HashSet<i64>> = HashMap::new();
        for access in walker.facts.accesses.iter().filter(|access| access.base.memory == Memory::Global) {
            offsets.entry(key(access)).or_default().insert(access.index.offset);
        }
        Self { walker, offsets }
    }

    /// Whether a thread takes `stride` elements, one after the other: `a[4 * i]` to `a[4 * i + 3]`, written out or in loops.
    pub fn takes_all(&self, access: &Access<'t>, stride: i64) -> bool {
        let written = self.offsets.get(&key(access)).map_or(1, HashSet::len);
        // A loop that goes on by more than one element leaves some out, unless the others are taken beside it.
        let leaves_none = written > 1 || matches!(access.index.step, Step::Variable(_));
        let looped = if leaves_none { self.passes(access.node) } else { 1 };
        i64::try_from(written).is_ok_and(|written| written.saturating_mul(looped) >= stride)
    }

    /// How often the loops, whose variables are in an index, run together, as far as their limits are constant.
    fn passes(&self, access: Node<'t>) -> i64 {
        let mut pending: SmallVec<[Node<'t>; 16]> = SmallVec::new();
        pending.push(access);
        let mut known: HashSet<usize> = HashSet::new();
        let mut passes = 1i64;
        for _ in 0..MOST_NODES {
            let Some(node) = pending.pop() else { break };
            if Kind::of(node) != Kind::Identifier {
                let mut cursor = node.walk();
                pending.extend(node.named_children(&mut cursor));
                continue;
            }
            let walker = self.walker;
            let Some(id) = walker.names.resolve(walker.text(node), node.start_byte()) else { continue };
            if !known.insert(id) {
                continue;
            }
            let is_counter =
                walker.settled[id].is_some_and(|value| value.index.looped && value.index.is_uniform());
            let limit = u32::try_from(id).ok().and_then(|id| walker.facts.limits.get(&id));
            match limit {
                Some(limit) if is_counter => passes = passes.saturating_mul((*limit).max(1)),
                _ if !is_counter => pending.extend(walker.names.variables[id].initial),
                _ => {}
            }
        }
        passes
    }
}
