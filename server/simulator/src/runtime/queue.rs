//! The work of a device that was issued and has not ended.
//!
//! Work is numbered as it is issued, and names what it comes after: the last work of its stream, events that the stream waits
//! for, and the rules of the legacy default stream. The lowest number that is ready runs, and one piece of work at a time:
//! so a program's work is done in the order of its calls, which is one of the orders that streams allow, and the same in each
//! run. Work that may wait for others (a kernel that reads what others write while it runs, a function of the host) and has
//! taken longer than [`PATIENCE`] no longer holds up what does not depend on it.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long work that may wait for others has the device for itself.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// Programs issue much work in a row, and to wake a thread costs more than to issue work. So for a while after its last work a
/// thread sleeps for moments only, and is woken where somebody waits for work alone.
const MOMENT: Duration = Duration::from_micros(50);

/// How long that while is, in moments.
const MOMENTS: u32 = 20;

/// What somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// The work with these numbers.
    Each(Vec<u64>),
    /// All work up to this number.
    Until(u64),
}

/// A piece of work.
struct Issued<T> {
    after: Vec<u64>,
    may_wait: bool,
    task: T,
}

struct Running {
    since: Instant,
    may_wait: bool,
}

struct State<T> {
    last: u64,
    waiting: BTreeMap<u64, Issued<T>>,
    running: BTreeMap<u64, Running>,
    /// Threads that sleep until work comes.
    idle: usize,
    /// Threads that look for work every moment.
    drowsy: usize,
    /// Threads that sleep until work ends.
    waiters: usize,
    closed: bool,
    /// What threads of the program sleep for.
    wanted: Vec<Wait>,
}

impl<T> State<T> {
    fn has_ended(&self, number: u64) -> bool {
        !self.waiting.contains_key(&number) && !self.running.contains_key(&number)
    }

    fn is_over(&self, wait: &Wait) -> bool {
        match wait {
            Wait::Each(numbers) => numbers.iter().all(|&number| self.has_ended(number)),
            Wait::Until(last) => {
                let after = |first: Option<&u64>| first.is_none_or(|first| first > last);
                after(self.waiting.keys().next()) && after(self.running.keys().next())
            }
        }
    }

    /// The work that may begin now.
    fn runnable(&self) -> Option<u64> {
        let patient = |one: &Running| one.may_wait && one.since.elapsed() >= PATIENCE;
        if !self.running.values().all(patient) {
            return None;
        }
        let ready = |issued: &Issued<T>| issued.after.iter().all(|&number| self.has_ended(number));
        self.waiting.iter().find(|(_, issued)| ready(issued)).map(|(&number, _)| number)
    }
}

/// Work of one program, in order.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Work came, or no more will.
    came: Condvar,
    /// Work ended.
    ended: Condvar,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state = State {
            last: 0,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            idle: 0,
            drowsy: 0,
            waiters: 0,
            closed: false,
            wanted: Vec::new(),
        };
        Self { state: Mutex::new(state), came: Condvar::new(), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work that comes after other work, and returns its number.
    pub(super) fn add(&self, after: Vec<u64>, may_wait: bool, task: T) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.waiting.insert(number, Issued { after, may_wait, task });
        let wake = state.drowsy == 0 && state.idle > 0;
        drop(state);
        if wake {
            self.came.notify_one();
        }
        number
    }

    /// The number of work that the caller does at once, and [ends](Self::end). `None` where other work has not ended.
    pub(super) fn begin(&self) -> Option<u64> {
        let mut state = self.state();
        if state.closed || !state.waiting.is_empty() || !state.running.is_empty() {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.running.insert(number, Running { since: Instant::now(), may_wait: false });
        Some(number)
    }

    /// The number that was given last.
    pub(super) fn last(&self) -> u64 {
        self.state().last
    }

    /// How much work has not ended.
    pub(super) fn outstanding(&self) -> usize {
        let state = self.state();
        state.waiting.len() + state.running.len()
    }

    /// Leaves those that have not ended.
    pub(super) fn keep_outstanding(&self, numbers: &mut Vec<u64>) {
        if !numbers.is_empty() {
            let state = self.state();
            numbers.retain(|&number| !state.has_ended(number));
        }
    }

    /// Whether all of it has ended, after waiting for at most `limit`.
    pub(super) fn wait(&self, wait: &Wait, limit: Duration) -> bool {
        let mut state = self.state();
        if limit.is_zero() || state.is_over(wait) {
            return state.is_over(wait);
        }
        state.waiters += 1;
        if state.drowsy > 0 {
            self.came.notify_all();
        }
        let waited = self.ended.wait_timeout_while(state, limit, |state| !state.is_over(wait));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiters -= 1;
        state.is_over(wait)
    }

    /// [`end`](Self::end) will say so once this is over. False where it is already.
    pub(super) fn want(&self, wait: &Wait) -> bool {
        let mut state = self.state();
        let open = !state.is_over(wait);
        if open {
            state.wanted.push(wait.clone());
        }
        open
    }

    /// Waits for work that may begin. The flag is set where nobody would be left to look for work if this takes long. `None`
    /// once the queue is closed.
    pub(super) fn take(&self) -> Option<(u64, T, bool)> {
        let mut state = self.state();
        let mut moments = 0;
        loop {
            if state.closed {
                return None;
            }
            let next = state.runnable();
            if let Some((number, issued)) =
                next.and_then(|number| Some((number, state.waiting.remove(&number)?)))
            {
                let may_wait = issued.may_wait;
                state.running.insert(number, Running { since: Instant::now(), may_wait });
                return Some((number, issued.task, may_wait && state.idle + state.drowsy == 0));
            }
            if moments < MOMENTS {
                moments += 1;
                state.drowsy += 1;
                state = self.came.wait_timeout(state, MOMENT).unwrap_or_else(PoisonError::into_inner).0;
                state.drowsy -= 1;
                continue;
            }
            state.idle += 1;
            state = if state.running.values().any(|one| one.may_wait) {
                self.came.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.came.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
            state.idle -= 1;
        }
    }

    /// Work has ended. True where a thread of the program sleeps for it.
    pub(super) fn end(&self, number: u64) -> bool {
        let mut state = self.state();
        state.running.remove(&number);
        let mut wanted = std::mem::take(&mut state.wanted);
        let before = wanted.len();
        wanted.retain(|wait| !state.is_over(wait));
        let over = wanted.len() < before;
        state.wanted = wanted;
        let more = !state.waiting.is_empty() && state.idle > 0 && !state.running.is_empty();
        let waiters = state.waiters > 0;
        drop(state);
        if waiters {
            self.ended.notify_all();
        }
        if more {
            self.came.notify_one();
        }
        over
    }

    /// No more work is begun. How much was waiting.
    pub(super) fn close(&self) -> usize {
        let mut state = self.state();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting).len();
        drop(state);
        self.came.notify_all();
        self.ended.notify_all();
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn work_runs_in_the_order_of_its_calls() {
        let queue = Queue::new();
        let numbers: Vec<u64> = ["a", "b", "c"].map(|task| queue.add(Vec::new(), false, task)).to_vec();
        for (number, task) in numbers.iter().zip(["a", "b", "c"]) {
            assert!(!queue.wait(&Wait::Each(vec![*number]), NOW));
            assert_eq!(queue.take(), Some((*number, task, false)));
            assert!(!queue.wait(&Wait::Until(*number), NOW));
            queue.end(*number);
            assert!(queue.wait(&Wait::Until(*number), NOW));
        }
        assert_eq!(queue.outstanding(), 0);
    }

    #[test]
    fn work_that_waits_lets_others_go_first_but_not_those_that_come_after_it() {
        let queue = Queue::new();
        let first = queue.add(Vec::new(), true, "spins");
        let second = queue.add(vec![first], false, "follows");
        let third = queue.add(Vec::new(), false, "releases");
        assert_eq!(queue.take(), Some((first, "spins", true)));
        let begun = Instant::now();
        assert_eq!(queue.take(), Some((third, "releases", false)));
        assert!(begun.elapsed() >= PATIENCE / 2, "{:?}", begun.elapsed());
        assert!(queue.want(&Wait::Each(vec![first])));
        assert!(!queue.end(third));
        assert!(queue.end(first), "somebody sleeps for it");
        assert_eq!(queue.take(), Some((second, "follows", false)));
    }

    #[test]
    fn work_is_done_at_once_only_where_nothing_is_before_it() {
        let queue = Queue::new();
        let first = queue.begin();
        assert_eq!((first, queue.begin()), (Some(1), None));
        let second = queue.add(vec![1], false, "follows");
        queue.end(1);
        assert_eq!(queue.begin(), None);
        assert_eq!(queue.take(), Some((second, "follows", false)));
        assert_eq!(queue.begin(), None);
        queue.end(second);
        assert_eq!(queue.begin(), Some(3));
    }

    #[test]
    fn a_closed_queue_gives_nothing() {
        let queue = Queue::new();
        let number = queue.add(Vec::new(), false, ());
        assert_eq!(queue.close(), 1);
        assert_eq!(queue.take(), None);
        assert!(queue.wait(&Wait::Each(vec![number]), NOW));
    }
}
