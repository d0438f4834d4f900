//! From drafts to ops: blocks in order, registers in rows, labels at places.

use std::collections::HashMap;

use crate::code::allocate::{Allocation, Span, allocate};
use crate::code::build::{Draft, Finished, Flow, Slot, TRUE, slots};
use crate::code::op::{HIDDEN, JUMPS, LEAVES, NONE, Op, PICKS};
use crate::code::{Shape, Source, flow};
use crate::machine::access::UNCHECKED;
use crate::machine::control;
use crate::machine::matrix::LIST;

/// Ops of a kernel's functions, one after the other.
#[derive(Default)]
pub(super) struct Emitter {
    pub ops: Vec<Op>,
    pub sources: Vec<Source>,
    pub functions: Vec<Shape>,
    /// Operands beyond slots.
    pub lists: Vec<u32>,
}

/// A basic block: drafts `start..end` of the text's order.
struct Block {
    start: usize,
    end: usize,
    /// The block that follows in the text, if this one can run into it.
    falls_to: Option<usize>,
    /// Targets of its last draft.
    targets: Vec<usize>,
}

impl Emitter {
    /// Appends a function.
    pub fn function(&mut self, name: &str, mut body: Finished, tables: &mut [Vec<u32>], opcodes: &[String]) {
        mark_speculated(&mut body.drafts, opcodes);
        let blocks = blocks(&body);
        let successors: Vec<Vec<usize>> =
            blocks.iter().map(|b| b.falls_to.iter().chain(&b.targets).copied().collect()).collect();
        let order = flow::order(&successors);
        let (drafts, spans, starts) = lay_out(body.drafts, &blocks, &order);
        let allocation = allocate(&drafts, &spans, &body.registers);
        let entry = self.ops.len() as u32;
        let place = |label: usize| entry + starts[block_at(&blocks, body.labels[label])] as u32;
        for draft in &drafts {
            let mut op = op(draft, &allocation, &mut self.lists);
            match &draft.flow {
                Flow::Branch(label) => op.immediate = i64::from(place(*label)),
                Flow::Table(labels) => {
                    tables[op.aux as usize] = labels.iter().map(|label| place(*label)).collect();
                }
                Flow::Block(block) => op.immediate = i64::from(entry + starts[*block] as u32),
                Flow::Next | Flow::Leave => {}
            }
            self.ops.push(op);
            self.sources.push(draft.source);
        }
        self.functions.push(Shape {
            name: name.to_owned(),
            entry,
            rows: allocation.rows,
            predicates: allocation.predicates,
            local_rows: body.local.div_ceil(4),
            reads_unset: allocation.reads_unset,
        });
    }
}

/// Marks loads of local and shared memory whose results only `selp` takes. A compiler may load what surely is there before it knows whether the
/// program would: `ok ? x : -1` becomes a load of `x` and a choice. What such a load gives need not be written yet.
fn mark_speculated(drafts: &mut [Draft], opcodes: &[String]) {
    let opcode = |draft: &Draft| opcodes.get(draft.source.opcode as usize).map_or("", String::as_str);
    let is_load = |draft: &Draft| {
        let name = opcode(draft);
        let spaces = ["ld.local", "ld.shared"];
        spaces.iter().any(|space| name.starts_with(space)) && draft.flags & HIDDEN == 0
    };
    // By register: used by `selp`, used by others.
    let mut uses: HashMap<u32, (bool, bool)> = HashMap::new();
    for draft in drafts.iter() {
        let chooses = opcode(draft).starts_with("selp");
        for (at, slot) in draft.slots.iter().chain(&draft.more).enumerate() {
            if let Slot::Use(reg) = slot {
                let entry = uses.entry(*reg).or_default();
                let chosen = chooses && (1..=2).contains(&at);
                entry.0 |= chosen;
                entry.1 |= !chosen;
            }
        }
    }
    for draft in drafts.iter_mut().filter(|draft| is_load(draft)) {
        let results = draft.slots.iter().chain(&draft.more).filter_map(|slot| match slot {
            Slot::Def(reg) => Some(uses.get(reg).copied().unwrap_or_default()),
            _ => None,
        });
        if results.fold((0, 0), |(some, all), used| (some + i32::from(used == (true, false)), all + 1))
            == (1, 1)
        {
            draft.aux |= UNCHECKED;
        }
    }
}

/// Cuts the text's drafts into blocks: at labels, and after drafts that lead elsewhere.
fn blocks(body: &Finished) -> Vec<Block> {
    let mut cuts: Vec<usize> = body.labels.iter().copied().filter(|at| *at < body.drafts.len()).collect();
    cuts.push(0);
    let ends = body.drafts.iter().enumerate().filter(|(_, draft)| draft.flow != Flow::Next);
    cuts.extend(ends.map(|(at, _)| at + 1).filter(|at| *at < body.drafts.len()));
    cuts.sort_unstable();
    cuts.dedup();
    let ends = cuts.iter().skip(1).copied().chain([body.drafts.len()]);
    let block = |(&start, end)| Block { start, end, falls_to: None, targets: Vec::new() };
    let mut blocks: Vec<Block> = cuts.iter().zip(ends).map(block).collect();
    for at in 0..blocks.len() {
        let last = &body.drafts[blocks[at].end - 1];
        let goes_on = last.guard.is_some() || last.flow == Flow::Next;
        let targets: Vec<usize> = match &last.flow {
            Flow::Branch(label) => vec![block_at(&blocks, body.labels[*label])],
            Flow::Table(labels) => labels.iter().map(|l| block_at(&blocks, body.labels[*l])).collect(),
            Flow::Block(block) => vec![*block],
            Flow::Next | Flow::Leave => Vec::new(),
        };
        blocks[at].falls_to = (goes_on && at + 1 < blocks.len()).then_some(at + 1);
        blocks[at].targets = targets;
    }
    blocks
}

/// The block that a draft begins or lies in; the last, for a label at the end.
fn block_at(blocks: &[Block], draft: usize) -> usize {
    blocks.partition_point(|block| block.start <= draft).saturating_sub(1)
}

/// Drafts in their final order, with jumps where a block no longer stands before the one it runs into. Also the spans for
/// allocation, and by block its first draft.
fn lay_out(drafts: Vec<Draft>, blocks: &[Block], order: &[usize]) -> (Vec<Draft>, Vec<Span>, Vec<usize>) {
    let mut position = vec![usize::MAX; blocks.len()];
    for (at, &block) in order.iter().enumerate() {
        position[block] = at;
    }
    let mut placed = Vec::with_capacity(drafts.len());
    let mut spans = Vec::with_capacity(order.len());
    let mut starts = vec![usize::MAX; blocks.len()];
    for (at, &number) in order.iter().enumerate() {
        let block = &blocks[number];
        let start = placed.len();
        starts[number] = start;
        placed.extend_from_slice(&drafts[block.start..block.end]);
        if let Some(next) = block.falls_to
            && order.get(at + 1) != Some(&next)
        {
            let source = drafts[block.end - 1].source;
            placed.push(Draft {
                run: control::branch(),
                slots: slots([Slot::None]),
                more: Vec::new(),
                immediate: 0,
                aux: 0,
                flags: HIDDEN,
                guard: None,
                flow: Flow::Block(next),
                source,
            });
        }
        let successors = block.falls_to.iter().chain(&block.targets).map(|b| position[*b]).collect();
        spans.push(Span { start, end: placed.len(), successors });
    }
    (placed, spans, starts)
}

fn op(draft: &Draft, allocation: &Allocation, lists: &mut Vec<u32>) -> Op {
    let slot = |slot: Slot| match slot {
        Slot::None => NONE,
        Slot::Use(reg) | Slot::Def(reg) => allocation.slots[reg as usize],
        Slot::Fixed(slot) => slot,
    };
    let mut slots = draft.slots.map(slot);
    if !draft.more.is_empty() {
        slots[LIST] = lists.len() as u32;
        lists.extend(draft.more.iter().map(|more| slot(*more)));
    }
    let (guard, negate) = match draft.guard {
        None => (TRUE, 0),
        Some((reg, negated)) => (allocation.slots[reg as usize], if negated { u32::MAX } else { 0 }),
    };
    let flow = match draft.flow {
        Flow::Next => 0,
        Flow::Leave => LEAVES,
        Flow::Branch(_) | Flow::Block(_) => JUMPS,
        Flow::Table(_) => PICKS,
    };
    Op {
        run: draft.run,
        immediate: draft.immediate,
        slots,
        guard: guard as u16,
        flags: draft.flags | flow,
        aux: draft.aux,
        negate,
    }
}
