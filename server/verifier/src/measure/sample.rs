//! From wall-clock times of whole processes to the time of a call, and to how sure that is.
//!
//! A process that makes `calls` calls takes `start + calls * call`. Two processes with different numbers of calls tell the time of a call as the
//! slope between them, whatever the start takes. A round times every version once in this way, the versions nested in each other (`A B B A`), so
//! that a drift of the machine falls on both alike.
//!
//! Intervals are order statistics, which assume nothing of how times are distributed: of `n` independent rounds, the chance that the true median lies
//! outside of the k-th smallest and the k-th largest is `2 P(Binomial(n, 1/2) < k)` (David and Nagaraja, Order Statistics, section 7.1).

use serde::{Deserialize, Serialize};

/// How often an interval may miss.
const MISSES: f64 = 0.05;
/// Fewer rounds can't give a 95% interval of a median: all of five lie on one side of it in 6.25% of cases.
pub const LEAST_ROUNDS: usize = 6;
/// More rounds tell little more. Of twelve, the third on either side bounds the interval.
pub const MOST_ROUNDS: usize = 12;
/// What the rounds of a comparison may take together, in seconds.
const COMPARISON: f64 = 20.0;
/// What the calls between the two counts take together, in seconds, at least and at most: in between as long as a start, since a long one,
/// with much data to draw and to copy, varies by more.
const SPAN: [f64; 2] = [0.5, 1.5];
/// The smaller count, as a share of the span. A device needs a while to reach its clock, and both counts should pay for that.
const LEAD: f64 = 0.15;
/// Most calls of a process.
const MOST_CALLS: u64 = 5_000_000;

/// A median with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many values it was taken from.
    pub samples: usize,
}

impl Interval {
    /// The median of some values and its interval; all that they span where there are fewer than [`LEAST_ROUNDS`]. `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let samples = sorted.len();
        let last = samples.checked_sub(1)?;
        let median = f64::midpoint(sorted[last / 2], sorted[samples / 2]);
        let cut = cut(samples);
        Some(Self { median, low: sorted[cut], high: sorted[last - cut], samples })
    }

    /// The same in another unit.
    pub fn times(&self, factor: f64) -> Self {
        Self { median: self.median * factor, low: self.low * factor, high: self.high * factor, ..*self }
    }

    /// Half of its width, as a share of the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / 2.0 / self.median } else { 0.0 }
    }
}

/// How many of `n` sorted values lie outside of the interval on either side.
#[allow(clippy::cast_precision_loss)] // Rounds are few.
fn cut(n: usize) -> usize {
    let mut term = 0.5f64.powf(n as f64);
    let mut below = term;
    let mut cut = 0;
    // With `k` values cut, the interval misses if at most `k` of the values lie on one side of the true median.
    for k in 1..=n / 2 {
        term *= (n + 1 - k) as f64 / k as f64;
        below += term;
        if 2.0 * below > MISSES || n - 1 < 2 * k {
            break;
        }
        cut = k;
    }
    cut
}

/// The time of a call from the times of two processes, in the unit of these.
#[allow(clippy::cast_precision_loss)] // Calls stay far below 2^53.
pub fn slope([few, many]: [u64; 2], [short, long]: [f64; 2]) -> f64 {
    (long - short) / (many.saturating_sub(few).max(1)) as f64
}

/// How often each process calls, and in how many rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Calls of the shorter process.
    pub few: u64,
    /// Calls of the longer one.
    pub many: u64,
    /// Rounds.
    pub rounds: usize,
}

impl Schedule {
    /// The schedule for calls that take `call` seconds, in `versions` processes that take `start` seconds without them.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped.
    pub fn of(call: f64, start: f64, versions: usize) -> Self {
        let seconds = start.clamp(SPAN[0], SPAN[1]);
        let call = call.max(seconds / MOST_CALLS as f64);
        let span = (seconds / call).clamp(1.0, MOST_CALLS as f64).round() as u64;
        // From two on: a process with a single call does not fill its arrays again.
        let few = ((span as f64 * LEAD) as u64).max(2);
        let schedule = Self { few, many: few + span, rounds: 0 };
        let round = versions.max(1) as f64 * (2.0 * start + (schedule.few + schedule.many) as f64 * call);
        Self { rounds: Self::rounds(round), ..schedule }
    }

    /// How many rounds that take `round` seconds each fit into a comparison: 6, 9 or 12, the numbers after which the interval becomes narrower.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Clamped.
    pub fn rounds(round: f64) -> usize {
        let fit = (COMPARISON / round.max(1e-3)).clamp(LEAST_ROUNDS as f64, MOST_ROUNDS as f64) as usize;
        fit / 3 * 3
    }

    /// The counts of one round: up to a tenth more than planned, as `secret` says, so that nobody knows them beforehand.
    pub fn counts(&self, secret: u64) -> [u64; 2] {
        let vary = |count: u64, secret: u64| count + secret % (count / 10 + 1);
        [vary(self.few, secret & 0xffff_ffff), vary(self.many, secret >> 32)]
    }
}

/// The next number of calls to try while it is not known how long one takes, or `None` once `calls` took long enough over the start.
pub fn next_calls(calls: u64, over_start: f64) -> Option<u64> {
    /// Long beside the start's own variation.
    const ENOUGH: f64 = 0.12;
    (over_start < ENOUGH && calls < MOST_CALLS).then(|| (calls * 16).min(MOST_CALLS))
}

/// What rounds of two versions tell: the time of each, and how many times faster the second is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contest {
    /// The first version.
    pub before: Interval,
    /// The second version.
    pub after: Interval,
    /// The first over the second, of each round.
    pub ratio: Interval,
}

impl Contest {
    /// Of the times of both in each round. `None` where there is no round, or a time that is not positive: then what was timed is shorter
    /// than what the rest of the process varies by.
    pub fn of(rounds: &[[f64; 2]]) -> Option<Self> {
        let all_positive = rounds.iter().flatten().all(|time| *time > 0.0 && time.is_finite());
        let of = |take: fn(&[f64; 2]) -> f64| Interval::of(&rounds.iter().map(take).collect::<Vec<_>>());
        if !all_positive {
            return None;
        }
        Some(Self {
            before: of(|round| round[0])?,
            after: of(|round| round[1])?,
            ratio: of(|round| round[0] / round[1])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_cut_as_many_as_they_may() {
        // 2 * sum of the binomials up to k over 2^n: n = 6, k = 0: 3.1%; 8, 0: 0.8% (1: 7.0%); 9, 1: 3.9%; 12, 2: 3.9%; 15, 3: 3.5%; 20, 5: 4.1%.
        for (n, expected) in
            [(1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5)]
        {
            assert_eq!(cut(n), expected, "{n}");
        }
        let interval = Interval::of(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!((interval.low, interval.median, interval.high), (2.0, 5.0, 8.0));
        assert_eq!(Interval::of(&[1.0, 3.0]).unwrap().median, 2.0);
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(interval.times(10.0).high, 80.0);
        assert_eq!(interval.spread(), 0.6);
    }

    #[test]
    fn schedules_fit_what_is_timed() {
        for (what, call, start, versions) in [
            ("a launch alone", 2e-6, 0.3, 2),
            ("a millisecond", 1e-3, 0.3, 2),
            ("ten seconds", 10.0, 0.3, 2),
            ("a slow start", 1e-5, 4.0, 2),
            ("one version", 1e-5, 0.3, 1),
            ("nothing", 0.0, 0.3, 2),
        ] {
            let plan = Schedule::of(call, start, versions);
            assert!(plan.few >= 2 && plan.many > plan.few && plan.many <= 2 * MOST_CALLS, "{what}: {plan:?}");
            assert!((LEAST_ROUNDS..=MOST_ROUNDS).contains(&plan.rounds), "{what}: {plan:?}");
            #[allow(clippy::cast_precision_loss)]
            let span = (plan.many - plan.few) as f64 * call;
            assert!(call == 0.0 || call > 1.0 || (0.4..1.6).contains(&span), "{what}: {plan:?} spans {span}");
            let [few, many] = plan.counts(u64::MAX);
            assert!(plan.few <= few && few <= plan.few + plan.few / 10, "{few}");
            assert!(plan.many <= many && many <= plan.many + plan.many / 10, "{many}");
        }
        assert_eq!(next_calls(8, 0.01), Some(128));
        assert_eq!(next_calls(8, 0.2), None);
        assert_eq!(next_calls(MOST_CALLS, 0.0), None);
    }

    /// Numbers from -1 to 1 that look drawn; the same in every run of the test.
    fn noise(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(*state >> 32).unwrap()) / f64::from(u32::MAX) * 2.0 - 1.0
    }

    /// Rounds of two versions whose calls take these times, with a start that varies and a machine that drifts.
    fn rounds(calls: [f64; 2], jitter: f64, drift: f64, state: &mut u64) -> Vec<[f64; 2]> {
        let plan = Schedule::of(calls[0], 0.4, 2);
        (0..plan.rounds)
            .map(|round| {
                let counts = plan.counts(*state);
                #[allow(clippy::cast_precision_loss)]
                let slower = 1.0 + drift * round as f64;
                calls.map(|call| {
                    #[allow(clippy::cast_precision_loss)]
                    let times =
                        counts.map(|count| 0.4 + jitter * noise(state) + count as f64 * call * slower);
                    slope(counts, times)
                })
            })
            .collect()
    }

    #[test]
    fn noise_alone_is_never_a_gain_of_a_hundredth_and_a_gain_of_five_is_seen() {
        let mut state = 7;
        for (what, calls, jitter, drift, kept) in [
            ("itself, quiet", [1e-5, 1e-5], 0.002, 0.0, 0..=0),
            ("itself, with a drift of 1% a round", [1e-5, 1e-5], 0.002, 0.01, 0..=0),
            // One round in a hundred or so may say a hundredth under such noise, and the interval needs all of its ends to say so.
            ("itself, noisy", [1e-5, 1e-5], 0.02, 0.0, 0..=6),
            ("half a hundredth", [1.005e-5, 1e-5], 0.002, 0.0, 0..=2),
            ("five hundredths", [1.05e-5, 1e-5], 0.002, 0.0, 195..=200),
            ("twice", [2e-5, 1e-5], 0.01, 0.01, 200..=200),
        ] {
            let contests = (0..200).map(|_| Contest::of(&rounds(calls, jitter, drift, &mut state)).unwrap());
            let contests: Vec<Contest> = contests.collect();
            let keeps = contests.iter().filter(|contest| contest.ratio.low >= 1.01).count();
            assert!(kept.contains(&keeps), "{what}: kept {keeps} of 200");
            let truth = calls[0] / calls[1];
            let hits =
                contests.iter().filter(|one| one.ratio.low <= truth && truth <= one.ratio.high).count();
            assert!(hits >= 184, "{what}: the interval holds the truth in {hits} of 200");
        }
    }

    #[test]
    fn what_is_shorter_than_the_noise_gives_no_ratio() {
        assert_eq!(Contest::of(&[[1.0, -0.1], [1.0, 1.0]]), None);
        assert_eq!(Contest::of(&[]), None);
    }
}
