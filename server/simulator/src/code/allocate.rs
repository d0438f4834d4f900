//! Registers to rows: liveness, then a linear scan over the ops in their final order.
//!
//! Each lane has a column of its own in every row, and no row is ever of two classes, so what is live is what is live for a
//! thread on its own, whatever the other lanes do.

use std::collections::BTreeSet;

use crate::code::build::{Draft, Reg};
use crate::code::op::{Class, ROW};

/// A set of registers.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Self {
        Set(vec![0; registers.div_ceil(64)])
    }

    fn insert(&mut self, reg: Reg) {
        self.0[reg as usize / 64] |= 1 << (reg % 64);
    }

    fn remove(&mut self, reg: Reg) {
        self.0[reg as usize / 64] &= !(1 << (reg % 64));
    }

    /// Adds another's; true if that changed anything.
    fn join(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            changed |= *theirs & !*mine != 0;
            *mine |= theirs;
        }
        changed
    }

    fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word as u32 * 64 + bit)
        })
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// Blocks in their final order: drafts `start..end`, and the blocks that follow.
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
    pub successors: Vec<usize>,
}

/// Where registers went.
pub(super) struct Allocation {
    /// By register: the slot.
    pub slots: Vec<u32>,
    pub rows: u32,
    pub predicates: u32,
    /// A register may be read before it is written.
    pub reads_unset: bool,
}

/// Allots rows and masks.
pub(super) fn allocate(drafts: &[Draft], spans: &[Span], classes: &[Class]) -> Allocation {
    let live_out = liveness(drafts, spans, classes.len());
    let unset = spans.first().map(|entry| live_in(drafts, entry, &live_out[0]));
    let intervals = intervals(drafts, spans, &live_out, classes);
    let mut allocation = scan(intervals, classes);
    allocation.reads_unset = unset.is_some_and(|set| !set.is_empty());
    allocation
}

/// What is live before a span, given what is after.
fn live_in(drafts: &[Draft], span: &Span, out: &Set) -> Set {
    let mut live = out.clone();
    for draft in drafts[span.start..span.end].iter().rev() {
        if draft.guard.is_none() {
            draft.defs().for_each(|reg| live.remove(reg));
        }
        draft.uses().for_each(|reg| live.insert(reg));
    }
    live
}

fn liveness(drafts: &[Draft], spans: &[Span], registers: usize) -> Vec<Set> {
    let mut ins: Vec<Set> = vec![Set::new(registers); spans.len()];
    let mut outs = ins.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..spans.len()).rev() {
            for &successor in &spans[at].successors {
                outs[at].join(&ins[successor]);
            }
            let live = live_in(drafts, &spans[at], &outs[at]);
            changed |= ins[at].join(&live);
        }
    }
    outs
}

/// First and last op of each register, over all that it is live across.
fn intervals(drafts: &[Draft], spans: &[Span], outs: &[Set], classes: &[Class]) -> Vec<(usize, usize)> {
    let mut all = vec![(usize::MAX, 0); classes.len()];
    let mut extend = |reg: Reg, at: usize| {
        let (first, last) = &mut all[reg as usize];
        *first = (*first).min(at);
        *last = (*last).max(at);
    };
    for (span, out) in spans.iter().zip(outs) {
        out.iter().for_each(|reg| extend(reg, span.end));
        let mut live = out.clone();
        for (at, draft) in (span.start..span.end).zip(&drafts[span.start..span.end]).rev() {
            for reg in draft.defs() {
                extend(reg, at);
                // It must keep its row until the op is done.
                extend(reg, at + 1);
                if draft.guard.is_none() {
                    live.remove(reg);
                }
            }
            let mut defs = draft.defs();
            let only = defs.next().filter(|_| defs.next().is_none());
            for reg in draft.uses() {
                live.insert(reg);
                // A source may share its row with the destination only where lanes lie alike in both.
                let alike = only.is_none_or(|def| classes[def as usize] == classes[reg as usize]);
                extend(reg, if alike && draft.defs().count() < 2 { at } else { at + 1 });
            }
        }
        live.iter().for_each(|reg| extend(reg, span.start));
    }
    all
}

/// Hands out rows in the order of first ops.
///
/// Each class has rows of its own. A lane of a double row lies over two lanes of a single one, so a lane that is ahead of
/// the others would overwrite what they still need, if it found a double where they have a single.
fn scan(intervals: Vec<(usize, usize)>, classes: &[Class]) -> Allocation {
    let mut order: Vec<Reg> =
        (0..classes.len() as u32).filter(|&r| intervals[r as usize].0 != usize::MAX).collect();
    order.sort_by_key(|&reg| intervals[reg as usize]);
    // Masks 0 and 1 are the constants true and false.
    let mut pools = [Pool { end: 2, ..Pool::default() }, Pool::default(), Pool::default(), Pool::default()];
    let mut active: BTreeSet<(usize, Reg)> = BTreeSet::new();
    let mut slots = vec![0; classes.len()];
    for reg in order {
        let (first, last) = intervals[reg as usize];
        while let Some(&(end, old)) = active.first() {
            if end > first {
                break;
            }
            active.pop_first();
            pools[pool(classes[old as usize])].free.insert(slots[old as usize]);
        }
        slots[reg as usize] = pools[pool(classes[reg as usize])].take();
        active.insert((last, reg));
    }
    let mut rows = 0;
    for class in [Class::Quad, Class::Double, Class::Single] {
        for (slot, _) in slots.iter_mut().zip(classes).filter(|(_, c)| **c == class) {
            *slot = (rows + *slot * class.rows()) * ROW;
        }
        rows += pools[pool(class)].end * class.rows();
    }
    Allocation { slots, rows, predicates: pools[pool(Class::Predicate)].end, reads_unset: false }
}

/// Which pool a class takes its places from.
fn pool(class: Class) -> usize {
    match class {
        Class::Predicate => 0,
        Class::Single => 1,
        Class::Double => 2,
        Class::Quad => 3,
    }
}

/// Places for registers of one class.
#[derive(Default)]
struct Pool {
    free: BTreeSet<u32>,
    end: u32,
}

impl Pool {
    fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, ROW, scan};

    /// A lane that is ahead writes a double while another still needs a single whose use lies before it.
    #[test]
    fn rows_are_not_handed_from_one_class_to_another() {
        let classes = [Class::Single, Class::Double, Class::Quad, Class::Single];
        let allocation = scan(vec![(0, 1), (2, 3), (4, 5), (6, 7)], &classes);
        let rows = |reg: usize| {
            let first = allocation.slots[reg] / ROW;
            first..first + classes[reg].rows()
        };
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert!(rows(a).all(|row| !rows(b).contains(&row)), "{:?}", allocation.slots);
        }
        assert_eq!(rows(0), rows(3));
        assert_eq!(allocation.rows, 7);
    }
}
