//! The order in which a function's blocks are laid out.
//!
//! The machine runs, of a warp's diverged groups, the one with the lowest program counter. So that this alone makes lanes
//! meet again as early as they can, a block must lie after every block that leads to it (but for back edges), and a loop's
//! blocks must lie together, before what follows the loop. See "SIMD re-convergence at thread frontiers", Diamos et al.,
//! MICRO 2011.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders blocks `0..successors.len()`, of which 0 is the entry. Blocks that nothing reaches are left out.
#[must_use]
pub fn order(successors: &[Vec<usize>]) -> Vec<usize> {
    let reverse_post_order = reverse_post_order(successors);
    let mut graph = Graph::new(successors, &reverse_post_order);
    graph.find_loops(&reverse_post_order);
    let mut placed = Vec::with_capacity(reverse_post_order.len());
    graph.place(None, 0, &mut placed);
    placed
}

/// The blocks that the entry reaches, each before its successors but for back edges.
fn reverse_post_order(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut finished = Vec::new();
    let mut stack = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, next)) = stack.pop() {
        if let Some(&successor) = successors[block].get(next) {
            stack.push((block, next + 1));
            if !seen[successor] {
                seen[successor] = true;
                stack.push((successor, 0));
            }
        } else {
            finished.push(block);
        }
    }
    finished.reverse();
    finished
}

struct Loop {
    header: usize,
    members: Vec<bool>,
    size: usize,
    parent: Option<usize>,
}

struct Graph<'a> {
    successors: &'a [Vec<usize>],
    predecessors: Vec<Vec<usize>>,
    /// Position in reverse post-order; `usize::MAX` where nothing reaches the block.
    position: Vec<usize>,
    loops: Vec<Loop>,
    /// The innermost loop of each block.
    inside: Vec<Option<usize>>,
}

impl<'a> Graph<'a> {
    fn new(successors: &'a [Vec<usize>], order: &[usize]) -> Self {
        let mut predecessors = vec![Vec::new(); successors.len()];
        let mut position = vec![usize::MAX; successors.len()];
        for (at, &block) in order.iter().enumerate() {
            position[block] = at;
            for &successor in &successors[block] {
                predecessors[successor].push(block);
            }
        }
        let inside = vec![None; successors.len()];
        Graph { successors, predecessors, position, loops: Vec::new(), inside }
    }

    /// Immediate dominators, by Cooper, Harvey and Kennedy's "A simple, fast dominance algorithm".
    fn dominators(&self, order: &[usize]) -> Vec<usize> {
        let mut dominator = vec![usize::MAX; self.successors.len()];
        dominator[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &order[1..] {
                let mut new = usize::MAX;
                for &predecessor in &self.predecessors[block] {
                    if dominator[predecessor] == usize::MAX {
                        continue;
                    }
                    new =
                        if new == usize::MAX { predecessor } else { self.meet(&dominator, new, predecessor) };
                }
                if dominator[block] != new {
                    dominator[block] = new;
                    changed = true;
                }
            }
        }
        dominator
    }

    fn meet(&self, dominator: &[usize], mut a: usize, mut b: usize) -> usize {
        while a != b {
            while self.position[a] > self.position[b] {
                a = dominator[a];
            }
            while self.position[b] > self.position[a] {
                b = dominator[b];
            }
        }
        a
    }

    /// Natural loops, those with one header joined.
    fn find_loops(&mut self, order: &[usize]) {
        let dominator = self.dominators(order);
        let dominates = |a: usize, mut b: usize| loop {
            if a == b {
                return true;
            }
            if b == 0 {
                return false;
            }
            b = dominator[b];
        };
        for &header in order {
            let latches: Vec<usize> =
                self.predecessors[header].iter().copied().filter(|&latch| dominates(header, latch)).collect();
            if !latches.is_empty() {
                let members = self.members(header, latches);
                let size = members.iter().filter(|m| **m).count();
                self.loops.push(Loop { header, members, size, parent: None });
            }
        }
        // An outer loop is larger than the loops in it, so the smallest that holds a block is the innermost.
        for at in 0..self.loops.len() {
            let header = self.loops[at].header;
            self.loops[at].parent = self.smallest(header, Some(at));
        }
        for &block in order {
            self.inside[block] = self.smallest(block, None);
        }
    }

    fn smallest(&self, block: usize, but: Option<usize>) -> Option<usize> {
        let holds = |at: &usize| Some(*at) != but && self.loops[*at].members[block];
        (0..self.loops.len()).filter(holds).min_by_key(|&at| self.loops[at].size)
    }

    fn members(&self, header: usize, latches: Vec<usize>) -> Vec<bool> {
        let mut members = vec![false; self.successors.len()];
        members[header] = true;
        let mut work = latches;
        while let Some(block) = work.pop() {
            if !members[block] {
                members[block] = true;
                work.extend(&self.predecessors[block]);
            }
        }
        members
    }

    /// The child of `region` that holds `block`: a loop's header stands for the loop.
    fn node(&self, region: Option<usize>, block: usize) -> Option<usize> {
        let mut inner = self.inside[block];
        if inner == region {
            return Some(block);
        }
        while let Some(at) = inner {
            if self.loops[at].parent == region {
                return Some(self.loops[at].header);
            }
            inner = self.loops[at].parent;
        }
        None
    }

    /// Places the blocks of a loop (or of the function), inner loops whole.
    fn place(&self, region: Option<usize>, entry: usize, placed: &mut Vec<usize>) {
        let inner = |block: usize| self.node(region, block);
        let mut nodes: Vec<usize> = Vec::new();
        let mut waits = vec![0usize; self.successors.len()];
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); self.successors.len()];
        for block in 0..self.successors.len() {
            if self.position[block] == usize::MAX {
                continue;
            }
            let Some(from) = inner(block) else { continue };
            if from == block {
                nodes.push(block);
            }
            for &successor in &self.successors[block] {
                if let Some(to) = inner(successor)
                    && to != from
                    && to != entry
                {
                    edges[from].push(to);
                    waits[to] += 1;
                }
            }
        }
        let mut left: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
        let mut done = vec![false; self.successors.len()];
        nodes.sort_by_key(|&node| self.position[node]);
        left.push(Reverse((entry, entry)));
        let mut next_stuck = 0;
        loop {
            let node = match left.pop() {
                Some(Reverse((_, node))) => node,
                // A cycle with two entries: nothing is free, so the first in reverse post-order goes.
                None => match nodes[next_stuck..].iter().position(|&n| !done[n]) {
                    Some(skip) => {
                        next_stuck += skip;
                        nodes[next_stuck]
                    }
                    None => break,
                },
            };
            if done[node] {
                continue;
            }
            done[node] = true;
            match self.loops.iter().position(|l| l.header == node) {
                Some(at) if Some(at) != region => self.place(Some(at), node, placed),
                _ => placed.push(node),
            }
            for &to in &edges[node] {
                waits[to] -= 1;
                if waits[to] == 0 && !done[to] {
                    left.push(Reverse((to, to)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    fn at(order: &[usize], block: usize) -> usize {
        order.iter().position(|b| *b == block).unwrap()
    }

    #[test]
    fn a_join_lies_after_both_arms() {
        assert_eq!(order(&[vec![2, 1], vec![3], vec![3], vec![]]), [0, 1, 2, 3]);
    }

    #[test]
    fn what_follows_a_loop_lies_after_all_of_it() {
        // 0 -> 1 (header) -> {2, 3}; 3 -> {4, 5 = exit}; 2 -> 4; 4 -> 1.
        let order = order(&[vec![1], vec![2, 3], vec![4], vec![4, 5], vec![1], vec![]]);
        for member in 1..5 {
            assert!(at(&order, member) < at(&order, 5), "{order:?}");
        }
    }

    #[test]
    fn loops_lie_together_where_the_text_scatters_them() {
        // The exit (1) stands in the text before the body (2, 3), which holds an inner loop (3).
        let order = order(&[vec![2], vec![], vec![3, 1], vec![3, 4], vec![2]]);
        assert_eq!(order, [0, 2, 3, 4, 1]);
    }

    #[test]
    fn a_cycle_with_two_entries_is_ordered_all_the_same() {
        let order = order(&[vec![1, 2], vec![2], vec![1, 3], vec![]]);
        assert_eq!(order.len(), 4);
        assert_eq!(order[0], 0);
    }

    #[test]
    fn blocks_that_nothing_reaches_are_left_out() {
        assert_eq!(order(&[vec![2], vec![2], vec![]]), [0, 2]);
    }
}
