//! What looks like cheating, from what was seen of the candidate and of the reference beside it.
//!
//! What a process says of itself can accuse it and never acquits it. The bytes and the clock are the parent's own.

use std::time::Duration;

/// A transfer may take so many times as long as the reference's of the same bytes.
const SLOWER: u32 = 8;
/// And so much longer, since short transfers vary by what the machine does besides.
const SLACK: Duration = Duration::from_millis(20);

/// What was seen around one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Threads of the process before the call.
    pub before: u64,
    /// After it, and after everything was waited for.
    pub after: u64,
}

/// Work that goes on after a call has returned: the transfer of its output takes far longer than the reference's, by a good part of what a call
/// of the reference takes (`reference_call`). In words, or `None`.
pub fn put_off(
    bytes: u64,
    candidate: Duration,
    reference: Duration,
    reference_call: Duration,
) -> Option<String> {
    let allowed = (reference * SLOWER).max(reference + SLACK).max(reference + reference_call / 2);
    (candidate > allowed).then(|| {
        format!(
            "the {bytes} bytes of the last output took {:.1} ms to fetch, those of the reference {:.1} ms: work was put off until after the time was taken",
            candidate.as_secs_f64() * 1e3,
            reference.as_secs_f64() * 1e3
        )
    })
}

/// Threads that appear in every call, while the reference has none of its own appear: a pool is started once, work that is put off again and again.
/// In words, or `None`.
pub fn new_threads(candidate: &[Threads], reference: &[Threads]) -> Option<String> {
    let grows = |seen: &[Threads]| {
        // The first call may start pools.
        seen.iter().skip(1).filter(|threads| threads.after > threads.before).count()
    };
    let later = candidate.len().saturating_sub(1);
    if later < 2 || grows(candidate) < later || grows(reference) > 0 {
        return None;
    }
    let (first, last) = (candidate.first()?, candidate.last()?);
    Some(format!(
        "each call left a thread behind: {} before the first, {} after the last of {} calls",
        first.before,
        last.after,
        candidate.len()
    ))
}

/// The first probed element of a timed call in which both sides differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The call in the batch, from zero.
    pub call: usize,
    /// The output, as a part names it.
    pub place: String,
    /// The element of it, flat.
    pub element: u64,
    /// What the reference gave there.
    pub expected: f64,
    /// What the candidate gave.
    pub got: f64,
}

impl Probe {
    /// In words.
    pub fn words(&self) -> String {
        format!(
            "in call {} of a timed batch, element {} of `{}` is {:e}, and should be {:e}",
            self.call + 1,
            self.element,
            self.place,
            self.got,
            self.expected
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_transfer_that_waits_for_work_is_seen_and_a_slow_one_is_not() {
        let mega = 1 << 20;
        assert_eq!(put_off(mega, ms(2), ms(1), ms(1)), None);
        assert_eq!(put_off(mega, ms(15), ms(1), ms(1)), None);
        assert_eq!(put_off(mega, ms(80), ms(20), ms(200)), None);
        assert!(put_off(mega, ms(400), ms(1), ms(100)).unwrap().contains("400.0 ms"));
        assert!(put_off(mega, ms(60), ms(1), ms(50)).is_some());
    }

    #[test]
    fn a_pool_is_started_once_and_put_off_work_in_each_call() {
        let of = |pairs: &[(u64, u64)]| {
            pairs.iter().map(|(before, after)| Threads { before: *before, after: *after }).collect::<Vec<_>>()
        };
        let quiet = of(&[(4, 6), (6, 6), (6, 6), (6, 6)]);
        assert_eq!(new_threads(&quiet, &quiet), None);
        let growing = of(&[(4, 5), (5, 6), (6, 7)]);
        assert!(new_threads(&growing, &quiet).unwrap().contains("7 after"));
        assert_eq!(new_threads(&growing, &growing), None);
        assert_eq!(new_threads(&of(&[(4, 5)]), &quiet), None);
    }
}
