//! From timed batches of calls to a speedup with its interval.
//!
//! A batch is a number of calls that the judged process learns only when it starts them; its wall time, less that of a batch that does all but the
//! calls, over their number is one time of a call. A round times reference and candidate as A B B A or B A A B, so that a drift of the machine falls on
//! both alike; the mean of a side's two is what the round says of it. The speedup is the ratio of the medians of these, and its interval a percentile bootstrap over rounds (Efron and Tibshirani, An
//! Introduction to the Bootstrap, chapter 13), which keeps the two sides of a round together. It is drawn from a seed of its own, so the same
//! times always give the same interval.

use super::distributions::Stream;
use crate::measure::sample::Interval;

/// Calls of each side in all batches together, at least.
pub const LEAST_CALLS: u64 = 50;
/// Fewer rounds give no honest interval: the bootstrap of a median of few values is too narrow.
pub const LEAST_ROUNDS: usize = 10;
/// More rounds tell little more.
pub const MOST_ROUNDS: usize = 40;
/// An interval whose half width is this share of the speedup is narrow enough.
pub const NARROW: f64 = 0.01;
/// Where an interval can't become that narrow, it is at least to become this narrow, if more rounds can do it.
pub const FAIR: f64 = 0.03;
/// How long a batch should take, in seconds: long beside the waking of a process, which takes some ten microseconds.
const BATCH: f64 = 0.01;
/// Most calls of a batch. Each has its inputs and its probes to send.
pub const MOST_CALLS: u64 = 4096;
/// Resamples of the bootstrap: the ends of a 95% interval lie among fifty on either side.
const RESAMPLES: usize = 2000;
/// The bootstrap's own seed.
const SEED: u64 = 0x5715_c4c0_da00_0001;

/// One round: times of a call in seconds, two of each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The reference.
    pub reference: [f64; 2],
    /// The candidate.
    pub candidate: [f64; 2],
}

/// How one side's times are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median with its 95% interval.
    pub interval: Interval,
    /// Five in a hundred batches were at most so fast; 0 where these took less than those without the calls.
    pub p5: f64,
    /// Ninety-five were at most so slow.
    pub p95: f64,
}

/// What rounds tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The reference's times, in seconds.
    pub reference: Spread,
    /// The candidate's.
    pub candidate: Spread,
    /// The reference's median over the candidate's, with its bootstrap interval.
    pub speedup: Interval,
}

/// How many calls a batch should make, given what one takes in seconds, so that it is long enough.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Clamped.
pub fn calls_of_batch(call: f64) -> u64 {
    let long_enough = if call > 0.0 { (BATCH / call).ceil() } else { MOST_CALLS as f64 };
    long_enough.clamp(1.0, MOST_CALLS as f64) as u64
}

/// Whether rounds are enough, `spent` seconds of `budget` after the first began: the interval is narrow, or `least` calls of each side were
/// made, it won't become so within the budget, and it is fair at least. Its width falls as the root of the number of rounds.
#[allow(clippy::cast_precision_loss)] // Few.
pub fn enough(rounds: &[Round], calls: u64, least: u64, spent: f64, budget: f64) -> bool {
    let count = rounds.len();
    let made = 2 * calls * count as u64;
    // Calls so long that the least number of them takes minutes.
    if count >= 2 && spent > 4.0 * budget || count >= MOST_ROUNDS && made >= least {
        return true;
    }
    if count < LEAST_ROUNDS {
        return count >= 2 && made >= least && spent > budget;
    }
    // What is lost in noise may come out of it.
    let Some(outcome) = outcome(rounds) else { return made >= least && spent > budget };
    let width = outcome.speedup.spread();
    if width < NARROW {
        return true;
    }
    let too_wide = width / NARROW;
    let needed = count as f64 * too_wide * too_wide;
    let is_out_of_reach = needed > MOST_ROUNDS as f64 || needed * spent / count as f64 > budget;
    made >= least && is_out_of_reach && (width < FAIR || spent > budget)
}

/// The times and the speedup of some rounds. `None` where there are none, or where a call may as well take no time, by the interval of a side: then it is
/// shorter than what the rest varies by.
pub fn outcome(rounds: &[Round]) -> Option<Outcome> {
    let reference: Vec<[f64; 2]> = rounds.iter().map(|round| round.reference).collect();
    let candidate: Vec<[f64; 2]> = rounds.iter().map(|round| round.candidate).collect();
    let (of_reference, of_candidate) = (spread(&reference)?, spread(&candidate)?);
    if of_reference.interval.low <= 0.0 || of_candidate.interval.low <= 0.0 {
        return None;
    }
    Some(Outcome {
        reference: of_reference,
        candidate: of_candidate,
        speedup: speedup(rounds, of_reference.interval.median / of_candidate.interval.median),
    })
}

/// How one side's times are spread, two of each round; `None` of none.
pub fn spread(times: &[[f64; 2]]) -> Option<Spread> {
    let means: Vec<f64> = times.iter().copied().map(mean).collect();
    let interval = Interval::of(&means)?;
    let mut sorted = times.as_flattened().to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Spread { interval, p5: quantile(&sorted, 0.05).max(0.0), p95: quantile(&sorted, 0.95) })
}

/// A quantile of sorted values, between the two nearest where it falls between them (type 7 of Hyndman and Fan, 1996). 0 of none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Within the list.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[(at.ceil() as usize).min(last)]);
    below + (above - below) * at.fract()
}

/// The ratio with its percentile bootstrap interval; the ratio itself always lies within.
fn speedup(rounds: &[Round], ratio: f64) -> Interval {
    let stream = Stream::new(SEED);
    let count = rounds.len() as u64;
    let mut drawn = 0;
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let (mut reference, mut candidate) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let which = usize::try_from(stream.bits(drawn) % count).unwrap_or(0);
                drawn += 1;
                reference.push(mean(rounds[which].reference));
                candidate.push(mean(rounds[which].candidate));
            }
            let (above, below) = (median(&mut reference), median(&mut candidate));
            (above > 0.0 && below > 0.0).then(|| above / below)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) =
        if ratios.is_empty() { (ratio, ratio) } else { (quantile(&ratios, 0.025), quantile(&ratios, 0.975)) };
    Interval { median: ratio, low: low.min(ratio), high: high.max(ratio), samples: 2 * rounds.len() }
}

fn mean([one, other]: [f64; 2]) -> f64 {
    f64::midpoint(one, other)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rounds of two sides whose calls take these times, with noise and a drift.
    fn rounds(count: usize, calls: [f64; 2], noise: f64, drift: f64, seed: u64) -> Vec<Round> {
        let stream = Stream::new(seed);
        (0..count)
            .map(|round| {
                #[allow(clippy::cast_precision_loss)]
                let time = |which: u64, call: f64| {
                    let at = round as u64 * 4 + which;
                    call * (1.0 + drift * (round as f64 + which as f64 / 4.0))
                        * (1.0 + stream.uniform(at, -noise, noise))
                };
                Round {
                    reference: [time(0, calls[0]), time(3, calls[0])],
                    candidate: [time(1, calls[1]), time(2, calls[1])],
                }
            })
            .collect()
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        for (calls, noise, drift) in [
            ([1e-4, 1e-4], 0.05, 0.0),
            ([2e-4, 1e-4], 0.05, 0.0),
            ([1e-4, 1e-4], 0.02, 0.002),
            ([1.05e-4, 1e-4], 0.01, 0.0),
        ] {
            let truth = calls[0] / calls[1];
            let hits = (0..300)
                .filter(|seed| {
                    let found = outcome(&rounds(12, calls, noise, drift, *seed)).unwrap().speedup;
                    found.low <= truth && truth <= found.high
                })
                .count();
            assert!(hits >= 270, "{calls:?} {noise}: {hits} of 300");
        }
    }

    #[test]
    fn the_same_times_give_the_same_interval() {
        let rounds = rounds(10, [3e-4, 1e-4], 0.1, 0.0, 4);
        assert_eq!(outcome(&rounds), outcome(&rounds));
        assert_eq!(outcome(&[]), None);
        assert_eq!(outcome(&[Round { reference: [1.0; 2], candidate: [-1.0; 2] }]), None);
    }

    #[test]
    fn what_is_lost_in_noise_has_no_time_and_is_looked_for_until_the_time_is_spent() {
        let stream = Stream::new(8);
        let time = |at: u64| 1e-6 + stream.uniform(at, -5e-6, 5e-6);
        let rounds: Vec<Round> = (0..20)
            .map(|round| [0, 1, 2, 3].map(|which| time(4 * round + which)))
            .map(|[a, b, c, d]| Round { reference: [a, b], candidate: [c, d] })
            .collect();
        assert_eq!(outcome(&rounds), None);
        assert!(!enough(&rounds, 100, LEAST_CALLS, 1.0, 5.0) && enough(&rounds, 100, LEAST_CALLS, 5.1, 5.0));
        let mut clear = rounds;
        for round in &mut clear {
            round.reference = round.reference.map(|time| time + 4e-6);
            round.candidate = round.candidate.map(|time| time + 4e-6);
        }
        let found = outcome(&clear).unwrap();
        assert!(found.speedup.low > 0.0 && found.reference.interval.low > 0.0 && found.reference.p5 >= 0.0);
    }

    #[test]
    fn batches_are_long_and_calls_are_many() {
        assert_eq!((calls_of_batch(1.0), calls_of_batch(1e-3)), (1, 10));
        assert_eq!((calls_of_batch(0.0), calls_of_batch(1e-9)), (MOST_CALLS, MOST_CALLS));
    }

    #[test]
    fn it_ends_as_soon_as_the_interval_is_narrow_or_can_not_become_so() {
        let quiet = rounds(10, [1e-3, 1e-3], 0.001, 0.0, 1);
        let noisy = rounds(40, [1e-3, 1e-3], 0.3, 0.0, 1);
        let fair = rounds(25, [1e-3, 1e-3], 0.05, 0.0, 3);
        for few in [10, 25] {
            let width = outcome(&fair[..few]).unwrap().speedup.spread();
            assert!((NARROW * 1.3..FAIR).contains(&width), "{width}");
        }
        let nearly = rounds(12, [1e-3, 1e-3], 0.03, 0.0, 1);
        let width = outcome(&nearly).unwrap().speedup.spread();
        assert!((NARROW..NARROW * 1.7).contains(&width), "{width}");
        for (rounds, calls, spent, expected) in [
            // Narrow, with few calls too.
            (&quiet[..], 20, 1.0, true),
            (&quiet[..], 1, 1.0, true),
            (&quiet[..9], 20, 1.0, false),
            // Out of reach: forty rounds would not do. With fewer calls than asked for, that is no reason.
            (&fair[..10], 20, 0.5, true),
            (&fair[..10], 1, 0.5, false),
            (&fair[..25], 1, 0.5, true),
            // So far off that more rounds are worth their time, as long as there is some.
            (&noisy[..10], 20, 0.5, false),
            (&noisy[..25], 20, 6.0, true),
            (&noisy[..], 20, 0.5, true),
            // Within reach, if the budget allows it.
            (&nearly[..], 20, 0.5, false),
            (&nearly[..], 20, 4.0, true),
            // Calls of seconds.
            (&noisy[..3], 2, 6.0, false),
            (&noisy[..3], 2, 21.0, true),
            (&noisy[..1], 2, 90.0, false),
        ] {
            let count = rounds.len();
            assert_eq!(
                enough(rounds, calls, LEAST_CALLS, spent, 5.0),
                expected,
                "{count} of {calls} in {spent}"
            );
        }
    }

    proptest! {
        #[test]
        fn quantiles_lie_among_the_values_and_in_order(values in prop::collection::vec(-1e3f64..1e3, 1..60), share in 0f64..1.0) {
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let found = quantile(&sorted, share);
            prop_assert!(sorted[0] <= found && found <= sorted[sorted.len() - 1]);
            prop_assert!(quantile(&sorted, share / 2.0) <= found);
        }

        #[test]
        fn the_ratio_lies_in_its_interval(seed: u64, noise in 0f64..0.5) {
            let found = outcome(&rounds(10, [2e-4, 1e-4], noise, 0.0, seed)).unwrap().speedup;
            prop_assert!(found.low <= found.median && found.median <= found.high);
        }
    }
}
