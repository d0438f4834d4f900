//! From the wall-clock times of calls in a row to the time of a call, and to how sure that is.
//!
//! A sample is a number of calls in a row, timed from the command to make them to its answer, less what a command to make none takes. A round starts a
//! process of each version anew and takes a few samples of each, by turns and every second time the other way round (`A B B A …`), so that a drift
//! of the machine falls on both alike. The median sample is the time of the round: one process differs from the next of the same
//! program (on an H200 by up to 0.4%, and by a fifth where launching is all that takes time), and no number of samples in one shows that.
//!
//! Intervals are order statistics, which assume nothing of how times are distributed: of `n` independent rounds, the chance that the true median lies
//! outside of the k-th smallest and the k-th largest is `2 P(Binomial(n, 1/2) < k)` (David and Nagaraja, Order Statistics, section 7.1).

use serde::{Deserialize, Serialize};

/// How often an interval may miss.
const MISSES: f64 = 0.05;
/// Fewer rounds can't give a 95% interval of a median: all of five lie on one side of it in 6.25% of cases.
pub const LEAST_ROUNDS: usize = 6;
/// More rounds tell little more. Of twelve, the third on either side bounds the interval.
const MOST_ROUNDS: usize = 12;
/// Whether an interval is narrow is asked after this many rounds and each multiple of this: of 6, 9 and 12 the interval becomes narrower.
const LOOK_EVERY: usize = 3;
/// An interval that is narrower than this share of its median needs no further rounds.
const NARROW: f64 = 0.01;
/// Seconds after which a comparison ends with the rounds that it has, if these are enough for an interval.
pub const PATIENCE: f64 = 10.0;
/// Seconds of a sample: long beside what the command and the answer vary by (some 10 µs).
const SPAN: f64 = 0.04;
/// Seconds of calls before a sample, which are not timed: caches and clocks are then as in a row of calls.
const LEAD: f64 = 0.002;
/// Seconds of the samples of a version in a round, and how many these are at most. Their number is even, so that those of both versions lie
/// around the same time.
const ROUND: f64 = 0.24;
const MOST_SAMPLES: u32 = 6;
/// Most calls of a sample.
const MOST_CALLS: u64 = 1_000_000;

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

    /// Its width, as a share of the median.
    pub fn width(&self) -> f64 {
        2.0 * self.spread()
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

/// How a version is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// About how many seconds a call takes.
    pub call: f64,
    /// Calls of a sample, or up to a tenth more.
    pub calls: u64,
    /// Calls before it that are not timed.
    pub lead: u64,
    /// Samples of a round.
    pub samples: u32,
}

impl Schedule {
    /// The schedule for calls that take `call` seconds.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped.
    pub fn of(call: f64) -> Self {
        let call = call.max(SPAN / MOST_CALLS as f64);
        let calls = (SPAN / call).ceil() as u64;
        let samples = (ROUND / (calls as f64 * call)).ceil() as u32;
        let samples = if samples > 1 { samples.next_multiple_of(2).min(MOST_SAMPLES) } else { 1 };
        Self { call, calls, lead: (LEAD / call) as u64, samples }
    }

    /// The calls of one sample: up to a tenth more than planned, as `secret` says, so that nobody knows them beforehand.
    pub fn count(&self, secret: u64) -> u64 {
        // One call is as long as many samples, and there is nothing to leave out.
        let spare = if self.calls > 1 { self.calls / 10 + 1 } else { 0 };
        self.calls + secret % (spare + 1)
    }
}

/// The next number of calls to try while it is not known how long one takes, or `None` once `calls` took long enough.
pub fn next_calls(calls: u64, seconds: f64) -> Option<u64> {
    /// Long beside the command's own variation.
    const ENOUGH: f64 = 0.005;
    (seconds < ENOUGH && calls < MOST_CALLS).then(|| (calls * 8).min(MOST_CALLS))
}

/// Whether so many rounds are enough, which took such a share of the time that there is and tell an interval of this width, as a share of its median.
pub fn are_enough(rounds: usize, time: f64, width: f64) -> bool {
    let is_looked_at = rounds >= LEAST_ROUNDS && rounds.is_multiple_of(LOOK_EVERY);
    rounds >= MOST_ROUNDS || (is_looked_at && (time >= 1.0 || width < NARROW))
}

/// How many rounds of whole processes, which take `round` seconds each, fit into a comparison: 6, 9 or 12, the numbers after which the interval
/// becomes narrower.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Clamped.
pub fn process_rounds(round: f64) -> usize {
    /// What they may take together, in seconds.
    const COMPARISON: f64 = 20.0;
    let fit = (COMPARISON / round.max(1e-3)).clamp(LEAST_ROUNDS as f64, MOST_ROUNDS as f64) as usize;
    fit / LOOK_EVERY * LOOK_EVERY
}

/// Calls in a row, and the seconds from the command to the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Calls.
    pub calls: u64,
    /// Seconds.
    pub seconds: f64,
}

impl Sample {
    /// The time of a call in seconds, where a command to make none takes `empty`.
    #[allow(clippy::cast_precision_loss)] // Calls stay far below 2^53.
    pub fn call(&self, empty: f64) -> f64 {
        (self.seconds - empty) / self.calls.max(1) as f64
    }
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
    /// than what all else varies by.
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
    #[allow(clippy::cast_precision_loss)]
    fn schedules_fit_what_is_timed() {
        for (what, call, calls, lead, samples) in [
            ("a launch alone", 2e-6, 20_000, 1000, 6),
            ("a millisecond", 1e-3, 40, 2, 6),
            ("a span", 0.04, 1, 0, 6),
            ("a tenth of a second", 0.1, 1, 0, 4),
            ("ten seconds", 10.0, 1, 0, 1),
            ("nothing", 0.0, MOST_CALLS, 50_000, 6),
        ] {
            let schedule = Schedule::of(call);
            assert!(
                schedule.calls.abs_diff(calls) <= 1
                    && schedule.lead.abs_diff(lead) <= 1
                    && schedule.samples == samples,
                "{what}: {schedule:?}"
            );
            for secret in [0, 1, 12_345, u64::MAX] {
                let count = schedule.count(secret);
                assert!(
                    count >= schedule.calls && count as f64 <= schedule.calls as f64 * 1.1 + 1.0,
                    "{what}: {count}"
                );
            }
        }
        assert_eq!(Schedule::of(10.0).count(u64::MAX), 1);
        assert_eq!(Schedule { calls: 2, ..Schedule::of(0.02) }.count(1), 3);
        assert_eq!(next_calls(8, 0.001), Some(64));
        assert_eq!(next_calls(8, 0.2), None);
        assert_eq!(next_calls(MOST_CALLS, 0.0), None);
        assert_eq!([process_rounds(0.1), process_rounds(2.0), process_rounds(60.0)], [12, 9, 6]);
    }

    #[test]
    fn rounds_end_when_they_tell_enough() {
        for (rounds, time, width, expected) in [
            (3, 10.0, 0.0, false),
            (5, 10.0, 0.0, false),
            (6, 0.1, 0.009, true),
            (6, 0.1, 0.011, false),
            (6, 1.0, 0.5, true),
            (7, 1.0, 0.001, false),
            (9, 0.1, 0.001, true),
            (12, 0.1, 0.5, true),
        ] {
            assert_eq!(are_enough(rounds, time, width), expected, "{rounds} {time} {width}");
        }
    }

    /// Numbers from -1 to 1 that look drawn; the same in every run of the test.
    fn noise(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(*state >> 32).unwrap()) / f64::from(u32::MAX) * 2.0 - 1.0
    }

    /// What varies, each as a share of a sample.
    #[derive(Clone, Copy)]
    struct Noise {
        /// From sample to sample.
        sample: f64,
        /// From process to process.
        process: f64,
        /// How much slower the machine becomes with each sample.
        drift: f64,
    }

    /// Rounds of two versions whose calls take these times.
    fn rounds(calls: [f64; 2], by: Noise, state: &mut u64) -> Vec<[f64; 2]> {
        const EMPTY: f64 = 30e-6;
        const START: f64 = 0.5;
        let mut rounds: Vec<[f64; 2]> = Vec::new();
        let (mut taken, mut slower) = (0.0, 1.0);
        loop {
            let process = [(); 2].map(|()| 1.0 + by.process * noise(state));
            let mut samples = [Vec::new(), Vec::new()];
            for turn in 0..MOST_SAMPLES {
                for version in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                    let count = Schedule::of(calls[version]).count(*state);
                    #[allow(clippy::cast_precision_loss)]
                    let call = calls[version] * slower * process[version] * (1.0 + by.sample * noise(state));
                    #[allow(clippy::cast_precision_loss)]
                    let seconds = count as f64 * call + EMPTY + 5e-6 * noise(state);
                    samples[version].push(Sample { calls: count, seconds }.call(EMPTY));
                    (taken, slower) = (taken + seconds, slower + by.drift);
                }
            }
            taken += 2.0 * START;
            rounds.push(samples.map(|of| Interval::of(&of).unwrap().median));
            if are_enough(rounds.len(), taken / PATIENCE, Contest::of(&rounds).unwrap().ratio.width()) {
                return rounds;
            }
        }
    }

    #[test]
    fn noise_alone_is_never_a_gain_of_a_hundredth_and_a_gain_of_five_is_seen() {
        let mut state = 7;
        for (what, calls, [sample, process, drift], kept) in [
            ("itself, quiet", [1e-5, 1e-5], [0.001, 0.0, 0.0], 0..=0),
            ("itself, in processes that differ", [1e-5, 1e-5], [0.001, 0.004, 0.0], 0..=0),
            ("itself, slower by a thousandth with each sample", [1e-5, 1e-5], [0.001, 0.002, 0.001], 0..=0),
            // All rounds may lie on one side once in 32 times, and the interval needs all of its ends to say a hundredth.
            ("itself, noisy", [1e-5, 1e-5], [0.05, 0.02, 0.0], 0..=5),
            ("a launch alone, in processes that differ by a fifth", [2e-6, 2e-6], [0.02, 0.1, 0.0], 0..=9),
            ("half a second", [0.5, 0.5], [0.002, 0.002, 0.0], 0..=0),
            ("half a hundredth", [1.005e-5, 1e-5], [0.002, 0.002, 0.0], 0..=0),
            ("two hundredths", [1.02e-5, 1e-5], [0.005, 0.003, 0.0], 195..=200),
            ("twice", [2e-5, 1e-5], [0.01, 0.01, 0.001], 200..=200),
        ] {
            let contests = (0..200)
                .map(|_| Contest::of(&rounds(calls, Noise { sample, process, drift }, &mut state)).unwrap());
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
