//! Which range a kernel was launched from: its call has the kernel's correlation number, and lay within the range on the same thread.
//!
//! A call is remembered until what it caused has come, or until many others were made since. A graph's launch causes many kernels, so that a
//! call is not forgotten with the first of them.

use std::collections::{HashMap, VecDeque};

use super::event::{Call, Correlation, Range};

/// Calls that are remembered. A stream holds about a thousand launches before the next one blocks; there may be a hundred streams.
const REMEMBERED: usize = 1 << 17;

/// Ranges open at once on a thread that are followed.
const DEEPEST: usize = 64;

/// Combinations of open ranges that are told apart; kernels launched from within later ones are not counted to their ranges.
const MOST_STACKS: usize = 1 << 16;

/// Calls and open ranges.
#[derive(Debug, Default)]
pub struct Causes {
    calls: HashMap<Correlation, u32>,
    order: VecDeque<Correlation>,
    open: HashMap<u64, Vec<(i64, usize)>>,
    stacks: HashMap<Vec<usize>, u32>,
    stack_list: Vec<Vec<usize>>,
}

impl Causes {
    /// A range begins, whose sum has the index `at`.
    pub fn open(&mut self, range: &Range, at: usize) {
        let open = self.open.entry(range.thread).or_default();
        open.retain(|(end, _)| *end > range.start);
        if open.len() < DEEPEST {
            open.push((range.end, at));
        }
    }

    /// A call begins, from within the ranges that are open on its thread.
    pub fn remember(&mut self, call: &Call) {
        if call.cause.number == 0 {
            return;
        }
        let Some(open) = self.open.get_mut(&call.thread) else {
            return;
        };
        open.retain(|(end, _)| *end > call.start);
        if open.is_empty() {
            return;
        }
        // The innermost first, then the others, each once.
        let innermost = open.iter().rev().map(|(_, at)| *at).next();
        let mut others: Vec<usize> =
            open.iter().map(|(_, at)| *at).filter(|at| Some(*at) != innermost).collect();
        others.sort_unstable();
        others.dedup();
        let stack = innermost.into_iter().chain(others).collect();
        let Some(id) = self.stack_id(stack) else {
            return;
        };
        if self.calls.insert(call.cause, id).is_none() {
            self.order.push_back(call.cause);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    fn stack_id(&mut self, stack: Vec<usize>) -> Option<u32> {
        if let Some(id) = self.stacks.get(&stack) {
            return Some(*id);
        }
        if self.stack_list.len() == MOST_STACKS {
            return None;
        }
        let id = self.stack_list.len() as u32;
        self.stack_list.push(stack.clone());
        self.stacks.insert(stack, id);
        Some(id)
    }

    /// The sums of the ranges from which this was caused, each once, that of the innermost first.
    pub fn ranges_of(&self, cause: Correlation) -> &[usize] {
        let stack = self.calls.get(&cause).and_then(|id| self.stack_list.get(*id as usize));
        stack.map_or(&[], |stack| stack)
    }
}
